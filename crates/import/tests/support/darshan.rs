//! Writes Darshan logs: the newest layouts from Darshan's own description of them, older ones field by field.

use std::io::Write;

/// A log to be.
pub(super) struct LogWriter {
    pub version: &'static str,
    pub big_endian: bool,
    pub compression: Compression,
    pub partial: u64,
    /// Ids and names.
    pub names: Vec<(u64, &'static str)>,
    /// Number of a module in this version of the log, version of its records, and their bytes.
    pub modules: Vec<(usize, u32, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Compression {
    Zlib,
    Bzip2,
    None,
}

impl LogWriter {
    pub(super) fn new(version: &'static str, big_endian: bool, compression: Compression) -> LogWriter {
        LogWriter { version, big_endian, compression, partial: 0, names: Vec::new(), modules: Vec::new() }
    }

    /// Bytes of words in the byte order of the log.
    pub(super) fn words(&self) -> Words {
        Words { bytes: Vec::new(), big_endian: self.big_endian }
    }

    fn is_wide(&self) -> bool {
        self.version == "3.41"
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = if self.is_wide() { 64 } else { 16 };
        let header_len = if self.is_wide() { 1328 } else { 360 };
        let mut body = self.compress(&self.job());
        let mut extents = vec![(0, 0); count + 1];
        let mut versions = vec![0u32; count];
        let mut add = |index: usize, region: Vec<u8>, body: &mut Vec<u8>| {
            extents[index] = (header_len + body.len(), region.len());
            body.extend(region);
        };
        add(0, self.compress(&self.name_records()), &mut body);
        for (number, version, records) in &self.modules {
            add(number + 1, self.compress(records), &mut body);
            versions[*number] = *version;
        }
        let mut header = self.words();
        let mut text = self.version.as_bytes().to_vec();
        text.resize(8, 0);
        header.bytes.extend(text);
        header.i64(6_567_223);
        header.bytes.extend([self.compression as u8, 0, 0, 0]);
        if self.is_wide() {
            header.bytes.extend([0; 4]);
            header.u64(self.partial);
        } else {
            header.u32(self.partial as u32);
        }
        for (offset, len) in extents {
            header.u64(offset as u64).u64(len as u64);
        }
        for version in versions {
            header.u32(version);
        }
        assert_eq!(header.bytes.len(), header_len);
        [header.bytes, body].concat()
    }

    fn job(&self) -> Vec<u8> {
        let mut job = self.words();
        job.i64(4711);
        if self.is_wide() {
            job.i64(1_700_000_000).i64(5).i64(1_700_000_009).i64(250_000_005);
        } else {
            job.i64(1_700_000_000).i64(1_700_000_009);
        }
        job.i64(4).i64(99);
        let fixed = job.bytes.len();
        job.bytes.extend(b"lib_ver=3.4.4\nh=cb_nodes=4;x=y\n");
        job.bytes.resize(fixed + 1024, 0);
        job.bytes.extend(b"/bin/app --size 3\next4\t/\nlustre\t/scratch/long\nnfs\t/home");
        job.bytes.resize(4096, 0);
        job.bytes
    }

    fn name_records(&self) -> Vec<u8> {
        let mut records = self.words();
        for (id, name) in &self.names {
            records.u64(*id);
            if self.version == "3.00" {
                records.u32(name.len() as u32);
                records.bytes.extend(name.as_bytes());
            } else {
                records.bytes.extend(name.as_bytes());
                records.bytes.push(0);
            }
        }
        records.bytes
    }

    /// As two processes would have: two streams, one behind the other.
    fn compress(&self, bytes: &[u8]) -> Vec<u8> {
        let halves = bytes.split_at(bytes.len() / 2);
        let compress = |half: &[u8]| match self.compression {
            Compression::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(half).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(half).unwrap();
                encoder.finish().unwrap()
            }
            Compression::None => half.to_vec(),
        };
        [compress(halves.0), compress(halves.1)].concat()
    }
}

/// Words, one behind the other.
pub(super) struct Words {
    pub bytes: Vec<u8>,
    big_endian: bool,
}

impl Words {
    pub(super) fn u64(&mut self, value: u64) -> &mut Words {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Words {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Words {
        self.u64(value as u64)
    }

    pub(super) fn f64(&mut self, value: f64) -> &mut Words {
        self.u64(value.to_bits())
    }

    /// `count` whole numbers: 1000, 1001, …
    pub(super) fn integers(&mut self, count: i64) -> &mut Words {
        for value in 1000..1000 + count {
            self.i64(value);
        }
        self
    }

    /// `count` times: 0.5, 1.5, …
    pub(super) fn floats(&mut self, count: u32) -> &mut Words {
        for value in 0..count {
            self.f64(f64::from(value) + 0.5);
        }
        self
    }

    /// A DXT record: id, rank, and for each access whether it is a write, offset, length, start and end. Writes first.
    pub(super) fn accesses(
        &mut self,
        id: u64,
        rank: i64,
        accesses: &[(bool, i64, i64, f64, f64)],
    ) -> &mut Words {
        let writes = accesses.iter().filter(|access| access.0).count();
        self.u64(id).i64(rank).i64(0);
        let mut host = format!("node{rank}").into_bytes();
        host.resize(64, 0);
        self.bytes.extend(host);
        self.i64(writes as i64).i64((accesses.len() - writes) as i64);
        for &(_, offset, length, start_s, end_s) in accesses {
            self.i64(offset).i64(length).f64(start_s).f64(end_s);
        }
        self
    }
}

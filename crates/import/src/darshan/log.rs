//! A log, open for reading.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::damage::LogDamage;
use super::dxt::Dxt;
use super::header::{self, Compression, Extent, Header, LogVersion, NoHeader, Region};
use super::heatmap::Heatmaps;
use super::job::Job;
use super::lustre::Lustre;
use super::module::Module;
use super::names::Names;
use super::records::Records;
use super::region::RegionReader;
use crate::error::ImportError;
use crate::order::ByteOrder;
use pio_trace::source::Source;

/// A Darshan log.
///
/// Header and job record are read when it is opened; names and modules when they are asked for, each time from the file.
pub struct Log {
    source: Source,
    path: PathBuf,
    header: Header,
    job: Job,
    damage: Option<LogDamage>,
}

/// A module that a log has data of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleRegion {
    /// The module that the damage is in.
    pub module: Module,
    /// Version of its records.
    pub version: u32,
    /// Whether it ran out of memory while the job ran, and lacks records.
    pub partial: bool,
    /// Bytes in the file, compressed.
    pub len: u64,
}

/// Whether a file with these first bytes (16 are enough) is a Darshan log.
pub fn is_log(bytes: &[u8]) -> bool {
    header::start(bytes).is_some()
}

impl Log {
    /// Opens the file `path`.
    ///
    /// # Errors
    /// If it cannot be read, is no Darshan log, is of an unknown version, or ends inside its header.
    pub fn open(path: &Path) -> Result<Log, ImportError> {
        let file = File::open(path).map_err(ImportError::io(path, "open"))?;
        let source = Source::file(file).map_err(ImportError::io(path, "ask for the length"))?;
        Log::read(source, path.to_path_buf())
    }

    /// Opens a log in memory. `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Log, ImportError> {
        Log::read(Source::Memory(bytes), PathBuf::from(name))
    }

    fn read(source: Source, path: PathBuf) -> Result<Log, ImportError> {
        let bytes = source.read(0, header::MAX_LEN).map_err(ImportError::io(&path, "read"))?;
        let header = Header::parse(&bytes, source.len()).map_err(|error| match error {
            NoHeader::Other => ImportError::NotALog {
                path: path.clone(),
                found: bytes[..bytes.len().min(header::START_LEN)].escape_ascii().to_string(),
            },
            NoHeader::Version(version) => ImportError::UnknownLogVersion { path: path.clone(), version },
            NoHeader::Damaged(offset, expected) => {
                ImportError::Damaged { path: path.clone(), offset, expected }
            }
        })?;
        let region = RegionReader::new(&source, header.job, header.compression);
        let (job, damage) = match Job::read(region, header.version, header.order) {
            Ok(job) => (job, None),
            Err(found) => {
                let region = "the job record".into();
                (Job::default(), Some(LogDamage { region, offset: found.offset, expected: found.expected }))
            }
        };
        Ok(Log { source, path, header, job, damage })
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Version of its format.
    pub fn version(&self) -> LogVersion {
        self.header.version
    }

    /// The byte order of the machine that wrote it.
    pub fn byte_order(&self) -> ByteOrder {
        self.header.order
    }

    /// How its regions are compressed.
    pub fn compression(&self) -> Compression {
        self.header.compression
    }

    /// What it says of its job; all zero if that is damaged.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What is wrong with the job record.
    pub fn damage(&self) -> Option<&LogDamage> {
        self.damage.as_ref()
    }

    /// The modules it has data of, in order of their numbers.
    pub fn modules(&self) -> impl Iterator<Item = ModuleRegion> {
        self.header.modules.iter().map(|region| ModuleRegion {
            module: region.module,
            version: region.version,
            partial: region.partial,
            len: region.extent.len,
        })
    }

    /// Whether this reader knows the records of a module.
    pub fn reads(&self, region: ModuleRegion) -> bool {
        (1..=region.module.newest_version()).contains(&region.version) || region.len == 0
    }

    /// Names of the records, up to the first damage, and that.
    pub fn names(&self) -> (Names, Option<LogDamage>) {
        let region = self.region(self.header.names);
        let (names, damage) = Names::read(region, self.header.version, self.header.order);
        let damage = damage.map(|found| LogDamage {
            region: "the names".into(),
            offset: found.offset,
            expected: found.expected,
        });
        (names, damage)
    }

    /// The records of a module that keeps counters. None if the log has none of them, or of a version that this reader
    /// does not know.
    pub fn records(&self, module: Module) -> Option<Records<'_>> {
        let found = self.find(module)?;
        Records::new(module, found.version, self.region(found.extent), self.header.order)
    }

    /// The accesses of a DXT module. None as for [`Log::records`].
    pub fn dxt(&self, module: Module) -> Option<Dxt<'_>> {
        let found = self.find(module)?;
        Dxt::new(module, found.version, self.region(found.extent), self.header.order)
    }

    /// The heat maps. None as for [`Log::records`].
    pub fn heatmaps(&self) -> Option<Heatmaps<'_>> {
        let found = self.find(Module::Heatmap)?;
        Heatmaps::new(found.version, self.region(found.extent), self.header.order)
    }

    /// The layouts of files on Lustre. None as for [`Log::records`].
    pub fn lustre(&self) -> Option<Lustre<'_>> {
        let found = self.find(Module::Lustre)?;
        Lustre::new(found.version, self.region(found.extent), self.header.order)
    }

    fn find(&self, module: Module) -> Option<&Region> {
        self.header.modules.iter().find(|region| region.module == module && region.extent.len > 0)
    }

    fn region(&self, extent: Extent) -> RegionReader<'_> {
        RegionReader::new(&self.source, extent, self.header.compression)
    }
}

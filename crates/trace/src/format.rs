//! The fixed parts of a trace file: file header, block headers, trailer, and the limits that a reader may rely on.
//!
//! `docs/design/format.md` draws the same offsets as tables. All numbers are little-endian. Everything that has a length is
//! covered by a checksum, and every length is compared with a limit and with the bytes that are there before anything
//! is allocated for it.

/// First bytes of the file.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"PIOTRACE";
/// The version this program writes, and the newest it reads.
pub(crate) const VERSION: u16 = 12;

const FILE_VERSION: usize = 8;
const FILE_RESERVED: usize = 10;
const FILE_CHECKSUM: usize = 12;
/// Length of the file header.
pub(crate) const FILE_HEADER_LEN: usize = 16;

const BLOCK_MAGIC: [u8; 4] = *b"PBLK";
const BLOCK_KIND: usize = 4;
const BLOCK_RESERVED: usize = 5;
const BLOCK_STORED_LEN: usize = 8;
const BLOCK_RAW_LEN: usize = 12;
const BLOCK_COUNT: usize = 16;
const BLOCK_PAYLOAD_CHECKSUM: usize = 20;
const BLOCK_FIRST_START: usize = 24;
const BLOCK_LAST_START: usize = 32;
const BLOCK_END: usize = 40;
const BLOCK_HEADER_CHECKSUM: usize = 48;
/// Length of a block header.
pub(crate) const BLOCK_HEADER_LEN: usize = 52;

const TRAILER_INDEX_OFFSET: usize = 0;
const TRAILER_CHECKSUM: usize = 8;
const TRAILER_MAGIC: usize = 12;
/// Last bytes of a finished file.
const FINAL_MAGIC: [u8; 8] = *b"PIOINDEX";
/// Length of the trailer.
pub(crate) const TRAILER_LEN: usize = 20;

/// Events in a block, at most. It bounds the memory that one decoded block takes.
pub(crate) const MAX_BLOCK_EVENTS: usize = 1 << 19;
/// The same of a block of versions 1 to 9; and what the writer fills blocks to, unless the job has many processes.
pub(crate) const FEW_BLOCK_EVENTS: usize = 1 << 16;
/// The writer lets blocks grow until they have so many events of each process: the fewer there are, the more room it takes to
/// say where in the job each process stands.
pub(crate) const BLOCK_EVENTS_OF_PROCESS: usize = 40;
/// Payload bytes in a block before compression, at most.
pub(crate) const MAX_RAW_LEN: usize = 64 << 20;
/// Payload bytes of all definitions blocks of a file before compression, at most: it bounds the tables in memory.
pub(crate) const MAX_DEFINITIONS_LEN: u64 = 256 << 20;
/// The writer closes a block of definitions once its payload has grown to this.
pub(crate) const TARGET_RAW_LEN: usize = 1 << 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    /// Entries of the tables.
    Definitions = 1,
    /// Events in order of start: versions 1 to 9.
    InTurn = 2,
    /// Where all the other blocks are.
    Index = 3,
    /// Events process by process.
    ByProcess = 4,
}

impl BlockKind {
    pub(crate) fn from_number(number: u8) -> Option<BlockKind> {
        [BlockKind::Definitions, BlockKind::InTurn, BlockKind::Index, BlockKind::ByProcess]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }

    /// How many events a block of this kind has at most; none if it has none.
    fn most_events(self) -> Option<usize> {
        match self {
            BlockKind::InTurn => Some(FEW_BLOCK_EVENTS),
            BlockKind::ByProcess => Some(MAX_BLOCK_EVENTS),
            BlockKind::Definitions | BlockKind::Index => None,
        }
    }
}

/// What a block says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) kind: BlockKind,
    /// Payload bytes in the file.
    pub(crate) stored_len: u32,
    /// Payload bytes once decompressed.
    pub(crate) raw_len: u32,
    /// Table entries, events or index entries.
    pub(crate) count: u32,
    /// Of the payload as stored.
    pub(crate) payload_checksum: u32,
    /// Start of the first event; 0 in blocks without events.
    pub(crate) first_start_ns: u64,
    /// Start of the last event.
    pub(crate) last_start_ns: u64,
    /// Latest return of any of its events.
    pub(crate) end_ns: u64,
}

impl BlockHeader {
    pub(crate) fn to_bytes(self) -> [u8; BLOCK_HEADER_LEN] {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        put(&mut bytes, 0, &BLOCK_MAGIC);
        bytes[BLOCK_KIND] = self.kind as u8;
        put(&mut bytes, BLOCK_STORED_LEN, &self.stored_len.to_le_bytes());
        put(&mut bytes, BLOCK_RAW_LEN, &self.raw_len.to_le_bytes());
        put(&mut bytes, BLOCK_COUNT, &self.count.to_le_bytes());
        put(&mut bytes, BLOCK_PAYLOAD_CHECKSUM, &self.payload_checksum.to_le_bytes());
        put(&mut bytes, BLOCK_FIRST_START, &self.first_start_ns.to_le_bytes());
        put(&mut bytes, BLOCK_LAST_START, &self.last_start_ns.to_le_bytes());
        put(&mut bytes, BLOCK_END, &self.end_ns.to_le_bytes());
        let checksum = self::checksum(&bytes[..BLOCK_HEADER_CHECKSUM]);
        put(&mut bytes, BLOCK_HEADER_CHECKSUM, &checksum.to_le_bytes());
        bytes
    }

    /// Reads a header, or says what was expected instead.
    pub(crate) fn from_bytes(bytes: &[u8; BLOCK_HEADER_LEN]) -> Result<BlockHeader, String> {
        if !bytes.starts_with(&BLOCK_MAGIC) {
            return Err(format!("a block ('PBLK'), found {}", bytes[..4].escape_ascii()));
        }
        if u32_at(bytes, BLOCK_HEADER_CHECKSUM) != checksum(&bytes[..BLOCK_HEADER_CHECKSUM]) {
            return Err("a block header that matches its checksum".into());
        }
        let kind = BlockKind::from_number(bytes[BLOCK_KIND])
            .ok_or_else(|| format!("a block of kind 1 to 4, found kind {}", bytes[BLOCK_KIND]))?;
        if bytes[BLOCK_RESERVED..BLOCK_STORED_LEN] != [0; 3] {
            return Err("zeros in the reserved bytes of a block header".into());
        }
        let header = BlockHeader {
            kind,
            stored_len: u32_at(bytes, BLOCK_STORED_LEN),
            raw_len: u32_at(bytes, BLOCK_RAW_LEN),
            count: u32_at(bytes, BLOCK_COUNT),
            payload_checksum: u32_at(bytes, BLOCK_PAYLOAD_CHECKSUM),
            first_start_ns: u64_at(bytes, BLOCK_FIRST_START),
            last_start_ns: u64_at(bytes, BLOCK_LAST_START),
            end_ns: u64_at(bytes, BLOCK_END),
        };
        header.check_limits()?;
        Ok(header)
    }

    fn check_limits(&self) -> Result<(), String> {
        if self.raw_len as usize > MAX_RAW_LEN {
            return Err(format!("a block of at most {MAX_RAW_LEN} bytes, found {}", self.raw_len));
        }
        // Every entry takes at least one byte of the payload.
        if self.count > self.raw_len {
            return Err(format!(
                "at most {} entries in {} bytes, found {}",
                self.raw_len, self.raw_len, self.count
            ));
        }
        if let Some(most) = self.kind.most_events()
            && !(1..=most).contains(&(self.count as usize))
        {
            return Err(format!("a block of 1 to {most} events, found {}", self.count));
        }
        if self.first_start_ns > self.last_start_ns || self.last_start_ns > self.end_ns {
            return Err("a block whose first start, last start and end are in order".into());
        }
        Ok(())
    }
}

/// The checksum of everything in a trace. Fuzzing goes without, or nothing behind it would ever be reached.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    if cfg!(fuzzing) { 0 } else { crc32fast::hash(bytes) }
}

/// The file header.
pub(crate) fn file_header() -> [u8; FILE_HEADER_LEN] {
    let mut bytes = [0; FILE_HEADER_LEN];
    put(&mut bytes, 0, &FILE_MAGIC);
    put(&mut bytes, FILE_VERSION, &VERSION.to_le_bytes());
    let checksum = self::checksum(&bytes[..FILE_CHECKSUM]);
    put(&mut bytes, FILE_CHECKSUM, &checksum.to_le_bytes());
    bytes
}

/// What is wrong with a file header.
pub(crate) enum HeaderError {
    Magic,
    Version(u16),
    Damaged(&'static str),
}

/// Checks the first bytes of a file (all of them that there are, up to the header's length).
pub(crate) fn check_file_header(bytes: &[u8]) -> Result<(), HeaderError> {
    if !bytes.starts_with(&FILE_MAGIC) {
        return Err(HeaderError::Magic);
    }
    let Some(bytes) = bytes.first_chunk::<FILE_HEADER_LEN>() else {
        return Err(HeaderError::Damaged("a file header of 16 bytes, found the end of the file"));
    };
    if u32_at(bytes, FILE_CHECKSUM) != checksum(&bytes[..FILE_CHECKSUM]) {
        return Err(HeaderError::Damaged("a file header that matches its checksum"));
    }
    let version = u16::from_le_bytes([bytes[FILE_VERSION], bytes[FILE_VERSION + 1]]);
    if version > VERSION {
        return Err(HeaderError::Version(version));
    }
    if version == 0 || bytes[FILE_RESERVED..FILE_CHECKSUM] != [0; 2] {
        return Err(HeaderError::Damaged("version 1 and zeros in the reserved bytes of the file header"));
    }
    Ok(())
}

/// The trailer of a file whose index block starts at `index_offset`.
pub(crate) fn trailer(index_offset: u64) -> [u8; TRAILER_LEN] {
    let mut bytes = [0; TRAILER_LEN];
    put(&mut bytes, TRAILER_INDEX_OFFSET, &index_offset.to_le_bytes());
    let checksum = self::checksum(&bytes[..TRAILER_CHECKSUM]);
    put(&mut bytes, TRAILER_CHECKSUM, &checksum.to_le_bytes());
    put(&mut bytes, TRAILER_MAGIC, &FINAL_MAGIC);
    bytes
}

/// The offset of the index block, if this is a whole trailer.
pub(crate) fn index_offset(trailer: &[u8; TRAILER_LEN]) -> Option<u64> {
    let whole = trailer[TRAILER_MAGIC..] == FINAL_MAGIC
        && u32_at(trailer, TRAILER_CHECKSUM) == checksum(&trailer[..TRAILER_CHECKSUM]);
    whole.then(|| u64_at(trailer, TRAILER_INDEX_OFFSET))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

//! Blocks as a whole: payloads compressed and with their header, and back.

use crate::format::{BLOCK_HEADER_LEN, BlockHeader, BlockKind, MAX_RAW_LEN, checksum};

/// Measured on recorded times (`examples/measure.rs`): level 1 makes files 4 to 8 % larger, level 6 none smaller by more
/// than 1 %, and writes at half the speed.
const ZSTD_LEVEL: i32 = 3;

/// The times in a block header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeRange {
    pub(crate) first_start_ns: u64,
    pub(crate) last_start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Why a block could not be built.
pub(crate) enum SealError {
    TooLarge(u64),
    Compression(std::io::Error),
}

/// Turns payloads into blocks. Keeps its buffers and zstd's between blocks.
pub(crate) struct Sealer {
    compressor: zstd::bulk::Compressor<'static>,
    block: Vec<u8>,
}

impl Sealer {
    pub(crate) fn new() -> std::io::Result<Sealer> {
        Ok(Sealer { compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)?, block: Vec::new() })
    }

    /// The block's header and its bytes, header included.
    pub(crate) fn seal(
        &mut self,
        kind: BlockKind,
        raw: &[u8],
        count: u32,
        times: TimeRange,
    ) -> Result<(BlockHeader, &[u8]), SealError> {
        if raw.len() > MAX_RAW_LEN {
            return Err(SealError::TooLarge(raw.len() as u64));
        }
        self.block.clear();
        self.block.resize(BLOCK_HEADER_LEN + zstd::zstd_safe::compress_bound(raw.len()), 0);
        let stored = self
            .compressor
            .compress_to_buffer(raw, &mut self.block[BLOCK_HEADER_LEN..])
            .map_err(SealError::Compression)?;
        self.block.truncate(BLOCK_HEADER_LEN + stored);
        let header = BlockHeader {
            kind,
            // Both fit: MAX_RAW_LEN and zstd's bound for it are far below 4 GiB.
            stored_len: stored as u32,
            raw_len: raw.len() as u32,
            count,
            payload_checksum: checksum(&self.block[BLOCK_HEADER_LEN..]),
            first_start_ns: times.first_start_ns,
            last_start_ns: times.last_start_ns,
            end_ns: times.end_ns,
        };
        self.block[..BLOCK_HEADER_LEN].copy_from_slice(&header.to_bytes());
        Ok((header, &self.block))
    }
}

/// Checks a stored payload against its header.
pub(crate) fn check_payload(header: &BlockHeader, stored: &[u8]) -> Result<(), String> {
    if stored.len() != header.stored_len as usize {
        return Err(format!("a block of {} bytes, found {} before the end", header.stored_len, stored.len()));
    }
    if checksum(stored) != header.payload_checksum {
        return Err("a block that matches its checksum".into());
    }
    Ok(())
}

/// A checked payload, decompressed. Takes no more memory than the header says, and that has a limit.
pub(crate) fn unseal(header: &BlockHeader, stored: &[u8]) -> Result<Vec<u8>, String> {
    let expected = || format!("a block that decompresses to {} bytes", header.raw_len);
    // Fuzzing must reach what lies behind the compression.
    if cfg!(fuzzing) {
        return Ok(stored.to_vec());
    }
    let raw = zstd::bulk::decompress(stored, header.raw_len as usize).map_err(|_| expected())?;
    if raw.len() == header.raw_len as usize { Ok(raw) } else { Err(expected()) }
}

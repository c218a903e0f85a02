//! Counts the misses of a trace under a replacement policy, and times it.
//!
//! `misses TRACE POLICY BLOCKS`: a trace of libCacheSim's oracleGeneral format (records of 24 bytes: time u32, object u64,
//! size u32, next use i64, little-endian). An object is a block; records of more than one byte are extents of so many
//! blocks. Prints hits, misses and seconds of processor time; reading the file is not timed, reading its records is.

use std::ops::Range;

use pio_cache::{FileId, Policy, Replacement, Touched};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, policy, blocks] = &arguments[..] else {
        return Err("expected TRACE POLICY BLOCKS".into());
    };
    let (policy, blocks) = (policy.parse::<Policy>()?, blocks.parse()?);
    let bytes = std::fs::read(trace)?;
    let mut runs = 0;
    let start_ns = processor_ns()?;
    loop {
        let total = count(&bytes, Replacement::new(policy, blocks)?);
        runs += 1;
        let elapsed_ns = processor_ns()? - start_ns;
        // The kernel counts processor time in ticks of some milliseconds.
        if elapsed_ns > 300_000_000 {
            println!("{} {} {:.6}", total.hits, total.misses, elapsed_ns as f64 / 1e9 / f64::from(runs));
            return Ok(());
        }
    }
}

/// Records that are read before their blocks are touched: memory is fastest in long stretches.
const BATCH: usize = 16_384;

/// Hits and misses of a trace.
fn count(bytes: &[u8], mut replacement: Replacement) -> Touched {
    let mut total = Touched::default();
    let mut extents = Vec::with_capacity(BATCH);
    for records in bytes.as_chunks::<24>().0.chunks(BATCH) {
        extents.clear();
        extents.extend(records.iter().map(extent));
        let touched = replacement.touch_all(FileId(0), &extents);
        total.hits += touched.hits;
        total.misses += touched.misses;
    }
    total
}

/// The blocks of a record.
fn extent(record: &[u8; 24]) -> Range<u64> {
    let [_, _, _, _, b0, b1, b2, b3, b4, b5, b6, b7, l0, l1, l2, l3, ..] = *record;
    let block = u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
    block..block + u64::from(u32::from_le_bytes([l0, l1, l2, l3]))
}

/// Processor time of this process so far: other processes on the machine do not disturb it as they do the clock.
fn processor_ns() -> Result<u64, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(statistics.split(' ').next().unwrap_or_default().parse()?)
}

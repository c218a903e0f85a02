//! Counts the misses of a trace under a replacement policy, and times it.
//!
//! `misses TRACE POLICY BLOCKS`: a trace of libCacheSim's oracleGeneral format (records of 24 bytes: time u32, object u64,
//! size u32, next use i64, little-endian). An object is a block; records of more than one byte are extents of so many
//! blocks. Prints hits, misses and seconds of processor time; reading the file is not timed, reading its records is.

use pio_cache::{FileId, Policy, Replacement, Touched};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, policy, blocks] = &arguments[..] else {
        return Err("expected TRACE POLICY BLOCKS".into());
    };
    let bytes = std::fs::read(trace)?;
    let mut replacement = Replacement::new(policy.parse::<Policy>()?, blocks.parse()?)?;
    let mut total = Touched::default();
    let start_ns = processor_ns()?;
    let mut extents = Vec::with_capacity(1024);
    for records in bytes.chunks(24 * 1024) {
        extents.clear();
        for record in records.chunks_exact(24) {
            let block = u64::from_le_bytes(record[4..12].try_into()?);
            let length = u64::from(u32::from_le_bytes(record[12..16].try_into()?));
            extents.push(block..block + length);
        }
        let touched = replacement.touch_all(FileId(0), &extents);
        total.hits += touched.hits;
        total.misses += touched.misses;
    }
    println!("{} {} {:.6}", total.hits, total.misses, (processor_ns()? - start_ns) as f64 / 1e9);
    Ok(())
}

/// Processor time of this process so far: other processes on the machine do not disturb it as they do the clock.
fn processor_ns() -> Result<u64, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(statistics.split(' ').next().unwrap_or_default().parse()?)
}

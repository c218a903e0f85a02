//! Reads of a file whose pages memory does not have.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use super::{BLOCK, BYTES_TO_DEVICE, PAGE, RUNS, middle, time};
use crate::cold_reads::ColdReads;
use crate::quantity::Bandwidth;
use crate::spreads::Spreads;

/// Pages that are read here and there in a run.
const PAGES: u64 = 64;
/// Coprime to the pages of the file: so no page is near the one before.
const PAGES_APART: u64 = 40_503;
const MOST_READERS: u32 = 16;
/// After so long no further run begins.
const LONGEST: Duration = Duration::from_secs(3);
/// Of the time that pages in memory take: what is less is memory.
const LEAST: f64 = 1.5;

/// How a file that is on its device comes from there; none if it is shorter than it should be, or comes as fast from there as
/// from memory.
pub(super) fn measure(path: &Path, cores: u32, spreads: &mut Spreads) -> io::Result<Option<ColdReads>> {
    let file = File::open(path)?;
    let bytes = BYTES_TO_DEVICE as u64;
    if file.metadata()?.len() < bytes {
        return Ok(None);
    }
    let begun = Instant::now();
    let (mut pages, mut streams, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let readers = u64::from((2 * cores).min(MOST_READERS));
    while streams.len() < RUNS && (streams.is_empty() || begun.elapsed() < LONGEST) {
        forget(&file)?;
        pages.extend(page_by_page(&file)?);
        forget(&file)?;
        streams.push(bytes as f64 / 4.0 / go_through(path, 0, bytes / 4)?);
        forget(&file)?;
        all.push(bytes as f64 / go_through_together(path, bytes, readers)?);
    }
    let warm = bytes as f64 / go_through_together(path, bytes, readers)?;
    if middle(all.clone()) * LEAST > warm {
        return Ok(None);
    }
    let request = time(spreads.middle("calls.cold-reads.request", pages));
    let stream = spreads.middle("calls.cold-reads.stream", streams);
    let bandwidth = spreads.middle("calls.cold-reads.bandwidth", all);
    let rate = |speed: f64| Bandwidth::from_bytes_per_second(speed as u64);
    Ok(Some(ColdReads { request, stream: rate(stream), bandwidth: rate(bandwidth.max(stream)) }))
}

/// Memory has none of its pages from now on: all are on the device.
fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Seconds of each of several pages, far from each other.
fn page_by_page(file: &File) -> io::Result<Vec<f64>> {
    let mut page = [0; PAGE];
    let count = (BYTES_TO_DEVICE / PAGE) as u64;
    (1..=PAGES)
        .map(|index| {
            let start = Instant::now();
            file.read_exact_at(&mut page, index * PAGES_APART % count * PAGE as u64)?;
            Ok(start.elapsed().as_secs_f64())
        })
        .collect()
}

/// Seconds that one reader takes for so many bytes.
fn go_through(path: &Path, begin: u64, bytes: u64) -> io::Result<f64> {
    // Where a reader was before, the kernel keeps with what was opened.
    let file = File::open(path)?;
    let mut data = vec![0; BLOCK];
    let start = Instant::now();
    (begin..begin + bytes).step_by(BLOCK).try_for_each(|at| file.read_exact_at(&mut data, at))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Seconds that so many readers take, each for its part.
fn go_through_together(path: &Path, bytes: u64, readers: u64) -> io::Result<f64> {
    let part = bytes / readers / BLOCK as u64 * BLOCK as u64;
    let start = Instant::now();
    thread::scope(|scope| {
        let readers: Vec<_> =
            (0..readers).map(|reader| scope.spawn(move || go_through(path, reader * part, part))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader").map(drop))
    })?;
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_read_here_and_there_are_far_from_each_other() {
        let count = (BYTES_TO_DEVICE / PAGE) as u64;
        let mut at: Vec<u64> = (1..=PAGES).map(|index| index * PAGES_APART % count).collect();
        at.sort_unstable();
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] > 256), "{at:?}");
    }
}

//! Reads and writes past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::{BLOCK, BySize, FILE_BYTES, LARGE, MIDDLE, PAGE, RUNS};
use crate::call_costs::CallCosts;
use crate::machine::CallCost;
use crate::spreads::Spreads;

/// Bytes of calls, and how many there are of them in a run.
const CALLS: [(usize, usize); 4] = [(PAGE, 32), (MIDDLE, 16), (BLOCK, 8), (LARGE, 1)];
/// After so long no further run begins.
const LONGEST: Duration = Duration::from_secs(3);

/// What such calls cost on a file that is on its device; none if it is shorter than it should be, or the file system has no such calls.
pub(super) fn measure(path: &Path, spreads: &mut Spreads) -> io::Result<Option<CallCosts>> {
    let direct = OFlags::DIRECT.bits() as i32;
    let file = match OpenOptions::new().read(true).write(true).custom_flags(direct).open(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() < FILE_BYTES as u64 {
        return Ok(None);
    }
    let mut memory = vec![1_u8; LARGE + PAGE];
    // It must begin with a page, or a block of the device.
    let begin = memory.as_ptr().align_offset(PAGE);
    let memory = &mut memory[begin..begin + LARGE];
    let begun = Instant::now();
    let (mut reads, mut writes) = (BySize::default(), BySize::default());
    for run in 0..RUNS {
        if run > 0 && begun.elapsed() > LONGEST {
            break;
        }
        for (bytes, count) in CALLS {
            let data = &mut memory[..bytes];
            let in_a_row = |call: &mut dyn FnMut(u64) -> io::Result<()>| {
                let start = Instant::now();
                (0..count).try_for_each(|index| call((index * bytes) as u64))?;
                Ok(start.elapsed().as_secs_f64() / count as f64)
            };
            match write_and_read(&file, data, in_a_row) {
                // It may take them to be of another alignment, or none at all.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
                found => {
                    let (write, read) = found?;
                    writes.of(bytes).push(write);
                    reads.of(bytes).push(read);
                }
            }
        }
    }
    let mut cost = |key: &str, calls: BySize| CallCost::through(&calls.middles(key, spreads));
    Ok(Some(CallCosts { read: cost("calls.direct.read", reads), write: cost("calls.direct.write", writes) }))
}

/// Seconds of a write, and of a read, of those in a row.
fn write_and_read(
    file: &File,
    data: &mut [u8],
    in_a_row: impl Fn(&mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<f64>,
) -> io::Result<(f64, f64)> {
    let write = in_a_row(&mut |at| file.write_all_at(data, at))?;
    let read = in_a_row(&mut |at| file.read_exact_at(data, at))?;
    Ok((write, read))
}

//! Reads and writes past the page cache.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::{BLOCK, BySize, FILE_BYTES, LARGE, MIDDLE, PAGE, RUNS, each};
use crate::call_costs::CallCosts;
use crate::machine::CallCost;
use crate::spreads::Spreads;

/// Bytes of calls, and how many there are of them in a run.
const CALLS: [(usize, u64); 4] = [(PAGE, 32), (MIDDLE, 16), (BLOCK, 8), (LARGE, 1)];
/// After so long no further run begins.
const LONGEST: Duration = Duration::from_secs(3);

/// What such calls cost on a file that is on its device; none if it is shorter than it should be, or the file system has no such calls.
pub(super) fn measure(path: &Path, spreads: &mut Spreads) -> io::Result<Option<CallCosts>> {
    match measure_calls(path, spreads) {
        // It may also take the calls to be of another alignment.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        measured => measured,
    }
}

fn measure_calls(path: &Path, spreads: &mut Spreads) -> io::Result<Option<CallCosts>> {
    let direct = OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(direct).open(path)?;
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
            let at = |index: u64| index * bytes as u64;
            writes.of(bytes).push(each(count, |index| file.write_all_at(data, at(index)))?);
            reads.of(bytes).push(each(count, |index| file.read_exact_at(data, at(index)))?);
        }
    }
    let mut cost = |key: &str, calls: BySize| CallCost::through(&calls.middles(key, spreads));
    Ok(Some(CallCosts { read: cost("calls.direct.read", reads), write: cost("calls.direct.write", writes) }))
}

//! What reads and writes take longer after other work, and how long that must be.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{BLOCK, BySize, FILE_BYTES, LARGE, MIDDLE, PART_OF_A_PAGE, fresh, middle};
use crate::call_costs::CallCosts;
use crate::machine::CallCost;
use crate::quantity;
use crate::spreads::Spreads;

/// Until when nothing is left of what calls use, on any machine.
const LONG: Duration = Duration::from_millis(10);
/// After which there is more or less left.
const SHORT: Duration = Duration::from_millis(2);
/// Of one size.
const SIZES: [usize; 3] = [PART_OF_A_PAGE, MIDDLE, BLOCK];
/// Calls right behind the one after other work.
const AGAIN: u64 = 2;

/// How much longer calls took in each run.
#[derive(Default)]
pub(super) struct Calls {
    reads: BySize,
    writes: BySize,
    /// Writes of [`MIDDLE`] bytes after a short time.
    short: Vec<f64>,
}

impl Calls {
    /// One run, with calls from and to this memory.
    pub(super) fn measure(&mut self, path: &Path, memory: &mut [u8]) -> io::Result<()> {
        let mut other = vec![1_u8; LARGE];
        let file = fresh(path)?;
        for at in (0..FILE_BYTES).step_by(BLOCK) {
            file.write_all_at(&memory[..BLOCK], at as u64)?;
        }
        // Reads are of what nobody has read before, writes are of new pages: so are those of most programs.
        let (mut read_at, mut write_at) = (0, FILE_BYTES as u64);
        for size in SIZES {
            let data = &mut memory[..size];
            self.reads.of(size).push(longer(LONG, &mut other, || {
                read_at += BLOCK as u64;
                file.read_exact_at(data, read_at - BLOCK as u64)
            })?);
            self.writes.of(size).push(write_longer(LONG, &mut other, &file, &mut write_at, data)?);
        }
        self.short.push(write_longer(SHORT, &mut other, &file, &mut write_at, &memory[..MIDDLE])?);
        Ok(())
    }

    /// What all runs tell: after how long nothing is left, and what calls take longer then.
    pub(super) fn found(self, spreads: &mut Spreads) -> (quantity::Duration, CallCosts) {
        let mut middles = |key: &str, calls: BySize| -> Vec<(usize, f64)> {
            let middles = calls.middles(&format!("calls.after-work.{key}"), spreads);
            // Where a call is no slower, noise may make it quicker.
            middles.into_iter().map(|(size, longer)| (size, longer.max(0.0))).collect()
        };
        let (reads, writes) = (middles("read", self.reads), middles("write", self.writes));
        let long = writes.iter().find(|(size, _)| *size == MIDDLE).map_or(0.0, |(_, longer)| *longer);
        let part = middle(self.short) / long.max(f64::MIN_POSITIVE);
        let part = part.clamp(SHORT.as_secs_f64() / LONG.as_secs_f64(), 1.0);
        let after_work = CallCosts { read: CallCost::through(&reads), write: CallCost::through(&writes) };
        (super::time(SHORT.as_secs_f64() / part), after_work)
    }
}

fn write_longer(time: Duration, other: &mut [u8], file: &File, at: &mut u64, data: &[u8]) -> io::Result<f64> {
    longer(time, other, || {
        file.write_all_at(data, *at)?;
        // Whole pages, of which none is there, whatever the size of the next write.
        *at += data.len().next_multiple_of(super::PAGE) as u64;
        Ok(())
    })
}

/// Seconds that a call takes longer which follows other work for so long than those right behind it.
fn longer(time: Duration, other: &mut [u8], mut call: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        for part in other.chunks_mut(MIDDLE) {
            black_box(part).fill(2);
            if begun.elapsed() >= time {
                break;
            }
        }
    }
    let start = Instant::now();
    call()?;
    let first = start.elapsed();
    let again = super::each(AGAIN, |_| call())?;
    Ok(first.as_secs_f64() - again)
}

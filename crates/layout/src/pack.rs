//! Moving bytes: gather into a stream, scatter from one, and directly from layout to layout.
//!
//! `origin` is the index in `memory` of a layout's offset 0. It may be negative: a window of a file that begins at
//! file offset w has origin −w.
//!
//! Bounds are checked once a run; inside a run, pieces of the usual sizes are copied by kernels whose piece size is a
//! constant, so that a piece is one load and one store.

use std::ops::Range;

use crate::error::LayoutError;
use crate::runs::Run;

/// Bytes moved at a time when neither side is contiguous: half of a usual first-level cache.
const SCRATCH_BYTES: usize = 16 << 10;

/// Copies the bytes of `runs` from `memory` into `stream`, in data order.
///
/// # Errors
/// If a run lies outside the memory, or the runs do not hold exactly `stream.len()` bytes. `stream` may then have been
/// written in part.
pub fn pack(
    runs: impl Iterator<Item = Run>,
    memory: &[u8],
    origin: i64,
    stream: &mut [u8],
) -> Result<(), LayoutError> {
    let len = stream.len() as u64;
    let mut rest = stream;
    for run in runs {
        let (now, later) = match usize::try_from(size(&run)) {
            Ok(size) if size <= rest.len() => rest.split_at_mut(size),
            _ => return Err(LayoutError::Length { runs: "more than", stream: len }),
        };
        gather(&run, memory, origin, now)?;
        rest = later;
    }
    if rest.is_empty() { Ok(()) } else { Err(LayoutError::Length { runs: "fewer than", stream: len }) }
}

/// Copies `stream` to the bytes of `runs` in `memory`, in data order.
///
/// # Errors
/// As [`pack`]; `memory` may have been written in part.
pub fn unpack(
    runs: impl Iterator<Item = Run>,
    memory: &mut [u8],
    origin: i64,
    stream: &[u8],
) -> Result<(), LayoutError> {
    let mut rest = stream;
    for run in runs {
        let (now, later) = match usize::try_from(size(&run)) {
            Ok(size) if size <= rest.len() => rest.split_at(size),
            _ => return Err(LayoutError::Length { runs: "more than", stream: stream.len() as u64 }),
        };
        scatter(&run, memory, origin, now)?;
        rest = later;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(LayoutError::Length { runs: "fewer than", stream: stream.len() as u64 })
    }
}

/// Copies `len` bytes from the first runs in one memory to the first in another, in data order.
///
/// Straight where one of the two sides is contiguous or both have pieces of the same size; else through a scratch that
/// stays in the first-level cache.
///
/// # Errors
/// If a run lies outside its memory, or one of the sides has fewer than `len` bytes. The target may then have been
/// written in part.
pub fn copy(
    source_runs: impl Iterator<Item = Run>,
    source: &[u8],
    source_origin: i64,
    target_runs: impl Iterator<Item = Run>,
    target: &mut [u8],
    target_origin: i64,
    len: u64,
) -> Result<(), LayoutError> {
    let short = LayoutError::Length { runs: "fewer than", stream: len };
    let mut source_runs = Cursor::new(source_runs);
    let mut target_runs = Cursor::new(target_runs);
    let mut scratch = [0; SCRATCH_BYTES];
    let mut left = len;
    while left > 0 {
        let (Some(from), Some(to)) = (source_runs.peek(), target_runs.peek()) else { return Err(short) };
        if from.count == 1 && to.count == 1 {
            let len = left.min(from.len).min(to.len);
            let (Some(from), Some(to)) = (source_runs.take(len), target_runs.take(len)) else {
                return Err(short);
            };
            left -= len;
            let from = window(&from, source.len(), source_origin)?;
            let to = window(&to, target.len(), target_origin)?;
            move_bytes(&mut target[to], &source[from]);
        } else if from.count == 1 {
            let Some(from) = source_runs.take(left.min(size(&to))) else { return Err(short) };
            left -= size(&from);
            let bytes = window(&from, source.len(), source_origin)?;
            put(&mut target_runs, target, target_origin, &source[bytes])?;
        } else if to.count == 1 {
            let Some(to) = target_runs.take(left.min(size(&from))) else { return Err(short) };
            left -= size(&to);
            let bytes = window(&to, target.len(), target_origin)?;
            get(&mut source_runs, source, source_origin, &mut target[bytes])?;
        } else if let Some(len) = in_step(&from, &to, left) {
            let (Some(from), Some(to)) = (source_runs.take(len), target_runs.take(len)) else {
                return Err(short);
            };
            left -= len;
            let from_window = window(&from, source.len(), source_origin)?;
            let to_window = window(&to, target.len(), target_origin)?;
            move_pieces(&from, &source[from_window], &to, &mut target[to_window]);
        } else {
            let block = left.min(size(&from)).min(size(&to)).min(SCRATCH_BYTES as u64);
            left -= block;
            let block = &mut scratch[..block as usize];
            get(&mut source_runs, source, source_origin, block)?;
            put(&mut target_runs, target, target_origin, block)?;
        }
    }
    Ok(())
}

/// How many of the next `left` bytes go piece by piece from one run to the other: at least two pieces, equally long on
/// both sides, forward and without overlap.
fn in_step(from: &Run, to: &Run, left: u64) -> Option<u64> {
    let count = from.count.min(to.count).min(left / from.len);
    (from.len == to.len && count >= 2 && is_forward(from) && is_forward(to)).then_some(count * from.len)
}

fn is_forward(run: &Run) -> bool {
    run.stride > 0 && run.stride as u64 >= run.len
}

/// Fills `stream` from the next bytes of the cursor.
fn get(
    runs: &mut Cursor<impl Iterator<Item = Run>>,
    memory: &[u8],
    origin: i64,
    stream: &mut [u8],
) -> Result<(), LayoutError> {
    let len = stream.len() as u64;
    let mut rest = stream;
    while !rest.is_empty() {
        let Some(run) = runs.take(rest.len() as u64) else {
            return Err(LayoutError::Length { runs: "fewer than", stream: len });
        };
        let (now, later) = rest.split_at_mut(size(&run) as usize);
        gather(&run, memory, origin, now)?;
        rest = later;
    }
    Ok(())
}

/// Writes `stream` to the next bytes of the cursor.
fn put(
    runs: &mut Cursor<impl Iterator<Item = Run>>,
    memory: &mut [u8],
    origin: i64,
    stream: &[u8],
) -> Result<(), LayoutError> {
    let mut rest = stream;
    while !rest.is_empty() {
        let Some(run) = runs.take(rest.len() as u64) else {
            return Err(LayoutError::Length { runs: "fewer than", stream: stream.len() as u64 });
        };
        let (now, later) = rest.split_at(size(&run) as usize);
        scatter(&run, memory, origin, now)?;
        rest = later;
    }
    Ok(())
}

/// Runs that can be taken in parts.
struct Cursor<I> {
    runs: I,
    /// What is left of the current run, less `skipped` bytes of its first piece.
    run: Option<Run>,
    skipped: u64,
}

impl<I: Iterator<Item = Run>> Cursor<I> {
    fn new(runs: I) -> Cursor<I> {
        Cursor { runs, run: None, skipped: 0 }
    }

    /// What comes next, as long as there are whole pieces.
    #[inline]
    fn peek(&mut self) -> Option<Run> {
        while self.run.is_none_or(|run| size(&run) == 0) {
            self.run = Some(self.runs.next()?);
            self.skipped = 0;
        }
        let run = self.run?;
        Some(match self.skipped {
            0 => run,
            skipped => Run {
                offset: run.offset.wrapping_add(skipped as i64),
                len: run.len - skipped,
                stride: 0,
                count: 1,
            },
        })
    }

    /// Takes at most `most` (at least 1) bytes.
    #[inline]
    fn take(&mut self, most: u64) -> Option<Run> {
        let next = self.peek()?;
        let run = self.run.as_mut()?;
        let taken = if next.len > most {
            self.skipped += most;
            Run { len: most, stride: 0, count: 1, ..next }
        } else {
            let count = next.count.min(most / next.len);
            self.skipped = 0;
            run.offset = run.offset.wrapping_add((count as i64).wrapping_mul(run.stride));
            run.count -= count;
            Run { count, ..next }
        };
        Some(taken)
    }
}

/// The run's bytes; a run from outside may be nonsense, which no stream is as long as.
fn size(run: &Run) -> u64 {
    run.len.saturating_mul(run.count)
}

/// The part of memory from the lowest to the highest byte of the run.
#[inline]
fn window(run: &Run, available: usize, origin: i64) -> Result<Range<usize>, LayoutError> {
    if run.count == 1
        && let Some(start) = run.offset.checked_add(origin)
        && let Ok(start) = usize::try_from(start)
        && start <= available
        && run.len <= (available - start) as u64
    {
        return Ok(start..start + run.len as usize);
    }
    window_of_pieces(run, available, origin)
}

fn window_of_pieces(run: &Run, available: usize, origin: i64) -> Result<Range<usize>, LayoutError> {
    // count < 2^64 and |stride| ≤ 2^63: saturate rather than trust.
    let far = (run.count as i128 - 1).saturating_mul(run.stride as i128);
    let offset = (run.offset as i128).saturating_add(far.min(0));
    let end = (run.offset as i128).saturating_add(far.max(0)).saturating_add(run.len as i128);
    let (start_index, end_index) =
        (offset.saturating_add(origin as i128), end.saturating_add(origin as i128));
    if start_index < 0 || end_index > available as i128 {
        return Err(LayoutError::OutOfBounds { offset, end, origin, available });
    }
    Ok(start_index as usize..end_index as usize)
}

/// Calls `$kernel::<N>` with the piece size `$len` for N, if there is a kernel for it; else evaluates `$other`.
macro_rules! by_piece_size {
    ($len:expr, $kernel:ident $arguments:tt, $other:expr, $($size:literal)*) => {
        match $len {
            $($size => by_piece_size!(@call $kernel $size $arguments),)*
            _ => $other,
        }
    };
    ($len:expr, $kernel:ident $arguments:tt, $other:expr) => {
        by_piece_size!($len, $kernel $arguments, $other, 1 2 4 8 12 16 24 32)
    };
    (@call $kernel:ident $size:literal ($($argument:expr),*)) => {
        $kernel::<$size>($($argument),*)
    };
}

/// How far places to copy to are from those to copy from, at most, for a copy [to be askew](is_askew) on any known processor.
pub const MOST_ASKEW: u64 = 32;

/// Whether a place to copy to is a little further into its page than that to copy from, by less than `reach` bytes: some
/// processors' block copies then move bytes one by one. Those of some reach 16 bytes, of others [32](MOST_ASKEW). A place is an
/// address, or an offset of a file that is in memory by pages.
#[inline]
pub fn is_askew(target: u64, source: u64, reach: u64) -> bool {
    const PAGE: u64 = 4096;
    (1..reach).contains(&(target.wrapping_sub(source) % PAGE))
}

/// Copies `source` to `target`, which is as long, quickly wherever in their pages they are.
///
/// C libraries move more than two kilobytes with one string instruction, at which some processors are twelve times slower if the
/// target [is askew](is_askew): then they are moved in shorter parts.
///
/// # Panics
/// If it is not as long.
#[inline]
pub fn move_bytes(target: &mut [u8], source: &[u8]) {
    const SHORT_BYTES: usize = 1 << 10;
    let (to, from) = (target.as_ptr().addr() as u64, source.as_ptr().addr() as u64);
    if source.len() <= SHORT_BYTES || !is_askew(to, from, MOST_ASKEW) {
        return target.copy_from_slice(source);
    }
    for (to, from) in target.chunks_mut(SHORT_BYTES).zip(source.chunks(SHORT_BYTES)) {
        to.copy_from_slice(from);
    }
}

#[inline]
fn gather(run: &Run, memory: &[u8], origin: i64, stream: &mut [u8]) -> Result<(), LayoutError> {
    if stream.is_empty() {
        return Ok(());
    }
    let memory = &memory[window(run, memory.len(), origin)?];
    if run.count == 1 {
        move_bytes(stream, memory);
    } else if !is_forward(run) {
        gather_any(run, memory, stream);
    } else {
        by_piece_size!(run.len, gather_pieces(run, memory, stream), {
            let len = run.len as usize;
            for (to, from) in stream.chunks_exact_mut(len).zip(memory.chunks(run.stride as usize)) {
                move_bytes(to, &from[..len]);
            }
        });
    }
    Ok(())
}

#[inline]
fn scatter(run: &Run, memory: &mut [u8], origin: i64, stream: &[u8]) -> Result<(), LayoutError> {
    if stream.is_empty() {
        return Ok(());
    }
    let window = window(run, memory.len(), origin)?;
    let memory = &mut memory[window];
    if run.count == 1 {
        move_bytes(memory, stream);
    } else if !is_forward(run) {
        scatter_any(run, memory, stream);
    } else {
        by_piece_size!(run.len, scatter_pieces(run, memory, stream), {
            let len = run.len as usize;
            for (from, to) in stream.chunks_exact(len).zip(memory.chunks_mut(run.stride as usize)) {
                move_bytes(&mut to[..len], from);
            }
        });
    }
    Ok(())
}

/// Copies as many pieces as both runs have, in step: see [`in_step`]. Both memories end with their last piece.
fn move_pieces(from: &Run, source: &[u8], to: &Run, target: &mut [u8]) {
    by_piece_size!(from.len, move_pieces_of(from, source, to, target), {
        let len = from.len as usize;
        for (to, from) in target.chunks_mut(to.stride as usize).zip(source.chunks(from.stride as usize)) {
            move_bytes(&mut to[..len], &from[..len]);
        }
    });
}

fn move_pieces_of<const N: usize>(from: &Run, source: &[u8], to: &Run, target: &mut [u8]) {
    let pieces = source.chunks_exact(from.stride as usize);
    for (to, from) in target.chunks_exact_mut(to.stride as usize).zip(pieces) {
        if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *to = *from;
        }
    }
    if let (Some(to), Some(from)) = (target.last_chunk_mut::<N>(), source.last_chunk::<N>()) {
        *to = *from;
    }
}

/// Pieces of N bytes that do not overlap, first to last; `memory` ends with the last piece.
fn gather_pieces<const N: usize>(run: &Run, memory: &[u8], stream: &mut [u8]) {
    let (pieces, _) = stream.as_chunks_mut::<N>();
    // The last piece has no gap behind it: all others do, and make whole chunks.
    match run.stride as usize {
        // Of two or four ranks that take turns: with a constant stride, several pieces are moved at once.
        stride if stride == 2 * N => gather_every::<N, 2>(pieces, memory.as_chunks::<N>().0),
        stride if stride == 4 * N => gather_every::<N, 4>(pieces, memory.as_chunks::<N>().0),
        stride => {
            for (to, from) in pieces.iter_mut().zip(memory.chunks_exact(stride)) {
                if let Some(from) = from.first_chunk::<N>() {
                    *to = *from;
                }
            }
        }
    }
    if let (Some(to), Some(from)) = (pieces.last_mut(), memory.last_chunk::<N>()) {
        *to = *from;
    }
}

/// The first of every `STRIDE` pieces of memory, as far as there are that many.
fn gather_every<const N: usize, const STRIDE: usize>(pieces: &mut [[u8; N]], memory: &[[u8; N]]) {
    for (to, from) in pieces.iter_mut().zip(memory.as_chunks::<STRIDE>().0) {
        *to = from[0];
    }
}

fn scatter_pieces<const N: usize>(run: &Run, memory: &mut [u8], stream: &[u8]) {
    let (pieces, _) = stream.as_chunks::<N>();
    for (from, to) in pieces.iter().zip(memory.chunks_exact_mut(run.stride as usize)) {
        if let Some(to) = to.first_chunk_mut::<N>() {
            *to = *from;
        }
    }
    if let (Some(from), Some(to)) = (pieces.last(), memory.last_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Backward, overlapping or repeated pieces, one by one. `memory` begins with the run's lowest byte.
fn gather_any(run: &Run, memory: &[u8], stream: &mut [u8]) {
    for (to, start) in stream.chunks_exact_mut(run.len as usize).zip(starts(run)) {
        to.copy_from_slice(&memory[start..start + run.len as usize]);
    }
}

fn scatter_any(run: &Run, memory: &mut [u8], stream: &[u8]) {
    for (from, start) in stream.chunks_exact(run.len as usize).zip(starts(run)) {
        memory[start..start + run.len as usize].copy_from_slice(from);
    }
}

/// Where the pieces begin, from the run's lowest byte.
fn starts(run: &Run) -> impl Iterator<Item = usize> {
    let (count, stride) = (run.count as i64, run.stride);
    let first = if stride < 0 { (1 - count) * stride } else { 0 };
    (0..count).map(move |index| (first + index * stride) as usize)
}

//! A bounce buffer: reads and writes that are faster through a buffer of ours, because of a quirk of some processors.
//!
//! The kernel copies what is read or written with one string instruction. On some of AMD's processors it moves bytes one by
//! one if the target is 1 to 31 bytes, on others 1 to 15, further into its page than the source is: 2 GB/s instead of 10 to 24 on
//! those that this was measured on. And C libraries put large memory 16 bytes into a page, so that a program that reads pages of a
//! file meets the first nearly always, and one that writes behind a header of 24 bytes meets both. Two copies, both quick, are
//! less than that one. Other processors take 50 % longer that way: so the instruction is tried, once a process.

use std::cell::RefCell;
use std::sync::LazyLock;

use pio_layout::pack::{MOST_ASKEW, is_askew};

const PAGE: u64 = 4096;
/// What shorter requests could save is less than a tenth of a call.
const LEAST_BYTES: usize = 128;
/// At a time: as large as a collective buffer is, so that a request stays one. Smaller ones are no quicker.
const MOST_BYTES: usize = 16 << 20;

/// Fewer bytes further into its page than the source, a target makes this processor slow; none where it is 0.
static SLOW_REACH: LazyLock<u64> = LazyLock::new(slow_reach);

thread_local! {
    static BLOCK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[cfg(target_arch = "x86_64")]
fn slow_reach() -> u64 {
    use std::time::{Duration, Instant};
    const BYTES: usize = 8 << 10;
    const TRIES: usize = 5;
    /// The bytes one by one take eight times as long, or more.
    const SLOWER: u32 = 3;
    let (source, mut target) = (vec![1_u8; BYTES + PAGE as usize], vec![0_u8; BYTES + 2 * PAGE as usize]);
    let to_page = |memory: *const u8| memory.addr().wrapping_neg() % PAGE as usize;
    let source = &source[to_page(source.as_ptr())..][..BYTES];
    let first = to_page(target.as_ptr());
    let mut time = |beyond: usize| {
        let target = &mut target[first + beyond..][..BYTES];
        let try_once = |_| {
            let start = Instant::now();
            copy_by_string(target, source);
            start.elapsed()
        };
        (0..TRIES).map(try_once).min().unwrap_or(Duration::MAX)
    };
    let usual = time(0).saturating_mul(SLOWER);
    [(24, MOST_ASKEW), (8, 16)]
        .into_iter()
        .find(|(beyond, _)| time(*beyond) > usual)
        .map_or(0, |(_, reach)| reach)
}

/// As the kernel copies.
#[cfg(target_arch = "x86_64")]
fn copy_by_string(target: &mut [u8], source: &[u8]) {
    assert_eq!(target.len(), source.len());
    // SAFETY: so many bytes are there on both sides, and the direction flag is clear, as everywhere.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") source.len() => _,
            inout("rsi") source.as_ptr() => _,
            inout("rdi") target.as_mut_ptr() => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn slow_reach() -> u64 {
    0
}

/// Whether to read from this offset of a file by [`read()`] instead of straight into `buffer`.
pub(crate) fn is_quicker_to_read(offset: u64, buffer: &[u8]) -> bool {
    is_quicker(buffer.as_ptr() as u64, offset, buffer.len())
}

/// Whether to write to this offset of a file by [`write()`] instead of straight from `buffer`.
pub(crate) fn is_quicker_to_write(offset: u64, buffer: &[u8]) -> bool {
    is_quicker(offset, buffer.as_ptr() as u64, buffer.len())
}

fn is_quicker(target: u64, source: u64, len: usize) -> bool {
    len >= LEAST_BYTES && is_askew(target, source, *SLOW_REACH)
}

/// Lets `read` fill the first bytes of a block from this offset, and copies them to the front of `buffer`; says what
/// `read` says, which is how many they are.
pub(crate) fn read<E>(
    offset: u64,
    buffer: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<usize, E> {
    through(offset, buffer.len(), |block| {
        let moved = read(block)?.min(block.len());
        buffer[..moved].copy_from_slice(&block[..moved]);
        Ok(moved)
    })
}

/// Copies the front of `buffer` to a block, and lets `write` write that to this offset; says what `write` says, which is how
/// many bytes it took.
pub(crate) fn write<E>(
    offset: u64,
    buffer: &[u8],
    write: impl FnOnce(&[u8]) -> Result<usize, E>,
) -> Result<usize, E> {
    through(offset, buffer.len(), |block| {
        block.copy_from_slice(&buffer[..block.len()]);
        write(block)
    })
}

/// With a block for the first of so many bytes, half a page away from both their places in the file and in memory.
fn through<T>(offset: u64, len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    BLOCK.with_borrow_mut(|block| {
        let len = len.min(MOST_BYTES);
        if block.len() < len + PAGE as usize {
            block.resize(len + PAGE as usize, 0);
        }
        let start = (offset + PAGE / 2).wrapping_sub(block.as_ptr() as u64) % PAGE;
        work(&mut block[start as usize..][..len])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_at_a_time_lands_in_front_and_far_from_the_slow_places() {
        let mut buffer = vec![0; MOST_BYTES + 100];
        for offset in [0, 16, 4090, 123_456_789] {
            buffer.fill(0);
            let moved = read::<()>(offset, &mut buffer, |block| {
                assert_eq!(block.len(), MOST_BYTES);
                assert!(!is_askew(block.as_ptr() as u64, offset, MOST_ASKEW));
                block[..5].copy_from_slice(b"hello");
                Ok(5)
            });
            assert_eq!(moved, Ok(5));
            assert_eq!(&buffer[..6], b"hello\0");
        }
        assert_eq!(read(0, &mut buffer, |_| Err(7)), Err(7));
    }

    #[test]
    fn a_block_at_a_time_is_written_from_far_away() {
        let buffer: Vec<u8> = (0..MOST_BYTES + 100).map(|i| (i % 251) as u8).collect();
        for offset in [0, 24, 4090, 123_456_789] {
            let moved = write::<()>(offset, &buffer, |block| {
                assert_eq!(block, &buffer[..MOST_BYTES]);
                assert!(!is_askew(offset, block.as_ptr() as u64, MOST_ASKEW));
                Ok(5)
            });
            assert_eq!(moved, Ok(5));
        }
        assert_eq!(write::<()>(0, &buffer[..10], |block| Ok(block.len())), Ok(10));
        assert_eq!(write(0, &buffer, |_| Err(7)), Err(7));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_instruction_copies() {
        let source: Vec<u8> = (0..100).collect();
        let mut target = [0; 102];
        copy_by_string(&mut target[1..101], &source);
        assert_eq!((target[0], &target[1..101], target[101]), (0, &source[..], 0));
    }

    #[test]
    fn only_what_is_slow_takes_the_detour() {
        let buffer = vec![0; 2 * PAGE as usize];
        let address = buffer.as_ptr() as u64;
        let reach = *SLOW_REACH;
        assert!([0, 16, 32].contains(&reach));
        for beyond in [0, 1, 15, 16, 31, 32, 4095] {
            let slow = (1..reach).contains(&beyond);
            let (before, behind) = (address.wrapping_sub(beyond) % PAGE, address.wrapping_add(beyond) % PAGE);
            assert_eq!(is_quicker_to_read(before, &buffer), slow, "{beyond}");
            assert_eq!(is_quicker_to_write(behind, &buffer), slow, "{beyond}");
            assert!(!is_quicker_to_read(before, &buffer[..LEAST_BYTES - 1]));
        }
    }
}

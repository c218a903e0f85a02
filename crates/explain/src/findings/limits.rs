//! From which size or number on something is told of.
//!
//! Limits decide only *what a call is charged to*; whether it is told of depends on the seconds that it cost. They
//! follow the tools that users know: Drishti (Bez et al. 2022, "Drishti: Guiding End-Users in the I/O Optimization
//! Journey") and Darshan's histograms.

/// A finding is told of if it costs at least this part of the job's time.
pub(crate) const SHARE: f64 = 0.02;
/// … and at least this time, nanoseconds: below it nobody waits.
pub(crate) const LOST_NS: f64 = 1e6;
/// … and if it has at least this many calls: fewer are how any program begins and ends.
pub(crate) const CALLS: u64 = 100;
/// Or moves this many bytes, where the bytes themselves are what is too many.
pub(crate) const BYTES: u64 = 1 << 20;
/// Overlapping and balance help only a job that does much I/O: part of its time.
pub(crate) const WAITING_SHARE: f64 = 0.1;

/// Below this a request is *small*: a call to the kernel takes about a microsecond, in which 64 KiB are about 10 GB/s.
/// Drishti's 1 MiB is the size from which a parallel file system is at its best; below 64 KiB every one suffers.
pub(crate) const SMALL: u64 = 64 << 10;
/// From this size on a request is *large*: neither its order nor its own cost matters much, and what such requests
/// reach is the rate that others are measured by (Drishti's limit of a small request, and the stripe of Lustre).
pub(crate) const LARGE: u64 = 1 << 20;
/// What a stream's buffer holds (glibc's `BUFSIZ` is 8192, its buffers a file's `st_blksize`, 4096): a stream moves
/// smaller pieces in memory, unless it was told not to.
pub(crate) const STREAM_BUFFER: u64 = 4096;
/// The unit of locks and of the page cache that two writers share, bytes: the smallest of those in use (a page; on Lustre
/// and GPFS the stripe or block, where the trace says it).
pub(crate) const PAGE: u64 = 4096;
/// Forcing less than this to the device at a time leaves it idle most of the time.
pub(crate) const SYNC: u64 = 1 << 20;
/// Syncs from which on they are a habit.
pub(crate) const SYNCS: u64 = 10;
/// Data read back after no more than this much other I/O of the process were surely still in its memory, bytes.
pub(crate) const SOON: u64 = 16 << 20;
/// A cycle of re-reading of at least this many bytes is more than a program's own buffers hold.
pub(crate) const CYCLE: u64 = 16 << 20;
/// Passes over the same data that make a cycle.
pub(crate) const PASSES: u64 = 3;
/// Files of single ranks from which on their number is a load of its own.
pub(crate) const OWN_FILES: u64 = 256;
/// Calls on names from which on they are a storm.
pub(crate) const NAMES: u64 = 1000;
/// Part of the bytes that one writer of many writes.
pub(crate) const ONE_WRITER: f64 = 0.9;
/// Largest over mean from which on bytes are uneven (Drishti: 15 % of imbalance; we wait for half as much again).
pub(crate) const UNEVEN: f64 = 1.5;
/// How much slower than the others' a straggler's I/O is.
pub(crate) const SLOWER: f64 = 2.0;
/// CPU time between calls that is *thinking*, nanoseconds: longer than any call takes to be prepared.
pub(crate) const THINK_NS: u64 = 1_000_000;
/// Turns of thinking and I/O that make it worthwhile to overlap them.
pub(crate) const TURNS: u64 = 5;

/// A request waited for a device or server if it took longer than a call to the kernel may, nanoseconds …
pub(crate) const WAITED_NS: u64 = 20_000;
/// … and its bytes would take from memory, nanoseconds a byte: slower than any memory, faster than most devices.
pub(crate) const CACHED_BYTE_NS: u64 = 1;
/// Large requests that make a rate.
pub(crate) const RATE_CALLS: u64 = 4;
/// A file of this many bytes that several ranks use should lie on several targets of a striped file system: sites that
/// run Lustre advise so from 1 GB on (NERSC, "Lustre striping recommendations").
pub(crate) const STRIPED: u64 = 1 << 30;

//! Characteristics of a program: Miller and Katz 1991, Tables 1 and 2.

use crate::tally::Amount;

/// What Miller and Katz tell of an application (1991, Tables 1 and 2), from what the program itself asked for.
///
/// *Running time* is CPU time, and their rates are per second of it: how hard the program would press the file system
/// if it never had to wait. The sum of the events' think times is that CPU time, without what came after each thread's
/// last call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Workload {
    /// Running time, seconds of CPU: the sum of think times. 0 if the trace has none.
    pub cpu_s: f64,
    /// Wall-clock time of the job, seconds.
    pub wall_s: f64,
    /// Total data size: sum over the files read or written of the last byte touched, bytes.
    pub data_size_bytes: u64,
    /// Files read or written.
    pub files: u64,
    /// Reads of all files (Table 1).
    pub read: Amount,
    /// Writes of all files (Table 1).
    pub write: Amount,
    /// Files of at least [`Workload::LARGE_FILE_BYTES`].
    pub large_files: u64,
    /// Reads of large files (Table 2).
    pub large_read: Amount,
    /// Writes of large files (Table 2).
    pub large_write: Amount,
}

impl Workload {
    /// From this size on a file is *large*: Table 2 counts only these. The paper says "over a few megabytes" without a
    /// number; parameter files and printed text are far smaller than this, data files far larger.
    pub const LARGE_FILE_BYTES: u64 = 1_000_000;

    /// Total I/O done, bytes (Table 1).
    pub fn io_bytes(&self) -> u64 {
        self.read.bytes.saturating_add(self.write.bytes)
    }

    /// Number of I/Os (Table 1).
    pub fn io_count(&self) -> u64 {
        self.read.count + self.write.count
    }

    /// Average I/O size, bytes (Table 1).
    pub fn mean_io_bytes(&self) -> Option<f64> {
        ratio(self.io_bytes() as f64, self.io_count() as f64)
    }

    /// Rates per CPU second over all files (Table 1); none without CPU time.
    pub fn per_cpu_second(&self) -> Option<Rates> {
        Rates::of(self.read, self.write, self.cpu_s)
    }

    /// Rates per CPU second over the large files (Table 2); none without CPU time or large files.
    pub fn large_per_cpu_second(&self) -> Option<Rates> {
        if self.large_files == 0 {
            return None;
        }
        Rates::of(self.large_read, self.large_write, self.cpu_s)
    }

    /// Rates per second of wall-clock time, all files.
    pub fn per_wall_second(&self) -> Option<Rates> {
        Rates::of(self.read, self.write, self.wall_s)
    }
}

/// The columns of Miller and Katz's Table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Average I/O size, bytes; none if there was no I/O.
    pub mean_io_bytes: Option<f64>,
    /// Bytes read over bytes written; none if nothing was written.
    pub read_write_ratio: Option<f64>,
}

impl Rates {
    fn of(read: Amount, write: Amount, time_s: f64) -> Option<Rates> {
        (time_s > 0.0).then(|| Rates {
            read_bytes_per_s: read.bytes as f64 / time_s,
            write_bytes_per_s: write.bytes as f64 / time_s,
            reads_per_s: read.count as f64 / time_s,
            writes_per_s: write.count as f64 / time_s,
            mean_io_bytes: ratio(
                read.bytes as f64 + write.bytes as f64,
                read.count as f64 + write.count as f64,
            ),
            read_write_ratio: ratio(read.bytes as f64, write.bytes as f64),
        })
    }

    /// Bytes read and written per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.read_bytes_per_s + self.write_bytes_per_s
    }

    /// Reads and writes per second.
    pub fn ios_per_s(&self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }
}

fn ratio(above: f64, below: f64) -> Option<f64> {
    (below > 0.0).then(|| above / below)
}

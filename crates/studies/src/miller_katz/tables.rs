//! The paper's Tables 1 and 2 beside what the generated traces show.

use pio_sim::workload::miller_katz::Published;

/// What a trace shows of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Running time, seconds of CPU.
    pub cpu_s: f64,
    /// Total data size, bytes.
    pub data_bytes: f64,
    /// All files: bytes moved, and in how many requests.
    pub all: (f64, f64),
    /// Large files: bytes read, and in how many requests.
    pub large_read: (f64, f64),
    /// Large files: bytes written, and in how many requests.
    pub large_written: (f64, f64),
}

/// A printed number beside that of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// Which table.
    pub table: u32,
    /// The application.
    pub application: &'static str,
    /// The column.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What is printed.
    pub published: f64,
    /// What the trace shows.
    pub computed: f64,
}

const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;

/// Every number of an application in both tables. The second has sizes and rates in powers of two, the first its average
/// size, too.
pub fn printed(published: &Published, found: &Measured) -> Vec<Printed> {
    let (bytes, ios) = found.all;
    let (read, written) = (found.large_read, found.large_written);
    let per_second = |amount: f64| amount / found.cpu_s;
    let large_mean = (read.0 + written.0) / (read.1 + written.1);
    let rows = [
        (1, "running time", "s", published.cpu_s, found.cpu_s),
        (1, "total data size", "MB", published.data_mb, found.data_bytes / MB),
        (1, "total I/O done", "MB", published.io_mb, bytes / MB),
        (1, "number of I/Os", "", published.ios, ios),
        (1, "average I/O size", "MiB", published.mean_mib, bytes / ios / MIB),
        (1, "data rate", "MB/s", published.mb_per_s, per_second(bytes) / MB),
        (1, "I/Os a second", "", published.ios_per_s, per_second(ios)),
        (2, "read", "MiB/s", published.read_mib_per_s, per_second(read.0) / MIB),
        (2, "written", "MiB/s", published.write_mib_per_s, per_second(written.0) / MIB),
        (2, "reads a second", "", published.reads_per_s, per_second(read.1)),
        (2, "writes a second", "", published.writes_per_s, per_second(written.1)),
        (2, "average I/O size", "KiB", published.mean_kib, large_mean / 1024.0),
        (2, "read over written", "", published.read_write_ratio, read.0 / written.0),
    ];
    let row = |(table, what, unit, published_number, computed)| Printed {
        table,
        application: published.name,
        what,
        unit,
        published: published_number,
        computed,
    };
    rows.into_iter().map(row).collect()
}

impl Printed {
    /// How far the trace is off, as a part of the printed number; none if that is 0.
    pub fn error(&self) -> Option<f64> {
        (self.published != 0.0).then(|| self.computed / self.published - 1.0)
    }

    /// Whether the trace's number, rounded, is the printed one.
    pub fn is_rounded(&self) -> bool {
        let decimals = self.published.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
        // Printed "< 0.1".
        let decimals = if self.published == 0.0 { 1 } else { decimals };
        let unit = 10f64.powi(-(decimals as i32));
        // The paper cuts off as often as it rounds.
        (self.computed - self.published).abs() <= 0.5 * unit
            || (self.computed / unit).floor() == (self.published / unit).round()
    }

    /// Whether the trace is within 2 % of the printed number, or gives it when rounded.
    pub fn agrees(&self) -> bool {
        self.is_rounded() || self.error().is_some_and(|error| error.abs() <= 0.02)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Program;
    use pio_plan::Direction;
    use pio_sim::workload::miller_katz::{PUBLISHED, application};
    use std::collections::BTreeMap;

    /// As a reader of the trace would measure it.
    fn measure(name: &str) -> Measured {
        let program = &Program::of(&application(name).unwrap()).unwrap()[0];
        let mut sizes = BTreeMap::new();
        for one in &program.accesses {
            let size = sizes.entry(one.file).or_insert(0);
            *size = (one.offset + one.bytes).max(*size);
        }
        let sum = |way: Option<Direction>| {
            let counted = |one: &&crate::buffers::TimedAccess| {
                way.is_none_or(|way| one.direction == way && sizes[&one.file] >= 1_000_000)
            };
            let amounts = program.accesses.iter().filter(counted);
            amounts.fold((0.0, 0.0), |sum, one| (sum.0 + one.bytes as f64, sum.1 + 1.0))
        };
        Measured {
            cpu_s: program.think().seconds(),
            data_bytes: sizes.values().sum::<u64>() as f64,
            all: sum(None),
            large_read: sum(Some(Direction::Read)),
            large_written: sum(Some(Direction::Write)),
        }
    }

    #[test]
    fn generated_traces_show_the_published_tables() {
        for published in &PUBLISHED {
            for row in printed(published, &measure(published.name)) {
                assert!(row.agrees(), "{row:?}: {:?}", row.error());
            }
        }
    }
}

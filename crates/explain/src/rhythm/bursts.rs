//! Bursts: stretches of I/O without a long pause.

/// A bin is active if it has at least this part of the mean of all.
const ACTIVE: f64 = 0.05;
/// Bursts with less than this part of the bytes of the mean burst are none: a line of a log between two checkpoints.
const WEIGHTY: f64 = 0.05;
/// Pauses of two kinds differ by at least this factor: those between the requests of a burst, and those between bursts.
const TWO_KINDS: f64 = 3.0;

/// A burst, in bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    pub(super) first: usize,
    /// Behind its last bin.
    pub(super) end: usize,
    pub(super) read_bytes: f64,
    pub(super) write_bytes: f64,
}

impl Burst {
    fn bytes(&self) -> f64 {
        self.read_bytes + self.write_bytes
    }
}

/// The bursts of the bytes read and written over time, in order.
pub(super) fn of(read: &[f64], write: &[f64]) -> Vec<Burst> {
    let runs = runs(read, write);
    let pauses: Vec<usize> = runs.windows(2).map(|pair| pair[1].first - pair[0].end).collect();
    let longest_within = longest_within_a_burst(&pauses);
    let mut bursts: Vec<Burst> = Vec::new();
    for run in runs {
        match bursts.last_mut() {
            Some(last) if run.first - last.end <= longest_within => {
                last.end = run.end;
                last.read_bytes += run.read_bytes;
                last.write_bytes += run.write_bytes;
            }
            _ => bursts.push(run),
        }
    }
    let mean = bursts.iter().map(Burst::bytes).sum::<f64>() / bursts.len().max(1) as f64;
    bursts.retain(|burst| burst.bytes() >= WEIGHTY * mean);
    bursts
}

/// Stretches of active bins.
fn runs(read: &[f64], write: &[f64]) -> Vec<Burst> {
    let total: f64 = read.iter().chain(write).sum();
    let least = ACTIVE * total / read.len().max(1) as f64;
    let mut runs: Vec<Burst> = Vec::new();
    for (bin, (read, write)) in read.iter().zip(write).enumerate() {
        if read + write <= least {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == bin => {
                run.end = bin + 1;
                run.read_bytes += read;
                run.write_bytes += write;
            }
            _ => runs.push(Burst { first: bin, end: bin + 1, read_bytes: *read, write_bytes: *write }),
        }
    }
    runs
}

/// The longest pause that does not end a burst, in bins: where the logarithms of the pauses fall into two kinds with the
/// least spread within each (Otsu 1979). 0, so that every pause ends a burst, if they are all of one kind.
fn longest_within_a_burst(pauses: &[usize]) -> usize {
    let mut sorted = pauses.to_vec();
    sorted.sort_unstable();
    let logs: Vec<f64> = sorted.iter().map(|pause| (*pause as f64).ln()).collect();
    let total: f64 = logs.iter().sum();
    let count = logs.len() as f64;
    let mut best: Option<(f64, usize)> = None;
    let mut below = 0.0;
    for split in 1..logs.len() {
        below += logs[split - 1];
        if sorted[split] == sorted[split - 1] {
            continue;
        }
        let (few, many) = (split as f64, count - split as f64);
        let apart = (total - below) / many - below / few;
        let between = few * many * apart * apart;
        let two_kinds = (sorted[split] as f64) >= TWO_KINDS * sorted[split - 1] as f64;
        if two_kinds && best.is_none_or(|(most, _)| between > most) {
            best = Some((between, sorted[split - 1]));
        }
    }
    best.map_or(0, |(_, longest)| longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_do_not_end_a_burst() {
        let mut write = vec![0.0; 300];
        for cycle in 0..3 {
            for request in 0..10 {
                write[cycle * 100 + request * 2] = 10.0;
            }
        }
        let found = of(&vec![0.0; 300], &write);
        let starts: Vec<_> = found.iter().map(|burst| (burst.first, burst.end)).collect();
        assert_eq!(starts, [(0, 19), (100, 119), (200, 219)]);
        assert_eq!(found[1].write_bytes, 100.0);
    }

    #[test]
    fn a_line_of_a_log_is_no_burst() {
        let mut write = vec![0.0; 100];
        (write[10], write[40], write[41], write[80]) = (1e6, 700.0, 1e5, 1e6);
        let found = of(&vec![0.0; 100], &write);
        assert_eq!(found.iter().map(|burst| burst.first).collect::<Vec<_>>(), [10, 41, 80]);
    }
}

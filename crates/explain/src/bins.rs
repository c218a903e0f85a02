//! Amounts over time in a fixed number of bins, whose width doubles whenever the job turns out to be longer.

/// Bins kept, unless others are wanted; between half of them and all are in use.
const BINS: usize = 256;

/// Some rows of bins over one time axis.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    /// Logarithm (base 2) of the width of a bin in nanoseconds.
    shift: u32,
    bins: usize,
    rows: Vec<Vec<f64>>,
}

impl Bins {
    /// `rows` empty rows.
    pub(crate) fn new(rows: usize) -> Bins {
        Bins::with(rows, BINS)
    }

    /// `rows` empty rows of at most `bins` bins, an even number.
    pub(crate) fn with(rows: usize, bins: usize) -> Bins {
        Bins { shift: 0, bins, rows: vec![vec![0.0; bins]; rows] }
    }

    /// Spreads `amount` evenly over `start_ns .. end_ns` (all at `start_ns` if that is empty) of row `row`.
    #[inline(always)]
    pub(crate) fn spread(&mut self, row: usize, start_ns: u64, end_ns: u64, amount: f64) {
        self.widen(end_ns.max(start_ns));
        let first = bin(start_ns, self.shift);
        if first == bin(end_ns.saturating_sub(1).max(start_ns), self.shift) {
            if let Some(bin) = self.rows.get_mut(row).and_then(|bins| bins.get_mut(first)) {
                *bin += amount;
            }
        } else {
            self.spread_over_many(row, start_ns, end_ns, amount);
        }
    }

    /// The same, where the ends fall into different bins.
    #[inline(never)]
    fn spread_over_many(&mut self, row: usize, start_ns: u64, end_ns: u64, amount: f64) {
        let Some(bins) = self.rows.get_mut(row) else { return };
        let (shift, width) = (self.shift, 1_u64 << self.shift);
        let (first, last) = (bin(start_ns, shift), bin(end_ns - 1, shift));
        let per_ns = amount / (end_ns - start_ns) as f64;
        let last_start = last as u64 * width;
        bins[first] += (first as u64 + 1).saturating_mul(width).saturating_sub(start_ns) as f64 * per_ns;
        for whole in &mut bins[first + 1..last] {
            *whole += width as f64 * per_ns;
        }
        bins[last] += (end_ns - last_start) as f64 * per_ns;
    }

    /// Whether two times, the later one last, fall into one bin.
    #[inline]
    pub(crate) fn are_one(&self, time_ns: u64, later_ns: u64) -> bool {
        bin(time_ns, self.shift) == bin(later_ns, self.shift)
    }

    /// Makes row `to` what row `from` is.
    pub(crate) fn copy_row(&mut self, from: usize, to: usize) {
        if let Ok([from, to]) = self.rows.get_disjoint_mut([from, to]) {
            to.copy_from_slice(from);
        }
    }

    /// The width of a bin, and the rows cut to the bins that `duration_ns` needs.
    pub(crate) fn finish(mut self, duration_ns: u64) -> (u64, Vec<Vec<f64>>) {
        self.widen(duration_ns);
        let used = bin(duration_ns.saturating_sub(1), self.shift) + 1;
        for row in &mut self.rows {
            // What took no time at the very end.
            let beyond: f64 = row[used..].iter().sum();
            row.truncate(used);
            row[used - 1] += beyond;
        }
        (1 << self.shift, self.rows)
    }

    /// Doubles the width until `end_ns` falls inside.
    #[inline]
    fn widen(&mut self, end_ns: u64) {
        while end_ns >> self.shift >= self.bins as u64 {
            self.double();
        }
    }

    #[cold]
    fn double(&mut self) {
        self.shift += 1;
        let half = self.bins / 2;
        for row in &mut self.rows {
            for index in 0..half {
                row[index] = row[2 * index] + row[2 * index + 1];
            }
            row[half..].fill(0.0);
        }
    }
}

fn bin(time_ns: u64, shift: u32) -> usize {
    (time_ns >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_spread_and_kept() {
        let mut bins = Bins::new(1);
        bins.spread(0, 0, 1024, 1024.0);
        bins.spread(0, 1024, 1024, 7.0);
        bins.spread(0, 100, 2048, 1948.0);
        let (width, rows) = bins.finish(2048);
        assert_eq!(width, 16);
        assert_eq!(rows[0].len(), 128);
        assert_eq!(rows[0].iter().sum::<f64>(), 1024.0 + 7.0 + 1948.0);
        assert_eq!(rows[0][0], 16.0);
        assert_eq!(rows[0][6], 16.0 + 12.0);
        assert_eq!(rows[0][64], 16.0 + 7.0);
        assert_eq!(rows[0][127], 16.0);
    }

    #[test]
    fn what_takes_no_time_at_the_end_is_kept() {
        let mut bins = Bins::new(1);
        bins.spread(0, 1024, 1024, 7.0);
        let (_, rows) = bins.finish(1024);
        assert_eq!((rows[0].len(), rows[0].iter().sum::<f64>()), (128, 7.0));
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut bins = Bins::new(1);
        bins.spread(0, 0, u64::MAX, 1.0);
        bins.spread(0, u64::MAX, u64::MAX, 1.0);
        let (_, rows) = bins.finish(u64::MAX);
        assert!((rows[0].iter().sum::<f64>() - 2.0).abs() < 1e-9);
    }
}

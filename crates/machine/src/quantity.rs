//! Numbers with a unit: how long, how fast, how much.
//!
//! Decimal prefixes are powers of ten (`MB` = 10^6 bytes), binary ones powers of two (`MiB` = 2^20 bytes).

use std::fmt;

/// A span of time: whole picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    picoseconds: u64,
}

/// Bytes a second; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth {
    bytes_per_second: u64,
}

const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;

const TIMES: &[(&str, u64)] =
    &[("s", PICOSECONDS_PER_SECOND), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];

const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Units of bandwidth, in the order in which a number is written: decimal only.
const RATES: &[(&str, u64)] = &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration { picoseconds: 0 };

    /// So many picoseconds.
    pub const fn from_picoseconds(picoseconds: u64) -> Duration {
        Duration { picoseconds }
    }

    /// The nearest picosecond; what is negative or no number becomes 0.
    pub fn from_seconds(seconds: f64) -> Duration {
        Duration { picoseconds: (seconds * PICOSECONDS_PER_SECOND as f64).round() as u64 }
    }

    /// The duration in whole picoseconds.
    pub const fn picoseconds(self) -> u64 {
        self.picoseconds
    }

    /// The duration in seconds.
    pub fn seconds(self) -> f64 {
        self.picoseconds as f64 / PICOSECONDS_PER_SECOND as f64
    }

    /// Both together; the longest there is if they are longer.
    #[must_use]
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration { picoseconds: self.picoseconds.saturating_add(other.picoseconds) }
    }

    /// What is left without the other; nothing if that is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration { picoseconds: self.picoseconds.saturating_sub(other.picoseconds) }
    }

    /// So many times as long; the longest there is if that is longer.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Duration {
        Duration { picoseconds: self.picoseconds.saturating_mul(times) }
    }

    /// So far on the way to another: of 0 to 1.
    pub(crate) fn towards(self, other: Duration, part: f64) -> Duration {
        let (low, high) = (self.picoseconds as f64, other.picoseconds as f64);
        Duration { picoseconds: (low + (high - low) * part) as u64 }
    }

    /// From a text such as `35 ns`; nothing if it is something else.
    pub fn parse(text: &str) -> Option<Duration> {
        Some(Duration { picoseconds: scaled(text, TIMES)? })
    }
}

impl Bandwidth {
    /// So many bytes a second; at least 1.
    pub fn from_bytes_per_second(bytes_per_second: u64) -> Bandwidth {
        Bandwidth { bytes_per_second: bytes_per_second.max(1) }
    }

    /// Bytes a second.
    pub const fn bytes_per_second(self) -> u64 {
        self.bytes_per_second
    }

    /// How long `bytes` take, rounded up to a picosecond.
    pub fn time_of(self, bytes: u64) -> Duration {
        let exact = (u128::from(bytes) * u128::from(PICOSECONDS_PER_SECOND))
            .div_ceil(u128::from(self.bytes_per_second));
        Duration { picoseconds: u64::try_from(exact).unwrap_or(u64::MAX) }
    }

    /// Whole bytes that pass within `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let exact = u128::from(time.picoseconds) * u128::from(self.bytes_per_second)
            / u128::from(PICOSECONDS_PER_SECOND);
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    /// From a text such as `400 MB/s`; nothing if it is something else, or 0.
    pub fn parse(text: &str) -> Option<Bandwidth> {
        let bytes_per_second = scaled(text.trim().strip_suffix("/s")?, SIZES)?;
        (bytes_per_second > 0).then_some(Bandwidth { bytes_per_second })
    }
}

/// Bytes, from a text such as `64 KiB`; nothing if it is something else.
pub fn parse_size(text: &str) -> Option<u64> {
    scaled(text, SIZES)
}

/// Bytes as [`parse_size`] reads them.
pub(crate) fn size_text(bytes: u64) -> String {
    let binary = SIZES.iter().filter(|(unit, _)| unit.contains('i') || *unit == "B");
    for (unit, scale) in binary {
        if bytes > 0 && bytes.is_multiple_of(*scale) {
            return format!("{} {unit}", bytes / scale);
        }
    }
    format!("{bytes} B")
}

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.picoseconds == 0 {
            return out.write_str("0 s");
        }
        out.write_str(&in_units(self.picoseconds, TIMES))
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/s", in_units(self.bytes_per_second, RATES))
    }
}

/// The exact number in the largest unit that does not make it less than 1.
fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let smallest = units[units.len() - 1];
    let (unit, scale) = units.iter().copied().find(|(_, scale)| number >= *scale).unwrap_or(smallest);
    let (whole, rest) = (number / scale, number % scale);
    if rest == 0 {
        return format!("{whole} {unit}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{} {unit}", fraction.trim_end_matches('0'))
}

/// The whole number of smallest units that `text`, a decimal number and one of `units`, stands for. None if it is
/// something else, too large, or not a whole number of them (a time below a picosecond).
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 15 || fraction.contains('.') {
        return None;
    }
    let tenths = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let exact = digits.checked_mul(u128::from(scale))?;
    if exact % tenths != 0 {
        return None;
    }
    u64::try_from(exact / tenths).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!(parse_size("1 MB"), Some(1_000_000));
        assert_eq!(parse_size("1 MiB"), Some(1 << 20));
        assert_eq!(Bandwidth::parse("400 MB/s").map(Bandwidth::bytes_per_second), Some(400_000_000));
        assert_eq!(Duration::parse("0.157 s").map(Duration::picoseconds), Some(157_000_000_000));
        assert_eq!(Duration::parse("35ns").map(Duration::picoseconds), Some(35_000));
    }

    #[test]
    fn a_number_needs_its_unit_and_a_whole_picosecond() {
        for text in [
            "",
            "5",
            "ns",
            "-1 ns",
            "1 n",
            "1e3 s",
            "0.5 ps",
            "1.2.3 s",
            "99999999999999999999 s",
            "20000000 s",
        ] {
            assert_eq!(Duration::parse(text), None, "{text}");
        }
        assert_eq!(Bandwidth::parse("0 MB/s"), None);
        assert_eq!(Bandwidth::parse("5 MB"), None);
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for picoseconds in [0, 1, 999, 1_000, 35_123, 157_000_000_000, 18_446_744_073_709_551_615] {
            let duration = Duration::from_picoseconds(picoseconds);
            assert_eq!(Duration::parse(&duration.to_string()), Some(duration), "{duration}");
        }
        for rate in [1, 999, 3_700_001, 12_000_000_000] {
            let bandwidth = Bandwidth::from_bytes_per_second(rate);
            assert_eq!(Bandwidth::parse(&bandwidth.to_string()), Some(bandwidth), "{bandwidth}");
        }
        for size in [0, 1, 1000, 1 << 16, 3 << 30] {
            assert_eq!(parse_size(&size_text(size)), Some(size));
        }
    }

    #[test]
    fn transfer_time_rounds_up() {
        let rate = Bandwidth::from_bytes_per_second(3);
        assert_eq!(rate.time_of(1).picoseconds(), 333_333_333_334);
        assert_eq!(rate.time_of(3).picoseconds(), PICOSECONDS_PER_SECOND);
        assert_eq!(rate.time_of(u64::MAX).picoseconds(), u64::MAX);
    }
}

//! What a file system gives large requests, as a note of the trace.

use std::fmt;
use std::str::FromStr;

use crate::tables::Tables;

/// The rates of requests of 1 MiB on one file system, measured by the recorder where a job made small requests only.
///
/// As a note's text: `write 1930 (1800-2010) MB/s, cached read 8100 (7900-8300) MB/s, in /home`. Where pages of mapped files
/// were waited for, or writes that were not aligned to pages, it also says what single pages take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LargeRequests {
    /// The folder below which it holds: where the file system is mounted.
    pub folder: String,
    /// Writes of bytes that are new to the file, as the system takes them: into its memory, if it has a cache for them.
    pub write: Option<MeasuredRate>,
    /// Reads of bytes that the system has in its memory.
    pub cached_read: Option<MeasuredRate>,
    /// Reads of bytes that it had to fetch from the device or server.
    pub device_read: Option<MeasuredRate>,
    /// Reads of single pages of 4 KiB, here and there, that it had to fetch from there.
    pub page_read: Option<MeasuredRate>,
    /// Writes of whole pages, here and there, that were in the file but not in memory.
    pub page_write: Option<MeasuredRate>,
    /// Writes of [`LargeRequests::PART`] bytes within such pages: the system fetches the rest of the page first.
    pub part_write: Option<MeasuredRate>,
}

/// A rate and its spread, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRate {
    /// The median of the requests.
    pub bytes_per_s: f64,
    /// A quarter of the requests were slower.
    pub low: f64,
    /// A quarter of the requests were faster.
    pub high: f64,
}

impl LargeRequests {
    /// The name of such a note.
    pub const NOTE: &str = "large requests";
    /// What is written of a page by a write of a part of one, bytes.
    pub const PART: u64 = 2048;

    /// All that a trace's notes say; a note that is none is left out.
    pub fn of(tables: &Tables) -> Vec<LargeRequests> {
        let notes = tables.notes.iter().filter(|(name, _)| name == LargeRequests::NOTE);
        notes.filter_map(|(_, value)| value.parse().ok()).collect()
    }

    /// Whether a path lies below the folder.
    pub fn holds_for(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.folder.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }
}

const KINDS: [&str; 6] = ["write", "cached read", "device read", "page read", "page write", "part write"];

impl fmt::Display for LargeRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LargeRequests { write, cached_read, device_read, page_read, page_write, part_write, .. } = *self;
        let rates = [write, cached_read, device_read, page_read, page_write, part_write];
        for (kind, rate) in KINDS.iter().zip(rates) {
            if let Some(MeasuredRate { bytes_per_s, low, high }) = rate {
                // Single pages of a slow device reach less than the decimal that is enough for others.
                let digits = if low < 1e7 { 6 } else { 1 };
                let [median, low, high] = [bytes_per_s, low, high].map(|rate| rate / 1e6);
                write!(f, "{kind} {median:.digits$} ({low:.digits$}-{high:.digits$}) MB/s, ")?;
            }
        }
        write!(f, "in {}", self.folder)
    }
}

/// The text is no such note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRates;

impl FromStr for LargeRequests {
    type Err = NoRates;

    fn from_str(text: &str) -> Result<LargeRequests, NoRates> {
        let mut found = LargeRequests::default();
        let mut rest = text;
        loop {
            if let Some(folder) = rest.strip_prefix("in ") {
                folder.clone_into(&mut found.folder);
                return if folder.starts_with('/') { Ok(found) } else { Err(NoRates) };
            }
            let (part, behind) = rest.split_once(", ").ok_or(NoRates)?;
            let kind = KINDS.iter().position(|kind| part.starts_with(kind)).ok_or(NoRates)?;
            let rate = Some(part[KINDS[kind].len()..].parse()?);
            match kind {
                0 => found.write = rate,
                1 => found.cached_read = rate,
                2 => found.device_read = rate,
                3 => found.page_read = rate,
                4 => found.page_write = rate,
                _ => found.part_write = rate,
            }
            rest = behind;
        }
    }
}

impl FromStr for MeasuredRate {
    type Err = NoRates;

    /// ` 1930 (1800-2010) MB/s`
    fn from_str(text: &str) -> Result<MeasuredRate, NoRates> {
        let text = text.trim_start().strip_suffix(") MB/s").ok_or(NoRates)?;
        let (median, spread) = text.split_once(" (").ok_or(NoRates)?;
        let (low, high) = spread.split_once('-').ok_or(NoRates)?;
        let rate = |text: &str| {
            let rate = text.parse::<f64>().ok().map(|rate| rate * 1e6);
            rate.filter(|rate| rate.is_finite() && *rate > 0.0).ok_or(NoRates)
        };
        Ok(MeasuredRate { bytes_per_s: rate(median)?, low: rate(low)?, high: rate(high)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_it_was_written_from() {
        let rate = |mb: f64| Some(MeasuredRate { bytes_per_s: mb * 1e6, low: mb * 0.9e6, high: mb * 1.5e6 });
        for [write, cached_read, device_read, page_read, page_write, part_write] in [
            [rate(2000.0), rate(8000.0), None, None, None, None],
            [None, rate(10.0), rate(70.0), rate(20.0), rate(900.0), rate(30.0)],
            [None, None, None, None, None, None],
        ] {
            let folder = "/a, in (b)".into();
            let rates =
                LargeRequests { folder, write, cached_read, device_read, page_read, page_write, part_write };
            assert_eq!(rates.to_string().parse(), Ok(rates.clone()), "{rates}");
        }
    }

    /// With one decimal it would have been 0.0, and the whole note nothing.
    #[test]
    fn pages_of_a_slow_device_are_told() {
        let rate = Some(MeasuredRate { bytes_per_s: 40_960.0, low: 20_480.0, high: 81_920.0 });
        let rates = LargeRequests { folder: "/tape".into(), page_read: rate, ..LargeRequests::default() };
        assert_eq!(rates.to_string().parse(), Ok(rates));
    }

    #[test]
    fn other_text_says_nothing() {
        for text in [
            "",
            "in ",
            "in here",
            "write in /home",
            "write 0 (1-2) MB/s, in /home",
            "write 1 (1-inf) MB/s, in /home",
            "read 10 (1-20) MB/s, in /home",
            "write 1 (1-2) GB/s, in /home",
        ] {
            assert_eq!(text.parse::<LargeRequests>(), Err(NoRates), "{text}");
        }
    }

    #[test]
    fn a_folder_holds_what_lies_in_it() {
        let in_folder = |folder: &str| LargeRequests { folder: folder.into(), ..LargeRequests::default() };
        assert!(in_folder("/").holds_for("/data"));
        assert!(in_folder("/home").holds_for("/home/me/data"));
        assert!(!in_folder("/home").holds_for("/homes/data"));
    }
}

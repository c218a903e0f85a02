//! What hardware costs.

use std::fmt::Write;

/// What the steps of an operation cost at a place where files are. All times and rates are above 0 and finite, but for what new
/// pages, calls here and there, requests to servers and the pieces in them add, which may be 0; a bandwidth is in bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Seconds of a message from rank to rank, or from a rank to a server: both ends, and the way.
    pub message_s: f64,
    /// Of one rank's or server's link, each way.
    pub network_bytes_per_s: f64,
    /// Of one processor that copies long pieces in memory.
    pub copy_bytes_per_s: f64,
    /// Seconds added for each piece that is packed or put in place.
    pub piece_s: f64,
    /// Seconds added for each extent that a request lists: to write it down, send it, and read it.
    pub extent_s: f64,
    /// Seconds of a rank's processor for each read that it asks a server for, beside the message.
    pub asking_read_s: f64,
    /// The same of a write.
    pub asking_write_s: f64,
    /// Seconds added for each piece of a request that a server puts in place, or picks out.
    pub placed_piece_s: f64,
    /// Of a server that does so, up to a page a piece: a longer piece is an access to the file like others.
    pub placed_bytes_per_s: f64,
    /// Seconds of a read from a file system, or that a server is busy with one, beside its bytes.
    pub read_s: f64,
    /// The same of a write.
    pub write_s: f64,
    /// Seconds added for a write that brings pages of the file into memory which were not there: most programs write new files.
    pub new_pages_s: f64,
    /// Seconds added for each byte of such pages.
    pub new_byte_s: f64,
    /// Seconds added for a read that begins where the processor's cache has the file neither, nor what is up to [`FORESEEN_BYTES`]
    /// before it.
    pub read_miss_s: f64,
    /// The same of a write.
    pub write_miss_s: f64,
    /// Bytes of a file that a processor's cache holds; 0 if that is not known.
    pub cached_bytes: f64,
    /// Bytes a second of what it holds.
    pub cached_bytes_per_s: f64,
    /// Seconds to lock an interval of a file and unlock it.
    pub lock_s: f64,
    /// Of a file to one reader, or of one server.
    pub read_bytes_per_s: f64,
    /// Of a file to its writers together, or of one server.
    pub write_bytes_per_s: f64,
    /// Whether servers run on the processors of the ranks.
    pub share_processors: bool,
    /// Whether requests to the file system pass without a processor: its nodes share it, and wait for its answers.
    pub is_remote: bool,
    /// How files are dealt out to I/O servers that calls to the kernel go to, if there are such and that is known.
    pub behind: Option<Behind>,
    /// Seconds until a rank that others wait for has its processor, for each rank that goes before it: where ranks outnumber
    /// processors, one after the other computes, or looks whether others have come, for as long as it may.
    pub turn_s: f64,
    /// Seconds that so many ranks of a node take to say a few bytes to each other, all at it, if that was measured; by ranks,
    /// ascending.
    pub together: Vec<(u32, f64)>,
}

/// A processor foresees that so many bytes behind those that it has will be asked for, at most: 20 lines of its cache (the
/// second-level streamer: Intel 64 and IA-32 Architectures Optimization Reference Manual, on data prefetching).
pub const FORESEEN_BYTES: u64 = 20 * 64;

/// I/O servers behind calls to the kernel: a call is a request to each of them that has some of its bytes, and there waits for
/// those of other ranks. Such a server takes a list of pieces as one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// How many have parts of a long file; at least 1.
    pub servers: u32,
    /// Bytes of a strip; at least 1.
    pub strip: u64,
}

/// Of the terms that are numbers: the name, and where it is.
type Named = (&'static str, fn(&mut Terms) -> &mut f64);

const NUMBERS: [Named; 21] = [
    ("message", |terms| &mut terms.message_s),
    ("network", |terms| &mut terms.network_bytes_per_s),
    ("copy", |terms| &mut terms.copy_bytes_per_s),
    ("piece", |terms| &mut terms.piece_s),
    ("extent", |terms| &mut terms.extent_s),
    (ASKING_READ, |terms| &mut terms.asking_read_s),
    (ASKING_WRITE, |terms| &mut terms.asking_write_s),
    (PLACED_PIECE, |terms| &mut terms.placed_piece_s),
    ("placed-rate", |terms| &mut terms.placed_bytes_per_s),
    ("read", |terms| &mut terms.read_s),
    ("write", |terms| &mut terms.write_s),
    (NEW_PAGES, |terms| &mut terms.new_pages_s),
    (NEW_BYTE, |terms| &mut terms.new_byte_s),
    (READ_MISS, |terms| &mut terms.read_miss_s),
    (WRITE_MISS, |terms| &mut terms.write_miss_s),
    (CACHED, |terms| &mut terms.cached_bytes),
    ("cached-rate", |terms| &mut terms.cached_bytes_per_s),
    ("lock", |terms| &mut terms.lock_s),
    ("read-rate", |terms| &mut terms.read_bytes_per_s),
    ("write-rate", |terms| &mut terms.write_bytes_per_s),
    ("turn", |terms| &mut terms.turn_s),
];
const ASKING_READ: &str = "asking-read";
const ASKING_WRITE: &str = "asking-write";
const PLACED_PIECE: &str = "placed-piece";
const NEW_PAGES: &str = "new-pages";
const NEW_BYTE: &str = "new-byte";
const READ_MISS: &str = "read-miss";
const WRITE_MISS: &str = "write-miss";
const CACHED: &str = "cached";
const MAY_BE_NOTHING: [&str; 8] =
    [ASKING_READ, ASKING_WRITE, PLACED_PIECE, NEW_PAGES, NEW_BYTE, READ_MISS, WRITE_MISS, CACHED];
const SHARED: &str = "shared-processors";
const REMOTE: &str = "remote";
const BEHIND: &str = "behind";
const TOGETHER: &str = "together";

impl Terms {
    /// A virtual machine with two processors of 2026, files in its memory, ranks and servers on it and connected by
    /// sockets: the best of nine runs of `cargo run --release -p pio-plan --example measure_terms /dev/shm`, as other
    /// work on the machine only adds to times; two digits. A turn is Linux's tick. They hold where nobody calibrated.
    pub const MEASURED: Terms = Terms {
        message_s: 5.4e-6,
        network_bytes_per_s: 5.4e9,
        copy_bytes_per_s: 12e9,
        piece_s: 0.23e-9,
        extent_s: 12e-9,
        asking_read_s: 0.0,
        asking_write_s: 0.0,
        placed_piece_s: 0.23e-9,
        placed_bytes_per_s: 12e9,
        read_s: 1.1e-6,
        write_s: 1.1e-6,
        new_pages_s: 0.0,
        new_byte_s: 0.0,
        read_miss_s: 0.0,
        write_miss_s: 0.0,
        cached_bytes: 0.0,
        cached_bytes_per_s: 13e9,
        lock_s: 0.89e-6,
        read_bytes_per_s: 13e9,
        write_bytes_per_s: 10e9,
        share_processors: false,
        is_remote: false,
        behind: None,
        turn_s: 4e-3,
        together: Vec::new(),
    };

    /// Whether files that are on so many I/O servers of ours are on none: calls to the kernel find them on the node.
    pub(crate) fn are_of_node(&self, servers: u32) -> bool {
        servers == 0 && !self.is_remote && self.behind.is_none()
    }

    /// Seconds that so many ranks take on so many processors until each has heard of each: what is measured of ranks that are all
    /// at it, and the turns of those that go before the last.
    pub fn talk_s(&self, ranks: u32, processors: u32) -> f64 {
        self.saying_s(ranks) + self.turns_s(ranks, processors)
    }

    /// Seconds of a message where so many ranks say something to each other.
    pub(super) fn saying_one_s(&self, ranks: u32) -> f64 {
        self.saying_s(ranks) / f64::from(ranks.saturating_sub(1).max(1))
    }

    /// Seconds that the last of so many ranks waits for its turn on so many processors.
    pub fn turns_s(&self, ranks: u32, processors: u32) -> f64 {
        let before = (f64::from(ranks) / f64::from(processors.max(1)) - 1.0).max(0.0);
        before * self.turn_s
    }

    /// Seconds that so many ranks take to say something to each other, all at it: on the line between the next fewer and the next more
    /// that were measured; with more, in proportion.
    pub(super) fn saying_s(&self, ranks: u32) -> f64 {
        let others = f64::from(ranks.saturating_sub(1));
        let above = self.together.iter().find(|(measured, _)| *measured >= ranks);
        let below = self.together.iter().rev().find(|(measured, _)| *measured <= ranks);
        match (below, above) {
            _ if ranks < 2 => 0.0,
            (None, None) => others * self.message_s,
            (Some((fewer, low)), Some((more, high))) => {
                let part = f64::from(ranks - fewer) / f64::from((more - fewer).max(1));
                low + (high - low) * part
            }
            (Some((measured, time)), None) | (None, Some((measured, time))) => {
                time * others / f64::from(measured.saturating_sub(1).max(1))
            }
        }
    }

    /// The first term that is no time or bandwidth: not above 0 where it must be, below 0, or not finite.
    pub fn wrong(&self) -> Option<(&'static str, f64)> {
        let mut terms = self.clone();
        let numbers = NUMBERS.map(|(name, number)| (name, *number(&mut terms)));
        let together = self.together.iter().map(|(_, time)| (TOGETHER, *time));
        let is_right = |name, value: f64| {
            value.is_finite() && (value > 0.0 || value == 0.0 && MAY_BE_NOTHING.contains(&name))
        };
        numbers.into_iter().chain(together).find(|(name, value)| !is_right(*name, *value))
    }

    /// In one line without blanks, as [`Terms::parse`] reads it.
    pub fn to_text(&self) -> String {
        let mut terms = self.clone();
        let mut text = String::new();
        // Writing into a text does not fail.
        NUMBERS.iter().for_each(|(name, number)| _ = write!(text, "{name}={:e},", number(&mut terms)));
        _ = write!(text, "{SHARED}={},{REMOTE}={}", self.share_processors, self.is_remote);
        if let Some(Behind { servers, strip }) = self.behind {
            _ = write!(text, ",{BEHIND}={servers}:{strip}");
        }
        self.together.iter().for_each(|(ranks, time)| _ = write!(text, ",{TOGETHER}={ranks}:{time:e}"));
        text
    }

    /// What [`Terms::to_text`] wrote.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Terms, String> {
        let mut terms = Terms { together: Vec::new(), ..Terms::MEASURED };
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let wrong = || format!("'{word}' (expected a term and its value)");
            let (name, value) = word.split_once('=').ok_or_else(wrong)?;
            if let Some((_, number)) = NUMBERS.iter().find(|(known, _)| *known == name) {
                *number(&mut terms) = value.parse().map_err(|_| wrong())?;
            } else if name == SHARED {
                terms.share_processors = value.parse().map_err(|_| wrong())?;
            } else if name == REMOTE {
                terms.is_remote = value.parse().map_err(|_| wrong())?;
            } else if let (BEHIND, Some((servers, strip))) = (name, value.split_once(':')) {
                let (servers, strip) =
                    (servers.parse().map_err(|_| wrong())?, strip.parse().map_err(|_| wrong())?);
                terms.behind = Some(Behind { servers, strip }).filter(|_| servers > 0 && strip > 0);
                terms.behind.ok_or_else(wrong)?;
            } else if let (TOGETHER, Some((ranks, time))) = (name, value.split_once(':')) {
                terms
                    .together
                    .push((ranks.parse().map_err(|_| wrong())?, time.parse().map_err(|_| wrong())?));
            } else {
                return Err(wrong());
            }
        }
        if !terms.together.is_sorted_by_key(|(ranks, _)| *ranks) {
            return Err(format!("{TOGETHER} (expected more ranks each time)"));
        }
        match terms.wrong() {
            Some((name, value)) => {
                Err(format!("{name}={value} (expected a number above 0, or 0 for what may add nothing)"))
            }
            None => Ok(terms),
        }
    }
}

impl Default for Terms {
    fn default() -> Terms {
        Terms::MEASURED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_terms_are_named() {
        assert_eq!(Terms::MEASURED.wrong(), None);
        assert_eq!(Terms { piece_s: 0.0, ..Terms::MEASURED }.wrong(), Some(("piece", 0.0)));
        let infinite = Terms { copy_bytes_per_s: f64::INFINITY, ..Terms::MEASURED };
        assert_eq!(infinite.wrong(), Some(("copy", f64::INFINITY)));
        assert!(Terms { lock_s: f64::NAN, ..Terms::MEASURED }.wrong().is_some());
    }

    #[test]
    fn a_text_says_all_of_them() {
        let terms = Terms {
            read_s: 0.1 + 0.2,
            new_pages_s: 4.7e-6,
            write_miss_s: 5.3e-7,
            cached_bytes: 13e6,
            asking_read_s: 1.2e-5,
            asking_write_s: 1.3e-5,
            placed_bytes_per_s: 2.5e9,
            share_processors: true,
            is_remote: true,
            behind: Some(Behind { servers: 448, strip: 1 << 20 }),
            together: vec![(2, 1.7e-5), (8, 5e-4)],
            ..Terms::MEASURED
        };
        assert_eq!(Terms::parse(&terms.to_text()), Ok(terms));
        assert_eq!(Terms::parse(""), Ok(Terms::MEASURED));
        for (text, expected) in [
            ("message", "'message'"),
            ("messages=1", "'messages=1'"),
            ("message=fast", "'message=fast'"),
            ("message=-1", "message=-1"),
            ("together=8:1,together=2:1", "together"),
            ("together=8", "'together=8'"),
            ("behind=8", "'behind=8'"),
            ("behind=0:65536", "'behind=0:65536'"),
        ] {
            let said = Terms::parse(text).unwrap_err();
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn more_ranks_talk_longer() {
        let terms = Terms { together: vec![(2, 1.0), (4, 3.0), (8, 11.0)], ..Terms::MEASURED };
        let times = [1, 2, 3, 4, 6, 8, 15].map(|ranks| terms.talk_s(ranks, ranks));
        assert_eq!(times, [0.0, 1.0, 2.0, 3.0, 7.0, 11.0, 22.0]);
        assert_eq!(Terms::MEASURED.talk_s(3, 3), 2.0 * Terms::MEASURED.message_s);
        let terms = Terms { turn_s: 5.0, ..terms };
        assert_eq!([2, 4, 8].map(|processors| terms.talk_s(8, processors)), [26.0, 16.0, 11.0]);
    }
}

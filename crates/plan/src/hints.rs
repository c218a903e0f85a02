//! What users may ask of a strategy, under the names they know from ROMIO.

use std::fmt::Write as _;

use thiserror::Error;

use crate::access::Direction;
use crate::own_hints::OwnHints;

/// Hints for collective I/O and file layout. Those that are not set leave the choice to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `cb_nodes`: how many ranks aggregate. Default: what [`Site::context`](crate::Site::context) makes of the place.
    pub cb_nodes: Option<u32>,
    /// `cb_buffer_size`: bytes of an aggregator's collective buffer. Default: 16 MiB.
    pub cb_buffer_size: Option<u64>,
    /// `ind_rd_buffer_size`: bytes that one rank reads at a time to sieve. Default: 4 MiB.
    pub ind_rd_buffer_size: Option<u64>,
    /// `ind_wr_buffer_size`: bytes that one rank reads, changes and writes back at a time. Default: 512 KiB.
    pub ind_wr_buffer_size: Option<u64>,
    /// `striping_unit`: bytes of a strip. File domains are aligned to it.
    pub striping_unit: Option<u64>,
    /// `striping_factor`: servers (or storage targets) that the file is striped over.
    pub striping_factor: Option<u32>,
    /// `pio_describe`: whom ranks describe their accesses to. Default: as so many ranks are best off.
    pub describe: Option<Describe>,
    /// Those that only the MPI library's own way follows, in predictions.
    pub own: OwnHints,
}

/// Whom the ranks of a two-phase operation describe their accesses to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Describe {
    /// Every rank to every other: what Thakur, Gropp and Lusk (1996) counted, and what costs a few ranks least.
    All,
    /// To the aggregators whose file domains they access. Before, all ranks add up what they access together.
    Aggregators,
    /// To a leader on their node, which speaks for them to the aggregators, and passes on their data; where nodes have no leaders,
    /// or data do not fit their buffers, to the aggregators.
    Leaders,
}

const DESCRIBE: &str = "pio_describe";

/// A hint that cannot be honoured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HintError {
    /// A line of a hint file or an argument is not `key=value`.
    #[error("hint '{0}': expected key=value")]
    NotAPair(String),
    /// The value is no number in the range.
    #[error("hint {key}: '{value}' is not a number from {least} to {most}")]
    Value {
        /// Its key.
        key: &'static str,
        /// What was given.
        value: String,
        /// Least allowed.
        least: u64,
        /// Most allowed.
        most: u64,
    },
    /// The value is no word that the hint can have.
    #[error("hint {key}: '{value}' is not {expected}")]
    Word {
        /// Its key.
        key: String,
        /// What was given.
        value: String,
        /// What can be given.
        expected: &'static str,
    },
    /// Nobody knows this hint.
    #[error(
        "unknown hint '{0}' (known: cb_nodes, cb_buffer_size, ind_rd_buffer_size, ind_wr_buffer_size, striping_unit, striping_factor, pio_describe; to predict what the MPI library does by itself: {own})",
        own = OwnHints::NAMES.join(", ")
    )]
    Unknown(String),
}

const MAX_RANKS: u64 = 1 << 24;
const MIN_BUFFER: u64 = 512;
const MAX_BUFFER: u64 = 1 << 34;
const MAX_STRIP: u64 = 1 << 40;

impl Hints {
    /// The largest collective buffer, bytes: ranks of a node share it in memory.
    pub const MOST_CB_BUFFER_SIZE: u64 = 1 << 30;

    /// Default size of an aggregator's collective buffer, bytes: ROMIO's.
    pub const DEFAULT_CB_BUFFER_SIZE: u64 = 16 << 20;

    /// Default size of a buffer to sieve reads in, bytes: ROMIO's.
    pub const DEFAULT_IND_RD_BUFFER_SIZE: u64 = 4 << 20;

    /// Default size of a buffer to sieve writes in, bytes: ROMIO's.
    pub const DEFAULT_IND_WR_BUFFER_SIZE: u64 = 512 << 10;

    /// Names a file of hints for all programs, as ROMIO knows it,
    pub const SITE_VARIABLE: &str = "ROMIO_HINTS";
    /// and where it is if nothing names it.
    pub const SITE_FILE: &str = "/etc/romio-hints";

    /// The keys and values in such a file, as ROMIO reads it: a hint a line, key and value with blanks between; other lines, and
    /// those that begin with `#`, are passed over. Of several with one key the first counts.
    pub fn of_site_file(text: &str) -> Vec<(&str, &str)> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
            if let (Some(key), Some(value), None) = (words.next(), words.next(), words.next())
                && pairs.iter().all(|(known, _)| *known != key)
            {
                pairs.push((key, value));
            }
        }
        pairs
    }

    /// Sets the hint `key`. Whether it is one of ours: MPI lets a program give hints that an implementation does not know.
    ///
    /// # Errors
    /// If the value is not a number in its range, or no word that the hint can have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, HintError> {
        match key {
            "cb_nodes" => self.cb_nodes = Some(number("cb_nodes", value, 1, MAX_RANKS)? as u32),
            "cb_buffer_size" => {
                self.cb_buffer_size = Some(number("cb_buffer_size", value, MIN_BUFFER, MAX_BUFFER)?);
            }
            "ind_rd_buffer_size" => {
                self.ind_rd_buffer_size = Some(number("ind_rd_buffer_size", value, 1, MAX_BUFFER)?);
            }
            "ind_wr_buffer_size" => {
                self.ind_wr_buffer_size = Some(number("ind_wr_buffer_size", value, 1, MAX_BUFFER)?);
            }
            "striping_unit" => self.striping_unit = Some(number("striping_unit", value, 1, MAX_STRIP)?),
            "striping_factor" => {
                self.striping_factor = Some(number("striping_factor", value, 1, MAX_RANKS)? as u32);
            }
            DESCRIBE => self.describe = Some(Describe::of(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads hints from `key=value` words separated by commas or white space; `#` starts a comment to the end of a line.
    ///
    /// # Errors
    /// Names the first word that is no hint of ours.
    pub fn parse(text: &str) -> Result<Hints, HintError> {
        let mut hints = Hints::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
                let (key, value) =
                    word.split_once('=').ok_or_else(|| HintError::NotAPair(word.to_owned()))?;
                let (key, value) = (key.trim(), value.trim());
                if !hints.set(key, value)? && !hints.own.set(key, value)? {
                    return Err(HintError::Unknown(key.to_owned()));
                }
            }
        }
        Ok(hints)
    }

    /// Of hints that a program gives, those that are ours. What makes no sense, or is unknown, is passed over, as MPI wants it.
    pub fn of_program<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Hints {
        let mut hints = Hints::default();
        for (key, value) in pairs {
            if let Ok(false) = hints.set(key, value) {
                let _ = hints.own.set(key, value);
            }
        }
        hints
    }

    /// All hints that are set, as key and value.
    pub fn all_pairs(&self) -> Vec<(&'static str, String)> {
        self.pairs().into_iter().chain(self.own.pairs()).collect()
    }

    /// These hints, completed by `others` where nothing is set.
    pub fn or(&self, others: &Hints) -> Hints {
        Hints {
            cb_nodes: self.cb_nodes.or(others.cb_nodes),
            cb_buffer_size: self.cb_buffer_size.or(others.cb_buffer_size),
            ind_rd_buffer_size: self.ind_rd_buffer_size.or(others.ind_rd_buffer_size),
            ind_wr_buffer_size: self.ind_wr_buffer_size.or(others.ind_wr_buffer_size),
            striping_unit: self.striping_unit.or(others.striping_unit),
            striping_factor: self.striping_factor.or(others.striping_factor),
            describe: self.describe.or(others.describe),
            own: self.own.or(&others.own),
        }
    }

    /// The hints that are set, as key and value, but for those that only the MPI library's own way follows.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let numbers = [
            ("cb_nodes", self.cb_nodes.map(u64::from)),
            ("cb_buffer_size", self.cb_buffer_size),
            ("ind_rd_buffer_size", self.ind_rd_buffer_size),
            ("ind_wr_buffer_size", self.ind_wr_buffer_size),
            ("striping_unit", self.striping_unit),
            ("striping_factor", self.striping_factor.map(u64::from)),
        ];
        let numbers = numbers.into_iter().filter_map(|(key, value)| Some((key, value?.to_string())));
        let describe = self.describe.map(|describe| (DESCRIBE, describe.name().to_owned()));
        numbers.chain(describe).collect()
    }

    /// The same in the form that [`Hints::parse`] reads.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.all_pairs() {
            let separator = if text.is_empty() { "" } else { "," };
            let _ = write!(text, "{separator}{key}={value}");
        }
        text
    }

    /// How many of `ranks` ranks aggregate.
    pub fn aggregators(&self, ranks: u32) -> u32 {
        self.cb_nodes.unwrap_or(ranks).clamp(1, ranks.max(1))
    }

    /// Bytes of a collective buffer.
    pub fn buffer_size(&self) -> u64 {
        self.cb_buffer_size.unwrap_or(Self::DEFAULT_CB_BUFFER_SIZE).min(Self::MOST_CB_BUFFER_SIZE)
    }

    /// Bytes of a buffer to sieve in.
    pub fn sieve_size(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Read => self.ind_rd_buffer_size.unwrap_or(Self::DEFAULT_IND_RD_BUFFER_SIZE),
            Direction::Write => self.ind_wr_buffer_size.unwrap_or(Self::DEFAULT_IND_WR_BUFFER_SIZE),
        }
    }

    /// Whether it has room for two pieces and what is between them: else nobody sieves.
    pub(crate) fn sieves(&self, direction: Direction) -> bool {
        self.sieve_size(direction) > 2
    }
}

impl Describe {
    /// All of them, in the order of their numbers.
    pub const ALL: [Describe; 3] = [Describe::All, Describe::Aggregators, Describe::Leaders];

    /// The hint's value.
    pub fn name(self) -> &'static str {
        match self {
            Describe::All => "all",
            Describe::Aggregators => "aggregators",
            Describe::Leaders => "leaders",
        }
    }

    fn of(value: &str) -> Result<Describe, HintError> {
        let known = Describe::ALL.into_iter().find(|describe| describe.name().eq_ignore_ascii_case(value));
        let wrong = || HintError::Word {
            key: DESCRIBE.to_owned(),
            value: value.to_owned(),
            expected: "all, aggregators or leaders",
        };
        known.ok_or_else(wrong)
    }
}

fn number(key: &'static str, value: &str, least: u64, most: u64) -> Result<u64, HintError> {
    match value.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(HintError::Value { key, value: value.to_owned(), least, most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_there_and_back() {
        let hints = Hints::parse("cb_nodes=4, cb_buffer_size=65536 # small\nstriping_unit=4096").unwrap();
        assert_eq!(hints.cb_nodes, Some(4));
        assert_eq!(hints.striping_factor, None);
        assert_eq!(Hints::parse(&hints.to_text()).unwrap(), hints);
        let own =
            "cb_nodes=2,pio_describe=all,romio_cb_read=automatic,romio_ds_write=disable,cb_config_list=*:2";
        assert_eq!(Hints::parse(own).unwrap().to_text(), own);
    }

    #[test]
    fn what_a_program_says_is_followed_as_far_as_it_makes_sense() {
        let given =
            [("cb_nodes", "2"), ("cb_nodes", "many"), ("romio_ds_write", "disable"), ("colour", "red")];
        assert_eq!(Hints::of_program(given).to_text(), "cb_nodes=2,romio_ds_write=disable");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text| Hints::parse(text).unwrap_err().to_string();
        assert_eq!(message("cb_nodes"), "hint 'cb_nodes': expected key=value");
        assert_eq!(message("cb_nodes=0"), "hint cb_nodes: '0' is not a number from 1 to 16777216");
        assert_eq!(
            message("romio_cb_read=maybe"),
            "hint romio_cb_read: 'maybe' is not enable, disable or automatic"
        );
        assert_eq!(
            message("cb_config_list=node7:1"),
            "hint cb_config_list: 'node7:1' is not *:* or *:N, N ranks of each node"
        );
        assert_eq!(
            message("pio_describe=none"),
            "hint pio_describe: 'none' is not all, aggregators or leaders"
        );
        assert!(message("cb_node=4").starts_with("unknown hint 'cb_node' (known: cb_nodes,"));
    }

    #[test]
    fn aggregators_are_between_one_and_all() {
        let with = |cb_nodes| Hints { cb_nodes, ..Hints::default() };
        assert_eq!(with(None).aggregators(8), 8);
        assert_eq!(with(Some(3)).aggregators(8), 3);
        assert_eq!(with(Some(30)).aggregators(8), 8);
    }
}

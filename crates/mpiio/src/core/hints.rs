//! The hints of an open file: those that strategies follow, which all ranks must share, and those that are only kept.

use pio_plan::{Direction, Hints};

use super::segment;

/// Hints that MPI reserves (4.1, section 14.2.8) or ROMIO's users know, and that change nothing here: each rank keeps
/// what its program says, and says it again when asked.
const KEPT: [&str; 18] = [
    "access_style",
    "collective_buffering",
    "cb_block_size",
    "cb_config_list",
    "chunked",
    "chunked_item",
    "chunked_size",
    "file_perm",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "romio_cb_alltoall",
    "romio_cb_read",
    "romio_cb_write",
    "romio_ds_read",
    "romio_ds_write",
    "romio_no_indep_rw",
    "start_iodevice",
];

/// Hints as a program gives them.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// For strategies.
    pub followed: Hints,
    /// Others that we know.
    pub kept: Kept,
}

/// Names a file of hints for all programs, as ROMIO knows it.
const SITE: &str = "ROMIO_HINTS";

/// Hints that are only kept, by key.
#[derive(Clone, Debug, Default)]
pub struct Kept(Vec<(&'static str, String)>);

impl Given {
    /// The hints of the file that `ROMIO_HINTS` names: what the program and the launcher leave open. A file that cannot be
    /// read is none.
    pub fn of_site() -> Given {
        let text = std::env::var_os(SITE).and_then(|path| std::fs::read_to_string(path).ok());
        Given::of_text(&text.unwrap_or_default())
    }

    /// A hint a line: key, blanks, value; `#` begins a comment. Of several with one key the first counts.
    fn of_text(text: &str) -> Given {
        let mut given = Given::default();
        // The last that is set counts.
        for line in text.lines().rev() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            if let (Some(key), Some(value)) = (words.next(), words.next()) {
                given.set(key, value);
            }
        }
        given
    }

    /// Takes a hint. What makes no sense or is unknown is passed over, as MPI wants it.
    pub fn set(&mut self, key: &str, value: &str) {
        // Where both know a key, strategies come first.
        if let Ok(false) = self.followed.set(key, value)
            && let Some(key) = KEPT.into_iter().find(|known| *known == key)
        {
            self.kept.set(key, value.to_owned());
        }
    }
}

impl Kept {
    fn set(&mut self, key: &'static str, value: String) {
        self.0.retain(|(old, _)| *old != key);
        self.0.push((key, value));
    }

    /// Adds others, which replace those with the same keys.
    pub fn add(&mut self, others: &Kept) {
        for (key, value) in &others.0 {
            self.set(key, value.clone());
        }
    }

    /// These, and of others those with other keys.
    pub fn or(&self, others: &Kept) -> Kept {
        let mut all = others.clone();
        all.add(self);
        all
    }

    /// All of them.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// `file_perm`: the permissions of a file that is created, in octal.
    pub fn permissions(&self) -> Option<u32> {
        let (_, value) = self.pairs().find(|(key, _)| *key == "file_perm")?;
        u32::from_str_radix(value, 8).ok().filter(|mode| *mode <= 0o777)
    }
}

/// How many words say all hints that are followed.
pub const WORDS: usize = 6;

/// Hints as words for other ranks: 0 is not set, which no hint may be.
pub fn words_of(hints: &Hints) -> [u64; WORDS] {
    [
        hints.cb_nodes.map_or(0, u64::from),
        hints.cb_buffer_size.unwrap_or(0),
        hints.striping_unit.unwrap_or(0),
        hints.striping_factor.map_or(0, u64::from),
        hints.ind_rd_buffer_size.unwrap_or(0),
        hints.ind_wr_buffer_size.unwrap_or(0),
    ]
}

/// The hints that `words` say.
pub fn of_words(words: &[u64]) -> Hints {
    let word = |index: usize| words.get(index).copied().filter(|word| *word > 0);
    Hints {
        cb_nodes: word(0).map(|word| word as u32),
        cb_buffer_size: word(1),
        striping_unit: word(2),
        striping_factor: word(3).map(|word| word as u32),
        ind_rd_buffer_size: word(4),
        ind_wr_buffer_size: word(5),
    }
}

/// Completes hints with our own choices: a program that asks shall see the defaults, too. But not how many ranks
/// aggregate, which is another number to write than to read: see [`super::common::Common::context`].
pub fn in_force(hints: Hints) -> Hints {
    Hints {
        cb_buffer_size: Some(hints.buffer_size().min(segment::MOST_BYTES)),
        ind_rd_buffer_size: Some(hints.sieve_size(Direction::Read)),
        ind_wr_buffer_size: Some(hints.sieve_size(Direction::Write)),
        ..hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_hints_has_a_hint_a_line() {
        let text = "# for all\n\nromio_cb_read  enable\nind_rd_buffer_size 49 # small\nind_rd_buffer_size 60\ncb_nodes\n";
        let site = Given::of_text(text);
        assert_eq!(site.followed, Hints { ind_rd_buffer_size: Some(49), ..Hints::default() });
        let mut program = Given::default();
        program.set("romio_cb_read", "disable");
        program.set("access_style", "random");
        let kept = program.kept.or(&site.kept);
        assert!(kept.pairs().eq([("romio_cb_read", "disable"), ("access_style", "random")]), "{kept:?}");
    }

    #[test]
    fn reserved_hints_are_kept_and_others_are_not() {
        let mut given = Given::default();
        for (key, value) in [
            ("access_style", "read_once"),
            ("access_style", "write_once,random"),
            ("cb_nodes", "2"),
            ("cb_buffer_size", "none"),
            ("nobody_knows", "1"),
            ("file_perm", "640"),
        ] {
            given.set(key, value);
        }
        let kept: Vec<_> = given.kept.pairs().collect();
        assert_eq!(kept, [("access_style", "write_once,random"), ("file_perm", "640")]);
        assert_eq!(given.kept.permissions(), Some(0o640));
        assert_eq!(given.followed, Hints { cb_nodes: Some(2), ..Hints::default() });
        assert_eq!(of_words(&words_of(&given.followed)), given.followed);
    }
}

//! The hints of an open file: those that strategies follow, which all ranks must share, and those that are only kept.

use std::sync::OnceLock;

use pio_plan::{Describe, Direction, Hints};

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
pub(crate) struct Given {
    /// For strategies.
    pub(crate) followed: Hints,
    /// Others that we know.
    pub(crate) kept: Kept,
}

/// The program promises that all its operations are collective.
const NO_INDEPENDENT: &str = "romio_no_indep_rw";
/// Whether collective operations go through aggregators.
const AGGREGATED: [&str; 2] = ["romio_cb_read", "romio_cb_write"];

/// Hints that are only kept, by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Vec<(&'static str, String)>);

impl Given {
    /// The hints of the file that `ROMIO_HINTS` names, else of `/etc/romio-hints`: what the program and the launcher leave
    /// open. A file that cannot be read is none. It is read once, by the first who opens a file.
    pub(crate) fn of_site() -> &'static Given {
        static FOUND: OnceLock<Given> = OnceLock::new();
        FOUND.get_or_init(|| {
            let named = std::env::var_os(Hints::SITE_VARIABLE).and_then(|path| std::fs::read(path).ok());
            let text = named.or_else(|| std::fs::read(Hints::SITE_FILE).ok()).unwrap_or_default();
            Given::of_text(&String::from_utf8_lossy(&text))
        })
    }

    fn of_text(text: &str) -> Given {
        let mut given = Given::default();
        Hints::of_site_file(text).into_iter().for_each(|(key, value)| given.set(key, value));
        given
    }

    /// Takes a hint. What makes no sense or is unknown is passed over, as MPI wants it.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
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

    /// Adds others, which replace those with the same keys, with what follows from them in ROMIO: who does without
    /// aggregators takes the promise back that nothing is independent; who gives that promise has aggregators, even if the
    /// same hints say that there shall be none.
    pub(crate) fn add(&mut self, others: &Kept) {
        if AGGREGATED.iter().any(|key| others.say(key, "disable")) {
            self.set(NO_INDEPENDENT, "false".into());
        }
        for (key, value) in &others.0 {
            self.set(key, value.clone());
        }
        if others.say(NO_INDEPENDENT, "true") {
            AGGREGATED.into_iter().for_each(|key| self.set(key, "enable".into()));
        }
    }

    /// These, and of others those with other keys: all that a file is opened with.
    pub(crate) fn or(&self, others: &Kept) -> Kept {
        let new = |(key, _): &&(&'static str, String)| self.0.iter().all(|(known, _)| known != key);
        let both = Kept(self.0.iter().chain(others.0.iter().filter(new)).cloned().collect());
        let mut all = Kept::default();
        all.add(&both);
        all
    }

    /// Whether the hint is set to this.
    fn say(&self, key: &str, value: &str) -> bool {
        self.pairs().any(|(known, said)| known == key && said.eq_ignore_ascii_case(value))
    }

    /// All of them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// `file_perm`: the permissions of a file that is created, in octal.
    pub(crate) fn permissions(&self) -> Option<u32> {
        let (_, value) = self.pairs().find(|(key, _)| *key == "file_perm")?;
        u32::from_str_radix(value, 8).ok().filter(|mode| *mode <= 0o777)
    }
}

/// How many words say all hints that are followed.
pub(crate) const WORDS: usize = 7;

/// Hints as words for other ranks: 0 is not set, which no hint may be.
pub(crate) fn words_of(hints: &Hints) -> [u64; WORDS] {
    [
        hints.cb_nodes.map_or(0, u64::from),
        hints.cb_buffer_size.unwrap_or(0),
        hints.striping_unit.unwrap_or(0),
        hints.striping_factor.map_or(0, u64::from),
        hints.ind_rd_buffer_size.unwrap_or(0),
        hints.ind_wr_buffer_size.unwrap_or(0),
        hints.describe.map_or(0, |describe| describe as u64 + 1),
    ]
}

/// The hints that `words` say.
pub(crate) fn of_words(words: &[u64]) -> Hints {
    let word = |index: usize| words.get(index).copied().filter(|word| *word > 0);
    Hints {
        cb_nodes: word(0).map(|word| word as u32),
        cb_buffer_size: word(1),
        striping_unit: word(2),
        striping_factor: word(3).map(|word| word as u32),
        ind_rd_buffer_size: word(4),
        ind_wr_buffer_size: word(5),
        describe: word(6).and_then(|word| Describe::ALL.get(word as usize - 1).copied()),
        ..Hints::default()
    }
}

/// Completes hints with our own choices: a program that asks shall see the defaults, too. But not how many ranks
/// aggregate, which is another number to write than to read: see [`pio_plan::Site::context`].
pub(crate) fn in_force(hints: Hints) -> Hints {
    Hints {
        cb_buffer_size: Some(hints.buffer_size()),
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
        let text = "# for all\n\nromio_ds_read  enable\n\tind_rd_buffer_size 49 \nind_rd_buffer_size 60\ncb_nodes\n\
            #cb_buffer_size 4096\nind_wr_buffer_size 50 # small\n";
        let site = Given::of_text(text);
        assert_eq!(site.followed, Hints { ind_rd_buffer_size: Some(49), ..Hints::default() });
        let mut program = Given::default();
        program.set("romio_ds_read", "disable");
        program.set("access_style", "random");
        let kept = program.kept.or(&site.kept);
        assert!(kept.pairs().eq([("romio_ds_read", "disable"), ("access_style", "random")]), "{kept:?}");
    }

    #[test]
    fn who_never_is_independent_has_aggregators() {
        let kept = |pairs: &[(&str, &str)]| {
            let mut given = Given::default();
            pairs.iter().for_each(|(key, value)| given.set(key, value));
            given.kept
        };
        let program = kept(&[("romio_cb_read", "disable")]);
        let mut open = program.or(&kept(&[("romio_no_indep_rw", "true"), ("romio_ds_read", "enable")]));
        assert!(open.say("romio_cb_read", "enable") && open.say("romio_cb_write", "enable"), "{open:?}");
        assert!(open.say("romio_no_indep_rw", "true") && open.say("romio_ds_read", "enable"), "{open:?}");
        open.add(&program);
        assert!(open.say("romio_cb_read", "disable") && open.say("romio_no_indep_rw", "false"), "{open:?}");
        let open = program.or(&kept(&[("romio_cb_read", "enable")]));
        assert!(open.say("romio_cb_read", "disable"), "{open:?}");
    }

    #[test]
    fn reserved_hints_are_kept_and_others_are_not() {
        let mut given = Given::default();
        for (key, value) in [
            ("access_style", "read_once"),
            ("access_style", "write_once,random"),
            ("cb_nodes", "2"),
            ("pio_describe", "aggregators"),
            ("cb_buffer_size", "none"),
            ("nobody_knows", "1"),
            ("file_perm", "640"),
        ] {
            given.set(key, value);
        }
        let kept: Vec<_> = given.kept.pairs().collect();
        assert_eq!(kept, [("access_style", "write_once,random"), ("file_perm", "640")]);
        assert_eq!(given.kept.permissions(), Some(0o640));
        assert_eq!(
            given.followed,
            Hints { cb_nodes: Some(2), describe: Some(Describe::Aggregators), ..Hints::default() }
        );
        assert_eq!(of_words(&words_of(&given.followed)), given.followed);
    }
}

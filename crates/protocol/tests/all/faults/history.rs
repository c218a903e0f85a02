//! What clients were told, and whether it can all be true.
//!
//! Each byte of a file is a register. An operation that writes it is in effect from some moment between its beginning and
//! its acknowledgement on; one that was given up may be, until the client's next session with the server begins. A read may
//! return what any operation wrote that no other surely overwrote: one that began after the former was over, and was
//! acknowledged (or seen by another read) before the read began, unless it may have been lost. What was synced is never lost;
//! what was not may be, when a machine goes down or a disk fails, but not from the eyes of the client that wrote it before
//! that client was told.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_protocol::{FileId, Placement};

use super::disk::Tag;
use super::kernel::Time;

/// Longer files are not made.
pub(crate) const FILE_BYTES: u64 = 700;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Pending,
    Acknowledged(Time),
    /// A server said no, and has finished with it.
    Failed(Time),
    /// Nobody waits for it any more.
    Abandoned(Time),
}

/// Something that changes bytes.
#[derive(Debug)]
struct Change {
    client: usize,
    file: FileId,
    start: Time,
    outcome: Outcome,
    durable: Option<Time>,
    /// It cuts the file: all its bytes are gone, and read as zero.
    is_cut: bool,
}

#[derive(Debug)]
struct Entry {
    tag: Tag,
    /// When a read was over that saw it.
    seen: Option<Time>,
}

#[derive(Debug)]
struct File {
    placement: Placement,
    bytes: Vec<Vec<Entry>>,
}

/// A read of a client, or of somebody who looks at the disks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub client: Option<usize>,
    pub start: Time,
    pub end: Time,
}

#[derive(Debug)]
pub(crate) struct Hold {
    pub file: FileId,
    pub range: Range<u64>,
    pub shared: bool,
    pub from: Time,
    pub to: Time,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    changes: BTreeMap<Tag, Change>,
    files: BTreeMap<FileId, File>,
    losses: BTreeMap<u32, Vec<Time>>,
    welcomes: BTreeMap<(usize, u32), Vec<Time>>,
    told: BTreeMap<(usize, FileId, u32), Vec<Time>>,
    /// Locks that were given back, and so were held all the time.
    holds: Vec<Hold>,
    added: BTreeMap<FileId, Vec<Added>>,
    exclusive: BTreeSet<FileId>,
    /// Files that are being removed: from now on anything may be read.
    unlinked: BTreeSet<FileId>,
    pub reads: u64,
}

#[derive(Debug)]
struct Added {
    by: u64,
    start: Time,
    /// The value, and when it was answered.
    answer: Option<(u64, Time)>,
}

impl History {
    pub(crate) fn opened(&mut self, file: FileId, placement: Placement) {
        let bytes = || (0..FILE_BYTES).map(|_| Vec::new()).collect();
        let known = self.files.entry(file).or_insert_with(|| File { placement, bytes: bytes() });
        assert_eq!(known.placement, placement, "one file with two placements");
    }

    /// An operation begins to change these bytes; its tag is what it writes, unless it cuts them.
    pub(crate) fn begin(
        &mut self,
        client: usize,
        file: FileId,
        bytes: impl Iterator<Item = u64>,
        is_cut: bool,
        start: Time,
    ) -> Tag {
        let tag = self.changes.len() as Tag + 1;
        let known = self.files.get_mut(&file).expect("an open file");
        bytes.for_each(|byte| known.bytes[byte as usize].push(Entry { tag, seen: None }));
        let change = Change { client, file, start, outcome: Outcome::Pending, durable: None, is_cut };
        self.changes.insert(tag, change);
        tag
    }

    pub(crate) fn acknowledged(&mut self, tag: Tag, now: Time) {
        self.change(tag).outcome = Outcome::Acknowledged(now);
    }

    pub(crate) fn failed(&mut self, tag: Tag, now: Time) {
        self.change(tag).outcome = Outcome::Failed(now);
    }

    pub(crate) fn abandoned(&mut self, tag: Tag, now: Time) {
        self.change(tag).outcome = Outcome::Abandoned(now);
    }

    fn change(&mut self, tag: Tag) -> &mut Change {
        self.changes.get_mut(&tag).expect("a change that was begun")
    }

    /// A sync of a file that began at `start` was acknowledged.
    pub(crate) fn synced(&mut self, client: usize, file: FileId, start: Time, now: Time) {
        let own = self.changes.values_mut().filter(|change| change.client == client && change.file == file);
        for change in own {
            if matches!(change.outcome, Outcome::Acknowledged(end) if end <= start) {
                change.durable.get_or_insert(now);
            }
        }
    }

    pub(crate) fn told_of_loss(&mut self, client: usize, file: FileId, server: u32, now: Time) {
        self.told.entry((client, file, server)).or_default().push(now);
    }

    pub(crate) fn may_have_lost(&mut self, server: u32, now: Time) {
        self.losses.entry(server).or_default().push(now);
    }

    pub(crate) fn welcomed(&mut self, client: usize, server: u32, now: Time) {
        self.welcomes.entry((client, server)).or_default().push(now);
    }

    pub(crate) fn unlinked(&mut self, file: FileId) {
        assert!(self.unlinked.insert(file), "{file:?} was unlinked twice");
    }

    pub(crate) fn made_exclusively(&mut self, file: FileId) {
        assert!(self.exclusive.insert(file), "{file:?} was made exclusively twice");
    }

    pub(crate) fn held(&mut self, hold: Hold) {
        self.holds.push(hold);
    }

    /// Somebody begins to add to the pointer of a file; says the how manieth it is.
    pub(crate) fn begin_adding(&mut self, file: FileId, by: u64, start: Time) -> usize {
        let added = self.added.entry(file).or_default();
        added.push(Added { by, start, answer: None });
        added.len() - 1
    }

    pub(crate) fn added(&mut self, file: FileId, which: usize, value: u64, now: Time) {
        self.added.get_mut(&file).expect("an addition that was begun")[which].answer = Some((value, now));
    }

    /// The files whose bytes mean something, with where they are.
    pub(crate) fn living(&self) -> Vec<(FileId, Placement)> {
        let living = self.files.iter().filter(|(id, _)| !self.unlinked.contains(id));
        living.map(|(id, file)| (*id, file.placement)).collect()
    }

    /// Checks what was read.
    pub(crate) fn read(&mut self, reader: Reader, file: FileId, bytes: &[(u64, Tag)]) {
        let Some(known) = self.files.get(&file).filter(|_| !self.unlinked.contains(&file)) else { return };
        self.reads += 1;
        for &(byte, tag) in bytes {
            let server = server_of(&known.placement, byte);
            let entries = &known.bytes[byte as usize];
            if !self.is_explained(reader, server, entries, tag) {
                let changes: Vec<_> =
                    entries.iter().map(|entry| (entry, &self.changes[&entry.tag])).collect();
                panic!(
                    "{reader:?} read {tag} in byte {byte} of {file:?}, which is on server {server}: {changes:#?}\n\
                     losses {:?}\ntold {:?}",
                    self.losses.get(&server),
                    self.told
                );
            }
        }
        let known = self.files.get_mut(&file).expect("the same file");
        for &(byte, tag) in bytes {
            let entries = known.bytes[byte as usize].iter_mut();
            if let Some(entry) = entries.into_iter().find(|entry| entry.tag == tag) {
                let seen = entry.seen.map_or(reader.end, |seen| seen.min(reader.end));
                entry.seen = Some(seen);
            }
        }
    }

    fn is_explained(&self, reader: Reader, server: u32, entries: &[Entry], tag: Tag) -> bool {
        let overwritten = |written: Tag, latest: Time| {
            entries.iter().any(|later| {
                let change = &self.changes[&later.tag];
                later.tag != written
                    && latest < change.start
                    && in_effect(change, later).is_some_and(|since| since <= reader.start)
                    && !self.may_be_lost(change, server, reader)
            })
        };
        let from_nothing = tag == 0 && !overwritten(0, 0);
        from_nothing
            || entries.iter().any(|entry| {
                let change = &self.changes[&entry.tag];
                let fits = if change.is_cut { tag == 0 } else { tag == entry.tag };
                fits && change.start <= reader.end && !overwritten(entry.tag, self.latest(change, server))
            })
    }

    /// When a change comes into effect at the latest.
    fn latest(&self, change: &Change, server: u32) -> Time {
        match change.outcome {
            Outcome::Pending => Time::MAX,
            Outcome::Acknowledged(end) | Outcome::Failed(end) => end,
            Outcome::Abandoned(end) => {
                let welcomes = self.welcomes.get(&(change.client, server));
                let next = welcomes.and_then(|times| times.iter().find(|time| **time > end));
                next.copied().unwrap_or(Time::MAX)
            }
        }
    }

    fn may_be_lost(&self, change: &Change, server: u32, reader: Reader) -> bool {
        let lost = self.losses.get(&server).is_some_and(|times| {
            times.iter().any(|&loss| {
                let since = change.start <= loss && loss <= reader.end;
                since && change.durable.is_none_or(|durable| durable > loss)
            })
        });
        let acknowledged = matches!(change.outcome, Outcome::Acknowledged(_));
        let told = self
            .told
            .get(&(change.client, change.file, server))
            .is_some_and(|times| times.iter().any(|told| change.start <= *told && *told <= reader.end));
        lost && (told || !acknowledged || reader.client != Some(change.client))
    }

    /// Checks what can only be known at the end; `pointer` is the shared pointer of a file.
    pub(crate) fn judge(&self, pointer: impl Fn(FileId) -> u64) {
        for (at, hold) in self.holds.iter().enumerate() {
            for other in &self.holds[..at] {
                let same = hold.file == other.file && !(hold.shared && other.shared);
                let ranges = hold.range.start < other.range.end && other.range.start < hold.range.end;
                let times = hold.from < other.to && other.from < hold.to;
                assert!(!(same && ranges && times), "a lock held twice: {other:?} and {hold:?}");
            }
        }
        for (file, added) in &self.added {
            let (mut surely, mut perhaps) = (0, 0);
            let mut values: Vec<(u64, &Added)> = Vec::new();
            for one in added {
                perhaps += one.by;
                if let Some((value, _)) = one.answer {
                    surely += one.by;
                    values.push((value, one));
                }
            }
            values.sort_by_key(|(value, _)| *value);
            for pair in values.windows(2) {
                let ((value, one), (next, other)) = (pair[0], pair[1]);
                assert!(value + one.by <= next, "added {one:?} and {other:?} at the same place");
                let end = other.answer.map_or(0, |(_, end)| end);
                assert!(one.start <= end, "{one:?} began after {other:?} had ended");
            }
            if !self.unlinked.contains(file) {
                let pointer = pointer(*file);
                assert!(
                    (surely..=perhaps).contains(&pointer),
                    "the pointer of {file:?} is {pointer}, after {surely} to {perhaps}: {added:#?}"
                );
            }
        }
    }
}

/// Since when a change is surely in effect.
fn in_effect(change: &Change, entry: &Entry) -> Option<Time> {
    match change.outcome {
        Outcome::Acknowledged(end) => Some(entry.seen.map_or(end, |seen| seen.min(end))),
        _ => entry.seen,
    }
}

fn server_of(placement: &Placement, byte: u64) -> u32 {
    placement.server_of_slot(placement.striping().server_of(byte))
}

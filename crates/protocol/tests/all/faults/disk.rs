//! A server's disks, with the semantics of those of the store: a write goes into the memory of the machine, a sync makes
//! durable what was written before it began, names and records are durable at once. A machine that goes down keeps any part
//! of what was not synced; a sync that fails begins a new epoch and may lose it too.
//!
//! A byte is a tag: which operation wrote it. So a test knows whose byte it reads.

use std::collections::{BTreeMap, VecDeque};

use pio_protocol::server::Task;
use pio_protocol::{Answer, ClientId, Failure, FileId, Name, Placement, ReplyBody, SlotStrips};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Which operation wrote a byte; 0: none.
pub(crate) type Tag = u32;

/// What the operating system says when a disk is full, or cannot be written.
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EIO: i32 = 5;

/// Something that changes: all it was since what is durable.
#[derive(Debug)]
struct Versions<T> {
    /// How many were forgotten.
    forgotten: u64,
    /// What is durable, ..., what is read.
    all: VecDeque<T>,
}

impl<T: Copy + PartialEq> Versions<T> {
    fn new(first: T) -> Versions<T> {
        Versions { forgotten: 0, all: VecDeque::from([first]) }
    }

    fn now(&self) -> T {
        self.all[self.all.len() - 1]
    }

    fn set(&mut self, value: T) {
        if self.now() != value {
            self.all.push_back(value);
        }
    }

    fn mark(&self) -> u64 {
        self.forgotten + self.all.len() as u64 - 1
    }

    /// What it was at the mark is durable.
    fn make_durable(&mut self, mark: u64) {
        // A part that was removed and made anew meanwhile has less behind it.
        while self.forgotten < mark && self.all.len() > 1 {
            self.all.pop_front();
            self.forgotten += 1;
        }
    }

    fn lose_some(&mut self, random: &mut Pcg64Mcg) {
        if self.all.len() > 1 {
            let kept = self.all[random.random_range(0..self.all.len())];
            self.forgotten += self.all.len() as u64;
            self.all = VecDeque::from([kept]);
        }
    }
}

#[derive(Debug)]
struct Part {
    bytes: Vec<Versions<Tag>>,
    len: Versions<usize>,
}

/// What a sync that has begun will make durable.
pub(crate) struct Mark {
    bytes: Vec<u64>,
    len: u64,
}

#[derive(Debug, Default)]
struct Record {
    placement: Option<Placement>,
    pointer: u64,
}

#[derive(Debug)]
pub(crate) struct Disk {
    index: u32,
    pub epoch: u64,
    /// No byte that was not there finds room.
    pub is_full: bool,
    /// The next sync of anything fails.
    pub fails: bool,
    parts: BTreeMap<FileId, Part>,
    names: BTreeMap<Name, FileId>,
    records: BTreeMap<FileId, Record>,
    /// The last answer of each client that must not be made twice.
    answers: BTreeMap<ClientId, (u64, ReplyBody)>,
    files: u64,
}

impl Disk {
    pub(crate) fn new(index: u32) -> Disk {
        Disk {
            index,
            epoch: 1,
            is_full: false,
            fails: false,
            parts: BTreeMap::new(),
            names: BTreeMap::new(),
            records: BTreeMap::new(),
            answers: BTreeMap::new(),
            files: 0,
        }
    }

    /// The machine went down.
    pub(crate) fn crash(&mut self, random: &mut Pcg64Mcg) {
        self.epoch += 1;
        for part in self.parts.values_mut() {
            part.len.lose_some(random);
            let len = part.len.now();
            part.bytes.iter_mut().for_each(|byte| byte.lose_some(random));
            part.bytes.resize_with(len, || Versions::new(0));
        }
    }

    /// Writes; false if the disk is full.
    pub(crate) fn write(&mut self, file: FileId, place: usize, tag: Tag) -> bool {
        let part = self.part(file);
        if place >= part.len.now() {
            if self.is_full {
                return false;
            }
            let part = self.part(file);
            part.len.set(place + 1);
            let room = part.bytes.len().max(place + 1);
            part.bytes.resize_with(room, || Versions::new(0));
        }
        self.part(file).bytes[place].set(tag);
        true
    }

    /// The byte at a place; `None` behind the end.
    pub(crate) fn read(&self, file: FileId, place: usize) -> Option<Tag> {
        let part = self.parts.get(&file)?;
        (place < part.len.now()).then(|| part.bytes[place].now())
    }

    pub(crate) fn len(&self, file: FileId) -> usize {
        self.parts.get(&file).map_or(0, |part| part.len.now())
    }

    pub(crate) fn set_len(&mut self, file: FileId, len: usize) -> bool {
        if len > self.len(file) && self.is_full {
            return false;
        }
        let part = self.part(file);
        part.len.set(len);
        part.bytes.iter_mut().skip(len).for_each(|byte| byte.set(0));
        let room = part.bytes.len().max(len);
        part.bytes.resize_with(room, || Versions::new(0));
        true
    }

    pub(crate) fn begin_sync(&self, file: FileId) -> Option<Mark> {
        let part = self.parts.get(&file)?;
        Some(Mark { bytes: part.bytes.iter().map(Versions::mark).collect(), len: part.len.mark() })
    }

    pub(crate) fn end_sync(&mut self, file: FileId, mark: Option<Mark>) {
        if let (Some(part), Some(mark)) = (self.parts.get_mut(&file), mark) {
            part.len.make_durable(mark.len);
            part.bytes.iter_mut().zip(mark.bytes).for_each(|(byte, mark)| byte.make_durable(mark));
        }
    }

    /// The operating system could not write, says so once, and forgets what it could not.
    pub(crate) fn fail_sync(&mut self, file: FileId, random: &mut Pcg64Mcg) {
        self.epoch += 1;
        if let Some(part) = self.parts.get_mut(&file) {
            part.bytes.iter_mut().for_each(|byte| byte.lose_some(random));
        }
    }

    pub(crate) fn remove_part(&mut self, file: FileId) {
        self.parts.remove(&file);
    }

    /// A register of a file: its shared pointer.
    pub(crate) fn pointer(&self, file: FileId) -> u64 {
        self.records.get(&file).map_or(0, |record| record.pointer)
    }

    /// What concerns names and records; done at most once if it says so.
    pub(crate) fn transaction(&mut self, client: ClientId, number: u64, task: &Task) -> ReplyBody {
        let once = match task {
            Task::Create { exclusive, .. } => *exclusive,
            Task::Unlink { .. } | Task::Link { .. } | Task::MovePointer { .. } => true,
            _ => false,
        };
        if let (true, Some((last, answer))) = (once, self.answers.get(&client))
            && number <= *last
        {
            return if number == *last { answer.clone() } else { Err(Failure::Stale) };
        }
        let body = self.change(client, task);
        if once {
            self.answers.insert(client, (number, body.clone()));
        }
        body
    }

    fn change(&mut self, client: ClientId, task: &Task) -> ReplyBody {
        match task {
            Task::LookUp { name } => Ok(Answer::File { file: self.names.get(name).copied(), new: false }),
            Task::Create { name, exclusive, placement } => match self.names.get(name) {
                Some(_) if *exclusive => Err(Failure::Exists),
                Some(file) => Ok(Answer::File { file: Some(*file), new: false }),
                None => {
                    self.files += 1;
                    let file = FileId::new(self.index, self.files);
                    self.names.insert(name.clone(), file);
                    self.records.insert(file, Record { placement: Some(*placement), ..Record::default() });
                    Ok(Answer::File { file: Some(file), new: true })
                }
            },
            Task::Unlink { name } => match self.names.remove(name) {
                Some(file) => Ok(Answer::File { file: Some(file), new: false }),
                None => Err(Failure::NotFound),
            },
            Task::Describe { file } => match self.records.get(file) {
                Some(Record { placement: Some(placement), .. }) => Ok(Answer::Record(*placement)),
                _ => Err(Failure::NotFound),
            },
            Task::Forget { file } => {
                self.records.remove(file);
                Ok(Answer::Done)
            }
            Task::MovePointer { file, by } => {
                let record = self.records.get_mut(file).ok_or(Failure::NotFound)?;
                record.pointer += by;
                Ok(Answer::Value(record.pointer - by))
            }
            Task::SetPointer { file, value } => {
                self.records.get_mut(file).ok_or(Failure::NotFound)?.pointer = *value;
                Ok(Answer::Done)
            }
            Task::Goodbye => {
                self.answers.remove(&client);
                Ok(Answer::Done)
            }
            task => panic!("nobody asked for {task:?}"),
        }
    }

    fn part(&mut self, file: FileId) -> &mut Part {
        self.parts.entry(file).or_insert_with(|| Part { bytes: Vec::new(), len: Versions::new(0) })
    }
}

/// The places of a part that strips have, in order.
pub(crate) fn places(mut strips: SlotStrips) -> Vec<usize> {
    let mut places = Vec::new();
    while let Some(strip) = strips.next() {
        for piece in strips.runs(&strip).flat_map(|run| run.pieces()) {
            places.extend(piece.offset as usize..piece.end() as usize);
        }
    }
    places
}

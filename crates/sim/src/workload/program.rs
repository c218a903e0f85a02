//! Writing down a workload call by call.

use std::collections::BTreeMap;
use std::ops::Range;

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Call, File, HandleId, ViewId};

use super::parameter::Values;
use super::steps::{Open, Step, What, Workload};

/// A workload that is being written down: ranks, what they compute, and the calls they make.
pub(super) struct Programs {
    workload: Workload,
    /// What each rank computes before its next call.
    think: Vec<Duration>,
    files: BTreeMap<String, u32>,
    collectives: u64,
}

/// The handles of a file that all ranks opened together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    first: u32,
}

impl Together {
    /// That of a rank.
    pub(super) fn of(self, rank: u32) -> HandleId {
        HandleId(self.first + rank)
    }
}

impl Programs {
    /// Of so many ranks, none of which has done anything yet.
    pub(super) fn new(values: &Values, ranks: u32) -> Programs {
        let workload = Workload {
            name: values.to_string(),
            groups: vec![(0..ranks).collect()],
            programs: vec![Vec::new(); ranks as usize],
            ..Workload::default()
        };
        let think = vec![Duration::ZERO; ranks as usize];
        Programs { workload, think, files: BTreeMap::new(), collectives: 0 }
    }

    pub(super) fn finish(self) -> Workload {
        self.workload
    }

    pub(super) fn ranks(&self) -> u32 {
        self.workload.ranks()
    }

    pub(super) fn view(&mut self, view: View) -> ViewId {
        self.workload.views.push(view);
        ViewId(self.workload.views.len() as u32 - 1)
    }

    /// A rank computes for so long, beyond what it has to already.
    pub(super) fn think(&mut self, rank: u32, time: Duration) {
        let think = &mut self.think[rank as usize];
        *think = think.saturating_add(time);
    }

    /// All ranks compute for so long.
    pub(super) fn all_think(&mut self, time: Duration) {
        (0..self.ranks()).for_each(|rank| self.think(rank, time));
    }

    /// All ranks open a file together, through MPI-IO.
    pub(super) fn open_together(&mut self, path: &str) -> Together {
        let file = self.file(path);
        let first = self.workload.handles.len() as u32;
        self.collectives += 1;
        let collective = self.collectives;
        for rank in 0..self.ranks() {
            self.workload.handles.push(Open { file, rank, group: Some(0), collective });
            self.call(rank, What::Open(HandleId(first + rank)));
        }
        Together { first }
    }

    /// All ranks close it.
    pub(super) fn close_together(&mut self, handles: Together) {
        (0..self.ranks()).for_each(|rank| self.call(rank, What::Close(handles.of(rank))));
    }

    /// One rank opens a file through POSIX.
    pub(super) fn open(&mut self, rank: u32, path: &str) -> HandleId {
        let file = self.file(path);
        let handle = HandleId(self.workload.handles.len() as u32);
        self.workload.handles.push(Open { file, rank, group: None, collective: 0 });
        self.call(rank, What::Open(handle));
        handle
    }

    pub(super) fn close(&mut self, rank: u32, handle: HandleId) {
        self.call(rank, What::Close(handle));
    }

    /// What was written to a file is to be durable.
    pub(super) fn sync(&mut self, rank: u32, handle: HandleId) {
        self.call(rank, What::Sync(handle, Call::Fsync));
    }

    /// A POSIX read or write at an offset.
    pub(super) fn request(
        &mut self,
        rank: u32,
        handle: HandleId,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) {
        let call = pick(direction, Call::Pread, Call::Pwrite);
        self.call(rank, What::Request { handle, call, direction, offset, bytes });
    }

    /// An MPI-IO call by which all ranks read or write `positions` of their views, explicitly placed. Every rank has to
    /// make it.
    pub(super) fn collective(
        &mut self,
        rank: u32,
        handles: Together,
        direction: Direction,
        view: ViewId,
        positions: Range<u64>,
    ) {
        let call = pick(direction, Call::MpiFileReadAtAll, Call::MpiFileWriteAtAll);
        let handle = handles.of(rank);
        self.call(rank, What::Access { handle, call, direction, view, positions, collective: true });
    }

    /// An MPI-IO call by which one rank alone reads or writes `positions` of its view, explicitly placed.
    pub(super) fn independent(
        &mut self,
        rank: u32,
        handles: Together,
        direction: Direction,
        view: ViewId,
        positions: Range<u64>,
    ) {
        let call = pick(direction, Call::MpiFileReadAt, Call::MpiFileWriteAt);
        let handle = handles.of(rank);
        self.call(rank, What::Access { handle, call, direction, view, positions, collective: false });
    }

    /// A rank sets its view.
    pub(super) fn set_view(&mut self, rank: u32, handles: Together, view: ViewId) {
        self.call(rank, What::SetView(handles.of(rank), view));
    }

    fn call(&mut self, rank: u32, what: What) {
        let think = std::mem::take(&mut self.think[rank as usize]);
        self.workload.programs[rank as usize].push(Step { think, idle: Duration::ZERO, what });
    }

    fn file(&mut self, path: &str) -> u32 {
        if let Some(file) = self.files.get(path) {
            return *file;
        }
        let file = self.workload.files.len() as u32;
        self.workload.files.push(File { path: path.to_owned() });
        self.files.insert(path.to_owned(), file);
        file
    }
}

fn pick(direction: Direction, read: Call, write: Call) -> Call {
    match direction {
        Direction::Read => read,
        Direction::Write => write,
    }
}

//! Servers that work on the ranks' own cores: a thread for each rank and server, as Pioscope's have one for each connection.
//!
//! A thread does one part of a request after the other, in the order in which they come. How long each takes is processor
//! time of its node: who has a processor when, the one scheduler of that node says.

use std::collections::{BTreeMap, VecDeque};

use super::Part;

/// The threads of all servers. Each has a number behind those of the ranks.
#[derive(Debug)]
pub(crate) struct Threads {
    ranks: u32,
    /// Of each thread: what it is to do; it works on the first.
    parts: Vec<VecDeque<Part>>,
    /// Of each rank: whether it waits for servers.
    asks: Vec<bool>,
    /// How many of a node's ranks do.
    asking: BTreeMap<u32, u32>,
}

impl Threads {
    /// Idle threads of so many servers.
    pub(crate) fn new(ranks: u32, servers: u32) -> Threads {
        let threads = ranks as usize * servers as usize;
        let parts = (0..threads).map(|_| VecDeque::new()).collect();
        Threads { ranks, parts, asks: vec![false; ranks as usize], asking: BTreeMap::new() }
    }

    /// The server of each thread, in the order of their numbers.
    pub(crate) fn servers(&self) -> impl Iterator<Item = u32> {
        let ranks = self.ranks as usize;
        (0..self.parts.len()).map(move |thread| (thread / ranks) as u32)
    }

    /// A rank of a node begins to wait for servers.
    pub(crate) fn begin_asking(&mut self, rank: u32, node: u32) {
        self.asks[rank as usize] = true;
        *self.asking.entry(node).or_default() += 1;
    }

    /// It has all answers.
    pub(crate) fn end_asking(&mut self, rank: u32, node: u32) {
        if std::mem::take(&mut self.asks[rank as usize]) {
            self.asking.entry(node).and_modify(|count| *count -= 1);
        }
    }

    /// How many processors of a node have something to do: a rank and the thread that works for it take turns on one. Given is
    /// who is on processors there.
    pub(crate) fn busy(&self, node: u32, on_processors: impl Iterator<Item = u32>) -> u32 {
        let alone = on_processors.filter(|&one| one < self.ranks && !self.asks[one as usize]).count();
        alone as u32 + self.asking.get(&node).copied().unwrap_or(0)
    }

    /// A part comes. Its thread's number, if that was idle: it is to begin.
    pub(crate) fn take_in(&mut self, part: Part) -> Option<u32> {
        let thread = part.server * self.ranks + part.rank;
        let parts = &mut self.parts[thread as usize];
        parts.push_back(part);
        (parts.len() == 1).then_some(self.ranks + thread)
    }

    /// A thread is through with a part: that one, and what it is to do next.
    pub(crate) fn end(&mut self, number: u32) -> (Option<Part>, Option<Part>) {
        let parts = &mut self.parts[(number - self.ranks) as usize];
        (parts.pop_front(), parts.front().copied())
    }
}

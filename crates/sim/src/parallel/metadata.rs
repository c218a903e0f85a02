//! The metadata servers: which of them has a file, and when it is done with an operation.

use pio_machine::{Duration, Metadata as Costs};

use super::operations::{Operation, Stage, Wanted};
use super::{Message, ParallelFiles, Wake};
use crate::kernel::{Queue, Time};

/// The metadata servers at work: each one operation after the other.
#[derive(Debug)]
pub(super) struct Metadata {
    servers: Vec<Queue>,
    /// Of each file, the server that has its entry.
    of_file: Vec<u32>,
}

impl Metadata {
    /// `paths`: those of all files.
    pub(super) fn new<'a>(costs: &Costs, paths: impl Iterator<Item = &'a str>) -> Metadata {
        let server = |path: &'a str| {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let named = if costs.striped_directories { path } else { directory };
            (hash(named) % u64::from(costs.servers)) as u32
        };
        Metadata {
            of_file: paths.map(server).collect(),
            servers: vec![Queue::default(); costs.servers as usize],
        }
    }

    /// The server that has a file's entry.
    pub(super) fn server_of(&self, file: u32) -> u32 {
        self.of_file[file as usize]
    }

    /// An operation on a file that arrives now, and keeps its server busy for so long: when it is done.
    pub(super) fn serve(&mut self, now: Time, file: u32, service: Duration) -> Time {
        self.servers[self.of_file[file as usize] as usize].serve(now, service).1
    }
}

impl ParallelFiles {
    /// A rank's operation goes to its metadata server, if it takes that any time. Whether it is done at once.
    pub(super) fn ask_metadata(&mut self, rank: u32) -> bool {
        let Some(Operation { node, file, .. }) = self.operations.get(&rank) else { return false };
        let (node, to) = (*node, self.metadata_node(*file));
        if self.metadata_time(rank) > Duration::ZERO {
            self.send(node, to, 0, Message::Metadata(rank));
            return false;
        }
        self.go_to(rank, Stage::End, 0)
    }

    /// A rank's operation is at its metadata server.
    pub(super) fn serve_metadata(&mut self, rank: u32) {
        let (time, Some(operation)) = (self.metadata_time(rank), self.operations.get(&rank)) else { return };
        let done = self.metadata.serve(self.now, operation.file, time);
        self.wake(done, Wake::MetadataDone(rank));
    }

    /// That is done with it.
    pub(super) fn answer_metadata(&mut self, rank: u32) {
        let Some(Operation { node, file, .. }) = self.operations.get(&rank) else { return };
        let (from, to) = (self.metadata_node(*file), *node);
        self.send(from, to, 0, Message::MetadataAnswer(rank));
    }

    /// How long it keeps the server busy.
    fn metadata_time(&self, rank: u32) -> Duration {
        let costs = &self.costs.metadata;
        match self.operations.get(&rank).map(|operation| &operation.wanted) {
            Some(Wanted::Open { makes: true }) => costs.open.saturating_add(costs.create),
            Some(Wanted::Open { makes: false }) => costs.open,
            Some(Wanted::Close) => costs.close,
            Some(Wanted::Resize) => costs.resize,
            Some(Wanted::Lock) => costs.lock,
            Some(Wanted::Name(naming)) => naming.of_both(costs.stat, costs.unlink).unwrap_or(Duration::ZERO),
            _ => Duration::ZERO,
        }
    }

    fn metadata_node(&self, file: u32) -> u32 {
        self.server_nodes[self.metadata.server_of(file) as usize % self.server_nodes.len()]
    }
}

/// A number that depends on a name alone, and is spread evenly: FNV-1a, with its upper half folded into the lower.
fn hash(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, costs, ms};
    use super::*;

    /// When the last of 64 creates of 1 ms is done, milliseconds.
    fn last(costs: &Costs, path: impl Fn(u32) -> String) -> u64 {
        let paths: Vec<String> = (0..64).map(path).collect();
        let mut metadata = Metadata::new(costs, paths.iter().map(String::as_str));
        (0..64).map(|file| metadata.serve(Time(0), file, ms(1)).0 / MS).max().unwrap_or(0)
    }

    #[test]
    fn a_shared_directory_is_on_one_server_unless_it_is_striped() {
        let one = Costs { servers: 4, striped_directories: false, ..costs().metadata };
        assert_eq!(last(&one, |file| format!("/shared/{file}")), 64);
        let spread = |time: u64| (16..=32).contains(&time);
        assert!(
            spread(last(&one, |rank| format!("/own.{rank}/file"))),
            "directories are spread over the servers"
        );
        let striped = Costs { striped_directories: true, ..one };
        assert!(
            spread(last(&striped, |file| format!("/shared/{file}"))),
            "and so are the entries of a striped one"
        );
    }
}

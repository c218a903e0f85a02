//! The nodes of a job: how many there are, what messages between them take, and whether they share a folder.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use pio_machine::{Bandwidth, Link, Machine, Messages, Nodes, Spreads};
use pio_record::mount_of;
use pio_trace::FileSystem;

use crate::benchmark;
use crate::calibrate_job::Launch;
use crate::measured::{Measured, processor_seconds, time};

/// The program that measures: compiled by the user's own `mpicc`.
const PROGRAM: &str = include_str!("../c/messages.c");

const SMALL: u64 = 8;
const BETWEEN: u64 = 64 << 10;
const LARGE: u64 = 4 << 20;
const WRITES: u32 = 20;
/// A message between nodes passes two links of a network whose inside is not known.
const LINKS: f64 = 2.0;

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    messages, network: between the first ranks of two nodes, 8 bytes to 4 MiB, there and back; a message crosses two links.\n\
    network.link.bandwidth: of 4 MiB; with all nodes in pairs at once, if that is slower.\n\
    messages.local-latency: between two ranks of a node, if it has two.";

/// What a job's ranks found.
#[derive(Debug)]
pub(crate) struct Job {
    /// Nodes that have ranks.
    pub nodes: u32,
    /// Whether all of them see what is made in the folder.
    pub is_shared: bool,
    /// Processors of a node that its ranks may use.
    pub processors: u32,
    measured: Measured,
}

/// Starts a job that measures. Files are in `folder`, in which there is room for programs.
///
/// # Errors
/// If the program cannot be compiled, or the job fails.
pub(crate) fn measure(launch: &Launch, folder: &Path) -> Result<Job> {
    read(&benchmark::results_of(launch, "messages", PROGRAM, folder)?)
}

fn read(text: &str) -> Result<Job> {
    let number = |name: &str| -> Result<u32> {
        let word = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let number = word.and_then(|word| word.parse().ok());
        number.with_context(|| format!("the results: expected a line '{name}' with a number"))
    };
    Ok(Job {
        nodes: number("nodes")?,
        is_shared: number("is-seen")? > 0,
        processors: number("processors")?,
        measured: Measured::read(text),
    })
}

impl Job {
    /// Tells a machine's description of its nodes, if there are several, and how sure the numbers are.
    ///
    /// # Errors
    /// If something was not measured.
    pub(crate) fn describe(&self, machine: &mut Machine, spreads: &mut Spreads) -> Result<()> {
        machine.nodes.cores = self.processors;
        if self.nodes < 2 {
            return Ok(());
        }
        let measured = &self.measured;
        let (send, receive) = (measured.of("send", SMALL)?, measured.of("receive", SMALL)?);
        let ends = send.seconds + receive.seconds;
        let within = measured.all("within").find(|number| number.bytes == SMALL);
        machine.nodes = Nodes { count: self.nodes, ..machine.nodes.clone() };
        machine.messages = Messages {
            send: time(send.seconds),
            receive: time(receive.seconds),
            // What a rank is busy with may be more than a whole message takes within a node.
            local_latency: within
                .map_or(machine.messages.local_latency, |within| time(within.seconds - ends)),
        };
        let (small, between, large) = (
            measured.of("between", SMALL)?,
            measured.of("between", BETWEEN)?,
            measured.of("between", LARGE)?,
        );
        let slope = ((large.seconds - between.seconds) / (LARGE - BETWEEN) as f64).max(1e-13);
        let at_once = measured.all("at-once").find(|number| number.bytes == LARGE);
        spreads.forget("messages");
        let link = at_once.unwrap_or(large);
        let numbers = [
            ("messages.send", Some(send)),
            ("messages.receive", Some(receive)),
            ("messages.local-latency", within),
            ("network.link.latency", Some(small)),
            ("network.link.bandwidth", Some(link)),
        ];
        for (key, number) in numbers {
            number.into_iter().for_each(|number| spreads.note(key, number.spread));
        }
        let slower = at_once.map_or(1.0, |at_once| (at_once.seconds / large.seconds).max(1.0));
        machine.network.link = Link {
            latency: time((small.seconds - ends).max(0.0) / LINKS),
            bandwidth: Bandwidth::from_bytes_per_second((1.0 / (slope * slower)) as u64),
        };
        Ok(())
    }
}

/// Whether other hosts may serve the files of a folder: what a process serves (FUSE) may come from anywhere.
pub(crate) fn is_served(folder: &Path) -> bool {
    let kind = folder.canonicalize().ok().and_then(|folder| mount_of(&folder)).map(|mount| mount.kind);
    kind.is_some_and(|kind| kind.starts_with("fuse") || FileSystem { kind, mount: String::new() }.is_remote())
}

/// Whether writes to a folder wait for whoever serves it, and not just for this node's memory.
pub(crate) fn makes_writers_wait(folder: &Path) -> Result<bool> {
    let mut file = tempfile::tempfile_in(folder)?;
    let (start, worked) = (Instant::now(), processor_seconds());
    for _ in 0..WRITES {
        file.write_all(&[1; SMALL as usize])?;
    }
    let took = start.elapsed().as_secs_f64();
    Ok(2.0 * (processor_seconds() - worked) < took)
}

#[cfg(test)]
mod tests {
    use pio_machine::Duration;

    use super::*;

    #[test]
    fn messages_become_ends_and_links() {
        let text = "nodes 4\nranks-a-node 1\nis-seen 1\nprocessors 128\nbetween 8 0.000025 0 0\nbetween 65536 0.0001 0 0\n\
                    between 4194304 0.04138768 0 0\nsend 8 0.000010 0 0\nreceive 8 0.000005 0 0\n";
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        let local = machine.messages.local_latency;
        read(text).unwrap().describe(&mut machine, &mut Spreads::default()).unwrap();
        assert_eq!((machine.nodes.count, machine.messages.local_latency), (4, local));
        assert_eq!(machine.nodes.cores, 128);
        assert_eq!(machine.messages.send.to_string(), "10 us");
        assert_eq!(machine.network.link.latency, Duration::from_picoseconds(5_000_000));
        // What is left of a byte a second is rounding.
        assert!(machine.network.link.bandwidth.bytes_per_second().abs_diff(100_000_000) <= 1);
        let crowded = format!("{text}at-once 4194304 0.08277536 0 0\nwithin 8 0.000016 0 0\n");
        read(&crowded).unwrap().describe(&mut machine, &mut Spreads::default()).unwrap();
        assert!(machine.network.link.bandwidth.bytes_per_second().abs_diff(50_000_000) <= 1);
        assert_eq!(machine.messages.local_latency.to_string(), "1 us");
        let before = machine.clone();
        read("nodes 1\nis-seen 1\nprocessors 128\n")
            .unwrap()
            .describe(&mut machine, &mut Spreads::default())
            .unwrap();
        assert_eq!(machine, before);
    }
}

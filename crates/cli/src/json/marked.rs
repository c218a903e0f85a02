//! What a program marked, and what its files are on, in the object of `pioscope explain --json`.

use pio_explain::{Explanation, MarkedName, MarkedTime, OnFileSystem};
use serde::Serialize;

use super::call_sites::{self, Line};
use super::moved::Moved;
use super::seconds;

/// The files on one file system.
#[derive(Serialize)]
pub(super) struct FileSystem<'e> {
    kind: Option<&'e str>,
    mount: Option<&'e str>,
    file_count: u64,
    largest_bytes: u64,
    open_calls: u64,
    read_calls: u64,
    read_bytes: u64,
    write_calls: u64,
    write_bytes: u64,
    other_calls: u64,
    call_time_s: f64,
}

/// A name of marks or phases.
#[derive(Serialize)]
pub(super) struct Mark<'e> {
    name: &'e str,
    process_count: u64,
    #[serde(flatten)]
    sum: Time<'e>,
    numbers: Vec<Number<'e>>,
    has_more_numbers: bool,
}

/// The phases of a number.
#[derive(Serialize)]
struct Number<'e> {
    number: u64,
    #[serde(flatten)]
    time: Time<'e>,
}

/// Phases, and what went on in them.
#[derive(Serialize)]
struct Time<'e> {
    count: u64,
    time_s: f64,
    longest_s: f64,
    within: Vec<Within<'e>>,
    #[serde(flatten)]
    moved: Moved,
    call_sites: Vec<Line<'e>>,
}

/// The part of phases that was in those of another name.
#[derive(Serialize)]
struct Within<'e> {
    name: &'e str,
    time_s: f64,
}

pub(super) fn file_system(one: &OnFileSystem) -> FileSystem<'_> {
    let traffic = &one.traffic;
    FileSystem {
        kind: one.file_system.as_ref().map(|known| known.kind.as_str()),
        mount: one.file_system.as_ref().map(|known| known.mount.as_str()),
        file_count: one.files,
        largest_bytes: one.largest_bytes,
        open_calls: traffic.open.count,
        read_calls: traffic.read.count,
        read_bytes: traffic.read.bytes,
        write_calls: traffic.write.count,
        write_bytes: traffic.write.bytes,
        other_calls: traffic.other.count,
        call_time_s: traffic.all().time_s(),
    }
}

/// One entry a name.
pub(super) fn marks(found: &Explanation) -> Vec<Mark<'_>> {
    found.marked.names.iter().map(|one| mark(found, one)).collect()
}

fn mark<'e>(found: &'e Explanation, one: &'e MarkedName) -> Mark<'e> {
    Mark {
        name: &one.name,
        process_count: one.processes.len() as u64,
        sum: time(found, &one.sum),
        numbers: one
            .numbers
            .iter()
            .map(|(number, of)| Number { number: *number, time: time(found, of) })
            .collect(),
        has_more_numbers: one.has_more,
    }
}

fn time<'e>(found: &'e Explanation, of: &MarkedTime) -> Time<'e> {
    let within = of.within_ns.iter().filter_map(|(name, ns)| {
        let name = &found.marked.names.get(*name)?.name;
        Some(Within { name, time_s: seconds(*ns) })
    });
    Time {
        count: of.count,
        time_s: seconds(of.time_ns),
        longest_s: seconds(of.longest_ns),
        within: within.collect(),
        moved: Moved::of(&of.moved),
        call_sites: call_sites::of_phase(found, of),
    }
}

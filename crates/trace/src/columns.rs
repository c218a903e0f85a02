//! Events as a table, one row an event: its columns, for whoever writes such a table.

use crate::call::Layer;
use crate::event::{Event, Flags, Target};
use crate::splits::Split;
use crate::tables::{Process, Tables};

/// An event and what it refers to.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its trace's.
    pub tables: &'a Tables,
    /// Where its time went, if it is a collective call of which that is known.
    pub split: Option<Split>,
}

impl<'a> Row<'a> {
    fn process(&self) -> Option<&'a Process> {
        self.tables.processes.get(self.event.process.index())
    }

    fn flag(&self, flag: Flags) -> bool {
        self.event.flags.contains(flag)
    }
}

/// How a column gets its value from a row.
#[derive(Clone, Copy, Debug)]
pub enum Get {
    /// A name; none if the event has no such thing.
    Text(for<'a> fn(&Row<'a>) -> Option<&'a str>),
    /// A number; none if the event has no such thing.
    Unsigned(fn(&Row<'_>) -> Option<u64>),
    /// A number that may be negative.
    Signed(fn(&Row<'_>) -> i64),
    /// Whether it is so.
    Flag(fn(&Row<'_>) -> bool),
}

/// The columns, in order, with their names.
pub const COLUMNS: &[(&str, Get)] = &[
    ("layer", Get::Text(|row| Some(row.event.layer().name()))),
    ("call", Get::Text(|row| Some(row.event.call.name()))),
    ("op", Get::Text(|row| Some(row.event.op().name()))),
    ("process", Get::Unsigned(|row| Some(row.event.process.0.into()))),
    ("rank", Get::Unsigned(|row| row.process()?.rank.map(u64::from))),
    ("host", Get::Text(|row| row.process().map(|process| process.host.as_str()))),
    ("thread", Get::Unsigned(|row| Some(row.event.thread.into()))),
    ("handle", Get::Unsigned(|row| row.event.handle.map(|handle| handle.0.into()))),
    ("file", Get::Text(|row| row.tables.file_of_event(row.event).map(|file| file.path.as_str()))),
    (
        "file_system",
        Get::Text(|row| {
            let file = row.tables.file_id_of_event(row.event)?;
            row.tables.file_system_of(file).map(|file_system| file_system.kind.as_str())
        }),
    ),
    ("other_file", Get::Text(|row| row.tables.other_file_of_event(row.event).map(|file| file.path.as_str()))),
    (
        "offset",
        Get::Unsigned(|row| match row.event.target {
            Target::Extent { offset } | Target::Server { offset, .. } => Some(offset),
            _ => None,
        }),
    ),
    (
        "view",
        Get::Unsigned(|row| match row.event.target {
            Target::View { view, .. } => Some(view.0.into()),
            _ => None,
        }),
    ),
    (
        "position",
        Get::Unsigned(|row| match row.event.target {
            Target::View { position, .. } => Some(position),
            _ => None,
        }),
    ),
    (
        "peer",
        Get::Unsigned(|row| match row.event.target {
            Target::Peer { rank } => Some(rank.into()),
            _ => None,
        }),
    ),
    (
        "server",
        Get::Unsigned(|row| match row.event.target {
            Target::Server { server, .. } => Some(server.into()),
            _ => None,
        }),
    ),
    ("mark", Get::Text(|row| row.tables.mark_of_event(row.event))),
    (
        "number",
        Get::Unsigned(|row| match row.event.target {
            Target::Mark { number, .. } if row.event.layer() == Layer::Mark => Some(number),
            _ => None,
        }),
    ),
    ("code", Get::Text(|row| row.tables.call_site_of_event(row.event).map(|site| site.path))),
    ("line", Get::Unsigned(|row| row.tables.call_site_of_event(row.event).map(|site| site.line))),
    ("function", Get::Text(|row| row.tables.call_site_of_event(row.event).map(|site| site.function))),
    ("library", Get::Text(|row| row.tables.call_site_of_event(row.event)?.library)),
    ("memory", Get::Unsigned(|row| row.event.memory.map(|memory| memory.0.into()))),
    ("size", Get::Unsigned(|row| Some(row.event.size))),
    ("result", Get::Signed(|row| row.event.result)),
    ("start_ns", Get::Unsigned(|row| Some(row.event.start_ns))),
    ("elapsed_ns", Get::Unsigned(|row| Some(row.event.elapsed_ns))),
    ("think_ns", Get::Unsigned(|row| Some(row.event.think_ns))),
    ("used_ns", Get::Unsigned(|row| row.event.used_ns)),
    ("late_ns", Get::Unsigned(|row| row.split.map(|split| split.late_ns))),
    ("library_ns", Get::Unsigned(|row| row.split.map(|split| split.library_ns))),
    ("files_ns", Get::Unsigned(|row| row.split?.files_ns)),
    ("operation", Get::Unsigned(|row| Some(row.event.operation))),
    ("physical", Get::Flag(|row| row.flag(Flags::PHYSICAL))),
    ("collective", Get::Flag(|row| row.flag(Flags::COLLECTIVE))),
    ("async", Get::Flag(|row| row.flag(Flags::ASYNC))),
    ("append", Get::Flag(|row| row.flag(Flags::APPEND))),
    ("unfinished", Get::Flag(|row| row.flag(Flags::UNFINISHED))),
];

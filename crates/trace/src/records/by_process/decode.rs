//! Bytes to events.

use super::super::columns::{Column, ColumnReader};
use super::super::shape::{Shape, TargetKind, id_below};
use super::super::{expected, header};
use super::model::Model;
use super::numbering::{FirstHandles, Views};
use crate::block_events::BlockEvents;
use crate::event::{Event, Target};
use crate::format::BlockHeader;
use crate::tables::{ProcessId, Tables};

/// Decodes the events of a block; or says what was expected instead. Every id in them is in `tables`.
pub(crate) fn decode(
    raw: &[u8],
    block: &BlockHeader,
    tables: &Tables,
    handles: &FirstHandles,
    to: &mut BlockEvents,
) -> Result<(), String> {
    let count = block.count as usize;
    let (headers, mut columns) = ColumnReader::split(raw, count).ok_or("columns that fill their block")?;
    let step = columns.take(Column::Process).ok_or("a step of views")?;
    let mut decoder = Decoder {
        model: Model::new(block.first_start_ns),
        columns,
        tables,
        handles,
        views: Views { step },
        process: None,
    };
    // `count` is at most the number of header bytes, and that at most the format's limit.
    to.clear();
    to.events.reserve(count);
    let mut starts_ns = Vec::with_capacity(count);
    let (mut first_start_ns, mut last_start_ns, mut end_ns) = (u64::MAX, 0, 0);
    for (i, &flags) in headers.iter().enumerate() {
        let event = decoder.next(flags).map_err(|expected| format!("{expected} in event {i} of a block"))?;
        first_start_ns = first_start_ns.min(event.start_ns);
        last_start_ns = last_start_ns.max(event.start_ns);
        end_ns = end_ns.max(event.end_ns());
        // None starts before the block, as is made sure of below.
        starts_ns.push(event.start_ns.wrapping_sub(block.first_start_ns));
        to.events.push(event);
    }
    if !decoder.columns.is_empty() {
        return Err(format!("nothing after the {count} events of a block"));
    }
    if (first_start_ns, last_start_ns, end_ns) != (block.first_start_ns, block.last_start_ns, block.end_ns) {
        return Err("events in the time range that their block names".into());
    }
    to.are_by_process(starts_ns);
    Ok(())
}

struct Decoder<'a> {
    model: Model,
    columns: ColumnReader<'a>,
    tables: &'a Tables,
    handles: &'a FirstHandles,
    views: Views,
    process: Option<ProcessId>,
}

impl Decoder<'_> {
    #[inline]
    fn next(&mut self, flags: u8) -> Result<Event, &'static str> {
        let process = match self.process.filter(|_| flags & header::PROCESS != 0) {
            Some(process) => process,
            None => self.take_process()?,
        };
        let index = if flags & header::SHAPE != 0 { self.model.next_shape() } else { self.take_shape()? };
        let shape = *self.model.shape(index).ok_or("a shape")?;
        let numbers = expected::take(&self.model, &mut self.columns, flags, index)?;
        let used_ns = expected::take_used(&mut self.columns, &shape, numbers.elapsed_ns)?;
        let event = Event {
            handle: self.handles.handle(shape.handle, process, self.tables)?,
            target: self.target(&shape, process, numbers.place)?,
            used_ns,
            ..shape.event(process, &numbers)
        };
        self.model.update(index, &numbers);
        Ok(event)
    }

    fn take_process(&mut self) -> Result<ProcessId, &'static str> {
        let further = self.columns.take(Column::Process).ok_or("a process")?;
        let least = self.process.map_or(0, |latest| u64::from(latest.0) + 1);
        let id = further.checked_add(least).and_then(|id| id_below(id, self.tables.processes.len()));
        let process = ProcessId(id.ok_or("a process of the tables")?);
        self.process = Some(process);
        self.model.begin_process();
        Ok(process)
    }

    fn take_shape(&mut self) -> Result<u32, &'static str> {
        let index = self.columns.take(Column::Shape).ok_or("the number of a shape")?;
        let known = self.model.shape_count() as u64;
        if index < known {
            return Ok(index as u32);
        }
        if index > known {
            return Err("the number of a shape or the next one");
        }
        let shape = Shape::take(&mut self.columns, self.tables)?;
        Ok(self.model.add_shape(shape))
    }

    #[inline]
    fn target(&self, shape: &Shape, process: ProcessId, place: u64) -> Result<Target, &'static str> {
        match shape.target {
            TargetKind::View(number) => {
                let view = self.views.view(number, process, self.tables)?;
                Ok(Target::View { view, position: place })
            }
            other => other.at(place, self.tables),
        }
    }
}

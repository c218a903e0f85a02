//! Bytes to events.

use super::super::columns::{Column, ColumnReader};
use super::super::shape::{Shape, TargetKind, id_below};
use super::super::{expected, header};
use super::model::{Model, NONE};
use crate::event::{Event, Target};
use crate::format::BlockHeader;
use crate::tables::{HandleId, ProcessId, Tables, ViewId};

/// Appends the events of a block, or says what was expected instead. Every id in them is in `tables`.
pub(crate) fn decode(
    raw: &[u8],
    block: &BlockHeader,
    tables: &Tables,
    events: &mut Vec<Event>,
) -> Result<(), String> {
    let count = block.count as usize;
    let (headers, columns) = ColumnReader::split(raw, count).ok_or("columns that fill their block")?;
    let mut decoder = Decoder { model: Model::new(block.first_start_ns), columns, tables };
    // `count` is at most the number of header bytes, and that at most the format's limit.
    events.reserve(count);
    let first = events.len();
    let mut end_ns = 0;
    for (i, &flags) in headers.iter().enumerate() {
        let event = decoder.next(flags).map_err(|expected| format!("{expected} in event {i} of a block"))?;
        end_ns = end_ns.max(event.end_ns());
        events.push(event);
    }
    if !decoder.columns.is_empty() {
        return Err(format!("nothing after the {count} events of a block"));
    }
    let first_start_ns = events.get(first).map_or(0, |event| event.start_ns);
    if (first_start_ns, decoder.model.start_ns, end_ns)
        != (block.first_start_ns, block.last_start_ns, block.end_ns)
    {
        return Err("events in the time range that their block names".into());
    }
    Ok(())
}

struct Decoder<'a> {
    model: Model,
    columns: ColumnReader<'a>,
    tables: &'a Tables,
}

impl Decoder<'_> {
    #[inline]
    fn next(&mut self, flags: u8) -> Result<Event, &'static str> {
        let process =
            if flags & header::PROCESS != 0 { self.model.next_process() } else { self.take_process()? };
        if process == NONE {
            return Err("a process");
        }
        let shape = if flags & header::SHAPE != 0 {
            self.model.next_shape(process)
        } else {
            self.take_shape(process)?
        };
        if shape == NONE {
            return Err("a shape");
        }
        let numbers = expected::take(&self.model, &mut self.columns, flags, shape)?;
        let of = self.model.shapes[shape as usize].shape;
        let used_ns = expected::take_used(&mut self.columns, &of, numbers.elapsed_ns)?;
        let event = Event {
            handle: handle(of.handle, self.tables)?,
            target: self.target(&of, numbers.place)?,
            used_ns,
            ..of.event(self.model.processes[process as usize].id, &numbers)
        };
        self.model.update(process, shape, &numbers);
        Ok(event)
    }

    fn take_process(&mut self) -> Result<u32, &'static str> {
        let slot = self.columns.take(Column::Process).ok_or("the number of a process")?;
        let known = self.model.processes.len() as u64;
        if slot < known {
            return Ok(slot as u32);
        }
        if slot > known {
            return Err("the number of a process or the next one");
        }
        let id = self.columns.take(Column::Process).ok_or("the id of a process")?;
        let id = id_below(id, self.tables.processes.len()).ok_or("a process of the tables")?;
        Ok(self.model.add_process(ProcessId(id)))
    }

    fn take_shape(&mut self, process: u32) -> Result<u32, &'static str> {
        let in_process = self.columns.take(Column::Shape).ok_or("the number of a shape")?;
        let known = &self.model.processes[process as usize].shapes;
        if in_process < known.len() as u64 {
            return Ok(known[in_process as usize]);
        }
        if in_process > known.len() as u64 {
            return Err("the number of a shape or the next one");
        }
        let shape = Shape::take(&mut self.columns, self.tables)?;
        handle(shape.handle, self.tables)?;
        if let TargetKind::View(id) = shape.target {
            id_below(id, self.tables.views.len()).ok_or("a view of the tables")?;
        }
        Ok(self.model.add_shape(process, shape))
    }

    /// What `take_shape` checked.
    #[inline]
    fn target(&self, shape: &Shape, place: u64) -> Result<Target, &'static str> {
        match shape.target {
            TargetKind::View(id) => Ok(Target::View { view: ViewId(id as u32), position: place }),
            other => other.at(place, self.tables),
        }
    }
}

/// A handle of the tables: none for 0, else one more than its id.
fn handle(number: u64, tables: &Tables) -> Result<Option<HandleId>, &'static str> {
    let Some(id) = number.checked_sub(1) else { return Ok(None) };
    Ok(Some(HandleId(id_below(id, tables.handles.len()).ok_or("a handle of the tables")?)))
}

//! Bytes to events.

use super::columns::{Column, ColumnReader};
use super::header;
use super::model::{Model, NONE, Numbers, SAYS_USED, Shape, TargetKind, place_unit};
use crate::call::Call;
use crate::event::{Event, Flags, Target};
use crate::format::BlockHeader;
use crate::tables::{DatatypeId, FileId, HandleId, MarkNameId, ProcessId, Tables, ViewId};

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
        let numbers = self.take_numbers(flags, process, shape)?;
        let of = self.model.shapes[shape as usize].shape;
        let used_ns = if of.says_used { Some(self.take_used(numbers.elapsed_ns)?) } else { None };
        let event = Event {
            call: of.call,
            process: self.model.processes[process as usize].id,
            thread: of.thread,
            handle: of.handle,
            target: target(of.target, numbers.place, self.tables)?,
            memory: of.memory,
            size: numbers.size,
            result: numbers.result,
            start_ns: numbers.start_ns,
            elapsed_ns: numbers.elapsed_ns,
            think_ns: numbers.think_ns,
            used_ns,
            flags: Flags::from_bits(of.flags),
            operation: numbers.operation,
        };
        self.model.update(process, shape, &numbers);
        Ok(event)
    }

    fn take_used(&mut self, elapsed_ns: u64) -> Result<u64, &'static str> {
        let unused_ns = self.columns.take_signed(Column::Used).ok_or("a CPU time")?;
        Ok(elapsed_ns.wrapping_sub(unused_ns as u64))
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
        let shape = take_shape_definition(&mut self.columns, self.tables)?;
        Ok(self.model.add_shape(process, shape))
    }

    #[inline]
    fn take_numbers(&mut self, flags: u8, process: u32, shape: u32) -> Result<Numbers, &'static str> {
        let Decoder { model, columns, .. } = self;
        let size = if flags & header::SIZE != 0 {
            model.size(shape)
        } else {
            columns.take(Column::Size).ok_or("a size")?
        };
        let place = if flags & header::PLACE != 0 {
            model.place(shape)
        } else {
            let unit = place_unit(size);
            let units = columns.take_signed(Column::Place).ok_or("a place")?;
            let rest =
                if unit > 1 { columns.take(Column::PlaceRest).ok_or("the rest of a place")? } else { 0 };
            let difference = units.wrapping_mul(unit) as u64;
            model.place_base(shape).wrapping_add(difference).wrapping_add(rest)
        };
        let result = if flags & header::RESULT != 0 {
            model.result(shape, size)
        } else {
            columns.take_signed(Column::Result).ok_or("a result")?
        };
        let after_base = columns.take_signed(Column::Start).ok_or("a start")? as u64;
        let start_ns = model.start_base(shape).wrapping_add(after_base);
        if start_ns < model.start_ns {
            return Err("a start no earlier than the previous one");
        }
        let elapsed_ns = if flags & header::ELAPSED != 0 {
            model.elapsed(shape)
        } else {
            columns.take(Column::Elapsed).ok_or("an elapsed time")?
        };
        let think_ns = if flags & header::THINK != 0 {
            model.think(shape)
        } else {
            let difference = columns.take_signed(Column::Think).ok_or("a think time")?;
            after_base.wrapping_sub(difference as u64)
        };
        let operation = if flags & header::OPERATION != 0 {
            model.operation(process, shape)
        } else {
            let difference = columns.take_signed(Column::Operation).ok_or("an operation")?;
            model.operation_base(process).wrapping_add(difference as u64)
        };
        Ok(Numbers { place, size, result, start_ns, elapsed_ns, think_ns, operation })
    }
}

#[inline]
fn target(kind: TargetKind, place: u64, tables: &Tables) -> Result<Target, &'static str> {
    Ok(match kind {
        TargetKind::None if place == 0 => Target::None,
        TargetKind::None => return Err("no place"),
        TargetKind::Extent => Target::Extent { offset: place },
        TargetKind::View(view) => Target::View { view, position: place },
        TargetKind::Peer => Target::Peer { rank: u32::try_from(place).map_err(|_| "a rank of 32 bits")? },
        TargetKind::Server(server) => Target::Server { server, offset: place },
        TargetKind::Name(other) => Target::Name { file: file(place, tables)?, other },
        TargetKind::Mark(name) => Target::Mark { name, number: place },
    })
}

fn take_shape_definition(columns: &mut ColumnReader<'_>, tables: &Tables) -> Result<Shape, &'static str> {
    let mut take = |what| columns.take(Column::Shape).ok_or(what);
    let call = u16::try_from(take("a call")?).ok().and_then(Call::from_number).ok_or("a known call")?;
    let thread = u32::try_from(take("a thread")?).map_err(|_| "a thread of 32 bits")?;
    let handle = match take("a handle")? {
        0 => None,
        above => Some(HandleId(id_below(above - 1, tables.handles.len()).ok_or("a handle of the tables")?)),
    };
    let target = match take("the kind of a target")? {
        0 => TargetKind::None,
        1 => TargetKind::Extent,
        2 => TargetKind::View(ViewId(
            id_below(take("a view")?, tables.views.len()).ok_or("a view of the tables")?,
        )),
        3 => TargetKind::Peer,
        4 => TargetKind::Name(None),
        5 => TargetKind::Name(Some(file(take("a second name")?, tables)?)),
        6 => TargetKind::Server(u32::try_from(take("a server")?).map_err(|_| "a server of 32 bits")?),
        7 => TargetKind::Mark(MarkNameId(
            id_below(take("the name of a mark")?, tables.mark_names.len()).ok_or("a name of the tables")?,
        )),
        _ => return Err("a known kind of target"),
    };
    let memory = match take("a memory datatype")? {
        0 => None,
        above => {
            let id = id_below(above - 1, tables.datatypes.len()).ok_or("a datatype of the tables")?;
            Some(DatatypeId(id))
        }
    };
    let flags = take("flags")?;
    let says_used = flags & SAYS_USED != 0;
    let flags = u8::try_from(flags & !SAYS_USED).map_err(|_| "known flags")?;
    Ok(Shape { call, thread, handle, target, memory, flags, says_used })
}

fn file(id: u64, tables: &Tables) -> Result<FileId, &'static str> {
    id_below(id, tables.files.len()).map(FileId).ok_or("a file of the tables")
}

/// The id, if the table of `len` entries has it.
fn id_below(id: u64, len: usize) -> Option<u32> {
    if id < len as u64 { u32::try_from(id).ok() } else { None }
}

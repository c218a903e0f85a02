//! Events to bytes.

use std::collections::HashMap;

use super::columns::{Column, Columns};
use super::header;
use super::model::{Model, NONE, Numbers, SAYS_USED, Shape, TargetKind, place_of, place_unit};
use crate::event::Event;
use crate::tables::ProcessId;

/// Collects the events of a block.
pub(crate) struct Encoder {
    model: Model,
    process_of: HashMap<ProcessId, u32>,
    shape_of: HashMap<(u32, Shape), Known>,
    headers: Vec<u8>,
    columns: Columns,
    first_start_ns: u64,
    end_ns: u64,
}

/// Where a shape stands among all the block's shapes, and among its process's.
#[derive(Clone, Copy)]
struct Known {
    index: u32,
    in_process: u32,
}

impl Encoder {
    /// An encoder without events.
    pub(crate) fn new() -> Encoder {
        Encoder {
            model: Model::new(0),
            process_of: HashMap::new(),
            shape_of: HashMap::new(),
            headers: Vec::new(),
            columns: Columns::default(),
            first_start_ns: 0,
            end_ns: 0,
        }
    }

    /// How many events it holds.
    pub(crate) fn count(&self) -> usize {
        self.headers.len()
    }

    /// How many bytes they take so far.
    pub(crate) fn raw_len(&self) -> usize {
        self.headers.len() + self.columns.len()
    }

    /// Start of the first event.
    pub(crate) fn first_start_ns(&self) -> u64 {
        self.first_start_ns
    }

    /// Start of the last event.
    pub(crate) fn last_start_ns(&self) -> u64 {
        self.model.start_ns
    }

    /// Latest return of any event.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Appends the payload to `out` and starts a new block.
    pub(crate) fn drain_to(&mut self, out: &mut Vec<u8>) {
        self.columns.drain_to(&mut self.headers, out);
        self.process_of.clear();
        self.shape_of.clear();
    }

    /// Adds an event that starts no earlier than the last one.
    ///
    /// `check` is asked about every process and shape that the block has not seen yet; if it refuses, nothing is added.
    pub(crate) fn push<E>(
        &mut self,
        event: &Event,
        check: impl FnOnce(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let shape = Shape::of(event);
        if self.count() == 0 {
            check(event)?;
            self.model = Model::new(event.start_ns);
            self.first_start_ns = event.start_ns;
            self.end_ns = 0;
        } else if !self.knows(event.process, shape) {
            check(event)?;
        }
        let mut flags = 0;
        let process = self.put_process(event.process, &mut flags);
        let shape = self.put_shape(process, shape, &mut flags);
        self.put_numbers(event, process, shape, &mut flags);
        self.headers.push(flags);
        self.end_ns = self.end_ns.max(event.end_ns());
        Ok(())
    }

    fn knows(&self, process: ProcessId, shape: Shape) -> bool {
        let Some(process) = self.slot(process) else { return false };
        let expected = self.model.next_shape(process);
        self.model.shapes.get(expected as usize).is_some_and(|state| state.shape == shape)
            || self.shape_of.contains_key(&(process, shape))
    }

    /// The process's number in this block.
    fn slot(&self, id: ProcessId) -> Option<u32> {
        let expected = self.model.next_process();
        match self.model.processes.get(expected as usize) {
            Some(process) if process.id == id => Some(expected),
            _ => self.process_of.get(&id).copied(),
        }
    }

    fn put_process(&mut self, id: ProcessId, flags: &mut u8) -> u32 {
        let expected = self.model.next_process();
        if self.model.processes.get(expected as usize).is_some_and(|process| process.id == id) {
            *flags |= header::PROCESS;
            return expected;
        }
        if let Some(&slot) = self.process_of.get(&id) {
            self.columns.put(Column::Process, u64::from(slot));
            return slot;
        }
        let slot = self.model.add_process(id);
        self.process_of.insert(id, slot);
        self.columns.put(Column::Process, u64::from(slot));
        self.columns.put(Column::Process, u64::from(id.0));
        slot
    }

    fn put_shape(&mut self, process: u32, shape: Shape, flags: &mut u8) -> u32 {
        let expected = self.model.next_shape(process);
        if expected != NONE && self.model.shapes[expected as usize].shape == shape {
            *flags |= header::SHAPE;
            return expected;
        }
        if let Some(known) = self.shape_of.get(&(process, shape)) {
            self.columns.put(Column::Shape, u64::from(known.in_process));
            return known.index;
        }
        let in_process = self.model.processes[process as usize].shapes.len() as u32;
        let index = self.model.add_shape(process, shape);
        self.shape_of.insert((process, shape), Known { index, in_process });
        self.columns.put(Column::Shape, u64::from(in_process));
        put_shape_definition(&mut self.columns, &shape);
        index
    }

    #[inline]
    fn put_numbers(&mut self, event: &Event, process: u32, shape: u32, flags: &mut u8) {
        let numbers = Numbers {
            place: place_of(&event.target),
            size: event.size,
            result: event.result,
            start_ns: event.start_ns,
            elapsed_ns: event.elapsed_ns,
            think_ns: event.think_ns,
            operation: event.operation,
        };
        let Encoder { model, columns, .. } = self;
        if numbers.size == model.size(shape) {
            *flags |= header::SIZE;
        } else {
            columns.put(Column::Size, numbers.size);
        }
        if numbers.place == model.place(shape) {
            *flags |= header::PLACE;
        } else {
            let difference = numbers.place.wrapping_sub(model.place_base(shape)) as i64;
            let unit = place_unit(numbers.size);
            columns.put_signed(Column::Place, difference.div_euclid(unit));
            if unit > 1 {
                columns.put(Column::PlaceRest, difference.rem_euclid(unit) as u64);
            }
        }
        if numbers.result == model.result(shape, numbers.size) {
            *flags |= header::RESULT;
        } else {
            columns.put_signed(Column::Result, numbers.result);
        }
        let after_base = numbers.start_ns.wrapping_sub(model.start_base(shape));
        columns.put_signed(Column::Start, after_base as i64);
        if numbers.elapsed_ns == model.elapsed(shape) {
            *flags |= header::ELAPSED;
        } else {
            columns.put(Column::Elapsed, numbers.elapsed_ns);
        }
        // A thread that did nothing but think: a column of zeros is smaller than a flag that says by chance that it
        // thought as long as the last time.
        let overhead = after_base.wrapping_sub(numbers.think_ns) as i64;
        if numbers.think_ns == model.think(shape) && overhead != 0 {
            *flags |= header::THINK;
        } else {
            columns.put_signed(Column::Think, overhead);
        }
        if let Some(used_ns) = event.used_ns {
            columns.put_signed(Column::Used, event.elapsed_ns.wrapping_sub(used_ns) as i64);
        }
        if numbers.operation == model.operation(process, shape) {
            *flags |= header::OPERATION;
        } else {
            let difference = numbers.operation.wrapping_sub(model.operation_base(process)) as i64;
            columns.put_signed(Column::Operation, difference);
        }
        model.update(process, shape, &numbers);
    }
}

fn put_shape_definition(columns: &mut Columns, shape: &Shape) {
    let mut put = |value| columns.put(Column::Shape, value);
    put(u64::from(shape.call.number()));
    put(u64::from(shape.thread));
    put(shape.handle.map_or(0, |handle| u64::from(handle.0) + 1));
    match shape.target {
        TargetKind::None => put(0),
        TargetKind::Extent => put(1),
        TargetKind::View(view) => {
            put(2);
            put(u64::from(view.0));
        }
        TargetKind::Peer => put(3),
        TargetKind::Name(None) => put(4),
        TargetKind::Name(Some(other)) => {
            put(5);
            put(u64::from(other.0));
        }
        TargetKind::Server(server) => {
            put(6);
            put(u64::from(server));
        }
        TargetKind::Mark(name) => {
            put(7);
            put(u64::from(name.0));
        }
    }
    put(shape.memory.map_or(0, |memory| u64::from(memory.0) + 1));
    put(u64::from(shape.flags) | if shape.says_used { SAYS_USED } else { 0 });
}

//! What is known of the events of a block so far, and what is expected of the next.

use std::collections::HashMap;

use super::super::expected::Expected;
use super::super::shape::{Numbers, OperationRule, ResultRule, Shape, place_unit};
use crate::tables::ProcessId;

/// Index of nothing.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of a shape that occurred.
pub(super) struct ShapeState {
    pub(super) shape: Shape,
    process: u32,
    stream: u32,
    lane: u32,
    /// The shape that followed it in its process the last time.
    next: u32,
    size: u64,
    result: ResultRule,
    elapsed_ns: u64,
    think_ns: u64,
    operation: OperationRule,
}

/// What is known of a process that occurred.
pub(super) struct ProcessState {
    pub(super) id: ProcessId,
    /// The process that followed it the last time.
    next: u32,
    /// Its shapes, as indices of all the block's shapes.
    pub(super) shapes: Vec<u32>,
    last_shape: u32,
    operation: u64,
}

/// The accesses of a process through a handle, in its own coordinates (bytes of the file, data of the view, ranks).
#[derive(Clone, Copy, Default)]
struct Stream {
    /// Where the last one ended.
    end: u64,
    /// How far behind the end of its predecessor it began (wrapping).
    gap: u64,
}

/// A thread's time line: when it was last seen to be free, in the program and below a call of an upper layer.
#[derive(Clone, Copy)]
struct Lane {
    logical_ns: u64,
    physical_ns: u64,
}

/// The events of a block so far.
pub(super) struct Model {
    pub(super) processes: Vec<ProcessState>,
    pub(super) shapes: Vec<ShapeState>,
    streams: Vec<Stream>,
    lanes: Vec<Lane>,
    stream_of: HashMap<(u32, u64, u8), u32>,
    lane_of: HashMap<(u32, u32), u32>,
    /// The process of the last event.
    pub(super) process: u32,
    /// The start of the last event.
    pub(super) start_ns: u64,
}

impl Model {
    /// A model for a block whose first event starts at `first_start_ns`.
    pub(super) fn new(first_start_ns: u64) -> Model {
        Model {
            processes: Vec::new(),
            shapes: Vec::new(),
            streams: Vec::new(),
            lanes: Vec::new(),
            stream_of: HashMap::new(),
            lane_of: HashMap::new(),
            process: NONE,
            start_ns: first_start_ns,
        }
    }

    /// The process expected next, if any is.
    pub(super) fn next_process(&self) -> u32 {
        self.processes.get(self.process as usize).map_or(NONE, |process| process.next)
    }

    /// Takes note of a process that occurs for the first time.
    pub(super) fn add_process(&mut self, id: ProcessId) -> u32 {
        let slot = self.processes.len() as u32;
        let state = ProcessState { id, next: slot, shapes: Vec::new(), last_shape: NONE, operation: 0 };
        self.processes.push(state);
        slot
    }

    /// The shape expected next of a process, if any is.
    pub(super) fn next_shape(&self, process: u32) -> u32 {
        let last = self.processes[process as usize].last_shape;
        self.shapes.get(last as usize).map_or(NONE, |shape| shape.next)
    }

    /// Takes note of a shape that occurs for the first time in a process.
    pub(super) fn add_shape(&mut self, process: u32, shape: Shape) -> u32 {
        let stream =
            *self.stream_of.entry((process, shape.handle, shape.target.number())).or_insert_with(|| {
                self.streams.push(Stream::default());
                self.streams.len() as u32 - 1
            });
        let lane = *self.lane_of.entry((process, shape.thread)).or_insert_with(|| {
            self.lanes.push(Lane { logical_ns: self.start_ns, physical_ns: self.start_ns });
            self.lanes.len() as u32 - 1
        });
        let index = self.shapes.len() as u32;
        self.processes[process as usize].shapes.push(index);
        self.shapes.push(ShapeState {
            shape,
            process,
            stream,
            lane,
            next: index,
            size: 0,
            result: ResultRule::at_first(&shape),
            elapsed_ns: 0,
            think_ns: 0,
            operation: OperationRule::IsZero,
        });
        index
    }

    /// Learns from an event.
    #[inline]
    pub(super) fn update(&mut self, process: u32, shape: u32, numbers: &Numbers) {
        if let Some(previous) = self.processes.get_mut(self.process as usize) {
            previous.next = process;
        }
        let process_state = &mut self.processes[process as usize];
        if let Some(previous) = self.shapes.get_mut(process_state.last_shape as usize) {
            previous.next = shape;
        }
        process_state.last_shape = shape;

        let state = &mut self.shapes[shape as usize];
        state.size = numbers.size;
        state.elapsed_ns = numbers.elapsed_ns;
        state.think_ns = numbers.think_ns;
        state.result = ResultRule::after(&state.shape, numbers);
        state.operation = match numbers.operation {
            0 => OperationRule::IsZero,
            operation => {
                let step = operation.wrapping_sub(process_state.operation);
                process_state.operation = operation;
                OperationRule::StepsBy(step)
            }
        };

        let stream = &mut self.streams[state.stream as usize];
        stream.gap = numbers.place.wrapping_sub(stream.end);
        let moved = state.shape.target.moved(numbers.result);
        stream.end = numbers.place.wrapping_add(moved);

        let lane = &mut self.lanes[state.lane as usize];
        let end_ns = numbers.start_ns.saturating_add(numbers.elapsed_ns);
        if state.shape.is_physical() {
            lane.physical_ns = end_ns;
        } else {
            lane.logical_ns = end_ns;
            // What this call causes starts within it.
            lane.physical_ns = numbers.start_ns;
        }
        self.process = process;
        self.start_ns = numbers.start_ns;
    }

    #[inline]
    fn process_of(&self, shape: u32) -> &ProcessState {
        &self.processes[self.shapes[shape as usize].process as usize]
    }
}

impl Expected for Model {
    #[inline]
    fn place(&self, shape: u32) -> u64 {
        let stream = &self.streams[self.shapes[shape as usize].stream as usize];
        stream.end.wrapping_add(stream.gap)
    }

    #[inline]
    fn place_base(&self, shape: u32) -> u64 {
        self.streams[self.shapes[shape as usize].stream as usize].end
    }

    #[inline]
    fn place_unit(&self, _shape: u32, size: u64) -> i64 {
        place_unit(size)
    }

    #[inline]
    fn size(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].size
    }

    #[inline]
    fn result(&self, shape: u32, size: u64) -> i64 {
        self.shapes[shape as usize].result.expected(size)
    }

    #[inline]
    fn start_base(&self, shape: u32) -> u64 {
        let state = &self.shapes[shape as usize];
        let lane = &self.lanes[state.lane as usize];
        let free_ns = if state.shape.is_physical() { lane.physical_ns } else { lane.logical_ns };
        free_ns.max(self.start_ns)
    }

    #[inline]
    fn least_start_ns(&self) -> u64 {
        self.start_ns
    }

    #[inline]
    fn elapsed(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].elapsed_ns
    }

    #[inline]
    fn think(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].think_ns
    }

    #[inline]
    fn think_base(&self, _shape: u32, after_base: u64) -> u64 {
        after_base
    }

    #[inline]
    fn operation(&self, shape: u32) -> u64 {
        match self.shapes[shape as usize].operation {
            OperationRule::IsZero => 0,
            OperationRule::StepsBy(step) => self.process_of(shape).operation.wrapping_add(step),
        }
    }

    #[inline]
    fn operation_base(&self, shape: u32) -> u64 {
        self.process_of(shape).operation
    }
}

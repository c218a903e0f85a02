//! What encoder and decoder of a block both know of the events so far, and what they expect of the next.

use std::collections::HashMap;

use crate::call::{Call, Op};
use crate::event::{Event, Flags, Target};
use crate::tables::{DatatypeId, FileId, HandleId, MarkNameId, ProcessId, ViewId};

/// Index of nothing.
pub(super) const NONE: u32 = u32::MAX;

/// The part of an event that repeats as a whole: a loop's reads all have one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) call: Call,
    pub(super) thread: u32,
    pub(super) handle: Option<HandleId>,
    pub(super) target: TargetKind,
    pub(super) memory: Option<DatatypeId>,
    pub(super) flags: u8,
    /// Whether column [`Used`](super::columns::Column::Used) has a number for it.
    pub(super) says_used: bool,
}

/// Beside the flags of a shape.
pub(super) const SAYS_USED: u64 = 1 << 8;

/// An event's target without the number in it, the *place*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TargetKind {
    None,
    Extent,
    View(ViewId),
    Peer,
    /// With the number of the server.
    Server(u32),
    /// With the second of two names.
    Name(Option<FileId>),
    /// With the name of the mark.
    Mark(MarkNameId),
}

impl Shape {
    pub(super) fn of(event: &Event) -> Shape {
        let target = match event.target {
            Target::None => TargetKind::None,
            Target::Extent { .. } => TargetKind::Extent,
            Target::View { view, .. } => TargetKind::View(view),
            Target::Peer { .. } => TargetKind::Peer,
            Target::Server { server, .. } => TargetKind::Server(server),
            Target::Name { other, .. } => TargetKind::Name(other),
            Target::Mark { name, .. } => TargetKind::Mark(name),
        };
        let Event { call, thread, handle, memory, flags, used_ns, .. } = *event;
        let says_used = used_ns.is_some();
        Shape { call, thread, handle, target, memory, flags: flags.bits(), says_used }
    }

    /// Whether success means a result equal to the size.
    fn moves_data(&self) -> bool {
        matches!(self.call.op(), Op::Read | Op::Write | Op::Communicate)
    }

    fn is_physical(&self) -> bool {
        self.flags & Flags::PHYSICAL.bits() != 0
    }
}

/// The number in an event's target: offset, position, rank, file or that of a mark; 0 where there is none.
pub(super) fn place_of(target: &Target) -> u64 {
    match *target {
        Target::None => 0,
        Target::Extent { offset } => offset,
        Target::View { position, .. } => position,
        Target::Peer { rank } => u64::from(rank),
        Target::Server { offset, .. } => offset,
        Target::Name { file, .. } => u64::from(file.0),
        Target::Mark { number, .. } => number,
    }
}

/// What explicit places are counted in: programs jump by whole records, so the rest of the division is mostly 0.
#[inline]
pub(super) fn place_unit(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(1).max(1)
}

/// What is known of a shape that occurred.
pub(super) struct ShapeState {
    pub(super) shape: Shape,
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

#[derive(Clone, Copy)]
enum ResultRule {
    IsSize,
    Is(i64),
}

#[derive(Clone, Copy)]
enum OperationRule {
    IsZero,
    StepsBy(u64),
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

/// All but the process and the shape of an event.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) place: u64,
    pub(super) size: u64,
    pub(super) result: i64,
    pub(super) start_ns: u64,
    pub(super) elapsed_ns: u64,
    pub(super) think_ns: u64,
    pub(super) operation: u64,
}

/// The events of a block so far.
pub(super) struct Model {
    pub(super) processes: Vec<ProcessState>,
    pub(super) shapes: Vec<ShapeState>,
    streams: Vec<Stream>,
    lanes: Vec<Lane>,
    stream_of: HashMap<(u32, Option<HandleId>, u8), u32>,
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
        let kind = match shape.target {
            TargetKind::None => 0,
            TargetKind::Extent => 1,
            TargetKind::View(_) => 2,
            TargetKind::Peer => 3,
            TargetKind::Name(_) => 4,
            TargetKind::Server(_) => 5,
            TargetKind::Mark(_) => 6,
        };
        let stream = *self.stream_of.entry((process, shape.handle, kind)).or_insert_with(|| {
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
            stream,
            lane,
            next: index,
            size: 0,
            result: if shape.moves_data() { ResultRule::IsSize } else { ResultRule::Is(0) },
            elapsed_ns: 0,
            think_ns: 0,
            operation: OperationRule::IsZero,
        });
        index
    }

    /// Where the next access is expected.
    #[inline]
    pub(super) fn place(&self, shape: u32) -> u64 {
        let stream = &self.streams[self.shapes[shape as usize].stream as usize];
        stream.end.wrapping_add(stream.gap)
    }

    /// Where the previous access through the same handle ended: explicit places are relative to it.
    #[inline]
    pub(super) fn place_base(&self, shape: u32) -> u64 {
        self.streams[self.shapes[shape as usize].stream as usize].end
    }

    /// The expected size.
    #[inline]
    pub(super) fn size(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].size
    }

    /// The expected result of an event of this size.
    #[inline]
    pub(super) fn result(&self, shape: u32, size: u64) -> i64 {
        match self.shapes[shape as usize].result {
            ResultRule::IsSize => size as i64,
            ResultRule::Is(result) => result,
        }
    }

    /// When the thread is expected to start the next call at the earliest: explicit starts are relative to it.
    #[inline]
    pub(super) fn start_base(&self, shape: u32) -> u64 {
        let state = &self.shapes[shape as usize];
        let lane = &self.lanes[state.lane as usize];
        let free_ns = if state.shape.is_physical() { lane.physical_ns } else { lane.logical_ns };
        free_ns.max(self.start_ns)
    }

    /// The expected elapsed time.
    #[inline]
    pub(super) fn elapsed(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].elapsed_ns
    }

    /// The expected think time.
    #[inline]
    pub(super) fn think(&self, shape: u32) -> u64 {
        self.shapes[shape as usize].think_ns
    }

    /// The expected operation.
    #[inline]
    pub(super) fn operation(&self, process: u32, shape: u32) -> u64 {
        match self.shapes[shape as usize].operation {
            OperationRule::IsZero => 0,
            OperationRule::StepsBy(step) => self.operation_base(process).wrapping_add(step),
        }
    }

    /// The latest operation of a process: explicit operations are relative to it.
    #[inline]
    pub(super) fn operation_base(&self, process: u32) -> u64 {
        self.processes[process as usize].operation
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
        state.result = if state.shape.moves_data() && numbers.result == numbers.size as i64 {
            ResultRule::IsSize
        } else {
            ResultRule::Is(numbers.result)
        };
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
        let moved = match state.shape.target {
            TargetKind::Extent | TargetKind::View(_) | TargetKind::Server(_) => {
                u64::try_from(numbers.result).unwrap_or(0)
            }
            TargetKind::None | TargetKind::Peer | TargetKind::Name(_) | TargetKind::Mark(_) => 0,
        };
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
}

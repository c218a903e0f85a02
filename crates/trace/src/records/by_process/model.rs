//! What encoder and decoder of a block both know of the events so far, and what they expect of the next.
//!
//! Ranks of a job do alike. So what is known of shapes is known of all processes, and a process begins as the one before it
//! began: as far on in its file as that one was beside the one before it.

use std::collections::HashMap;

use super::super::expected::Expected;
use super::super::shape::{Numbers, OperationRule, ResultRule, Shape, place_unit};

/// Index of nothing.
pub(super) const NONE: u32 = u32::MAX;

/// The events of a block so far.
pub(super) struct Model {
    first_start_ns: u64,
    shapes: Vec<ShapeState>,
    streams: Vec<Stream>,
    lanes: Vec<Lane>,
    stream_of: HashMap<(u64, u8), u32>,
    lane_of: HashMap<u32, u32>,
    /// How-many-th process of the block it is, from 1; 0 before the first.
    turn: u32,
    /// The shape of the process's last event.
    last_shape: u32,
    /// The shape of the first event of the process.
    first_shape: u32,
    /// That of the process before.
    first_shape_before: u32,
    /// The start of the process's last event.
    start_ns: u64,
    /// The latest operation of the process; at first, the first one of the process before.
    operation: u64,
    /// The first operation of the process, 0 as long as there is none.
    first_operation: u64,
}

/// What is known of a shape that occurred.
struct ShapeState {
    shape: Shape,
    stream: u32,
    lane: u32,
    /// The shape that followed it in a process the last time.
    next: u32,
    size: u64,
    result: ResultRule,
    elapsed_ns: u64,
    think_ns: u64,
    operation: OperationRule,
}

/// The accesses of each process through one handle, in its own coordinates (bytes of the file, data of the view, ranks).
#[derive(Default)]
struct Stream {
    /// The latest process that has it.
    turn: u32,
    /// Where that process's last access ended.
    end: u64,
    /// How far behind the end of its predecessor the latest access began that had one in its process (wrapping).
    gap: u64,
    /// Where that process's latest access began, and its first one.
    latest: u64,
    first: u64,
    /// How far apart two accesses began that came one after the other, in any process; 0 if that is not forward.
    stride: i64,
    /// How far the first accesses of two processes began apart (wrapping), as if both had come equally far: without whole
    /// strides.
    step: u64,
}

impl Stream {
    /// Learns where an access of a process began.
    fn update(&mut self, turn: u32, place: u64) {
        if self.turn == turn {
            self.gap = place.wrapping_sub(self.end);
            self.stride = (place.wrapping_sub(self.latest) as i64).max(0);
        } else {
            self.turn = turn;
            self.step = self.without_strides(place.wrapping_sub(self.first));
            self.first = place;
        }
        self.latest = place;
    }

    /// What is left of a distance, at most half a stride to either side.
    fn without_strides(&self, distance: u64) -> u64 {
        if self.stride == 0 {
            return distance;
        }
        let rest = (distance as i64).rem_euclid(self.stride);
        let is_nearer_below = rest > self.stride / 2;
        (if is_nearer_below { rest - self.stride } else { rest }) as u64
    }
}

/// A thread's time line: when it was last seen to be free, in the program and below a call of an upper layer.
struct Lane {
    /// The latest process that has it.
    turn: u32,
    logical_ns: u64,
    physical_ns: u64,
}

impl Model {
    /// A model for a block whose first event starts at `first_start_ns`.
    pub(super) fn new(first_start_ns: u64) -> Model {
        Model {
            first_start_ns,
            shapes: Vec::new(),
            streams: Vec::new(),
            lanes: Vec::new(),
            stream_of: HashMap::new(),
            lane_of: HashMap::new(),
            turn: 0,
            last_shape: NONE,
            first_shape: NONE,
            first_shape_before: NONE,
            start_ns: first_start_ns,
            operation: 0,
            first_operation: 0,
        }
    }

    /// The next process begins.
    pub(super) fn begin_process(&mut self) {
        self.turn += 1;
        self.last_shape = NONE;
        self.first_shape_before = self.first_shape;
        self.first_shape = NONE;
        self.start_ns = self.first_start_ns;
        self.operation = self.first_operation;
        self.first_operation = 0;
    }

    /// How many shapes occurred.
    pub(super) fn shape_count(&self) -> usize {
        self.shapes.len()
    }

    /// A shape that occurred.
    #[inline]
    pub(super) fn shape(&self, index: u32) -> Option<&Shape> {
        self.shapes.get(index as usize).map(|state| &state.shape)
    }

    /// The shape expected next, if any is.
    #[inline]
    pub(super) fn next_shape(&self) -> u32 {
        match self.shapes.get(self.last_shape as usize) {
            Some(last) => last.next,
            None => self.first_shape_before,
        }
    }

    /// Takes note of a shape that occurs for the first time.
    pub(super) fn add_shape(&mut self, shape: Shape) -> u32 {
        let stream = *self.stream_of.entry((shape.handle, shape.target.number())).or_insert_with(|| {
            self.streams.push(Stream::default());
            self.streams.len() as u32 - 1
        });
        let lane = *self.lane_of.entry(shape.thread).or_insert_with(|| {
            self.lanes.push(Lane { turn: 0, logical_ns: 0, physical_ns: 0 });
            self.lanes.len() as u32 - 1
        });
        let index = self.shapes.len() as u32;
        self.shapes.push(ShapeState {
            shape,
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

    #[inline]
    fn stream(&self, shape: u32) -> &Stream {
        &self.streams[self.shapes[shape as usize].stream as usize]
    }

    #[inline]
    fn lane(&self, shape: u32) -> &Lane {
        &self.lanes[self.shapes[shape as usize].lane as usize]
    }

    /// Learns from an event.
    #[inline]
    pub(super) fn update(&mut self, shape: u32, numbers: &Numbers) {
        match self.shapes.get_mut(self.last_shape as usize) {
            Some(previous) => previous.next = shape,
            None => self.first_shape = shape,
        }
        self.last_shape = shape;

        let state = &mut self.shapes[shape as usize];
        state.size = numbers.size;
        state.elapsed_ns = numbers.elapsed_ns;
        state.think_ns = numbers.think_ns;
        state.result = ResultRule::after(&state.shape, numbers);
        state.operation = match numbers.operation {
            0 => OperationRule::IsZero,
            operation if self.first_operation == 0 => {
                self.first_operation = operation;
                self.operation = operation;
                // How far it is from another process's says nothing of the next.
                match state.operation {
                    OperationRule::IsZero => OperationRule::StepsBy(0),
                    known => known,
                }
            }
            operation => {
                let step = operation.wrapping_sub(self.operation);
                self.operation = operation;
                OperationRule::StepsBy(step)
            }
        };

        let stream = &mut self.streams[state.stream as usize];
        stream.update(self.turn, numbers.place);
        stream.end = numbers.place.wrapping_add(state.shape.target.moved(numbers.result));

        let lane = &mut self.lanes[state.lane as usize];
        let end_ns = numbers.start_ns.saturating_add(numbers.elapsed_ns);
        if lane.turn != self.turn {
            *lane =
                Lane { turn: self.turn, logical_ns: self.first_start_ns, physical_ns: self.first_start_ns };
        }
        if state.shape.is_physical() {
            lane.physical_ns = end_ns;
        } else {
            lane.logical_ns = end_ns;
            // What this call causes starts within it.
            lane.physical_ns = numbers.start_ns;
        }
        self.start_ns = numbers.start_ns;
    }
}

impl Expected for Model {
    #[inline]
    fn place(&self, shape: u32) -> u64 {
        let stream = self.stream(shape);
        match stream.turn == self.turn {
            true => stream.end.wrapping_add(stream.gap),
            false => stream.first.wrapping_add(stream.step),
        }
    }

    #[inline]
    fn place_base(&self, shape: u32) -> u64 {
        let stream = self.stream(shape);
        match stream.turn == self.turn {
            true => stream.end,
            false => stream.first.wrapping_add(stream.step),
        }
    }

    #[inline]
    fn place_unit(&self, shape: u32, size: u64) -> i64 {
        // A process that has come farther than its neighbour is some strides ahead.
        let stream = self.stream(shape);
        if stream.turn != self.turn && stream.stride > 0 { stream.stride } else { place_unit(size) }
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
        let lane = self.lane(shape);
        let free_ns = match lane.turn == self.turn {
            true if self.shapes[shape as usize].shape.is_physical() => lane.physical_ns,
            true => lane.logical_ns,
            false => self.first_start_ns,
        };
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
    fn think_base(&self, shape: u32, after_base: u64) -> u64 {
        // How long a thread waited for its first call in the block tells nothing.
        match self.lane(shape).turn == self.turn {
            true => after_base,
            false => self.think(shape),
        }
    }

    #[inline]
    fn operation(&self, shape: u32) -> u64 {
        match self.shapes[shape as usize].operation {
            OperationRule::IsZero => 0,
            OperationRule::StepsBy(_) if self.first_operation == 0 => self.operation,
            OperationRule::StepsBy(step) => self.operation.wrapping_add(step),
        }
    }

    #[inline]
    fn operation_base(&self, _shape: u32) -> u64 {
        self.operation
    }
}

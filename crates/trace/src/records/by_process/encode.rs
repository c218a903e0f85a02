//! Events to bytes.

use std::collections::HashMap;

use super::super::columns::{Column, Columns};
use super::super::shape::{Numbers, Shape, place_of};
use super::super::{expected, header};
use super::model::Model;
use super::numbering::{FirstHandles, Views};
use crate::block::TimeRange;
use crate::event::Event;
use crate::tables::{ProcessId, Tables};

/// Collects the events of a block.
#[derive(Default)]
pub(crate) struct Encoder {
    events: Vec<Event>,
    times: TimeRange,
    /// Process and index of each event: the order in which they are written.
    order: Vec<(ProcessId, u32)>,
    headers: Vec<u8>,
    columns: Columns,
}

impl Encoder {
    /// How many events it holds.
    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    /// When they start and end.
    pub(crate) fn times(&self) -> TimeRange {
        self.times
    }

    /// Adds an event that starts no earlier than the last one.
    pub(crate) fn push(&mut self, event: &Event) {
        let end_ns = event.end_ns();
        self.times = match self.events.is_empty() {
            true => TimeRange { first_start_ns: event.start_ns, last_start_ns: event.start_ns, end_ns },
            false => TimeRange {
                last_start_ns: event.start_ns,
                end_ns: self.times.end_ns.max(end_ns),
                ..self.times
            },
        };
        self.events.push(event.clone());
    }

    /// Appends the payload to `out` and starts a new block. What events refer to is in `tables`, and `handles` knows it.
    pub(crate) fn drain_to(&mut self, tables: &Tables, handles: &FirstHandles, out: &mut Vec<u8>) {
        self.order.clear();
        self.order.extend(self.events.iter().zip(0..).map(|(event, index)| (event.process, index)));
        self.order.sort_unstable();
        let views = Views::of(self.order.iter().map(|&(_, index)| &self.events[index as usize]));
        self.columns.put(Column::Process, views.step);
        let mut model = Model::new(self.times.first_start_ns);
        let mut shapes = HashMap::new();
        let mut latest: Option<ProcessId> = None;
        for &(process, index) in &self.order {
            let event = &self.events[index as usize];
            let mut flags = 0;
            if latest == Some(process) {
                flags |= header::PROCESS;
            } else {
                let least = latest.map_or(0, |latest| latest.0 + 1);
                self.columns.put(Column::Process, u64::from(process.0 - least));
                model.begin_process();
                latest = Some(process);
            }
            let shape = Shape::of(event, handles.number(event, tables), views.number(event));
            let expected = model.next_shape();
            let shape = if model.shape(expected) == Some(&shape) {
                flags |= header::SHAPE;
                expected
            } else if let Some(&known) = shapes.get(&shape) {
                self.columns.put(Column::Shape, u64::from(known));
                known
            } else {
                let index = model.add_shape(shape);
                shapes.insert(shape, index);
                self.columns.put(Column::Shape, u64::from(index));
                shape.put(&mut self.columns);
                index
            };
            let numbers = Numbers {
                place: place_of(&event.target),
                size: event.size,
                result: event.result,
                start_ns: event.start_ns,
                elapsed_ns: event.elapsed_ns,
                think_ns: event.think_ns,
                operation: event.operation,
            };
            flags |= expected::put(&model, &mut self.columns, &numbers, shape);
            if let Some(used_ns) = event.used_ns {
                self.columns.put_signed(Column::Used, event.elapsed_ns.wrapping_sub(used_ns) as i64);
            }
            model.update(shape, &numbers);
            self.headers.push(flags);
        }
        self.columns.drain_to(&mut self.headers, out);
        self.events.clear();
    }
}

//! Bytes to events.

use super::super::columns::{Column, ColumnReader};
use super::super::shape::{Shape, TargetKind, id_below};
use super::super::{expected, header};
use super::model::Model;
use super::numbering::{FirstHandles, Views};
use crate::event::{Event, Target};
use crate::format::BlockHeader;
use crate::tables::{ProcessId, Tables};

/// Appends the events of a block in order of start, those that start together in order of process; or says what was expected
/// instead. Every id in them is in `tables`. They are first decoded to `by_process`, whatever that holds.
pub(crate) fn decode(
    raw: &[u8],
    block: &BlockHeader,
    tables: &Tables,
    handles: &FirstHandles,
    by_process: &mut Vec<Event>,
    events: &mut Vec<Event>,
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
    by_process.clear();
    by_process.reserve(count);
    let (mut first_start_ns, mut last_start_ns, mut end_ns) = (u64::MAX, 0, 0);
    for (i, &flags) in headers.iter().enumerate() {
        let event = decoder.next(flags).map_err(|expected| format!("{expected} in event {i} of a block"))?;
        first_start_ns = first_start_ns.min(event.start_ns);
        last_start_ns = last_start_ns.max(event.start_ns);
        end_ns = end_ns.max(event.end_ns());
        by_process.push(event);
    }
    if !decoder.columns.is_empty() {
        return Err(format!("nothing after the {count} events of a block"));
    }
    if (first_start_ns, last_start_ns, end_ns) != (block.first_start_ns, block.last_start_ns, block.end_ns) {
        return Err("events in the time range that their block names".into());
    }
    events.reserve(count);
    // Each is read from where it is, independent of all others: to swap them in place, circle by circle, would need no second
    // room, but wait for memory at each step.
    let order = order_by_start(by_process, first_start_ns, last_start_ns);
    events.extend(order.into_iter().map(|index| by_process[index as usize].clone()));
    Ok(())
}

/// The indices of events in order of their starts; those that start together stay as they lie.
fn order_by_start(events: &[Event], first_ns: u64, last_ns: u64) -> Vec<u32> {
    const DIGITS: usize = 1 << 11;
    let span_ns = last_ns - first_ns;
    let mut keys: Vec<(u64, u32)> = events.iter().map(|event| event.start_ns - first_ns).zip(0..).collect();
    let mut sorted = vec![(0, 0); keys.len()];
    // Digit by digit, the lowest first (radix sort): a block spans little time, so there are few.
    let mut shift = 0;
    while shift < u64::BITS && span_ns >> shift > 0 {
        let digit = |key: u64| (key >> shift) as usize & (DIGITS - 1);
        let mut places = [0_u32; DIGITS];
        keys.iter().for_each(|(key, _)| places[digit(*key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &(key, index) in &keys {
            let place = &mut places[digit(key)];
            sorted[*place as usize] = (key, index);
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut sorted);
        shift += DIGITS.ilog2();
    }
    keys.into_iter().map(|(_, index)| index).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_start_and_then_as_they_lie(
            starts in prop::collection::vec(prop_oneof![0..50_u64, 0..5_000_000_u64, any::<u64>()], 1..200),
        ) {
            let event = |(start_ns, process)| Event::new(Call::Read, ProcessId(process), start_ns);
            let events: Vec<_> = starts.iter().copied().zip(0..).map(event).collect();
            let (first_ns, last_ns) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
            let mut expected: Vec<u32> = (0..events.len() as u32).collect();
            expected.sort_by_key(|&index| starts[index as usize]);
            prop_assert_eq!(order_by_start(&events, *first_ns, *last_ns), expected);
        }
    }
}

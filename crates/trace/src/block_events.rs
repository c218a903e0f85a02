//! The events of a block.
//!
//! Most blocks have them process by process, and who looks at what each process has for itself takes them so: what is known of
//! one of thousands of processes then stays in a processor's cache until its turn is over. All others take them in order of
//! start, some hundred at a time: a whole block in that order would be written to memory and read again, which takes as long as
//! half of the decoding.

use crate::event::Event;

/// Events that are brought into order at a time: as many as a processor's cache holds beside all else.
const AT_A_TIME: usize = 512;

/// The events of a block ([`Trace::read_block`](crate::Trace::read_block)), in memory that is used again for the next one: fresh
/// memory costs as much as half of the decoding.
#[derive(Debug, Default)]
pub struct BlockEvents {
    /// As they lie in the block.
    pub(crate) events: Vec<Event>,
    /// Their indices in order of start; none if they lie in that order.
    order: Vec<u32>,
    is_by_process: bool,
}

impl BlockEvents {
    /// All of them process by process, in order of the processes' ids, those of a process in order of start. None if the block
    /// was not written so (versions 1 to 9 of the format).
    pub fn by_process(&self) -> Option<&[Event]> {
        self.is_by_process.then_some(&self.events)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Gives each in order of start, those that start together in order of process; with its index in
    /// [`by_process`](BlockEvents::by_process).
    #[inline]
    pub fn each_in_order(&self, mut take: impl FnMut(usize, &Event)) {
        if self.order.is_empty() {
            self.events.iter().enumerate().for_each(|(index, event)| take(index, event));
            return;
        }
        // Copies wait for memory together, which whoever looks at one event after the other does not.
        let mut some = Vec::with_capacity(AT_A_TIME);
        for indices in self.order.chunks(AT_A_TIME) {
            some.clear();
            some.extend(indices.iter().map(|&index| self.events[index as usize].clone()));
            indices.iter().zip(&some).for_each(|(&index, event)| take(index as usize, event));
        }
    }

    /// All in order of start.
    pub fn into_order(self) -> Vec<Event> {
        if self.order.is_empty() {
            return self.events;
        }
        self.order.iter().map(|&index| self.events[index as usize].clone()).collect()
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.order.clear();
        self.is_by_process = false;
    }

    /// The events are now there, process by process. Since some time they started so much later, nanoseconds.
    pub(crate) fn are_by_process(&mut self, starts_ns: Vec<u64>) {
        self.is_by_process = true;
        self.order.clear();
        if !starts_ns.is_sorted() {
            order_of(starts_ns, &mut self.order);
        }
    }
}

/// Makes `order` the indices of numbers in order; of those that are the same as they lie.
fn order_of(numbers: Vec<u64>, order: &mut Vec<u32>) {
    const DIGIT_BITS: u32 = 11;
    let index_bits = usize::BITS - numbers.len().leading_zeros();
    let most = numbers.iter().copied().max().unwrap_or(0);
    if most >> (u64::BITS - index_bits) > 0 {
        // Hours between them: few blocks have that.
        order.extend(0..numbers.len() as u32);
        order.sort_by_key(|&index| numbers[index as usize]);
        return;
    }
    // Each with its index below it. Digit by digit, the lowest first (radix sort): a block spans little time, so there are few.
    let mut keys = numbers;
    keys.iter_mut().zip(0..).for_each(|(key, index)| *key = *key << index_bits | index);
    let mut sorted = vec![0; keys.len()];
    let mut shift = index_bits;
    while shift < u64::BITS && most << index_bits >> shift > 0 {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut places = [0_u32; 1 << DIGIT_BITS];
        keys.iter().for_each(|&key| places[digit(key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &key in &keys {
            let place = &mut places[digit(key)];
            sorted[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut sorted);
        shift += DIGIT_BITS;
    }
    let index_of = |key: u64| (key & ((1 << index_bits) - 1)) as u32;
    order.extend(keys.into_iter().map(index_of));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::tables::ProcessId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_start_and_then_as_they_lie(
            starts in prop::collection::vec(prop_oneof![0..50_u64, 0..5_000_000_u64, any::<u64>()], 0..200),
            most in any::<u64>(),
        ) {
            let starts: Vec<u64> = starts.into_iter().filter(|start| *start <= most).collect();
            let event = |(start_ns, process)| Event::new(Call::Read, ProcessId(process), start_ns);
            let mut block = BlockEvents::default();
            block.events.extend(starts.iter().copied().zip(0..).map(event));
            block.are_by_process(starts.clone());
            let mut expected: Vec<usize> = (0..starts.len()).collect();
            expected.sort_by_key(|&index| starts[index]);
            let mut found = Vec::new();
            block.each_in_order(|index, event| {
                assert_eq!(event.process.index(), index);
                found.push(index);
            });
            prop_assert_eq!(&found, &expected);
            let taken: Vec<usize> = block.into_order().iter().map(|event| event.process.index()).collect();
            prop_assert_eq!(taken, expected);
        }

        #[test]
        fn more_events_than_are_brought_into_order_at_a_time(
            starts in prop::collection::vec(0..1000_u64, AT_A_TIME - 1..3 * AT_A_TIME),
        ) {
            let mut block = BlockEvents::default();
            block.events.extend(starts.iter().map(|&start_ns| Event::new(Call::Read, ProcessId(0), start_ns)));
            block.are_by_process(starts);
            let mut found = Vec::new();
            block.each_in_order(|_, event| found.push(event.start_ns));
            prop_assert_eq!(found.len(), block.len());
            prop_assert!(found.is_sorted());
        }
    }
}

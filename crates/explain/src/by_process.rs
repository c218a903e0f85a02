//! Events process by process: what is known of thousands of processes does not fit into a processor's cache, and where each has
//! its turn after the other all of it comes from memory, again and again. What a process has for itself may be looked at in any
//! order of processes.

use pio_trace::Event;

/// The indices of events process by process, each process's as they come. There are so many `processes`; what others did
/// comes last.
pub(crate) fn order(events: &[Event], processes: usize) -> Vec<u32> {
    let of = |event: &Event| event.process.index().min(processes);
    let mut places = vec![0_u32; processes + 1];
    events.iter().for_each(|event| places[of(event)] += 1);
    let mut before = 0;
    for place in &mut places {
        before += std::mem::replace(place, before);
    }
    let mut order = vec![0; events.len()];
    for (event, index) in events.iter().zip(0..) {
        let place = &mut places[of(event)];
        order[*place as usize] = index;
        *place += 1;
    }
    order
}

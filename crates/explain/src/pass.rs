//! The pass over a trace, on as many processors as there are.
//!
//! What is kept falls into parts that know nothing of one another. So one thread reads and decodes, and two others take all
//! events, each for itself: the result does not depend on who is done first. All three have about as much to do, and so
//! keep two processors busy, where nobody waits for the others but when he is some blocks ahead.
//!
//! Events come in order of time, so what is known of each process is needed by turns. Of thousands of processes that is more
//! than a processor's cache holds, and memory is asked for some thirty lines of it at each event. So of a block of many
//! processes what each has for itself is taken process by process: by the totals always, by the evidence where that finds the
//! same ([`Evidence::add_by_process`]).
//!
//! [`Evidence::add_by_process`]: crate::findings::Evidence::add_by_process

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use pio_trace::{Event, Layer, Trace, TraceError};

use crate::accumulator::Accumulator;
use crate::tally::Seen;

/// Blocks that wait for a thread: a few megabytes each.
const WAITING: usize = 1;
/// Blocks in memory: those that wait, one that is looked at, and one that is decoded.
const BLOCKS: usize = WAITING + 2;

/// What is known of fewer processes stays in a processor's cache by itself.
const MANY_PROCESSES: usize = 256;

type Events = Arc<Vec<Event>>;

/// Adds all events. `progress` is told the number of events that are done, now and then.
pub(crate) fn add_all(
    accumulator: &mut Accumulator<'_>,
    trace: &Trace,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let Accumulator { totals, evidence, activity, marks } = accumulator;
    let (to_evidence, for_evidence): (_, Receiver<Events>) = sync_channel(WAITING);
    let (to_totals, for_totals): (_, Receiver<Events>) = sync_channel(WAITING);
    let many = trace.tables().processes.len() >= MANY_PROCESSES;
    thread::scope(|scope| {
        let decoding = scope.spawn(move || decode(trace, &[to_evidence, to_totals]));
        scope.spawn(move || {
            for events in for_evidence {
                events.iter().for_each(|event| marks.add(&Seen::of(event)));
                if many && evidence.add_by_process(&events) {
                    continue;
                }
                for event in events.iter().filter(|event| event.layer() != Layer::Mark) {
                    evidence.add(&Seen::of(event));
                }
            }
        });
        let mut done = 0;
        for events in for_totals {
            if many {
                totals.add_by_process(&events);
            }
            for event in events.iter().filter(|event| event.layer() != Layer::Mark).map(Seen::of) {
                if !many {
                    totals.add(&event);
                }
                activity.add(&event);
            }
            done += events.len() as u64;
            progress(done);
        }
        decoding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads and decodes block after block, into memory that is used again.
fn decode(trace: &Trace, to: &[SyncSender<Events>]) -> Result<(), TraceError> {
    let mut in_use: [Events; BLOCKS] = Default::default();
    let mut spare = Vec::new();
    for index in 0..trace.blocks().len() {
        let used = &mut in_use[index % BLOCKS];
        let mut events = Arc::into_inner(std::mem::take(used)).unwrap_or_default();
        trace.read_block(index, &mut events, &mut spare)?;
        *used = Arc::new(events);
        for thread in to {
            // Nobody is there to take them only if a thread panicked, which ends all.
            let _ = thread.send(Arc::clone(used));
        }
    }
    Ok(())
}

//! The pass over a trace, on as many processors as there are.
//!
//! What is kept falls into parts that know nothing of one another. So one thread reads and decodes, and two others take all
//! events, each for itself: the result does not depend on who is done first. All three have about as much to do, and so
//! keep two processors busy, where nobody waits for the others but when he is some blocks ahead.
//!
//! In order of time, what is known of each process is needed by turns. Of thousands of processes that is more
//! than a processor's cache holds, and memory is asked for some thirty lines of it at each event. So of a block of many
//! processes what each has for itself is taken process by process: by the totals always, by the evidence where that finds the
//! same ([`Evidence::add_by_process`]).
//!
//! [`Evidence::add_by_process`]: crate::findings::Evidence::add_by_process

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use pio_trace::{BlockEvents, Layer, Trace, TraceError};

use crate::accumulator::Accumulator;
use crate::tally::Seen;

/// Blocks that wait for a thread: a few megabytes each.
const WAITING: usize = 1;
/// Blocks in memory: those that wait, one that is looked at, and one that is decoded.
const BLOCKS: usize = WAITING + 2;

/// What is known of fewer processes stays in a processor's cache by itself.
const MANY_PROCESSES: usize = 256;

/// Adds all events. `progress` is told the number of events that are done, now and then.
pub(crate) fn add_all(
    accumulator: &mut Accumulator<'_>,
    trace: &Trace,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let Accumulator { totals, evidence, activity, marks } = accumulator;
    let (to_evidence, for_evidence): (_, Receiver<Arc<BlockEvents>>) = sync_channel(WAITING);
    let (to_totals, for_totals): (_, Receiver<Arc<BlockEvents>>) = sync_channel(WAITING);
    let many = trace.tables().processes.len() >= MANY_PROCESSES;
    thread::scope(|scope| {
        let decoding = scope.spawn(move || decode(trace, &[to_evidence, to_totals]));
        scope.spawn(move || {
            for block in for_evidence {
                let is_done = many && evidence.add_by_process(&block);
                if is_done && !marks.are_any() {
                    continue;
                }
                block.each_in_order(|_, event| {
                    let event = Seen::of(event);
                    marks.add(&event);
                    if !is_done && event.layer() != Layer::Mark {
                        evidence.add(&event);
                    }
                });
            }
        });
        let mut done = 0;
        for block in for_totals {
            let by_process = block.by_process().filter(|_| many);
            block.each_in_order(|_, event| {
                let event = Seen::of(event);
                if event.layer() == Layer::Mark {
                    return;
                }
                match by_process {
                    Some(_) => totals.add_shared(&event),
                    None => totals.add(&event),
                }
                activity.add(&event);
            });
            let counted = by_process.into_iter().flatten().filter(|event| event.layer() != Layer::Mark);
            counted.for_each(|event| totals.add_own(&Seen::of(event)));
            done += block.len() as u64;
            progress(done);
        }
        decoding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads and decodes block after block, into memory that is used again.
fn decode(trace: &Trace, to: &[SyncSender<Arc<BlockEvents>>]) -> Result<(), TraceError> {
    let mut in_use: [Arc<BlockEvents>; BLOCKS] = Default::default();
    for index in 0..trace.blocks().len() {
        let used = &mut in_use[index % BLOCKS];
        let mut block = Arc::into_inner(std::mem::take(used)).unwrap_or_default();
        trace.read_block(index, &mut block)?;
        *used = Arc::new(block);
        for thread in to {
            // Nobody is there to take them only if a thread panicked, which ends all.
            let _ = thread.send(Arc::clone(used));
        }
    }
    Ok(())
}

//! The pass over a trace.
//!
//! What is kept falls into parts that know nothing of one another. So of few processes one thread reads and decodes, and two
//! others take all events, each for itself: the result does not depend on who is done first. All three have about as much to do,
//! and so keep two processors busy, where nobody waits for the others but when he is some blocks ahead.
//!
//! Of thousands of processes a block is many times what a processor's cache holds, and so is what is known of them: threads would
//! wait for the same memory, one behind the other, and take longer in all. So one thread does all with each block
//! ([`Accumulator::add_block`]).

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

/// Of fewer processes two threads are done sooner.
const MANY_PROCESSES: usize = 256;

/// Who takes all blocks of events beside the accumulator: on the thread that decodes them.
pub(crate) type Also<'a> = &'a mut (dyn FnMut(&BlockEvents) + Send);

/// Adds all events, and gives each block to `also`. `progress` is told the number of events that are done, now and then.
pub(crate) fn add_all(
    accumulator: &mut Accumulator<'_>,
    trace: &Trace,
    also: Also<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let mut done = 0;
    let mut count = |block: &BlockEvents| {
        done += block.len() as u64;
        progress(done);
    };
    if trace.tables().processes.len() >= MANY_PROCESSES {
        let mut block = BlockEvents::default();
        for index in 0..trace.blocks().len() {
            trace.read_block(index, &mut block)?;
            also(&block);
            accumulator.add_block(&block);
            count(&block);
        }
        return Ok(());
    }
    let Accumulator { totals, evidence, activity, marks } = accumulator;
    let (to_evidence, for_evidence): (_, Receiver<Arc<BlockEvents>>) = sync_channel(WAITING);
    let (to_totals, for_totals): (_, Receiver<Arc<BlockEvents>>) = sync_channel(WAITING);
    thread::scope(|scope| {
        let decoding = scope.spawn(move || decode(trace, also, &[to_evidence, to_totals]));
        scope.spawn(move || {
            for block in for_evidence {
                block.each_in_order(|_, event| {
                    let event = Seen::of(event);
                    marks.add(&event);
                    if event.layer() != Layer::Mark {
                        evidence.add(&event);
                    }
                });
            }
        });
        for block in for_totals {
            block.each_in_order(|_, event| {
                let event = Seen::of(event);
                if event.layer() != Layer::Mark {
                    totals.add(&event);
                    activity.add(&event);
                }
            });
            count(&block);
        }
        decoding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads and decodes block after block, into memory that is used again.
fn decode(trace: &Trace, also: Also<'_>, to: &[SyncSender<Arc<BlockEvents>>]) -> Result<(), TraceError> {
    let mut in_use: [Arc<BlockEvents>; BLOCKS] = Default::default();
    for index in 0..trace.blocks().len() {
        let used = &mut in_use[index % BLOCKS];
        let mut block = Arc::into_inner(std::mem::take(used)).unwrap_or_default();
        trace.read_block(index, &mut block)?;
        also(&block);
        *used = Arc::new(block);
        for thread in to {
            // Nobody is there to take them only if a thread panicked, which ends all.
            let _ = thread.send(Arc::clone(used));
        }
    }
    Ok(())
}

//! Requests that follow one another, made as one.

use pio_plan::Direction;
use pio_trace::HandleId;

use super::{Concern, Rewriting};
use crate::workload::{Step, What};

/// As much as is gathered: what findings call a large request.
const LARGE: u64 = 1 << 20;

/// Requests of a handle that become one.
struct Batch {
    direction: Direction,
    start: u64,
    end: u64,
    first: usize,
    last: usize,
}

/// The program with batches for requests. A batch of writes is made when its last piece is there, one of reads when the
/// first is wanted. With gaps, reads take what lies between them too.
pub(super) fn gathered(program: &[Step], concerns: &Concern<'_>, with_gaps: bool) -> Vec<Step> {
    let batches = batches(program, concerns, with_gaps);
    let mut rest = Rewriting::default();
    for (index, step) in program.iter().enumerate() {
        rest.before(step);
        match (&batches[index], &step.what) {
            (Some(batch), What::Request { handle, call, direction, .. }) => {
                let place = if batch.direction == Direction::Write { batch.last } else { batch.first };
                if place == index {
                    let (offset, bytes) = (batch.start, batch.end - batch.start);
                    let (handle, call, direction) = (*handle, *call, *direction);
                    rest.call(What::Request { handle, call, direction, offset, bytes });
                }
            }
            (_, what) => rest.call(what.clone()),
        }
    }
    rest.steps
}

/// The batch of each step that belongs to one.
fn batches(program: &[Step], concerns: &Concern<'_>, with_gaps: bool) -> Vec<Option<std::rc::Rc<Batch>>> {
    let mut of_step = vec![None; program.len()];
    let mut open: Vec<(HandleId, Batch, Vec<usize>)> = Vec::new();
    let mut finish = |(_, batch, steps): (HandleId, Batch, Vec<usize>)| {
        let batch = std::rc::Rc::new(batch);
        steps.into_iter().for_each(|step| of_step[step] = Some(batch.clone()));
    };
    for (index, step) in program.iter().enumerate() {
        let (handle, piece) = match &step.what {
            What::Request { handle, direction, offset, bytes, .. } if concerns.handle(*handle) => {
                (*handle, Some((*direction, *offset, offset.saturating_add(*bytes))))
            }
            // What is closed, or to be durable, keeps nothing back; and what a file has when it gets another size counts.
            What::Close(handle) | What::Sync(handle, _) | What::Resize(handle, ..) => (*handle, None),
            _ => continue,
        };
        let known = open.iter().position(|(of, _, _)| *of == handle);
        let Some((direction, start, end)) = piece else {
            if let Some(known) = known {
                finish(open.swap_remove(known));
            }
            continue;
        };
        if let Some(known) = known {
            let (_, batch, steps) = &mut open[known];
            let follows =
                start == batch.end || with_gaps && direction == Direction::Read && start > batch.end;
            if batch.direction == direction && follows && end - batch.start <= LARGE {
                batch.end = end;
                batch.last = index;
                steps.push(index);
                continue;
            }
            finish(open.swap_remove(known));
        }
        open.push((handle, Batch { direction, start, end, first: index, last: index }, vec![index]));
    }
    open.into_iter().for_each(finish);
    of_step
}

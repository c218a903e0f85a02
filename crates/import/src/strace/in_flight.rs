//! Operations of libaio, from submission to completion; and what strace does not show of io_uring.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::line;
use crate::sort::Access;
use pio_trace::Call;
use pio_trace::ProcessId;
use pio_trace::{Losses, Reason, Unseen};

/// An operation as it stands in the list that `io_submit` is given.
pub(super) struct Submission<'a> {
    /// What its completion names.
    pub(super) data: &'a str,
    /// None for what is no I/O.
    pub(super) call: Option<Call>,
    /// Descriptor, as strace shows it.
    pub(super) descriptor: &'a str,
    pub(super) offset: Option<u64>,
    pub(super) size: u64,
}

impl<'a> Submission<'a> {
    /// The operations of a list, in order.
    pub(super) fn list(text: &'a str) -> Vec<Submission<'a>> {
        line::items(text).into_iter().map(Submission::of).collect()
    }

    fn of(text: &'a str) -> Submission<'a> {
        let fields = line::fields(text);
        let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let number = |name: &str| u64::try_from(line::number(field(name)?)?).ok();
        let vector = || line::vector_len(field("aio_buf")?);
        let (call, size) = match field("aio_lio_opcode").unwrap_or_default() {
            "IOCB_CMD_PREAD" => (Some(Call::LibaioRead), number("aio_nbytes")),
            "IOCB_CMD_PWRITE" => (Some(Call::LibaioWrite), number("aio_nbytes")),
            "IOCB_CMD_PREADV" => (Some(Call::LibaioRead), vector()),
            "IOCB_CMD_PWRITEV" => (Some(Call::LibaioWrite), vector()),
            "IOCB_CMD_FSYNC" => (Some(Call::Fsync), None),
            "IOCB_CMD_FDSYNC" => (Some(Call::Fdatasync), None),
            _ => (None, None),
        };
        let moves = matches!(call, Some(Call::LibaioRead | Call::LibaioWrite));
        Submission {
            data: field("aio_data").unwrap_or("0"),
            call,
            descriptor: field("aio_fildes").unwrap_or_default(),
            offset: number("aio_offset").filter(|_| moves),
            size: size.unwrap_or(0),
        }
    }
}

/// What is in flight.
#[derive(Default)]
pub(super) struct InFlight {
    /// By whose context it is and what completions name, in order of submission; none for what is no I/O of the job.
    operations: HashMap<(usize, String, String), VecDeque<Option<Access>>>,
    /// Operations that were given to rings (io_uring), by process.
    rings: BTreeMap<ProcessId, u64>,
}

impl InFlight {
    pub(super) fn submit(&mut self, owner: usize, context: &str, data: &str, access: Option<Access>) {
        let key = (owner, context.to_owned(), data.to_owned());
        self.operations.entry(key).or_default().push_back(access);
    }

    /// The operations that a list of completions ends, with their results.
    pub(super) fn complete(&mut self, owner: usize, context: &str, list: &str) -> Vec<Access> {
        let mut done = Vec::new();
        for event in line::items(list) {
            let fields = line::fields(event);
            let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            let (Some(data), Some(result)) = (field("data"), field("res").and_then(line::number)) else {
                continue;
            };
            let key = (owner, context.to_owned(), data.to_owned());
            if let Some(mut access) = self.operations.get_mut(&key).and_then(VecDeque::pop_front).flatten() {
                access.result = result;
                done.push(access);
            }
        }
        done
    }

    /// What has not come back.
    pub(super) fn rest(&mut self) -> Vec<Access> {
        let mut rest: Vec<_> = self.operations.drain().flat_map(|(_, queue)| queue).flatten().collect();
        rest.sort_by_key(|access| (access.start_ns, access.process, access.offset));
        rest
    }

    /// A process gave so many operations to a ring.
    pub(super) fn submit_to_ring(&mut self, process: ProcessId, count: u64) {
        *self.rings.entry(process).or_default() += count;
    }

    /// What the trace lacks for it.
    pub(super) fn losses(&self, mut program: impl FnMut(ProcessId) -> String) -> Losses {
        let mut losses = Losses::default();
        let mut programs: BTreeMap<String, u64> = BTreeMap::new();
        for (&process, &count) in &self.rings {
            *programs.entry(program(process)).or_default() += 1;
            losses.lost.others = losses.lost.others.saturating_add(count);
        }
        for (program, processes) in programs {
            let (reason, unknown) = (Reason::Ring, processes);
            losses.unseen.push(Unseen {
                program,
                reason,
                processes,
                unknown,
                read_bytes: 0,
                written_bytes: 0,
            });
        }
        losses
    }
}

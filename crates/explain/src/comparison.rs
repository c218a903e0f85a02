//! A run beside what was predicted for it: which calls, which ranks and which part of the time make the difference.
//!
//! Both are traces of one job, so that the n-th call of a kind is the same call in both: of the run, only the calls count that
//! a simulation makes, whichever library of the program made them. Times are means of the processes, as the I/O time of a
//! job is.
//!
//! Calls of MPI-IO that return before their data move are left out: a simulation counts the time of the move as theirs, a run
//! has it in a wait, which may be for other things, too.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{BlockEvents, Call, Event, Layer, Op, Trace, TraceError};

use crate::explanation::Explanation;

/// Calls of a kind that are told apart by their number; those beyond are counted, but not placed.
const MOST_PLACES: u64 = 1 << 16;

/// What was predicted and what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Both {
    /// Predicted seconds.
    pub predicted_s: f64,
    /// Measured seconds.
    pub measured_s: f64,
}

impl Both {
    /// Measured less predicted, seconds.
    pub fn difference_s(&self) -> f64 {
        self.measured_s - self.predicted_s
    }
}

/// All calls of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedCall {
    /// The function.
    pub call: Call,
    /// Whether the program or a library of it made them; else a simulated call of these did.
    pub by_program: bool,
    /// How many were predicted, of all processes.
    pub predicted_count: u64,
    /// How many there were.
    pub measured_count: u64,
    /// Their time, mean of the processes.
    pub time: Both,
}

/// One call that every process may have made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The function; the program's calls only.
    pub call: Call,
    /// Which of a process's calls of this function, from 1.
    pub number: u64,
    /// How many a process made of it at most.
    pub of: u64,
    /// Its time, mean of the processes.
    pub time: Both,
}

/// The calls of one function, in a process's order.
#[derive(Clone, Debug, PartialEq)]
pub struct InOrder {
    /// The function; the program's calls only.
    pub call: Call,
    /// The time of the first call, of the second, and so on: mean of the processes. At most 65,536.
    pub times: Vec<Both>,
}

/// A run beside its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The run's I/O time, mean of the processes: in calls that are not compared, too.
    pub io_time_s: f64,
    /// Time in the program's calls that are compared, mean of the processes.
    pub io: Both,
    /// By function, the program's first, and each of these largest difference first. Without messages.
    pub calls: Vec<ComparedCall>,
    /// Call by call, that of the program's functions in which the two part most.
    pub in_order: Option<InOrder>,
    /// Time in the program's calls that are compared by rank (or process), in order of rank.
    pub ranks: Vec<(u32, Both)>,
    /// The parts of the time in MPI-IO calls: late ranks, MPI library, files; only where both traces tell them apart,
    /// and no calls are left out.
    pub parts: Option<[Both; 3]>,
    /// The call of the largest difference, among the first 65,536 of each function.
    pub place: Option<Place>,
}

impl Comparison {
    /// The names of [`Comparison::parts`].
    pub const PARTS: [&str; 3] = ["waiting for late ranks", "in the MPI library", "at the files"];

    /// Compares a simulated trace, whose times are taken `correction` times, with that of a run; `found` is the explanation
    /// of the run.
    ///
    /// # Errors
    /// If a trace cannot be read.
    pub fn of(
        predicted: &Trace,
        correction: f64,
        measured: &Trace,
        found: &Explanation,
        is_own: IsOwn<'_>,
    ) -> Result<Comparison, TraceError> {
        let foreseen = Explanation::of_trace(predicted, &mut |_| {})?;
        let scale = |explanation: &Explanation| 1e-9 / explanation.process_count.max(1) as f64;
        let scales = (scale(&foreseen) * correction, scale(found));
        let (mut calls, mut places, mut any_begun) = (BTreeMap::new(), Places::default(), false);
        let mut ranks: BTreeMap<u32, Both> = BTreeMap::new();
        let mut by_flag = |event: &Event| Some(!event.is_physical());
        let sides: [(_, _, IsOwn<'_>, _, _); 2] = [
            (predicted, &foreseen, &mut by_flag, scales.0, Side::Predicted),
            (measured, found, is_own, scales.1, Side::Measured),
        ];
        for (trace, of, is_own, scale, side) in sides {
            let of_rank: BTreeMap<_, _> =
                (0..).zip(&of.processes).map(|(at, one)| (one.process, one.rank.unwrap_or(at))).collect();
            any_begun |= count(trace, of, is_own, |event, number, is_own| {
                let call = calls.entry((event.call, is_own)).or_insert_with(|| none_of(event.call, is_own));
                let time_s = event.elapsed_ns as f64 * scale;
                *side.count(call) += 1;
                *side.time(&mut call.time) += time_s;
                *side.time(places.of(event, number, is_own)) += time_s;
                if is_own {
                    *side.time(ranks.entry(of_rank[&event.process]).or_default()) +=
                        time_s * of.process_count as f64;
                }
            })?;
        }
        let mut calls: Vec<_> = calls.into_values().collect();
        calls.sort_by(|one, other| {
            let by_size = other.time.difference_s().abs().total_cmp(&one.time.difference_s().abs());
            other.by_program.cmp(&one.by_program).then(by_size)
        });
        let parts = [&foreseen, found].map(|explanation| {
            let split = explanation.mpi_io.total();
            let known = explanation.mpi_io.files_seen && split.unknown_ns == 0 && split.calls > 0;
            (known && !any_begun).then_some([split.late_ns, split.library_ns, split.files_ns])
        });
        let parts = match parts {
            [Some(foreseen), Some(found)] => Some(std::array::from_fn(|part| Both {
                predicted_s: foreseen[part] as f64 * scales.0,
                measured_s: found[part] as f64 * scales.1,
            })),
            _ => None,
        };
        let own = calls.iter().filter(|call| call.by_program);
        let io = own.fold(Both::default(), |sum, ComparedCall { time, .. }| Both {
            predicted_s: sum.predicted_s + time.predicted_s,
            measured_s: sum.measured_s + time.measured_s,
        });
        let ranks = ranks.into_iter().collect();
        let place = places.largest();
        let in_order = calls.first().filter(|call| call.by_program).and_then(|most| {
            let times = places.times.remove(&most.call)?;
            Some(InOrder { call: most.call, times })
        });
        Ok(Comparison { io_time_s: found.io_time_s(), io, calls, in_order, ranks, parts, place })
    }
}

/// Says of a trace's events, one after the other, whether a simulation makes the call as one of the program (`true`), or
/// within one (`false`), or not at all: of a run, what `pio_sim::SimulatedCalls` says.
pub type IsOwn<'a> = &'a mut dyn FnMut(&Event) -> Option<bool>;

/// What is counted.
#[derive(Clone, Copy)]
enum Side {
    Predicted,
    Measured,
}

impl Side {
    fn count(self, call: &mut ComparedCall) -> &mut u64 {
        match self {
            Side::Predicted => &mut call.predicted_count,
            Side::Measured => &mut call.measured_count,
        }
    }

    fn time(self, both: &mut Both) -> &mut f64 {
        match self {
            Side::Predicted => &mut both.predicted_s,
            Side::Measured => &mut both.measured_s,
        }
    }
}

fn none_of(call: Call, by_program: bool) -> ComparedCall {
    ComparedCall { call, by_program, predicted_count: 0, measured_count: 0, time: Both::default() }
}

/// Seconds in each function, mean of the processes by which the job is measured: in the calls that a simulation makes as the
/// program's (`true`), and in those within them. Without messages.
///
/// # Errors
/// If the trace cannot be read.
pub fn call_times(
    trace: &Trace,
    found: &Explanation,
    is_own: IsOwn<'_>,
) -> Result<BTreeMap<(Call, bool), f64>, TraceError> {
    let mut times: BTreeMap<(Call, bool), u64> = BTreeMap::new();
    count(trace, found, is_own, |event, _, is_own| {
        let time = times.entry((event.call, is_own)).or_default();
        *time = time.saturating_add(event.elapsed_ns);
    })?;
    let scale = 1e-9 / found.process_count.max(1) as f64;
    Ok(times.into_iter().map(|(call, time_ns)| (call, time_ns as f64 * scale)).collect())
}

/// The simulated calls of I/O of the processes that the job is measured by, in order of their start; each with its number among
/// those of its process and function, from 1, and whether it is the program's. Gives whether calls of MPI-IO are left out that
/// return before their data move.
fn count(
    trace: &Trace,
    found: &Explanation,
    is_own: IsOwn<'_>,
    mut each: impl FnMut(&Event, u64, bool),
) -> Result<bool, TraceError> {
    let processes: BTreeSet<_> = found.processes.iter().map(|one| one.process).collect();
    let mut numbers: BTreeMap<_, u64> = BTreeMap::new();
    let (mut events, mut any_begun) = (BlockEvents::default(), false);
    for block in 0..trace.blocks().len() {
        trace.read_block(block, &mut events)?;
        let is_io = |event: &Event| {
            !matches!(event.layer(), Layer::Message | Layer::Mark) && event.op() != Op::Communicate
        };
        events.each_in_order(|_, event| {
            if let Some(is_own) = is_own(event)
                && is_io(event)
                && processes.contains(&event.process)
            {
                let returns_first = event.call.is_asynchronous() || event.call.begins_split();
                if event.layer() == Layer::MpiIo && returns_first {
                    any_begun = true;
                    return;
                }
                let number = numbers.entry((event.process, event.call, is_own)).or_default();
                *number += 1;
                each(event, *number, is_own);
            }
        });
    }
    Ok(any_begun)
}

/// Times of the n-th calls of each function.
#[derive(Default)]
struct Places {
    times: BTreeMap<Call, Vec<Both>>,
    /// What has no place.
    rest: Both,
}

impl Places {
    fn of(&mut self, event: &Event, number: u64, is_own: bool) -> &mut Both {
        if !is_own || number > MOST_PLACES {
            return &mut self.rest;
        }
        let (times, number) = (self.times.entry(event.call).or_default(), number as usize);
        if times.len() < number {
            times.resize(number, Both::default());
        }
        &mut times[number - 1]
    }

    fn largest(&self) -> Option<Place> {
        let places = self.times.iter().flat_map(|(call, times)| {
            let numbered = times.iter().zip(1..);
            numbered.map(|(time, number)| Place { call: *call, number, of: times.len() as u64, time: *time })
        });
        places.max_by(|one, other| one.time.difference_s().abs().total_cmp(&other.time.difference_s().abs()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pio_trace::{Process, ProcessId, Tables, TraceWriter};

    use super::*;

    /// A trace of one writer of each rank: seconds of each of its writes.
    fn trace(path: &Path, ranks: &[&[u64]]) -> Trace {
        let mut tables = Tables::default();
        for rank in 0..ranks.len() as u32 {
            let host = "node".to_owned();
            let process =
                Process { rank: Some(rank), pid: rank, host, command: "a".into(), start_ns: 0, end_ns: None };
            tables.processes.push(process);
        }
        let mut events = Vec::new();
        for (rank, writes) in (0..).zip(ranks) {
            let mut start_ns = 0;
            for seconds in *writes {
                let elapsed_ns = seconds * 1_000_000_000;
                let process = ProcessId(rank);
                events.push(Event { elapsed_ns, ..Event::new(Call::Write, process, start_ns) });
                start_ns += elapsed_ns;
            }
        }
        events.sort_by_key(|event| event.start_ns);
        let mut writer = TraceWriter::create(path, tables).expect("the folder is there");
        events.iter().for_each(|event| writer.push(event).expect("it is written"));
        writer.finish().expect("it is written");
        Trace::open(path).expect("it was written")
    }

    #[test]
    fn the_call_and_the_rank_that_differ_are_found() {
        let folder = tempfile::tempdir().expect("there is room");
        let predicted = trace(&folder.path().join("predicted.pio"), &[&[1, 1, 1], &[1, 1, 1]]);
        let measured = trace(&folder.path().join("measured.pio"), &[&[2, 2, 2], &[2, 10, 2]]);
        let found = Explanation::of_trace(&measured, &mut |_| {}).expect("it is read");
        let compared =
            Comparison::of(&predicted, 2.0, &measured, &found, &mut |_| Some(true)).expect("both are read");
        assert_eq!(compared.io, Both { predicted_s: 6.0, measured_s: 10.0 });
        let [call] = compared.calls[..] else { panic!("{compared:?}") };
        assert_eq!((call.call, call.by_program), (Call::Write, true));
        assert_eq!((call.predicted_count, call.measured_count, call.time), (6, 6, compared.io));
        let ranks = [(0, 6.0, 6.0), (1, 6.0, 14.0)];
        let both = |(rank, predicted_s, measured_s)| (rank, Both { predicted_s, measured_s });
        assert_eq!(compared.ranks, ranks.map(both));
        let second = Both { predicted_s: 2.0, measured_s: 6.0 };
        let first = Both { predicted_s: 2.0, measured_s: 2.0 };
        let in_order = compared.in_order.expect("there is one");
        assert_eq!((in_order.call, &in_order.times[..]), (Call::Write, &[first, second, first][..]));
        let place = compared.place.expect("there is one");
        assert_eq!((place.call, place.number, place.of), (Call::Write, 2, 3));
        assert_eq!(place.time, second);
        assert_eq!(compared.parts, None);
    }
}

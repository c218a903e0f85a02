//! Times to as many digits as mean something, so that they take little room.
//!
//! Two runs of the same call differ by more than a few per cent, and the last bits of a recorded time are noise that no
//! coding can make small: they would be most of a trace. So how long a call of the program took, and how long the thread
//! went without one, are told to [`DIGITS`] binary digits, or to a microsecond where that is finer. What is rounded off
//! one call is added to the next of its kind: sums stay what they were, and no call is told to begin more than a few
//! microseconds from when it did. Calls of MPI-IO and the libraries above, and what they cause,
//! keep their times; so do marks, which are no calls.

use std::collections::HashMap;

use pio_trace::{Event, Flags, Layer, ProcessId};

/// Significant binary digits: a time is off by at most a 16th by rounding, and an eighth with what earlier ones left.
const DIGITS: u32 = 4;
/// The coarsest step, as a power of two of nanoseconds.
const COARSEST: u32 = 10;
/// A thread that is told further off than this starts again from its own clock, ns.
const MOST_OFF_NS: u64 = 4096;

/// Rounds the times of events that come in order of their start.
#[derive(Debug, Default)]
pub(crate) struct Rounding {
    threads: HashMap<(ProcessId, u32), Thread>,
}

/// When a thread's last call ended, and what is still to be made up for.
#[derive(Debug, Default)]
struct Thread {
    end_ns: u64,
    told_end_ns: u64,
    gap_carry_ns: i64,
    elapsed_carry_ns: i64,
}

impl Rounding {
    /// Rounds the times of the next event.
    pub(crate) fn apply(&mut self, event: &mut Event) {
        let is_async = event.layer() == Layer::Posix && event.flags.contains(Flags::ASYNC);
        if is_async || event.layer() == Layer::Mark {
            return; // goes on while its thread does other things
        }
        let thread = self.threads.entry((event.process, event.thread)).or_default();
        let (start_ns, end_ns) = (event.start_ns, event.end_ns());
        if start_ns < thread.end_ns || event.is_physical() {
            return; // within another call
        }
        let gap_ns = start_ns - thread.end_ns;
        let is_rounded = matches!(event.layer(), Layer::Posix | Layer::Stdio) && event.operation == 0;
        if is_rounded {
            let told_gap_ns = round(gap_ns, &mut thread.gap_carry_ns);
            event.start_ns = thread.told_end_ns.saturating_add(told_gap_ns);
            event.think_ns = match event.think_ns {
                think_ns if think_ns == gap_ns => told_gap_ns,
                think_ns => round(think_ns, &mut 0).min(told_gap_ns),
            };
            event.elapsed_ns = round(event.elapsed_ns, &mut thread.elapsed_carry_ns);
        }
        if !is_rounded || event.start_ns.abs_diff(start_ns) > MOST_OFF_NS {
            event.start_ns = start_ns.max(thread.told_end_ns);
            let elapsed_ns = end_ns.saturating_sub(event.start_ns);
            let unused_ns = |used_ns| event.elapsed_ns.saturating_sub(used_ns);
            event.used_ns = event.used_ns.map(|used_ns| elapsed_ns.saturating_sub(unused_ns(used_ns)));
            event.elapsed_ns = elapsed_ns;
            event.think_ns = event.think_ns.min(event.start_ns - thread.told_end_ns);
            (thread.gap_carry_ns, thread.elapsed_carry_ns) = (0, 0);
        }
        thread.end_ns = end_ns;
        thread.told_end_ns = event.end_ns();
    }
}

/// Rounds a time; what earlier times of its kind lost is made up for as far as this one's own step goes.
fn round(time_ns: u64, carry_ns: &mut i64) -> u64 {
    let digits = u64::BITS - time_ns.leading_zeros();
    let step = 1_u64 << digits.saturating_sub(DIGITS).min(COARSEST);
    let half = (step / 2) as i64;
    let rounded =
        time_ns.saturating_add_signed((*carry_ns).clamp(-half, half)).saturating_add(step / 2) / step * step;
    *carry_ns = carry_ns.saturating_add(time_ns.wrapping_sub(rounded) as i64);
    rounded
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, MarkNameId, Target};

    use super::*;

    #[test]
    fn sums_are_kept_and_each_is_near() {
        let mut carry_ns = 0;
        let (mut sum_ns, mut told_ns) = (0, 0);
        for i in 0..100_000_u64 {
            let time_ns = 400 + i * 7919 % 211 + if i % 1000 == 0 { 3_000_000 } else { 0 };
            let rounded_ns = round(time_ns, &mut carry_ns);
            assert!(
                rounded_ns.abs_diff(time_ns) <= (time_ns / 8).min(1024) + 1,
                "{time_ns} became {rounded_ns}"
            );
            sum_ns += time_ns;
            told_ns += rounded_ns;
        }
        assert!(told_ns.abs_diff(sum_ns) <= 1024, "{sum_ns} became {told_ns}");
    }

    #[test]
    fn calls_are_told_alike_with_and_without_marks_around_them() {
        let read = |i: u64| Event {
            elapsed_ns: 1_234,
            think_ns: if i == 0 { 0 } else { 98_766 },
            ..Event::new(Call::Read, ProcessId(0), 1_000_000 + 100_000 * i)
        };
        let mark = |call, start_ns, elapsed_ns| Event {
            elapsed_ns,
            target: Target::Mark { name: MarkNameId(0), number: 0 },
            ..Event::new(call, ProcessId(0), start_ns)
        };
        let (mut plain, mut marked) = (Rounding::default(), Rounding::default());
        let mut phase = mark(Call::Phase, 999_999, 777_777);
        let phase_alone = phase.clone();
        marked.apply(&mut phase);
        assert_eq!(phase, phase_alone);
        for i in 0..5 {
            let (mut expected, mut found) = (read(i), read(i));
            plain.apply(&mut expected);
            marked.apply(&mut mark(Call::Mark, read(i).start_ns - 20_011, 0));
            marked.apply(&mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn short_times_are_exact() {
        for time_ns in 0..16 {
            assert_eq!(round(time_ns, &mut 0), time_ns);
        }
    }
}

//! Order of the accesses through one handle: consecutive, strided or random.

use pio_trace::ViewId;

/// Distinct steps that are counted a pattern. Beyond it the rarest make room (Misra and Gries 1982), so that a step that
/// makes up more than 1/17 of the jumps is never lost.
const STEPS: usize = 16;

/// How accesses followed one another. Reads and writes of a handle are looked at apart, so that a read-modify-write (as
/// in data sieving) does not hide the order of either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// First accesses of a handle, or the first after its view was changed: nothing to compare with.
    pub first: u64,
    /// Accesses that start where the previous one ended.
    pub consecutive: u64,
    /// Accesses whose distance from the previous one's start is the same as that of the jump before or after it.
    pub strided: u64,
    /// All other accesses.
    pub random: u64,
    steps: Vec<(i64, u64)>,
}

impl Pattern {
    /// Consecutive accesses among those that have a predecessor, 0 to 1. None if none has.
    pub fn sequential_fraction(&self) -> Option<f64> {
        let followers = self.consecutive + self.strided + self.random;
        (followers > 0).then(|| self.consecutive as f64 / followers as f64)
    }

    /// The most frequent distance between the starts of two accesses that are not consecutive, bytes; the smallest of
    /// equally frequent ones. None unless there are strided accesses.
    pub fn dominant_stride_bytes(&self) -> Option<i64> {
        if self.strided == 0 {
            return None;
        }
        self.steps
            .iter()
            .max_by_key(|(step, count)| (*count, std::cmp::Reverse(*step)))
            .map(|(step, _)| *step)
    }

    /// Both together.
    pub fn merged(&self, other: &Pattern) -> Pattern {
        let mut both = self.clone();
        both.first += other.first;
        both.consecutive += other.consecutive;
        both.strided += other.strided;
        both.random += other.random;
        for &(step, count) in &other.steps {
            both.count_step(step, count);
        }
        both
    }

    /// Counts an access of `length` bytes from `start` in the numbering of `view` (none: bytes of the file).
    fn add(&mut self, cursor: &mut Option<Cursor>, view: Option<ViewId>, start: u64, length: u64) {
        let end = start.saturating_add(length);
        let Some(previous) = cursor.as_mut().filter(|previous| previous.view == view) else {
            self.first += 1;
            *cursor = Some(Cursor { view, start, end, jump: None });
            return;
        };
        let jump = if start == previous.end {
            self.consecutive += 1;
            None
        } else {
            Some(self.add_jump(previous.jump, start.wrapping_sub(previous.start) as i64))
        };
        *previous = Cursor { view, start, end, jump };
    }

    fn add_jump(&mut self, previous: Option<Jump>, step: i64) -> Jump {
        self.count_step(step, 1);
        match previous {
            Some(jump) if jump.step == step => {
                if !jump.strided {
                    // The one before was the first of a series.
                    self.random -= 1;
                    self.strided += 1;
                }
                self.strided += 1;
                Jump { step, strided: true }
            }
            _ => {
                self.random += 1;
                Jump { step, strided: false }
            }
        }
    }

    fn count_step(&mut self, step: i64, count: u64) {
        if let Some(known) = self.steps.iter_mut().find(|(known, _)| *known == step) {
            known.1 += count;
        } else if self.steps.len() < STEPS {
            self.steps.push((step, count));
        } else {
            let least = self.steps.iter().map(|(_, count)| *count).min().unwrap_or(0).min(count);
            for known in &mut self.steps {
                known.1 -= least;
            }
            self.steps.retain(|(_, count)| *count > 0);
            if count > least && self.steps.len() < STEPS {
                self.steps.push((step, count - least));
            }
        }
    }
}

/// The orders of a file's accesses at both levels. Most files have one: it is kept once, until the first access that is
/// at one level alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    program: Pattern,
    /// None while it is the same.
    file_system: Option<Pattern>,
}

/// A handle's previous read and write, at both levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursors {
    program: [Option<Cursor>; 2],
    /// None while they are the same, as mostly: so there is no room for them in each of thousands of handles.
    file_system: Option<Box<[Option<Cursor>; 2]>>,
}

/// An access that moves data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Whether it writes.
    pub(crate) writes: bool,
    /// Where it starts, in the numbering of `view` (none: bytes of the file).
    pub(crate) view: Option<ViewId>,
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Whether it is at the level of the program, and at that of the file system.
    pub(crate) program: bool,
    pub(crate) file_system: bool,
}

impl Patterns {
    /// Counts an access through the handle of `cursors`.
    #[inline]
    pub(crate) fn add(&mut self, cursors: &mut Cursors, access: &Access) {
        let &Access { writes, view, start, length, program, file_system } = access;
        if program != file_system && self.file_system.is_none() {
            self.file_system = Some(self.program.clone());
        }
        let direction = usize::from(writes);
        if let Some(pattern) = &mut self.file_system {
            // Up to now all accesses through this handle were at both levels.
            let cursors = cursors.file_system.get_or_insert_with(|| Box::new(cursors.program));
            if file_system {
                pattern.add(&mut cursors[direction], view, start, length);
            }
        }
        if program {
            self.program.add(&mut cursors.program[direction], view, start, length);
        }
    }

    /// Order of what the program asked for.
    pub(crate) fn program(&self) -> &Pattern {
        &self.program
    }

    /// Order of what reached the file.
    pub(crate) fn file_system(&self) -> &Pattern {
        self.file_system.as_ref().unwrap_or(&self.program)
    }
}

/// The previous access.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    view: Option<ViewId>,
    start: u64,
    end: u64,
    jump: Option<Jump>,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    step: i64,
    strided: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(accesses: &[(u64, u64)]) -> Pattern {
        let (mut pattern, mut cursor) = (Pattern::default(), None);
        for &(start, length) in accesses {
            pattern.add(&mut cursor, None, start, length);
        }
        pattern
    }

    fn counts(pattern: &Pattern) -> (u64, u64, u64, u64) {
        (pattern.first, pattern.consecutive, pattern.strided, pattern.random)
    }

    #[test]
    fn consecutive_accesses() {
        let pattern = pattern(&[(0, 10), (10, 10), (20, 5), (25, 1)]);
        assert_eq!(counts(&pattern), (1, 3, 0, 0));
        assert_eq!(pattern.sequential_fraction(), Some(1.0));
        assert_eq!(pattern.dominant_stride_bytes(), None);
    }

    #[test]
    fn the_first_jump_of_a_series_belongs_to_it() {
        let pattern = pattern(&[(0, 10), (100, 10), (200, 10), (300, 10), (7, 1)]);
        assert_eq!(counts(&pattern), (1, 0, 3, 1));
        assert_eq!(pattern.dominant_stride_bytes(), Some(100));
        assert_eq!(pattern.sequential_fraction(), Some(0.0));
    }

    #[test]
    fn two_series_share_no_jump() {
        let pattern = pattern(&[(0, 1), (10, 1), (20, 1), (50, 1), (80, 1)]);
        assert_eq!(counts(&pattern), (1, 0, 4, 0));
    }

    #[test]
    fn backwards_is_a_stride_too() {
        let pattern = pattern(&[(300, 10), (200, 10), (100, 10), (0, 10)]);
        assert_eq!(counts(&pattern), (1, 0, 3, 0));
        assert_eq!(pattern.dominant_stride_bytes(), Some(-100));
    }

    #[test]
    fn a_new_view_starts_anew() {
        let (mut pattern, mut cursor) = (Pattern::default(), None);
        pattern.add(&mut cursor, Some(ViewId(0)), 0, 8);
        pattern.add(&mut cursor, Some(ViewId(0)), 8, 8);
        pattern.add(&mut cursor, Some(ViewId(1)), 16, 8);
        assert_eq!(counts(&pattern), (2, 1, 0, 0));
    }

    #[test]
    fn a_frequent_step_survives_many_others() {
        let mut accesses = Vec::new();
        let mut at = 0_u64;
        for round in 0..200 {
            accesses.push((at, 1));
            at += if round % 2 == 0 { 1000 } else { 2000 + round };
        }
        // One jump in two has the same step, but never two in a row.
        let pattern = pattern(&accesses);
        assert_eq!(pattern.strided, 0);
        let best = pattern.steps.iter().max_by_key(|(_, count)| *count).map(|(step, _)| *step);
        assert_eq!(best, Some(1000));
    }
}

//! Histories as files, and whether intervals hold what they promise.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

use std::fs;

use pio_learn::{Case, History, Interval, Pair};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn pair(predicted_s: f64, measured_s: f64, started_ns: u64) -> Pair {
    Pair {
        predicted_s,
        measured_s,
        strategy: "two-phase".to_owned(),
        ranks: 4,
        crowded: false,
        program: format!("program {started_ns}"),
        started_ns,
    }
}

const CASE: Case<'_> = Case { strategy: "two-phase", ranks: 4, crowded: false, program: "mine" };

fn history(pairs: impl IntoIterator<Item = Pair>) -> History {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let lines = pairs.into_iter().map(|pair| serde_json::to_string(&pair).unwrap() + "\n");
    fs::write(&path, lines.collect::<String>()).unwrap();
    History::load(&path).unwrap()
}

#[test]
fn a_history_is_kept_and_damaged_lines_are_skipped_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/runs.jsonl");
    let mut history = History::load(&path).unwrap();
    assert!(history.pairs().is_empty());
    assert!(history.add(pair(1.0, 1.1, 1)).unwrap());
    let text = fs::read_to_string(&path).unwrap();
    // Text, nothing that is true of no run, a key that a later version may write, and a line that was cut.
    let odd = text.replace("1.1", "-1.1");
    let later = text.replace("1.1", "1.3").replace("}\n", ",\"more\":1}\n");
    fs::write(&path, format!("{text}what?\n{odd}{later}{{\"predicted")).unwrap();
    let mut history = History::load(&path).unwrap();
    assert_eq!(history.damaged_lines(), [2, 3, 5]);
    let measured: Vec<f64> = history.pairs().iter().map(|pair| pair.measured_s).collect();
    assert_eq!(measured, [1.1, 1.3]);
    // What is added behind the cut line can be read.
    assert!(history.add(pair(1.0, 1.4, 4)).unwrap());
    let again = History::load(&path).unwrap();
    assert_eq!((again.pairs().len(), again.damaged_lines()), (3, &[2, 3, 5][..]));
}

#[test]
fn a_run_counts_once_with_its_latest_prediction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let mut history = History::load(&path).unwrap();
    assert!(history.add(pair(1.0, 2.0, 7)).unwrap());
    assert!(!history.add(pair(1.0, 2.0, 7)).unwrap());
    assert!(history.add(pair(1.5, 2.0, 7)).unwrap());
    assert!(!history.add(pair(0.0, 2.0, 8)).unwrap(), "nothing was predicted");
    // JSON's numbers were once read a bit beside what was written, and the run counted twice.
    assert!(history.add(pair(0.000_480_991, 0.002_329_312, 9)).unwrap());
    let mut again = History::load(&path).unwrap();
    assert!(!again.add(pair(0.000_480_991, 0.002_329_312, 9)).unwrap());
    assert!(again.add(pair(0.000_481, 0.002_329_312, 9)).unwrap());
    assert_eq!(again.pairs().len(), 2);
    for history in [history, History::load(&path).unwrap()] {
        let history = history.pairs().iter().filter(|pair| pair.started_ns == 7);
        assert_eq!(history.map(|pair| pair.predicted_s).collect::<Vec<_>>(), [1.5]);
    }
}

#[test]
fn a_history_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = History::load(folder.path()).unwrap_err().to_string();
    assert_eq!(error, format!("{}: cannot read", folder.path().display()));
}

proptest! {
    /// Whatever is in the file, the pairs that are whole are read, and more can be added.
    #[test]
    fn any_bytes_can_stand_in_a_history(bytes: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        fs::write(&path, &bytes).unwrap();
        History::load(&path).unwrap().add(pair(1.0, 2.0, 1)).unwrap();
        let history = History::load(&path).unwrap();
        prop_assert_eq!(history.pairs(), [pair(1.0, 2.0, 1)]);
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        prop_assert_eq!(history.damaged_lines().len(), lines);
    }
}

#[test]
fn the_reason_says_what_is_known() {
    let reason = |history: &History, crowded| history.interval(1.0, &Case { crowded, ..CASE }).reason;
    let none = history([]);
    assert_eq!(reason(&none, false), "no run was compared here yet");
    assert_eq!(reason(&none, true), "more ranks than processors; no run was compared here yet");
    let some = history([pair(1.45, 1.0, 1), pair(1.0, 1.1, 2)]);
    assert_eq!(reason(&some, false), "2 runs compared, the model off by 27 % in the median, 45 % at most");
    assert_eq!(reason(&some, true), "more ranks than processors; no such run was compared here yet");
    let crowd = history([Pair { crowded: true, ..pair(1.0, 2.0, 1) }]);
    assert_eq!(
        reason(&crowd, true),
        "more ranks than processors; 1 run compared, the model off by 50 % in the median, 50 % at most"
    );
    assert_eq!(reason(&crowd, false), "no run with a processor for each rank was compared here yet");
}

/// Pairs of the other crowding say nothing; those of the strategy say more; repeating another program's says no more.
#[test]
fn pairs_count_as_far_as_they_are_like_it() {
    let slow = |index| pair(1.0, 2.0, index);
    let middle = |pairs: Vec<Pair>| history(pairs).interval(1.0, &CASE).middle_s();
    let crowded = middle((1..9).map(|index| Pair { crowded: true, ..slow(index) }).collect());
    assert!((crowded - 1.0).abs() < 1e-12);
    let other = |index| Pair { strategy: "list".to_owned(), ..slow(index) };
    let own = middle((1..9).map(|index| Pair { strategy: "romio".to_owned(), ..slow(index) }).collect());
    assert!((own - 1.0).abs() < 1e-12);
    let far = middle((1..5).map(|index| Pair { ranks: 16, ..slow(index) }).collect());
    let same = middle((1..5).map(slow).collect());
    assert!(1.0 < far && far < same, "{far} {same}");
    let others = middle((1..5).map(other).collect());
    assert!(1.0 < others && others < same && same < 2.0, "{others} {same}");
    let once = middle(vec![slow(1)]);
    let of =
        |program: &str| (1..9).map(|index| Pair { program: program.to_owned(), ..slow(index) }).collect();
    assert!((middle(of("another")) - once).abs() < 1e-9);
    assert!(middle(of("mine")) > once);
}

/// They say how it scatters under that strategy, and once how far the model is off.
#[test]
fn runs_of_a_program_tell_no_more_of_another_strategy_than_one() {
    let repeated = |strategy: &str, runs: u64| {
        let one = |number| Pair {
            program: "mine".to_owned(),
            strategy: strategy.to_owned(),
            ..pair(1.0, 1.1, number)
        };
        let Interval { low_s, high_s, .. } = history((0..runs).map(one)).interval(1.0, &CASE);
        high_s / low_s
    };
    assert!((repeated("view-based", 10) - repeated("view-based", 1)).abs() < 1e-12);
    assert!(repeated("two-phase", 10) < repeated("two-phase", 1));
}

#[test]
fn two_are_equal_if_each_middle_is_within_the_other() {
    let interval = |low_s, high_s| Interval { low_s, high_s, reason: String::new() };
    let wide = interval(1.0, 4.0);
    assert!(wide.equals(&interval(1.5, 3.0)) && interval(1.5, 3.0).equals(&wide));
    // It may well be the first, but the first is not likely to be it.
    assert!(!wide.equals(&interval(3.0, 4.0)));
    assert!(!interval(1.0, 2.0).equals(&interval(3.0, 4.0)));
}

/// A number of a normal distribution, by Box and Muller.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Which part of intervals held, over many places with so much of a bias and so much chance, with some pairs each.
fn coverage(bias: f64, chance: f64, pairs: std::ops::Range<u64>) -> f64 {
    let mut random = Pcg64Mcg::seed_from_u64(18);
    let places = 1000;
    let mut held = 0;
    for _ in 0..places {
        let bias = bias * normal(&mut random);
        let mut run = || (bias + chance * normal(&mut random)).exp();
        let ratios: Vec<f64> = (0..pairs.end).map(|_| run()).collect();
        let next = run();
        let known = random.random_range(pairs.clone()) as usize;
        let known = (1..).zip(&ratios[..known]).map(|(index, ratio)| pair(1.0, *ratio, index));
        let Interval { low_s, high_s, .. } = history(known).interval(1.0, &CASE);
        held += u32::from((low_s..=high_s).contains(&next));
    }
    f64::from(held) / f64::from(places)
}

/// Not by being wide at one place and narrow at the other.
#[test]
fn intervals_hold_four_times_of_five() {
    for (bias, chance, pairs) in [(0.1, 0.2, 0..12), (0.2, 0.2, 2..12), (0.3, 0.2, 6..20), (0.3, 0.3, 8..30)]
    {
        let found = coverage(bias, chance, pairs.clone());
        assert!((0.75..=0.90).contains(&found), "bias {bias}, chance {chance}, {pairs:?} pairs: {found}");
    }
}

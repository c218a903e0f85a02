//! The calls of Thakur's application, counted in its simulated trace, are those of his Tables 1 and 2.

use std::collections::BTreeMap;

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::workload::{Collapse, collapse};
use pio_sim::{Options, Prediction, simulate};
use pio_trace::{Call, Op, Trace};

fn run(run: &Collapse, path: Option<&std::path::Path>) -> Prediction {
    let machine = Machine::built_in("sp-argonne").unwrap();
    let workload = collapse(run).unwrap();
    let (hints, options) = (Hints::default(), Options::default());
    simulate(&machine, &workload, Strategy::TwoPhase, &hints, &options, path, &mut |_| {}).unwrap()
}

#[test]
fn the_small_case_makes_exactly_the_published_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pio");
    let prediction = run(&Collapse::SMALL, Some(&path));
    let count = |op| prediction.operation(op).count;
    assert_eq!((count(Op::Open), count(Op::Close)), (200, 200));
    assert_eq!((count(Op::Read), count(Op::Write), count(Op::Communicate)), (49, 536, 5608));
    let sizes: Vec<((Op, u64), u64)> = prediction.sizes.clone().into_iter().collect();
    let (k128, k512) = (128 << 10, 512 << 10);
    let expected = [
        ((Op::Read, 24), 1),
        ((Op::Read, k512), 48),
        ((Op::Write, 24), 24),
        ((Op::Write, k128), 128),
        ((Op::Write, k512), 384),
    ];
    assert_eq!(sizes, expected);

    // The trace says the same.
    let mut calls: BTreeMap<Call, u64> = BTreeMap::new();
    let trace = Trace::open(&path).unwrap();
    for event in trace.events() {
        *calls.entry(event.unwrap().call).or_default() += 1;
    }
    let strategy = calls[&Call::StrategyDescribe] + calls[&Call::StrategyData];
    assert_eq!((strategy, calls[&Call::MpiBcast], calls.get(&Call::StrategyGrant)), (5600, 8, None));
    assert_eq!((calls[&Call::Pread], calls[&Call::Pwrite]), (49, 536));
    assert_eq!((calls[&Call::MpiFileOpen], calls[&Call::Open], calls[&Call::Close]), (200, 200, 200));
}

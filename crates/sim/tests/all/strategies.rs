//! Every strategy, simulated on striped storage: what it must move, and what it need not.

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::workload::catalogue;
use pio_sim::{Options, Prediction, simulate};
use pio_trace::Op;

fn predict(machine: &str, strategy: Strategy) -> Prediction {
    let machine = Machine::built_in(machine).unwrap();
    let entry = catalogue().iter().find(|entry| entry.name == "bt-io").unwrap();
    let parameters = [("ranks".to_owned(), "4".to_owned()), ("mesh".to_owned(), "12".to_owned())];
    let workload = entry.build(&parameters, 1).unwrap();
    let (hints, options) = (Hints::default(), Options::default());
    simulate(&machine, &workload, strategy, &hints, &options, None, &mut |_| {}).unwrap()
}

#[test]
fn every_strategy_moves_all_bytes() {
    let least = predict("sp-argonne", Strategy::Independent);
    for strategy in Strategy::ALL {
        let found = predict("sp-argonne", strategy);
        assert!(found.bytes_read >= least.bytes_read, "{strategy}");
        assert!(found.bytes_written >= least.bytes_written, "{strategy}");
    }
}

#[test]
fn servers_that_understand_views_get_one_request_a_rank_and_no_more_bytes() {
    let (ecio, independent) =
        (predict("sp-argonne", Strategy::Ecio), predict("sp-argonne", Strategy::Independent));
    assert_eq!((ecio.bytes_read, ecio.bytes_written), (independent.bytes_read, independent.bytes_written));
    assert!(ecio.operation(Op::Write).count < independent.operation(Op::Write).count);
    assert_eq!(ecio.operation(Op::Communicate).count, 0);
    assert!(ecio.makespan < independent.makespan);
    let list = predict("sp-argonne", Strategy::List);
    assert!(list.operation(Op::Write).count < independent.operation(Op::Write).count);
    assert!(list.operation(Op::Write).count >= ecio.operation(Op::Write).count);
}

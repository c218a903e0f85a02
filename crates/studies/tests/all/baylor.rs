//! The study of Baylor et al. 1995: its traffic against closed forms, its results against the paper's text.

use pio_machine::{Duration, IoNode, Machine};
use pio_studies::Verdict;
use pio_studies::baylor::{self, BaylorError, Options};
use pio_studies::pios::{self, Length, MeanTimes, Mix, Placement, Scenario, WholeNodes};

fn scenario(requests_per_s: f64, messages_per_s: f64) -> Scenario {
    Scenario {
        placement: Placement::new(64, 16).unwrap(),
        requests_per_s,
        request_bytes: 32_768,
        messages_per_s,
        mix: Mix::BAYLOR,
        seed: 3,
    }
}

const LENGTH: Length = Length { measurements: 400, bytes: 1 << 40 };

/// Seconds of so many bytes.
fn time_of(bytes: f64, bytes_per_s: f64) -> f64 {
    bytes / bytes_per_s
}

#[test]
fn requests_that_never_meet_take_the_time_of_their_parts() {
    let machine = Machine::built_in(baylor::MACHINE).unwrap();
    let (hit, miss) = (Duration::from_seconds(3e-3), Duration::from_seconds(17e-3));
    let mut io_nodes = MeanTimes::new([[hit, miss], [hit, miss]]);
    let mut network = baylor::network(&machine, 64).unwrap();
    let found = pios::simulate(&mut network, &mut io_nodes, &scenario(0.02, 0.0), LENGTH).unwrap();

    // 2 to 6 links and 1 to 5 switches, by where the nodes are.
    let path = |links: f64| links * 13.3e-9 + (links - 1.0) * 66.5e-9;
    let request = found.read_request.unwrap().mean - time_of(200.0, 85e6);
    assert!((path(2.0)..path(6.0)).contains(&request), "{request}");
    let packets = 64.0 * time_of(512.0, 85e6) + time_of(512.0, 150e6) + time_of(512.0, 85e6);
    let response = found.read_response.unwrap().mean - packets;
    assert!((path(2.0)..path(6.0)).contains(&response), "{response}");
    let within = found.read_io_node.unwrap();
    assert!((within.mean - (0.7 * 3e-3 + 0.3 * 17e-3)).abs() < 2.0 * within.half_width, "{within:?}");
}

#[test]
fn an_io_node_alone_and_in_the_machine_takes_as_long() {
    let machine = Machine::built_in(baylor::MACHINE).unwrap();
    let described = machine.io_node.as_ref().unwrap();
    let mut io_nodes = WholeNodes::new(described, 16, 200, 3);
    let mut network = baylor::network(&machine, 64).unwrap();
    let found = pios::simulate(&mut network, &mut io_nodes, &scenario(40.0, 0.0), LENGTH).unwrap();
    let options = Options { measurements: 2000, ..Options::default() };
    let alone = baylor::io_node_times(&machine, &options, 32_768, 80.0).unwrap().unwrap().read(0.3);
    let within = found.read_io_node.unwrap();
    // In the machine, the adapters are the network's.
    let adapter = time_of(32_768.0 + 200.0, 85e6);
    assert!((within.mean + adapter - alone.mean).abs() < 2.0 * within.half_width, "{within:?} {alone:?}");
}

#[test]
fn the_load_of_messages_does_not_change_which_requests_are_drawn() {
    let machine = Machine::built_in(baylor::MACHINE).unwrap();
    let run = |messages_per_s| {
        let mut io_nodes = MeanTimes::new([[Duration::ZERO; 2]; 2]);
        let mut network = baylor::network(&machine, 64).unwrap();
        pios::simulate(&mut network, &mut io_nodes, &scenario(100.0, messages_per_s), LENGTH).unwrap()
    };
    let (quiet, busy) = (run(0.0), run(1116.0));
    let milliseconds = |found: &pios::Measured| found.time.seconds() * 1e3;
    assert!((milliseconds(&quiet) - milliseconds(&busy)).abs() < 1.0, "{quiet:?} {busy:?}");
    assert!(busy.read_request.unwrap().mean > quiet.read_request.unwrap().mean);
}

#[test]
fn a_study_is_the_same_on_any_number_of_cores() {
    let options = Options { measurements: 100, io_nodes: Some(vec![8, 16]), ..Options::default() };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| baylor::simulate(&options, &[9], &|_, _| {}).unwrap())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    assert_eq!(baylor::plots(9, &options, &one)[0].figure.series.len(), 2);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let simulate = |options: Options| baylor::simulate(&options, &[8], &|_, _| {}).err().unwrap();
    let error = simulate(Options { io_nodes: Some(vec![33]), measurements: 100, ..Options::default() });
    assert!(matches!(error, BaylorError::Placement(_)), "{error}");
    let error = simulate(Options { nodes: Some(vec![256]), measurements: 100, ..Options::default() });
    assert!(matches!(error, BaylorError::Topology(_)), "{error}");
}

#[test]
fn the_machine_has_the_io_node_that_was_fitted() {
    let machine = Machine::built_in(baylor::MACHINE).unwrap();
    assert_eq!(machine.io_node, Some(IoNode::of_baylor().unwrap()));
}

/// On the line between independent and not, as papers/baylor-1995/README.md says.
const ON_THE_LINE: [&str; 2] =
    ["read request time over 8 to 32 I/O nodes", "read request time over 4 to 16 I/O nodes, loads 0 and 0.1"];

#[test]
#[ignore = "slow"]
fn slow_the_text_of_the_paper_holds() {
    let options = Options { measurements: 3000, bytes: 1 << 30, ..Options::default() };
    let figures: Vec<u32> = (6..=13).collect();
    let outcomes = baylor::simulate(&options, &figures, &|_, _| {}).unwrap();
    let statements = baylor::statements(&outcomes);
    assert_eq!(statements.len(), 28);
    for statement in statements.iter().filter(|statement| !ON_THE_LINE.contains(&statement.what.as_str())) {
        let is_met = match statement.verdict {
            Verdict::Error(error) => error.abs() < 0.10,
            Verdict::Holds | Verdict::Open => true,
            Verdict::Fails => false,
        };
        assert!(is_met, "{statement:?}");
    }
}

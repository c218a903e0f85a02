//! What is predicted is what is run, action by action: the same workload through this library, its ranks threads of the
//! test over an MPI of a few lines, and through the simulator; on plain files and on I/O servers. Each rank's machines must
//! ask for the same.
//!
//! Ranks hear of each other in another order here and there. A rank that has data for an aggregator, and is one itself, does
//! whichever it can go on with. So its actions of one kind with one other rank are compared in their order, as are its
//! copies and its requests to the file; not how those of several kinds alternate.

mod locks;
mod opens;
mod run;
mod scene;
mod waits;
mod workloads;
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pio_layout::View;
use pio_plan::{
    Access, Action, Choice, Describe, Event, Hints, IoError, Message, Rank, StateMachine, Strategy,
    ViewExchange,
};
use pio_sim::workload::What;
use pio_sim::{Options, Workload};
use pio_trace::Trace;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::core::mpi::recorder::of_tests::operation;
use scene::{Place, Scene};
use workloads::{any_hints, any_workload, leaders_without_data};

/// What one machine asked for.
type Asked = Arc<Mutex<Vec<Action>>>;

/// What the machines asked for that this library made, by the number of the call that it made them for.
static ASKED: Mutex<BTreeMap<u64, Asked>> = Mutex::new(BTreeMap::new());

/// The machine of an operation or an exchange of views, which is listened to if it is for a call of these tests.
pub(super) fn listen<M: StateMachine + ?Sized>(machine: Box<M>) -> Box<Listened<M>> {
    let asked = Asked::default();
    if operation() != 0 {
        let other = ASKED.lock().unwrap().insert(operation(), asked.clone());
        assert!(other.is_none(), "a call has one machine");
    }
    Box::new(Listened { machine, asked })
}

/// What a machine would have asked for that was not needed, as its one request is done.
pub(super) fn hear(machine: Box<dyn StateMachine + Send>, outcome: Result<u64, IoError>) {
    let (mut listened, mut actions) = (listen(machine), Vec::new());
    listened.handle(Event::Start, &mut actions);
    listened.handle(Event::IoDone { result: outcome }, &mut actions);
}

pub(super) struct Listened<M: ?Sized> {
    asked: Asked,
    machine: Box<M>,
}

impl<M: StateMachine + ?Sized> StateMachine for Listened<M> {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        let before = actions.len();
        self.machine.handle(event, actions);
        self.asked.lock().unwrap().extend_from_slice(&actions[before..]);
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        self.machine.access_of(rank)
    }

    fn place_of(&self, rank: Rank) -> Option<&Access> {
        self.machine.place_of(rank)
    }

    fn choice(&self) -> Option<&Choice> {
        self.machine.choice()
    }
}

impl Listened<ViewExchange> {
    /// As the machine's own.
    pub(super) fn views(self) -> Option<Arc<[View]>> {
        self.machine.views()
    }
}

/// What each rank's machines asked for, in the order of its calls.
type AllAsked = Vec<Vec<Vec<Action>>>;

/// Through the library.
fn real(workload: &Workload, scene: &Scene, place: Place, hints: &Hints) -> AllAsked {
    run::run(workload, scene, place, hints);
    let mut all = vec![Vec::new(); workload.ranks() as usize];
    for (number, asked) in std::mem::take(&mut *ASKED.lock().unwrap()) {
        all[run::rank_of(number) as usize].push(std::mem::take(&mut *asked.lock().unwrap()));
    }
    all
}

/// Through the simulator.
fn predicted(workload: &Workload, scene: &Scene, place: Place, hints: &Hints) -> AllAsked {
    let machines: Mutex<Vec<Vec<Asked>>> = Mutex::new(vec![Vec::new(); workload.ranks() as usize]);
    let options = Options { ranks_per_node: Some(place.ranks_per_node), ..Options::default() };
    let machine = scene.machine(workload.ranks().div_ceil(place.ranks_per_node));
    let listen = |rank: u32, machine| -> Box<dyn StateMachine + Send> {
        let asked = Asked::default();
        machines.lock().unwrap()[rank as usize].push(asked.clone());
        Box::new(Listened { machine, asked })
    };
    pio_sim::simulate_with(&machine, workload, place.strategy, hints, &options, &listen).unwrap();
    let taken = |asked: Asked| std::mem::take(&mut *asked.lock().unwrap());
    let machines = machines.into_inner().unwrap();
    machines.into_iter().map(|machines| machines.into_iter().map(taken).collect()).collect()
}

/// Actions by their kind and the rank that they concern, if any.
fn by_kind(actions: &[Action]) -> BTreeMap<(&'static str, Option<Rank>), Vec<Action>> {
    let mut found: BTreeMap<_, Vec<Action>> = BTreeMap::new();
    for action in actions {
        let kind = match action {
            Action::Send { to, message } => (kind_of(message), Some(*to)),
            Action::SendData { to, .. } => ("data", Some(*to)),
            Action::Gather { .. } => ("gather", None),
            Action::Copy { .. } => ("copy", None),
            Action::Io(_) => ("request", None),
            Action::Finish { .. } => ("finish", None),
        };
        let mut action = action.clone();
        if let Action::Copy { piece } = &mut action {
            // A rank that works alone is rank 0 of one here, and has its number there.
            piece.client = Rank(0);
        }
        found.entry(kind).or_default().push(action);
    }
    found
}

fn kind_of(message: &Message) -> &'static str {
    match message {
        Message::AmongLeaders(message) => kind_of(message),
        Message::Grant { .. } | Message::Release { .. } | Message::Place(_) => "grant",
        Message::Acknowledge { .. } => "acknowledge",
        Message::Summary(_) | Message::Clients(_) => "add up",
        Message::Ended { .. } => "end",
        Message::Describe(_) | Message::TakePart { .. } | Message::Register(_) | Message::Inside(_) => {
            "describe"
        }
    }
}

fn assert_twins(name: &str, workload: &Workload, scene: &Scene, place: Place, hints: &Hints) {
    let real = real(workload, scene, place, hints);
    workload.files.iter().for_each(|file| scene.remove(&file.path));
    let predicted = predicted(workload, scene, place, hints);
    for (rank, (real, predicted)) in real.iter().zip(&predicted).enumerate() {
        assert_eq!(real.len(), predicted.len(), "{name}, {place:?}: operations of rank {rank}");
        for (number, (real, predicted)) in real.iter().zip(predicted).enumerate() {
            assert!(!real.is_empty());
            let what = format!("{name}, {place:?}, {}, rank {rank}, operation {number}", hints.to_text());
            let (real, predicted) = (by_kind(real), by_kind(predicted));
            assert!(
                real.keys().eq(predicted.keys()),
                "{what}: with {:?} and {:?}",
                real.keys(),
                predicted.keys()
            );
            for (kind, real) in &real {
                let predicted = &predicted[kind];
                let first = real.iter().zip(predicted).position(|(real, predicted)| real != predicted);
                let at = first.unwrap_or(real.len().min(predicted.len()));
                let (next, expected) = (real.get(at), predicted.get(at));
                assert_eq!(next, expected, "{what}, {kind:?}, number {at}: real and predicted");
            }
        }
    }
}

/// A failure says the seed.
fn assert_random_workloads(scene: &Scene, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        // Now and then so many that they do not describe their accesses to all.
        let ranks = random.random_range(if seed % 15 == 7 { 9..20 } else { 1..6 });
        let workload = any_workload(&mut random, ranks);
        let hints = any_hints(&mut random, ranks);
        let ranks_per_node = random.random_range(1..=ranks);
        let strategy = Strategy::ALL[seed as usize % Strategy::ALL.len()];
        let place = Place { ranks_per_node, strategy, files_exist: false };
        assert_twins(&format!("seed {seed}"), &workload, scene, place, &hints);
    }
}

#[test]
fn random_workloads_on_files_ask_for_the_same() {
    assert_random_workloads(&Scene::of_files(), 0..150);
}

#[test]
fn random_workloads_on_servers_ask_for_the_same() {
    assert_random_workloads(&Scene::of_servers(), 0..150);
}

/// With every strategy, on one node and on several.
fn assert_everywhere(scene: &Scene, name: &str, workload: &Workload, files_exist: bool) {
    for strategy in Strategy::ALL {
        for ranks_per_node in [4, 2] {
            let place = Place { ranks_per_node, strategy, files_exist };
            assert_twins(name, workload, scene, place, &Hints::default());
        }
    }
}

fn assert_workloads_of_the_literature(scene: &Scene) {
    for (name, words) in [
        ("bt-io", &[("ranks", "4"), ("mesh", "12"), ("dumps", "2")][..]),
        ("flash-io", &[("ranks", "4"), ("blocks", "4"), ("cells", "4")]),
        ("ior-hard", &[("ranks", "4"), ("segments", "8")]),
        (
            "collapse",
            &[("ranks", "4"), ("x", "16"), ("y", "16"), ("z", "16"), ("iterations", "5"), ("restart", "no")],
        ),
    ] {
        let words: Vec<_> = words.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let workload = pio_sim::workload::find(name).unwrap().build(&words, 1).unwrap();
        assert_everywhere(scene, name, &workload, false);
    }
}

#[test]
fn workloads_of_the_literature_on_files_ask_for_the_same() {
    assert_workloads_of_the_literature(&Scene::of_files());
}

#[test]
fn workloads_of_the_literature_on_servers_ask_for_the_same() {
    assert_workloads_of_the_literature(&Scene::of_servers());
}

/// Ranks that describe their accesses to aggregators or to leaders alone, four nodes of them.
fn assert_many_ranks(scene: &Scene) {
    let words = [("ranks", "64"), ("mesh", "16"), ("dumps", "2")];
    let words: Vec<_> = words.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let workload = pio_sim::workload::find("bt-io").unwrap().build(&words, 1).unwrap();
    for strategy in [Strategy::TwoPhase, Strategy::Auto] {
        for describe in [Describe::Aggregators, Describe::Leaders] {
            let place = Place { ranks_per_node: 16, strategy, files_exist: false };
            let hints = Hints { describe: Some(describe), ..Hints::default() };
            assert_twins("bt-io of many", &workload, scene, place, &hints);
        }
    }
}

#[test]
fn many_ranks_on_files_ask_for_the_same() {
    assert_many_ranks(&Scene::of_files());
}

#[test]
fn many_ranks_on_servers_ask_for_the_same() {
    assert_many_ranks(&Scene::of_servers());
}

#[test]
fn leaders_without_data_of_their_own_speak_for_others() {
    // All is in the domain of one leader: its request ends the operation, and it gives out what it has just read.
    let hints = Hints {
        cb_nodes: Some(3),
        striping_unit: Some(4 << 20),
        describe: Some(Describe::Leaders),
        ..Hints::default()
    };
    let place = Place { ranks_per_node: 4, strategy: Strategy::TwoPhase, files_exist: false };
    let workload = leaders_without_data();
    assert_twins(&workload.name, &workload, &Scene::of_files(), place, &hints);
}

/// A trace that Pioscope recorded of a real program; `tests/twin/README.md` says how.
fn recorded(name: &str) -> Workload {
    let path = format!("{}/tests/twin/{name}.pio", env!("CARGO_MANIFEST_DIR"));
    Workload::from_trace(&Trace::open(path.as_ref()).unwrap()).unwrap()
}

fn assert_recorded_programs(scene: &Scene) {
    for name in ["collapse", "nonblocking", "pnetcdf"] {
        assert_everywhere(scene, name, &recorded(name), true);
    }
}

/// The MPI carried nonblocking calls on while the program waited: that is not to be done once more.
#[test]
fn what_the_recorded_mpi_did_is_not_the_programs() {
    let steps = recorded("nonblocking").programs.concat();
    assert!(!steps.iter().any(|step| matches!(step.what, What::Request { .. })));
}

#[test]
fn recorded_programs_on_files_ask_for_the_same() {
    assert_recorded_programs(&Scene::of_files());
}

#[test]
fn recorded_programs_on_servers_ask_for_the_same() {
    assert_recorded_programs(&Scene::of_servers());
}

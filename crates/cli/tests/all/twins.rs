//! What is predicted is what is run: a real job under a strategy, recorded, and the same job predicted under that strategy,
//! have the same messages and the same requests, rank by rank and call by call.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pio_mpi::Commands;
use pio_plan::Strategy;
use pio_trace::{Call, Flags, Layer, Op, Target, Trace};

use crate::servers::Servers;
use crate::support::{Place, mpi, mpiexec};

const RANKS: [u32; 4] = [1, 2, 4, 8];
/// Of the program; of each, four calls.
const PATTERNS: usize = 7;
/// Several windows for each aggregator, and several buffers of those that sieve.
const HINTS: &str = "cb_buffer_size=32768,ind_rd_buffer_size=16384,ind_wr_buffer_size=16384";

/// Bytes of a rank's contiguous block. On some processors the library reads more than 256 KiB of a plain file block by block;
/// and a server gets more of the other than one request takes.
pub(crate) const FILE_BLOCK: &str = "100000";
const STORE_BLOCK: &str = "6600000";

/// One node as the tests run on, with files or with servers.
const MACHINE: &str = include_str!("../../../mpiio/tests/twin/machine.toml");
pub(crate) const FILES: &str = include_str!("../../../mpiio/tests/twin/files.toml");
const SERVERS: &str = include_str!("../../../mpiio/tests/twin/servers.toml");
/// As described there.
const SERVE: [&str; 4] = ["--servers", "3", "--strip", "8 KiB"];

/// What a rank's call did: how often each message (what, to whom, bytes) and each request (what, to which server if to any,
/// offset of its first byte, bytes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Done {
    messages: BTreeMap<(Call, u32, u64), u32>,
    requests: BTreeMap<(Op, Option<u32>, u64, u64), u32>,
}

/// A read or write by MPI-IO of a rank.
pub(crate) type CallOfRank = (u32, String, Call);

/// What each call of a trace did.
fn done(trace: &Path) -> BTreeMap<CallOfRank, Done> {
    let trace = Trace::open(trace).unwrap();
    let tables = trace.tables().clone();
    let (mut calls, mut done) = (BTreeMap::new(), BTreeMap::<_, Done>::new());
    let mut short: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for event in trace.events().map(|event| event.unwrap()) {
        let Some(rank) = tables.processes[event.process.index()].rank else { continue };
        let moves = matches!(event.op(), Op::Read | Op::Write);
        if event.layer() == Layer::MpiIo && moves {
            let path = &tables.file_of_event(&event).unwrap().path;
            let name = path.rsplit('/').next().unwrap().to_owned();
            calls.insert((rank, event.operation), (rank, name, event.call));
        }
        if !event.flags.contains(Flags::PHYSICAL) {
            continue;
        }
        let of_call = done.entry((rank, event.operation)).or_default();
        match event.target {
            Target::Peer { rank: peer } => {
                *of_call.messages.entry((event.call, peer, event.size)).or_default() += 1;
            }
            Target::Extent { offset } if moves => {
                // Who was given less than asked for asks for the rest, to learn whether the file ends there.
                let ended = short.insert(
                    rank,
                    (event.result > 0 && event.transferred() < event.size)
                        .then(|| offset + event.transferred()),
                );
                if event.op() == Op::Read && ended == Some(Some(offset)) {
                    continue;
                }
                *of_call.requests.entry((event.op(), None, offset, event.size)).or_default() += 1;
            }
            Target::Server { server, offset } => {
                *of_call.requests.entry((event.op(), Some(server), offset, event.size)).or_default() += 1;
            }
            _ => {}
        }
    }
    calls.into_iter().map(|(id, call)| (call, done.remove(&id).unwrap_or_default())).collect()
}

/// A folder with the program, and the machine with this storage.
pub(crate) fn scene(mpi: &Commands, storage: &str) -> Place {
    let place = Place::new();
    place.compile(&mpi.mpicc, "twins", include_str!("programs/twins.c"), &[]);
    let cores = std::thread::available_parallelism().unwrap().get();
    let machine = MACHINE.replace("NODES", "1").replace("CORES", &cores.to_string());
    fs::write(place.join("node.toml"), format!("{machine}{storage}")).unwrap();
    place
}

/// Runs the program under a strategy, and predicts it: what the calls of both did.
fn twins(
    place: &Place,
    mpi: &Commands,
    ranks: u32,
    strategy: Strategy,
    store: Option<&str>,
    block: &str,
) -> [BTreeMap<CallOfRank, Done>; 2] {
    let name = format!("{strategy}-{ranks}");
    let trace = format!("{name}.pio");
    // As the trace names them: the name says where a store puts a file.
    let data = place.join(&format!("{name}-data/"));
    fs::create_dir(&data).unwrap();
    let data = data.to_str().unwrap();
    let job = mpiexec(mpi, ranks);
    let mut words = vec!["apply", "-s", strategy.name(), "--hints", HINTS, "--record", &trace];
    words.extend(["--machine", "node.toml"]);
    words.extend(store.iter().flat_map(|store| ["--store", store]));
    words.push("--");
    words.extend(job.iter().map(String::as_str).chain(["./twins", data, block]));
    place.pioscope(words).succeeds();
    fs::create_dir(place.join(&name)).unwrap();
    let words = ["predict", &trace, "-m", "node.toml", "-s", strategy.name(), "--hints", HINTS, "-o", &name];
    place.pioscope(words).succeeds();
    let mut written = fs::read_dir(place.join(&name)).unwrap().map(|entry| entry.unwrap().path());
    let predicted = written.find(|path| path.extension().is_some_and(|extension| extension == "pio"));
    let (real, predicted) = (done(&place.join(&trace)), done(&predicted.unwrap()));
    assert_eq!(real.keys().collect::<Vec<_>>(), predicted.keys().collect::<Vec<_>>(), "{name}");
    assert_eq!(real.len(), ranks as usize * PATTERNS * 4, "{name}");
    [real, predicted]
}

#[test]
fn on_files_the_same_messages_and_requests() {
    let Some(mpi) = mpi() else { return };
    let place = scene(&mpi, FILES);
    for ranks in RANKS {
        for strategy in Strategy::ALL {
            let [real, predicted] = twins(&place, &mpi, ranks, strategy, None, FILE_BLOCK);
            for (call, real) in &real {
                assert!(!real.requests.is_empty() || ranks > 1, "{strategy}, {call:?}");
                assert_eq!(real, &predicted[call], "{strategy}, {ranks} ranks, {call:?}: real and predicted");
            }
        }
    }
}

#[test]
fn on_servers_the_same_messages_and_requests() {
    let Some(mpi) = mpi() else { return };
    let place = scene(&mpi, SERVERS);
    let _servers = Servers::start(&place.join("store"), &SERVE);
    for ranks in RANKS {
        for strategy in Strategy::ALL {
            let [real, predicted] =
                twins(&place, &mpi, ranks, strategy, Some("store/store.toml"), STORE_BLOCK);
            for (call, real) in &real {
                assert!(!real.requests.is_empty() || ranks > 1, "{strategy}, {call:?}");
                assert!(real.requests.keys().all(|request| request.1.is_some()), "{strategy}, {call:?}");
                assert_eq!(real, &predicted[call], "{strategy}, {ranks} ranks, {call:?}: real and predicted");
            }
        }
    }
}

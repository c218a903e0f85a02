//! The paper's benchmark on the simulator: the same strategies that the library runs, on the paper's cluster.
//!
//! The cluster's description is fitted to all four tables.

use pio_layout::{Datatype, LayoutError, View};
use pio_machine::{Bandwidth, Duration, IoNodes, Machine, Storage};
use pio_plan::{Direction, Hints, Strategy};
use pio_sim::SimError;
use pio_sim::workload::{Open, Step, What, Workload};
use pio_sim::{Options, simulate};
use pio_trace::{Call, File, HandleId, ViewId};

use super::HongError;
use super::linear::closest_to_one;
use super::model::{COUNT, Experiment, Method, Parameter, Parameters};
use super::published::{Measurement, Printed};

/// The strategy of a column, if the simulator has it.
pub fn strategy(method: Method) -> Option<Strategy> {
    method.name().parse().ok()
}

/// Seconds of one execution in simulation; none if the simulator does not have the strategy. As many executions are
/// simulated as asked for, one after the other, and what opening and closing takes is left out.
///
/// # Errors
/// If the machine has no room for the clients, or no I/O servers to be so many.
pub fn seconds(
    machine: &Machine,
    experiment: &Experiment,
    executions: u32,
) -> Result<Option<f64>, HongError> {
    let Some(strategy) = strategy(experiment.method) else { return Ok(None) };
    let machine = with_room_for(machine, experiment)?;
    let makespan = |executions: u32| -> Result<f64, HongError> {
        let workload = workload(experiment, executions)?;
        let (hints, options) = (Hints::default(), Options::default());
        let found = simulate(&machine, &workload, strategy, &hints, &options, None, &mut |_| {})?;
        Ok(found.makespan.seconds())
    };
    Ok(Some((makespan(executions)? - makespan(0)?) / f64::from(executions)))
}

/// The machine with as many servers as the experiment has, and at least as many nodes as it has clients.
fn with_room_for(machine: &Machine, experiment: &Experiment) -> Result<Machine, HongError> {
    let mut machine = machine.clone();
    match servers(&mut machine.storage) {
        Some(io) => io.count = experiment.servers,
        // Storage without servers is taken for the one server of the paper's tables.
        None if experiment.servers == 1 => {}
        None => {
            return Err(HongError::NoServers { machine: machine.name, servers: experiment.servers });
        }
    }
    machine.nodes.count = machine.nodes.count.max(experiment.clients);
    open_and_close_at_once(&mut machine);
    Ok(machine)
}

/// The I/O servers, of which there can be another number; none where a file system is described by its answers alone.
fn servers(storage: &mut Storage) -> Option<&mut IoNodes> {
    match storage {
        Storage::Local { .. } | Storage::Shared(_) => None,
        Storage::Striped { io, .. } | Storage::IoNodes { io, .. } => Some(io),
        Storage::Parallel(files) => Some(&mut files.io),
    }
}

/// Clients that open one after the other would begin one after the other, too, and end earlier than that.
fn open_and_close_at_once(machine: &mut Machine) {
    let (open, close) = match &mut machine.storage {
        Storage::Local { .. } => (None, None),
        Storage::Shared(files) => (Some(&mut files.open), Some(&mut files.close)),
        Storage::Parallel(files) => (Some(&mut files.metadata.open), Some(&mut files.metadata.close)),
        Storage::Striped { open, close, .. } | Storage::IoNodes { open, close, .. } => {
            (Some(open), Some(close))
        }
    };
    let calls = &mut machine.calls;
    for time in [open, close, Some(&mut calls.open), Some(&mut calls.close)].into_iter().flatten() {
        *time = Duration::ZERO;
    }
}

/// Every client opens the file, sees every m-th segment of it, and reads or writes its segments so many times.
pub fn workload(experiment: &Experiment, executions: u32) -> Result<Workload, HongError> {
    let Experiment { direction, pieces, piece_bytes, clients, .. } = *experiment;
    let name = "hong".to_owned();
    let wrong = |source: LayoutError| SimError::Layout { workload: name.clone(), source };
    let view = |client: u32| -> Result<View, LayoutError> {
        let segment = Datatype::bytes(piece_bytes);
        let filetype = segment.resized(0, piece_bytes as i64 * i64::from(clients))?;
        View::new(u64::from(client) * piece_bytes, piece_bytes, filetype)
    };
    let call = match direction {
        Direction::Read => Call::MpiFileReadAtAll,
        Direction::Write => Call::MpiFileWriteAtAll,
    };
    let program = |client: u32| {
        // The first clients have one segment more if they cannot have equally many.
        let own = pieces / u64::from(clients) + u64::from(u64::from(client) < pieces % u64::from(clients));
        let (handle, view) = (HandleId(client), ViewId(client));
        let positions = 0..own * piece_bytes;
        let access = What::Access { handle, call, direction, view, positions, collective: true };
        let calls = [What::Open(handle), What::SetView(handle, view)]
            .into_iter()
            .chain(std::iter::repeat_n(access, executions as usize))
            .chain([What::Close(handle)]);
        calls.map(|what| Step { think: Duration::ZERO, idle: Duration::ZERO, what }).collect()
    };
    let open = |rank| Open { file: 0, rank, group: Some(0), collective: 1 };
    Ok(Workload {
        views: (0..clients).map(view).collect::<Result<_, _>>().map_err(wrong)?,
        files: vec![File { path: "/pvfs2/data".to_owned() }],
        handles: (0..clients).map(open).collect(),
        groups: vec![(0..clients).collect()],
        programs: (0..clients).map(program).collect(),
        name,
        ..Workload::default()
    })
}

/// Fits what the tables tell of the machine: each parameter of the cost model has its key. All else is taken as given. A
/// simulated time is a sum of these and the rest, so they follow from least squares of the relative errors at once.
///
/// # Errors
/// If the machine has no room for the clients or says nothing of pieces at its servers, or the tables do not determine the
/// parameters.
pub fn fit(machine: &Machine) -> Result<Machine, HongError> {
    let mut bare = machine.clone();
    set(&mut bare, [0.0; COUNT])?;
    let mut rows = Vec::new();
    for Measurement { experiment, seconds: published } in Printed::load()?.measurements() {
        let Some(rest) = seconds(&bare, &experiment, 1)? else { continue };
        // What the parameters add to the rest is to come close to what is published.
        rows.push(experiment.coefficients().map(|times| times / (published - rest)).to_vec());
    }
    let (found, _) = closest_to_one(&rows).ok_or(HongError::Undetermined)?;
    let mut machine = machine.clone();
    set(&mut machine, std::array::from_fn(|index| found[index]))?;
    Ok(machine)
}

/// Sets what is fitted, to three digits: more than the measurements have.
fn set(machine: &mut Machine, fitted: Parameters) -> Result<(), HongError> {
    let Storage::Striped { pieces: Some(pieces), read, write, .. } = &mut machine.storage else {
        return Err(HongError::NoPieces { machine: machine.name.clone() });
    };
    let time = |parameter: Parameter| Duration::from_seconds(three_digits(fitted[parameter as usize]));
    machine.calls.read.call = time(Parameter::StartUp);
    machine.calls.write.call = time(Parameter::StartUp);
    machine.nodes.copy.piece = time(Parameter::Segment);
    let message = three_digits(fitted[Parameter::Message as usize] / 2.0);
    machine.messages.send = Duration::from_seconds(message);
    machine.messages.receive = Duration::from_seconds(message);
    write.request = time(Parameter::Write);
    pieces.write = time(Parameter::Gather);
    pieces.read = time(Parameter::Scatter);
    pieces.server.piece = time(Parameter::Placing);
    let byte = fitted[Parameter::ServerByte as usize];
    let bandwidth = if byte > 0.0 { three_digits(1.0 / byte) as u64 } else { FASTEST };
    read.bandwidth = Bandwidth::from_bytes_per_second(bandwidth);
    write.bandwidth = read.bandwidth;
    Ok(())
}

/// Bytes a second of a server that takes no time.
const FASTEST: u64 = 1_000_000_000_000_000;

fn three_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hong::Fit;

    fn machine() -> Machine {
        Machine::built_in("infiniband-nthu").unwrap()
    }

    #[test]
    fn the_machine_file_is_what_the_fit_finds() {
        let found = fit(&machine()).unwrap();
        assert_eq!(found.messages, machine().messages);
        assert_eq!(found.nodes.copy, machine().nodes.copy);
        assert_eq!(found.calls, machine().calls);
        assert_eq!(found.storage, machine().storage);
    }

    #[test]
    fn simulation_agrees_with_the_cost_model() {
        let parameters = Fit::of(&Printed::load().unwrap().measurements()).unwrap().parameters;
        for (method, direction, clients) in [Method::Collective, Method::Ecio]
            .into_iter()
            .flat_map(|method| [Direction::Read, Direction::Write].map(|direction| (method, direction)))
            .flat_map(|(method, direction)| [2, 4].map(|clients| (method, direction, clients)))
        {
            for pieces in [16_000, 1_024_000] {
                let experiment =
                    Experiment { method, direction, pieces, piece_bytes: 4, clients, servers: 1 };
                let model = experiment.seconds(&parameters);
                let simulated = seconds(&machine(), &experiment, 1).unwrap().unwrap();
                // The simulated server takes in a write while it puts another's pieces in their places.
                assert!((simulated / model - 1.0).abs() < 0.08, "{experiment:?}: {simulated} {model}");
            }
        }
    }

    #[test]
    fn slow_opens_and_closes_are_no_part_of_any_machines_time() {
        let experiment = Printed::load().unwrap().measurements()[0].experiment;
        let found = |machine: &Machine| seconds(machine, &experiment, 1).unwrap().unwrap();
        for (name, keys) in [
            ("infiniband-nthu", ["storage.open", "storage.close"]),
            ("pios-64", ["storage.open", "storage.close"]),
            (PARALLEL, ["storage.metadata.open", "storage.metadata.close"]),
        ] {
            let machine = Machine::find(name).unwrap();
            let keys = [keys[0], keys[1], "calls.open", "calls.close"].map(|key| (key, "1 s"));
            let usual = found(&machine);
            assert!(usual > 0.0, "{name}");
            assert_eq!(found(&machine.with_all(&keys).unwrap()), usual, "{name}");
        }
    }

    const PARALLEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/parallel/lustre.toml");

    #[test]
    fn every_storage_of_servers_has_as_many_as_the_experiment_and_others_are_refused() {
        let many = Experiment { servers: 4, ..Printed::load().unwrap().measurements()[0].experiment };
        for name in ["infiniband-nthu", "pios-64", PARALLEL] {
            let machine = with_room_for(&Machine::find(name).unwrap(), &many).unwrap();
            assert_eq!(machine.storage.io_nodes().unwrap().count, 4, "{name}");
        }
        let local = Machine { storage: Storage::Local { exclusive_writes: false }, ..machine() };
        assert!(seconds(&local, &Experiment { servers: 1, ..many }, 1).is_ok());
        assert_eq!(
            seconds(&local, &many, 1).unwrap_err().to_string(),
            "the machine 'infiniband-nthu' says nothing of I/O servers: expected 1 server, found 4"
        );
    }

    #[test]
    fn hundred_executions_take_hundred_times_one() {
        let experiment = Printed::load().unwrap().measurements()[0].experiment;
        let [one, hundred] = [1, 100].map(|count| seconds(&machine(), &experiment, count).unwrap().unwrap());
        assert!((hundred / one - 1.0).abs() < 1e-3, "{one} {hundred}");
    }

    #[test]
    fn segments_that_cannot_be_dealt_out_evenly_are_all_there() {
        let experiment =
            Experiment { pieces: 10, clients: 4, ..Printed::load().unwrap().measurements()[0].experiment };
        let own = |steps: &Vec<Step>| match &steps[2].what {
            What::Access { positions, .. } => positions.end,
            _ => 0,
        };
        let workload = workload(&experiment, 1).unwrap();
        assert_eq!(workload.programs.iter().map(own).collect::<Vec<_>>(), [12, 12, 8, 8]);
    }
}

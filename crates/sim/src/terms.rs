//! What the automatic choice is to know of a machine: the terms of its cost model, from the machine's description.

use pio_machine::{Bandwidth, CallCost, Duration, Machine, Service, Storage};
use pio_plan::cost::{Behind, Terms};

/// The terms of the cost model on `machine`, for `Site::terms`: the library is told the same ones of the place where it runs.
pub fn terms(machine: &Machine) -> Terms {
    let usual = Terms::MEASURED;
    let (messages, link) = (&machine.messages, &machine.network.link);
    let library = machine.mpi_io.as_ref().map(|costs| &costs.pioscope);
    let call = library.map_or(Duration::ZERO, |library| library.call);
    let copy = &machine.nodes.copy;
    let files = Files::of(machine);
    // What was measured ends with a write by one of them: one rank has nothing to say, and only writes.
    let all_measured = library.into_iter().flat_map(|library| &library.together);
    let measured: Vec<_> = all_measured.filter(|one| one.collective.again > Duration::ZERO).collect();
    let alone = measured.iter().find(|one| one.ranks == 1).map(|one| one.collective.again.seconds());
    let write = alone.unwrap_or(call.seconds() + files.asking.1 + files.write.0);
    let together = measured.iter().filter(|one| one.ranks > 1);
    let together = together.map(|one| (one.ranks, (one.collective.again.seconds() - write).max(1e-6)));
    // Who yields lets the next go at once.
    let yields = machine.mpi_io.as_ref().is_some_and(|costs| !costs.spins);
    let turn = if yields { machine.nodes.switch } else { machine.nodes.quantum };
    let message = messages.send.seconds() + messages.receive.seconds() + messages.local_latency.seconds();
    let cache = machine.calls.processor_cache;
    let terms = Terms {
        message_s: known(message.max(link.latency.seconds()), usual.message_s),
        network_bytes_per_s: links_of_node(machine),
        copy_bytes_per_s: rate(copy.bandwidth),
        piece_s: known(
            library.and_then(|library| library.piece).unwrap_or(copy.piece).seconds(),
            usual.piece_s,
        ),
        extent_s: files.extent_s.unwrap_or(usual.extent_s),
        asking_read_s: files.asking.0,
        asking_write_s: files.asking.1,
        placed_piece_s: files.placed.0,
        placed_bytes_per_s: files.placed.1,
        read_s: known(files.read.0, usual.read_s),
        write_s: known(files.write.0, usual.write_s),
        new_pages_s: files.new.0,
        new_byte_s: files.new.1,
        read_miss_s: cache.map_or(0.0, |cache| cache.read_miss.seconds()),
        write_miss_s: cache.map_or(0.0, |cache| cache.write_miss.seconds()),
        cached_bytes: cache.map_or(0.0, |cache| cache.size as f64),
        cached_bytes_per_s: cache.map_or(usual.cached_bytes_per_s, |cache| rate(cache.write)),
        lock_s: known(files.lock_s, usual.lock_s),
        read_bytes_per_s: files.read.1,
        write_bytes_per_s: files.write.1,
        share_processors: machine.storage.shares_cores(),
        is_remote: matches!(machine.storage, Storage::Shared(_) | Storage::Parallel(_)),
        behind: behind(&machine.storage),
        turn_s: known(turn.seconds(), usual.turn_s),
        together: together.collect(),
    };
    debug_assert_eq!(terms.wrong(), None);
    terms
}

/// The servers that files are dealt out to, if those that open them only see calls to the kernel.
fn behind(storage: &Storage) -> Option<Behind> {
    match storage {
        Storage::Striped { io, strip, takes_views: false, .. } => {
            Some(Behind { servers: io.count, strip: *strip })
        }
        _ => None,
    }
}

/// What is not measured, or takes no time, is as it is where everything was measured: the model divides by it.
fn known(seconds: f64, usual: f64) -> f64 {
    if seconds > 0.0 { seconds } else { usual }
}

/// Bytes a second of all links of a compute node: what its ranks have together. One that sends one undivided message at a time has
/// the rate of one link alone, but seldom is the only rank that sends.
fn links_of_node(machine: &Machine) -> f64 {
    rate(machine.network.link.bandwidth) * f64::from(machine.network.rails.nodes)
}

fn rate(bandwidth: Bandwidth) -> f64 {
    bandwidth.bytes_per_second().max(1) as f64
}

/// What requests take: seconds each, and bytes a second.
struct Files {
    read: (f64, f64),
    write: (f64, f64),
    /// What new pages add, if that is known: seconds for a write, and for a byte.
    new: (f64, f64),
    lock_s: f64,
    extent_s: Option<f64>,
    /// A rank's processor, for a read from a server, and for a write.
    asking: (f64, f64),
    /// What pieces take a server: seconds each, and bytes a second.
    placed: (f64, f64),
}

const NOTHING: (f64, f64) = (0.0, 0.0);

/// So long a call's rate counts: an operation's requests are seldom longer.
const LONG: u64 = 1 << 20;

impl Files {
    fn of(machine: &Machine) -> Files {
        let calls = &machine.calls;
        let new = calls.new_pages.as_ref().map(of_call).map_or(NOTHING, |(call, rate)| (call, 1.0 / rate));
        match &machine.storage {
            // A lock and its end are two calls that move nothing.
            Storage::Local { .. } => Files {
                new,
                lock_s: 2.0 * calls.seek.seconds(),
                ..Files::that_take(of_call(&calls.read), of_call(&calls.write), machine)
            },
            Storage::Shared(files) => {
                let of = |service: &Service, call: &CallCost| {
                    let (seconds, rate) = of_service(service);
                    // A longer call makes requests of that size, one after the other.
                    let again_s = files.request.map_or(0.0, |most| seconds / most as f64);
                    (seconds + call.call.seconds(), 1.0 / (1.0 / rate + again_s))
                };
                let (read, write) = (of(&files.read, &calls.read), of(&files.write, &calls.write));
                Files { lock_s: 2.0 * files.lock.seconds(), ..Files::that_take(read, write, machine) }
            }
            Storage::Parallel(files) => {
                // To the server and back; a file's targets work side by side, as far as a node's links let them. They are as many
                // as behind all components: most of a long file is there.
                let network = &machine.network.link;
                let of = |service: &Service, call: &CallCost| {
                    let way = call.call.seconds() + 2.0 * network.latency.seconds();
                    let (seconds, of_target) = of_service(service);
                    let all = of_target * f64::from(files.stripe_count());
                    (way + seconds, all.min(links_of_node(machine)))
                };
                let (read, write) =
                    (of(&files.servers.read, &calls.read), of(&files.servers.write, &calls.write));
                Files {
                    lock_s: 2.0 * (files.metadata.lock.seconds() + 2.0 * network.latency.seconds()),
                    ..Files::that_take(read, write, machine)
                }
            }
            Storage::Striped { read, write, pieces, .. } => {
                let files = Files {
                    new: if machine.storage.shares_cores() { new } else { NOTHING },
                    asking: (calls.read.call.seconds(), calls.write.call.seconds()),
                    // A lock and its end go to the directory and back.
                    lock_s: 4.0 * machine.network.link.latency.seconds(),
                    ..Files::that_take(of_service(read), of_service(write), machine)
                };
                let Some(pieces) = pieces else { return files };
                let listing = pieces.write.seconds();
                let placed = (pieces.server.piece.seconds(), rate(pieces.server.bandwidth));
                Files { extent_s: Some(listing).filter(|seconds| *seconds > 0.0), placed, ..files }
            }
            // What an I/O node takes depends on what is inside.
            Storage::IoNodes { .. } => Files::that_take(of_call(&calls.read), of_call(&calls.write), machine),
        }
    }

    /// Nothing but these requests is known to take time; servers place pieces as ranks do.
    fn that_take(read: (f64, f64), write: (f64, f64), machine: &Machine) -> Files {
        let copy = &machine.nodes.copy;
        Files {
            read,
            write,
            new: NOTHING,
            lock_s: 0.0,
            extent_s: None,
            asking: NOTHING,
            placed: (copy.piece.seconds(), rate(copy.bandwidth)),
        }
    }
}

fn of_service(service: &Service) -> (f64, f64) {
    (service.request.seconds(), rate(service.bandwidth))
}

/// A call without bytes, and at which rate longer ones move.
fn of_call(cost: &CallCost) -> (f64, f64) {
    (cost.call.seconds(), LONG as f64 / cost.moving(LONG).seconds().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_terms() {
        for name in Machine::built_in_names() {
            let machine = Machine::built_in(name).unwrap();
            assert_eq!(terms(&machine).wrong(), None, "{name}");
        }
    }

    #[test]
    fn what_the_processors_caches_do_is_told() {
        let mut machine = Machine::built_in("lustre").unwrap();
        assert_eq!(terms(&machine).cached_bytes, 0.0);
        let (size, read, write) =
            (13 << 20, Bandwidth::from_bytes_per_second(15), Bandwidth::from_bytes_per_second(16));
        let [read_miss, write_miss] = [300, 500].map(|time| Duration::from_picoseconds(time * 1000));
        let cache = pio_machine::ProcessorCache { size, read, write, read_miss, write_miss };
        machine.calls.processor_cache = Some(cache);
        let found = terms(&machine);
        assert_eq!((found.read_miss_s, found.write_miss_s), (300e-9, 500e-9));
        assert_eq!((found.cached_bytes, found.cached_bytes_per_s), ((13 << 20) as f64, 16.0));
    }

    #[test]
    fn a_file_on_many_targets_has_the_rate_of_all_links_of_a_node() {
        let mut machine = Machine::built_in("lustre").unwrap().with("storage.stripe-count", "288").unwrap();
        for rails in [1, 4] {
            machine.network.rails.nodes = rails;
            let found = terms(&machine);
            assert_eq!(found.read_bytes_per_s, found.network_bytes_per_s);
            assert_eq!(found.read_bytes_per_s, f64::from(rails) * rate(machine.network.link.bandwidth));
        }
    }
}

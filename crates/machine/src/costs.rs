//! The costs in a description, to be taken times a factor each: what `machines fit` adjusts to recorded runs.
//!
//! A cost is one or several numbers that belong together: a factor of 2 makes what they stand for take twice as long, so that
//! rates are halved. How a kernel shares its processors, counts and sizes are facts rather than costs, and stay; so do the
//! insides of switches and I/O nodes, which recorded runs do not tell apart.

use std::fmt;

use crate::call_costs::CallCosts;
use crate::machine::{CallCost, Copy, Machine, Service, Storage};
use crate::mpi_io::{LibraryCosts, Repeated, Together};
use crate::parallel::{Metadata, ParallelFiles};
use crate::quantity::{Bandwidth, Duration};
use crate::rewrites::Rewrites;
use crate::shared_files::SharedFiles;

/// A cost in a description.
#[derive(Clone, Copy)]
pub struct Cost {
    /// The keys of its numbers, as the description has them; those of one table share its name.
    pub keys: &'static str,
    scale: fn(&mut Machine, Factor),
}

impl fmt::Debug for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.keys)
    }
}

/// By how much longer something takes.
#[derive(Clone, Copy)]
struct Factor(f64);

impl Factor {
    fn time(self, time: &mut Duration) {
        *time = Duration::from_picoseconds(rounded(time.picoseconds() as f64 * self.0));
    }

    fn times<const N: usize>(self, times: [&mut Duration; N]) {
        times.into_iter().for_each(|time| self.time(time));
    }

    fn rate(self, rate: &mut Bandwidth) {
        *rate = Bandwidth::from_bytes_per_second(rounded(rate.bytes_per_second() as f64 / self.0));
    }

    /// The part of a call that does not depend on its size.
    fn call(self, cost: &mut CallCost) {
        let before = cost.call;
        self.time(&mut cost.call);
        for (_, time) in &mut cost.sizes {
            *time = time.saturating_sub(before).saturating_add(cost.call);
        }
    }

    /// The part that does.
    fn bytes(self, cost: &mut CallCost) {
        self.rate(&mut cost.bandwidth);
        for (_, time) in &mut cost.sizes {
            let mut bytes = time.saturating_sub(cost.call);
            self.time(&mut bytes);
            *time = bytes.saturating_add(cost.call);
        }
    }

    fn call_and_bytes(self, cost: Option<&mut CallCost>) {
        if let Some(cost) = cost {
            self.call(cost);
            self.bytes(cost);
        }
    }

    fn read_and_write(self, costs: Option<&mut CallCosts>) {
        let Some(CallCosts { read, write }) = costs else { return };
        self.call_and_bytes(Some(read));
        self.call_and_bytes(Some(write));
    }

    fn repeated(self, time: &mut Repeated) {
        self.times([&mut time.after_work, &mut time.again]);
    }

    fn service(self, service: &mut Service) {
        self.time(&mut service.request);
        self.rate(&mut service.bandwidth);
    }

    fn copy(self, copy: &mut Copy) {
        self.rate(&mut copy.bandwidth);
        self.time(&mut copy.piece);
    }

    fn together(self, costs: Option<&mut LibraryCosts>, scale: fn(Factor, &mut Together)) {
        costs.into_iter().flat_map(|costs| &mut costs.together).for_each(|one| scale(self, one));
    }
}

/// Four digits: what is fitted is known to no more.
fn rounded(number: f64) -> u64 {
    let unit = 10_f64.powi((number.max(1.0).log10().floor() as i32 - 3).max(0));
    ((number / unit).round() * unit) as u64
}

fn own(machine: &mut Machine) -> Option<&mut LibraryCosts> {
    machine.mpi_io.as_mut().map(|costs| &mut costs.own)
}

fn pioscope(machine: &mut Machine) -> Option<&mut LibraryCosts> {
    machine.mpi_io.as_mut().map(|costs| &mut costs.pioscope)
}

fn opens(factor: Factor, one: &mut Together) {
    factor.times([&mut one.first_open, &mut one.first_close]);
    factor.repeated(&mut one.open);
    factor.repeated(&mut one.close);
}

fn views(factor: Factor, one: &mut Together) {
    factor.time(&mut one.first_view);
    factor.repeated(&mut one.view);
}

fn collective(factor: Factor, one: &mut Together) {
    factor.repeated(&mut one.collective);
}

fn barrier(factor: Factor, one: &mut Together) {
    factor.time(&mut one.barrier);
}

fn request(factor: Factor, one: &mut Together) {
    factor.time(&mut one.request);
}

/// The rate and the piece of one library.
fn exchange(factor: Factor, costs: Option<&mut LibraryCosts>) {
    let Some(costs) = costs else { return };
    costs.fresh.iter_mut().for_each(|fresh| factor.rate(fresh));
    costs.piece.iter_mut().for_each(|piece| factor.time(piece));
}

/// What servers of given rates, or a shared file system, take: for reads and for writes.
fn services(machine: &mut Machine) -> Option<(&mut Service, &mut Service)> {
    match &mut machine.storage {
        Storage::Striped { read, write, .. } => Some((read, write)),
        Storage::Shared(files) => Some((&mut files.read, &mut files.write)),
        Storage::Local { .. } | Storage::Parallel(_) | Storage::IoNodes { .. } => None,
    }
}

fn directory(machine: &mut Machine) -> Vec<&mut Duration> {
    match &mut machine.storage {
        Storage::Striped { open, create, close, resize, .. } => vec![open, create, close, resize],
        Storage::IoNodes { open, close, .. } => vec![open, close],
        Storage::Shared(files) => {
            let SharedFiles { open, create, close, resize, stat, unlink, .. } = &mut **files;
            [open, create, close, resize].into_iter().chain(stat).chain(unlink).collect()
        }
        Storage::Local { .. } | Storage::Parallel(_) => Vec::new(),
    }
}

/// A parallel file system, if files are in one.
fn parallel(machine: &mut Machine) -> Option<&mut ParallelFiles> {
    if let Storage::Parallel(files) = &mut machine.storage { Some(files) } else { None }
}

fn server_pieces(machine: &mut Machine, factor: Factor) {
    if let Storage::Striped { pieces: Some(pieces), .. } = &mut machine.storage {
        factor.times([&mut pieces.read, &mut pieces.write]);
        factor.copy(&mut pieces.server);
    }
}

const COSTS: &[Cost] = &[
    Cost { keys: "calls.open", scale: |machine, factor| factor.time(&mut machine.calls.open) },
    Cost { keys: "calls.create", scale: |machine, factor| factor.time(&mut machine.calls.create) },
    Cost { keys: "calls.close", scale: |machine, factor| factor.time(&mut machine.calls.close) },
    Cost { keys: "calls.seek", scale: |machine, factor| factor.time(&mut machine.calls.seek) },
    Cost { keys: "calls.resize", scale: |machine, factor| factor.time(&mut machine.calls.resize) },
    Cost {
        keys: "calls.stat",
        scale: |machine, factor| machine.calls.stat.iter_mut().for_each(|time| factor.time(time)),
    },
    Cost {
        keys: "calls.unlink",
        scale: |machine, factor| machine.calls.unlink.iter_mut().for_each(|time| factor.time(time)),
    },
    Cost {
        keys: "calls.dropped-pages",
        scale: |machine, factor| machine.calls.dropped_pages.iter_mut().for_each(|rate| factor.rate(rate)),
    },
    Cost {
        keys: "calls.rewrites",
        scale: |machine, factor| {
            let Some(Rewrites { open, close }) = &mut machine.calls.rewrites else { return };
            factor.call_and_bytes(Some(open));
            factor.call_and_bytes(Some(close));
        },
    },
    Cost { keys: "calls.sync", scale: |machine, factor| factor.call_and_bytes(machine.calls.sync.as_mut()) },
    Cost { keys: "calls.read.call", scale: |machine, factor| factor.call(&mut machine.calls.read) },
    Cost {
        keys: "calls.read.bandwidth, sizes",
        scale: |machine, factor| factor.bytes(&mut machine.calls.read),
    },
    Cost { keys: "calls.write.call", scale: |machine, factor| factor.call(&mut machine.calls.write) },
    Cost {
        keys: "calls.write.bandwidth, sizes",
        scale: |machine, factor| factor.bytes(&mut machine.calls.write),
    },
    Cost {
        keys: "calls.new-pages",
        scale: |machine, factor| factor.call_and_bytes(machine.calls.new_pages.as_mut()),
    },
    Cost { keys: "calls.new-folio", scale: |machine, factor| factor.time(&mut machine.calls.new_folio) },
    Cost {
        keys: "calls.askew",
        scale: |machine, factor| {
            machine.calls.askew.iter_mut().for_each(|askew| factor.rate(&mut askew.bandwidth))
        },
    },
    Cost {
        keys: "calls.processor-cache",
        scale: |machine, factor| {
            if let Some(cache) = &mut machine.calls.processor_cache {
                factor.rate(&mut cache.read);
                factor.rate(&mut cache.write);
                factor.times([&mut cache.read_miss, &mut cache.write_miss]);
            }
        },
    },
    Cost {
        keys: "calls.after-work",
        scale: |machine, factor| factor.read_and_write(machine.calls.after_work.as_mut()),
    },
    Cost {
        keys: "calls.direct",
        scale: |machine, factor| factor.read_and_write(machine.calls.direct.as_mut()),
    },
    Cost {
        keys: "calls.write-back",
        scale: |machine, factor| {
            machine.calls.write_back.iter_mut().for_each(|cost| factor.rate(&mut cost.bandwidth));
        },
    },
    Cost {
        keys: "calls.cold-reads",
        scale: |machine, factor| {
            if let Some(cost) = &mut machine.calls.cold_reads {
                factor.time(&mut cost.request);
                factor.rate(&mut cost.stream);
                factor.rate(&mut cost.bandwidth);
            }
        },
    },
    Cost {
        keys: "nodes.copy.bandwidth",
        scale: |machine, factor| factor.rate(&mut machine.nodes.copy.bandwidth),
    },
    Cost { keys: "nodes.copy.piece", scale: |machine, factor| factor.time(&mut machine.nodes.copy.piece) },
    Cost { keys: "nodes.switch", scale: |machine, factor| factor.time(&mut machine.nodes.switch) },
    Cost { keys: "nodes.wake", scale: |machine, factor| factor.time(&mut machine.nodes.wake) },
    Cost {
        keys: "messages",
        scale: |machine, factor| {
            let messages = &mut machine.messages;
            factor.times([&mut messages.send, &mut messages.receive, &mut messages.local_latency]);
        },
    },
    Cost {
        keys: "network.link.bandwidth",
        scale: |machine, factor| factor.rate(&mut machine.network.link.bandwidth),
    },
    Cost {
        keys: "network.link.latency",
        scale: |machine, factor| factor.time(&mut machine.network.link.latency),
    },
    Cost {
        keys: "storage.read",
        scale: |machine, factor| {
            if let Some((read, _)) = services(machine) {
                factor.service(read);
            }
        },
    },
    Cost {
        keys: "storage.write",
        scale: |machine, factor| {
            if let Some((_, write)) = services(machine) {
                factor.service(write);
            }
        },
    },
    Cost {
        keys: "storage.open, create, close, resize, stat, unlink",
        scale: |machine, factor| directory(machine).into_iter().for_each(|time| factor.time(time)),
    },
    Cost {
        keys: "storage.begin",
        scale: |machine, factor| {
            if let Storage::Striped { begin, .. } = &mut machine.storage {
                factor.time(begin);
            }
        },
    },
    Cost {
        keys: "storage.connect",
        scale: |machine, factor| {
            if let Storage::Striped { connect, .. } = &mut machine.storage {
                factor.time(connect);
            }
        },
    },
    Cost {
        keys: "storage.summing",
        scale: |machine, factor| {
            if let Storage::Striped { summing: Some(rate), .. } = &mut machine.storage {
                factor.rate(rate);
            }
        },
    },
    Cost { keys: "storage.pieces", scale: server_pieces },
    Cost {
        keys: "storage.servers.read",
        scale: |machine, factor| {
            parallel(machine).into_iter().for_each(|files| factor.service(&mut files.servers.read));
        },
    },
    Cost {
        keys: "storage.servers.write",
        scale: |machine, factor| {
            parallel(machine).into_iter().for_each(|files| factor.service(&mut files.servers.write));
        },
    },
    Cost {
        keys: "storage.servers.journal",
        scale: |machine, factor| {
            parallel(machine).into_iter().for_each(|files| factor.time(&mut files.servers.journal));
        },
    },
    Cost {
        keys: "storage.locks.request, callback",
        scale: |machine, factor| {
            for locks in parallel(machine).into_iter().flat_map(|files| &mut files.locks) {
                factor.times([&mut locks.request, &mut locks.callback]);
            }
        },
    },
    Cost {
        keys: "storage.metadata",
        scale: |machine, factor| {
            let Some(files) = parallel(machine) else { return };
            let Metadata { open, create, close, resize, lock, stat, unlink, .. } = &mut files.metadata;
            factor.times([open, create, close, resize, lock]);
            stat.iter_mut().chain(unlink).for_each(|time| factor.time(time));
        },
    },
    Cost {
        keys: "mpi-io.own.call",
        scale: |machine, factor| own(machine).into_iter().for_each(|costs| factor.time(&mut costs.call)),
    },
    Cost { keys: "mpi-io.own.fresh, piece", scale: |machine, factor| exchange(factor, own(machine)) },
    Cost {
        keys: "mpi-io.own.together: opens and closes",
        scale: |machine, factor| factor.together(own(machine), opens),
    },
    Cost {
        keys: "mpi-io.own.together: views",
        scale: |machine, factor| factor.together(own(machine), views),
    },
    Cost {
        keys: "mpi-io.own.together: collective",
        scale: |machine, factor| factor.together(own(machine), collective),
    },
    Cost {
        keys: "mpi-io.own.together: barrier",
        scale: |machine, factor| factor.together(own(machine), barrier),
    },
    Cost {
        keys: "mpi-io.pioscope.call",
        scale: |machine, factor| {
            pioscope(machine).into_iter().for_each(|costs| factor.time(&mut costs.call));
        },
    },
    Cost {
        keys: "mpi-io.pioscope.fresh, piece",
        scale: |machine, factor| exchange(factor, pioscope(machine)),
    },
    Cost {
        keys: "mpi-io.pioscope.together: opens and closes",
        scale: |machine, factor| factor.together(pioscope(machine), opens),
    },
    Cost {
        keys: "mpi-io.pioscope.together: views",
        scale: |machine, factor| factor.together(pioscope(machine), views),
    },
    Cost {
        keys: "mpi-io.pioscope.together: collective",
        scale: |machine, factor| factor.together(pioscope(machine), collective),
    },
    Cost {
        keys: "mpi-io.pioscope.together: barrier",
        scale: |machine, factor| factor.together(pioscope(machine), barrier),
    },
    Cost {
        keys: "mpi-io.pioscope.together: request",
        scale: |machine, factor| factor.together(pioscope(machine), request),
    },
];

impl Machine {
    /// The costs in this description: those that it has, and that are not 0.
    pub fn costs(&self) -> impl Iterator<Item = Cost> {
        COSTS.iter().copied().filter(|cost| self.scaled([(*cost, 2.0)]) != *self)
    }

    /// This machine with some costs taken times a factor above 0 each, rounded to four digits.
    pub fn scaled(&self, factors: impl IntoIterator<Item = (Cost, f64)>) -> Machine {
        let mut machine = self.clone();
        for (cost, factor) in factors {
            assert!(factor > 0.0 && factor.is_finite(), "{cost:?} times {factor}");
            (cost.scale)(&mut machine, Factor(factor));
        }
        machine
    }

    /// This machine with all that reads and writes take in the calls that carry them out times a factor above 0 each, rounded to
    /// four digits: those of a node's kernel, and of a file system that nodes share.
    pub fn with_reads_and_writes(&self, reads: f64, writes: f64) -> Machine {
        assert!(
            [reads, writes].iter().all(|factor| *factor > 0.0 && factor.is_finite()),
            "{reads}, {writes}"
        );
        let mut machine = self.clone();
        let (reads, writes) = (Factor(reads), Factor(writes));
        let calls = &mut machine.calls;
        reads.call_and_bytes(Some(&mut calls.read));
        writes.call_and_bytes(Some(&mut calls.write));
        writes.call_and_bytes(calls.new_pages.as_mut());
        writes.time(&mut calls.new_folio);
        for costs in [&mut calls.after_work, &mut calls.direct].into_iter().flatten() {
            reads.call_and_bytes(Some(&mut costs.read));
            writes.call_and_bytes(Some(&mut costs.write));
        }
        if let Some(cache) = &mut calls.processor_cache {
            reads.rate(&mut cache.read);
            writes.rate(&mut cache.write);
            reads.time(&mut cache.read_miss);
            writes.time(&mut cache.write_miss);
        }
        if let Some(cold) = &mut calls.cold_reads {
            reads.time(&mut cold.request);
            reads.rate(&mut cold.stream);
            reads.rate(&mut cold.bandwidth);
        }
        calls.write_back.iter_mut().for_each(|cost| writes.rate(&mut cost.bandwidth));
        if let Some((read, write)) = services(&mut machine) {
            reads.service(read);
            writes.service(write);
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi_io::MpiIo;

    /// One that has most costs of plain files.
    fn machine() -> Machine {
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        let time = Duration::from_picoseconds;
        machine.storage = Storage::Local { exclusive_writes: true };
        machine.calls.write = CallCost {
            call: time(1_000_000),
            bandwidth: Bandwidth::from_bytes_per_second(1_000_000_000),
            sizes: vec![(4096, time(3_000_000)), (65536, time(41_000_000))],
        };
        let together =
            vec![Together { ranks: 2, open: Repeated::always(time(5_000_000)), ..Together::default() }];
        machine.mpi_io = Some(MpiIo {
            own: LibraryCosts { together, call: time(400_000), ..LibraryCosts::default() },
            pioscope: LibraryCosts {
                together: vec![Together { ranks: 2, ..Together::default() }],
                ..LibraryCosts::default()
            },
            ..MpiIo::default()
        });
        machine
    }

    fn cost(machine: &Machine, keys: &str) -> Cost {
        machine.costs().find(|cost| cost.keys == keys).unwrap_or_else(|| panic!("{keys}"))
    }

    #[test]
    fn only_costs_that_a_description_has_are_named() {
        let local = machine();
        let names: Vec<_> = local.costs().map(|cost| cost.keys).collect();
        assert!(
            names.contains(&"calls.write.call") && names.contains(&"mpi-io.own.together: opens and closes")
        );
        // No server, no piece, and times of 0.
        for missing in
            ["storage.write", "storage.pieces", "mpi-io.own.together: views", "mpi-io.pioscope.call"]
        {
            assert!(!names.contains(&missing), "{missing}");
        }
        let striped = Machine::built_in("sp-argonne").unwrap();
        assert!(striped.costs().any(|cost| cost.keys == "storage.write"));
    }

    #[test]
    fn a_call_and_its_bytes_are_scaled_apart() {
        let machine = machine();
        let taking = |machine: &Machine, bytes| {
            let write = &machine.calls.write;
            write.call.picoseconds() + write.moving(bytes).picoseconds()
        };
        let slow_call = machine.scaled([(cost(&machine, "calls.write.call"), 3.0)]);
        let slow_bytes = machine.scaled([(cost(&machine, "calls.write.bandwidth, sizes"), 2.0)]);
        for bytes in [0, 1000, 4096, 30_000, 65_536, 1_000_000] {
            let before = taking(&machine, bytes);
            assert_eq!(taking(&slow_call, bytes), before + 2_000_000, "{bytes}");
            assert_eq!(taking(&slow_bytes, bytes), 2 * before - 1_000_000, "{bytes}");
        }
    }

    #[test]
    fn reads_and_writes_are_scaled_apart() {
        let machine = Machine { storage: Storage::Local { exclusive_writes: true }, ..machine() };
        let slower = machine.with_reads_and_writes(1.0, 2.0);
        let taking = |cost: &CallCost, bytes| cost.of(bytes).picoseconds();
        for bytes in [0, 1000, 65_536, 1_000_000] {
            let (read, write) = (&machine.calls.read, &machine.calls.write);
            assert_eq!(taking(&slower.calls.read, bytes), taking(read, bytes), "{bytes}");
            assert_eq!(taking(&slower.calls.write, bytes), 2 * taking(write, bytes), "{bytes}");
        }
        for name in Machine::built_in_names() {
            let machine = Machine::built_in(name).unwrap();
            let slower = machine.with_reads_and_writes(2.0, 1.5);
            assert_eq!(Machine::parse("slower", &slower.to_toml("")).unwrap().calls, slower.calls, "{name}");
        }
    }

    #[test]
    fn what_was_scaled_is_a_description() {
        for name in Machine::built_in_names().map(Some).chain([None]) {
            let machine = name.map_or_else(machine, |name| Machine::built_in(name).unwrap());
            for cost in machine.costs() {
                let slow = machine.scaled([(cost, 2.0)]);
                assert_ne!(slow, machine, "{cost:?}");
                assert_eq!(Machine::parse("slow", &slow.to_toml("")).unwrap(), slow, "{cost:?}");
            }
        }
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!([0.4, 12_344.0, 12_346.0, 999_960.0].map(rounded), [0, 12_340, 12_350, 1_000_000]);
    }
}

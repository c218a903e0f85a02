//! What would help that no setting of a program's makes: how a file system deals out files, how many I/O servers there are, and
//! where.

use anyhow::Result;
use pio_machine::{IoNodePlacement, Machine};
use pio_sim::Workload;

use super::search::{Predicted, STRIPS, io_time, takes_views};
use super::{Advice, worthwhile};

/// What would help a program by so much that it is worth saying.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BeyondHints {
    /// Strips of the machine's file system.
    pub strips: Option<Elsewise<u64>>,
    /// I/O servers as Pioscope's own, which whoever starts them may place.
    pub servers: Option<Elsewise<Servers>>,
}

/// The machine with something changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elsewise<T> {
    /// What it would have.
    pub value: T,
    /// How the program would be carried out.
    pub advice: Advice,
    /// Predicted, seconds.
    pub modelled_s: f64,
}

/// I/O servers of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Servers {
    pub count: u32,
    pub placement: IoNodePlacement,
    /// Whether no rank runs on their nodes.
    pub dedicated: bool,
}

impl BeyondHints {
    /// Changes the machine, for the best of the program as it is and all settings.
    ///
    /// # Errors
    /// If a changed machine cannot run the program.
    pub(super) fn search(machine: &Machine, workload: &Workload, best: &Predicted) -> Result<BeyondHints> {
        let search = Search { machine, workload, best };
        Ok(BeyondHints { strips: search.strips()?, servers: search.servers()? })
    }
}

struct Search<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    best: &'a Predicted,
}

impl Search<'_> {
    /// Other strips of a file system that is described with its servers.
    fn strips(&self) -> Result<Option<Elsewise<u64>>> {
        let Some(now) = self.machine.storage.strip().filter(|_| !takes_views(self.machine)) else {
            return Ok(None);
        };
        let mut found = None;
        for bytes in STRIPS.into_iter().filter(|bytes| *bytes != now) {
            // Some do not fit into an I/O node's buffer.
            if let Ok(machine) = self.machine.with("storage.strip", &format!("{bytes} B")) {
                self.try_out(&mut found, bytes, &machine)?;
            }
        }
        Ok(found)
    }

    /// Half, twice and four times as many servers; the best of these with ranks on their nodes or without, and elsewhere.
    fn servers(&self) -> Result<Option<Elsewise<Servers>>> {
        let is_theirs = takes_views(self.machine) && !self.machine.storage.shares_cores();
        let Some(io) = self.machine.storage.io_nodes().filter(|_| is_theirs) else { return Ok(None) };
        let mut found = None;
        let mut now = Servers { count: io.count, placement: io.placement, dedicated: io.dedicated };
        for count in [now.count / 2, now.count.saturating_mul(2), now.count.saturating_mul(4)] {
            self.try_servers(&mut found, Servers { count, ..now })?;
        }
        now = found.as_ref().map_or(now, |found| found.value);
        self.try_servers(&mut found, Servers { dedicated: !now.dedicated, ..now })?;
        now = found.as_ref().map_or(now, |found| found.value);
        for placement in IoNodePlacement::ALL.into_iter().filter(|placement| *placement != now.placement) {
            self.try_servers(&mut found, Servers { placement, ..now })?;
        }
        Ok(found)
    }

    /// Nothing, where there can be no such servers.
    fn try_servers(&self, found: &mut Option<Elsewise<Servers>>, servers: Servers) -> Result<()> {
        let Servers { count, placement, dedicated } = servers;
        if count == 0 || !dedicated && count > self.machine.nodes.count {
            return Ok(());
        }
        let changes = [
            ("storage.io.count", count.to_string()),
            ("storage.io.placement", placement.name().to_owned()),
            ("storage.io.dedicated", dedicated.to_string()),
        ];
        // Some networks have room for so many nodes and no more.
        match self.machine.with_all(&changes.each_ref().map(|(key, value)| (*key, value.as_str()))) {
            Ok(machine) => self.try_out(found, servers, &machine),
            Err(_) => Ok(()),
        }
    }

    /// Keeps what is worth it, and better than what was found.
    fn try_out<T>(&self, found: &mut Option<Elsewise<T>>, value: T, machine: &Machine) -> Result<()> {
        let Predicted { advice, time } = self.best;
        let (modelled_s, _) = io_time(machine, self.workload, advice)?;
        let least_s = found.as_ref().map_or(worthwhile(time.modelled_s), |found| found.modelled_s);
        if modelled_s < least_s {
            *found = Some(Elsewise { value, advice: advice.clone(), modelled_s });
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use pio_plan::{Hints, Strategy};

    use super::super::search::Time;
    use super::super::search::tests::collapse;
    use super::*;

    fn search(machine: &Machine) -> (f64, BeyondHints) {
        let (workload, advice) = (collapse(), Advice { strategy: Strategy::List, hints: Hints::default() });
        let modelled_s = io_time(machine, &workload, &advice).unwrap().0;
        let best = Predicted { advice, time: Time { modelled_s, interval: None } };
        (modelled_s, BeyondHints::search(machine, &workload, &best).unwrap())
    }

    #[test]
    fn other_strips_of_a_file_system_are_found() {
        // A strip for every few bytes: a server's time is that of its requests.
        let machine = Machine::find("sp-argonne").unwrap().with("storage.strip", "4 KiB").unwrap();
        let (now_s, found) = search(&machine);
        let strips = found.strips.unwrap();
        assert!(strips.modelled_s < now_s && strips.value > 4096, "{strips:?}");
        assert_eq!(found.servers, None);
    }

    #[test]
    fn strips_that_do_not_fit_into_an_io_node_are_left_out() {
        let buffer = [("io-node.buffer", "128 KiB"), ("io-node.unit", "1 MiB")];
        let machine = Machine::find("pios-64").unwrap().with_all(&buffer).unwrap();
        assert!(STRIPS.into_iter().any(|bytes| bytes > 128 << 10));
        let strips = search(&machine).1.strips;
        assert!(strips.as_ref().is_none_or(|strips| strips.value <= 128 << 10), "{strips:?}");
    }

    #[test]
    fn more_servers_of_ours_are_found() {
        let machine = Machine::find("sp-argonne").unwrap();
        let ours = [
            ("storage.takes-views", "true"),
            ("storage.io.count", "1"),
            ("storage.strip", "4 KiB"),
            // Neither hides what a server takes for its requests.
            ("storage.memory", "0 B"),
            ("storage.arm.seek", "0 s"),
        ];
        let machine = machine.with_all(&ours).unwrap();
        let (now_s, found) = search(&machine);
        let servers = found.servers.unwrap();
        assert!(servers.modelled_s < now_s && servers.value.count == 4, "{now_s} s: {servers:?}");
        assert_eq!(found.strips, None);
    }
}

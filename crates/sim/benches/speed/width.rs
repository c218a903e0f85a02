//! Predictions of large jobs: cost against ranks, all on one core, from making the workload to the simulated trace.

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::{Options, Progress, simulate, workload};

use crate::measure::{Part, Watch, peak_bytes, reset_peak};

pub(crate) const PART: Part = Part { name: "width", run };

/// The machine: 128 cores a node, 448 I/O servers.
const MACHINE: &str = "dragonfly-2048";
/// As many as a node has cores.
const RANKS_PER_NODE: u32 = 128;

/// A program on some servers under a strategy, with one number of ranks after the other.
struct Case {
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    strategy: Strategy,
    servers: &'static str,
    ranks: &'static [u32],
}

const CASES: [Case; 4] = [
    Case {
        workload: "flash-io",
        parameters: &[],
        strategy: Strategy::Independent,
        servers: "448",
        ranks: &[1024, 4096, 16_384, 100_000],
    },
    Case {
        workload: "ior-hard",
        parameters: &[("segments", "64")],
        strategy: Strategy::Independent,
        servers: "448",
        ranks: &[1024, 4096, 16_384, 100_000],
    },
    Case {
        workload: "bt-io",
        parameters: &[("mesh", "162"), ("dumps", "41"), ("verify", "no")],
        strategy: Strategy::TwoPhase,
        servers: "64",
        ranks: &[256, 1024, 4096, 16_384],
    },
    Case {
        workload: "bt-io",
        parameters: &[("mesh", "162"), ("dumps", "41"), ("verify", "no")],
        strategy: Strategy::Ecio,
        servers: "64",
        ranks: &[256, 1024, 4096, 16_384],
    },
];

fn run() {
    for case in &CASES {
        for ranks in case.ranks.iter().copied() {
            if let Err(error) = case.measure(ranks) {
                println!("  {}: {error}", case.workload);
            }
        }
    }
}

impl Case {
    fn measure(&self, ranks: u32) -> Result<(), Box<dyn std::error::Error>> {
        let machine = Machine::built_in(MACHINE)?.with("storage.io.count", self.servers)?;
        let mut parameters = vec![("ranks".to_owned(), ranks.to_string())];
        parameters
            .extend(self.parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let folder = tempfile::tempdir()?;
        reset_peak();
        let watch = Watch::start();
        let workload = workload::find(self.workload)?.build(&parameters, 1)?;
        let building = watch.seconds();
        let trace = folder.path().join("simulated.pio");
        let mut ignore = |_: Progress| {};
        let prediction = simulate(
            &machine,
            &workload,
            self.strategy,
            &Hints::default(),
            &Options { ranks_per_node: Some(RANKS_PER_NODE), ..Options::default() },
            Some(&trace),
            &mut ignore,
        )?;
        println!(
            "  {:<9} {:<12} {:>3} servers {ranks:>7} ranks {:>8.2} s ({building:.2} s of it the workload) · {:>8.2} us a rank · {:>6} MiB · {:.3} s of I/O predicted",
            self.workload,
            self.strategy.name(),
            self.servers,
            watch.seconds(),
            watch.seconds() / f64::from(ranks) * 1e6,
            peak_bytes().unwrap_or(0) >> 20,
            prediction.io_time_mean.seconds(),
        );
        Ok(())
    }
}

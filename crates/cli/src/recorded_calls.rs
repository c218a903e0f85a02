//! What the reads and writes of a recorded run say of the machine that it ran on.

use anyhow::{Error, Result};
use pio_explain::Explanation;
use pio_learn::file_call_factor;
use pio_machine::{Machine, Storage};
use pio_plan::{Hints, Strategy};
use pio_sim::{Options, Workload, simulate};
use pio_trace::{Op, Tables};

/// Calls that take less of a run's I/O time than this say nothing.
pub(crate) const LEAST_SHARE: f64 = 0.02;

/// How a run's MPI-IO was carried out, by its trace: as `own`, if that does not say it.
///
/// # Errors
/// If no prediction knows that strategy or these hints.
pub(crate) fn way_of_run(tables: &Tables, own: Strategy) -> Result<(Strategy, Hints)> {
    let strategy = tables.note(Tables::STRATEGY).map_or(Ok(own), Strategy::to_predict);
    let hints = Hints::parse(tables.note(Tables::HINTS).unwrap_or_default())?;
    Ok((strategy.map_err(Error::msg)?, hints))
}

/// The machine as a run found it that was carried out in this way: what reads and writes take goes by the run, and so do
/// predictions of the same program in other ways. Files on I/O servers are left as they are: what servers took, no call of a rank
/// tells.
///
/// # Errors
/// If the run cannot be simulated.
pub(crate) fn machine_of_run(
    machine: &Machine,
    run: &Explanation,
    workload: &Workload,
    (strategy, hints): &(Strategy, Hints),
    options: &Options,
) -> Result<Machine> {
    if !matches!(machine.storage, Storage::Local { .. } | Storage::Shared(_)) {
        return Ok(machine.clone());
    }
    let simulated = simulate(machine, workload, *strategy, hints, options, None, &mut |_| {})?;
    let crowded = simulated.ranks_per_node > machine.nodes.cores;
    let factor = |op| {
        let predicted_s = simulated.operation(op).mean_seconds(simulated.ranks);
        let measured_s = run.operations.mean_time_per_process_s(op).unwrap_or_default();
        let tells = measured_s >= LEAST_SHARE * run.io_time_s();
        if tells { file_call_factor(predicted_s, measured_s, crowded) } else { 1.0 }
    };
    Ok(machine.with_reads_and_writes(factor(Op::Read), factor(Op::Write)))
}

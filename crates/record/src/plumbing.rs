//! Processes that are only there to start the others.

use crate::collect::Member;
use crate::spool::Header;

/// Programs that start MPI jobs beside the launchers, here and on other nodes: what they read and write is not the job's I/O.
const PROXIES: [&str; 5] = ["hydra_pmi_proxy", "hydra_bstrap_proxy", "prted", "orted", "ssh"];

/// Slurm's commands that start processes. They read Slurm's configuration, and pass on what tasks print.
const OF_SLURM: [&str; 2] = ["srun", "salloc"];

/// Leaves out the processes that did nothing to files, Slurm's launchers, and the launchers of MPIs from jobs of MPI or if there is
/// nothing but launchers. Gives the name of a launcher if nothing is left.
pub(crate) fn drop_plumbing(members: &mut Vec<Member>) -> Option<String> {
    let is_launcher = |name: &&str| OF_SLURM.contains(name) || pio_mpi::is_launcher(name);
    let launcher = members.iter().map(|member| program(&member.spool.header)).find(is_launcher);
    let launcher = launcher.map(str::to_owned);
    members.retain(|member| member.spool.header.rank.is_some() || member.survey.has_files());
    let is_mpi = members.iter().any(|member| member.spool.header.rank.is_some());
    let starts = |member: &Member| {
        let program = program(&member.spool.header);
        is_launcher(&program) || PROXIES.contains(&program)
    };
    let is_all = members.iter().all(starts);
    members.retain(|member| {
        let of_slurm = OF_SLURM.contains(&program(&member.spool.header));
        member.spool.header.rank.is_some() || !(of_slurm || (is_mpi || is_all) && starts(member))
    });
    launcher.filter(|_| members.is_empty())
}

fn program(header: &Header) -> &str {
    header.command.split(' ').next().unwrap_or("").rsplit('/').next().unwrap_or("")
}

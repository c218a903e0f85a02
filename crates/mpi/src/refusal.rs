//! Why Open MPI's launcher starts nothing, and which option changes its mind.
//!
//! What the launcher says goes straight to the user, and is long. It refuses by rules that can be looked up beforehand.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::Family;
use crate::commands::{is_launcher, launcher_family, on_path};

/// Options that give a number of ranks.
const RANKS: [&str; 6] = ["-n", "-np", "-c", "--n", "--np", "--c"];
/// Options and variables by which the machines and slots are others than this one's cores.
const PLACES: [&str; 7] =
    ["-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile"];
const BATCH: [&str; 4] = ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE"];

/// What to add to a command whose job failed, if its launcher is Open MPI's and must have refused it.
pub fn refusal(command: &[OsString]) -> Option<String> {
    let at = command.iter().position(is_launcher)?;
    let launcher = on_path(&command[at])?;
    if launcher_family(&launcher)? != Family::OpenMpi {
        return None;
    }
    let name = command[at].to_string_lossy();
    let words = words_behind(command, at);
    // A process's folder in /proc belongs to its effective user.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root && !root_may(&words) {
        return Some(format!(
            "Open MPI starts nothing for root unless it is told to: add --allow-run-as-root after {name}"
        ));
    }
    let (ranks, cores) = (ranks(&words), cores());
    (ranks > cores && !slots_are_others(&words)).then(|| {
        format!(
            "Open MPI starts no more ranks than this machine has cores ({cores}; {ranks} were asked for) unless it is told to: \
             add --oversubscribe after {name}"
        )
    })
}

fn root_may(words: &[&str]) -> bool {
    let both =
        |prefix: &str| ["", "_CONFIRM"].iter().all(|end| is_set(format!("{prefix}_ALLOW_RUN_AS_ROOT{end}")));
    words.iter().any(|word| word.trim_start_matches('-') == "allow-run-as-root")
        || both("OMPI")
        || both("PRTE")
}

/// Whether what the launcher may start is not simply a rank a core of this machine.
fn slots_are_others(words: &[&str]) -> bool {
    let variables = ["OMPI_MCA_rmaps_base_oversubscribe", "PRTE_MCA_rmaps_default_mapping_policy"];
    words.iter().any(|word| PLACES.contains(word) || word.to_lowercase().contains("oversubscribe"))
        || variables.iter().chain(&BATCH).any(is_set)
}

/// Whether a command starts more ranks than Open MPI does by itself on this machine; so it may, if it begins with no launcher.
pub(crate) fn may_be_refused(command: &[OsString]) -> bool {
    command.iter().position(is_launcher).is_none_or(|at| ranks(&words_behind(command, at)) > cores())
}

fn words_behind(command: &[OsString], at: usize) -> Vec<&str> {
    command[at + 1..].iter().filter_map(|word| word.to_str()).collect()
}

/// Ranks asked for, of all programs of the command together. What follows a program's name may have such options of its own.
fn ranks(words: &[&str]) -> usize {
    let of_program = |words: &[&str]| {
        let at = words.iter().position(|word| RANKS.contains(word))?;
        words.get(at + 1)?.parse::<usize>().ok()
    };
    words.split(|word| *word == ":").filter_map(of_program).fold(0, usize::saturating_add)
}

/// Cores that this process may use: Open MPI does not count the threads of one twice.
fn cores() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let folders = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let cores = folders.filter_map(|cpu| fs::read_to_string(cpu.path().join("topology/core_cpus_list")).ok());
    match cores.collect::<BTreeSet<String>>().len() {
        0 => processors,
        cores => cores.min(processors),
    }
}

fn is_set(variable: impl AsRef<OsStr>) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_of_all_programs_count() {
        assert_eq!(ranks(&["-n", "4", "./a", "x", ":", "-np", "3", "./b"]), 7);
        assert_eq!(ranks(&["--bind-to", "core", "-n", "16", "./a", "-n", "3"]), 16);
        for without in [&["./a"][..], &["-n", "many", "./a"], &["-n"]] {
            assert_eq!(ranks(without), 0, "{without:?}");
        }
        assert!(cores() >= 1);
    }

    #[test]
    fn what_already_helps_is_seen() {
        assert!(root_may(&["--allow-run-as-root"]));
        assert!(slots_are_others(&["--map-by", ":OVERSUBSCRIBE"]));
        assert!(slots_are_others(&["--hostfile", "hosts"]));
    }
}

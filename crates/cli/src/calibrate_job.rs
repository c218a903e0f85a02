//! What calls of MPI-IO cost in a job, as a machine description says it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pio_machine::{Bandwidth, Duration, Machine, MpiIo, Repeated, Spreads, Storage, Together};
use pio_mpi::{Commands, Library};
use pio_plan::{Hints, Strategy};
use pio_record::Error;

use crate::apply::How;
use crate::benchmark;
use crate::own_way;

/// What each rank of the probe writes before it closes a file.
const CLOSED_BYTES: u64 = 8;
/// The program that measures: compiled by the user's own `mpicc`.
const PROBE: &str = include_str!("../c/probe.c");

/// Ranks a processor, at most, in the jobs that are started where the user names none.
const MOST_A_PROCESSOR: u32 = 4;
/// Of each job: a process opens its first file once.
const RUNS: usize = 3;
/// Of one whose middle run is further from the least than by this factor: something disturbed two of three.
const RUNS_IF_DISTURBED: usize = 7;
const FAR_APART: f64 = 1.5;

/// Of an offset and a length in a list of pieces, as MPI libraries make them.
const LISTED_PIECE_BYTES: u64 = 16;

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    mpi-io: jobs with Pioscope's library (under the two-phase strategy) and the MPI's own. call: an 8-byte write beyond the\n\
    kernel's. together: calls of all ranks, in the mean of ranks; the median of several: after they went through other\n\
    memory for 10 ms, and, as …-again, behind five of them. Ranks that share cores make them one after the other.\n\
    request: what a write of 8 bytes to a server on their own cores takes, where all ranks make such, each to pages of its own.";

/// How a job is started.
pub(crate) struct Launch {
    /// The compiler of its programs.
    pub mpicc: PathBuf,
    /// The launcher and its options.
    pub words: Vec<OsString>,
}

impl Launch {
    /// As it is typed.
    pub(crate) fn text(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// How the jobs that measure are started: by the user's own launcher and options (`mpiexec -n 16`), or without them with
/// several numbers of ranks on this machine, whose cores are so many; none if it has no MPI.
///
/// # Errors
/// If there is no such launcher, a program is given, or the launcher's MPI has no compiler here.
pub(crate) fn launches(given: &[OsString], cores: u32) -> Result<Vec<Launch>> {
    match (given, Commands::first()) {
        ([], Err(_)) => Ok(Vec::new()),
        ([], Ok(Commands { mpicc, mpiexec })) => {
            let sizes = (0..).map(|power| 1_u32 << power);
            let sizes = sizes.take_while(|ranks| *ranks <= cores.saturating_mul(MOST_A_PROCESSOR));
            let words = |ranks: u32| vec![mpiexec.clone().into(), "-n".into(), ranks.to_string().into()];
            Ok(sizes.map(|ranks| Launch { mpicc: mpicc.clone(), words: words(ranks) }).collect())
        }
        (words, _) => {
            if let Err(error @ (Error::NotFound { .. } | Error::NotExecutable { .. })) =
                pio_record::check(words)
            {
                return Err(error.into());
            }
            if let Some(program) = words.iter().find(|word| pio_mpi::loaded_by(word).is_some()) {
                bail!(
                    "{}: a program of an MPI (expected a launcher and its options without a program, such as mpiexec -n 4)",
                    program.display()
                );
            }
            let chosen = pio_mpi::compiler_for(None, words)?;
            let mpicc = chosen.context("no mpicc beside the launcher or on the PATH")?.mpicc;
            Ok(vec![Launch { mpicc, words: words.to_vec() }])
        }
    }
}

/// Starts jobs of one MPI, and tells a machine's description what MPI-IO costs there. Files are in `folder`, or on the servers of
/// `store`. Tells `progress` what is being measured.
///
/// # Errors
/// If the probe cannot be compiled, or a job fails.
pub(crate) fn measure(
    machine: &mut Machine,
    spreads: &mut Spreads,
    launches: &[Launch],
    folder: &Path,
    store: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(first) = launches.first() else { return Ok(()) };
    let work = tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?;
    let traces = benchmark::folder_for_traces(machine, folder)?;
    // Small calls to files that are far away say nothing of what the library adds to them. A node's folders may be others than
    // those here: it makes a file of this name.
    let is_far = store.is_some() || matches!(machine.storage, Storage::Shared(_));
    let near = is_far.then(|| env::temp_dir().join(format!("pioscope-calibrate-{}", std::process::id())));
    let library = own_way::note(Library::of_compiler(&first.mpicc).as_ref(), &first.words);
    // On the way to servers, what the MPI's own calls take may be known: it knows no servers.
    let known = machine.mpi_io.take().filter(|known| store.is_some() && known.library == library);
    let own = known.map(|known| known.own).unwrap_or_default();
    let mut costs = MpiIo { library, own, ..MpiIo::default() };
    let probe = benchmark::compile(&first.mpicc, "probe", PROBE, work.path())?;
    for launch in launches {
        progress(&format!("opening, viewing and closing files under {}", launch.text()));
        let job = Job {
            probe: &probe.path,
            launch: &launch.words,
            folder: work.path(),
            traces: traces.path(),
            near: near.as_deref(),
            store,
            shares_cores: machine.storage.shares_cores(),
            link: machine.network.link.bandwidth,
            cores: machine.nodes.cores,
        };
        let pioscope = job.costs(true, spreads)?;
        // Who gives way is through in microseconds; among those who spin, each waits for the others' turns.
        let Together { ranks, barrier, .. } = pioscope.together;
        let is_crowded = ranks > machine.nodes.cores;
        costs.spins |= is_crowded && barrier > half(machine.nodes.quantum);
        let mut both = vec![(&mut costs.pioscope, pioscope)];
        if !costs.own.together.iter().any(|known| known.ranks == ranks) {
            both.push((&mut costs.own, job.costs(false, spreads)?));
        }
        for (library, found) in both {
            if library.together.is_empty() {
                library.call = found.call;
            }
            // One rank exchanges nothing.
            if library.fresh.is_none() && found.together.ranks > 1 {
                library.fresh = found.fresh;
            }
            // Who shares processors waits for others' turns, too.
            if library.piece.is_none() || !is_crowded {
                library.piece = Some(found.piece);
            }
            library.together.push(found.together);
        }
    }
    costs.own.together.sort_by_key(|together| together.ranks);
    // What servers, or a file system, take for them is said already.
    let (open, close) = match &machine.storage {
        // A close makes durable what was written.
        Storage::Striped { open, close, .. } if store.is_some() => {
            let sync = machine.calls.sync.as_ref().map_or(Duration::ZERO, |sync| sync.of(CLOSED_BYTES));
            (*open, close.saturating_add(sync))
        }
        Storage::Shared(files) => (files.open, files.close),
        _ => (Duration::ZERO, Duration::ZERO),
    };
    let own = if store.is_none() { &mut costs.own.together[..] } else { &mut [] };
    for together in costs.pioscope.together.iter_mut().chain(own) {
        // The probe makes its file then: in predictions, the first file that is made takes no longer.
        together.first_open = together.first_open.saturating_sub(open);
        together.open = less_repeated(together.open, open);
        together.first_close = together.first_close.saturating_sub(close);
        together.close = less_repeated(together.close, close);
    }
    machine.mpi_io = Some(costs);
    Ok(())
}

/// How the probe is started.
struct Job<'a> {
    probe: &'a Path,
    launch: &'a [OsString],
    folder: &'a Path,
    traces: &'a Path,
    /// The file for small calls, if the others are far away.
    near: Option<&'a Path>,
    store: Option<&'a Path>,
    /// Whether its servers work on the ranks' cores.
    shares_cores: bool,
    /// The rate of links between nodes.
    link: Bandwidth,
    /// Of a node.
    cores: u32,
}

impl Job<'_> {
    /// What calls cost in it, with Pioscope's library or the MPI's own, which knows no servers.
    fn costs(&self, pioscope: bool, spreads: &mut Spreads) -> Result<Found> {
        let mut found = (0..RUNS).map(|_| self.once(pioscope)).collect::<Result<Vec<_>>>()?;
        if is_disturbed(&found) {
            let more = (RUNS..RUNS_IF_DISTURBED).map(|_| self.once(pioscope));
            found.extend(more.collect::<Result<Vec<_>>>()?);
        }
        note_spreads(spreads, if pioscope { "pioscope" } else { "own" }, &found);
        Ok(of_jobs(&found, self.cores))
    }

    fn once(&self, pioscope: bool) -> Result<Found> {
        let results = self.folder.join("results");
        // The MPI's own library knows no servers: its files are here.
        let (store, near) = match self.store {
            Some(_) if !pioscope => (None, None),
            store => (store, self.near),
        };
        let file = match store {
            // Two calibrations at once must not meet.
            Some(_) => format!("pioscope:.pioscope-calibrate-{}", std::process::id()).into(),
            None => self.folder.join("data").into_os_string(),
        };
        let mut command = self.launch.to_vec();
        command.extend([self.probe.as_os_str().to_owned(), file, results.clone().into_os_string()]);
        command.extend(near.map(|near| near.as_os_str().to_owned()));
        // On other machines they may be far away, and take long; nothing is predicted from them there.
        command.extend((store.is_some() && self.shares_cores).then(|| "requests".into()));
        let store = store.map(Path::to_owned);
        let how = || How { strategy: Strategy::TwoPhase, hints: Hints::default(), store, machine: None };
        // Predictions are of recorded runs: what the recorder takes is in both.
        let trace = self.traces.join("probe.pio");
        let text = benchmark::run(command, pioscope.then(how), Some(&trace), &results)?;
        read(&text, (!pioscope).then_some(self.link))
            .with_context(|| format!("the probe's results '{}'", text.trim()))
    }
}

/// What the probe found.
#[derive(Debug)]
struct Found {
    call: Duration,
    fresh: Option<Bandwidth>,
    piece: Duration,
    together: Together,
}

/// Of each number the median; of what a job does only once the least, unless ranks wait for processors anyway: no other call of the
/// same job says that something disturbed that one, and two of three jobs were disturbed at times (2 ranks of Open MPI opened
/// their first file in 15 ms, not 1).
fn of_jobs(found: &[Found], cores: u32) -> Found {
    fn of<T: Ord>(found: &[Found], index: usize, number: impl Fn(&Found) -> T) -> T {
        let mut numbers: Vec<T> = found.iter().map(number).collect();
        numbers.sort_unstable();
        numbers.swap_remove(index)
    }
    let middle = found.len() / 2;
    let once = if found[0].together.ranks > cores { middle } else { 0 };
    let of_all = |number: fn(&Found) -> Duration| of(found, middle, number);
    let of_once = |number: fn(&Found) -> Duration| of(found, once, number);
    let repeated = |call: fn(&Found) -> Repeated| Repeated {
        after_work: of(found, middle, |one| call(one).after_work),
        again: of(found, middle, |one| call(one).again),
    };
    let together = Together {
        ranks: found[0].together.ranks,
        first_open: of_once(|one| one.together.first_open),
        open: repeated(|one| one.together.open),
        first_close: of_once(|one| one.together.first_close),
        close: repeated(|one| one.together.close),
        first_view: of_once(|one| one.together.first_view),
        view: repeated(|one| one.together.view),
        collective: repeated(|one| one.together.collective),
        barrier: of_all(|one| one.together.barrier),
        request: of_all(|one| one.together.request),
    };
    Found {
        call: of_all(|one| one.call),
        fresh: of(found, middle, |one| one.fresh),
        piece: of_all(|one| one.piece),
        together,
    }
}

/// Whether what takes most of a program's time was much longer in the middle run than in the least.
fn is_disturbed(found: &[Found]) -> bool {
    let numbers: [Number; 3] =
        [|one| one.open.after_work, |one| one.view.after_work, |one| one.collective.after_work];
    numbers.iter().any(|number| {
        let mut seconds: Vec<f64> = found.iter().map(|one| number(&one.together).seconds()).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2] > FAR_APART * seconds[0]
    })
}

/// A number of those of calls of all ranks.
type Number = fn(&Together) -> Duration;

/// How far the jobs of one number of ranks are apart.
fn note_spreads(spreads: &mut Spreads, library: &str, found: &[Found]) {
    let numbers: [(&str, Number); 13] = [
        ("first-open", |one| one.first_open),
        ("open", |one| one.open.after_work),
        ("open-again", |one| one.open.again),
        ("first-close", |one| one.first_close),
        ("close", |one| one.close.after_work),
        ("close-again", |one| one.close.again),
        ("first-view", |one| one.first_view),
        ("view", |one| one.view.after_work),
        ("view-again", |one| one.view.again),
        ("collective", |one| one.collective.after_work),
        ("collective-again", |one| one.collective.again),
        ("barrier", |one| one.barrier),
        ("request", |one| one.request),
    ];
    let Some(first) = found.first() else { return };
    for (name, number) in numbers {
        let runs: Vec<f64> = found.iter().map(|one| number(&one.together).seconds()).collect();
        spreads.note_runs(&format!("mpi-io.{library}.together.{}.{name}", first.together.ranks), &runs);
    }
}

fn less_repeated(time: Repeated, part: Duration) -> Repeated {
    Repeated { after_work: time.after_work.saturating_sub(part), again: time.again.saturating_sub(part) }
}

fn half(time: Duration) -> Duration {
    Duration::from_picoseconds(time.picoseconds() / 2)
}

/// What the probe says; where the library makes lists of pieces, with the rate of the links that these pass.
fn read(text: &str, lists: Option<Bandwidth>) -> Result<Found> {
    let words = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|line| line.split(' ').next()).with_context(|| format!("expected a line '{name}'"))
    };
    let time = |name: &str| -> Result<Duration> {
        let seconds: f64 = words(name)?.parse().with_context(|| format!("{name}: expected seconds"))?;
        // Nanoseconds: what is below is noise.
        Ok(Duration::from_picoseconds((seconds.max(0.0) * 1e9).round() as u64 * 1000))
    };
    let repeated = |name: &str| -> Result<Repeated> {
        Ok(Repeated { after_work: time(name)?, again: time(&format!("{name}-again"))? })
    };
    let ranks: u32 = words("ranks-a-node")?.parse().context("ranks-a-node: expected a number")?;
    let together = Together {
        ranks,
        first_open: time("first-open")?,
        open: repeated("open")?,
        first_close: time("first-close")?,
        close: repeated("close")?,
        first_view: time("first-view")?,
        view: repeated("view")?,
        collective: repeated("collective")?,
        barrier: time("barrier")?,
        // It is told only where it was asked for.
        request: words("request").map_or(Ok(Duration::ZERO), |_| time("request"))?,
    };
    let number_behind = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines.find_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok())
    };
    let bytes: u64 = number_behind("fresh").context("expected a line 'fresh' with seconds and bytes")?;
    // Below zero, or near it: new memory makes no difference that can be told.
    let fresh = Some(time("fresh")?).filter(|time| *time > Duration::ZERO);
    let fresh = fresh.map(|time| Bandwidth::from_bytes_per_second((bytes as f64 / time.seconds()) as u64));
    let call = time("call")?;
    let pieces: u64 =
        number_behind("pieces").context("expected a line 'pieces' with seconds and a number")?;
    // The rank that writes puts the pieces of all in their places. An MPI's own library also makes lists of them before, on every
    // rank; what Pioscope's does instead does not grow with their number.
    let all = number_behind("ranks-a-node").context("expected a line 'ranks-a-node' with two numbers")?;
    let handled = pieces * if lists.is_some() && all > 1 { 1 + all } else { all };
    // What the lists of other nodes take on the link of that rank's node is the network's.
    let listed = (all - all.min(u64::from(ranks))) * pieces * LISTED_PIECE_BYTES;
    let passing = lists.map_or(Duration::ZERO, |link| link.time_of(listed));
    let piece =
        Duration::from_picoseconds(time("pieces")?.saturating_sub(passing).picoseconds() / handled.max(1));
    Ok(Found { call, fresh, piece, together })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_or_refused() {
        let text = "ranks-a-node 4 4\ncall 0.000001500 0 0\nfirst-open 0.004 0 0\nfirst-view 0.001 0 0\nfirst-close 0.002 0 0\n\
                    open 0.0002 0 0\nopen-again 0.0001 0 0\nclose 0.0001 0 0\nclose-again 0.0001 0 0\n\
                    view 0.00005 0 0\nview-again 0.00002 0 0\ncollective 0.0003 0 0\ncollective-again 0.0001 0 0\n\
                    barrier 0.00001 0 0\nfresh 0.001 1000000\npieces 0.001 2000\n";
        let lists = Some(Bandwidth::from_bytes_per_second(1 << 43));
        let Found { call, fresh, piece, together } = read(text, lists).unwrap();
        assert_eq!(piece.to_string(), "100 ns");
        assert_eq!(read(text, None).unwrap().piece.to_string(), "125 ns");
        // The one rank that writes puts those of all in their places, wherever they are: 96000 bytes of lists take half of it.
        let apart = text.replace("-node 4 4", "-node 1 4");
        let slow = Some(Bandwidth::from_bytes_per_second(192_000_000));
        assert_eq!(read(&apart, slow).unwrap().piece.to_string(), "50 ns");
        assert_eq!(fresh.unwrap().to_string(), "1 GB/s");
        assert!(read(&text.replace("fresh 0.001", "fresh -0.001"), lists).unwrap().fresh.is_none());
        assert_eq!((call.picoseconds(), together.ranks), (1_500_000, 4));
        assert_eq!((together.first_open.seconds(), together.barrier.seconds()), (0.004, 0.000_01));
        let to_servers = read(&format!("{text}request 0.00002 0 0\n"), lists).unwrap().together;
        assert_eq!([together, to_servers].map(|one| one.request.seconds()), [0.0, 0.000_02]);
        assert!(
            read(&format!("{text}request soon 0 0\n"), lists).unwrap_err().to_string().contains("request")
        );
        let view = together.view;
        assert_eq!((view.after_work.seconds(), view.again.seconds()), (0.000_05, 0.000_02));
        let error = read(&text.replace("\nclose", "\nclothes"), lists).unwrap_err().to_string();
        assert_eq!(error, "expected a line 'close'");
        assert!(read(&text.replace("0.004", "soon"), lists).unwrap_err().to_string().contains("first-open"));
    }
}

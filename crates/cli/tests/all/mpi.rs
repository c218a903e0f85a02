//! Which MPI a job gets, where several are; and what launchers refuse.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{Place, Transcript, mpi, mpiexec};
use pio_mpi::{Commands, Family, any_ranks};
use pio_trace::{Layer, Op, Trace};

/// Writes with MPI-IO, says that it came to its end, and ends with the code that it is given.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  int rank;
  MPI_File file;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, rank * 5, "hello", 5, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  if (rank == 0) puts("the end");
  return atoi(words[1]);
}
"#;

/// Debian's MPIs side by side; none, and a word why, if they are not.
fn both() -> Option<[Commands; 2]> {
    let found = [".mpich", ".openmpi"].map(Commands::with_suffix);
    match found {
        [Ok(mpich), Ok(open_mpi)] => Some([mpich, open_mpi]),
        [mpich, open_mpi] => {
            let missing =
                [mpich, open_mpi].into_iter().filter_map(Result::err).map(|error| error.to_string());
            eprintln!("skipped: {}", missing.collect::<Vec<_>>().join(", "));
            None
        }
    }
}

/// One MPI of each family, each in a folder of its own on the PATH.
fn one_of_each_family() -> Option<[Commands; 2]> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_folder = |folder: std::path::PathBuf| {
        let (mpicc, mpiexec) = (folder.join("mpicc"), folder.join("mpiexec"));
        (mpicc.is_file() && mpiexec.is_file()).then_some(Commands { mpicc, mpiexec })
    };
    let found: Vec<Commands> = std::env::split_paths(&folders).filter_map(in_folder).collect();
    let of = |family| found.iter().find(|mpi| mpi.family() == family).cloned();
    let both = of(Family::Mpich).zip(of(Family::OpenMpi)).map(|(mpich, open_mpi)| [mpich, open_mpi]);
    if both.is_none() {
        eprintln!("skipped: no two MPIs of different families on the PATH");
    }
    both
}

fn words(verb: &[&str], job: [String; 3], rest: &[&str]) -> Vec<String> {
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    [own(verb), job.to_vec(), own(rest)].concat()
}

fn writes_by_mpi(trace: &Path) -> usize {
    let trace = Trace::open(trace).unwrap();
    let events = trace.events().map(|event| event.unwrap());
    events.filter(|event| event.layer() == Layer::MpiIo && event.op() == Op::Write).count()
}

#[test]
fn each_of_two_mpis_gets_its_own_compiler() {
    let Some(mpis) = both() else { return };
    for mpi in &mpis {
        let place = Place::new();
        place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
        let compiler = format!("MPI compiler {}", mpi.mpicc.display());
        let record =
            words(&["record", "--verbose", "-o", "run.pio", "--"], mpiexec(mpi, 2), &["./program", "0"]);
        let done = place.pioscope(record).succeeds();
        assert!(done.out.contains("the end") && done.err.contains(&compiler), "{}", done.err);
        assert_eq!(writes_by_mpi(&place.join("run.pio")), 2, "{compiler}");
        fs::remove_file(place.join("data")).unwrap();
        let apply = ["apply", "-s", "two-phase", "--verbose", "--"];
        let done = place.pioscope(words(&apply, mpiexec(mpi, 2), &["./program", "0"])).succeeds();
        assert!(done.err.contains(&compiler) && !done.err.contains("nothing was applied"), "{}", done.err);
        assert_eq!(fs::read(place.join("data")).unwrap(), b"hellohello");
    }
}

/// A script does not say which MPI its programs load, but its launcher does.
#[test]
fn a_script_gets_its_launchers_mpi() {
    let Some(mpis) = both() else { return };
    for mpi in &mpis {
        let place = Place::new();
        place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
        fs::write(place.join("script"), "exec ./program 0\n").unwrap();
        let record = words(&["record", "-o", "run.pio", "--"], mpiexec(mpi, 2), &["sh", "script"]);
        place.pioscope(record).succeeds();
        assert_eq!(writes_by_mpi(&place.join("run.pio")), 2, "{}", mpi.mpicc.display());
    }
}

/// A launcher inside a script is not seen before it starts: the library of the first MPI was loaded into programs of the
/// other one too, and killed them.
#[test]
fn a_program_of_another_mpi_than_was_found_runs_as_it_is() {
    let Some(mpis) = both() else { return };
    let mut left = 0;
    for mpi in &mpis {
        let place = Place::new();
        place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
        fs::write(place.join("script"), format!("{} ./program 0\n", mpiexec(mpi, 2).join(" "))).unwrap();
        for verb in [&["record", "-o", "run.pio", "--"][..], &["apply", "-s", "two-phase", "--"]] {
            let done = place.pioscope(verb.iter().chain(&["sh", "script"])).succeeds();
            assert!(done.out.contains("the end"), "{}", done.err);
            assert_eq!(fs::read(place.join("data")).unwrap(), b"hellohello");
            fs::remove_file(place.join("data")).unwrap();
            let told = done
                .err
                .lines()
                .filter(|line| line.contains("another MPI or an older one"))
                .collect::<Vec<_>>();
            assert!(told.len() <= 1 && told.iter().all(|line| line.contains("--mpicc")), "{}", done.err);
            left += told.len();
        }
        let recorded = writes_by_mpi(&place.join("run.pio"));
        assert!(recorded == 0 || recorded == 2, "{recorded}");
    }
    // At most one of the two is the first on the PATH.
    assert!(left >= 2, "for one MPI at least it was not found");
}

/// Loads a module, which loads an MPI, as Python does.
const LATE: &str = "
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *module = dlopen(words[1], HOW | RTLD_LOCAL);
    int (*run)(int, char **) = module == NULL ? NULL : (int (*)(int, char **))dlsym(module, \"run\");
    if (run == NULL) return puts(dlerror()), 9;
    return run(count - 1, words + 1);
}
";

/// By then its functions are bound to those of a library for the one that was found.
#[test]
fn a_program_that_loads_another_mpi_later_runs_as_it_is() {
    let Some(mpis) = one_of_each_family() else { return };
    for (mpi, other) in [(&mpis[0], &mpis[1]), (&mpis[1], &mpis[0])] {
        for how in ["RTLD_NOW", "RTLD_LAZY"] {
            let place = Place::new();
            place.compile(&mpi.mpicc, "module.so", PROGRAM, &["-shared", "-fPIC", "-Dmain=run"]);
            place.compile(Path::new("cc"), "late", LATE, &[&format!("-DHOW={how}"), "-ldl"]);
            let given = other.mpicc.to_str().unwrap();
            for verb in [
                &["record", "--mpicc", given, "-o", "run.pio", "--"][..],
                &["apply", "-s", "two-phase", "--mpicc", given, "--"],
                &["apply", "-s", "two-phase", "--mpicc", given, "--record", "both.pio", "--"],
            ] {
                let command = words(verb, mpiexec(mpi, 2), &["./late", "./module.so", "0"]);
                fs::write(place.join("script"), command[verb.len()..].join(" ")).unwrap();
                let done = place.pioscope(verb.iter().chain(&["sh", "script"])).succeeds();
                assert!(done.out.contains("the end"), "{how}: {}", done.err);
                assert!(done.err.contains("another MPI or an older one"), "{how}: {}", done.err);
                assert_eq!(fs::read(place.join("data")).unwrap(), b"hellohello", "{how}");
                fs::remove_file(place.join("data")).unwrap();
            }
        }
    }
}

/// With the compiler of the other MPI, a program would be given handles that it does not understand.
#[test]
fn the_other_mpis_compiler_is_never_used() {
    let Some(mpis) = both() else { return };
    for (mpi, other) in [(&mpis[0], &mpis[1]), (&mpis[1], &mpis[0])] {
        let place = Place::new();
        place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
        let given = other.mpicc.to_str().unwrap();
        let apply = ["apply", "-s", "two-phase", "--mpicc", given, "--"];
        let refused = place.pioscope(words(&apply, mpiexec(mpi, 2), &["./program", "0"]));
        refused.fails_with("(--mpicc) compiles for");
        assert!(!refused.out.contains("the end"), "it was started: {}", refused.out);
        let record = ["record", "--mpicc", given, "-o", "run.pio", "--"];
        let done = place.pioscope(words(&record, mpiexec(mpi, 2), &["./program", "0"])).succeeds();
        assert!(done.err.contains("MPI calls are not recorded"), "{}", done.err);
        assert_eq!(writes_by_mpi(&place.join("run.pio")), 0);
        assert!(done.out.contains("the end"), "{}", done.out);
    }
}

#[test]
fn a_program_whose_compiler_is_not_there_asks_for_it() {
    let Some([mpich, open_mpi]) = both() else { return };
    // A compiler that is in the tree of the library is found without any PATH.
    let system = Path::new("/usr/bin/mpicc").canonicalize().ok();
    let is_system = system.is_some() && system == mpich.mpicc.canonicalize().ok();
    let (mpi, other) = if is_system { (open_mpi, mpich) } else { (mpich, open_mpi) };
    let place = Place::new();
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    // A PATH with the other MPI's compiler alone.
    let folder = place.join("commands");
    fs::create_dir(&folder).unwrap();
    for (name, target) in [
        ("mpicc", other.mpicc.as_path()),
        ("ldd", Path::new("/usr/bin/ldd")),
        ("cc", Path::new("/usr/bin/cc")),
        ("gcc", Path::new("/usr/bin/gcc")),
        ("sh", Path::new("/bin/sh")),
    ] {
        symlink(target, folder.join(name)).unwrap();
    }
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        place.run(command.args(words).args(["--", "./program", "0"]).env("PATH", &folder))
    };
    run(&["apply", "-s", "two-phase"]).fails_with("name it with --mpicc");
    let recorded = run(&["record", "-o", "run.pio"]).succeeds();
    assert!(recorded.err.contains("name it with --mpicc"), "{}", recorded.err);
}

#[test]
fn the_exit_code_is_the_programs_own() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    let apply = ["apply", "-s", "two-phase", "--"];
    let done = place.pioscope(words(&apply, mpiexec(&mpi, 2), &["./program", "7"]));
    assert_eq!(done.code, Some(7), "{}", done.err);
    let plain =
        |code: &str| place.pioscope(["apply", "-s", "two-phase", "--", "sh", "-c", &format!("exit {code}")]);
    for code in [0, 7] {
        let done = plain(&code.to_string());
        assert_eq!(done.code, Some(code), "{}", done.err);
        assert!(done.err.contains("nothing was applied"), "{}", done.err);
        // Nobody here knows whether the hosts had the library.
        assert!(done.err.contains("or none could load /"), "{}", done.err);
    }
}

/// Runs a job with `home` as the home folder, without any other cache. It must be carried out by us.
fn apply_at_home(place: &Place, mpi: &Commands, home: &Path, more: &[&str]) -> Transcript {
    let temporary = place.join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let words = words(
        &[&["apply", "-s", "two-phase"][..], more, &["--"]].concat(),
        mpiexec(mpi, 2),
        &["./program", "0"],
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.args(words).current_dir(place.path()).envs(any_ranks()).env_remove("XDG_CACHE_HOME");
    let output = command.env("HOME", home).env("TMPDIR", &temporary).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let done =
        Transcript { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
    let done = done.succeeds();
    assert!(!done.err.contains("nothing was applied"), "{}", done.err);
    let left = fs::read_dir(&temporary).unwrap().chain(fs::read_dir(place.path()).unwrap());
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    let ours = |name: &&std::ffi::OsString| name.to_string_lossy().contains("pioscope");
    assert!(!left.iter().any(|name| ours(&name)), "left behind: {left:?}");
    done
}

/// The loader takes blanks and colons in `LD_PRELOAD` for ends of names.
#[test]
fn homes_with_blanks_and_without_a_cache_are_no_obstacle() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    let home = place.join("a home: with blanks");
    fs::create_dir(&home).unwrap();
    apply_at_home(&place, &mpi, &home, &[]);
    apply_at_home(&place, &mpi, &home, &["--record", "a b:c.pio"]);
    assert_eq!(writes_by_mpi(&place.join("a b:c.pio")), 2);
    // No cache at all.
    let nowhere = place.join("program");
    apply_at_home(&place, &mpi, &nowhere, &["--record", "run.pio"]);
    assert_eq!(writes_by_mpi(&place.join("run.pio")), 2);
}

#[test]
fn a_trace_may_go_where_blanks_are() {
    let place = Place::new();
    let folder = place.join("my traces: new");
    fs::create_dir(&folder).unwrap();
    fs::write(place.join("data"), "some").unwrap();
    let output = folder.join("a b.pio");
    let words = ["record", "-o", output.to_str().unwrap(), "--", "cat", "data"];
    let done = place.pioscope(words).succeeds();
    assert!(done.out.contains("some") && !done.err.contains("cannot be preloaded"), "{}", done.err);
    assert!(Trace::open(&output).unwrap().events().count() > 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "something was left beside the trace");
}

/// Open MPI refuses jobs of root and those with more ranks than cores, at length.
#[test]
fn a_refused_job_is_told_the_option_that_helps() {
    let Some(mpi) = mpi() else { return };
    if mpi.family() != Family::OpenMpi {
        eprintln!("skipped: the first MPI on the PATH is not Open MPI");
        return;
    }
    let place = Place::new();
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    let run = |verb: &[&str], options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        for (name, _) in any_ranks() {
            command.env_remove(name);
        }
        command.current_dir(place.path()).env("XDG_CACHE_HOME", place.cache());
        command.args(verb).arg("--").arg(&mpi.mpiexec).args(options);
        let output = command.args(["-n", "4000", "./program", "0"]).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    for verb in [&["record", "-o", "run.pio"][..], &["apply", "-s", "two-phase"]] {
        if is_root {
            let said = run(verb, &[]);
            assert!(said.contains("pioscope: Open MPI starts nothing for root"), "{said}");
        }
        let said = run(verb, if is_root { &["--allow-run-as-root"] } else { &[] });
        assert!(said.contains("4000 were asked for") && said.contains("add --oversubscribe after"), "{said}");
    }
}

/// Where the command is installed with what was compiled beforehand, neither MPI nor compiler of C is asked for anything.
#[test]
fn an_installation_brings_what_it_loads() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    let (command, libraries) = (place.join("bin/pioscope"), place.join("lib/pioscope"));
    fs::create_dir_all(place.join("bin")).unwrap();
    let shims = ["shims", "--mpicc", mpi.mpicc.to_str().unwrap(), libraries.to_str().unwrap()];
    place.pioscope(shims).succeeds();
    let built = Path::new(env!("CARGO_BIN_EXE_pioscope"));
    fs::copy(built, &command).unwrap();
    let core = ["libpio_mpiio.so", "deps/libpio_mpiio.so"].map(|name| built.with_file_name(name));
    let core = core.iter().find(|path| path.is_file()).expect("cargo build makes the core");
    fs::copy(core, libraries.join("libpio_mpiio.so")).unwrap();

    // A PATH that leads to no compiler, and a cache that nothing is to be put into.
    let (commands, cache) = (place.join("commands"), place.join("cache"));
    fs::create_dir(&commands).unwrap();
    symlink("/usr/bin/ldd", commands.join("ldd")).unwrap();
    symlink("/bin/sh", commands.join("sh")).unwrap();
    let run = |verb: &[&str]| {
        let words = words(verb, mpiexec(&mpi, 2), &["./program", "0"]);
        let mut command = Command::new(&command);
        command.args(words).env("PATH", &commands).env("XDG_CACHE_HOME", &cache);
        let output = command.envs(any_ranks()).current_dir(place.path()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (code, out, err) = (output.status.code(), text(output.stdout), text(output.stderr));
        Transcript { code, out, err }.succeeds()
    };
    let recorded = run(&["record", "--verbose", "-o", "run.pio", "--"]);
    assert!(recorded.err.contains("what was compiled for"), "{}", recorded.err);
    assert_eq!(writes_by_mpi(&place.join("run.pio")), 2, "{}", recorded.err);
    let library = Trace::open(&place.join("run.pio")).unwrap().tables().mpi_library().map(str::to_owned);
    assert!(library.is_some_and(|library| library.contains("libmpi")));
    fs::remove_file(place.join("data")).unwrap();
    let applied = run(&["apply", "-s", "two-phase", "--record", "applied.pio", "--"]);
    assert!(!applied.err.contains("nothing was applied"), "{}", applied.err);
    assert_eq!(fs::read(place.join("data")).unwrap(), b"hellohello");
    let kept = fs::read_dir(&cache).map_or(0, |_| {
        let files = fs::read_dir(cache.join("pioscope")).unwrap().flatten();
        files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "so")).count()
    });
    assert_eq!(kept, 0, "something was compiled");

    // A library that another version left would miss calls, or end the program.
    let left = libraries
        .join(fs::read_dir(&libraries).unwrap().flatten().find(|it| it.path().is_dir()).unwrap().file_name());
    let library = left.join("record.so");
    let mut bytes = fs::read(&library).unwrap();
    let mark = b"pioscope source\0";
    let at = bytes.windows(mark.len()).position(|window| window == mark).unwrap();
    bytes[at + mark.len()] ^= 1;
    fs::write(&library, bytes).unwrap();
    let mut command = Command::new(&command);
    command.args(words(&["record", "-o", "again.pio", "--"], mpiexec(&mpi, 2), &["./program", "0"]));
    let output = command.env("PATH", &commands).env("XDG_CACHE_HOME", &cache).envs(any_ranks());
    let output = output.current_dir(place.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("left out, as it was compiled by another version"), "{said}");
}

/// What `apply` loads ended these programs, as it did not look at what a job starts: their loader does not find libraries of
/// glibc, or their sanitizer insists on being the first.
#[test]
fn programs_that_do_not_bear_libraries_run_without() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    let apply = ["apply", "-s", "two-phase", "--"];
    let script = |lines: &str| {
        fs::write(place.join("script"), lines).unwrap();
        place.pioscope(apply.iter().chain(&["sh", "script"])).succeeds()
    };
    let start = mpiexec(&mpi, 2).join(" ");
    place.compile(&mpi.mpicc, "program", PROGRAM, &[]);
    fs::write(place.join("tool.c"), "int main(void) { return 0; }").unwrap();
    let musl = Command::new("musl-gcc").args(["-o", "tool", "tool.c"]).current_dir(place.path()).status();
    if musl.is_ok_and(|status| status.success()) {
        let done = script(&format!("./tool && {start} ./program 0\n"));
        assert!(done.err.contains("./tool: ran without Pioscope: it is linked with another"), "{}", done.err);
        assert!(!done.err.contains("nothing was applied"), "{}", done.err);
    } else {
        eprintln!("skipped: no musl-gcc");
    }
    // What takes LD_PRELOAD out of the environment takes the settings out, too, and runs as it is.
    let without = "env -u LD_PRELOAD -u PIOSCOPE_MPIIO_CORE";
    let done = script(&format!("{without} {start} ./program 0\n"));
    assert!(done.err.contains("nothing was applied"), "{}", done.err);
    let source = place.join("program.c");
    let address = Command::new(&mpi.mpicc)
        .args(["-fsanitize=address", "-o"])
        .arg(place.join("address"))
        .arg(&source)
        .status();
    if !address.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no AddressSanitizer");
        return;
    }
    let options = "export ASAN_OPTIONS=detect_leaks=0";
    for lines in [
        format!("{options}\n{start} ./address 0\n"),
        format!("{options}\nexec {start} sh -c 'exec ./address 0'\n"),
    ] {
        let done = script(&lines);
        assert!(done.out.contains("the end") && !done.err.contains("nothing was applied"), "{}", done.err);
    }
}

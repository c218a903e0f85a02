//! Real programs, recorded unmodified and watched by strace in the same run: both must have seen the same.
//!
//! Of files that a program reads and writes itself, every call and every byte is compared; of files behind the C
//! library's streams, whose reads and writes only the kernel sees, the opens, the closes and the bytes written. Programs
//! that are not installed are skipped, by name.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::strace::{self, Seen};
use crate::common::{command, folder, program_source, record_in};

fn is_there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|o| o.status.success())
}

/// Whether all these programs are installed; names those that are not.
fn needs(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_there(program)).collect();
    for program in &missing {
        println!("skipped: no {program}");
    }
    missing.is_empty()
}

/// Runs a script in a new folder, under the recorder and strace, and compares what they saw there.
fn compare(name: &str, programs: &[&str], script: &str) {
    if needs(programs) && needs(&["strace"]) {
        compare_in(name, folder(), script);
    }
}

fn compare_in(name: &str, folder: tempfile::TempDir, script: &str) {
    let home = folder.path().canonicalize().expect("a folder");
    let work = home.join("work");
    fs::create_dir_all(&work).expect("a folder");
    let log = home.join("strace.log");
    let mut words = strace::options(&log);
    words.extend(["sh".to_owned(), "-ec".to_owned(), format!("cd {}\n{script}", work.display())]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let job = record_in(folder, command(&words), |options| {
        options.environment.push(("HOME".into(), work.clone().into()));
    });
    assert!(job.outcome.status.success(), "{name}: {:?}", job.outcome);
    let summary = &job.outcome.summary;
    assert_eq!((summary.lost_calls, summary.lost_processes, summary.damaged), (0, 0, 0), "{name}");
    let below = format!("{}/", work.display());
    let theirs = strace::seen_by_strace(&log, &below);
    let ours = strace::seen_by_recorder(&job.trace, &job.events, &below);
    let differences = differences(&ours, &theirs);
    let calls: u64 = theirs.files.values().flat_map(|tally| tally.values()).map(|(calls, _)| calls).sum();
    println!("{name}: {calls} calls on {} files, {} events in all", theirs.files.len(), job.events.len());
    assert!(calls > 0, "{name}: strace saw nothing");
    assert!(differences.is_empty(), "{name}: (recorded, strace)\n{}", differences.join("\n"));
}

fn differences(ours: &Seen, theirs: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths: Vec<&String> = ours.files.keys().chain(theirs.files.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let both = [ours, theirs].map(|seen| seen.files.get(path).cloned().unwrap_or_default());
        // Folders are files to strace only.
        if theirs.folders.contains(path) || Path::new(path).is_dir() {
            continue;
        }
        let is_stream = ours.streams.contains(path);
        for family in [
            "read", "write", "open", "close", "sync", "truncate", "unlink", "rename", "mkdir", "rmdir",
            "link", "symlink",
        ] {
            let [(our_calls, our_bytes), (their_calls, their_bytes)] =
                both.each_ref().map(|tally| tally.get(family).copied().unwrap_or_default());
            let same = match (is_stream, family) {
                (true, "read") => true,
                (true, "write") => our_bytes == their_bytes,
                // A forked child may close what it has inherited without ever using it: that is no call on a file.
                (_, "close") => {
                    let opens = both[0].get("open").map_or(0, |(calls, _)| *calls);
                    our_calls == their_calls || (opens..their_calls).contains(&our_calls)
                }
                _ => our_calls == their_calls && our_bytes == their_bytes,
            };
            if !same {
                found.push(format!(
                    "  {path}{}: {family}: {our_calls} calls, {our_bytes} bytes; {their_calls} calls, {their_bytes} bytes",
                    if is_stream { " (stream)" } else { "" }
                ));
            }
        }
    }
    found
}

#[test]
fn dd() {
    compare(
        "dd",
        &["dd"],
        "exec 2>/dev/null; dd if=/dev/zero of=a bs=4k count=20; dd if=a of=b bs=1k conv=fsync; dd if=b of=a bs=512 skip=7 count=9 conv=notrunc",
    );
}

#[test]
fn tar() {
    compare(
        "tar",
        &["tar"],
        "mkdir d; for i in 1 2 3 4 5; do seq 1000 > d/$i; done; tar cf d.tar d; mkdir e; tar xf d.tar -C e; rm -r d",
    );
}

#[test]
fn sort() {
    compare("sort", &["sort"], "seq 20000 > in; sort -r -S 100k --parallel=2 -T . in -o out");
}

#[test]
fn sqlite() {
    compare(
        "sqlite3",
        &["sqlite3"],
        "sqlite3 data.db 'create table t(a integer primary key, b text);
         begin; with recursive c(x) as (values(1) union all select x+1 from c where x < 300) insert into t select x, hex(randomblob(50)) from c; commit;
         update t set b = a where a % 7 = 0; delete from t where a % 3 = 0; vacuum;'; sqlite3 data.db 'select count(*) from t' > out",
    );
}

#[test]
#[ignore = "slow"]
fn slow_git() {
    compare(
        "git",
        &["git"],
        "export GIT_CONFIG_NOSYSTEM=1; git init -q .; git config user.email a@b; git config user.name n
         for i in 1 2 3 4 5 6 7 8; do seq $((i * 100)) > f$i; git add .; git commit -qm $i; done
         git gc -q; git checkout -q HEAD~3; git status -s; git log --stat > log",
    );
}

#[test]
#[ignore = "slow"]
fn slow_gcc() {
    compare(
        "gcc",
        &["gcc"],
        "printf '#include <stdio.h>\\nint main(void) { puts(\"a\"); return 0; }\\n' > a.c; gcc -O1 -pipe -c a.c -o a.o; gcc -g -O2 -save-temps a.c -o a; ./a > out",
    );
}

const PYTHON: &str = r#"
import multiprocessing, os, subprocess, sys, threading
def work(n):
    with open(f"t{n}", "wb", buffering=0) as f:
        for i in range(200):
            f.write(b"x" * (i + 1))
        os.fsync(f.fileno())
    with open(f"t{n}", "rb") as f:
        while f.read(1000):
            pass
if __name__ == "__main__":
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    subprocess.run([sys.executable, "-c", "open('s', 'w').write('y' * 100000)"], check=True)
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        pool.map(work, range(100, 106))
    os.rename("s", "r"); os.mkdir("m"); os.rmdir("m"); os.unlink("r")
    with open("shared", "ab") as f:
        if os.fork() == 0:
            os.write(f.fileno(), b"child"); os._exit(0)
        os.wait(); f.write(b"parent")
    fd = os.open("p", os.O_RDWR | os.O_CREAT)
    os.pwritev(fd, [b"abc", b"defg"], 10); os.preadv(fd, [bytearray(5), bytearray(6)], 0); os.ftruncate(fd, 3); os.close(fd)
"#;

fn python(how: &str) {
    let python = python_program();
    if needs(&["python3", "strace"]) {
        let folder = folder();
        fs::write(folder.path().join("program.py"), PYTHON).expect("the program");
        compare_in(&format!("python3, {how}"), folder, &format!("{python} -B ../program.py {how}"));
    }
}

/// The interpreter itself: what stands in the PATH may be a script.
fn python_program() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    output.map_or("python3".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
#[ignore = "slow"]
fn slow_python_forks() {
    python("fork");
}

#[test]
#[ignore = "slow"]
fn slow_python_spawns() {
    python("spawn");
}

#[test]
#[ignore = "slow"]
fn slow_node() {
    if needs(&["node", "strace"]) {
        let folder = folder();
        fs::write(
            folder.path().join("program.js"),
            r#"
const fs = require("fs"), { execFileSync } = require("child_process");
fs.writeFileSync("a", "x".repeat(300000));
fs.copyFileSync("a", "b");
const fd = fs.openSync("c", "w+");
for (let i = 0; i < 50; i++) fs.writeSync(fd, Buffer.alloc(1000), 0, 1000, i * 2000);
fs.fsyncSync(fd); fs.ftruncateSync(fd, 5000); fs.closeSync(fd);
fs.createReadStream("a", { highWaterMark: 4096 }).pipe(fs.createWriteStream("d")).on("finish", async () => {
  await fs.promises.appendFile("d", "end");
  await Promise.all([...Array(20).keys()].map((i) => fs.promises.writeFile("e" + i, "y".repeat(i * 100 + 1))));
  await fs.promises.rename("e1", "f"); await fs.promises.unlink("e2");
  execFileSync("cp", ["a", "g"]);
});
"#,
        )
        .expect("the program");
        compare_in("node", folder, "node ../program.js");
    }
}

#[test]
#[ignore = "slow"]
fn slow_postgres() {
    let found = fs::read_dir("/usr/lib/postgresql").ok().and_then(|mut folders| folders.next()?.ok());
    let Some(found) = found else {
        println!("skipped: no postgres in /usr/lib/postgresql");
        return;
    };
    if !needs(&["strace", "runuser", "pgbench"]) {
        return;
    }
    let folder = folder();
    let home = folder.path().canonicalize().expect("a folder");
    // The server refuses to run as root, and the other user must get at what is recorded.
    let open_up = Command::new("chmod").arg("a+rwx").arg(&home).status();
    assert!(open_up.is_ok_and(|status| status.success()));
    let script = format!(
        "chmod a+rwx ..; chmod -R a+rwX ../.*.spool; umask 0; chown nobody .
         cat > ../run.sh <<'END'
         export PATH={}/bin:$PATH
         initdb -D data -A trust > /dev/null
         pg_ctl -D data -o \"-k $PWD -h ''\" -l server.log -w start > /dev/null
         pgbench -h $PWD -i -s 1 -q postgres 2> /dev/null
         pgbench -h $PWD -c 4 -j 2 -t 50 postgres > /dev/null 2>&1
         pg_ctl -D data -m fast -w stop > /dev/null
END
         runuser -u nobody -- sh -e ../run.sh",
        found.path().display()
    );
    compare_in("postgres and pgbench", folder, &script);
}

fn mpi_program(name: &str, compiler: &str, source: &str, options: &[&str]) {
    if !needs(&["mpiexec.mpich", compiler, "strace"]) {
        return;
    }
    let folder = folder();
    let program = folder.path().join("program");
    let output = Command::new(compiler)
        .arg(program_source(source))
        .arg("-o")
        .arg(&program)
        .args(options)
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compare_in(name, folder, "mpiexec.mpich -n 2 ../program data");
}

#[test]
#[ignore = "slow"]
fn slow_fortran_mpi_io() {
    mpi_program("MPI-IO in Fortran", "mpif90.mpich", "blocks.f90", &[]);
}

#[test]
#[ignore = "slow"]
fn slow_parallel_hdf5() {
    mpi_program("parallel HDF5", "h5pcc.mpich", "rows_hdf5.c", &[]);
}

#[test]
#[ignore = "slow"]
fn slow_mpi4py() {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-mpi4py/bin");
    if !venv.join("mpiexec").exists() {
        println!("skipped: no .venv-mpi4py (make test-programs makes it)");
        return;
    }
    if needs(&["strace"]) {
        let folder = folder();
        fs::write(
            folder.path().join("program.py"),
            r#"
from mpi4py import MPI
comm = MPI.COMM_WORLD
f = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
data = bytearray(b"x" * 1000)
for i in range(20):
    f.Write_at((i * comm.size + comm.rank) * 1000, data)
f.Set_view(comm.rank * 1000, MPI.BYTE, MPI.BYTE.Create_vector(20, 1000, 1000 * comm.size).Commit())
f.Write_all(bytearray(20000)); f.Seek(0); f.Read_all(bytearray(20000))
r = f.Iwrite_at(0, data); r.Wait()
f.Sync(); f.Close()
"#,
        )
        .expect("the program");
        let venv = venv.canonicalize().expect("the folder").display().to_string();
        let script = format!("PATH={venv}:$PATH mpiexec -n 2 {venv}/python -B ../program.py");
        compare_in("mpi4py", folder, &script);
    }
}

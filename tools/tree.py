"""What the tools here share: where things are, and how to run them."""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLAPSE = ROOT / "apps/collapse/build/collapse"

# In the names of those variables of any_ranks.env by which ranks may share processors.
SHARING = "_rmaps_"

# What the MPI-IO of each MPI is called.
OWN = {"mpich": "romio", "openmpi": "ompio"}

# Seconds that a command has to end when it is told to.
ENDING = 10

# What `pioscope apply` says of a program that opened no file by MPI-IO; its exit code is the program's own.
NOTHING_APPLIED = "nothing was applied"


def pioscope(profile="release"):
    """The pioscope command of a build profile."""
    return ROOT / "target" / profile / "pioscope"


def environment(words=()):
    """The environment of what tools run: that of MPI jobs, and a cache that is not the user's. What `pioscope` learns from their
    runs is of no use to the user's predictions, and what it learned from the user's must not change theirs. A job started by these
    words is as a user's where it has processors enough: as pio-mpi's `for_own_job` says."""
    variables = any_ranks()
    if ranks_of(words) <= cores():
        variables = {name: value for name, value in variables.items() if name in os.environ or SHARING not in name}
    return variables | {"XDG_CACHE_HOME": str(ROOT / "target/cache")}


def ranks_of(words):
    """How many ranks the launcher among these words starts; without one any number, but for `pioscope`, which sees to its own jobs."""
    words = [str(word) for word in words]
    launchers = [place for place, word in enumerate(words) if Path(word).name.startswith("mpiexec")]
    told = words[launchers[0] + 1:] if launchers else []
    if "-n" in told:
        return int(told[told.index("-n") + 1])
    return 0 if words and Path(words[0]).name == "pioscope" else math.inf


def cores():
    """Cores that may be used here: Open MPI does not count the threads of one twice."""
    threads = os.sched_getaffinity(0)
    lists = [Path(f"/sys/devices/system/cpu/cpu{thread}/topology/core_cpus_list") for thread in threads]
    return len({cores.read_text() for cores in lists if cores.exists()}) or len(threads)


def any_ranks():
    """The environment for MPI jobs: any number of ranks on this machine, under any MPI, root or not. What is set already stays:
    a cluster of namespaces (tools/cluster) says where ranks go."""
    lines = (ROOT / "crates/mpi/src/any_ranks.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#")) | os.environ


def launcher():
    """The mpiexec of the MPI whose mpicc is first on the PATH, by that name alone where that means it."""
    compiler = shutil.which("mpicc")
    if compiler is None:
        sys.exit("no mpicc on the PATH (make sets one up)")
    # As pio-mpi's `beside`: the last link that still says which compiler it is tells the MPI.
    names = [Path(compiler)]
    while names[-1].is_symlink():
        names.append(names[-1].parent / os.readlink(names[-1]))
    names = [name.with_name("mpiexec" + name.name.removeprefix("mpicc")) for name in names if name.name.startswith("mpicc")]
    found = next((name for name in reversed(names) if name.is_file()), None)
    if found is None:
        sys.exit(f"no mpiexec beside {compiler}")
    plain = shutil.which("mpiexec")
    return "mpiexec" if plain and Path(plain).samefile(found) else str(found)


def family():
    """Which MPI that is."""
    return "openmpi" if "Open" in run([launcher(), "--version"]) else "mpich"


def mpiexec(ranks):
    """The words that start a job of so many ranks."""
    return [launcher(), "-n", str(ranks)]


def absolute(text):
    """A path among a tool's arguments: commands run in other folders than the one it is given in."""
    return Path(text).resolve()


def end_by_exception():
    """Has the signals by which jobs are ended raise SystemExit. By default they end Python on the spot: servers go on, folders stay,
    and what was changed of the machine is not changed back."""
    ends = signal.SIGTERM, signal.SIGHUP, signal.SIGINT

    def end(number, _):
        # The next one must not end the clearing up.
        for other in ends:
            signal.signal(other, lambda *_: None)
        sys.exit(128 + number)

    for number in ends:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)


class Failed(SystemExit):
    """A command failed. What it says is shown, if nobody goes on without."""


def run(words, **options):
    """Runs a command and gives what it printed; on failure shows that and stops."""
    words = [str(word) for word in words]
    outcome = finish(words, env=environment(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if outcome.returncode != 0:
        raise Failed(f"{' '.join(words)}\nfailed with exit code {outcome.returncode}\n{outcome.stdout}")
    return outcome.stdout


def finish(words, timeout=None, **options):
    """As subprocess.run. But if this is ended meanwhile, the command is told to end, and not killed: it has jobs to end, and folders
    to remove."""
    with subprocess.Popen(words, **options) as command:
        try:
            out, errors = command.communicate(timeout=timeout)
        except BaseException:
            command.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(ENDING)
            command.kill()
            raise
    return subprocess.CompletedProcess(words, command.returncode, out, errors)


@contextlib.contextmanager
def serving(command, count, folder, *options):
    """I/O servers with their data in a folder, as long as the block lasts; gives the store's description."""
    words = [command, "serve", "--servers", count, "--dir", folder, *options]
    store = Path(folder) / "store.toml"
    store.unlink(missing_ok=True)
    servers = subprocess.Popen([str(word) for word in words], env=environment())
    try:
        until = time.monotonic() + 60
        while not store.exists():
            if servers.poll() is not None or time.monotonic() > until:
                sys.exit("the I/O servers did not start")
            time.sleep(0.05)
        yield store
    finally:
        servers.terminate()
        servers.wait()


def files_on_servers(command, store, folder):
    """The files of a folder on the servers of a store."""
    names = run([command, "store", "--store", store, "ls"]).splitlines()
    # The store names files without the first slash.
    begin = f"{folder}/".lstrip("/")
    return [f"pioscope:{folder}/{name.removeprefix(begin)}" for name in names if name.startswith(begin)]


def cluster(folder, options, command, profile=None, capture_output=False, check=False, **kept):
    """Runs a command on the login node of a new cluster of namespaces (tools/cluster), in a folder that its nodes share.
    Its programs are those of a build profile, or those that were built last."""
    if capture_output:
        kept |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [sys.executable, ROOT / "tools/cluster", *options, "--", *command]
    found = environment()
    if profile:
        found["PATH"] = f"{pioscope(profile).parent}{os.pathsep}{found['PATH']}"
    outcome = finish([str(word) for word in words], cwd=folder, env=found, **kept)
    if check:
        outcome.check_returncode()
    return outcome


def bytes_sent():
    """Bytes that all nodes of a cluster have sent by now, as the links count them on the login node, where this runs: with the
    headers of each packet."""
    links = json.loads(run(["ip", "-s", "-j", "link"]))
    # The other ends of the nodes' links.
    return sum(link["stats64"]["rx"]["bytes"] for link in links if link["ifname"].startswith("v"))


if __name__ == "__main__" and sys.argv[1:] == ["mpiexec"]:
    print(launcher())

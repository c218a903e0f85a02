"""One real program through all four verbs: record, explain, predict, apply; a report of it all; and advice."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tree import NOTHING_APPLIED, ROOT, end_by_exception, environment, files_on_servers, finish, mpiexec, pioscope, run, serving

DEMO = ROOT / "demo"
# Scratch copies of the folder are elsewhere: a path that begins there would not lead to the program.
COLLAPSE = ROOT / "apps/collapse/build/collapse"
RANKS = 4
MESH = "48x48x48"
MACHINES = ["sp-argonne", "paragon-caltech", "pios-64", "qsnet-64", "tree-64", "fly-64"]
CACHES = ["storage.cache.size=64 KiB,256 KiB,1 MiB", "storage.cache.policy=lru,arc",
          "storage.cache.write-behind=true,false"]
STRATEGIES = ["independent", "two-phase"]
SERVERS = 4
STORE = Path("store/store.toml")
ON_SERVERS = ["two-phase", "ecio"]


def main():
    end_by_exception()
    began = time.monotonic()
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir()
    os.chdir(DEMO)
    print("$ cd demo")
    work = ["--mesh", MESH, "--iterations", 4, "--dump-every", 2]
    restart = ["--restart", "start/restart.dat"]
    job = [*mpiexec(RANKS), COLLAPSE, *work, *restart, "--output"]

    say(f"A gas cloud collapses under its own gravity, on {RANKS} processes. First, a restart file to begin from:")
    step(*mpiexec(RANKS), COLLAPSE, "--mesh", MESH, "--iterations", 0, "--dump-initial", "--output", "start")

    say("RECORD: the same program, unmodified, with every I/O call of every process kept:")
    step("pioscope", "record", "-o", "run.pio", "--", *job, "out")

    say("EXPLAIN: where does its I/O time go?")
    step("pioscope", "explain", "run.pio", "--html", "run.html")

    say("APPLY: the program under two strategies, recorded again, to see what they do here:")
    for strategy in STRATEGIES:
        trace = f"{strategy}.pio"
        step("pioscope", "apply", "--strategy", strategy, "--record", trace, "--", *job, f"out-{strategy}")
        for file in sorted(Path("out").iterdir()):
            if file.read_bytes() != Path(f"out-{strategy}", file.name).read_bytes():
                sys.exit(f"{file.name} differs under {strategy}")
        print(f"every file is identical to the one that the MPI's own MPI-IO wrote ({strategy})")

    say("PREDICT: the recorded run on seven machines, under both strategies; on this one beside what was measured:")
    here = "here.toml"
    step("pioscope", "machines", "calibrate", "--folder", ".", "-o", here, "--", *mpiexec(RANKS))
    measured = [word for strategy in STRATEGIES for word in ("--measured", f"here/{strategy}={strategy}.pio")]
    step("pioscope", "predict", "run.pio", "--machine", ",".join([*MACHINES, here]),
         "--strategy", ",".join(STRATEGIES), *measured, "--output", "predicted", "--html", "report.html")

    say("The same on one machine, with other memories in its I/O nodes:")
    axes = [word for axis in CACHES for word in ("--sweep", axis)]
    step("pioscope", "predict", "run.pio", "--machine", "pios-64", "--strategy", ",".join(STRATEGIES), *axes,
         "--html", "memories.html")

    say(f"SERVE: the same program with its files on {SERVERS} I/O servers, under two-phase and ECIO; predicted and measured:")
    folder = STORE.parent
    print(f"\n$ pioscope serve --servers {SERVERS} --dir {folder} &", flush=True)
    with serving(pioscope(), SERVERS, folder):
        step("pioscope", "machines", "calibrate", "--folder", ".", "--store", STORE, "--like", here, "-o", "servers.toml",
             "--", *mpiexec(RANKS))
        step("pioscope", "store", "--store", STORE, "cp", "start/restart.dat", "pioscope:start/restart.dat")
        for strategy in ON_SERVERS:
            out = Path(f"servers-{strategy}")
            out.mkdir()
            step("pioscope", "apply", "--strategy", strategy, "--store", STORE, "--record", f"{out}.pio", "--", *job, out)
            same_as_on_servers(out)
            print(f"every file on the servers is identical to the one that the MPI's own MPI-IO wrote ({strategy})")
    measured = [word for strategy in ON_SERVERS
                for word in ("--measured", f"servers/{strategy}=servers-{strategy}.pio")]
    step("pioscope", "predict", "run.pio", "--machine", "servers.toml", "--strategy", ",".join(ON_SERVERS),
         *measured, "--output", "predicted", "--html", "servers.html")

    say("ADVISE: which setting is best here? Predicted, tried, and kept for the job script:")
    step("pioscope", "advise", "--machine", here, "--keep", "advice.toml", "--", *job, "advised")

    minutes = (time.monotonic() - began) / 60
    say(f"Done in {minutes:.1f} minutes. Open demo/report.html, demo/memories.html and demo/servers.html: they need no network.")


def same_as_on_servers(out):
    """Copies a run's files from the servers, and compares them with those of the first run."""
    files = files_on_servers(pioscope(), STORE, out)
    if not files:
        sys.exit(f"{out} has no files on the servers")
    for file in files:
        name = Path(file).name
        run([pioscope(), "store", "--store", STORE, "cp", file, out / name])
        if (out / name).read_bytes() != Path("out", name).read_bytes():
            sys.exit(f"{name} differs on the servers")


def say(text):
    print(f"\n=== {text}", flush=True)


def step(*words):
    """Shows a command and runs it."""
    words = [str(word) for word in words]
    print("\n$ " + " ".join(words), flush=True)
    found = environment(words) | {"PATH": f"{pioscope().parent}{os.pathsep}{os.environ['PATH']}"}
    # The program itself is looked up in this process's path.
    words[0] = shutil.which(words[0], path=found["PATH"])
    # The exit code does not say whether a strategy was applied.
    errors = subprocess.PIPE if "apply" in words else None
    done = finish(words, env=found, timeout=600, stderr=errors, text=True)
    print(done.stderr or "", end="", file=sys.stderr, flush=True)
    if done.returncode != 0 or NOTHING_APPLIED in (done.stderr or ""):
        sys.exit("the demo stops here")


if __name__ == "__main__":
    main()

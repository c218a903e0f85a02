"""What the tools here share: where things are, and how to run them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLAPSE = ROOT / "apps/collapse/build/collapse"


def pioscope(profile="release"):
    """The pioscope command of a build profile."""
    return ROOT / "target" / profile / "pioscope"


def environment():
    """The environment for MPI jobs: any number of ranks on this machine, under any MPI, root or not."""
    return os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }


def mpiexec(ranks):
    """The words that start a job of so many ranks."""
    launcher = shutil.which("mpiexec")
    if launcher is None:
        sys.exit("no mpiexec on the PATH (make sets one up)")
    return [launcher, "-n", str(ranks)]


def run(words, **options):
    """Runs a command and gives what it printed; on failure shows that and stops."""
    words = [str(word) for word in words]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    outcome = subprocess.run(words, env=environment(), **kept, **options)
    if outcome.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed with exit code {outcome.returncode}\n{outcome.stdout}")
    return outcome.stdout

"""Recording under a real Slurm, brought up on the nodes of a cluster of namespaces: a controller on the login node, a daemon on
each node. Nothing of it is left when the cluster ends.

    python3 tools/cluster/slurm.py                                        # the tests
    python3 tools/cluster -n 4 -- python3 tools/cluster/slurm.py bash     # a shell on the login node, with srun, sbatch, …
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from tree import cluster, family, pioscope, run  # noqa: E402

NEEDED = ["mpicc", "munged", "slurmctld", "slurmd", "srun"]
# Control groups and accounting are left out: they are the machine's. A node that does not answer is down soon.
CONFIGURATION = """
ClusterName=namespaces
SlurmctldHost=login
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={own}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmi2
StateSaveLocation={own}/state
SlurmdSpoolDir={own}/spool-%n
SlurmctldPidFile={own}/slurmctld.pid
SlurmdPidFile={own}/slurmd-%n.pid
SlurmctldLogFile={own}/slurmctld.log
SlurmdLogFile={own}/slurmd-%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=10
MailProg=/bin/true
NodeName={nodes} CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
"""

# Every rank writes ten blocks, a tenth of a second each.
PROGRAM = """
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    static char name[64], data[65536];
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "out-%d", rank);
    int file = open(name, O_CREAT | O_WRONLY, 0644);
    for (int i = 0; i < (count > 1 ? 1000 : 10); i++, usleep(100000))
        if (write(file, data, sizeof data) < 0)
            return 1;
    MPI_Finalize();
    return 0;
}
"""


def inside(command):
    """On the login node of a cluster: starts Slurm, runs the command, and ends with its exit code."""
    state = Path(os.environ["PIOSCOPE_CLUSTER"])
    own = state / "slurm"
    (own / "state").mkdir(parents=True)
    nodes = sorted(path.name for path in state.glob("n[0-9]*"))
    (own / "slurm.conf").write_text(CONFIGURATION.format(own=own, nodes=",".join(nodes)))
    (own / "munge.key").write_bytes(os.urandom(64))
    (own / "munge.key").chmod(0o400)
    # Launchers are to find Slurm by themselves.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HYDRA_", "OMPI_MCA_", "PRTE_MCA_"))}
    environment["SLURM_CONF"] = os.environ["SLURM_CONF"] = str(own / "slurm.conf")
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log", "seed-file": "munge.seed"}
    run(["munged", *(f"--{option}={own / file}" for option, file in files.items())])
    run(["slurmctld"])
    for node in nodes:
        (own / f"spool-{node}").mkdir()
        run([HERE / "on", node, f"slurmd -N {node}"])
    until = time.monotonic() + 30
    while run(["sinfo", "-h", "-o", "%T %D"]).split() != ["idle", str(len(nodes))]:
        if time.monotonic() > until:
            sys.exit("the nodes of Slurm did not come up")
        time.sleep(0.1)
    sys.exit(subprocess.run(command, env=environment).returncode)


class Slurm(unittest.TestCase):
    """Each test is a script on the login node of a new cluster of two nodes, in a folder that they share; /tmp is each node's own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slurm-check-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "writes.c").write_text(PROGRAM)
        run(["mpicc", "-O2", "-o", self.folder / "writes", self.folder / "writes.c"])
        # Where the nodes see it, wherever this tree is.
        shutil.copy(pioscope("debug"), self.folder)

    def said(self, script):
        """What the script says."""
        script = f"export PATH=$PWD:$PATH XDG_CACHE_HOME=$PWD/cache\n{script}"
        command = [sys.executable, Path(__file__).resolve(), "bash", "-c", script]
        outcome = cluster(self.folder, ["-n", "2"], command, capture_output=True, text=True, timeout=300)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)
        return outcome.stdout + outcome.stderr

    def left(self, what=".*.spool*"):
        return [path.name for path in self.folder.glob(what)]

    def test_all_ranks_are_recorded_and_the_launchers_are_not(self):
        said = self.said("""
            pioscope record -o srun.pio -- srun -n 4 ./writes
            salloc -Q -N 2 -n 4 sh -c 'pioscope record -o mpiexec.pio -- mpiexec -n 4 ./writes'
            pioscope record -o plain.pio -- srun -n 4 sh -c 'dd if=writes of=plain-$SLURM_PROCID status=none'
            pioscope record -o two.pio -- sh -c 'srun -N 1 -n 2 ./writes & srun -N 1 -n 2 ./writes; wait'
            srun -N 2 -n 2 ls -A /tmp /dev/shm > left""")
        for trace in ["srun", "mpiexec", "plain", "two"]:
            self.assertRegex(said, rf"pioscope: {trace}.pio: \d+ events of 4 processes\n")
        self.assertNotIn("not recorded", said)
        self.assertEqual(self.left(), [])
        self.assertNotIn("pioscope", (self.folder / "left").read_text())

    def test_exit_codes_are_kept(self):
        said = self.said("""
            pioscope record -o exit.pio -- srun -n 2 sh -c 'exit $((SLURM_PROCID * 3))'; echo code $?
            pioscope record -o abort.pio -- srun -n 2 sh -c 'kill -ABRT $$'; echo code $?""")
        self.assertEqual(re.findall(r"^code \d+", said, re.MULTILINE), ["code 3", "code 134"])

    def test_ranks_that_do_not_reach_the_recorder_are_missed(self):
        said = self.said("""
            sbatch -Q -W -N 2 --ntasks-per-node=2 -o own.out --wrap 'pioscope record -o /tmp/own.pio -- srun ./writes'
            sbatch -Q -W -N 2 --ntasks-per-node=2 -o both.out --wrap 'pioscope record -o /tmp/both.pio --spool . -- srun ./writes'
            cat own.out both.out
            pioscope record -o none.pio -- srun -n 4 --export=NONE ./writes""")
        self.assertIn("/tmp/own.pio: 2 of 4 ranks were not recorded", said)
        self.assertRegex(said, r"both.pio: \d+ events of 4 processes\n")
        self.assertNotIn("both.pio: 2 of 4", said)
        self.assertIn("none.pio: nothing that srun started was seen", said)

    def test_a_job_that_is_cancelled_leaves_its_trace(self):
        """The script's shell waits for the recorder, by its trap."""
        (self.folder / "job").write_text("#!/bin/bash\ntrap : TERM\npioscope record -o cut.pio -- srun ./writes on\n")
        said = self.said("""
            job=$(sbatch --parsable -N 2 --ntasks-per-node=2 -o job.out job)
            while [ ! -s out-3 ]; do sleep 0.1; done
            scancel $job
            while squeue -h | grep -q .; do sleep 0.1; done
            pioscope explain cut.pio""")
        self.assertIn("4 processes did not end by themselves", said)
        self.assertEqual(self.left(), [])

    def test_the_trace_outlives_a_node(self):
        """First one that only has tasks, then that of the recorder."""
        (self.folder / "job").write_text("#!/bin/bash\npioscope record -o $1.pio -- srun -K0 --no-kill ./writes on\n")
        said = self.said(f"""
            start() {{
                rm -f out-*
                sbatch -Q --no-requeue --no-kill -N 2 --ntasks-per-node=2 -o $1.out job $1
                while [ ! -s out-3 ]; do sleep 0.1; done
            }}
            start task
            {HERE}/on n2 'kill -9 -1'
            sleep 1
            scancel --full -u root
            while ! grep -q events task.out; do sleep 0.1; done
            pioscope explain task.pio
            {HERE}/on n2 'slurmd -N n2'
            scontrol update nodename=n2 state=resume 2> /dev/null
            start recorder
            {HERE}/on n1 'kill -9 -1'
            pioscope convert .recorder.pio.*.spool -o recorder.pio""")
        self.assertRegex(said, r"4 ranks on 2 hosts")
        self.assertRegex(said, r"recorder.pio: \d+ events of 4 processes\n")


def skipped():
    """Why there is nothing to test here; none if there is."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"no {missing[0]} on the PATH" + (" (Slurm is in Debian's package slurm-wlm)" if missing[0] != "mpicc" else "")
    if os.geteuid() != 0:
        return "only root can start Slurm"
    if family() != "mpich":
        return "the MPI is no MPICH, which Slurm starts by PMI-2"
    if not pioscope("debug").exists():
        return "no build of pioscope"
    with tempfile.TemporaryDirectory() as folder:
        outcome = cluster(folder, ["-n", "1"], ["true"], capture_output=True, text=True)
    return f"no cluster of namespaces here: {outcome.stderr}" if outcome.returncode else None


if __name__ == "__main__" and "PIOSCOPE_CLUSTER" in os.environ:
    inside(sys.argv[1:])
elif __name__ == "__main__":
    reason = skipped()
    if reason:
        print(f"skipped: {reason}")
    else:
        unittest.main()

"""The cluster is what it says: nodes see what nodes see, links and the slow file system are no faster than set, counts are exact,
and real jobs across nodes write the files that they write on one machine."""

import filecmp
import json
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
from tree import COLLAPSE, OWN, ROOT, bytes_sent, cluster, environment, family, launcher, mpiexec, pioscope, run  # noqa: E402

SEND = "import socket, sys; s = socket.create_connection((sys.argv[1], 5000)); s.sendall(bytes(4_000_000)); s.shutdown(1); s.recv(1)"
RECEIVE = """
import socket, time
server = socket.create_server(("", 5000))
open("listening", "w").close()
peer, begun, got = server.accept()[0], time.monotonic(), 0
while data := peer.recv(1 << 20):
    got += len(data)
print(got, time.monotonic() - begun)
"""

# Patterns of the benchmark, and so many pieces of a rank that its start does not matter.
PATTERNS = {"interleaved": 400_000, "subarray": 128, "segments": 24}
# Bytes do not depend on the times.
NODES = """
name = "nodes"
source = "made up"
[nodes]
count = {nodes}
cores = 2
switch = "0 s"
copy = {{ bandwidth = "1 GB/s", piece = "0 s" }}
[messages]
send = "0 s"
receive = "0 s"
local-latency = "0 s"
[network]
kind = "flat"
link = {{ bandwidth = "1 GB/s", latency = "0 s" }}
[storage]
kind = "local"
exclusive-writes = true
[calls]
open = "0 s"
close = "0 s"
seek = "0 s"
read = {{ call = "0 s", bandwidth = "1 GB/s" }}
write = {{ call = "0 s", bandwidth = "1 GB/s" }}
"""
UNITS = {unit: 1024 ** power for power, unit in enumerate(["B", "KiB", "MiB", "GiB"])}


def said(folder, *options, command):
    """Runs a command on the login node of a new cluster, in a folder: what it printed."""
    outcome = cluster(folder, options, command, capture_output=True, text=True, timeout=300)
    if outcome.returncode != 0:
        raise AssertionError(f"exit code {outcome.returncode}\n{outcome.stdout}{outcome.stderr}")
    return outcome.stdout


class Cluster(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pioscope-cluster-check-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def on(self, *words, script):
        return said(self.folder, *words, command=["sh", "-ec", f"on={HERE}/on\n{script}"])

    def test_nodes_have_what_is_theirs_and_share_the_folder(self):
        said = self.on("-n", "2", script="""
            $on n1 'touch /tmp/mine /dev/shm/mine ours; hostname'
            $on n2 'ls /tmp/mine /dev/shm/mine 2> /dev/null || ls; hostname; cat /proc/1/comm; getent hosts n1'""")
        self.assertEqual(said.split(), ["n1", "ours", "n2", "sleep", "10.9.0.1", "n1"])

    def test_the_commands_exit_code_is_the_clusters(self):
        outcome = subprocess.run([sys.executable, HERE, "-n", "1", "--", "sh", "-c", "exit 7"], cwd=self.folder)
        self.assertEqual(outcome.returncode, 7)

    def test_who_kills_it_ends_all_of_it(self):
        words = [sys.executable, HERE, "-n", "1", "--", "sh", "-c", "touch up; sleep 1000; touch survived"]
        with subprocess.Popen(words, cwd=self.folder) as running:
            while not (self.folder / "up").exists():
                time.sleep(0.01)
            sleeping = subprocess.run(["pgrep", "--full", "touch survived"], capture_output=True, text=True).stdout.split()
            self.assertTrue(sleeping)
            running.kill()
        while any(Path(f"/proc/{process}").exists() for process in sleeping):
            time.sleep(0.01)

    def test_who_ends_it_lets_its_command_clear_up(self):
        """It was killed with all of its processes, whose folders outside the cluster stayed."""
        words = [sys.executable, HERE, "-n", "1", "--", "sh", "-c", "trap 'touch cleared; exit' TERM; touch up; while :; do sleep 0.01; done"]
        for end in subprocess.Popen.terminate, subprocess.Popen.kill:
            with subprocess.Popen(words, cwd=self.folder) as running:
                while not (self.folder / "up").exists():
                    time.sleep(0.01)
                end(running)
            while not (self.folder / "cleared").exists():
                time.sleep(0.01)
            for name in "up", "cleared":
                (self.folder / name).unlink()

    def test_wrong_words_are_refused(self):
        for words, said in [(["-n", "2"], "expected a command"), (["--slow", "nowhere", "--", "true"], "nowhere: expected a folder"),
                            (["--link", "fast", "--", "true"], "tc"), (["--", "no-such-command"], "no-such-command")]:
            outcome = subprocess.run([sys.executable, HERE, *words], cwd=self.folder, capture_output=True, text=True)
            self.assertNotEqual(outcome.returncode, 0, words)
            self.assertIn(said, outcome.stderr)

    def test_a_node_that_does_not_start_is_told(self):
        """The cluster once waited for it for ever."""
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ["setpriv", "unshare", "mount", "ip", "sh", "mkdir", "chmod", "sleep", "nsenter"]:
            (tools / name).symlink_to(shutil.which(name))
        words = [sys.executable, HERE, "-n", "1", "--", "true"]
        outcome = subprocess.run(words, cwd=self.folder, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60)
        self.assertEqual(outcome.returncode, 1, outcome.stderr)
        self.assertIn("cluster: node n1 did not start", outcome.stderr)

    def test_a_link_lets_no_more_through_than_set(self):
        (self.folder / "send.py").write_text(SEND)
        (self.folder / "receive.py").write_text(RECEIVE)
        got, seconds = self.on("-n", "2", "--link", "80mbit", script=f"""
            $on n2 '{sys.executable} receive.py' & while [ ! -e listening ]; do sleep 0.01; done
            $on n1 '{sys.executable} send.py n2'; wait""").split()
        self.assertEqual(int(got), 4_000_000)
        # At most the burst of both ends goes at once.
        self.assertGreaterEqual(float(seconds), (4_000_000 - 2 * 65536) / 10e6)

    def test_the_slow_file_system_counts_and_delays_every_request(self):
        slow = self.folder / "slow"
        slow.mkdir()
        begun = time.monotonic()
        counts = self.on("-n", "2", "--slow", slow, "--latency", "20 ms", "--callback", "50 ms", script="""
            $on n1 'dd if=/dev/zero of=slow/a bs=4096 count=10 conv=notrunc status=none'
            $on n2 'dd if=slow/a of=/dev/null bs=8192 count=5 status=none'
            $on n2 'dd if=/dev/zero of=slow/a bs=4096 count=3 conv=notrunc status=none'
            $on n1 'dd if=/dev/zero of=slow/a bs=4096 count=2 conv=notrunc status=none'
            cat slow/.slowfs""")
        rows = [dict(zip(counts.split("\n")[0].split(), line.split(), strict=True)) for line in counts.split("\n")[1:3]]
        names = ["reads", "read-bytes", "writes", "written-bytes", "callbacks"]
        self.assertEqual([[int(row[name]) for name in names] for row in rows],
                         [[0, 0, 12, 49152, 1], [5, 40960, 3, 12288, 1]])
        self.assertGreaterEqual(time.monotonic() - begun, 20 * 0.020 + 2 * 0.050)
        self.assertEqual((slow / "a").stat().st_size, 40960)

    def test_nodes_of_the_slow_file_system_see_each_others_locks(self):
        slow = self.folder / "slow"
        slow.mkdir()
        self.on("-n", "2", "--slow", slow, script="""
            touch slow/a
            $on n1 'flock slow/a sh -c "touch locked; while [ ! -e tried ]; do sleep 0.01; done"' & while [ ! -e locked ]; do sleep 0.01; done
            if $on n2 'flock -n slow/a true'; then exit 1; fi
            touch tried; wait
            $on n2 'flock -n slow/a true'""")

    def test_jobs_across_nodes_write_the_files_of_one_machine(self):
        if not COLLAPSE.exists() or not pioscope("debug").exists():
            self.skipTest("no build of collapse and pioscope")
        mpiexec, slow = launcher(), self.folder / "slow"
        slow.mkdir()
        program = f"{mpiexec} -n 4 {COLLAPSE} --mesh 16x16x16 --iterations 1 --dump-every 1 --output"
        subprocess.run(["sh", "-ec", f"{program} own"], cwd=self.folder, env=environment(), check=True, stdout=subprocess.DEVNULL)
        self.on("-n", "2", "--ranks-per-node", "2", "--servers", "2", "--slow", slow, "--callback", "1 ms", "--lock-strip", "4 KiB", script=f"""
            export PATH={pioscope("debug").parent}:$PATH
            for strategy in independent two-phase view-based auto; do
                pioscope apply -s $strategy -- {program} slow/$strategy
            done
            for strategy in two-phase ecio; do
                pioscope apply -s $strategy --store $PIOSCOPE_CLUSTER_STORE -- {program} $strategy
                mkdir servers-$strategy
                for file in $(pioscope store ls --store $PIOSCOPE_CLUSTER_STORE $strategy/); do
                    pioscope store cp --store $PIOSCOPE_CLUSTER_STORE pioscope:$file servers-$strategy/
                done
            done""")
        own = sorted(path.name for path in (self.folder / "own").iterdir())
        for ours in [*slow.iterdir(), *self.folder.glob("servers-*")]:
            self.assertEqual(filecmp.cmpfiles(self.folder / "own", ours, own, shallow=False)[1:], ([], []), ours)
        self.assertEqual(len([*slow.iterdir(), *self.folder.glob("servers-*")]), 6)

    def test_leaders_speak_for_the_ranks_of_their_nodes(self):
        """What is written is the same, and other ranks than leaders send data within their nodes alone."""
        if not COLLAPSE.exists() or not pioscope("debug").exists():
            self.skipTest("no build of collapse and pioscope")
        program = f"{launcher()} -n 16 {COLLAPSE} --mesh 33x20x17 --iterations 1 --dump-every 1 --output"
        self.on("-n", "4", "--ranks-per-node", "4", script=f"""
            export PATH={pioscope("debug").parent}:$PATH
            for whom in aggregators leaders; do
                pioscope apply -s two-phase --hints pio_describe=$whom --record $whom.pio -- {program} $whom
                pioscope convert $whom.pio -o $whom.json
            done""")
        names = sorted(path.name for path in (self.folder / "leaders").iterdir())
        self.assertEqual(filecmp.cmpfiles(self.folder / "leaders", self.folder / "aggregators", names, shallow=False)[1:], ([], []))
        between = {whom: set() for whom in ["aggregators", "leaders"]}
        for whom, found in between.items():
            for event in json.loads((self.folder / f"{whom}.json").read_text())["traceEvents"]:
                if event["name"] == "data" and event["pid"] // 4 != event["args"]["peer"] // 4:
                    found.add(event["pid"])
        self.assertLessEqual(between["leaders"], {0, 4, 8, 12})
        self.assertGreater(len(between["aggregators"]), 4)

    def test_what_the_mpi_sends_between_nodes_is_predicted(self):
        """Its messages are in no trace, but on the links. There they have headers, and packets are acknowledged: 6 % are allowed
        for that, and 128 KiB for many small messages; the starts of jobs, which are taken off, differ by tens of KB."""
        if not pioscope("debug").exists():
            self.skipTest("no build of pioscope")
        run(["mpicc", "-O2", "-o", self.folder / "patterns", ROOT / "crates/mpiio/bench/patterns.c"])
        for nodes, ranks_per_node in [(2, 1), (2, 2), (4, 1)]:
            (self.folder / "nodes.toml").write_text(NODES.format(nodes=nodes))
            options = ["-n", nodes, "--ranks-per-node", ranks_per_node]
            found = json.loads(said(self.folder, *options, command=[sys.executable, __file__, str(nodes * ranks_per_node)]))
            for pattern, (sent, predicted) in found.items():
                with self.subTest(pattern, nodes=nodes, ranks=nodes * ranks_per_node, sent=sent, predicted=predicted):
                    self.assertLessEqual(0.97 * predicted, sent + 65536)
                    self.assertLessEqual(sent, 1.06 * predicted + 131072)


def sent_by_own_way(ranks):
    """On the login node of a cluster: bytes that jobs sent between nodes under the MPI's own MPI-IO, and as predicted, by pattern."""
    own = OWN[family()]

    def sent(*words):
        before = bytes_sent()
        run([pioscope("debug"), "record", "-o", "run.pio", "--", *mpiexec(ranks), "./patterns", *words, "--repeat", "1"])
        return bytes_sent() - before

    start = sent("--pieces", "1")
    found = {}
    for pattern, pieces in PATTERNS.items():
        measured = sent("--pattern", pattern, "--pieces", pieces) - start
        rows = run([pioscope("debug"), "predict", "run.pio", "--machine", "nodes.toml", "--strategy", own, "--output", "."])
        rows = [re.split(r"  +", row.strip()) for row in rows.splitlines()]
        column = next(row for row in rows if row[0] == "machine").index("between nodes")
        number, unit = next(row for row in rows if row[0] == "nodes")[column].split()
        found[pattern] = measured, float(number) * UNITS[unit]
    print(json.dumps(found))


if __name__ == "__main__" and "PIOSCOPE_CLUSTER" in os.environ:
    sent_by_own_way(int(sys.argv[1]))
elif __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as folder:
            said(folder, "-n", "1", "--slow", folder, command=["true"])
    except AssertionError as error:
        print(f"skipped: no cluster of namespaces here: {error}")
    else:
        unittest.main()

"""A cluster on one machine: nodes are namespaces, joined by links of limited bandwidth, with one slow file system.

    python3 tools/cluster --nodes 4 --link 200mbit -- mpiexec -n 4 ./program

runs the command on the login node. There `mpiexec` starts ranks on the nodes, as on a real cluster: each node has its own
network, host name, processes, /tmp and /dev/shm. All of it ends with the command. Root is not needed where the kernel lets
users make namespaces (the slow file system also needs an open /dev/fuse).
"""

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import agent  # noqa: E402
from tree import ENDING, any_ranks, end_by_exception, finish  # noqa: E402

# Where the cluster keeps its state: a tmpfs in its own mount namespace, which all nodes see.
STATE = Path("/mnt")
# In the environment of what runs in the cluster: where that is.
INSIDE = "PIOSCOPE_CLUSTER"
NETWORK = "10.9.0"
LOGIN = 254


def arguments():
    parser = argparse.ArgumentParser(prog="tools/cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--nodes", type=int, default=4, help="compute nodes, n1, n2, … [4]")
    parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks that mpiexec puts on a node before it takes the next [1]")
    parser.add_argument("--link", default="none", help="bandwidth of each node's link each way, as tc writes it (200mbit) [no limit]")
    parser.add_argument("--burst", default="64kb", help="bytes that an idle link lets through at once [64kb]")
    parser.add_argument("--servers", type=int, default=0, help="nodes s1, s2, … with an I/O server each; the file for --store is in $PIOSCOPE_CLUSTER_STORE")
    parser.add_argument("--strip", default="64 KiB", help="of the I/O servers [64 KiB]")
    parser.add_argument("--share", type=Path, default=Path.cwd(), help="folder that all nodes see even if it is below /tmp [this one]")
    slow = parser.add_argument_group("slow file system", "a folder that all nodes reach through it, each as a client")
    slow.add_argument("--slow", type=Path, metavar="FOLDER")
    slow.add_argument("--latency", help="of every request (1 ms)")
    slow.add_argument("--bandwidth", help="of each client (100 MB/s)")
    slow.add_argument("--total-bandwidth", help="of all clients together")
    slow.add_argument("--streams", help="requests that it carries out at the same time")
    slow.add_argument("--callback", help="who writes locks; what it takes to call a lock back from another node (5 ms)")
    slow.add_argument("--lock-strip", help="bytes that a lock covers (64 KiB) [the whole file]")
    slow.add_argument("--cached", action="store_true", help="nodes cache what they read")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run on the login node")
    chosen = parser.parse_args()
    if chosen.command[:1] == ["--"]:
        del chosen.command[0]
    if not chosen.command:
        parser.error("expected a command after --")
    if not 1 <= chosen.nodes + chosen.servers < LOGIN:
        parser.error(f"expected 1 to {LOGIN - 1} nodes in all")
    for folder in [chosen.share, chosen.slow]:
        if folder is not None and not folder.is_dir():
            parser.error(f"{folder}: expected a folder")
        if folder is not None and folder.resolve().is_relative_to(STATE):
            parser.error(f"{folder}: expected a folder outside {STATE}, which the cluster needs")
    for path in [ROOT, Path(sys.executable), Path(sys.executable).resolve()]:
        if path.is_relative_to(STATE):
            parser.error(f"{path}: expected this tree and Python outside {STATE}, which the cluster hides")
    return chosen


def run(*words, **options):
    """Runs a command; on failure says which, and ends."""
    outcome = subprocess.run([str(word) for word in words], stderr=subprocess.PIPE, text=True, **options)
    if outcome.returncode != 0:
        sys.exit(f"cluster: {shlex.join(str(word) for word in words)}: {outcome.stderr.strip() or outcome.returncode}")


def tool(name):
    """A program of this project: the one on the PATH, else the one built last here."""
    built = [path for profile in ["release", "debug"] if (path := ROOT / "target" / profile / name).exists()]
    found = shutil.which(name) or max(built, key=lambda path: path.stat().st_mtime, default=None)
    return found or sys.exit(f"cluster: no {name} on the PATH or in {ROOT / 'target'} (cargo build --workspace makes it)")


class Cluster:
    """Made in namespaces of its own, in which nothing has to be removed."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.names = [f"n{node + 1}" for node in range(chosen.nodes)] + [f"s{node + 1}" for node in range(chosen.servers)]

    def start(self):
        """Makes the nodes, and all that is on them."""
        run("mount", "-t", "tmpfs", "cluster", STATE)
        # So that nodes can show it where they hide it.
        (STATE / "share").mkdir()
        run("mount", "--rbind", self.chosen.share, STATE / "share")
        self.write_hosts()
        self.write_host_file()
        if self.chosen.slow is not None:
            self.mount_slow()
        agent.serve(STATE)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "br0", "up")
        run("ip", "address", "add", f"{NETWORK}.{LOGIN}/24", "dev", "br0")
        for number, name in enumerate(self.names, 1):
            self.start_node(number, name)
        socket.sethostname("login")
        if self.chosen.servers:
            self.start_servers()

    def write_hosts(self):
        hosts = ["127.0.0.1 localhost", f"{NETWORK}.{LOGIN} login"]
        hosts += [f"{NETWORK}.{number} {name}" for number, name in enumerate(self.names, 1)]
        (STATE / "hosts").write_text("\n".join(hosts) + "\n")
        run("mount", "--bind", STATE / "hosts", "/etc/hosts")

    def write_host_file(self):
        """Of the compute nodes, as each family of launchers reads it."""
        nodes, ranks = self.names[:self.chosen.nodes], self.chosen.ranks_per_node
        (STATE / "hosts.mpich").write_text("".join(f"{node}:{ranks}\n" for node in nodes))
        (STATE / "hosts.openmpi").write_text("".join(f"{node} slots={ranks}\n" for node in nodes))

    def mount_slow(self):
        """Mounts the slow file system for each node, and over the folder for the login node."""
        options = {"--latency": self.chosen.latency, "--bandwidth": self.chosen.bandwidth, "--total-bandwidth": self.chosen.total_bandwidth,
                   "--streams": self.chosen.streams, "--callback": self.chosen.callback, "--strip": self.chosen.lock_strip}
        words = [word for option, value in options.items() if value is not None for word in [option, value]]
        words += ["--cached"] * self.chosen.cached
        mounts = [STATE / f"slow-{name}" for name in self.names]
        for mount in mounts:
            mount.mkdir()
        server = subprocess.Popen([tool("slowfs"), *words, "--", self.chosen.slow, *mounts, self.chosen.slow], stdout=subprocess.PIPE, text=True)
        if server.stdout.readline() != "mounted\n":
            sys.exit(f"cluster: no slow file system (exit code {server.wait()})")

    def start_node(self, number, name):
        """A node: its namespaces, its end of a link, and its own or common folders."""
        steps = [f"hostname {name}", "ip link set lo up", "mount -t tmpfs shm /dev/shm", "mount -t tmpfs tmp /tmp", "chmod 1777 /tmp"]
        steps += [self.bind("share", self.chosen.share)]
        if self.chosen.slow is not None:
            steps += [self.bind(f"slow-{name}", self.chosen.slow)]
        # A pipe, and no named one: it also ends if the node does, and nobody has to open it first.
        node = subprocess.Popen(["unshare", "-n", "-m", "-u", "-i", "-p", "-f", "--mount-proc", "--kill-child", "--propagation", "private",
                                 "sh", "-ec", "; ".join(steps) + "; echo ready; exec sleep infinity"], stdout=subprocess.PIPE, text=True)
        with node.stdout:
            if "ready\n" not in node.stdout:
                sys.exit(f"cluster: node {name} did not start (exit code {node.wait()})")
        # The process that unshare started is the first of the node.
        first = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()[0]
        (STATE / name).write_text(first)
        run("ip", "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", first)
        run("ip", "link", "set", f"v{number}", "up", "master", "br0")
        within = ["nsenter", "-t", first, "-n"]
        run(*within, "ip", "link", "set", "eth0", "up")
        run(*within, "ip", "address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
        if self.chosen.link != "none":
            limit = ["root", "tbf", "rate", self.chosen.link, "burst", self.chosen.burst, "latency", "50ms"]
            run("tc", "qdisc", "add", "dev", f"v{number}", *limit)
            run(*within, "tc", "qdisc", "add", "dev", "eth0", *limit)

    def bind(self, name, folder):
        """How a node sees a folder of the state elsewhere."""
        folder = shlex.quote(str(folder.resolve()))
        return f"mkdir -p {folder}; mount --rbind {STATE / name} {folder}"

    def start_servers(self):
        servers, started = self.names[self.chosen.nodes:], []
        for index, name in enumerate(servers):
            folder = STATE / f"store-{name}"
            folder.mkdir(mode=0o700)
            words = [tool("pioscope"), "serve", "--servers", len(servers), "--server-index", index, "--listen", name, "--strip", self.chosen.strip,
                     "--dir", folder, "--store-file", self.store_file()]
            started.append(subprocess.Popen([HERE / "on", name, shlex.join(str(word) for word in words)], stdout=subprocess.DEVNULL))
        while not self.store_file().exists():
            if any(server.poll() is not None for server in started):
                sys.exit("cluster: an I/O server did not start")
            time.sleep(0.01)

    def store_file(self):
        return STATE / "store.toml"

    def environment(self):
        """So that every mpiexec starts its ranks on the nodes."""
        on = str(HERE / "on")
        variables = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": on, "HYDRA_HOST_FILE": str(STATE / "hosts.mpich")}
        variables |= {"OMPI_MCA_plm_rsh_agent": on, "OMPI_MCA_plm_rsh_no_tree_spawn": "1", "OMPI_MCA_orte_default_hostfile": str(STATE / "hosts.openmpi")}
        variables |= {"PRTE_MCA_plm_ssh_agent": on, "PRTE_MCA_plm_ssh_no_tree_spawn": "1", "PRTE_MCA_prte_default_hostfile": str(STATE / "hosts.openmpi")}
        # Fill the slots of a node before those of the next.
        variables["PRTE_MCA_rmaps_default_mapping_policy"] = "slot:oversubscribe"
        if self.chosen.servers:
            variables["PIOSCOPE_CLUSTER_STORE"] = str(self.store_file())
        return any_ranks() | variables


def within_namespaces():
    """Runs this program again in namespaces of its own: its exit code. Who kills this command ends the cluster."""
    user = [] if os.geteuid() == 0 else ["-U", "-r"]
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", *user, "-n", "-m", "-u", "-p", "-f", "--mount-proc", "--propagation", "private",
             "--kill-child=TERM", sys.executable, *sys.argv]
    with subprocess.Popen(words, env=os.environ | {INSIDE: str(STATE)}) as unshare:
        try:
            return unshare.wait()
        except BaseException:
            # The command is told to end, and has time to clear up. unshare passes nothing on, but ends with its child.
            with contextlib.suppress(OSError):
                for child in Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split():
                    os.kill(int(child), signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                unshare.wait(ENDING)
            unshare.kill()
            raise


def main():
    chosen = arguments()
    end_by_exception()
    if INSIDE in os.environ:
        cluster = Cluster(chosen)
        cluster.start()
        try:
            code = finish(chosen.command, env=cluster.environment()).returncode
        except OSError as error:
            sys.exit(f"cluster: {chosen.command[0]}: {error.strerror}")
    else:
        code = within_namespaces()
    # As shells say it of who was killed.
    sys.exit(code if code >= 0 else 128 - code)


main()

"""Starts commands on nodes for whoever asks: as sshd does, it is no child of theirs, and not held by what holds them."""

import json
import os
import select
import signal
import socket
import subprocess
import threading
from pathlib import Path

# In which the length of a request stands; the descriptors of the command come with it.
LENGTH_BYTES = 4
# What ssh says if there is no such host.
NO_NODE = 255


def serve(state):
    """Takes requests at a socket in the folder, until the process ends."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(state / "agent"))
    listening.listen(64)

    def take():
        while True:
            asked, _ = listening.accept()
            threading.Thread(target=answer, args=(state, asked), daemon=True).start()

    threading.Thread(target=take, daemon=True).start()


def ask(state, node, command):
    """Has a command run on a node as if it ran here: its exit code."""
    request = {"node": node, "command": command, "environment": dict(os.environ), "folder": os.getcwd()}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(str(Path(state) / "agent"))
        socket.send_fds(agent, [len(text).to_bytes(LENGTH_BYTES, "big")], [0, 1, 2])
        agent.sendall(text)
        return int(agent.makefile().read() or NO_NODE)


def answer(state, asked):
    with asked:
        length, descriptors, _, _ = socket.recv_fds(asked, LENGTH_BYTES, 3)
        try:
            request = json.loads(asked.makefile("rb").read(int.from_bytes(length, "big")))
            code = run(state, request, descriptors, asked)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if code is not None:
            asked.sendall(str(code).encode())


def run(state, request, descriptors, asked):
    """The exit code of the command; none if who asked went away, and the command with it."""
    first = state / request["node"]
    if not first.is_file():
        return NO_NODE
    words = ["nsenter", "-t", first.read_text(), "-n", "-m", "-u", "-i", "-p", f"--wdns={request['folder']}", "bash", "-c", request["command"]]
    command = subprocess.Popen(words, env=request["environment"], stdin=descriptors[0], stdout=descriptors[1], stderr=descriptors[2],
                               start_new_session=True)
    ended = os.pidfd_open(command.pid)
    try:
        gone = asked in select.select([asked, ended], [], [])[0]
    finally:
        os.close(ended)
    if gone:
        os.killpg(command.pid, signal.SIGKILL)
    code = command.wait()
    if gone:
        return None
    # As shells say it of who was killed.
    return code if code >= 0 else 128 - code

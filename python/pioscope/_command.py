"""What only the command can do: run programs, and measure machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TypeAlias, overload

from . import _native
from ._machine import Machine, machine
from ._prediction import Hints, hints_text
from ._trace import Trace

Words: TypeAlias = "Sequence[str | os.PathLike[str]]"

# Of what a program that failed says at its end.
_LINES_KEPT = 20


class CommandError(_native.Error):
    """The command `pioscope`, or the program that it ran, has failed. Its last words are the message."""

    __module__ = "pioscope"

    def __init__(self, message: str, returncode: int | None = None) -> None:
        super().__init__(message)
        self.returncode = returncode
        """The exit code; None if the command could not be started."""

    def __reduce__(self) -> tuple[object, ...]:
        return CommandError, (str(self), self.returncode)


def record(command: Words, output: str | os.PathLike[str], options: Sequence[str] = (), check: bool = True) -> Trace:
    """Runs a program, unmodified, and records every I/O call that it makes into the trace `output`.

    options are those of `pioscope record`: ["--path", "/data/*"]. A program that fails raises CommandError, as
    subprocess.run() does; with check=False its trace is opened all the same, and CommandError says that there is none: the
    program was not started, say. A file that was at `output` before is never taken for it.

    >>> trace = pioscope.record(["dd", "if=/dev/zero", "of=zeros", "bs=4096", "count=8", "status=none"], "dd.pio")
    >>> trace.job
    'dd if=/dev/zero of=zeros bs=4096 count=8 status=none'
    """
    _run("record", ["--output", output, *_words(options), "--", *_words(command)], check, output)
    return Trace(output)


@overload
def apply(
    strategy: str, command: Words, hints: Hints | None = None, *, record: None = None,
    machine: str | os.PathLike[str] | None = None, store: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (), check: bool = True,
) -> None: ...


@overload
def apply(
    strategy: str, command: Words, hints: Hints | None = None, *, record: str | os.PathLike[str],
    machine: str | os.PathLike[str] | None = None, store: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (), check: bool = True,
) -> Trace: ...


def apply(
    strategy: str, command: Words, hints: Hints | None = None, *, record: str | os.PathLike[str] | None = None,
    machine: str | os.PathLike[str] | None = None, store: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (), check: bool = True,
) -> Trace | None:
    """Runs an MPI program, unmodified, with its MPI-IO carried out under a strategy: on its files, or on the I/O servers
    that the file `store` describes. With `record`, also records it, and opens that trace: check is as of record().

    machine is a file that tells the strategy auto what I/O costs; options are further ones of `pioscope apply`.
    """
    named = {"--hints": hints_text(hints) or None, "--record": record, "--machine": machine, "--store": store}
    given = [word for name, value in named.items() if value is not None for word in (name, value)]
    _run("apply", ["--strategy", strategy, *given, *_words(options), "--", *_words(command)], check, record)
    return None if record is None else Trace(record)


def convert(path: str | os.PathLike[str], output: str | os.PathLike[str], options: Sequence[str] = ()) -> Path:
    """Writes a trace as Parquet, as JSON for Chrome and Perfetto, or for fio (.parquet, .json, .iolog); or another tool's log
    as a trace (.pio). Trace.to_parquet() writes large traces as many files.

    >>> pioscope.convert("run.pio", "run.parquet").name
    'run.parquet'
    >>> pioscope.convert("nowhere.pio", "run.parquet")
    Traceback (most recent call last):
    ...
    pioscope.CommandError: nowhere.pio: ...
    """
    _run("convert", [path, "--output", output, *_words(options)])
    return Path(output)


def calibrate(
    folder: str | os.PathLike[str] = ".", output: str | os.PathLike[str] | None = None, launcher: Words = (),
    options: Sequence[str] = (), *, store: str | os.PathLike[str] | None = None,
) -> Machine:
    """Measures this machine, with the file system of a folder; with `store`, the I/O servers that this file describes, too.
    Without `output` the description is kept, and predict() finds it by the name "here".

    launcher is how your jobs are started, without a program: ["mpiexec", "-n", "16"]. options are further ones of `pioscope
    machines calibrate`. Takes some minutes.
    """
    # What is measured, and where its description is then, must be known here.
    for word in (os.fspath(option) for option in _words(options)):
        for option, argument in (("--folder", "folder"), ("--output", "output"), ("-o", "output"), ("--store", "store")):
            # The value of a short option may follow it at once.
            if word.split("=")[0] == option or (option == "-o" and word.startswith(option)):
                raise _native.Error(f"options: {word}: expected the argument {argument} of calibrate() in its place")
    named = {"--output": output, "--store": store}
    given = [word for name, value in named.items() if value is not None for word in (name, value)]
    given = ["--folder", folder, *given, *_words(options)]
    _run("machines", ["calibrate", *given, *(["--", *_words(launcher)] if launcher else [])])
    if output is not None:
        return machine(Path(output))
    if store is not None:
        return Machine(_native.Machine.of_store(store))
    return Machine(_native.Machine.of_folder(folder))


def command_path() -> str:
    """The command: what the variable PIOSCOPE names; else that beside this module; else that on the PATH."""
    named = os.environ.get("PIOSCOPE")
    if named:
        return named
    # pip puts it into ENVIRONMENT/bin, and this module into ENVIRONMENT/lib/pythonX.Y/site-packages; with --target, both
    # into one folder.
    packages = Path(__file__).resolve().parent.parent
    for folder in (packages, *packages.parents[:3]):
        command = folder / "bin" / "pioscope"
        if os.access(command, os.X_OK):
            return str(command)
    found = shutil.which("pioscope")
    if found is None:
        raise CommandError(
            "the command pioscope is not installed: expected it beside the module, on the PATH, or where the variable "
            "PIOSCOPE says"
        )
    return found


def _words(command: Words) -> list[str | os.PathLike[str]]:
    if isinstance(command, str):
        raise TypeError(f"expected a list of words, such as ['mpiexec', '-n', '8', './program'], not the text {command!r}")
    return list(command)


def _run(verb: str, words: Words, check: bool = True, trace: str | os.PathLike[str] | None = None) -> None:
    """Runs the command. What it and its program say on standard error is passed on line by line: a notebook shows it.

    Without check it may fail, if it has written the `trace` that it was to write.
    """
    command = command_path()
    before = _identity(trace)
    try:
        process = subprocess.Popen([command, verb, *(os.fspath(word) for word in words)], stderr=subprocess.PIPE)
    except OSError as error:
        raise CommandError(f"{command}: cannot be started: {error.strerror}") from error
    assert process.stderr is not None
    last: deque[str] = deque(maxlen=_LINES_KEPT)
    reader = threading.Thread(target=_pass_on, args=(process.stderr, last), daemon=True)
    reader.start()
    try:
        process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    # A process that the program left behind may keep its standard error open for as long as it likes.
    reader.join(timeout=5)
    if process.returncode != 0 and (check or (trace is not None and _identity(trace) in (before, None))):
        said = "\n".join(line.removeprefix("pioscope: ") for line in last).strip()
        ended = f"pioscope {verb} ended with exit code {process.returncode}"
        # Of a program that fails silently, nothing but notes of the command is there.
        raise CommandError(f"{said}\n{ended}".lstrip(), process.returncode)


def _identity(path: str | os.PathLike[str] | None) -> tuple[int, int, int] | None:
    """What is another for a file that replaced this one, or that was written anew; None without a file."""
    try:
        status = None if path is None else os.stat(path)
    except OSError:
        return None
    return status and (status.st_dev, status.st_ino, status.st_mtime_ns)


def _pass_on(lines: IO[bytes], last: deque[str]) -> None:
    with lines:
        for line in lines:
            text = line.decode(errors="replace")
            last.append(text.rstrip("\n"))
            sys.stderr.write(text)
            sys.stderr.flush()

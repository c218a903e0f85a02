"""Runs the commands of docs/cookbook and docs/training.md, and checks that they print what the pages say.

Each page is run in a scratch folder of its own:

- In a block ```console, each line that begins with `$ ` is a command of bash (a backslash at its end goes on in the next
  line), which must exit with 0; the lines below it are what it prints, on both outputs.
- A block below a line that ends with a name and a colon, as in "`checkpoint.py`:", is the file of that name.
- A file of `programs/` to which the page links is copied.
- `<!-- needs: NAME … -->` names programs, or modules of Python as `python:NAME`, without which the page is skipped.

In what a command prints, … stands for anything. Blanks and ends of lines are alike, and any number fits in a time, a rate
or a share, in any unit of it. All other words and numbers must be as the page has them.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tree import ROOT, end_by_exception, environment, finish, pioscope

PAGES = [*sorted((ROOT / "docs/cookbook").glob("*.md")), ROOT / "docs/training.md"]
SCRATCH = ROOT / "target"
TIMEOUT_SECONDS = 120

NUMBER = r"\d[\d,]*(?:\.\d+)?"
TIME = r"(?:ps|ns|µs|us|ms|s|min|h)"
SIZE = r"(?:B|[KMGT]i?B|[kMGT]B)"
# What differs from run to run, as a page has it and as it may be printed.
VARYING = [
    (rf"{NUMBER}\s+{TIME}(?![\w/])", rf"{NUMBER}\s+{TIME}"),
    (rf"{NUMBER}\s+{SIZE}/s", rf"{NUMBER}\s+{SIZE}/s"),
    (rf"(?:less than\s+|<\s+|-)?{NUMBER}\s+%", rf"(?:less\s+than\s+|<\s+|-)?{NUMBER}\s+%"),
    (r"─+", "─+"),
    (r"\s+", r"\s+"),
]
# Seconds of a unit of time.
SECONDS = {"ps": 1e-12, "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
# The I/O time of a prediction for a machine that is described, the first time of its line, depends on the machine that it is made on
# by what the program computed between its I/O alone: it is that of the page, up to so many times.
FOR_A_DESCRIBED_MACHINE = re.compile(r"pioscope predict .*--machine (?!here)", re.DOTALL)
LIKE = 1.5
# Set when this is told to end: what runs is waited for, and nothing further begun.
ENDED = threading.Event()


@dataclass
class Command:
    line: int
    words: str
    prints: list


@dataclass
class Page:
    path: Path
    commands: list
    files: dict
    programs: list
    needs: list


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages to run (default: all)")
    parser.add_argument("--profile", default="debug", help="build of the command (default %(default)s)")
    parser.add_argument("--python", type=Path, help="the folder of the python3 that runs the programs (default: that on the PATH)")
    parser.add_argument("--jobs", type=int, default=2, help="how many pages are run at a time (default %(default)s)")
    parser.add_argument("--show", action="store_true", help="show what each command prints")
    arguments = parser.parse_args()
    end_by_exception()
    found = surroundings(arguments.profile, arguments.python)
    pages = [page for page in map(read, arguments.pages or PAGES) if page.commands]
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            outcomes = list(pool.map(lambda page: carry_out(page, found, arguments.show), pages))
        except BaseException:
            ENDED.set()
            raise
    for page, (outcome, told) in zip(pages, outcomes):
        # Findings are shares of a run, and what ran beside it took its processor: once more, alone.
        if outcome == "failed" and arguments.jobs > 1:
            outcome, told = carry_out(page, found, arguments.show)
        count[outcome] += 1
        print(told, flush=True)
    print(", ".join(f"{number} {what}" for what, number in count.items()))
    sys.exit(1 if count["failed"] else 0)


def surroundings(profile, python):
    """The environment of the commands: the built `pioscope` and the Python module are found first, and texts are as wide as
    where there is no terminal."""
    found = environment() | {"PYTHONPATH": str(ROOT / "python"), "PIOSCOPE": str(pioscope(profile)), "LC_ALL": "C.UTF-8"}
    folders = [pioscope(profile).parent, *([python.absolute()] if python else []), os.environ["PATH"]]
    found["PATH"] = os.pathsep.join(map(str, folders))
    return found


def is_there(need, found):
    if need.startswith("python:"):
        look = f"import importlib.util as find, sys; sys.exit(find.find_spec('{need.removeprefix('python:')}') is None)"
        return subprocess.run(["python3", "-c", look], env=found, check=False).returncode == 0
    return shutil.which(need, path=found["PATH"]) is not None


def read(path):
    """The commands of a page, and what they need."""
    text = path.read_text()
    page = Page(path, [], {}, [], re.findall(r"\S+", " ".join(re.findall(r"<!-- needs: (.*?) -->", text))))
    page.programs = [path.parent / link for link in re.findall(r"\]\((programs/[^)#]+)\)", text)]
    lines, before, number = text.splitlines(), "", 0
    while number < len(lines):
        if not lines[number].startswith("```"):
            before = lines[number] or before
            number += 1
            continue
        kind, first = lines[number].removeprefix("```"), number + 1
        number = next(at for at in range(first, len(lines)) if lines[at] == "```")
        named = re.search(r"`([\w.-]+)`:$", before)
        if kind == "console":
            page.commands += commands(lines[first:number], first + 1)
        elif named:
            page.files[named[1]] = "\n".join(lines[first:number]) + "\n"
        number += 1
    return page


def commands(lines, first):
    """The commands of a block whose first line has this number."""
    found = []
    goes_on = False
    for number, line in enumerate(lines, first):
        if goes_on:
            found[-1].words += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(number, line.removeprefix("$ "), []))
        else:
            found[-1].prints.append((number, line))
            continue
        goes_on = line.endswith("\\")
    return found


def carry_out(page, found, show):
    """Runs a page; gives whether it passed, and what there is to tell of it."""
    missing = [need for need in page.needs if not is_there(need, found)]
    if missing:
        return "skipped", f"skipped: {page.path.name}: there is no {' and no '.join(missing)}"
    began, told = time.monotonic(), []
    # Not in /tmp, which may be in memory: pages speak of disks.
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cookbook-", dir=SCRATCH, ignore_cleanup_errors=True) as folder:
        for name, text in page.files.items():
            Path(folder, name).write_text(text)
        for program in page.programs:
            shutil.copy(program, folder)
        for command in page.commands:
            if ENDED.is_set():
                return "skipped", f"skipped: {page.path.name}: ended"
            words = ["bash", "-o", "pipefail", "-c", command.words]
            try:
                done = finish(words, cwd=folder, env=found, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                return "failed", f"{page.path}:{command.line}: has not ended after {TIMEOUT_SECONDS} s: {command.words}"
            if show:
                told.append(f"$ {command.words}\n{done.stdout}")
            if done.returncode != 0:
                return "failed", f"{page.path}:{command.line}: exits with {done.returncode}: {command.words}\n{done.stdout}"
            is_steady = FOR_A_DESCRIBED_MACHINE.match(command.words) is not None
            if missing := first_missing(command.prints, done.stdout, is_steady):
                return "failed", f"{page.path}:{missing[0]}: is not printed there: {missing[1]}\nbut:\n{done.stdout}"
    return "passed", "".join([*told, f"{page.path.name}: {time.monotonic() - began:.1f} s"])


def first_missing(claimed, printed, is_steady=False):
    """The first part of a page's claim that does not follow in what was printed, with its line. Where it is steady, each
    line's first time is to be like that of the page."""
    parts, open_begin = [], False
    for number, line in claimed:
        for at, part in enumerate(line.split("…")):
            if at or not parts:
                parts.append((number, part))
            else:
                parts[-1] = (parts[-1][0] if parts[-1][1].strip() else number, f"{parts[-1][1]}\n{part}")
    if not parts:
        return None
    at = 0
    for index, (number, part) in enumerate(parts):
        if not part.strip():
            continue
        pattern = as_pattern(part.strip())
        if index == len(parts) - 1:
            pattern += r"\s*\Z"
        look = re.compile(pattern)
        # Only … lets something stand before a part: the first begins the text.
        found = look.match(printed.lstrip(), 0) if index == 0 else look.search(printed, at)
        if not found or is_steady and not are_alike(times(part), times(found.group())):
            return number, part.strip()
        at = found.end() + (len(printed) - len(printed.lstrip()) if index == 0 else 0)
    return None


def times(text):
    """The first time of each line of a text that has one, in seconds."""
    found = (re.search(rf"({NUMBER})\s+({TIME})(?![\w/])", line) for line in text.splitlines())
    return [float(time[1].replace(",", "")) * SECONDS[time[2]] for time in found if time]


def are_alike(some, others):
    """Whether the times of two texts are as long, one by one."""
    return all(one <= LIKE * other and other <= LIKE * one for one, other in zip(some, others, strict=True))


def as_pattern(text):
    """The expression for what may be printed where a page has this text."""
    expression, at = "", 0
    whole = re.compile("|".join(f"({shape})" for shape, _ in VARYING))
    for found in whole.finditer(text):
        expression += re.escape(text[at:found.start()]) + VARYING[found.lastindex - 1][1]
        at = found.end()
    return expression + re.escape(text[at:])


if __name__ == "__main__":
    main()

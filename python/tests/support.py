"""What several tests need."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(sys.executable).parent
COMMAND = os.environ.get("PIOSCOPE", "pioscope")


def run(*words):
    """Runs the command, and gives what it prints."""
    return subprocess.run([COMMAND, *map(str, words)], check=True, capture_output=True).stdout


def needs(*packages):
    """Skips tests whose packages cannot be installed here, and says so."""
    lacks = [name for name in packages if importlib.util.find_spec(name) is None]
    if lacks:
        print(f"skipped: not installed: {', '.join(lacks)}", file=sys.stderr)
    return unittest.skipIf(lacks, f"not installed: {', '.join(lacks)}")


class InFolder(unittest.TestCase):
    """Tests in a folder of their own, with a run in it that has findings: run.pio."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        before = os.getcwd()
        cls.addClassCleanup(os.chdir, before)
        os.chdir(cls.folder)
        make_run(cls.folder / "run.pio")


def make_run(path):
    """A run of eight ranks that write a file by turns, each for itself: 4 bytes at a time, in 1 of 1.1 ms. Then the first
    writes large pieces, which tell what the others could be."""
    rows = [f"{piece * 0.0011},0.001,MPI_File_write_at,{rank},/d/shared,{(piece * 8 + rank) * 4},4"
            for piece in range(200) for rank in range(8)]
    rows += [f"{0.3 + piece * 0.0011},0.001,MPI_File_write_at,0,/d/own,{piece << 20},{1 << 20}" for piece in range(20)]
    table = path.with_suffix(".csv")
    table.write_text("\n".join(["start_s,elapsed_s,call,rank,file,offset,size", *rows]))
    run("convert", table, "-o", path)

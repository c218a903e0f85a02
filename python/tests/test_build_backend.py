"""What pip is told where Pioscope cannot be built."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"

# pip calls the first, and others may start at a later one.
HOOKS = ["get_requires_for_build_wheel", "get_requires_for_build_editable", "prepare_metadata_for_build_wheel", "build_wheel"]
# In place of maturin, which these tests do not need.
MATURIN = """
def get_requires_for_build_sdist(config_settings):
    return ["for the sources"]

def build_sdist(sdist_directory, config_settings):
    return "the sources"
"""
# As Python has it in Alpine Linux.
WITHOUT_GLIBC = """
import os

def confstr(name):
    raise ValueError("unrecognized configuration name")

os.confstr = confstr
"""


class BuildBackend(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.programs = Path(folder.name, "bin")
        self.programs.mkdir()
        self.modules = Path(folder.name, "modules")
        self.modules.mkdir()
        (self.modules / "maturin.py").write_text(MATURIN)

    def test_another_c_library_is_refused_in_a_sentence(self):
        self.add("cargo", "cc")
        for hook in HOOKS:
            said = self.refused(hook, WITHOUT_GLIBC)
            self.assertTrue(said.startswith("Pioscope needs Linux with the GNU C library"), said)

    def test_missing_compilers_are_named_in_a_sentence(self):
        for hook in HOOKS:
            self.assertIn("with Rust 1.90 or newer (rustup installs it) and a C compiler", self.refused(hook))
        self.add("cargo")
        for hook in HOOKS:
            self.assertIn("with a C compiler (gcc, for one), not found", self.refused(hook))

    def test_sources_are_packed_by_cargo_alone_and_with_any_c_library(self):
        self.assertIn("with Rust 1.90 or newer (rustup installs it), not found", self.refused("get_requires_for_build_sdist"))
        self.add("cargo")
        for hook, result in [("get_requires_for_build_sdist", "['for the sources']"), ("build_sdist", "the sources")]:
            outcome = self.call(hook, WITHOUT_GLIBC)
            self.assertEqual((outcome.returncode, outcome.stdout, outcome.stderr), (0, f"{result}\n", ""))

    def add(self, *programs):
        for name in programs:
            (self.programs / name).touch(0o755)

    def refused(self, hook, before=""):
        """What a hook that must fail says."""
        outcome = self.call(hook, before)
        self.assertEqual(outcome.returncode, 1, hook)
        self.assertEqual(len(outcome.stderr.splitlines()), 1, outcome.stderr)
        return outcome.stderr

    def call(self, hook, before=""):
        """Calls a hook where only the programs of the test are found."""
        folder = "" if hook.startswith("get_requires") else "'folder'"
        return subprocess.run(
            [sys.executable, "-c", f"{before}\nimport build_backend\nprint(build_backend.{hook}({folder}))"],
            cwd=TOOLS, env={"PATH": str(self.programs), "PYTHONPATH": str(self.modules)}, capture_output=True, text=True,
        )


if __name__ == "__main__":
    unittest.main()

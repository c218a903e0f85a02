"""What pip is told where Pioscope cannot be built."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"

# As Python has it in Alpine Linux.
WITHOUT_GLIBC = """
import os

def confstr(name):
    raise ValueError("unrecognized configuration name")

os.confstr = confstr
import build_backend
"""


class BuildBackend(unittest.TestCase):
    def test_another_c_library_is_refused_in_a_sentence(self):
        outcome = subprocess.run([sys.executable, "-c", WITHOUT_GLIBC], cwd=TOOLS, capture_output=True, text=True)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertTrue(outcome.stderr.startswith("Pioscope needs Linux with the GNU C library"), outcome.stderr)
        self.assertEqual(len(outcome.stderr.splitlines()), 1, outcome.stderr)

    def test_missing_compilers_are_named_in_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("with Rust 1.90 or newer (rustup installs it) and a C compiler", without(folder))
            cargo = Path(folder, "cargo")
            cargo.touch()
            cargo.chmod(0o755)
            self.assertIn("with a C compiler (gcc, for one), not found", without(folder))


def without(path):
    """What is said where only the programs of this folder are found."""
    outcome = subprocess.run(
        [sys.executable, "-c", "import build_backend"], cwd=TOOLS, env={"PATH": path}, capture_output=True, text=True
    )
    assert outcome.returncode != 0
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    return outcome.stderr


if __name__ == "__main__":
    unittest.main()

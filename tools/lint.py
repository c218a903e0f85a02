"""Checks that no tool of ours knows of: words that must not be in the tree."""

import re
import subprocess
import sys

from tree import ROOT

# A registry's address would tie builds to one host: packages are named, never where they come from.
FORBIDDEN = {
    "address of a registry": r"\b(?:crates\.io|pypi\.org|pythonhosted\.org|registry\.npmjs\.org|deb\.debian\.org)\b",
    "path of a developer's machine": r"/(?:work|root)/[a-z]",
}
# Cargo writes the address of its registry into the lock file itself.
EXEMPT = {"Cargo.lock", "fuzz/Cargo.lock", "tools/lint.py"}


def main():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    failures = 0
    for name in filter(None, files.stdout.split("\0")):
        if name in EXEMPT or not (ROOT / name).is_file():
            continue
        try:
            lines = (ROOT / name).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for what, pattern in FORBIDDEN.items():
                if re.search(pattern, line):
                    failures += 1
                    print(f"{name}:{number}: {what}: {line.strip()}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

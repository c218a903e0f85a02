"""Checks that no other tool makes: words that must not be in the tree, links between pages that lead nowhere, and
dependencies that need a newer compiler than Cargo.toml promises."""

import json
import re
import subprocess
import sys
from functools import cache

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
        if name.endswith(".md"):
            for number, target in dead_links(ROOT / name, lines):
                failures += 1
                print(f"{name}:{number}: no such page or heading: {target}")
        for number, page in missing_pages(name, lines):
            failures += 1
            print(f"{name}:{number}: no such page: {page}")
    failures += newer_than_ours()
    sys.exit(1 if failures else 0)


def dead_links(page, lines):
    """The relative links of a page whose file, or heading in it, does not exist, with the numbers of their lines."""
    for number, line in enumerate(lines, 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            path, _, heading = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (page.parent / path).resolve() if path else page
            # A folder is a page of the site by its README alone.
            if file.is_dir():
                file /= "README.md"
            if not file.exists() or (heading and heading not in headings(file)):
                yield number, target


def missing_pages(name, lines):
    """The pages of docs/ that a file of code, a description or the like speaks of and that do not exist."""
    for number, line in enumerate(lines, 1):
        for page in re.findall(r"\bdocs/[\w./-]+\.md\b", line):
            if not (ROOT / page).is_file() and name != "tools/lint.py":
                yield number, page


@cache
def headings(page):
    """The names under which links find a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*?)\s*$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def newer_than_ours():
    """Dependencies that need a newer Rust than Cargo.toml promises; for our own code clippy looks (incompatible_msrv)."""
    found = subprocess.run(["cargo", "metadata", "--format-version=1", "--all-features"], cwd=ROOT, capture_output=True,
                           text=True, check=True)
    packages = json.loads(found.stdout)["packages"]
    version = lambda package: tuple(int(part) for part in (package["rust_version"] or "0").split("."))
    ours = min(version(package) for package in packages if package["source"] is None)
    newer = [package for package in packages if version(package) > ours]
    for package in newer:
        print(f"{package['name']} {package['version']} needs Rust {package['rust_version']}, newer than rust-version in Cargo.toml")
    return len(newer)


if __name__ == "__main__":
    main()

"""Reads each recipe of packaging/ with the tool that it is for, where a registry has that tool: the conda recipe is rendered by
rattler-build, the Dockerfile linted by hadolint, the module loaded by Lmod (of Debian; else parsed by luac). Of Spack's recipe
and Apptainer's definition only the form is checked. None is built: no registry of packages has what each is built from. Each
must speak of the version that Cargo.toml has. `make test-packaging` installs what comes from PyPI.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tree import ROOT

PACKAGING = ROOT / "packaging"
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
MODULE = f"lmod/pioscope/{VERSION}.lua"
# Those of Apptainer's manual.
SECTIONS = {"setup", "files", "environment", "post", "runscript", "startscript", "test", "labels", "help", "arguments"}


def main():
    for name in ["conda/recipe.yaml", "container/Dockerfile", "container/pioscope.def", MODULE]:
        text = (PACKAGING / name).read_text() if (PACKAGING / name).is_file() else ""
        if VERSION not in text:
            sys.exit(f"packaging/{name}: does not speak of version {VERSION} (Cargo.toml)")
    for check in [conda, dockerfile, lmod, spack, apptainer]:
        print(f"{check.__name__}: {check()}")


def conda():
    from rattler_build import Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(PACKAGING / "conda/recipe.yaml")
    rendered = recipe.render(VariantConfig())
    return f"rendered by rattler-build, {len(rendered)} variant; not built: that needs conda's channels"


def dockerfile():
    hadolint = Path(sys.executable).with_name("hadolint")
    run([hadolint, PACKAGING / "container/Dockerfile"])
    return "read by hadolint, which finds nothing; not built: that needs an image from elsewhere"


def lmod():
    module = PACKAGING / MODULE
    # Where Lmod itself says it is, or Debian puts it.
    commands = [Path(os.environ.get("LMOD_CMD", "")), *Path("/usr/share/lmod").glob("*/libexec/lmod")]
    command = next((command for command in commands if command.is_file()), None)
    if command is not None:
        said = run([command, "bash", "load", "pioscope"], MODULEPATH=str(PACKAGING / "lmod"))
        if not re.search(r"PATH=[\"']?/opt/pioscope/bin:", said):
            sys.exit(f"{module}: loading it does not put the command on the PATH:\n{said}")
        return "loaded by Lmod"
    luac = next(filter(shutil.which, ["luac", "luac5.4", "luac5.3"]), None)
    if luac is None:
        return "skipped: neither Lmod nor luac is installed"
    run([luac, "-p", module])
    return "only parsed, by luac"


def spack():
    tree = ast.parse((PACKAGING / "spack/package.py").read_text())
    [package] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    called = {node.func.id for node in ast.walk(package) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    imported = {name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    # Since Spack 1.0, spack.package has no classes of build systems: each is in a module of its own.
    [base] = [base.id for base in package.bases]
    if base not in imported:
        sys.exit(f"packaging/spack/package.py: {base} is not imported by name")
    if package.name != "Pioscope" or not {"version", "depends_on"} <= called:
        sys.exit("packaging/spack/package.py: expected a class Pioscope with version and depends_on")
    return "only parsed, as Python: no registry has Spack"


def apptainer():
    text = (PACKAGING / "container/pioscope.def").read_text()
    head = dict(re.findall(r"^(\w+): (\S+)$", text, re.M))
    sections = re.findall(r"^%(\w+)", text, re.M)
    if not {"Bootstrap", "From"} <= head.keys() or not set(sections) <= SECTIONS:
        sys.exit(f"packaging/container/pioscope.def: expected Bootstrap, From and sections of {sorted(SECTIONS)}, found {sections}")
    for section in ["post", "runscript", "environment", "test"]:
        script = re.search(rf"^%{section}\n(.*?)(?=^%|\Z)", text, re.M | re.S).group(1)
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(script)
            file.flush()
            run(["sh", "-n", file.name])
    return "only parsed, its scripts by sh: no registry has Apptainer"


def run(words, **variables):
    words = [str(word) for word in words]
    outcome = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | variables)
    if outcome.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed with exit code {outcome.returncode}\n{outcome.stdout}")
    return outcome.stdout


if __name__ == "__main__":
    main()

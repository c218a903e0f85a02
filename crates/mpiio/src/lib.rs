//! Apply: MPI-IO under unmodified programs.

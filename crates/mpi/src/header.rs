//! Which `mpi.h` a library goes with.
//!
//! What is compiled with one works with every library of the same ABI that has the functions of that header. So a few
//! headers serve nearly all MPIs, and what is compiled with each of them beforehand needs no compiler where it is used.

use std::fmt;
use std::fs;

use object::{File, Object, ObjectSymbol};

use crate::library::{Abi, Library};

/// A kind of `mpi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// MPICH's, of MPI 3.1.
    Mpich3,
    /// MPICH's, with large counts (MPI 4.0).
    Mpich4,
    /// MPICH's, of MPI 5.0.
    Mpich5,
    /// Open MPI's before 5.0.
    OpenMpi4,
    /// Open MPI's, of 5.0.
    OpenMpi5,
    /// The standard's own, from MPI 5.0 on.
    Standard,
}

impl Header {
    /// All of them.
    pub const ALL: [Header; 6] = [
        Header::Mpich3,
        Header::Mpich4,
        Header::Mpich5,
        Header::OpenMpi4,
        Header::OpenMpi5,
        Header::Standard,
    ];

    /// Its name, which is also that of the folder with what was compiled with it.
    pub fn name(self) -> &'static str {
        match self {
            Header::Mpich3 => "mpich-3",
            Header::Mpich4 => "mpich-4",
            Header::Mpich5 => "mpich-5",
            Header::OpenMpi4 => "openmpi-4",
            Header::OpenMpi5 => "openmpi-5",
            Header::Standard => "standard",
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Library {
    /// The header to compile with for this library: the newest of its ABI all of whose functions and data it has. None if its
    /// file cannot be read, or it has functions that none of these headers knows.
    pub fn header(&self) -> Option<Header> {
        let bytes = fs::read(self.path()).ok()?;
        let file = File::parse(&*bytes).ok()?;
        let has = |name: &str| {
            let symbols = file.dynamic_symbols();
            symbols.filter(|symbol| symbol.is_definition()).any(|symbol| symbol.name() == Ok(name))
        };
        Header::of(self.abi?, has)
    }
}

impl Header {
    /// Headers differ in functions that a program may call on files: not to stand for one of them would give the MPI a file
    /// that is ours.
    fn of(abi: Abi, has: impl Fn(&str) -> bool) -> Option<Header> {
        match abi {
            Abi::Standard => Some(Header::Standard),
            Abi::Mpich if has("MPI_File_toint") => Some(Header::Mpich5),
            Abi::Mpich if has("MPI_File_read_c") => Some(Header::Mpich4),
            Abi::Mpich => Some(Header::Mpich3),
            Abi::OpenMpi(40) if has("MPI_File_read_c") => None,
            Abi::OpenMpi(40) if has("ompi_mpi_errors_abort") => Some(Header::OpenMpi5),
            Abi::OpenMpi(40) => Some(Header::OpenMpi4),
            Abi::OpenMpi(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_header_all_of_whose_functions_are_there() {
        let of = |abi, names: &[&str]| Header::of(abi, |name| names.contains(&name));
        let large = "MPI_File_read_c";
        assert_eq!(of(Abi::Mpich, &[]), Some(Header::Mpich3));
        assert_eq!(of(Abi::Mpich, &[large]), Some(Header::Mpich4));
        assert_eq!(of(Abi::Mpich, &[large, "MPI_File_toint"]), Some(Header::Mpich5));
        assert_eq!(of(Abi::OpenMpi(40), &[]), Some(Header::OpenMpi4));
        assert_eq!(of(Abi::OpenMpi(40), &["ompi_mpi_errors_abort"]), Some(Header::OpenMpi5));
        assert_eq!(of(Abi::OpenMpi(40), &["ompi_mpi_errors_abort", large]), None, "a later Open MPI");
        assert_eq!(of(Abi::OpenMpi(20), &[]), None);
        assert_eq!(of(Abi::Standard, &[large, "MPI_File_toint"]), Some(Header::Standard));
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<_> = Header::ALL.iter().map(|header| header.name()).collect();
        assert_eq!(names.len(), Header::ALL.len());
    }
}

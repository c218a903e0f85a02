//! Names of MPI's error classes.

/// What calls on files fail with, and its numbers: in the MPICH family's ABI; in the standard's (MPI 5, annex A), as in Open MPI.
const CLASSES: [(&str, i64, i64); 14] = [
    ("MPI_ERR_ACCESS", 20, 20),
    ("MPI_ERR_AMODE", 21, 21),
    ("MPI_ERR_BAD_FILE", 22, 23),
    ("MPI_ERR_CONVERSION", 23, 25),
    ("MPI_ERR_DUP_DATAREP", 24, 27),
    ("MPI_ERR_FILE_EXISTS", 25, 28),
    ("MPI_ERR_FILE_IN_USE", 26, 29),
    ("MPI_ERR_FILE", 27, 30),
    ("MPI_ERR_IO", 32, 35),
    ("MPI_ERR_NOT_SAME", 35, 40),
    ("MPI_ERR_NO_SPACE", 36, 41),
    ("MPI_ERR_NO_SUCH_FILE", 37, 42),
    ("MPI_ERR_QUOTA", 39, 44),
    ("MPI_ERR_READ_ONLY", 40, 45),
];

/// The name of an error class of the MPI library that a trace names; none of classes that say nothing of files.
pub(crate) fn name(library: &str, class: i64) -> Option<&'static str> {
    let is_mpich = !library.starts_with("Open MPI") && !library.contains("libmpi_abi");
    let number = |mpich: i64, standard: i64| if is_mpich { mpich } else { standard };
    CLASSES.iter().find(|(_, mpich, standard)| number(*mpich, *standard) == class).map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_is_another_class_in_another_mpi() {
        assert_eq!(name("MPICH (libmpich.so.12.2.0)", 37), Some("MPI_ERR_NO_SUCH_FILE"));
        assert_eq!(name("MPICH (libmpi_abi.so.0.0.1)", 42), Some("MPI_ERR_NO_SUCH_FILE"));
        assert_eq!(name("Open MPI (libmpi.so.40.30.4)", 42), Some("MPI_ERR_NO_SUCH_FILE"));
        assert_eq!(name("Open MPI (libmpi.so.40.30.4)", 37), None);
    }
}

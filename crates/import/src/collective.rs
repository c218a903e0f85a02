//! Which calls all ranks of a file make together, where a log has no more than their names.

use pio_trace::{Call, Layer, Op};

/// Whether a call is collective, by what the function is. An open may be of one rank alone (`MPI_COMM_SELF`): most are not.
pub(super) fn is_collective(call: Call) -> bool {
    let name = call.name();
    let for_all = name.contains("_all") || name.contains("_ordered");
    match call.layer() {
        Layer::MpiIo => {
            let alone = matches!(call.op(), Op::Read | Op::Write | Op::Seek)
                || matches!(call, Call::MpiFileGetSize | Call::MpiFileDelete);
            for_all || !alone
        }
        // All ranks come together, but to move data each for itself, and to force them.
        Layer::Pnetcdf => {
            let alone = matches!(call.op(), Op::Read | Op::Write)
                || matches!(call, Call::NcmpiWait | Call::NcmpiFlush);
            for_all || !alone
        }
        Layer::Message => (Call::MpiBarrier.number()..=Call::MpiAlltoallv.number()).contains(&call.number()),
        Layer::Posix | Layer::Stdio | Layer::Hdf5 | Layer::Server | Layer::Mark => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collective_by_name() {
        let named = |name: &str| Call::ALL.iter().copied().find(|call| call.name() == name);
        for (name, collective) in [
            ("MPI_File_open", true),
            ("MPI_File_set_view", true),
            ("MPI_File_close", true),
            ("MPI_File_write_at_all", true),
            ("MPI_File_iread_all", true),
            ("MPI_File_read_at_all_begin", true),
            ("MPI_File_write_ordered", true),
            ("MPI_File_write_at", false),
            ("MPI_File_write_shared", false),
            ("MPI_File_seek", false),
            ("MPI_File_get_size", false),
            ("MPI_File_delete", false),
            ("ncmpi_put_vara_all", true),
            ("ncmpi_put_vara", false),
            ("ncmpi_enddef", true),
            ("MPI_Allreduce", true),
            ("MPI_Send", false),
            ("pwrite", false),
        ] {
            assert_eq!(named(name).map(is_collective), Some(collective), "{name}");
        }
    }
}

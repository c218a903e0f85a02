//! The calls that a trace can hold.
//!
//! One table: the recorder's C side gets its numbers from here (a header is generated from [`Call::ALL`]), so that no
//! second list can disagree. Numbers are part of the file format: add at the end, never renumber.

/// Where in the software a call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// System-call wrappers of the C library: what reaches the kernel (*physical* when an upper layer caused it).
    Posix,
    /// Buffered streams of the C library.
    Stdio,
    /// MPI-IO: what the program, or a library above, asked for.
    MpiIo,
    /// MPI messages.
    Message,
    /// Requests to Pioscope's I/O servers that move data: what a file on them has in the place of calls to the kernel.
    Server,
    /// HDF5: files, and what lies in them by name.
    Hdf5,
    /// PnetCDF: files, and their variables.
    Pnetcdf,
    /// What the program says of itself: marks and phases. No I/O.
    Mark,
}

impl Layer {
    /// Every layer, in the order reports show them.
    pub const ALL: [Layer; 8] = [
        Layer::Hdf5,
        Layer::Pnetcdf,
        Layer::MpiIo,
        Layer::Posix,
        Layer::Stdio,
        Layer::Server,
        Layer::Message,
        Layer::Mark,
    ];

    /// The name users see and type.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Posix => "posix",
            Layer::Stdio => "stdio",
            Layer::MpiIo => "mpi-io",
            Layer::Message => "message",
            Layer::Server => "server",
            Layer::Hdf5 => "hdf5",
            Layer::Pnetcdf => "pnetcdf",
            Layer::Mark => "mark",
        }
    }

    /// Whether its calls are those that reach the files, in a file system or on I/O servers.
    pub fn is_at_files(self) -> bool {
        matches!(self, Layer::Posix | Layer::Stdio | Layer::Server)
    }

    /// Whether it is a library above MPI-IO and POSIX: its calls name what lies in a file, and say no offset; the calls
    /// that they cause do.
    pub fn is_library(self) -> bool {
        matches!(self, Layer::Hdf5 | Layer::Pnetcdf)
    }
}

/// What kind of operation a call is: the rows of Thakur's tables (1996, Table 1) and what does not fit in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// A file is opened (or created).
    Open,
    /// A handle is closed.
    Close,
    /// Data move from a file to memory.
    Read,
    /// Data move from memory to a file.
    Write,
    /// A file pointer is moved.
    Seek,
    /// Data are forced to the device.
    Sync,
    /// A file view is set or asked for.
    View,
    /// Names, sizes and attributes: delete, truncate, stat, hints.
    Metadata,
    /// A message, or a process's part in a collective exchange.
    Communicate,
    /// The program says where it is.
    Mark,
}

impl Op {
    /// Every operation, in the order of Thakur's Table 1.
    pub const ALL: [Op; 10] = [
        Op::Open,
        Op::Close,
        Op::Read,
        Op::Write,
        Op::Seek,
        Op::Sync,
        Op::View,
        Op::Metadata,
        Op::Communicate,
        Op::Mark,
    ];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Close => "close",
            Op::Read => "read",
            Op::Write => "write",
            Op::Seek => "seek",
            Op::Sync => "sync",
            Op::View => "view",
            Op::Metadata => "metadata",
            Op::Communicate => "communication",
            Op::Mark => "mark",
        }
    }
}

macro_rules! calls {
    ($($number:literal $variant:ident $layer:ident $op:ident $name:literal,)*) => {
        /// One function of one layer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Call {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl Call {
            /// Every call, in order of number.
            pub const ALL: &'static [Call] = &[$(Call::$variant,)*];

            /// What each call is, by its number: every event is asked several times.
            const KINDS: [(Layer, Op); Call::ALL[Call::ALL.len() - 1] as usize + 1] = {
                let mut kinds = [(Layer::Posix, Op::Open); _];
                $(kinds[$number] = (Layer::$layer, Op::$op);)*
                kinds
            };

            /// The layer it belongs to.
            #[inline]
            pub fn layer(self) -> Layer {
                Call::KINDS[self as usize].0
            }

            /// The kind of operation it is.
            #[inline]
            pub fn op(self) -> Op {
                Call::KINDS[self as usize].1
            }

            /// The name of the function.
            pub fn name(self) -> &'static str {
                match self { $(Call::$variant => $name,)* }
            }

            /// The call of this number, if there is one.
            pub fn from_number(number: u16) -> Option<Call> {
                match number { $($number => Some(Call::$variant),)* _ => None }
            }
        }
    };
}

impl Call {
    /// Its number in trace files and spools.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Whether a strategy of MPI-IO sends it, rather than the program by MPI.
    pub fn is_of_strategy(self) -> bool {
        use Call::*;
        matches!(self, StrategyDescribe | StrategyData | StrategyGrant | StrategyAcknowledge)
    }

    /// Whether it begins a collective operation that another call ends.
    pub fn begins_split(self) -> bool {
        use Call::*;
        matches!(
            self,
            MpiFileReadAllBegin | MpiFileReadAtAllBegin | MpiFileWriteAllBegin | MpiFileWriteAtAllBegin
        )
    }

    /// Whether it returns before the data have moved, by what the function is.
    pub fn is_asynchronous(self) -> bool {
        use Call::*;
        matches!(
            self,
            AioRead
                | AioWrite
                | LibaioRead
                | LibaioWrite
                | IoUringRead
                | IoUringWrite
                | MpiFileIread
                | MpiFileIreadAt
                | MpiFileIreadAll
                | MpiFileIreadAtAll
                | MpiFileIwrite
                | MpiFileIwriteAt
                | MpiFileIwriteAll
                | MpiFileIwriteAtAll
                | NcmpiIputVar1
                | NcmpiIputVar
                | NcmpiIputVara
                | NcmpiIputVars
                | NcmpiIputVarm
                | NcmpiIputVarn
                | NcmpiIgetVar1
                | NcmpiIgetVar
                | NcmpiIgetVara
                | NcmpiIgetVars
                | NcmpiIgetVarm
                | NcmpiIgetVarn
                | NcmpiBputVar1
                | NcmpiBputVar
                | NcmpiBputVara
                | NcmpiBputVars
                | NcmpiBputVarm
                | NcmpiBputVarn
        )
    }
}

calls! {
    1 Open Posix Open "open",
    2 Creat Posix Open "creat",
    3 Close Posix Close "close",
    4 Read Posix Read "read",
    5 Pread Posix Read "pread",
    6 Readv Posix Read "readv",
    7 Preadv Posix Read "preadv",
    8 Write Posix Write "write",
    9 Pwrite Posix Write "pwrite",
    10 Writev Posix Write "writev",
    11 Pwritev Posix Write "pwritev",
    12 Lseek Posix Seek "lseek",
    13 Fsync Posix Sync "fsync",
    14 Fdatasync Posix Sync "fdatasync",
    15 Ftruncate Posix Metadata "ftruncate",
    16 Truncate Posix Metadata "truncate",
    17 Unlink Posix Metadata "unlink",
    18 Dup Posix Metadata "dup",
    19 Fallocate Posix Metadata "fallocate",
    20 Rename Posix Metadata "rename",
    21 Stat Posix Metadata "stat",
    22 Mmap Posix Metadata "mmap",
    23 Msync Posix Sync "msync",
    24 AioRead Posix Read "aio_read",
    25 AioWrite Posix Write "aio_write",
    26 SyncFileRange Posix Sync "sync_file_range",
    27 Sync Posix Sync "sync",
    28 Munmap Posix Metadata "munmap",
    29 Access Posix Metadata "access",
    30 Mkdir Posix Metadata "mkdir",
    31 Rmdir Posix Metadata "rmdir",
    32 Link Posix Metadata "link",
    33 Symlink Posix Metadata "symlink",
    34 Readlink Posix Metadata "readlink",
    35 Chmod Posix Metadata "chmod",
    36 Opendir Posix Metadata "opendir",
    37 Fadvise Posix Metadata "posix_fadvise",
    38 Flock Posix Metadata "flock",
    // Locks of fcntl and lockf, taken or given back: the time of one is what it waited.
    39 FcntlLock Posix Metadata "fcntl_lock",
    // From submission to completion. What else libaio and io_uring are asked to do is the call of that name, asynchronous.
    40 LibaioRead Posix Read "libaio_read",
    41 LibaioWrite Posix Write "libaio_write",
    42 IoUringRead Posix Read "io_uring_read",
    43 IoUringWrite Posix Write "io_uring_write",

    64 Fopen Stdio Open "fopen",
    65 Fclose Stdio Close "fclose",
    66 Fread Stdio Read "fread",
    67 Fwrite Stdio Write "fwrite",
    68 Fseek Stdio Seek "fseek",
    69 Fflush Stdio Sync "fflush",

    128 MpiFileOpen MpiIo Open "MPI_File_open",
    129 MpiFileClose MpiIo Close "MPI_File_close",
    130 MpiFileDelete MpiIo Metadata "MPI_File_delete",
    131 MpiFileSetView MpiIo View "MPI_File_set_view",
    132 MpiFileRead MpiIo Read "MPI_File_read",
    133 MpiFileReadAll MpiIo Read "MPI_File_read_all",
    134 MpiFileReadAt MpiIo Read "MPI_File_read_at",
    135 MpiFileReadAtAll MpiIo Read "MPI_File_read_at_all",
    136 MpiFileWrite MpiIo Write "MPI_File_write",
    137 MpiFileWriteAll MpiIo Write "MPI_File_write_all",
    138 MpiFileWriteAt MpiIo Write "MPI_File_write_at",
    139 MpiFileWriteAtAll MpiIo Write "MPI_File_write_at_all",
    140 MpiFileSeek MpiIo Seek "MPI_File_seek",
    141 MpiFileSync MpiIo Sync "MPI_File_sync",
    142 MpiFileSetSize MpiIo Metadata "MPI_File_set_size",
    143 MpiFileGetSize MpiIo Metadata "MPI_File_get_size",
    144 MpiFilePreallocate MpiIo Metadata "MPI_File_preallocate",
    145 MpiFileIread MpiIo Read "MPI_File_iread",
    146 MpiFileIreadAt MpiIo Read "MPI_File_iread_at",
    147 MpiFileIreadAll MpiIo Read "MPI_File_iread_all",
    148 MpiFileIreadAtAll MpiIo Read "MPI_File_iread_at_all",
    149 MpiFileIwrite MpiIo Write "MPI_File_iwrite",
    150 MpiFileIwriteAt MpiIo Write "MPI_File_iwrite_at",
    151 MpiFileIwriteAll MpiIo Write "MPI_File_iwrite_all",
    152 MpiFileIwriteAtAll MpiIo Write "MPI_File_iwrite_at_all",
    153 MpiFileReadShared MpiIo Read "MPI_File_read_shared",
    154 MpiFileWriteShared MpiIo Write "MPI_File_write_shared",
    155 MpiFileReadOrdered MpiIo Read "MPI_File_read_ordered",
    156 MpiFileWriteOrdered MpiIo Write "MPI_File_write_ordered",
    157 MpiFileReadAllBegin MpiIo Read "MPI_File_read_all_begin",
    158 MpiFileWriteAllBegin MpiIo Write "MPI_File_write_all_begin",
    159 MpiFileReadAtAllBegin MpiIo Read "MPI_File_read_at_all_begin",
    160 MpiFileWriteAtAllBegin MpiIo Write "MPI_File_write_at_all_begin",

    256 MpiSend Message Communicate "MPI_Send",
    257 MpiRecv Message Communicate "MPI_Recv",
    258 MpiIsend Message Communicate "MPI_Isend",
    259 MpiIrecv Message Communicate "MPI_Irecv",
    260 MpiWait Message Communicate "MPI_Wait",
    261 MpiWaitall Message Communicate "MPI_Waitall",
    262 MpiSendrecv Message Communicate "MPI_Sendrecv",
    263 MpiBarrier Message Communicate "MPI_Barrier",
    264 MpiBcast Message Communicate "MPI_Bcast",
    265 MpiReduce Message Communicate "MPI_Reduce",
    266 MpiAllreduce Message Communicate "MPI_Allreduce",
    267 MpiGather Message Communicate "MPI_Gather",
    268 MpiGatherv Message Communicate "MPI_Gatherv",
    269 MpiAllgather Message Communicate "MPI_Allgather",
    270 MpiAllgatherv Message Communicate "MPI_Allgatherv",
    271 MpiScatter Message Communicate "MPI_Scatter",
    272 MpiScatterv Message Communicate "MPI_Scatterv",
    273 MpiAlltoall Message Communicate "MPI_Alltoall",
    274 MpiAlltoallv Message Communicate "MPI_Alltoallv",

    // What a strategy itself sends (Pioscope's MPI-IO tells the recorder; the simulator writes the same).
    320 StrategyDescribe Message Communicate "describe",
    321 StrategyData Message Communicate "data",
    322 StrategyGrant Message Communicate "grant",
    323 StrategyAcknowledge Message Communicate "acknowledge",

    // From when a request is sent until it is answered; a process waits for several at a time.
    384 ServerRead Server Read "server_read",
    385 ServerWrite Server Write "server_write",

    // HDF5: one number for all versions of a function (H5Dopen1, H5Dopen2). What is opened in a file is no file: metadata.
    512 H5Fcreate Hdf5 Open "H5Fcreate",
    513 H5Fopen Hdf5 Open "H5Fopen",
    514 H5Freopen Hdf5 Open "H5Freopen",
    515 H5Fclose Hdf5 Close "H5Fclose",
    516 H5Fflush Hdf5 Sync "H5Fflush",
    517 H5Dcreate Hdf5 Metadata "H5Dcreate",
    518 H5Dopen Hdf5 Metadata "H5Dopen",
    519 H5Dclose Hdf5 Metadata "H5Dclose",
    520 H5Dread Hdf5 Read "H5Dread",
    521 H5Dwrite Hdf5 Write "H5Dwrite",
    522 H5DreadMulti Hdf5 Read "H5Dread_multi",
    523 H5DwriteMulti Hdf5 Write "H5Dwrite_multi",
    524 H5DwriteChunk Hdf5 Write "H5Dwrite_chunk",
    525 H5DsetExtent Hdf5 Metadata "H5Dset_extent",
    526 H5Dflush Hdf5 Sync "H5Dflush",
    527 H5Drefresh Hdf5 Metadata "H5Drefresh",
    528 H5Acreate Hdf5 Metadata "H5Acreate",
    529 H5Aopen Hdf5 Metadata "H5Aopen",
    530 H5Aclose Hdf5 Metadata "H5Aclose",
    531 H5Aread Hdf5 Read "H5Aread",
    532 H5Awrite Hdf5 Write "H5Awrite",
    533 H5Adelete Hdf5 Metadata "H5Adelete",
    534 H5Aexists Hdf5 Metadata "H5Aexists",
    535 H5Arename Hdf5 Metadata "H5Arename",
    536 H5Gcreate Hdf5 Metadata "H5Gcreate",
    537 H5Gopen Hdf5 Metadata "H5Gopen",
    538 H5Gclose Hdf5 Metadata "H5Gclose",
    539 H5Lcreate Hdf5 Metadata "H5Lcreate",
    540 H5Ldelete Hdf5 Metadata "H5Ldelete",
    541 H5Lexists Hdf5 Metadata "H5Lexists",
    542 H5Lmove Hdf5 Metadata "H5Lmove",
    543 H5Oopen Hdf5 Metadata "H5Oopen",
    544 H5Oclose Hdf5 Metadata "H5Oclose",
    545 H5Ocopy Hdf5 Metadata "H5Ocopy",
    546 H5Tcommit Hdf5 Metadata "H5Tcommit",
    547 H5Topen Hdf5 Metadata "H5Topen",

    // PnetCDF: a function stands for its kin of every type (ncmpi_put_vara_double_all is put_vara_all). Nonblocking
    // calls move their data in the wait.
    640 NcmpiCreate Pnetcdf Open "ncmpi_create",
    641 NcmpiOpen Pnetcdf Open "ncmpi_open",
    642 NcmpiEnddef Pnetcdf Metadata "ncmpi_enddef",
    643 NcmpiRedef Pnetcdf Metadata "ncmpi_redef",
    644 NcmpiClose Pnetcdf Close "ncmpi_close",
    645 NcmpiAbort Pnetcdf Close "ncmpi_abort",
    646 NcmpiSync Pnetcdf Sync "ncmpi_sync",
    647 NcmpiSyncNumrecs Pnetcdf Sync "ncmpi_sync_numrecs",
    648 NcmpiFlush Pnetcdf Sync "ncmpi_flush",
    649 NcmpiBeginIndepData Pnetcdf Metadata "ncmpi_begin_indep_data",
    650 NcmpiEndIndepData Pnetcdf Metadata "ncmpi_end_indep_data",
    651 NcmpiFillVarRec Pnetcdf Metadata "ncmpi_fill_var_rec",
    652 NcmpiWait Pnetcdf Sync "ncmpi_wait",
    653 NcmpiWaitAll Pnetcdf Sync "ncmpi_wait_all",
    654 NcmpiPutVar1 Pnetcdf Write "ncmpi_put_var1",
    655 NcmpiPutVar1All Pnetcdf Write "ncmpi_put_var1_all",
    656 NcmpiPutVar Pnetcdf Write "ncmpi_put_var",
    657 NcmpiPutVarAll Pnetcdf Write "ncmpi_put_var_all",
    658 NcmpiPutVara Pnetcdf Write "ncmpi_put_vara",
    659 NcmpiPutVaraAll Pnetcdf Write "ncmpi_put_vara_all",
    660 NcmpiPutVars Pnetcdf Write "ncmpi_put_vars",
    661 NcmpiPutVarsAll Pnetcdf Write "ncmpi_put_vars_all",
    662 NcmpiPutVarm Pnetcdf Write "ncmpi_put_varm",
    663 NcmpiPutVarmAll Pnetcdf Write "ncmpi_put_varm_all",
    664 NcmpiPutVarn Pnetcdf Write "ncmpi_put_varn",
    665 NcmpiPutVarnAll Pnetcdf Write "ncmpi_put_varn_all",
    666 NcmpiPutVard Pnetcdf Write "ncmpi_put_vard",
    667 NcmpiPutVardAll Pnetcdf Write "ncmpi_put_vard_all",
    668 NcmpiGetVar1 Pnetcdf Read "ncmpi_get_var1",
    669 NcmpiGetVar1All Pnetcdf Read "ncmpi_get_var1_all",
    670 NcmpiGetVar Pnetcdf Read "ncmpi_get_var",
    671 NcmpiGetVarAll Pnetcdf Read "ncmpi_get_var_all",
    672 NcmpiGetVara Pnetcdf Read "ncmpi_get_vara",
    673 NcmpiGetVaraAll Pnetcdf Read "ncmpi_get_vara_all",
    674 NcmpiGetVars Pnetcdf Read "ncmpi_get_vars",
    675 NcmpiGetVarsAll Pnetcdf Read "ncmpi_get_vars_all",
    676 NcmpiGetVarm Pnetcdf Read "ncmpi_get_varm",
    677 NcmpiGetVarmAll Pnetcdf Read "ncmpi_get_varm_all",
    678 NcmpiGetVarn Pnetcdf Read "ncmpi_get_varn",
    679 NcmpiGetVarnAll Pnetcdf Read "ncmpi_get_varn_all",
    680 NcmpiGetVard Pnetcdf Read "ncmpi_get_vard",
    681 NcmpiGetVardAll Pnetcdf Read "ncmpi_get_vard_all",
    682 NcmpiIputVar1 Pnetcdf Write "ncmpi_iput_var1",
    683 NcmpiIputVar Pnetcdf Write "ncmpi_iput_var",
    684 NcmpiIputVara Pnetcdf Write "ncmpi_iput_vara",
    685 NcmpiIputVars Pnetcdf Write "ncmpi_iput_vars",
    686 NcmpiIputVarm Pnetcdf Write "ncmpi_iput_varm",
    687 NcmpiIputVarn Pnetcdf Write "ncmpi_iput_varn",
    688 NcmpiIgetVar1 Pnetcdf Read "ncmpi_iget_var1",
    689 NcmpiIgetVar Pnetcdf Read "ncmpi_iget_var",
    690 NcmpiIgetVara Pnetcdf Read "ncmpi_iget_vara",
    691 NcmpiIgetVars Pnetcdf Read "ncmpi_iget_vars",
    692 NcmpiIgetVarm Pnetcdf Read "ncmpi_iget_varm",
    693 NcmpiIgetVarn Pnetcdf Read "ncmpi_iget_varn",
    694 NcmpiBputVar1 Pnetcdf Write "ncmpi_bput_var1",
    695 NcmpiBputVar Pnetcdf Write "ncmpi_bput_var",
    696 NcmpiBputVara Pnetcdf Write "ncmpi_bput_vara",
    697 NcmpiBputVars Pnetcdf Write "ncmpi_bput_vars",
    698 NcmpiBputVarm Pnetcdf Write "ncmpi_bput_varm",
    699 NcmpiBputVarn Pnetcdf Write "ncmpi_bput_varn",

    // A moment that the program named, and a span of time.
    768 Mark Mark Mark "mark",
    769 Phase Mark Mark "phase",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_return() {
        for pair in Call::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number(), "{} is out of order", pair[1].name());
        }
        for call in Call::ALL {
            assert_eq!(Call::from_number(call.number()), Some(*call));
        }
    }
}

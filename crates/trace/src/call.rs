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
    /// MPI-IO: what the program asked for.
    MpiIo,
    /// MPI messages.
    Message,
}

impl Layer {
    /// Every layer, in the order reports show them.
    pub const ALL: [Layer; 4] = [Layer::MpiIo, Layer::Posix, Layer::Stdio, Layer::Message];

    /// The name users see and type.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Posix => "posix",
            Layer::Stdio => "stdio",
            Layer::MpiIo => "mpi-io",
            Layer::Message => "message",
        }
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
}

impl Op {
    /// Every operation, in the order of Thakur's Table 1.
    pub const ALL: [Op; 9] = [
        Op::Open,
        Op::Close,
        Op::Read,
        Op::Write,
        Op::Seek,
        Op::Sync,
        Op::View,
        Op::Metadata,
        Op::Communicate,
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

    /// Whether it returns before the data have moved, by what the function is.
    pub fn is_asynchronous(self) -> bool {
        use Call::*;
        matches!(
            self,
            AioRead
                | AioWrite
                | MpiFileIread
                | MpiFileIreadAt
                | MpiFileIreadAll
                | MpiFileIreadAtAll
                | MpiFileIwrite
                | MpiFileIwriteAt
                | MpiFileIwriteAll
                | MpiFileIwriteAtAll
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

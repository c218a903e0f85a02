//! AutoPerf's modules: counters of a Cray XC's routers, and of MPI calls. The first record of each is a header.

use std::sync::LazyLock;

use super::counters::{CounterNames, expand};

/// Of the header record of the router module; its `MAGIC` names the module in ASCII.
pub(super) fn router_header() -> &'static CounterNames {
    static NAMES: LazyLock<CounterNames> = LazyLock::new(|| CounterNames {
        integers: expand("APXC_", &["MAGIC NBLADES NCHASSIS NGROUPS MEMORY_MODE CLUSTER_MODE APPID"]),
        floats: Vec::new(),
    });
    &NAMES
}

/// Where the router is, and its 40 network tiles and 8 processor tiles.
pub(super) fn router_counters() -> &'static CounterNames {
    static NAMES: LazyLock<CounterNames> = LazyLock::new(|| {
        let mut integers = expand("APXC_", &["GROUP CHASSIS BLADE NODE"]);
        for tile in (0..5).flat_map(|row| (0..8).map(move |column| format!("{row}_{column}"))) {
            let name = |what: &str| format!("APXC_AR_RTR_{tile}_INQ_PRF_{what}");
            integers.extend((0..8).map(|channel| name(&format!("INCOMING_FLIT_VC{channel}"))));
            integers.push(name("ROWBUS_STALL_CNT"));
        }
        for column in 0..8 {
            let tile = format!("APXC_AR_RTR_PT_5_{column}_INQ_PRF_");
            let what = "INCOMING_FLIT_VC0 INCOMING_FLIT_VC4 REQ_ROWBUS_STALL_CNT RSP_ROWBUS_STALL_CNT";
            integers.extend(expand(&tile, &[what]));
        }
        CounterNames { integers, floats: Vec::new() }
    });
    &NAMES
}

/// Of the header record of the MPI module. `SYNC_FLAG` is half a word in the file.
pub(super) fn mpi_header() -> &'static CounterNames {
    static NAMES: LazyLock<CounterNames> = LazyLock::new(|| CounterNames {
        integers: expand("APMPI_", &["MAGIC SYNC_FLAG"]),
        floats: expand("APMPI_", &["F_VARIANCE_TOTAL_MPITIME F_VARIANCE_TOTAL_MPISYNCTIME"]),
    });
    &NAMES
}

/// Calls that move data count bytes and sizes (`+`), others only themselves.
const CALLS: &str = "SEND+ SSEND+ RSEND+ BSEND+ RECV+ SENDRECV+ SENDRECV_REPLACE+ ISEND+ ISSEND+ IRSEND+ IBSEND+ IRECV+ \
    PROBE IPROBE TEST TESTANY TESTALL TESTSOME WAIT WAITANY WAITALL WAITSOME BARRIER IBARRIER \
    BCAST+ GATHER+ GATHERV+ SCATTER+ SCATTERV+ SCAN+ EXSCAN+ ALLGATHER+ ALLGATHERV+ REDUCE+ ALLREDUCE+ REDUCE_SCATTER+ \
    ALLTOALL+ ALLTOALLV+ ALLTOALLW+ IBCAST+ IGATHER+ IGATHERV+ ISCATTER+ ISCATTERV+ ISCAN+ IEXSCAN+ IALLGATHER+ \
    IALLGATHERV+ IREDUCE+ IALLREDUCE+ IREDUCE_SCATTER+ IALLTOALL+ IALLTOALLV+ IALLTOALLW+ \
    PUT+ GET+ ACCUMULATE+ GET_ACCUMULATE+ FETCH_AND_OP COMPARE_AND_SWAP WIN_FENCE WIN_START WIN_COMPLETE WIN_POST \
    WIN_WAIT WIN_TEST WIN_LOCK WIN_UNLOCK WIN_UNLOCK_ALL WIN_FLUSH WIN_FLUSH_ALL WIN_FLUSH_LOCAL WIN_FLUSH_LOCAL_ALL \
    WIN_SYNC";
const SIZES: &str = "_TOTAL_BYTES _MSG_SIZE_AGG_0_256 _MSG_SIZE_AGG_256_1K _MSG_SIZE_AGG_1K_8K _MSG_SIZE_AGG_8K_256K \
    _MSG_SIZE_AGG_256K_1M _MSG_SIZE_AGG_1M_PLUS";

/// Calls that wait for others: the time they wait is counted too.
const SYNCHRONISING: &str = "BARRIER BCAST GATHER GATHERV SCATTER SCATTERV SCAN EXSCAN ALLGATHER ALLGATHERV REDUCE \
    ALLREDUCE REDUCE_SCATTER ALLTOALL ALLTOALLV ALLTOALLW";

/// Calls, bytes, sizes and times of each MPI function, and of all together.
pub(super) fn mpi_counters() -> &'static CounterNames {
    static NAMES: LazyLock<CounterNames> = LazyLock::new(|| {
        let mut names = CounterNames::default();
        for call in CALLS.split_whitespace() {
            let function = format!("MPI_{}", call.trim_end_matches('+'));
            names.integers.push(format!("{function}_CALL_COUNT"));
            if call.ends_with('+') {
                names.integers.extend(expand(&function, &[SIZES]));
            }
            names.floats.extend(expand(&function, &["_TOTAL_TIME _MIN_TIME _MAX_TIME"]));
        }
        let waits = SYNCHRONISING.split_whitespace().map(|call| format!("MPI_{call}_TOTAL_SYNC_TIME"));
        names.floats.extend(waits);
        names.floats.extend(expand("MPI_", &["TOTAL_COMM_TIME TOTAL_COMM_SYNC_TIME"]));
        names
    });
    &NAMES
}

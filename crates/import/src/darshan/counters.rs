//! The names of counters, in the order of the newest version of each module's records.

use std::sync::LazyLock;

use super::module::Module;

/// The counters of a module's records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CounterNames {
    /// Whole numbers.
    pub integers: Vec<String>,
    /// Times (seconds), time stamps (seconds since the start of the job) and variances.
    pub floats: Vec<String>,
}

impl CounterNames {
    /// Index of a whole-number counter.
    pub fn integer(&self, name: &str) -> Option<usize> {
        self.integers.iter().position(|known| known == name)
    }

    /// Index of a time.
    pub fn float(&self, name: &str) -> Option<usize> {
        self.floats.iter().position(|known| known == name)
    }
}

/// Sizes of accesses are counted in these classes: from, up to and with; bytes in steps of ten, and four steps of two.
const SIZES: [&str; 10] =
    ["0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS"];

/// What most modules end with: who was fastest and slowest, of the processes that shared the file.
const RANKS: &str = "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES";
const TIMES: &str = "F_OPEN_START_TIMESTAMP F_READ_START_TIMESTAMP F_WRITE_START_TIMESTAMP F_CLOSE_START_TIMESTAMP \
    F_OPEN_END_TIMESTAMP F_READ_END_TIMESTAMP F_WRITE_END_TIMESTAMP F_CLOSE_END_TIMESTAMP \
    F_READ_TIME F_WRITE_TIME F_META_TIME F_MAX_READ_TIME F_MAX_WRITE_TIME F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME";
const VARIANCES: &str = "F_VARIANCE_RANK_TIME F_VARIANCE_RANK_BYTES";

/// The accesses that a data set or variable saw most often: size, and length and stride in up to 5 dimensions.
const SHAPES: &str = "ACCESS1_ACCESS ACCESS1_LENGTH_D% ACCESS1_STRIDE_D% ACCESS2_ACCESS ACCESS2_LENGTH_D% \
    ACCESS2_STRIDE_D% ACCESS3_ACCESS ACCESS3_LENGTH_D% ACCESS3_STRIDE_D% ACCESS4_ACCESS ACCESS4_LENGTH_D% \
    ACCESS4_STRIDE_D% ACCESS@_COUNT";

/// The counters of a module. Names of the header records of AutoPerf's modules are in `autoperf`.
pub(super) fn of(module: Module) -> &'static CounterNames {
    static NONE: CounterNames = CounterNames { integers: Vec::new(), floats: Vec::new() };
    macro_rules! names {
        ($prefix:literal, [$($integers:expr),*], [$($floats:expr),*]) => {{
            static NAMES: LazyLock<CounterNames> = LazyLock::new(|| CounterNames {
                integers: expand($prefix, &[$($integers),*]),
                floats: expand($prefix, &[$($floats),*]),
            });
            &NAMES
        }};
    }
    match module {
        Module::Posix => names!(
            "POSIX_",
            [
                "OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES RENAME_TARGETS",
                "RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS",
                "CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED",
                "FILE_ALIGNMENT MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE SIZE_READ_# SIZE_WRITE_#",
                "STRIDE@_STRIDE STRIDE@_COUNT ACCESS@_ACCESS ACCESS@_COUNT",
                RANKS
            ],
            [TIMES, VARIANCES]
        ),
        Module::MpiIo => names!(
            "MPIIO_",
            [
                "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES",
                "NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN RW_SWITCHES",
                "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE SIZE_READ_AGG_# SIZE_WRITE_AGG_#",
                "ACCESS@_ACCESS ACCESS@_COUNT",
                RANKS
            ],
            [TIMES, VARIANCES]
        ),
        Module::Stdio => names!(
            "STDIO_",
            [
                "OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ MAX_BYTE_WRITTEN",
                RANKS
            ],
            [
                "F_META_TIME F_WRITE_TIME F_READ_TIME F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP",
                "F_WRITE_START_TIMESTAMP F_READ_START_TIMESTAMP F_OPEN_END_TIMESTAMP F_CLOSE_END_TIMESTAMP",
                "F_WRITE_END_TIMESTAMP F_READ_END_TIMESTAMP F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME",
                VARIANCES
            ]
        ),
        Module::Hdf5File => names!(
            "H5F_",
            ["OPENS FLUSHES USE_MPIIO"],
            [
                "F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP F_CLOSE_END_TIMESTAMP",
                "F_META_TIME"
            ]
        ),
        Module::Hdf5Dataset => names!(
            "H5D_",
            [
                "OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES REGULAR_HYPERSLAB_SELECTS",
                "IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE",
                "SIZE_READ_AGG_# SIZE_WRITE_AGG_#",
                SHAPES,
                "DATASPACE_NDIMS DATASPACE_NPOINTS DATATYPE_SIZE CHUNK_SIZE_D% USE_MPIIO_COLLECTIVE USE_DEPRECATED",
                RANKS
            ],
            [TIMES, VARIANCES]
        ),
        Module::PnetcdfFile => names!(
            "PNETCDF_FILE_",
            ["CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ BYTES_WRITTEN WAIT_FAILURES"],
            [
                "F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_WAIT_START_TIMESTAMP F_OPEN_END_TIMESTAMP",
                "F_CLOSE_END_TIMESTAMP F_WAIT_END_TIMESTAMP F_META_TIME F_WAIT_TIME"
            ]
        ),
        Module::PnetcdfVariable => names!(
            "PNETCDF_VAR_",
            [
                "OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES BYTES_READ BYTES_WRITTEN",
                "RW_SWITCHES PUT_VAR PUT_VAR1 PUT_VARA PUT_VARS PUT_VARM PUT_VARN PUT_VARD",
                "GET_VAR GET_VAR1 GET_VARA GET_VARS GET_VARM GET_VARN GET_VARD",
                "IPUT_VAR IPUT_VAR1 IPUT_VARA IPUT_VARS IPUT_VARM IPUT_VARN",
                "IGET_VAR IGET_VAR1 IGET_VARA IGET_VARS IGET_VARM IGET_VARN",
                "BPUT_VAR BPUT_VAR1 BPUT_VARA BPUT_VARS BPUT_VARM BPUT_VARN",
                "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE SIZE_READ_AGG_# SIZE_WRITE_AGG_#",
                SHAPES,
                "NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR",
                RANKS
            ],
            [TIMES, VARIANCES]
        ),
        Module::BlueGeneQ => names!(
            "BGQ_",
            ["CSJOBID NNODES RANKSPERNODE DDRPERNODE INODES ANODES BNODES CNODES DNODES ENODES TORUSENABLED"],
            ["F_TIMESTAMP"]
        ),
        Module::Mdhim => names!(
            "MDHIM_",
            ["PUTS GETS PUT_MAX_SIZE GET_MAX_SIZE SERVERS"],
            ["F_PUT_TIMESTAMP F_GET_TIMESTAMP F_PUT_MAX_DURATION F_GET_MAX_DURATION"]
        ),
        Module::Dfs => names!(
            "DFS_",
            [
                "OPENS GLOBAL_OPENS LOOKUPS DUPS READS READXS WRITES WRITEXS NB_READS NB_WRITES GET_SIZES PUNCHES",
                "REMOVES STATS BYTES_READ BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE",
                "SIZE_READ_# SIZE_WRITE_# ACCESS@_ACCESS ACCESS@_COUNT CHUNK_SIZE",
                RANKS
            ],
            [TIMES]
        ),
        Module::Daos => names!(
            "DAOS_",
            [
                "OBJ_OPENS OBJ_FETCHES OBJ_UPDATES OBJ_PUNCHES OBJ_DKEY_PUNCHES OBJ_AKEY_PUNCHES OBJ_DKEY_LISTS",
                "OBJ_AKEY_LISTS OBJ_RECX_LISTS ARRAY_OPENS ARRAY_READS ARRAY_WRITES ARRAY_GET_SIZES",
                "ARRAY_SET_SIZES ARRAY_STATS ARRAY_PUNCHES ARRAY_DESTROYS KV_OPENS KV_GETS KV_PUTS KV_REMOVES",
                "KV_LISTS KV_DESTROYS NB_OPS BYTES_READ BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE",
                "MAX_WRITE_TIME_SIZE SIZE_READ_# SIZE_WRITE_# ACCESS@_ACCESS ACCESS@_COUNT",
                "OBJ_OTYPE ARRAY_CELL_SIZE ARRAY_CHUNK_SIZE",
                RANKS
            ],
            [TIMES]
        ),
        Module::Apxc => super::autoperf::router_counters(),
        Module::Apmpi => super::autoperf::mpi_counters(),
        Module::Lustre | Module::DxtPosix | Module::DxtMpiIo | Module::Heatmap | Module::Unknown(_) => &NONE,
    }
}

/// Names from lists of words: `#` stands for each class of sizes, `@` for 1 to 4, `%` for 1 to 5.
pub(super) fn expand(prefix: &str, lists: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for word in lists.iter().flat_map(|list| list.split_whitespace()) {
        let mut all = |mark: char, values: &[&str]| {
            names.extend(values.iter().map(|value| format!("{prefix}{}", word.replace(mark, value))));
        };
        match word {
            word if word.contains('#') => all('#', &SIZES),
            word if word.contains('@') => all('@', &["1", "2", "3", "4"]),
            word if word.contains('%') => all('%', &["1", "2", "3", "4", "5"]),
            _ => names.push(format!("{prefix}{word}")),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_as_many_counters_as_its_records() {
        let expected = [
            (Module::Posix, 69, 17),
            (Module::MpiIo, 51, 17),
            (Module::Stdio, 14, 15),
            (Module::Hdf5File, 3, 5),
            (Module::Hdf5Dataset, 94, 17),
            (Module::PnetcdfFile, 9, 8),
            (Module::PnetcdfVariable, 120, 17),
            (Module::BlueGeneQ, 11, 1),
            (Module::Mdhim, 5, 4),
            (Module::Dfs, 52, 15),
            (Module::Daos, 64, 15),
            (Module::Apxc, 396, 0),
            (Module::Apmpi, 396, 240),
        ];
        for (module, integers, floats) in expected {
            let names = of(module);
            assert_eq!((names.integers.len(), names.floats.len()), (integers, floats), "{module}");
        }
    }
}

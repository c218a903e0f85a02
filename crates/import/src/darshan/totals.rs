//! What the counters of a log add up to, as notes of a trace.

use super::counters::CounterNames;
use super::damage::LogDamage;
use super::log::Log;
use super::module::Module;
use super::records::Record;

/// Sums of a log's counters, module by module.
pub(super) struct Totals {
    modules: Vec<ModuleTotals>,
    pub(super) damage: Vec<LogDamage>,
}

struct ModuleTotals {
    module: Module,
    names: &'static CounterNames,
    records: u64,
    passed_over: u64,
    integers: Vec<Option<i64>>,
    floats: Vec<Option<f64>>,
}

impl Totals {
    pub(super) fn of(log: &Log) -> Totals {
        let mut totals = Totals { modules: Vec::new(), damage: Vec::new() };
        for region in log.modules() {
            let Some(mut records) = log.records(region.module) else {
                continue;
            };
            let mut sums: Option<ModuleTotals> = None;
            while let Some(record) = records.next() {
                match &mut sums {
                    // Behind a header record come those that count.
                    Some(sums) if sums.names == record.names => sums.add(&record),
                    _ => sums.insert(ModuleTotals::new(region.module, record.names)).add(&record),
                }
            }
            if let Some(mut sums) = sums {
                sums.passed_over = records.passed_over();
                totals.modules.push(sums);
            }
            totals.damage.extend(records.damage());
        }
        totals
    }

    /// What the log knows besides its accesses. `traced` are the accesses of each DXT module.
    pub(super) fn notes<'a>(
        &self,
        log: &Log,
        traced: &[(Module, u64)],
        damage: impl Iterator<Item = &'a LogDamage>,
    ) -> Vec<(String, String)> {
        let job = log.job();
        let mut notes: Vec<(String, String)> = Vec::new();
        let mut note = |key: &str, value: String| notes.push((key.to_owned(), value));
        note("imported from", format!("Darshan log of version {}", log.version()));
        note("job id", job.id.to_string());
        note("user id", job.uid.to_string());
        note("processes", job.processes.to_string());
        note("command", job.command.clone());
        job.metadata.iter().for_each(|(key, value)| note(&format!("Darshan {key}"), value.clone()));
        for mount in &job.mounts {
            note("mount", format!("{} on {}", mount.kind, mount.path));
        }
        for damage in damage {
            note("lost by damage", damage.to_string());
        }
        for region in log.modules() {
            if region.partial {
                let value = format!("{}: the module ran out of memory while the job ran", region.module);
                note("lost records", value);
            }
            if !log.reads(region) {
                let (module, version) = (region.module, region.version);
                note("passed over", format!("module {module}, records of version {version}: not known"));
            }
        }
        for totals in &self.modules {
            if totals.passed_over > 0 {
                let (count, module) = (totals.passed_over, totals.module);
                note("lost records", format!("{count} of {module}: they count POSIX and stdio calls in one"));
            }
            note(&format!("counted by {}", totals.module), totals.words());
        }
        for &(module, traced) in traced {
            let counted = self.accesses(module);
            if counted > traced {
                let value = format!(
                    "{} of {counted} of {module}: counted, but not traced (DXT keeps what fits its memory, and may have \
                     been told to leave some out)",
                    counted - traced
                );
                note("lost accesses", value);
            }
        }
        notes
    }

    /// How many accesses a DXT module should have.
    fn accesses(&self, dxt: Module) -> u64 {
        let (module, names): (_, &[&str]) = match dxt {
            Module::DxtPosix => (Module::Posix, &["POSIX_READS", "POSIX_WRITES"]),
            _ => (
                Module::MpiIo,
                &[
                    "MPIIO_INDEP_READS",
                    "MPIIO_INDEP_WRITES",
                    "MPIIO_COLL_READS",
                    "MPIIO_COLL_WRITES",
                    "MPIIO_SPLIT_READS",
                    "MPIIO_SPLIT_WRITES",
                    "MPIIO_NB_READS",
                    "MPIIO_NB_WRITES",
                ],
            ),
        };
        let totals = self.modules.iter().find(|totals| totals.module == module);
        let count = |name: &&str| {
            let totals = totals?;
            u64::try_from(totals.integers[totals.names.integer(name)?]?).ok()
        };
        names.iter().filter_map(count).fold(0, u64::saturating_add)
    }
}

impl ModuleTotals {
    fn new(module: Module, names: &'static CounterNames) -> ModuleTotals {
        ModuleTotals {
            module,
            names,
            records: 0,
            passed_over: 0,
            integers: vec![None; names.integers.len()],
            floats: vec![None; names.floats.len()],
        }
    }

    fn add(&mut self, record: &Record) {
        self.records += 1;
        for (name, (sum, &value)) in
            self.names.integers.iter().zip(self.integers.iter_mut().zip(record.integers))
        {
            // −1: not counted by this version.
            if value >= 0 {
                *sum = match kind(name) {
                    Kind::Sum => Some(sum.unwrap_or(0).saturating_add(value)),
                    Kind::Largest => Some(sum.unwrap_or(0).max(value)),
                    Kind::OfOneRecord => None,
                };
            }
        }
        for (name, (sum, &value)) in self.names.floats.iter().zip(self.floats.iter_mut().zip(record.floats)) {
            if value >= 0.0 {
                *sum = match kind(name) {
                    Kind::Sum => Some(sum.unwrap_or(0.0) + value),
                    Kind::Largest => Some(sum.unwrap_or(0.0).max(value)),
                    Kind::OfOneRecord => None,
                };
            }
        }
    }

    /// `12 records; POSIX_OPENS 5, POSIX_READS 7, …`: what is not 0.
    fn words(&self) -> String {
        let integers = self.names.integers.iter().zip(&self.integers);
        let integers =
            integers.filter_map(|(name, sum)| Some((name, sum.filter(|&sum| sum != 0)?.to_string())));
        let floats = self.names.floats.iter().zip(&self.floats);
        let floats =
            floats.filter_map(|(name, sum)| Some((name, format!("{:.6}", sum.filter(|&sum| sum != 0.0)?))));
        let sums: Vec<_> = integers.chain(floats).map(|(name, sum)| format!("{name} {sum}")).collect();
        let records = if self.records == 1 { "record" } else { "records" };
        format!("{} {records}; {}", self.records, sums.join(", ")).trim_end_matches("; ").to_owned()
    }
}

/// How values of one counter in several records go together.
enum Kind {
    Sum,
    Largest,
    /// Modes, sizes, strides, time stamps, numbers of ranks: nothing to add.
    OfOneRecord,
}

fn kind(name: &str) -> Kind {
    const SINGLE: [&str; 22] = [
        "_MODE",
        "_TIMESTAMP",
        "_ALIGNMENT",
        "_STRIDE",
        "_ACCESS",
        "_TIME_SIZE",
        "_RANK",
        "_RANK_BYTES",
        "_RANK_TIME",
        "RENAMED_FROM",
        "_COUNT",
        "_NDIMS",
        "_NPOINTS",
        "DATATYPE_SIZE",
        "CHUNK_SIZE",
        "CELL_SIZE",
        "_OTYPE",
        "_USE_MPIIO",
        "_USE_MPIIO_COLLECTIVE",
        "_USE_DEPRECATED",
        "_IS_RECORD_VAR",
        "_SERVERS",
    ];
    if name.starts_with("BGQ_") || name.starts_with("APXC_") {
        return Kind::OfOneRecord;
    }
    if name.contains("_MAX_BYTE_")
        || name.contains("_MAX_") && !name.ends_with("_TIME_SIZE")
        || name.ends_with("_MAX_TIME")
    {
        return Kind::Largest;
    }
    let counts_calls = name.ends_with("_CALL_COUNT");
    let of_dimension =
        name.contains("_LENGTH_D") || name.contains("_STRIDE_D") || name.contains("CHUNK_SIZE_D");
    let of_one = SINGLE.iter().any(|end| name.ends_with(end))
        || name.ends_with("_MIN_TIME")
        || name.contains("VARIANCE")
        || of_dimension;
    if of_one && !counts_calls { Kind::OfOneRecord } else { Kind::Sum }
}

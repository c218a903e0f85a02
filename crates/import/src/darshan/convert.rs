//! A trace of the accesses that a log holds.
//!
//! Only DXT modules have any: each segment becomes an event, in the order of their starts. What else the log knows
//! becomes notes of the trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;

use super::damage::LogDamage;
use super::log::Log;
use super::module::Module;
use super::names::Names;
use super::totals::Totals;
use crate::error::ImportError;
use crate::sort::{Access, Sorter};
use pio_trace::Call;
use pio_trace::Flags;
use pio_trace::TraceWriter;
use pio_trace::{File, FileId, Handle, HandleId, Process, ProcessId, Tables};

/// Up to so many processes all are in the trace, the idle ones too; of larger jobs those that made an access.
const MOST_PROCESSES: i64 = 1 << 16;

/// Later than this (30 years) nothing can have happened.
const LATEST_S: f64 = 1e9;

/// Writes the accesses of a log as a trace to `out`. `name` stands for its path in errors.
///
/// # Errors
/// If the trace, or the temporary file that sorting may need, cannot be written. Damage to the log is no error: the
/// trace holds what came before it, and a note.
pub fn write_trace(log: &Log, out: impl Write, name: &Path) -> Result<u64, ImportError> {
    let import = Import::of(log)?;
    import.write(TraceWriter::new(out, Tables::default())?, name)
}

/// What stands in the notes of the trace, and what its accesses refer to.
struct Import {
    tables: Tables,
    accesses: Sorter,
    /// Accesses with times that cannot be.
    impossible: u64,
}

impl Import {
    fn of(log: &Log) -> Result<Import, ImportError> {
        let totals = Totals::of(log);
        let (names, names_damage) = log.names();
        let mut reading = Reading {
            tables: Tables::default(),
            accesses: Sorter::new(),
            impossible: 0,
            last_end_ns: 0,
            names,
            files: HashMap::new(),
            processes: BTreeMap::new(),
            mpi_files: BTreeSet::new(),
            damage: log.damage().cloned().into_iter().chain(names_damage).collect(),
        };
        reading.add_job(log);
        let mut traced = Vec::new();
        // MPI-IO first: at equal times a call stands before those that it caused.
        for module in [Module::DxtMpiIo, Module::DxtPosix] {
            if let Some(count) = reading.add_module(log, module)? {
                traced.push((module, count));
            }
        }
        let end_ns = reading.last_end_ns.max(seconds_to_ns(log.job().run_time_s).unwrap_or(0));
        for process in &mut reading.tables.processes {
            process.end_ns = Some(end_ns);
        }
        let damage = reading.damage.iter().chain(&totals.damage);
        reading.tables.notes = totals.notes(log, &traced, damage);
        let Reading { tables, accesses, impossible, .. } = reading;
        Ok(Import { tables, accesses, impossible })
    }

    fn write<W: Write>(mut self, mut writer: TraceWriter<W>, path: &Path) -> Result<u64, ImportError> {
        if self.impossible > 0 {
            let value = format!("{} (their times are impossible)", self.impossible);
            self.tables.notes.push(("lost accesses".into(), value));
        }
        *writer.tables_mut() = self.tables;
        let sorting = "sort accesses in a temporary file";
        let mut accesses = self.accesses.finish().map_err(ImportError::io(path, sorting))?;
        let mut count = 0;
        while let Some(access) = accesses.next().map_err(ImportError::io(path, sorting))? {
            writer.push(&access.into())?;
            count += 1;
        }
        writer.finish()?;
        Ok(count)
    }
}

fn call(by_mpi_io: bool, is_write: bool) -> Call {
    match (by_mpi_io, is_write) {
        (false, false) => Call::Read,
        (false, true) => Call::Write,
        (true, false) => Call::MpiFileRead,
        (true, true) => Call::MpiFileWrite,
    }
}

/// The first pass: collects accesses and what they refer to.
struct Reading {
    tables: Tables,
    accesses: Sorter,
    impossible: u64,
    last_end_ns: u64,
    names: Names,
    files: HashMap<u64, FileId>,
    processes: BTreeMap<i64, ProcessId>,
    /// Files with traced accesses by MPI-IO.
    mpi_files: BTreeSet<u64>,
    damage: Vec<LogDamage>,
}

impl Reading {
    fn add_job(&mut self, log: &Log) {
        let job = log.job();
        self.tables.job = match job.command.as_str() {
            "" => format!("job {}", job.id),
            command => command.to_owned(),
        };
        self.tables.epoch_ns = u64::try_from(job.start_ns).unwrap_or(0);
        if (1..=MOST_PROCESSES).contains(&job.processes) {
            for rank in 0..job.processes {
                self.process(rank, log);
            }
        }
    }

    /// Takes the accesses of a module. Returns how many there are; none without such a module.
    fn add_module(&mut self, log: &Log, module: Module) -> Result<Option<u64>, ImportError> {
        let Some(mut dxt) = log.dxt(module) else {
            return Ok(None);
        };
        let by_mpi_io = module == Module::DxtMpiIo;
        let mut count = 0;
        while let Some(record) = dxt.next_record() {
            if by_mpi_io {
                self.mpi_files.insert(record.id);
            }
            let process = self.process(record.rank, log);
            if let Some(entry) =
                self.tables.processes.get_mut(process.index()).filter(|it| it.host.is_empty())
            {
                entry.host = record.host.clone();
            }
            let file = self.file(record.id);
            let handle = HandleId(self.tables.handles.len() as u32);
            self.tables.handles.push(Handle { file, process, ranks: 1, collective: 0 });
            let caused_by_mpi_io = !by_mpi_io && self.mpi_files.contains(&record.id);
            let flags = if caused_by_mpi_io { Flags::PHYSICAL } else { Flags::NONE };
            while let Some((is_write, segments)) = dxt.segments() {
                count += segments.len() as u64;
                for segment in segments {
                    let (Some(start_ns), Some(end_ns)) =
                        (seconds_to_ns(segment.start_s), seconds_to_ns(segment.end_s))
                    else {
                        self.impossible += 1;
                        continue;
                    };
                    self.last_end_ns = self.last_end_ns.max(end_ns);
                    let access = Access {
                        call: call(by_mpi_io, is_write),
                        flags,
                        process,
                        thread: 0,
                        handle: Some(handle),
                        offset: u64::try_from(segment.offset).ok(),
                        size: u64::try_from(segment.length).unwrap_or(0),
                        result: segment.length.max(0),
                        start_ns,
                        elapsed_ns: end_ns.saturating_sub(start_ns),
                        name: None,
                        other: None,
                        operation: 0,
                    };
                    let sorting = "sort accesses in a temporary file";
                    self.accesses.push(access).map_err(ImportError::io(log.path(), sorting))?;
                }
            }
        }
        self.damage.extend(dxt.damage());
        Ok(Some(count))
    }

    fn process(&mut self, rank: i64, log: &Log) -> ProcessId {
        let processes = &mut self.tables.processes;
        *self.processes.entry(rank).or_insert_with(|| {
            let command = log.job().command.split_whitespace().next().unwrap_or_default();
            processes.push(Process {
                rank: u32::try_from(rank).ok(),
                pid: 0,
                host: String::new(),
                command: command.chars().take(255).collect(),
                start_ns: 0,
                end_ns: None,
            });
            ProcessId(processes.len() as u32 - 1)
        })
    }

    fn file(&mut self, id: u64) -> FileId {
        let files = &mut self.tables.files;
        *self.files.entry(id).or_insert_with(|| {
            let path = self.names.get(id).map_or_else(|| format!("record {id}"), str::to_owned);
            files.push(File { path });
            FileId(files.len() as u32 - 1)
        })
    }
}

/// None for what is no time in the life of a job. Darshan's zero lies behind the job's first steps: what came before is
/// at 0.
fn seconds_to_ns(seconds: f64) -> Option<u64> {
    (-1.0..LATEST_S).contains(&seconds).then(|| (seconds.max(0.0) * 1e9).round() as u64)
}

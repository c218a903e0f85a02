//! The study of Miller and Katz (1991): seven applications of a Cray Y-MP, and how file buffers serve them.
//!
//! [`Study`] has the applications and the computer; [`Case`]s are run on it, many at a time. What the paper states is put
//! beside what we compute by [`statements()`]; [`figures`] are the paper's, with whatever a user changes.
//! `papers/miller-katz-1991/README.md` says what rests on what.

mod drawn;
pub mod figures;
mod sensitivity;
mod statements;
mod tables;
mod text;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pio_machine::Computer;
use pio_sim::SimError;
use pio_sim::workload::miller_katz::{PUBLISHED, application};

use crate::buffers::{Instance, Options, Outcome, Program, run};

pub use drawn::{Changes, Drawn, FIGURES, applications, draw};
pub use sensitivity::{Sensitivity, sensitivities};
pub use statements::statements;
pub use tables::{Measured, Printed, printed};
pub use text::{sensitivities_table, statement_tables, table};

/// Bytes of a megaword, the Cray's measure of memory: 2^20 words of 8 bytes.
pub const MEGAWORD: u64 = 8 << 20;

/// Files of one process are numbered from here on after those of the one before.
const FILES_APART: u64 = 1 << 32;

/// The applications and the computer.
#[derive(Clone, Debug)]
pub struct Study {
    /// The computer, as its description has it.
    pub computer: Computer,
    programs: BTreeMap<String, Program>,
}

/// Applications that run at the same time on some computer.
#[derive(Clone, Debug)]
pub struct Case {
    /// The computer.
    pub computer: Computer,
    /// The application.
    pub application: String,
    /// How many copies of it, each with files of its own.
    pub copies: u32,
    /// What else to tell.
    pub options: Options,
}

impl Study {
    /// The applications of these names; all seven if there are none.
    ///
    /// # Errors
    /// If one is unknown.
    pub fn new(computer: Computer, names: &[String]) -> Result<Study, SimError> {
        let mut study = Study { computer, programs: BTreeMap::new() };
        let all: Vec<String> = PUBLISHED.iter().map(|one| one.name.to_owned()).collect();
        for name in if names.is_empty() { &all } else { names } {
            for program in Program::of(&application(name)?)? {
                study.programs.insert(name.clone(), program);
            }
        }
        Ok(study)
    }

    /// The names of the applications.
    pub fn applications(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    /// What an application does.
    ///
    /// # Errors
    /// If the study has none of this name.
    pub fn program(&self, name: &str) -> Result<&Program, SimError> {
        self.programs.get(name).ok_or_else(|| SimError::Workload {
            workload: "miller-katz".to_owned(),
            what: "application",
            found: name.to_owned(),
            expected: self.applications().collect::<Vec<_>>().join(", "),
        })
    }

    /// Another program under a name.
    pub fn insert(&mut self, name: &str, program: Program) {
        self.programs.insert(name.to_owned(), program);
    }

    /// Copies of an application on the study's computer.
    pub fn case(&self, application: &str, copies: u32) -> Case {
        Case {
            computer: self.computer.clone(),
            application: application.to_owned(),
            copies,
            options: Options::default(),
        }
    }

    /// Runs cases on all cores. Results are in the order of the cases, the same on any number of cores.
    ///
    /// # Errors
    /// The first case's that has one.
    pub fn run(&self, cases: &[Case]) -> Result<Vec<Outcome>, SimError> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(BTreeMap::new());
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(cases.len());
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    while let Some((number, case)) = take(&next, cases) {
                        let result = self.run_one(case);
                        // Another thread that panicked ends the scope with a panic anyway.
                        if let Ok(mut found) = found.lock() {
                            found.insert(number, result);
                        }
                    }
                });
            }
        });
        found.into_inner().unwrap_or_default().into_values().collect()
    }

    /// Runs one case.
    ///
    /// # Errors
    /// If the application is unknown, or its computer cannot be.
    pub fn run_one(&self, case: &Case) -> Result<Outcome, SimError> {
        let program = self.program(&case.application)?;
        let processes: Vec<Instance<'_>> = (0..case.copies)
            .map(|copy| Instance { program, first_file: u64::from(copy) * FILES_APART })
            .collect();
        run(&case.computer, &processes, &case.options)
    }
}

impl Case {
    /// With so many bytes of buffers in main memory.
    pub fn cache(mut self, bytes: u64) -> Case {
        self.computer.buffers.size = bytes;
        self
    }

    /// With a solid-state disk instead of main memory's buffers.
    pub fn ssd(mut self, bytes: u64) -> Case {
        self.computer.buffers.size = 0;
        self.computer.ssd.size = bytes;
        self
    }

    /// With or without reading ahead and writing behind.
    pub fn techniques(mut self, read_ahead: bool, write_behind: bool) -> Case {
        self.computer.buffers.read_ahead = read_ahead;
        self.computer.buffers.write_behind = write_behind;
        self
    }
}

fn take<'c>(next: &AtomicUsize, cases: &'c [Case]) -> Option<(usize, &'c Case)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    cases.get(number).map(|case| (number, case))
}

//! `pioscope workload`: generated workloads, as traces and by name.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use pio_explain::{Explanation, Training};
use pio_sim::Workload;
use pio_sim::workload::{self, Entry, Parameter};

use crate::flags::SeedFlag;
use crate::output::note;
use crate::progress::Working;
use crate::whole_file::WholeFile;
use crate::workload_traffic;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  pioscope workload list
  pioscope workload show ior-easy
  pioscope workload ior-easy -o ior.pio --param ranks=64
  pioscope workload dlio train.pio -o train.yaml     (then: dlio_benchmark --config-dir . workload=…)")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    write: WriteArguments,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Name the workloads that can be generated
    List,
    /// Write what a training program did as a workload of DLIO's benchmark (YAML)
    Dlio {
        /// The trace of the program
        trace: PathBuf,
        /// The file to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Describe a workload and its parameters
    Show {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
struct WriteArguments {
    /// The workload
    #[arg(required = true)]
    name: Option<String>,
    /// The trace to write
    #[arg(short, long, required = true, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// A parameter, as name=value; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<Setting>,
    #[command(flatten)]
    seed: SeedFlag,
}

/// A name and its value, from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub name: String,
    pub value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Setting { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("'{text}': expected NAME=VALUE")),
        }
    }
}

/// A generated workload, as `NAME[,PARAMETER=VALUE…]`.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub name: String,
    pub parameters: Vec<Setting>,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default().trim().to_owned();
        let parameters = words.map(str::parse).collect::<Result<Vec<Setting>, String>>()?;
        match twice(&parameters) {
            Some(name) => Err(format!("the parameter {name} is given twice")),
            None => Ok(Named { name, parameters }),
        }
    }
}

/// The first parameter that is there twice.
fn twice(parameters: &[Setting]) -> Option<&str> {
    let before = |index: usize, name: &str| parameters[..index].iter().any(|setting| setting.name == name);
    let mut settings = parameters.iter().enumerate();
    settings.find(|(index, setting)| before(*index, &setting.name)).map(|(_, setting)| setting.name.as_str())
}

impl Named {
    /// Its entry in the catalogue.
    pub(crate) fn entry(&self) -> Result<&'static Entry> {
        if let Ok(entry) = workload::find(&self.name) {
            return Ok(entry);
        }
        let known: Vec<&str> = workload::catalogue().iter().map(|entry| entry.name).collect();
        let traffic: Vec<&str> = workload_traffic::names().collect();
        bail!(
            "no workload '{}': expected one of {}; or, on a network alone, {}",
            self.name,
            known.join(", "),
            traffic.join(", ")
        )
    }

    /// Builds it, with these parameters besides its own.
    pub(crate) fn build(&self, more: &[Setting], seed: u64) -> Result<Workload> {
        let given: Vec<(String, String)> = self
            .parameters
            .iter()
            .chain(more)
            .map(|setting| (setting.name.clone(), setting.value.clone()))
            .collect();
        Ok(self.entry()?.build(&given, seed)?)
    }

    /// The note of a trace that names the workload.
    pub(crate) const NOTE: &str = "workload";

    /// What was chosen, as notes for a trace.
    pub(crate) fn notes(&self, seed: u64) -> Vec<(String, String)> {
        let mut notes =
            vec![(Named::NOTE.to_owned(), self.name.clone()), ("seed".to_owned(), seed.to_string())];
        notes.extend(self.parameters.iter().map(|setting| (setting.name.clone(), setting.value.clone())));
        notes
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.what {
        Some(What::List) => crate::print(&list())?,
        Some(What::Show { name }) => crate::print(&show(&name)?)?,
        Some(What::Dlio { trace, output }) => write_dlio(&trace, &output)?,
        None => write(arguments.write)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(arguments: WriteArguments) -> Result<()> {
    let (Some(name), Some(output)) = (arguments.name, arguments.output) else {
        bail!("name the workload, and with -o the trace to write");
    };
    if workload_traffic::is_known(&name) {
        bail!("{name} is traffic on a network alone: use it with pioscope predict --workload {name}");
    }
    if let Some(name) = twice(&arguments.parameters) {
        bail!("--param {name} is given twice");
    }
    WholeFile::of_trace(&output).map(drop)?;
    let named = Named { name, parameters: arguments.parameters };
    let workload = named.build(&[], arguments.seed.seed)?;
    let working = Working::new("writing the trace");
    workload::write_trace(&workload, &named.notes(arguments.seed.seed), &output)?;
    drop(working);
    note!("wrote {}", output.display());
    Ok(())
}

fn write_dlio(trace: &Path, output: &Path) -> Result<()> {
    let opened = crate::explain::open(trace)?;
    let found = Explanation::of_trace(&opened, &mut |_| ())?;
    let training = Training::of(&found).map_err(|missing| anyhow!("{}: {missing}", trace.display()))?;
    let written = WholeFile::create(output)?;
    write!(written.file(), "{training}").with_context(|| format!("cannot write {}", output.display()))?;
    written.keep()?;
    for left_out in &training.left_out {
        note!("{left_out}");
    }
    note!("wrote {}", output.display());
    Ok(())
}

fn list() -> String {
    let mut text = String::from("Workloads (pioscope workload show NAME lists its parameters)\n");
    let width = workload::catalogue().iter().map(|entry| entry.name.len()).max().unwrap_or(0).max(14);
    for entry in workload::catalogue() {
        text.push_str(&format!("  {:<width$}  {}\n", entry.name, entry.about));
    }
    text.push_str("Traffic on a network alone (pioscope predict --workload NAME)\n");
    for (name, about) in workload_traffic::PATTERNS {
        text.push_str(&format!("  {name:<width$}  {about}\n"));
    }
    text
}

fn show(name: &str) -> Result<String> {
    if let Some((name, about)) = workload_traffic::PATTERNS.iter().find(|(known, _)| *known == name) {
        return Ok(format!("{name}: {about}\n{}", parameters(workload_traffic::PARAMETERS)));
    }
    let entry = Named { name: name.to_owned(), parameters: Vec::new() }.entry()?;
    let of_each = entry.parameters.iter().map(described).collect::<Vec<_>>();
    Ok(format!("{}: {}\n  source: {}\n{}", entry.name, entry.about, entry.source, parameters(&of_each)))
}

/// A parameter's name, what it means and can be, and its default.
type Described<S> = (S, S, S);

fn described(parameter: &Parameter) -> Described<String> {
    let about = format!("{}: {}", parameter.about, parameter.kind.expected());
    (parameter.name.to_owned(), about, parameter.default.to_owned())
}

fn parameters<S: AsRef<str>>(parameters: &[Described<S>]) -> String {
    let width = parameters.iter().map(|parameter| parameter.0.as_ref().len()).max().unwrap_or(0);
    let line = |(name, about, default): &Described<S>| {
        format!("  {:<width$}  {} [default: {}]\n", name.as_ref(), about.as_ref(), default.as_ref())
    };
    parameters.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_and_its_parameters_are_named_in_one_word() {
        let named: Named = "ior-easy,ranks=4,transfer=1 MiB".parse().unwrap();
        assert_eq!(named.name, "ior-easy");
        assert_eq!(named.parameters[1].value, "1 MiB");
        assert_eq!("ior-easy,ranks".parse::<Named>().unwrap_err(), "'ranks': expected NAME=VALUE");
    }
}

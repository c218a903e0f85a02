//! `pioscope reproduce miller-katz`: the study of Miller and Katz (1991).

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_machine::{Computer, Duration, parse_size};
use pio_studies::miller_katz::{self, Changes, FIGURES, MEGAWORD, Study};

use super::output::{Output, footer};
use crate::flags::{count, whole};
use crate::output::note;
use crate::progress::Working;

mod tables;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope reproduce miller-katz
  pioscope reproduce miller-katz --figure 8 --cache 2MW,4MW,16MW,32MW --policy lru,mru,arc -o figures
  pioscope reproduce miller-katz --figure 7 --application les --instances 3 --cache 16MW --seconds 60
  pioscope reproduce miller-katz --figure 6 --ssd 32MW
  pioscope reproduce miller-katz --figure 8 --set disks.far=\"12 ms\" --set buffers.read-ahead=false

1 MW, a megaword, is 8 MiB. Keys for --set: docs/design/buffers.md.")]
pub(super) struct Arguments {
    /// Only these figures: 3, 4, 6, 7 or 8 [default: all, tables, statements and sensitivities]
    #[arg(long = "figure", value_name = "NUMBER", value_delimiter = ',', value_parser = whole::<u32>)]
    figures: Vec<u32>,
    /// Applications: bvi, ccm, forma, gcm, les, upw, venus [default: as the figure has it]
    #[arg(long = "application", value_name = "NAME", value_delimiter = ',')]
    applications: Vec<String>,
    /// Copies that run at once, in Figures 6 to 8
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = whole::<u32>)]
    instances: u32,
    /// Sizes of the file buffers in main memory [default: as the figure has it]
    #[arg(long = "cache", value_name = "SIZE", value_delimiter = ',')]
    caches: Vec<Size>,
    /// Replacement policies: lru, clock, slru, arc, lirs, mru [default: lru; in Figure 8 all but arc and lirs]
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ',')]
    policies: Vec<String>,
    /// A solid-state disk of this size instead of buffers in main memory
    #[arg(long, value_name = "SIZE", conflicts_with = "caches")]
    ssd: Option<Size>,
    /// First whole seconds of wall-clock time that Figures 6 and 7 show
    #[arg(long, value_name = "SECONDS", default_value = "100", value_parser = count)]
    seconds: NonZeroU32,
    /// Description of the computer, instead of the Cray Y-MP
    #[arg(long, value_name = "FILE")]
    computer: Option<PathBuf>,
    /// Another value for a key of the computer's description
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<Change>,
    #[command(flatten)]
    output: Output,
}

/// Bytes, also as megawords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let expected = || "expected a size above 0 with its unit (MW, MiB, MB, ...)".to_owned();
        let bytes = match text.trim().strip_suffix("MW") {
            Some(megawords) => {
                // An eighth of a tebibyte is 2^14 megawords: far beyond any machine, and exact.
                let number: f64 = megawords.trim().parse().map_err(|_| expected())?;
                (number.is_finite() && number <= 16_384.0).then_some((number * MEGAWORD as f64) as u64)
            }
            None => parse_size(text),
        };
        bytes.filter(|bytes| *bytes > 0).map(Size).ok_or_else(expected)
    }
}

#[derive(Clone, Debug)]
struct Change {
    key: String,
    value: String,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, as in disks.far=\"12 ms\"")?;
        Ok(Change { key: key.trim().to_owned(), value: value.trim().to_owned() })
    }
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.check()?;
    check(&arguments)?;
    let computer = computer(&arguments)?;
    let changes = changes(&arguments);
    let working = Working::new("generating the applications");
    let everything = arguments.figures.is_empty();
    let wanted = if everything { &FIGURES[..] } else { &arguments.figures[..] };
    let study = if everything {
        Study::new(computer, &[])?
    } else {
        let names: Vec<String> =
            wanted.iter().flat_map(|number| miller_katz::applications(*number, &changes)).collect();
        Study::new(computer, &names)?
    };
    let mut text = String::new();
    let mut off_table = false;
    if everything {
        working.now("writing and explaining the traces of Tables 1 and 2");
        let (table, holds) = tables::tables()?;
        for table in table {
            text.push_str(&table.text());
            text.push('\n');
        }
        off_table = !holds;
    }
    for number in wanted {
        working.now(&format!("simulating Figure {number}"));
        for drawn in miller_katz::draw(*number, &study, &changes)? {
            text.push_str(&drawn.table.text());
            text.push('\n');
            arguments.output.write(&drawn.figures)?;
        }
    }
    if everything {
        working.now("simulating what the paper states, and other values of what it leaves out");
        for table in miller_katz::statement_tables(&miller_katz::statements(&study)?) {
            text.push_str(&table.text());
            text.push('\n');
        }
        text.push_str(&miller_katz::sensitivities_table(&miller_katz::sensitivities(&study)?).text());
    }
    drop(working);
    if off_table {
        note!("a generated trace is more than 2 % off its table");
    }
    text.push_str(&footer(&format!("computer {}", study.computer.name), None));
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn check(arguments: &Arguments) -> Result<()> {
    if let Some(figure) = arguments.figures.iter().find(|figure| !FIGURES.contains(figure)) {
        bail!("--figure {figure}: expected 3, 4, 6, 7 or 8, the paper's figures with results");
    }
    let figures_only = !arguments.applications.is_empty()
        || !arguments.caches.is_empty()
        || !arguments.policies.is_empty()
        || arguments.ssd.is_some();
    if arguments.figures.is_empty() && figures_only {
        bail!("--application, --cache, --policy and --ssd change a figure: name it with --figure");
    }
    if let Some(figure) = arguments.figures.iter().find(|figure| [6, 7].contains(*figure)) {
        if arguments.caches.len() > 1 {
            bail!("--cache: Figure {figure} has one size; Figure 8 compares sizes");
        }
        if arguments.policies.len() > 1 {
            bail!("--policy: Figure {figure} has one policy; Figure 8 compares policies");
        }
    }
    if !(1..=1000).contains(&arguments.instances) {
        bail!("--instances {}: expected 1 to 1000", arguments.instances);
    }
    if arguments.seconds.get() > 1_000_000 {
        bail!("--seconds {}: expected at most 1000000", arguments.seconds);
    }
    Ok(())
}

fn changes(arguments: &Arguments) -> Changes {
    Changes {
        applications: arguments.applications.clone(),
        copies: arguments.instances,
        caches: arguments.caches.iter().map(|size| size.0).collect(),
        policies: arguments.policies.clone(),
        ssd: arguments.ssd.map(|size| size.0),
        shown: Duration::from_seconds(f64::from(arguments.seconds.get())),
    }
}

fn computer(arguments: &Arguments) -> Result<Computer> {
    let changes: Vec<(String, String)> =
        arguments.changes.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
    let Some(path) = &arguments.computer else {
        let (file, text) = Computer::CRAY_YMP;
        return Ok(Computer::parse_with(file, text, &changes)?);
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot read"))?;
    Ok(Computer::parse_with(&name, &text, &changes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megawords_are_eight_mebibytes() {
        assert_eq!("4MW".parse(), Ok(Size(32 << 20)));
        assert_eq!("0.5 MW".parse(), Ok(Size(4 << 20)));
        assert_eq!("16 MiB".parse(), Ok(Size(16 << 20)));
        for wrong in ["0MW", "4", "-1MW", "NaNMW", "1e99MW", "0 B"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}

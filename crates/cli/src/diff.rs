//! `pioscope diff`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use crate::condition::{Checked, FailIf, HOLDS, Numbers};
use crate::explain;
use crate::flags::JsonFlag;
use crate::json;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope diff before.pio after.pio
  pioscope diff run.darshan run.pio
  pioscope diff before.pio after.pio --fail-if 'io_time > 110 %' --fail-if 'write.calls > 100 %'

The exit code is 3 if a condition of --fail-if holds, 0 if none does, and 1 or 2 after an error.")]
pub(crate) struct Arguments {
    /// The trace of the first run, or another tool's log
    before: PathBuf,
    /// The trace of the second run, or another tool's log
    after: PathBuf,
    #[command(flatten)]
    fail_if: FailIf,
    #[command(flatten)]
    json: JsonFlag,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let before = explain::explain(&explain::open(&arguments.before)?)?;
    let after = explain::explain(&explain::open(&arguments.after)?)?;
    for (path, found) in [(&arguments.before, &before), (&arguments.after, &after)] {
        ensure!(
            found.events > 0 || arguments.fail_if.conditions.is_empty(),
            "{}: --fail-if: it holds no calls, so that no condition can be judged",
            path.display()
        );
    }
    let numbers = [&before, &after].map(Numbers::of);
    let check = |condition| Checked::of(condition, &numbers[0], &numbers[1]);
    let checked: Vec<_> = arguments.fail_if.conditions.iter().map(check).collect();
    if arguments.json.json {
        let (before, after) = ((&*arguments.before, &before), (&*arguments.after, &after));
        json::print(&json::diff::Compared::of(before, after, &checked))?;
    } else {
        crate::print(&pio_report::diff_text(&before, &after))?;
    }
    let mut code = ExitCode::SUCCESS;
    for one in checked.iter().filter(|one| one.holds) {
        output::error(&one.to_string());
        code = ExitCode::from(HOLDS);
    }
    Ok(code)
}

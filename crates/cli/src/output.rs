//! What the command says: results on standard output, notes and errors on standard error.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use clap::builder::styling::{AnsiColor, Style};
use pio_report::Screen;

/// Whether notes and progress are kept back on standard error.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, says only errors and warnings on standard error.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether progress and notes are to be kept back.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Looks what results will be shown on. `NO_COLOR`, `CLICOLOR_FORCE` and the like are obeyed.
pub(crate) fn find_screen() {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten();
    Screen {
        // A terminal that does not know its width says 0.
        columns: size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0),
        colours: AutoStream::choice(&out) != ColorChoice::Never,
    }
    .set();
}

/// What an error has as its context if results could not be printed.
#[derive(Debug)]
pub(crate) struct NotPrinted;

impl fmt::Display for NotPrinted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("cannot write to standard output")
    }
}

/// Prints text for people on standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(NotPrinted)
}

/// Says an error on standard error, in a line.
pub(crate) fn error(text: &str) {
    say(AnsiColor::Red.on_default().bold(), text);
}

/// Says what a user may want to know on standard error, unless the command is to be quiet. [`note!`] calls it.
pub(crate) fn remark(text: &str) {
    if !is_quiet() {
        say(Style::new().bold(), text);
    }
}

/// Says what makes results less than they seem, such as what a trace lacks, though the command is to be quiet. [`warning!`] calls it.
pub(crate) fn warn(text: &str) {
    say(AnsiColor::Yellow.on_default().bold(), text);
}

fn say(style: Style, text: &str) {
    // Standard error may be a file on a full disk, or at its limit: what was to be done goes on without.
    let _ = writeln!(anstream::stderr(), "{style}pioscope:{style:#} {text}");
}

/// A line of what a user may want to know, on standard error, written as [`format!`] has it.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::remark(&format!($($text)*)) };
}
pub(crate) use note;

/// A line of what makes results less than they seem, on standard error, written as [`format!`] has it.
macro_rules! warning {
    ($($text:tt)*) => { $crate::output::warn(&format!($($text)*)) };
}
pub(crate) use warning;

//! What text is shown on: how wide that is, and whether it has colours.
//!
//! A process has one screen, which the command sets before it makes any text. Everybody else, as who reads from a pipe, gets
//! text as wide as it comes, without colours.

use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};

static SCREEN: OnceLock<Screen> = OnceLock::new();

/// A terminal, or what takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns that a line may have; none where lines may be of any length.
    pub columns: Option<usize>,
    /// Whether it understands ANSI's sequences for colours.
    pub colours: bool,
}

impl Screen {
    /// Makes this the screen of the process. Only the first counts.
    pub fn set(self) {
        // A second one comes from a second command within one process, which has the same terminal.
        let _ = SCREEN.set(self);
    }

    fn get() -> Screen {
        SCREEN.get().copied().unwrap_or_default()
    }
}

/// Columns that a line may have; none where lines may be of any length.
pub(crate) fn columns() -> Option<usize> {
    Screen::get().columns
}

/// Columns of running text that is `most` wide where there is room.
pub(crate) fn text_columns(most: usize) -> usize {
    /// Less cannot be read.
    const LEAST: usize = 30;
    columns().map_or(most, |columns| columns.saturating_sub(1).clamp(LEAST.min(most), most))
}

/// A title, or what else must be found by looking.
pub(crate) fn title(text: &str) -> String {
    styled(Style::new().bold(), text)
}

/// What something costs, or what is wrong.
pub(crate) fn warning(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default().bold(), text)
}

/// Lines and the like, which only guide the eye.
pub(crate) fn faint(text: &str) -> String {
    styled(Style::new().dimmed(), text)
}

/// A line whose label, up to a colon, is a title.
pub(crate) fn titled(line: &str) -> String {
    labelled(line, title)
}

/// A line whose label, up to a colon, is a warning.
pub(crate) fn warned(line: &str) -> String {
    labelled(line, warning)
}

fn labelled(line: &str, style: fn(&str) -> String) -> String {
    match line.split_once(':') {
        Some((label, rest)) => format!("{}{rest}", style(&format!("{label}:"))),
        None => line.to_owned(),
    }
}

fn styled(style: Style, text: &str) -> String {
    if Screen::get().colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

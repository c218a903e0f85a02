//! Progress of long work, on standard error, only where a person looks and only after a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that ends within this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that appears when the work takes longer than a second.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// For work of `total` steps.
    pub fn new(what: &str, total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        Progress { bar, started: Instant::now() }
    }

    /// `done` steps are done.
    pub fn set(&self, done: u64) {
        if self.bar.is_hidden() && self.started.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

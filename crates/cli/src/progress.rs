//! Progress of long work, on standard error, only where a person looks (and did not ask for quiet) and only after a second.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Work that ends within this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that appears when the work takes longer than a second.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// For work of `total` steps.
    pub(crate) fn new(what: &str, total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        Progress { bar, started: Instant::now() }
    }

    /// `done` steps are done.
    pub(crate) fn set(&self, done: u64) {
        if self.bar.is_hidden() && !output::is_quiet() && self.started.elapsed() >= PATIENCE {
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

/// Work of which nobody knows how much is left: says what is being done and for how long, once it takes longer than a second.
#[derive(Debug)]
pub(crate) struct Working {
    bar: ProgressBar,
    /// Dropped first, which ends the thread that waits for the second to pass.
    running: Option<Sender<()>>,
    waiting: Option<JoinHandle<()>>,
}

impl Working {
    /// Begins with `what`.
    pub(crate) fn new(what: &str) -> Working {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(what.to_owned());
        let (running, ends) = channel();
        let shown = bar.clone();
        // Where no thread can be made, there is more to worry about than a line that does not appear.
        let waiting = std::thread::Builder::new().spawn(move || {
            if ends.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) && !output::is_quiet() {
                shown.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
                shown.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Working { bar, running: Some(running), waiting: waiting.ok() }
    }

    /// Goes on with something else.
    pub(crate) fn now(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.running = None;
        if let Some(waiting) = self.waiting.take() {
            let _ = waiting.join();
        }
        self.bar.finish_and_clear();
    }
}

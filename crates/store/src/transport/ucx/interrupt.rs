//! Ending a wait from another thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

/// Tells a thread that waits that it is not to wait any longer.
#[derive(Debug)]
pub(super) struct Interrupt {
    set: AtomicBool,
    event: OwnedFd,
}

impl Interrupt {
    pub(super) fn new() -> io::Result<Arc<Interrupt>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Interrupt { set: AtomicBool::new(false), event }))
    }

    pub(super) fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        // Whoever waits sees it even if the event is at its highest already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    pub(super) fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// What is ready when it is set.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.event, PollFlags::IN)
    }
}

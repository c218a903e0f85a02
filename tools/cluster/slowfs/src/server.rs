//! The servers that all clients share: they count requests, and hold each answer back until it is due.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::service::{Access, Served, Service, Slowness};

/// What a client has asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    /// Requests without data.
    others: u64,
    /// Locks that were called back from other clients for it.
    callbacks: u64,
}

pub(crate) struct Server {
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    service: Service,
    counts: Vec<Counts>,
}

impl Server {
    pub(crate) fn new(slowness: Slowness, clients: usize) -> Server {
        let state =
            State { service: Service::new(slowness, clients), counts: vec![Counts::default(); clients] };
        Server { begun: Instant::now(), state: Mutex::new(state) }
    }

    /// Carries out a request without data, and comes back when its answer is due.
    pub(crate) fn plain<T>(&self, client: usize, carry_out: impl FnOnce() -> T) -> T {
        let due = {
            let mut state = self.lock();
            state.counts[client].others += 1;
            state.service.plain(self.now()).end
        };
        let result = carry_out();
        self.wait(due);
        result
    }

    /// Carries out a read or write, and comes back when its answer is due.
    pub(crate) fn access<T>(&self, access: Access, carry_out: impl FnOnce() -> T) -> T {
        let due = {
            let mut state = self.lock();
            let Served { end, callbacks } = state.service.access(self.now(), access);
            let counts = &mut state.counts[access.client];
            counts.callbacks += callbacks;
            let (requests, bytes) = if access.writes {
                (&mut counts.writes, &mut counts.written_bytes)
            } else {
                (&mut counts.reads, &mut counts.read_bytes)
            };
            *requests += 1;
            *bytes += access.bytes;
            end
        };
        let result = carry_out();
        self.wait(due);
        result
    }

    /// A file was removed.
    pub(crate) fn forget(&self, file: u64) {
        self.lock().service.forget(file);
    }

    /// What each client has asked for: a line of names, then a line a client.
    pub(crate) fn counts(&self) -> String {
        let mut text = "client reads read-bytes writes written-bytes others callbacks\n".to_owned();
        for (client, counts) in self.lock().counts.iter().enumerate() {
            let Counts { reads, read_bytes, writes, written_bytes, others, callbacks } = counts;
            let client = client + 1;
            let _ =
                writeln!(text, "{client} {reads} {read_bytes} {writes} {written_bytes} {others} {callbacks}");
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn wait(&self, due: u64) {
        if let Some(left) = due.checked_sub(self.now()) {
            sleep(Duration::from_nanos(left));
        }
    }
}

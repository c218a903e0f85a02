//! When a slow file system answers: its links, its servers' threads, and its locks. No clock, thread or file is in here.
//!
//! Times are nanoseconds. A request is queued at once for everything that it needs, so its end is known when it arrives.

use std::collections::HashMap;

use pio_machine::{Bandwidth, Duration};

/// How slow the file system is. What is not set takes no time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slowness {
    /// Of every request to the servers.
    pub latency: Duration,
    /// Of the link of each client.
    pub bandwidth: Option<Bandwidth>,
    /// Of the servers, for all clients together.
    pub total_bandwidth: Option<Bandwidth>,
    /// Requests that the servers carry out at the same time; the others wait.
    pub streams: Option<usize>,
    /// Locks of clients on what they write.
    pub locks: Option<Locks>,
}

/// A client that wrote keeps a lock, until another client wants to read or write there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locks {
    /// Bytes of a file that a lock covers; none for a whole file (one writer at a time).
    pub strip: Option<u64>,
    /// What it takes to call a lock back from the client that holds it.
    pub callback: Duration,
}

/// Bytes of a file that a client reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub client: usize,
    pub file: u64,
    pub offset: u64,
    pub bytes: u64,
    pub writes: bool,
}

/// The file system's links, threads and locks, and until when they are taken.
#[derive(Debug)]
pub(crate) struct Service {
    slowness: Slowness,
    links: Vec<u64>,
    servers: u64,
    streams: Vec<u64>,
    locks: HashMap<(u64, u64), Lock>,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    holder: usize,
    /// When the last request under it ends.
    busy_until: u64,
}

/// How a request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// When its answer is to be given.
    pub end: u64,
    /// Locks that had to be called back from other clients.
    pub callbacks: u64,
}

impl Service {
    pub(crate) fn new(slowness: Slowness, clients: usize) -> Service {
        let streams = vec![0; slowness.streams.unwrap_or(0)];
        Service { slowness, links: vec![0; clients], servers: 0, streams, locks: HashMap::new() }
    }

    /// A request without data (open, stat, sync …) that arrives now.
    pub(crate) fn plain(&mut self, now: u64) -> Served {
        Served { end: self.transfer(now, None, 0), callbacks: 0 }
    }

    /// A read or write that arrives now.
    pub(crate) fn access(&mut self, now: u64, access: Access) -> Served {
        let (granted, callbacks) = self.lock(now, &access);
        let end = self.transfer(granted, Some(access.client), access.bytes);
        for strip in self.strips(&access) {
            if let Some(lock) = self.locks.get_mut(&(access.file, strip)) {
                lock.busy_until = lock.busy_until.max(end);
            }
        }
        Served { end, callbacks }
    }

    /// Nobody holds a lock on a file any more: it was removed.
    pub(crate) fn forget(&mut self, file: u64) {
        self.locks.retain(|(locked, _), _| *locked != file);
    }

    /// When an access has the locks that it needs, and how many were called back from others. Who reads takes a lock
    /// from a writer and keeps none.
    fn lock(&mut self, now: u64, access: &Access) -> (u64, u64) {
        let Some(Locks { callback, .. }) = self.slowness.locks else { return (now, 0) };
        let (mut granted, mut callbacks) = (now, 0);
        for strip in self.strips(access) {
            let key = (access.file, strip);
            let mut from = now;
            if let Some(lock) = self.locks.get(&key).filter(|lock| lock.holder != access.client) {
                from = now.max(lock.busy_until) + nanoseconds(callback);
                callbacks += 1;
                self.locks.remove(&key);
            }
            if access.writes {
                self.locks.entry(key).or_insert(Lock { holder: access.client, busy_until: from });
            }
            granted = granted.max(from);
        }
        (granted, callbacks)
    }

    fn strips(&self, access: &Access) -> std::ops::RangeInclusive<u64> {
        match self.slowness.locks.and_then(|locks| locks.strip) {
            Some(strip) => access.offset / strip..=(access.offset + access.bytes.saturating_sub(1)) / strip,
            None => 0..=0,
        }
    }

    /// When so many bytes have gone through a stream of the servers, their network and the client's link.
    fn transfer(&mut self, now: u64, client: Option<usize>, bytes: u64) -> u64 {
        let latency = nanoseconds(self.slowness.latency);
        let stream = (0..self.streams.len()).min_by_key(|&stream| self.streams[stream]);
        let begin = stream.map_or(now, |stream| self.streams[stream].max(now));
        let mut moved = queue(&mut self.servers, begin, self.slowness.total_bandwidth, bytes);
        if let Some(client) = client {
            moved = moved.max(queue(&mut self.links[client], begin, self.slowness.bandwidth, bytes));
        }
        let end = moved + latency;
        if let Some(stream) = stream {
            self.streams[stream] = end;
        }
        end
    }
}

/// When bytes have passed what is taken until `free`.
fn queue(free: &mut u64, begin: u64, bandwidth: Option<Bandwidth>, bytes: u64) -> u64 {
    match bandwidth {
        Some(bandwidth) if bytes > 0 => {
            *free = (*free).max(begin) + nanoseconds(bandwidth.time_of(bytes));
            *free
        }
        _ => begin,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    (duration.seconds() * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn slowness() -> Slowness {
        Slowness { latency: Duration::from_seconds(1e-3), ..Slowness::default() }
    }

    fn bandwidth(mb_per_s: u64) -> Option<Bandwidth> {
        Some(Bandwidth::from_bytes_per_second(mb_per_s * 1_000_000))
    }

    fn write(client: usize, offset: u64, bytes: u64) -> Access {
        Access { client, file: 1, offset, bytes, writes: true }
    }

    #[test]
    fn a_request_takes_its_latency_and_its_bytes() {
        let mut service = Service::new(Slowness { bandwidth: bandwidth(100), ..slowness() }, 2);
        assert_eq!(service.plain(5).end, 5 + MS);
        assert_eq!(service.access(0, write(0, 0, 1_000_000)).end, 11 * MS);
        // The second waits for the link, not for the first one's latency; another client has a link of its own.
        assert_eq!(service.access(0, write(0, 1_000_000, 1_000_000)).end, 21 * MS);
        assert_eq!(service.access(0, write(1, 0, 1_000_000)).end, 11 * MS);
    }

    #[test]
    fn clients_share_the_servers() {
        let slowness = Slowness { bandwidth: bandwidth(100), total_bandwidth: bandwidth(100), ..slowness() };
        let mut service = Service::new(slowness, 2);
        assert_eq!(service.access(0, write(0, 0, 1_000_000)).end, 11 * MS);
        assert_eq!(service.access(0, write(1, 0, 1_000_000)).end, 21 * MS);
    }

    #[test]
    fn streams_are_served_side_by_side() {
        let mut service = Service::new(Slowness { streams: Some(2), ..slowness() }, 1);
        let ends = [0; 5].map(|now| service.plain(now).end);
        assert_eq!(ends, [MS, MS, 2 * MS, 2 * MS, 3 * MS]);
    }

    #[test]
    fn a_lock_is_called_back_from_who_wrote_last() {
        let locks = Some(Locks { strip: Some(100), callback: Duration::from_seconds(5e-3) });
        let mut service = Service::new(Slowness { locks, ..slowness() }, 2);
        assert_eq!(service.access(0, write(0, 0, 100)), Served { end: MS, callbacks: 0 });
        assert_eq!(service.access(0, write(0, 50, 50)), Served { end: MS, callbacks: 0 });
        // The other strip is free; the strip of both waits for the request under way, then for the callback.
        assert_eq!(service.access(0, write(1, 100, 100)), Served { end: MS, callbacks: 0 });
        assert_eq!(service.access(0, write(1, 99, 2)), Served { end: 7 * MS, callbacks: 1 });
        assert_eq!(service.access(10 * MS, write(1, 0, 1)), Served { end: 11 * MS, callbacks: 0 });
        // Who reads takes it from the writer, and keeps none.
        let read = Access { writes: false, ..write(0, 0, 200) };
        assert_eq!(service.access(20 * MS, read), Served { end: 26 * MS, callbacks: 2 });
        assert_eq!(service.access(30 * MS, read), Served { end: 31 * MS, callbacks: 0 });
    }

    #[test]
    fn one_writer_a_file() {
        let locks = Some(Locks { strip: None, callback: Duration::from_seconds(0.0) });
        let mut service = Service::new(Slowness { locks, ..slowness() }, 2);
        assert_eq!(service.access(0, write(0, 0, 1)).end, MS);
        assert_eq!(service.access(0, write(1, 1 << 40, 1)).end, 2 * MS);
        service.forget(1);
        assert_eq!(service.access(0, write(0, 0, 1)).end, MS);
    }
}

//! What the I/O servers of a store cost this machine, as a machine description says it.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use pio_machine::{Bandwidth, CallCost, Duration, IoNodePlacement, IoNodes, Link, Machine, Service, Storage};
use pio_store::client::{Mode, Options, Store, StoreFile, StripingHints};
use pio_store::transport::Transport;
use rustix::time::{ClockId, clock_gettime};

const SMALL_BYTES: usize = 8;
const LARGE_BYTES: usize = 1 << 20;
const SMALL_REQUESTS: Range<u64> = 0..500;
const LARGE_REQUESTS: Range<u64> = 0..32;
const OPENS: usize = 20;

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    storage: 8-byte and 1 MiB requests of one client to one server of the store, there and back, without the client's\n\
    processor time, which is that of calls.read and calls.write. The way to the server is part of its time, unless\n\
    messages between nodes were measured, too: then it is that of network.link.\n\
    storage.io.shares-cores: whether all servers can be reached through the memory of this machine.";

/// Puts the files of a measured machine on the servers of the store that a file describes.
///
/// # Errors
/// If a server cannot be reached, or does not do what it is asked.
pub(crate) fn measure(machine: &mut Machine, description: &Path) -> Result<()> {
    let store = &Store::connect(description)?;
    let path = format!(".pioscope-calibrate-{}", std::process::id());
    let mode = Mode { create: true, exclusive: true };
    // On one server, so that a request is one server's.
    let file = store.open(&path, mode, StripingHints { factor: 1, ..StripingHints::default() })?;
    let measured = requests(&file).and_then(|(write, read)| {
        file.close()?;
        Ok((write, read, opens(store, &path)?))
    });
    store.remove(&path)?;
    let (write, read, (open, close)) = measured?;
    let shares_cores = are_here(description);
    (machine.calls.write, machine.calls.read) = (write.own(), read.own());
    let link = Some(&machine.network.link).filter(|_| machine.nodes.count > 1);
    let (write, read) = (write.of_server(link), read.of_server(link));
    machine.source.push_str(&format!(", on {} servers of a store", store.servers()));
    machine.storage = Storage::Striped {
        io: IoNodes {
            count: store.servers(),
            placement: IoNodePlacement::Distributed,
            dedicated: !shares_cores,
            shares_cores,
        },
        strip: store.strip_bytes(),
        read,
        write,
        open,
        close,
        pieces: None,
        takes_views: true,
    };
    Ok(())
}

/// Whether all servers of a store are on this machine: then they can be reached through its memory.
fn are_here(description: &Path) -> bool {
    let timeout = std::time::Duration::from_secs(1);
    let options = Options { transport: Some(Transport::Shared), timeout, ..Options::default() };
    Store::connect_with(description, options).is_ok_and(|store| store.usage().is_ok())
}

/// Seconds of a request: from beginning to end, and those in which the client itself worked.
#[derive(Clone, Copy)]
struct Took {
    all: f64,
    own: f64,
}

/// A small and a large request.
struct Requests {
    small: Took,
    large: Took,
}

impl Requests {
    /// Processor time of the client.
    fn own(&self) -> CallCost {
        let Service { request, bandwidth } = service(self.small.own, self.large.own);
        CallCost { call: request, bandwidth, sizes: Vec::new() }
    }

    /// The rest: the server's time, and that on the way, unless the links of the network are known.
    fn of_server(&self, link: Option<&Link>) -> Service {
        let rest = |took: Took, bytes: usize| {
            let way = link.map_or(0.0, |link| {
                // There and back, over two links each; the bytes go one way.
                4.0 * link.latency.seconds() + link.bandwidth.time_of(bytes as u64).seconds()
            });
            (took.all - took.own - way).max(0.0)
        };
        service(rest(self.small, SMALL_BYTES), rest(self.large, LARGE_BYTES))
    }
}

fn requests(file: &StoreFile) -> Result<(Requests, Requests)> {
    let mut large = vec![1_u8; LARGE_BYTES];
    let mut small = [1_u8; SMALL_BYTES];
    let writes = median(LARGE_REQUESTS, |index| Ok(file.write_at(index * LARGE_BYTES as u64, &large)?))?;
    let reads = median(LARGE_REQUESTS, |index| {
        Ok(file.read_at(index * LARGE_BYTES as u64, &mut large).map(drop)?)
    })?;
    let small_writes = median(SMALL_REQUESTS, |index| Ok(file.write_at(index * 4096, &small)?))?;
    let small_reads =
        median(SMALL_REQUESTS, |index| Ok(file.read_at(index * 4096, &mut small).map(drop)?))?;
    Ok((Requests { small: small_writes, large: writes }, Requests { small: small_reads, large: reads }))
}

/// Opening and closing a file into which something was written: closing makes it durable.
fn opens(store: &Store, path: &str) -> Result<(Duration, Duration)> {
    let (mut opens, mut closes) = (Vec::new(), Vec::new());
    for _ in 0..OPENS {
        let start = Instant::now();
        let file = store.open(path, Mode::default(), StripingHints::default())?;
        opens.push(start.elapsed().as_secs_f64());
        file.write_at(0, &[1; SMALL_BYTES])?;
        let start = Instant::now();
        file.close()?;
        closes.push(start.elapsed().as_secs_f64());
    }
    Ok((Duration::from_seconds(middle(opens)), Duration::from_seconds(middle(closes))))
}

/// From the seconds of a small and of a large request.
fn service(small: f64, large: f64) -> Service {
    let per_byte = ((large - small) / (LARGE_BYTES - SMALL_BYTES) as f64).max(1e-12);
    Service {
        request: Duration::from_seconds((small - per_byte * SMALL_BYTES as f64).max(0.0)),
        bandwidth: Bandwidth::from_bytes_per_second((1.0 / per_byte) as u64),
    }
}

/// The middle of the seconds that each call took, and of those of them in which this thread worked.
fn median(calls: Range<u64>, mut call: impl FnMut(u64) -> Result<()>) -> Result<Took> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for index in calls {
        let (start, worked) = (Instant::now(), processor_seconds());
        call(index)?;
        own.push(processor_seconds() - worked);
        all.push(start.elapsed().as_secs_f64());
    }
    Ok(Took { all: middle(all), own: middle(own) })
}

/// That this thread has had.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn middle(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requests_time_is_the_clients_and_the_servers() {
        let bytes = (LARGE_BYTES - SMALL_BYTES) as f64;
        let requests = Requests {
            small: Took { all: 30e-6, own: 10e-6 },
            large: Took { all: 30e-6 + 3e-9 * bytes, own: 10e-6 + 1e-9 * bytes },
        };
        let (own, server) = (requests.own(), requests.of_server(None));
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(own.call.seconds(), 10e-6) && near(server.request.seconds(), 20e-6));
        assert!(near(own.moving(1 << 20).seconds(), 1e-9 * bytes));
        assert!(near(server.bandwidth.bytes_per_second() as f64, 0.5e9));
        // Of the 20 us of a small request 12 are the way's, of the 2 ns of a byte 1.
        let latency = Duration::from_picoseconds(3_000_000);
        let link = Link { bandwidth: Bandwidth::from_bytes_per_second(1_000_000_000), latency };
        let server = requests.of_server(Some(&link));
        assert!(near(server.request.seconds(), 8e-6), "{server:?}");
        assert!(near(server.bandwidth.bytes_per_second() as f64, 1e9), "{server:?}");
    }
}

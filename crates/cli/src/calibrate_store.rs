//! What the I/O servers of a store cost this machine, as a machine description says it.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use pio_machine::{Bandwidth, Duration, IoNodePlacement, IoNodes, Machine, Service, Storage};
use pio_store::client::{Mode, Store, StoreFile, StripingHints};

const SMALL_BYTES: usize = 8;
const LARGE_BYTES: usize = 1 << 20;
const SMALL_REQUESTS: Range<u64> = 0..500;
const LARGE_REQUESTS: Range<u64> = 0..32;
const OPENS: usize = 20;

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    storage: 8-byte and 1 MiB requests of one client to one server of the store, there and back. The way to the server is\n\
    part of its time; that servers and ranks take processors from each other is not measured.";

/// Puts the files of a measured machine on the servers of a store.
///
/// # Errors
/// If a server cannot be reached, or does not do what it is asked.
pub(crate) fn measure(machine: &mut Machine, store: &Store) -> Result<()> {
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
    machine.source.push_str(&format!(", on {} servers of a store", store.servers()));
    machine.storage = Storage::Striped {
        io: IoNodes { count: store.servers(), placement: IoNodePlacement::Clustered, dedicated: true },
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

fn requests(file: &StoreFile) -> Result<(Service, Service)> {
    let mut large = vec![1_u8; LARGE_BYTES];
    let mut small = [1_u8; SMALL_BYTES];
    let writes = median(LARGE_REQUESTS, |index| Ok(file.write_at(index * LARGE_BYTES as u64, &large)?))?;
    let reads = median(LARGE_REQUESTS, |index| {
        Ok(file.read_at(index * LARGE_BYTES as u64, &mut large).map(drop)?)
    })?;
    let small_writes = median(SMALL_REQUESTS, |index| Ok(file.write_at(index * 4096, &small)?))?;
    let small_reads =
        median(SMALL_REQUESTS, |index| Ok(file.read_at(index * 4096, &mut small).map(drop)?))?;
    Ok((service(small_writes, writes), service(small_reads, reads)))
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

/// The middle of the seconds that each call took.
fn median(calls: Range<u64>, mut call: impl FnMut(u64) -> Result<()>) -> Result<f64> {
    let mut seconds = Vec::new();
    for index in calls {
        let start = Instant::now();
        call(index)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(middle(seconds))
}

fn middle(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

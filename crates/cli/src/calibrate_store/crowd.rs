//! Requests to servers that work on this machine's own cores, of so many clients that all cores are busy.

use std::ops::Range;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pio_layout::{Datatype, View};
use pio_machine::{Bandwidth, Copy as Copies, Pieces};
use pio_store::client::{Mode, Store, StoreFile, StripingHints};

use super::{LARGE_BYTES, SMALL_APART, SMALL_BYTES, Took};
use crate::benchmark::refuse_to_go_on;
use crate::measured::processor_seconds;
use crate::median::median;
use crate::store;

const MOST_CLIENTS: usize = 16;
/// What lies before each round, and how often small and large requests are made.
const PAUSE: Duration = Duration::from_millis(1);
const SMALL: Rounds = Rounds { count: 15, calls: 125 };
const LARGE: Rounds = Rounds { count: 9, calls: 1 };
/// Where large requests begin in a file.
const LARGE_FROM: u64 = 64 << 20;
/// Pieces of a large request, with as much between them.
const COARSE: u64 = 4096;
const FINE: u64 = 256;

/// What is measured, small requests first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A write of a few bytes to a new page.
    FirstWrite,
    /// To a page that is there.
    Write,
    Read,
    /// To the server that the one before was to.
    WriteThere,
    ReadThere,
    /// A write of all that the large ones after it go to.
    Fill,
    LargeWrite,
    LargeRead,
    CoarseWrite,
    CoarseRead,
    FineWrite,
    FineRead,
}

const SMALL_KINDS: usize = 5;

impl Kind {
    const ALL: [Kind; 12] = [
        Kind::FirstWrite,
        Kind::Write,
        Kind::Read,
        Kind::WriteThere,
        Kind::ReadThere,
        Kind::Fill,
        Kind::LargeWrite,
        Kind::LargeRead,
        Kind::CoarseWrite,
        Kind::CoarseRead,
        Kind::FineWrite,
        Kind::FineRead,
    ];
}

/// Processor time of requests, the client's and the servers', by kind.
#[derive(Clone, Copy)]
pub(super) struct Crowd([Took; Kind::ALL.len()]);

impl Crowd {
    pub(super) fn took(&self, kind: Kind) -> Took {
        self.0[kind as usize]
    }

    /// What a request takes longer that is to another server than the one before: seconds, the mean of a write and a read.
    pub(super) fn change(&self) -> f64 {
        let longer = |kind, there| self.took(kind).all - self.took(there).all;
        f64::midpoint(longer(Kind::Write, Kind::WriteThere), longer(Kind::Read, Kind::ReadThere)).max(0.0)
    }

    /// What pieces cost in requests that name many.
    pub(super) fn pieces(&self) -> Pieces {
        let count = |each: u64| (LARGE_BYTES as u64 / each) as f64;
        let more = count(FINE) - count(COARSE);
        // Beyond what the same bytes take at one place.
        let beyond = |kind, dense| {
            let (pieces, dense): (Took, Took) = (self.took(kind), self.took(dense));
            (pieces.all - pieces.own - (dense.all - dense.own)).max(0.0)
        };
        let of_both =
            |write, read| f64::midpoint(beyond(write, Kind::LargeWrite), beyond(read, Kind::LargeRead));
        let coarse = of_both(Kind::CoarseWrite, Kind::CoarseRead);
        let fine = of_both(Kind::FineWrite, Kind::FineRead);
        let piece = ((fine - coarse) / more).max(0.0);
        let bytes = (coarse - piece * count(COARSE)).max(LARGE_BYTES as f64 * 1e-12);
        let own = |fine, dense| ((self.took(fine).own - self.took(dense).own) / count(FINE)).max(0.0);
        let seconds = pio_machine::Duration::from_seconds;
        Pieces {
            read: seconds(own(Kind::FineRead, Kind::LargeRead)),
            write: seconds(own(Kind::FineWrite, Kind::LargeWrite)),
            server: Copies {
                bandwidth: Bandwidth::from_bytes_per_second((LARGE_BYTES as f64 / bytes) as u64),
                piece: seconds(piece),
            },
        }
    }
}

/// As many clients as cores, and twice as many, but 16 at most, make requests; of each what lies in the middle. Which cores the
/// servers' threads find beside their clients, and how soon, differs from run to run, and no less in programs.
pub(super) fn measure(description: &Path, path: &str) -> Result<Crowd> {
    let cores = thread::available_parallelism()?.get();
    let of = |clients: usize| requests_of(clients, cores, description, path);
    let (few, many) = (cores.min(MOST_CLIENTS), (2 * cores).min(MOST_CLIENTS));
    let few_took = of(few)?;
    let many_took = if many > few { of(many)? } else { few_took };
    Ok(Crowd(Kind::ALL.map(|kind| {
        let (few, many) = (few_took.took(kind), many_took.took(kind));
        Took { all: f64::midpoint(few.all, many.all), own: f64::midpoint(few.own, many.own) }
    })))
}

/// So many clients at once, each with a file of its own.
fn requests_of(clients: usize, cores: usize, description: &Path, path: &str) -> Result<Crowd> {
    let opened = (0..clients).map(|number| Client::open(description, format!("{path}-{number}")));
    let opened = opened.collect::<Result<Vec<Client>>>()?;
    let meet = &Barrier::new(clients);
    let each = thread::scope(|scope| {
        let clients: Vec<_> = opened.iter().map(|client| scope.spawn(|| client.requests(meet))).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect::<Result<Vec<_>>>()
    })?;
    // All cores are busy, with requests at the rates of all clients together.
    Ok(Crowd(Kind::ALL.map(|kind| {
        let rates = each.iter().map(|crowd| 1.0 / crowd.took(kind).all);
        Took {
            all: cores.min(clients) as f64 / rates.sum::<f64>(),
            own: median(each.iter().map(|crowd| crowd.took(kind).own).collect()),
        }
    })))
}

/// A client, and its file, which goes with it.
pub(super) struct Client {
    store: Store,
    file: StoreFile,
    path: String,
}

impl Client {
    pub(super) fn open(description: &Path, path: String) -> Result<Client> {
        let store = store::connect(description, None)?;
        let file = store.open(&path, Mode { create: true, exclusive: true }, StripingHints::default())?;
        Ok(Client { store, file, path })
    }

    /// Rounds of requests beside the other clients'. Each takes the servers in turn, as programs go through the strips of a file,
    /// and before each the clients meet, as programs do between their calls: by then threads sleep, and some were moved.
    fn requests(&self, meet: &Barrier) -> Result<Crowd> {
        let mut data = vec![1; 2 * LARGE_BYTES];
        let mut took = Kind::ALL.map(|_| Means::default());
        // Large requests are from another time: after them, threads are elsewhere.
        let (small, large) = Kind::ALL.split_at(SMALL_KINDS);
        for (kinds, rounds) in [(small, SMALL), (large, LARGE)] {
            for (round, kind) in
                (0..rounds.count).flat_map(|round| kinds.iter().map(move |kind| (round, *kind)))
            {
                meet.wait();
                // Who fails meets the others all the same, and asks for no more.
                if took.iter().any(|took| took.failed.is_some()) {
                    continue;
                }
                thread::sleep(PAUSE);
                let calls = round * rounds.calls..(round + 1) * rounds.calls;
                took[kind as usize].add(calls, |index| self.request(kind, index, &mut data));
            }
        }
        let mut found = [Took { all: 0.0, own: 0.0 }; Kind::ALL.len()];
        for (found, took) in found.iter_mut().zip(took) {
            *found = took.middle()?;
        }
        Ok(Crowd(found))
    }

    pub(super) fn servers(&self) -> u64 {
        self.store.servers().into()
    }

    /// The request of a kind with this number, with as many bytes of `data` as it has.
    pub(super) fn request(&self, kind: Kind, index: u64, data: &mut [u8]) -> Result<()> {
        let (small, large) = (self.place(index), LARGE_FROM + index * 2 * LARGE_BYTES as u64);
        // Pages that the ones before went to, of one server.
        let servers = self.servers();
        let there = self.place(index / servers * servers);
        let positions = 0..LARGE_BYTES as u64;
        match kind {
            Kind::FirstWrite | Kind::Write => self.file.write_at(small, &data[..SMALL_BYTES])?,
            Kind::Read => drop(self.file.read_at(small, &mut data[..SMALL_BYTES])?),
            Kind::WriteThere => self.file.write_at(there, &data[..SMALL_BYTES])?,
            Kind::ReadThere => drop(self.file.read_at(there, &mut data[..SMALL_BYTES])?),
            Kind::Fill => self.file.write_at(large, data)?,
            Kind::LargeWrite => self.file.write_at(large, &data[..LARGE_BYTES])?,
            Kind::LargeRead => drop(self.file.read_at(large, &mut data[..LARGE_BYTES])?),
            Kind::CoarseWrite => {
                self.file.write(&pieces(COARSE, large)?, positions, &&data[..LARGE_BYTES])?
            }
            Kind::FineWrite => self.file.write(&pieces(FINE, large)?, positions, &&data[..LARGE_BYTES])?,
            Kind::CoarseRead => {
                self.file.read(&pieces(COARSE, large)?, positions, &mut &mut data[..LARGE_BYTES])?;
            }
            Kind::FineRead => {
                self.file.read(&pieces(FINE, large)?, positions, &mut &mut data[..LARGE_BYTES])?;
            }
        }
        Ok(())
    }

    /// Where in the file a request is: in a page of its own, on another server than the one before.
    fn place(&self, index: u64) -> u64 {
        let (servers, strip) = (self.servers(), self.store.strip_bytes());
        // A strip has several pages, or a page of a server's part several strips.
        let (pages, strips) = ((strip / SMALL_APART).max(1), SMALL_APART.div_ceil(strip));
        let (page, server) = (index / servers, index % servers);
        (page / pages * strips * servers + server) * strip + page % pages * SMALL_APART
    }
}

/// A view of pieces from there on, each as long as what lies between them.
fn pieces(bytes: u64, from: u64) -> Result<View> {
    let count = LARGE_BYTES as u64 / bytes;
    Ok(View::new(from, 1, Datatype::vector(count, bytes, 2 * bytes as i64, &Datatype::bytes(1))?)?)
}

impl Drop for Client {
    fn drop(&mut self) {
        // Who could not reach it cannot remove it.
        let _ = self.store.remove(&self.path);
    }
}

/// How often requests of a kind are made.
#[derive(Clone, Copy)]
struct Rounds {
    count: u64,
    /// Of each client in a round.
    calls: u64,
}

/// What requests of one kind took, in the mean of each round.
#[derive(Default)]
struct Means {
    all: Vec<f64>,
    own: Vec<f64>,
    failed: Option<anyhow::Error>,
}

impl Means {
    fn add(&mut self, mut calls: Range<u64>, call: impl FnMut(u64) -> Result<()>) {
        let count = (calls.end - calls.start) as f64;
        if let Err(error) = refuse_to_go_on() {
            self.failed.get_or_insert(error);
        }
        let (start, worked) = (Instant::now(), processor_seconds());
        if let Err(error) = calls.try_for_each(call) {
            self.failed.get_or_insert(error);
        }
        self.own.push((processor_seconds() - worked) / count);
        self.all.push(start.elapsed().as_secs_f64() / count);
    }

    /// Those in the middle.
    fn middle(self) -> Result<Took> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(Took { all: median(self.all), own: median(self.own) }),
        }
    }
}

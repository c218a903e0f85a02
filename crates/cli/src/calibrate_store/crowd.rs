//! Small requests to servers that work on this machine's own cores, of so many clients that all cores are busy.

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pio_store::client::{Mode, Store, StoreFile, StripingHints};

use super::{SMALL_APART, SMALL_BYTES, Took, middle};
use crate::measured::processor_seconds;

const MOST_CLIENTS: usize = 16;
/// Requests of each client in a round, rounds, and what lies between.
const CALLS: u64 = 125;
const ROUNDS: u64 = 15;
const PAUSE: Duration = Duration::from_millis(1);

/// Processor time of small requests, the client's and the servers'.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    /// A write to a new page of the file.
    pub(super) first_write: Took,
    /// A write to a page that it has.
    pub(super) write: Took,
    /// A read.
    pub(super) read: Took,
}

/// As many clients as cores, and twice as many, make requests; of each what lies in the middle. Which cores the servers' threads
/// find beside their clients, and how soon, differs from run to run, and no less in programs.
pub(super) fn measure(description: &Path, path: &str) -> Result<Crowd> {
    let cores = thread::available_parallelism()?.get();
    let of = |clients: usize| requests_of(clients.min(MOST_CLIENTS), cores, description, path);
    let (few, many) = (of(cores)?, of(2 * cores)?);
    let between = |kind: fn(&Crowd) -> Took| Took {
        all: f64::midpoint(kind(&few).all, kind(&many).all),
        own: f64::midpoint(kind(&few).own, kind(&many).own),
    };
    Ok(Crowd {
        first_write: between(|took| took.first_write),
        write: between(|took| took.write),
        read: between(|took| took.read),
    })
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
    let of_all = |kind: fn(&Crowd) -> Took| Took {
        all: cores.min(clients) as f64 / each.iter().map(|took| 1.0 / kind(took).all).sum::<f64>(),
        own: middle(each.iter().map(|took| kind(took).own).collect()),
    };
    Ok(Crowd {
        first_write: of_all(|took| took.first_write),
        write: of_all(|took| took.write),
        read: of_all(|took| took.read),
    })
}

/// A client, and its file, which goes with it.
struct Client {
    store: Store,
    file: StoreFile,
    path: String,
}

impl Client {
    fn open(description: &Path, path: String) -> Result<Client> {
        let store = Store::connect(description)?;
        let file = store.open(&path, Mode { create: true, exclusive: true }, StripingHints::default())?;
        Ok(Client { store, file, path })
    }

    /// Rounds of requests beside the other clients'. Each takes the servers in turn, as programs go through the strips of a file,
    /// and before each the clients meet, as programs do between their calls: by then threads sleep, and some were moved.
    fn requests(&self, meet: &Barrier) -> Result<Crowd> {
        let mut data = [1; SMALL_BYTES];
        let mut took: [Rounds; 3] = Default::default();
        for round in 0..ROUNDS {
            for (kind, took) in took.iter_mut().enumerate() {
                // Who fails meets the others all the same.
                meet.wait();
                thread::sleep(PAUSE);
                took.add(round * CALLS, |index| match kind {
                    // At first pages are new.
                    0 | 1 => Ok(self.file.write_at(self.place(index), &data)?),
                    _ => Ok(self.file.read_at(self.place(index), &mut data).map(drop)?),
                });
            }
        }
        let [first_write, write, read] = took.map(Rounds::middle);
        Ok(Crowd { first_write: first_write?, write: write?, read: read? })
    }

    /// Where in the file a request is: in a page of its own, on another server than the one before.
    fn place(&self, index: u64) -> u64 {
        let (servers, strip) = (u64::from(self.store.servers()), self.store.strip_bytes());
        let pages = (strip / SMALL_APART).max(1);
        let (page, server) = (index / servers, index % servers);
        (page / pages * servers + server) * strip + page % pages * SMALL_APART
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Who could not reach it cannot remove it.
        let _ = self.store.remove(&self.path);
    }
}

/// What requests of one kind took, in the mean of each round.
#[derive(Default)]
struct Rounds {
    all: Vec<f64>,
    own: Vec<f64>,
    failed: Option<anyhow::Error>,
}

impl Rounds {
    fn add(&mut self, first: u64, mut call: impl FnMut(u64) -> Result<()>) {
        let (start, worked) = (Instant::now(), processor_seconds());
        if let Err(error) = (first..first + CALLS).try_for_each(&mut call) {
            self.failed.get_or_insert(error);
        }
        self.own.push((processor_seconds() - worked) / CALLS as f64);
        self.all.push(start.elapsed().as_secs_f64() / CALLS as f64);
    }

    /// Those in the middle.
    fn middle(self) -> Result<Took> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(Took { all: middle(self.all), own: middle(self.own) }),
        }
    }
}

//! Small requests to servers that work on this machine's own cores, of so many clients that all cores are busy.

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::Result;
use pio_store::client::{Mode, Store, StoreFile};

use super::{ON_ONE_SERVER, SMALL_APART, SMALL_BYTES, Took, middle};
use crate::measured::processor_seconds;

const MOST_CLIENTS: usize = 16;
/// Requests of each client in a round, and rounds.
const CALLS: u64 = 250;
const ROUNDS: u64 = 9;

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

/// As many clients as cores, and twice as many, make requests. Of each, those that took less: where threads are on the same core
/// as their clients, nobody waits.
pub(super) fn measure(description: &Path, path: &str) -> Result<Crowd> {
    let cores = thread::available_parallelism()?.get();
    let of = |clients: usize| requests_of(clients.min(MOST_CLIENTS), cores, description, path);
    let (few, many) = (of(cores)?, of(2 * cores)?);
    let writers = if few.write.all < many.write.all { few } else { many };
    let readers = if few.read.all < many.read.all { few } else { many };
    Ok(Crowd { read: readers.read, ..writers })
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
        let file = store.open(&path, Mode { create: true, exclusive: true }, ON_ONE_SERVER)?;
        Ok(Client { store, file, path })
    }

    fn requests(&self, meet: &Barrier) -> Result<Crowd> {
        let mut data = [1; SMALL_BYTES];
        let [first_write, write, read] = [false, false, true].map(|reads| {
            // Who fails meets the others all the same.
            meet.wait();
            mean(|index| match reads {
                false => Ok(self.file.write_at(index * SMALL_APART, &data)?),
                true => Ok(self.file.read_at(index * SMALL_APART, &mut data).map(drop)?),
            })
        });
        Ok(Crowd { first_write: first_write?, write: write?, read: read? })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Who could not reach it cannot remove it.
        let _ = self.store.remove(&self.path);
    }
}

/// A call in the mean of a round of several, in the middle of the rounds: in the first, threads and clients look for processors.
fn mean(mut call: impl FnMut(u64) -> Result<()>) -> Result<Took> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (start, worked) = (Instant::now(), processor_seconds());
        for index in 0..CALLS {
            call(round * CALLS + index)?;
        }
        own.push((processor_seconds() - worked) / CALLS as f64);
        all.push(start.elapsed().as_secs_f64() / CALLS as f64);
    }
    Ok(Took { all: middle(all), own: middle(own) })
}

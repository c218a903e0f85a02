//! Opening a file: all ranks get the same one, or all an error.
//!
//! At first each rank opens the file on its own, and all tell each other what came of it: one collective call, if all
//! is well. It is not if a rank was ahead of what others still did to the file by its name: one may have deleted it
//! just then, so that some have opened the file that was there and some a new one, or not made it yet; or one may have
//! written to it, so that those that append found different ends. When all have told, all are here; so they do it again
//! in order, rank 0 first, and that counts. A file that must be new is only opened in order, and so is one whose
//! permissions the program sets: only the first to open it can tell whether it is new.
//!
//! Servers that do not answer are another matter: who has waited for them does not wait again.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pio_plan::Hints;
use pio_plan::cost::Terms;
use pio_store::client::StripingHints;

use crate::core::file::hints;
use crate::core::mpi::status::Status;
use crate::core::run::channel::Channel;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::storage::backend::{Storage, without_driver};
use crate::core::storage::mode::{Creates, Mode};
use crate::core::storage::servers;
use crate::core::storage::sidecar::SidecarPlace;
use crate::core::storage::sidecar::file::HiddenFile;
use crate::places::Places;

/// What a rank knows when the file is open.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What the ranks talk through.
    pub(crate) channel: Channel,
    /// The file.
    pub(crate) storage: Storage,
    /// Where file pointers begin, bytes.
    pub(crate) end: u64,
    /// Rank 0's hints.
    pub(crate) hints: Hints,
    /// Where the sidecar can be,
    pub(crate) place: SidecarPlace,
    /// and its number: the same on all ranks.
    pub(crate) number: u64,
    /// What I/O costs there: what rank 0 was told, if all were told the same.
    pub(crate) terms: Terms,
    /// Whether on any rank several threads may call MPI at once.
    pub(crate) several_threads: bool,
}

/// What a rank says: what came of it, which file it is, where its pointers begin, the mode, whether there can be a sidecar
/// beside the file, a number for that, what it was told of costs, which of those hold for the file, and whether several threads
/// may call MPI at once; hints; the last word is the channel's.
type Words = [u64; 10 + hints::WORDS];

/// Instead of the number of a status: a rank that waits for the others.
const WAITS: u64 = u64::MAX;

impl Opened {
    /// Opens the file at `path`. A file that is created gets `permissions`, if they are given. Collective.
    ///
    /// # Errors
    /// On all ranks what was wrong on the first that failed; [`Status::NotSame`] if the modes are not the same.
    pub(crate) fn new(
        pool: &ChannelPool,
        path: &CStr,
        mode: Mode,
        permissions: Option<u32>,
        wanted: &Hints,
        places: &Places,
    ) -> Result<Opened, Status> {
        let first = pool.is_first()?;
        let dealt = StripingHints {
            unit: wanted.striping_unit.unwrap_or(0),
            factor: wanted.striping_factor.unwrap_or(0),
        };
        let attempt = Attempt { path, mode, permissions, wanted: dealt };
        let waits = mode.creates(true) == Creates::New || permissions.is_some();
        let opened = if waits { Err(Status::Internal) } else { attempt.open(true) };
        let outcome = if waits { WAITS } else { outcome_of(&opened) };
        let on_servers = servers::name_of(path).is_ok_and(|name| name.is_some());
        let name = Path::new(OsStr::from_bytes(without_driver(path).to_bytes()));
        let beside = first && !on_servers && HiddenFile::fits_beside(name);
        let [a, b, c, d, e, f, g] = hints::words_of(wanted);
        let mine = [
            outcome,
            identity_of(&opened),
            end_of(&opened),
            mode.0 as u64,
            beside.into(),
            unique_number(),
            places.checksum(),
            // Rank 0's counts: the others need not ask the file system where they are.
            if first { places.number_of(name, on_servers) } else { 0 },
            pool.any_thread_calls()?.into(),
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            0,
        ];
        let (channel, all) = pool.open(mine)?;
        let opened = match verdict_of(&all) {
            Verdict::Done => opened,
            Verdict::Failed(status) => {
                first_says_why(&channel, all.iter().map(|[outcome, ..]| *outcome));
                Err(status)
            }
            Verdict::Again => {
                drop(opened);
                attempt.in_order(&channel)
            }
        };
        match opened {
            Ok((storage, end)) => {
                let [_, _, _, _, beside, number, told, place_number, _, hints @ .., _] = all[0];
                let same = all.iter().all(|[_, _, _, _, _, _, other, ..]| *other == told);
                let terms = places.of_number(place_number).filter(|_| same).cloned().unwrap_or_default();
                let place = place_of_sidecar(&channel, beside == 1, on_servers);
                let hints = hints::of_words(&hints);
                let several_threads = all.iter().any(|[_, _, _, _, _, _, _, _, threads, ..]| *threads != 0);
                Ok(Opened { channel, storage, end, hints, place, number, terms, several_threads })
            }
            Err(status) => {
                pool.put_back(channel);
                Err(status)
            }
        }
    }
}

/// What is to be opened.
struct Attempt<'a> {
    path: &'a CStr,
    mode: Mode,
    permissions: Option<u32>,
    wanted: StripingHints,
}

/// The file, and where pointers begin.
type Found = (Storage, u64);

impl Attempt<'_> {
    /// Opens the file; makes it, if it is to be made and this rank is the one to do it.
    fn open(&self, makes: bool) -> Result<Found, Status> {
        let Attempt { path, mode, permissions, wanted } = *self;
        if !mode.is_valid() || (mode.is_sequential() && mode.reads() && mode.writes()) {
            return Err(Status::Amode);
        }
        let name = Path::new(OsStr::from_bytes(without_driver(path).to_bytes()));
        let sets = makes && permissions.is_some() && !name.exists();
        let storage = Storage::open(path, mode, makes, wanted)?;
        if let (true, Some(permissions)) = (sets, permissions) {
            // A hint: if the file system will not have it, the file is there with the usual permissions.
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(permissions);
            let _ = std::fs::set_permissions(name, permissions);
        }
        // Now: as soon as all know that all have opened the file, some may write to it.
        let end = if mode.appends() { storage.size()? } else { 0 };
        Ok((storage, end))
    }

    /// Rank 0 opens first, when all are here.
    fn in_order(&self, channel: &Channel) -> Result<Found, Status> {
        let communicator = &channel.communicator;
        let mut opened = Err(Status::Internal);
        communicator.on_first(|| {
            opened = self.open(true);
            first_says_why(channel, [outcome_of(&opened)]);
            opened.as_ref().map(|_| 0).map_err(|status| *status)
        })?;
        if communicator.rank() != 0 {
            opened = self.open(false);
        }
        let all = communicator.gather([outcome_of(&opened), end_of(&opened)])?;
        first_says_why(channel, all.iter().map(|[outcome, _]| *outcome));
        all.iter().try_for_each(|[outcome, _]| Status::check(*outcome as i32))?;
        // Nobody writes before all are through here: a lesser end is what a node still remembers of the file.
        let end = all.iter().map(|[_, end]| *end).fold(0, u64::max);
        opened.map(|(storage, _)| (storage, end))
    }
}

enum Verdict {
    /// All have the same file, and found the same end of it: there is one shared pointer.
    Done,
    /// Nothing that is done in order would help: they did not open with the same mode, or servers do not answer.
    Failed(Status),
    /// Now that all are here.
    Again,
}

fn verdict_of(all: &[Words]) -> Verdict {
    let [_, file, end, mode, ..] = all[0];
    if all.iter().any(|[_, _, _, other, ..]| *other != mode) {
        return Verdict::Failed(Status::NotSame);
    }
    if all.iter().any(|[outcome, ..]| *outcome == Status::Unreachable as u64) {
        return Verdict::Failed(Status::Unreachable);
    }
    match all.iter().all(|[outcome, rest @ ..]| *outcome == 0 && rest.starts_with(&[file, end])) {
        true => Verdict::Done,
        false => Verdict::Again,
    }
}

/// Of the ranks that failed the first says what happened: most of the others would say the same.
fn first_says_why(channel: &Channel, outcomes: impl IntoIterator<Item = u64>) {
    let first = outcomes.into_iter().position(|outcome| outcome != 0);
    if first == Some(channel.communicator.rank() as usize) {
        servers::say_why();
    }
}

fn outcome_of(opened: &Result<Found, Status>) -> u64 {
    Status::number(opened.as_ref().map(|_| ()).map_err(|status| *status)) as u64
}

fn end_of(opened: &Result<Found, Status>) -> u64 {
    opened.as_ref().map_or(0, |(_, end)| *end)
}

fn identity_of(opened: &Result<Found, Status>) -> u64 {
    opened.as_ref().map_or(0, |(storage, _)| storage.identity())
}

fn place_of_sidecar(channel: &Channel, fits_beside: bool, on_servers: bool) -> SidecarPlace {
    let me = channel.communicator.rank();
    let one_node = (0..channel.communicator.ranks()).all(|rank| rank == me || channel.shares_with(rank));
    match (fits_beside, one_node) {
        (true, _) => SidecarPlace::Beside,
        (false, true) => SidecarPlace::Memory,
        (false, false) if on_servers => SidecarPlace::Servers,
        // Creating it will say what is wrong.
        (false, false) => SidecarPlace::Beside,
    }
}

/// Different for all files that processes of this system, or others that share file systems with it, open.
fn unique_number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

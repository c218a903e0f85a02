//! A store, as a client sees it: names, and the ways to its servers.

use std::collections::BTreeSet;
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pio_protocol::{
    Answer, Body, ClientId, Failure, FileId, FileRef, Name, PATH_BYTES, Placement, ReplyBody, Usage, owner_of,
};

use super::file::StoreFile;
use super::link::{Identity, Payload, ServerLink};
use super::options::Options;
use super::watch::{Watch, Watched};
use crate::auth::{Token, random};
use crate::config::{STRIP_BYTES, StoreDescription};
use crate::error::StoreError;
use crate::transport::{Traffic, Transport};

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Make it if there is none.
    pub create: bool,
    /// It must not be there yet.
    pub exclusive: bool,
}

/// How a new file is dealt out; 0: as the store's description says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StripingHints {
    /// Bytes of a strip.
    pub unit: u64,
    /// Over how many servers.
    pub factor: u32,
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its path.
    pub path: String,
    /// Its number.
    pub file: FileId,
    /// Its bytes.
    pub size: u64,
    /// Where they are.
    pub placement: Placement,
    /// Servers that have nothing of it, though it goes on behind the first byte that would be theirs: nothing was ever written
    /// there, or it is lost. A server that had only the file's end is not among them: without it the file is shorter.
    pub servers_without: Vec<u32>,
}

/// What a check of one server's part of a file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// How many blocks were compared with their checksums.
    pub blocks: u64,
    /// How many of them are damaged.
    pub damaged: u64,
    /// The first of them.
    pub first: Vec<u64>,
}

/// A server, and what a check of its part found, or why there could be none.
pub type PartChecked = (u32, Result<Checked, Failure>);

/// A part of a file that has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreferenced {
    /// Which server has it.
    pub server: u32,
    /// Of which file it was.
    pub file: FileRef,
    /// Its bytes.
    pub bytes: u64,
    /// A server that may have kept the file's name, and lost its names; none if no server did.
    pub name_lost_by: Option<u32>,
}

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    links: Vec<Mutex<ServerLink>>,
    strip_bytes: u64,
    options: Options,
    next_lock: AtomicU64,
    watch: OnceLock<Watch>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for link in &mut self.links {
            link.get_mut().unwrap_or_else(PoisonError::into_inner).farewell();
        }
    }
}

impl Store {
    /// The store that the file `description` (`store.toml`) describes, with [`Options::from_environment`]. Servers are
    /// connected to when they are needed.
    ///
    /// # Errors
    /// If the description or its token cannot be read, or the environment makes no sense.
    pub fn connect(description: &Path) -> Result<Store, StoreError> {
        Store::connect_with(description, Options::from_environment()?)
    }

    /// The same, with these options.
    ///
    /// # Errors
    /// If the description or its token cannot be read.
    pub fn connect_with(description: &Path, options: Options) -> Result<Store, StoreError> {
        let loaded = StoreDescription::load(description)?;
        let token = loaded.token(description)?;
        // Wherever the program goes: the description is read again when a server is not where it was.
        let path = std::path::absolute(description).ok();
        Store::of(&loaded, path, token, options)
    }

    /// The store that is described.
    ///
    /// # Errors
    /// If the operating system has no random numbers, or there is no such transport.
    pub fn new(description: &StoreDescription, token: Token, options: Options) -> Result<Store, StoreError> {
        Store::of(description, None, token, options)
    }

    fn of(
        description: &StoreDescription,
        path: Option<PathBuf>,
        token: Token,
        options: Options,
    ) -> Result<Store, StoreError> {
        let transport = options.transport.map_or_else(Transport::from_environment, Ok)?;
        let client = random()
            .map_err(|error| StoreError::Config { path: "/dev/urandom".into(), what: error.to_string() })?;
        let client = ClientId(u128::from_le_bytes(client));
        let identity = Arc::new(Identity { client, token, transport, options, description: path });
        let links = (0..).zip(&description.servers).map(|(index, server)| {
            Mutex::new(ServerLink::new(index, server.address.clone(), identity.clone()))
        });
        let inner = Inner {
            links: links.collect(),
            strip_bytes: if description.strip_bytes == 0 { STRIP_BYTES } else { description.strip_bytes },
            options,
            next_lock: AtomicU64::new(1),
            watch: OnceLock::new(),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// From now on tells `watch` of each request that moves data, when it is answered; the first who asks is told.
    pub fn watch(&self, watch: Watch) {
        let _ = self.inner.watch.set(watch);
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.inner.links.len() as u32
    }

    /// Bytes that went between this client and all servers since the store was connected to, for whatever files: see
    /// [`Traffic`]. Waits for operations that are under way.
    pub fn traffic(&self) -> Traffic {
        self.inner.links.iter().map(|link| hold(link).traffic()).fold(Traffic::default(), Add::add)
    }

    /// Bytes of a strip of a new file that does not say otherwise.
    pub fn strip_bytes(&self) -> u64 {
        self.inner.strip_bytes
    }

    /// Opens a file; a new one is dealt out as `striping` says.
    ///
    /// # Errors
    /// If there is none and none is to be made, or there is one and it must be new; or a server is not there.
    pub fn open(&self, path: &str, mode: Mode, striping: StripingHints) -> Result<StoreFile, StoreError> {
        let name = self.name(path)?;
        let owner = self.owner(&name);
        if !mode.create {
            return Ok(StoreFile::new(self.clone(), name.as_str(), self.file(&name)?));
        }
        let placement = self.placement(&name, striping)?;
        let body = Body::Create { name: name.clone(), exclusive: mode.exclusive, placement };
        let file = match self.call(name.as_str(), owner, body)? {
            Answer::File { file: Some(id), new: true } => FileRef { id, placement },
            Answer::File { file: Some(id), new: false } => self.describe(name.as_str(), id)?,
            _ => return Err(StoreError::Confused { server: owner }),
        };
        Ok(StoreFile::new(self.clone(), name.as_str(), file))
    }

    /// What is known of a file.
    ///
    /// # Errors
    /// If there is none, or a server is not there.
    pub fn stat(&self, path: &str) -> Result<Stat, StoreError> {
        let name = self.name(path)?;
        let file = self.file(&name)?;
        StoreFile::new(self.clone(), name.as_str(), file).stat()
    }

    /// All files whose path begins with `prefix`, ascending.
    ///
    /// # Errors
    /// If a server is not there.
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, FileId)>, StoreError> {
        let mut all = Vec::new();
        for server in 0..self.servers() {
            all.extend(self.list_on(server, prefix)?);
        }
        all.sort();
        Ok(all)
    }

    /// Those of them whose names one server keeps.
    ///
    /// # Errors
    /// If the server is not there.
    pub fn list_on(&self, server: u32, prefix: &str) -> Result<Vec<(String, FileId)>, StoreError> {
        if prefix.len() > PATH_BYTES {
            return Ok(Vec::new());
        }
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let body = Body::List { prefix: prefix.into(), after: after.clone(), most: u32::MAX };
            let Answer::Names { more, names } = self.call(prefix, server, body)? else {
                return Err(StoreError::Confused { server });
            };
            let last = names.last().map(|(name, _)| name.clone());
            all.extend(names);
            match last {
                Some(last) if more => after = last,
                _ => return Ok(all),
            }
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If there is none, or a server is not there.
    pub fn remove(&self, path: &str) -> Result<(), StoreError> {
        let name = self.name(path)?;
        let owner = self.owner(&name);
        match self.call(name.as_str(), owner, Body::Unlink { name: name.clone() })? {
            Answer::File { file: Some(file), .. } => self.drop_data(name.as_str(), file),
            _ => Err(StoreError::Confused { server: owner }),
        }
    }

    /// Removes an open file, unless another has its path by now; then it says so, and that one stays.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if its path is not this file's any more; or a server is not there.
    pub(super) fn remove_opened(&self, path: &str, file: FileId) -> Result<(), StoreError> {
        let name = self.name(path)?;
        let server = self.owner(&name);
        match self.call(path, server, Body::LookUp { name })? {
            Answer::File { file: Some(found), .. } if found == file => self.remove(path),
            Answer::File { .. } => {
                Err(StoreError::Failed { path: path.into(), server, failure: Failure::NotFound })
            }
            _ => Err(StoreError::Confused { server }),
        }
    }

    /// Gives a file one more path; the file that had it, if any, is there without it.
    ///
    /// # Errors
    /// If a server is not there.
    pub fn link(&self, path: &str, file: FileId) -> Result<Option<FileId>, StoreError> {
        let name = self.name(path)?;
        let owner = self.owner(&name);
        match self.call(name.as_str(), owner, Body::Link { name: name.clone(), file })? {
            Answer::File { file: replaced, .. } => Ok(replaced),
            _ => Err(StoreError::Confused { server: owner }),
        }
    }

    /// Takes one of its paths from a file that has two: the data stay.
    ///
    /// # Errors
    /// If there is no such path, or a server is not there.
    pub fn unlink(&self, path: &str) -> Result<(), StoreError> {
        let name = self.name(path)?;
        self.call(name.as_str(), self.owner(&name), Body::Unlink { name: name.clone() }).map(drop)
    }

    /// Gives a file another path; a file that had it is removed.
    ///
    /// The two paths may belong to two servers: a client that dies in the middle leaves the file with both.
    ///
    /// # Errors
    /// If there is no such file, or a server is not there.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let (from, to) = (self.name(from)?, self.name(to)?);
        let file = self.file(&from)?.id;
        if from == to {
            return Ok(());
        }
        let replaced = self.link(to.as_str(), file)?;
        self.unlink(from.as_str())?;
        match replaced {
            Some(replaced) if replaced != file => self.drop_data(to.as_str(), replaced),
            _ => Ok(()),
        }
    }

    /// What each server's folders hold.
    ///
    /// # Errors
    /// If a server is not there.
    pub fn usage(&self) -> Result<Vec<Usage>, StoreError> {
        let calls = (0..self.servers()).map(|server| (server, Body::Usage)).collect();
        let answers = self.call_all("", calls)?;
        (0..)
            .zip(answers)
            .map(|(server, answer)| match answer {
                Answer::Usage(usage) => Ok(usage),
                _ => Err(StoreError::Confused { server }),
            })
            .collect()
    }

    /// Compares a file with its checksums, on each of its servers; a server whose part is so damaged that it cannot say which blocks
    /// are says why.
    ///
    /// # Errors
    /// If there is no such file, or a server is not there.
    pub fn check(&self, path: &str) -> Result<Vec<PartChecked>, StoreError> {
        let name = self.name(path)?;
        let file = self.file(&name)?;
        let servers = file.placement.servers_with_a_part();
        let calls = servers.iter().map(|server| (*server, Body::Check { file })).collect();
        self.ask_all(calls)?
            .into_iter()
            .map(|(server, answer)| match answer {
                Ok(Answer::Damage { checked, damaged, blocks }) => {
                    Ok((server, Ok(Checked { blocks: checked, damaged, first: blocks })))
                }
                Err(failure @ (Failure::Damaged { .. } | Failure::FolderLost)) => Ok((server, Err(failure))),
                Err(failure) => Err(StoreError::Failed { path: name.as_str().into(), server, failure }),
                Ok(_) => Err(StoreError::Confused { server }),
            })
            .collect()
    }

    /// Parts that servers keep of files that have no name any more: of those whose removal was cut short, or that somebody
    /// wrote to who had them open while they were removed; or whose name a server lost.
    ///
    /// # Errors
    /// If a server is not there.
    pub fn unreferenced(&self) -> Result<Vec<Unreferenced>, StoreError> {
        // The parts first: a file has its name before it has any.
        let mut found = Vec::new();
        let mut losses = Vec::new();
        for server in 0..self.servers() {
            let part = |(file, bytes)| Unreferenced { server, file, bytes, name_lost_by: None };
            losses.push(self.parts(server, |one| found.push(part(one)))?);
        }
        // A name that moves from one server to another may be missed by one look at all of them.
        for _ in 0..2 {
            if found.is_empty() {
                break;
            }
            let named: BTreeSet<FileId> = self.list("")?.into_iter().map(|(_, file)| file).collect();
            found.retain(|part| !named.contains(&part.file.id));
        }
        for part in &mut found {
            let count = part.file.id.count();
            part.name_lost_by =
                (0..).zip(&losses).find(|(_, below)| count < **below).map(|(server, _)| server);
        }
        Ok(found)
    }

    /// Removes a part that belongs to no file, and what is known of that file.
    ///
    /// # Errors
    /// If a server cannot, or is not there.
    pub fn remove_unreferenced(&self, part: &Unreferenced) -> Result<(), StoreError> {
        let Unreferenced { server, file, .. } = *part;
        self.call("", server, Body::RemovePart { file })?;
        if file.id.home() < self.servers() {
            self.call("", file.id.home(), Body::Forget { file: file.id })?;
        }
        Ok(())
    }

    /// Finds the parts that a server has, each with its bytes; says below which count files' names may have been lost with it.
    fn parts(&self, server: u32, mut found: impl FnMut((FileRef, u64))) -> Result<u64, StoreError> {
        let mut from = FileId(0);
        loop {
            let Answer::Parts { more, parts, lost_below } =
                self.call("", server, Body::Parts { from, most: u32::MAX })?
            else {
                return Err(StoreError::Confused { server });
            };
            let next = parts.last().and_then(|(file, _)| file.id.0.checked_add(1));
            parts.into_iter().for_each(&mut found);
            match next {
                Some(next) if more => from = FileId(next),
                _ => return Ok(lost_below),
            }
        }
    }

    /// Asks one server, and waits for the answer.
    pub(super) fn call(&self, path: &str, server: u32, body: Body) -> Result<Answer, StoreError> {
        let answers = self.call_all(path, vec![(server, body)])?;
        answers.into_iter().next().ok_or(StoreError::Confused { server })
    }

    /// Asks servers (each once, ascending), all before any answer is waited for.
    pub(super) fn call_all(&self, path: &str, calls: Vec<(u32, Body)>) -> Result<Vec<Answer>, StoreError> {
        let failed = |server, failure| StoreError::Failed { path: path.into(), server, failure };
        let answers = self.ask_all(calls)?.into_iter();
        answers.map(|(server, answer)| answer.map_err(|failure| failed(server, failure))).collect()
    }

    /// The same, with what servers say no with.
    fn ask_all(&self, calls: Vec<(u32, Body)>) -> Result<Vec<(u32, ReplyBody)>, StoreError> {
        let servers: Vec<u32> = calls.iter().map(|(server, _)| *server).collect();
        let mut links = self.links(&servers)?;
        for (link, (_, body)) in links.links.iter_mut().zip(calls) {
            link.ask(body)?;
        }
        let mut answers = Vec::with_capacity(servers.len());
        for link in &mut links.links {
            answers.push((link.server(), link.answer(&mut Payload::None)?.body));
        }
        Ok(answers)
    }

    /// The ways to servers, ascending, for this operation alone.
    pub(super) fn links(&self, servers: &[u32]) -> Result<ServerLinks<'_>, StoreError> {
        let mut links = Vec::with_capacity(servers.len());
        for &server in servers {
            let link = self.inner.links.get(server as usize).ok_or(StoreError::Confused { server })?;
            links.push(hold(link));
        }
        Ok(ServerLinks { links })
    }

    pub(super) fn watched(&self) -> Watched {
        Watched::new(self.inner.watch.get().copied())
    }

    pub(super) fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(super) fn next_lock(&self) -> u64 {
        self.inner.next_lock.fetch_add(1, Ordering::Relaxed)
    }

    fn name(&self, path: &str) -> Result<Name, StoreError> {
        Name::new(path).ok_or_else(|| StoreError::Invalid {
            path: path.into(),
            expected: "a path of 1 to 1024 bytes without `..`".into(),
        })
    }

    fn owner(&self, name: &Name) -> u32 {
        owner_of(name.as_str(), self.servers())
    }

    fn file(&self, name: &Name) -> Result<FileRef, StoreError> {
        let server = self.owner(name);
        match self.call(name.as_str(), server, Body::LookUp { name: name.clone() })? {
            Answer::File { file: Some(id), .. } => self.describe(name.as_str(), id),
            Answer::File { file: None, .. } => {
                Err(StoreError::Failed { path: name.as_str().into(), server, failure: Failure::NotFound })
            }
            _ => Err(StoreError::Confused { server }),
        }
    }

    fn describe(&self, path: &str, id: FileId) -> Result<FileRef, StoreError> {
        match self.call(path, id.home(), Body::Describe { file: id })? {
            Answer::Record(placement) if placement.servers() == self.servers() => {
                Ok(FileRef { id, placement })
            }
            _ => Err(StoreError::Confused { server: id.home() }),
        }
    }

    fn placement(&self, name: &Name, striping: StripingHints) -> Result<Placement, StoreError> {
        let servers = self.servers();
        let unit = if striping.unit == 0 { self.inner.strip_bytes } else { striping.unit };
        let placement = Placement::of_new_file(name, unit, striping.factor, servers);
        placement.ok_or_else(|| StoreError::Invalid {
            path: name.as_str().into(),
            expected: format!("strips that fit 63 bits, found {unit} bytes"),
        })
    }

    /// Removes the parts of a file that has no name any more, then its record.
    fn drop_data(&self, path: &str, id: FileId) -> Result<(), StoreError> {
        let file = match self.describe(path, id) {
            // Where its parts are is not known any more. The name is gone, as it was to be.
            Err(StoreError::Failed { failure: Failure::FolderLost | Failure::NotFound, .. }) => return Ok(()),
            described => described?,
        };
        let servers = file.placement.servers_with_a_part();
        let calls = servers.into_iter().map(|server| (server, Body::RemovePart { file })).collect();
        self.call_all(path, calls)?;
        self.call(path, id.home(), Body::Forget { file: id }).map(drop)
    }
}

fn hold(link: &Mutex<ServerLink>) -> MutexGuard<'_, ServerLink> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ways to servers, held for one operation. What it leaves unanswered is given up.
pub(super) struct ServerLinks<'a> {
    pub(super) links: Vec<MutexGuard<'a, ServerLink>>,
}

impl Drop for ServerLinks<'_> {
    fn drop(&mut self) {
        self.links.iter_mut().for_each(|link| link.abandon());
    }
}

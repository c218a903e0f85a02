//! Names and records of files, in one database a server: every change is a transaction, durable when it is answered.
//!
//! | table | key | value |
//! |---|---|---|
//! | names | path | file id |
//! | files | file id | record: placement, shared pointer (LEB128) |
//! | answers | client | number of its last request that must not be done twice, second of the epoch, the answer |
//! | server | word | number |
//!
//! An answer is written in the transaction that it answers for: it is there exactly if the change is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pio_protocol::server::{Task, Work};
use pio_protocol::wire::{Input, put};
use pio_protocol::{
    Answer, ClientId, Expected, Failure, FileId, MOST_NAMES, Name, Placement, Reply, ReplyBody,
};
use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use rustix::io::Errno;

use super::files::parts_of;
use super::room::Reserve;
use crate::private;

const NAMES: TableDefinition<&str, u64> = TableDefinition::new("names");
const FILES: TableDefinition<u64, &[u8]> = TableDefinition::new("files");
const ANSWERS: TableDefinition<u128, (u64, u64, &[u8])> = TableDefinition::new("answers");
const SERVER: TableDefinition<&str, u128> = TableDefinition::new("server");

const BOOT: &str = "boot";
const EPOCH: &str = "epoch";
const NEXT_FILE: &str = "next file";
const IDENTITY: &str = "index and servers";
const FOLDERS: &str = "folders";
/// Names, and parts, of files with lower counts may have been lost.
const NAMES_LOST: &str = "names lost";
const PARTS_LOST: &str = "parts lost";

/// Bytes that the database may keep in memory.
const CACHE_BYTES: usize = 16 << 20;
/// How long an answer is kept for a client that never said goodbye.
const KEEP_ANSWERS: Duration = Duration::from_secs(7 * 24 * 3600);

/// The names and records that a server keeps.
#[derive(Debug)]
pub struct Names {
    path: PathBuf,
    index: u32,
    reserve: Reserve,
    losses: Losses,
    /// Closed after an error, as the database is then of no more use, and opened again when it is needed.
    database: Mutex<Option<Database>>,
}

/// What a server says of its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Counts how often data not yet synced may have been lost.
    pub epoch: u64,
    /// What was found to be lost at this start.
    pub loss: Option<Loss>,
}

/// What a server finds to be lost when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Names and parts: it was started before, and has nothing.
    All,
    /// Names: it has parts, and no database.
    Names,
    /// The names of the latest files: it has parts of files that its database, a copy, does not know of.
    LatestNames,
}

/// What a server lost with its folder: files whose [count](FileId::count) is lower may have had it. 0 if it lost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Names and records.
    pub names_below: u64,
    /// Parts: such a file that has none here may have had one.
    pub parts_below: u64,
}

/// What a database is of.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Which server.
    pub index: u32,
    /// Of how many.
    pub servers: u32,
    /// In how many folders it has parts of files: which part is in which folder goes by that.
    pub folders: u32,
}

/// What speaks for a loss, when a database is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traces {
    /// Whether the server was started before.
    pub started: bool,
    /// Whether it has parts of files.
    pub parts: bool,
    /// The highest [count](FileId::count) of a file that it made and has a part of.
    pub latest: u64,
}

/// Why a database is not open.
#[derive(Debug)]
pub enum Unopened {
    /// It cannot be read or written, or is in use.
    Database(redb::Error),
    /// It is of another server: how that one is to be started.
    OtherServer(String),
}

impl From<redb::Error> for Unopened {
    fn from(error: redb::Error) -> Unopened {
        Unopened::Database(error)
    }
}

impl Names {
    /// Opens the database of a server, which runs since the machine's start `boot`.
    ///
    /// # Errors
    /// If it cannot be read or written, is in use, or belongs to another server.
    pub fn open(path: &Path, owner: Owner, boot: u128, traces: Traces) -> Result<(Names, Past), Unopened> {
        let index = owner.index;
        let reserve = Reserve::new(path.with_extension("reserve"));
        let start = || {
            let database = open(path)?;
            guarded(|| begin(&database, owner, boot, traces)).map(|past| (database, past))
        };
        let (database, past) = match start() {
            Err(redb::Error::Io(error)) if error.kind() == ErrorKind::StorageFull && reserve.release() => {
                start()?
            }
            started => started?,
        };
        let past = past.map_err(Unopened::OtherServer)?;
        reserve.keep();
        let losses = guarded(|| losses(&database)).map_err(Unopened::Database)?;
        let database = Mutex::new(Some(database));
        Ok((Names { path: path.to_owned(), index, reserve, losses, database }, past))
    }

    /// What was lost before the database was made.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Notes that data which were written before `epoch` and not synced may have been lost.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn note_epoch(&self, epoch: u64) -> Result<(), Failure> {
        self.with(|database| {
            let transaction = database.begin_write()?;
            let mut server = transaction.open_table(SERVER)?;
            let noted = server.get(EPOCH)?.map_or(0, |value| value.value());
            server.insert(EPOCH, noted.max(u128::from(epoch)))?;
            drop(server);
            transaction.commit()?;
            Ok(Ok(()))
        })
    }

    /// Does what concerns names and records.
    ///
    /// # Errors
    /// What the client is to be told.
    pub fn perform(&self, work: &Work) -> ReplyBody {
        let mut body = self.perform_now(work);
        // Even to forget something, the database writes first: on a full disk, where what was kept back for it is.
        let makes_room = matches!(work.task, Task::Unlink { .. } | Task::Forget { .. } | Task::Goodbye);
        if makes_room && body == Err(Failure::Os(Errno::NOSPC.raw_os_error())) && self.reserve.release() {
            body = self.perform_now(work);
        }
        if matches!(work.task, Task::Forget { .. }) && body.is_ok() {
            self.reserve.keep();
        }
        body
    }

    fn perform_now(&self, work: &Work) -> ReplyBody {
        match &work.task {
            Task::LookUp { name } => self.look_up(name),
            Task::List { prefix, after, most } => self.list(prefix, after, *most),
            Task::Describe { file } => self.describe(*file),
            Task::Create { name, exclusive: false, placement } => match self.look_up(name)? {
                Answer::File { file: None, .. } => {
                    self.change(None, |transaction| create(transaction, self.index, name, false, placement))
                }
                found => Ok(found),
            },
            Task::Create { name, exclusive: true, placement } => {
                self.change(Some(work), |transaction| create(transaction, self.index, name, true, placement))
            }
            Task::Unlink { name } => self.change(Some(work), |transaction| {
                let mut names = transaction.open_table(NAMES)?;
                let file = names.remove(name.as_str())?.map(|file| FileId(file.value()));
                Ok(file.map(|file| Answer::File { file: Some(file), new: false }).ok_or(Failure::NotFound))
            }),
            Task::Link { name, file } => self.change(Some(work), |transaction| {
                let mut names = transaction.open_table(NAMES)?;
                let before = names.insert(name.as_str(), file.0)?.map(|file| FileId(file.value()));
                Ok(Ok(Answer::File { file: before, new: false }))
            }),
            Task::Forget { file } => self.change(None, |transaction| {
                transaction.open_table(FILES)?.remove(file.0)?;
                Ok(Ok(Answer::Done))
            }),
            Task::MovePointer { file, by } => self.change(Some(work), |transaction| {
                with_pointer(transaction, *file, |from| {
                    let to = from.checked_add(*by).filter(|to| *to <= i64::MAX as u64);
                    to.map(|to| (to, Answer::Value(from))).ok_or(Failure::Invalid(Expected::Value))
                })
            }),
            Task::SetPointer { file, value } => self.change(None, |transaction| {
                with_pointer(transaction, *file, |_| match *value <= i64::MAX as u64 {
                    true => Ok((*value, Answer::Done)),
                    false => Err(Failure::Invalid(Expected::Value)),
                })
            }),
            Task::Goodbye => self.change(None, |transaction| {
                transaction.open_table(ANSWERS)?.remove(work.client.0)?;
                Ok(Ok(Answer::Done))
            }),
            // Of data: not ours.
            _ => Err(Failure::Invalid(Expected::Owner)),
        }
    }

    fn look_up(&self, name: &Name) -> ReplyBody {
        self.with(|database| {
            let names = database.begin_read()?.open_table(NAMES)?;
            let file = names.get(name.as_str())?.map(|file| FileId(file.value()));
            Ok(Ok(Answer::File { file, new: false }))
        })
    }

    fn describe(&self, file: FileId) -> ReplyBody {
        self.with(|database| {
            let files = database.begin_read()?.open_table(FILES)?;
            let Some(bytes) = files.get(file.0)? else {
                let is_lost = file.count() < self.losses.names_below;
                return Ok(Err(if is_lost { Failure::FolderLost } else { Failure::NotFound }));
            };
            Ok(Record::decode(bytes.value()).map(|record| Answer::Record(record.placement)))
        })
    }

    fn list(&self, prefix: &str, after: &str, most: u32) -> ReplyBody {
        self.with(|database| {
            let table = database.begin_read()?.open_table(NAMES)?;
            let most = most.min(MOST_NAMES) as usize;
            let mut names = Vec::new();
            for entry in table.range(prefix.max(after)..)? {
                let (name, file) = entry?;
                let name = name.value();
                if !name.starts_with(prefix) {
                    break;
                }
                if name <= after && !after.is_empty() {
                    continue;
                }
                if names.len() == most {
                    return Ok(Ok(Answer::Names { more: true, names }));
                }
                names.push((name.to_owned(), FileId(file.value())));
            }
            Ok(Ok(Answer::Names { more: false, names }))
        })
    }

    /// A transaction; with `once`, one that is not done again if that request was done before.
    fn change(
        &self,
        once: Option<&Work>,
        change: impl FnOnce(&WriteTransaction) -> Result<ReplyBody, redb::Error>,
    ) -> ReplyBody {
        self.with(|database| {
            let transaction = database.begin_write()?;
            if let Some(work) = once
                && let Some((number, answer)) = last_answer(&transaction, work.client)?
                && work.number <= number
            {
                return Ok(if work.number == number { answer } else { Err(Failure::Stale) });
            }
            let body = change(&transaction)?;
            if let Some(work) = once {
                remember(&transaction, work, &body)?;
            } else if body.is_err() {
                transaction.abort()?;
                return Ok(body);
            }
            transaction.commit()?;
            Ok(body)
        })
    }

    fn with<T>(
        &self,
        job: impl FnOnce(&Database) -> Result<Result<T, Failure>, redb::Error>,
    ) -> Result<T, Failure> {
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            *database = Some(open(&self.path).map_err(|error| failure(&error))?);
        }
        let Some(open) = &*database else { return Err(Failure::Os(unknown())) };
        match guarded(|| job(open)) {
            Ok(result) => result,
            Err(error) => {
                *database = None;
                Err(failure(&error))
            }
        }
    }
}

fn open(path: &Path) -> Result<Database, redb::Error> {
    let was_there = path.exists();
    let file = private::options().read(true).write(true).create(true).truncate(false).open(path)?;
    // Once the server was told of a file, its name is in the database: an empty one was emptied.
    let parts = path.parent().map(parts_of);
    if was_there
        && file.metadata()?.len() == 0
        && parts.and_then(|parts| parts.read_dir().ok()).is_some_and(|mut parts| parts.next().is_some())
    {
        return Err(redb::Error::Corrupted("the file is empty, though there are parts of files".into()));
    }
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    guarded(|| Ok(builder.create_with_backend(FileBackend::new(file)?)?))
}

/// What the database panics with (it may, at bytes that it did not write) is an error of this server alone.
fn guarded<T>(job: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    caught.unwrap_or_else(|_| Err(redb::Error::Corrupted("bytes that the database did not write".into())))
}

/// Makes the tables, and notes the start; or says what the database is of, if it is another server's.
fn begin(
    database: &Database,
    owner: Owner,
    boot: u128,
    traces: Traces,
) -> Result<Result<Past, String>, redb::Error> {
    let Owner { index, servers, folders } = owner;
    let transaction = database.begin_write()?;
    transaction.open_table(NAMES)?;
    transaction.open_table(FILES)?;
    let now = now().as_secs();
    transaction
        .open_table(ANSWERS)?
        .retain(|_, (_, second, _)| second.saturating_add(KEEP_ANSWERS.as_secs()) >= now)?;
    let same_boot = {
        let mut server = transaction.open_table(SERVER)?;
        let identity = u128::from(index) << 32 | u128::from(servers);
        let before = server.insert(IDENTITY, identity)?.map(|value| value.value());
        if let Some(before) = before.filter(|before| *before != identity) {
            let (its_index, its_servers) = (before >> 32, before as u32);
            return Ok(Err(format!(
                "the folder of server {its_index} of {its_servers}: expected server {index} of {servers}"
            )));
        }
        let before = server.insert(FOLDERS, u128::from(folders))?.map(|value| value.value());
        if let Some(before) = before.filter(|before| *before != u128::from(folders)) {
            return Ok(Err(format!(
                "the server has its parts of files in {before} folder{} (--dir), and would not find them in {folders}: expected the \
                 same ones, in the same order",
                if before == 1 { "" } else { "s" }
            )));
        }
        let before = server.insert(BOOT, boot)?.map(|value| value.value());
        before == Some(boot)
    };
    let epoch = match same_boot {
        true => transaction.open_table(SERVER)?.get(EPOCH)?.map_or(0, |value| value.value() as u64),
        false => count(&transaction, EPOCH)?,
    };
    let loss = note_loss(&transaction, traces)?;
    transaction.commit()?;
    Ok(Ok(Past { epoch, loss }))
}

/// Finds what is lost: with the start that finds it, or a later one would not know. No file that is made from now on has a number that
/// was used: there still are parts of those files.
fn note_loss(transaction: &WriteTransaction, traces: Traces) -> Result<Option<Loss>, redb::Error> {
    let Traces { started, parts, latest } = traces;
    let mut server = transaction.open_table(SERVER)?;
    let last = server.get(NEXT_FILE)?.map(|value| value.value() as u64);
    let loss = match last {
        Some(last) => (latest > last).then_some(Loss::LatestNames),
        None if parts => Some(Loss::Names),
        None => started.then_some(Loss::All),
    };
    if last.is_some() && loss.is_none() {
        return Ok(None);
    }
    let next = u128::from(first_count().max(latest));
    server.insert(NEXT_FILE, next)?;
    if loss.is_some() {
        server.insert(NAMES_LOST, next + 1)?;
    }
    if loss == Some(Loss::All) {
        server.insert(PARTS_LOST, next + 1)?;
    }
    Ok(loss)
}

fn count(transaction: &WriteTransaction, what: &str) -> Result<u64, redb::Error> {
    let mut server = transaction.open_table(SERVER)?;
    let next = server.get(what)?.map_or(0, |value| value.value()) + 1;
    server.insert(what, next)?;
    Ok(next as u64)
}

/// The lowest [count](FileId::count) of files that are made from now on, if nobody makes 65,536 in a second.
fn first_count() -> u64 {
    ((now().as_micros() << 16) / 1_000_000) as u64
}

fn next_file(transaction: &WriteTransaction) -> Result<u64, redb::Error> {
    let mut server = transaction.open_table(SERVER)?;
    let last = server.get(NEXT_FILE)?.map_or(0, |value| value.value());
    let next = (last + 1).max(u128::from(first_count()));
    server.insert(NEXT_FILE, next)?;
    Ok(next as u64)
}

fn losses(database: &Database) -> Result<Losses, redb::Error> {
    let server = database.begin_read()?.open_table(SERVER)?;
    let below = |what| Ok::<_, redb::Error>(server.get(what)?.map_or(0, |value| value.value() as u64));
    Ok(Losses { names_below: below(NAMES_LOST)?, parts_below: below(PARTS_LOST)? })
}

fn create(
    transaction: &WriteTransaction,
    index: u32,
    name: &Name,
    exclusive: bool,
    placement: &Placement,
) -> Result<ReplyBody, redb::Error> {
    let mut names = transaction.open_table(NAMES)?;
    if let Some(file) = names.get(name.as_str())?.map(|file| FileId(file.value())) {
        return Ok(match exclusive {
            true => Err(Failure::Exists),
            false => Ok(Answer::File { file: Some(file), new: false }),
        });
    }
    let file = FileId::new(index, next_file(transaction)?);
    names.insert(name.as_str(), file.0)?;
    let record = Record { placement: *placement, pointer: 0 };
    transaction.open_table(FILES)?.insert(file.0, &record.encode()[..])?;
    Ok(Ok(Answer::File { file: Some(file), new: true }))
}

fn with_pointer(
    transaction: &WriteTransaction,
    file: FileId,
    change: impl FnOnce(u64) -> Result<(u64, Answer), Failure>,
) -> Result<ReplyBody, redb::Error> {
    let mut files = transaction.open_table(FILES)?;
    let record = files.get(file.0)?.map(|bytes| Record::decode(bytes.value()));
    let mut record = match record {
        None => return Ok(Err(Failure::NotFound)),
        Some(Err(failure)) => return Ok(Err(failure)),
        Some(Ok(record)) => record,
    };
    let (next, answer) = match change(record.pointer) {
        Ok(changed) => changed,
        Err(failure) => return Ok(Err(failure)),
    };
    record.pointer = next;
    files.insert(file.0, &record.encode()[..])?;
    Ok(Ok(answer))
}

fn last_answer(
    transaction: &WriteTransaction,
    client: ClientId,
) -> Result<Option<(u64, ReplyBody)>, redb::Error> {
    let answers = transaction.open_table(ANSWERS)?;
    let Some(entry) = answers.get(client.0)? else { return Ok(None) };
    let (number, _, bytes) = entry.value();
    let body = Reply::decode(bytes).map_or(Err(Failure::Os(unknown())), |reply| reply.body);
    Ok(Some((number, body)))
}

fn remember(transaction: &WriteTransaction, work: &Work, body: &ReplyBody) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    Reply { number: work.number, body: body.clone() }.encode(&mut bytes);
    transaction.open_table(ANSWERS)?.insert(work.client.0, (work.number, now().as_secs(), &bytes[..]))?;
    Ok(())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What the database failed with, as the client is told.
fn failure(error: &redb::Error) -> Failure {
    match error {
        redb::Error::Io(error) => Failure::Os(error.raw_os_error().unwrap_or(unknown())),
        _ => Failure::Os(unknown()),
    }
}

fn unknown() -> i32 {
    Errno::IO.raw_os_error()
}

struct Record {
    placement: Placement,
    pointer: u64,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.placement.encode(&mut out);
        put(&mut out, self.pointer);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Record, Failure> {
        let mut input = Input::new(bytes);
        let mut take = || {
            let placement = Placement::decode(&mut input)?;
            let pointer = input.number("a pointer")?;
            Ok::<_, pio_protocol::ProtocolError>(Record { placement, pointer })
        };
        take().map_err(|_| Failure::Os(unknown()))
    }
}

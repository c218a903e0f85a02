//! Collective operations of a file take turns: one after the other, in the order in which the program called them.
//!
//! Whose turn it is has the file's channel. A blocking operation waits for its turn, and takes the channel away until
//! it is done. A nonblocking one gets in line; [`progress`] carries on with the first of every file. It is called by
//! whoever waits in this library, by every function of the shim and by the program's calls that wait for or test
//! requests: a rank that is in any of them keeps all its operations going. When it is not, because the program computes or
//! is in another call of MPI, a barrier say, the [caretaker](super::caretaker) carries on with those that need no MPI, or
//! with all, if MPI may be called by any thread. It tells nobody that they are complete; that waits for the program.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::boundary::MpiTable;
use super::caretaker;
use super::channel::Channel;
use super::coroutine::Coroutine;
use super::patience::Patience;
use super::status::Status;

/// What a collective operation does in its turn; bytes moved.
pub type Work = Box<dyn FnOnce(&mut Channel) -> Result<u64, Status> + Send>;

/// Whom to tell that a nonblocking operation is complete: the shim.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The shim's functions.
    pub mpi: &'static MpiTable,
    /// The shim's name for the operation.
    pub token: *mut c_void,
}

// SAFETY: the token is the shim's, which takes it back from any thread.
unsafe impl Send for Completion {}

impl Completion {
    fn tell(self, outcome: Result<u64, Status>) {
        let number = Status::number(outcome.map(drop));
        // SAFETY: the shim's function and token; it is told once.
        unsafe { (self.mpi.complete)(self.token, number, outcome.unwrap_or(0)) };
    }
}

/// The turns of one file.
#[derive(Debug)]
pub struct Turns {
    line: Arc<Mutex<Line>>,
}

struct Line {
    /// With whoever's turn it is, else here.
    channel: Option<Channel>,
    waiting: VecDeque<(Work, Option<Completion>)>,
    current: Option<Current>,
    /// Those that are complete, and whom to tell: from a thread of the program, because MPI is told, too.
    ended: Vec<(Completion, Result<u64, Status>)>,
    /// Whether any thread can carry on with these operations.
    needs_no_program: bool,
    /// The channel is gone for good.
    lost: bool,
}

struct Current {
    coroutine: Coroutine,
    /// What it leaves when it ends. If that is nothing, it panicked.
    left: Arc<Mutex<Option<Left>>>,
    completion: Option<Completion>,
}

/// The channel, and what the operation says.
type Left = (Channel, Result<u64, Status>);

impl std::fmt::Debug for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Line").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

/// Who carries on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Program,
    Caretaker,
}

/// How often the program carried on.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// Lines that somebody stands in, or has left without being told so.
static BUSY: Mutex<Vec<Arc<Mutex<Line>>>> = Mutex::new(Vec::new());
/// How many these are, to be looked at without a lock.
static BUSY_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Carries on with all nonblocking operations of this process, as far as they come without waiting.
pub fn progress() {
    if BUSY_COUNT.load(Ordering::Acquire) > 0 {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        carry_on(Who::Program);
    }
}

/// The same for the caretaker; whether there is something left for it.
pub fn take_care() -> bool {
    carry_on(Who::Caretaker)
}

/// A number that changes while the program carries on itself.
pub fn looks_of_program() -> usize {
    LOOKS.load(Ordering::Relaxed)
}

fn carry_on(who: Who) -> bool {
    // Another thread, or this one further up (MPI may call us back), is at it.
    let Ok(mut busy) = BUSY.try_lock() else { return true };
    let mut is_left = false;
    busy.retain(|line| {
        let Ok(mut line) = line.try_lock() else {
            is_left = true;
            return true;
        };
        line.step(who);
        is_left |= line.is_busy() && line.needs_no_program;
        line.is_busy() || !line.ended.is_empty()
    });
    BUSY_COUNT.store(busy.len(), Ordering::Release);
    is_left
}

impl Turns {
    /// Of a file with this channel.
    pub fn new(channel: Channel) -> Turns {
        let needs_no_program = channel.communicator.is_local() || channel.communicator.is_for_threads();
        let (waiting, ended) = Default::default();
        let line =
            Line { channel: Some(channel), waiting, current: None, ended, needs_no_program, lost: false };
        Turns { line: Arc::new(Mutex::new(line)) }
    }

    /// Waits until all operations before are complete, and takes the turn.
    ///
    /// # Errors
    /// If an operation before panicked, and took the channel with it.
    pub fn take(&self) -> Result<Turn<'_>, Status> {
        let mut patience = Patience::new();
        // Who was before this one is told first.
        progress();
        loop {
            let mut line = self.lock();
            if line.lost {
                return Err(Status::Internal);
            }
            if !line.is_busy()
                && let Some(channel) = line.channel.take()
            {
                return Ok(Turn { turns: self, channel: Some(channel) });
            }
            drop(line);
            // Which makes progress.
            patience.wait_for_oneself();
        }
    }

    /// Gets in line, and begins at once if it is the first; `completion` is told of the end.
    pub fn start(&self, work: Work, completion: Option<Completion>) {
        let mut busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
        let needs_no_program = {
            let mut line = self.lock();
            line.waiting.push_back((work, completion));
            line.needs_no_program
        };
        if !busy.iter().any(|line| Arc::ptr_eq(line, &self.line)) {
            busy.push(self.line.clone());
        }
        BUSY_COUNT.store(busy.len(), Ordering::Release);
        drop(busy);
        progress();
        if needs_no_program && BUSY_COUNT.load(Ordering::Acquire) > 0 {
            caretaker::wake();
        }
    }

    /// The channel, after the last turn.
    pub fn into_channel(self) -> Option<Channel> {
        self.take().ok().and_then(|mut turn| turn.channel.take())
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn is_busy(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    /// Carries on until an operation has to wait, or all are complete.
    fn step(&mut self, who: Who) {
        if who == Who::Program || self.needs_no_program {
            self.work();
        }
        if who == Who::Program {
            for (completion, outcome) in self.ended.drain(..) {
                completion.tell(outcome);
            }
        }
    }

    fn work(&mut self) {
        while let Some(current) = self.next() {
            if !current.coroutine.resume() {
                return;
            }
            let Some(Current { left, completion, .. }) = self.current.take() else { return };
            let left = left.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (channel, outcome) = match left {
                Some((channel, outcome)) => (Some(channel), outcome),
                None => (None, Err(Status::Internal)),
            };
            self.lost = channel.is_none();
            self.channel = channel;
            self.ended.extend(completion.map(|completion| (completion, outcome)));
        }
    }

    /// The operation whose turn it is; begins the next if there is none.
    fn next(&mut self) -> Option<&mut Current> {
        if self.current.is_none() && self.channel.is_some() {
            let (work, completion) = self.waiting.pop_front()?;
            let mut channel = self.channel.take()?;
            let left = Arc::new(Mutex::new(None));
            let leave = left.clone();
            let run = Box::new(move || {
                let outcome = work(&mut channel);
                *leave.lock().unwrap_or_else(PoisonError::into_inner) = Some((channel, outcome));
            });
            self.current = Some(Current { coroutine: Coroutine::new(run), left, completion });
        }
        self.current.as_mut()
    }
}

/// A blocking operation's turn: it has the channel.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    channel: Option<Channel>,
}

impl Deref for Turn<'_> {
    type Target = Channel;

    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref(&self) -> &Channel {
        self.channel.as_ref().expect("a turn has its channel until it ends")
    }
}

impl DerefMut for Turn<'_> {
    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref_mut(&mut self) -> &mut Channel {
        self.channel.as_mut().expect("a turn has its channel until it ends")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().channel = self.channel.take();
    }
}

//! Simulated time and tasks: one task runs at a time, in an order that the seed alone decides.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Microseconds.
pub(crate) type Time = u64;

pub(crate) const MS: Time = 1000;
pub(crate) const SECOND: Time = 1000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);

type Task = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) struct Kernel {
    now: Cell<Time>,
    sequence: Cell<u64>,
    queue: RefCell<BinaryHeap<Reverse<(Time, u64, TaskId)>>>,
    /// `None` while it runs.
    tasks: RefCell<BTreeMap<TaskId, Option<Task>>>,
    running: Cell<TaskId>,
    random: RefCell<Pcg64Mcg>,
}

impl Kernel {
    pub(crate) fn new(seed: u64) -> Kernel {
        Kernel {
            now: Cell::new(0),
            sequence: Cell::new(0),
            queue: RefCell::default(),
            tasks: RefCell::default(),
            running: Cell::new(TaskId(0)),
            random: RefCell::new(Pcg64Mcg::seed_from_u64(seed)),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    pub(crate) fn running(&self) -> TaskId {
        self.running.get()
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) -> TaskId {
        let id = TaskId(self.next());
        self.tasks.borrow_mut().insert(id, Some(Box::pin(task)));
        self.wake_at(self.now(), id);
        id
    }

    /// Ends a task where it stands; what it holds is gone.
    pub(crate) fn kill(&self, id: TaskId) {
        let task = self.tasks.borrow_mut().remove(&id);
        drop(task);
    }

    pub(crate) fn wake_at(&self, time: Time, task: TaskId) {
        self.queue.borrow_mut().push(Reverse((time.max(self.now()), self.next(), task)));
    }

    pub(crate) async fn until(&self, time: Time) {
        let mut asked = false;
        poll_fn(|_| {
            if self.now() >= time {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut asked, true) {
                self.wake_at(time, self.running());
            }
            Poll::Pending
        })
        .await;
    }

    pub(crate) async fn sleep(&self, duration: Time) {
        self.until(self.now() + duration).await;
    }

    /// Runs until `over` says so; false if that is not before `end`.
    pub(crate) fn run(&self, end: Time, over: impl Fn() -> bool) -> bool {
        while !over() {
            let next = self.queue.borrow_mut().pop();
            let Some(Reverse((time, _, id))) = next else { return false };
            if time > end {
                return false;
            }
            self.now.set(time);
            self.poll(id);
        }
        true
    }

    fn poll(&self, id: TaskId) {
        let task = self.tasks.borrow_mut().get_mut(&id).and_then(Option::take);
        let Some(mut task) = task else { return };
        self.running.set(id);
        let ended = task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let mut tasks = self.tasks.borrow_mut();
        if ended {
            tasks.remove(&id);
        } else if let Some(place) = tasks.get_mut(&id) {
            *place = Some(task);
        }
    }

    /// How many things have happened, or will.
    pub(crate) fn events(&self) -> u64 {
        self.sequence.get()
    }

    /// Ends all tasks.
    pub(crate) fn clear(&self) {
        let tasks = self.tasks.take();
        drop(tasks);
    }

    fn next(&self) -> u64 {
        self.sequence.set(self.sequence.get() + 1);
        self.sequence.get()
    }

    pub(crate) fn random(&self, range: Range<u64>) -> u64 {
        self.random.borrow_mut().random_range(range)
    }

    /// True `percent` times of a hundred.
    pub(crate) fn chance(&self, percent: u64) -> bool {
        self.random(0..100) < percent
    }

    pub(crate) fn with_random<T>(&self, job: impl FnOnce(&mut Pcg64Mcg) -> T) -> T {
        job(&mut self.random.borrow_mut())
    }
}

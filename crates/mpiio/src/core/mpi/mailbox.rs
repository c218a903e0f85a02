//! Messages between the ranks of one node, through memory that they share.
//!
//! Each rank has an *inbox* a channel: a bounded queue in a [`Segment`] into which all others put their messages. A rank
//! that waits for one sleeps in the kernel, and is woken by whoever puts one there. An MPI cannot do that: its ranks
//! look again and again, and where they outnumber the processors, each look costs others their turn. And no function of
//! MPI is needed: what goes on by itself while the program is inside MPI (see [`super::progress_thread`]) must not call it.
//!
//! # The inbox
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | number of the next slot to be filled, ever growing; whoever adds 1 to it may fill that slot |
//! | 64–67 | 1 while the owner sleeps: the word that it waits at |
//! | 72–79 | number of the slot that it sleeps for: it is woken when that is filled |
//! | 128– | slots |
//!
//! Slot `i` of `n`, 256 bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | rounds so far: `r n` while it waits to be filled for the r-th time, `r n + 1` while it waits to be emptied |
//! | 8–11 | who sent it |
//! | 12–15 | the message's tag |
//! | 16–23 | bytes of the whole message |
//! | 24–31 | bytes of it in this slot |
//! | 32– | these |
//!
//! (The queue is Vyukov's bounded one, with one consumer; rounds are counted so that memory of zeros is an empty queue.)
//! A message that does not fit a slot goes in several, in order; those of several ranks may alternate.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use pio_plan::IoError;

use crate::core::mpi::shared_memory::{Address, MOST_BYTES, Segment};

const SLEEPS_AT: usize = 64;
const SLEEPS_FOR_AT: usize = 72;
const SLOTS_AT: usize = 128;
const SLOT_BYTES: usize = 256;
const HEAD_BYTES: usize = 32;
/// Of a message in one slot.
const ROOM_BYTES: usize = SLOT_BYTES - HEAD_BYTES;

/// What another rank put there makes no sense.
const PROTOCOL_ERROR: IoError = IoError { errno: libc::EPROTO };

/// One rank's inbox and its way to the others'.
#[derive(Debug)]
pub(crate) struct Mailbox {
    me: u32,
    inbox: Inbox,
    /// The slot to be emptied next.
    next: u64,
    others: Vec<Option<Inbox>>,
    /// For each rank, what did not fit its inbox yet.
    unsent: Vec<VecDeque<Unsent>>,
    /// For each rank, a message of which the end is missing.
    begun: Vec<Option<Letter>>,
    arrived: VecDeque<Letter>,
}

/// A message that arrived, or begins to.
#[derive(Debug)]
pub(crate) struct Letter {
    /// Who sent it.
    pub(crate) from: u32,
    /// What it belongs to.
    pub(crate) tag: i32,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
    /// How long it will be.
    len: usize,
}

#[derive(Debug)]
struct Unsent {
    tag: i32,
    bytes: Vec<u8>,
    sent: usize,
}

impl Mailbox {
    /// How many slots the inbox of one of so many ranks has: for a few messages of each.
    fn slots(ranks: u32) -> u64 {
        u64::from(ranks).saturating_mul(4).next_power_of_two().clamp(64, 4096)
    }

    /// The mailbox of rank `me`: its own inbox, and for each rank where that one's is (its own is not looked at).
    pub(crate) fn new(me: u32, own: Segment, addresses: &[Address]) -> Result<Mailbox, IoError> {
        let ranks = addresses.len();
        let slots = Mailbox::slots(ranks as u32);
        let others = addresses.iter().enumerate().map(|(rank, address)| {
            if rank as u32 == me { Ok(None) } else { Inbox::new(Segment::of(*address), slots).map(Some) }
        });
        Ok(Mailbox {
            me,
            inbox: Inbox::new(own, slots)?,
            next: 0,
            others: others.collect::<Result<_, _>>()?,
            unsent: (0..ranks).map(|_| VecDeque::new()).collect(),
            begun: (0..ranks).map(|_| None).collect(),
            arrived: VecDeque::new(),
        })
    }

    /// Sends a message; what does not fit goes with the next [`Mailbox::flush`].
    pub(crate) fn send(&mut self, to: u32, tag: i32, bytes: Vec<u8>) -> Result<(), IoError> {
        self.unsent.get_mut(to as usize).ok_or(PROTOCOL_ERROR)?.push_back(Unsent { tag, bytes, sent: 0 });
        self.flush_to(to as usize);
        Ok(())
    }

    /// Sends on what did not fit; whether nothing is left.
    pub(crate) fn flush(&mut self) -> bool {
        let mut all = true;
        for to in 0..self.unsent.len() {
            all &= self.flush_to(to);
        }
        all
    }

    fn flush_to(&mut self, to: usize) -> bool {
        let (Some(Some(inbox)), unsent) = (self.others.get(to), &mut self.unsent[to]) else {
            return self.unsent[to].is_empty();
        };
        let mut put = false;
        while let Some(first) = unsent.front_mut() {
            let rest = &first.bytes[first.sent..];
            let part = &rest[..rest.len().min(ROOM_BYTES)];
            if !inbox.put(self.me, first.tag, first.bytes.len(), part) {
                break;
            }
            put = true;
            first.sent += part.len();
            if first.sent == first.bytes.len() {
                unsent.pop_front();
            }
        }
        if put {
            inbox.wake();
        }
        unsent.is_empty()
    }

    /// A message with this tag that has arrived, if any. Those of one rank come in the order in which it sent them.
    pub(crate) fn take(&mut self, tag: i32) -> Result<Option<Letter>, IoError> {
        self.empty_inbox()?;
        let place = self.arrived.iter().position(|letter| letter.tag == tag);
        Ok(place.and_then(|place| self.arrived.remove(place)))
    }

    fn empty_inbox(&mut self) -> Result<(), IoError> {
        while let Some(slot) = self.inbox.filled(self.next) {
            let from = slot.from as usize;
            let begun = self.begun.get_mut(from).ok_or(PROTOCOL_ERROR)?;
            let is_valid = slot.message_bytes <= MOST_BYTES && slot.part.len() <= ROOM_BYTES;
            if !is_valid {
                return Err(PROTOCOL_ERROR);
            }
            let letter = begun.get_or_insert_with(|| {
                let (tag, len) = (slot.tag, slot.message_bytes as usize);
                Letter { from: slot.from, tag, bytes: Vec::new(), len }
            });
            letter.bytes.extend_from_slice(slot.part);
            if letter.bytes.len() >= letter.len {
                self.arrived.extend(begun.take());
            }
            self.inbox.emptied(self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// The inbox, to wait at without the mailbox until so many letters may have come. Whoever needs several from others, each of
    /// whom sends one, would be woken by each, and find that it must sleep again.
    pub(crate) fn waiting_room(&self, letters: u32) -> WaitingRoom {
        let slots = self.inbox.slots;
        let last = self.next + u64::from(letters).clamp(1, slots) - 1;
        WaitingRoom { base: self.inbox.base, slots, last }
    }
}

/// Where the owner of a mailbox sleeps until something comes. Must not outlive it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingRoom {
    base: *const u8,
    slots: u64,
    /// Number of the last slot that is filled then. A letter fills one or more.
    last: u64,
}

impl WaitingRoom {
    /// Sleeps until they come, at most so long; whether it was woken.
    pub(crate) fn sleep(self, longest: Duration) -> bool {
        // SAFETY: the segment lives as long as the mailbox, which the caller keeps.
        let (sleeps, sleeps_for, slot) = unsafe {
            (
                &*self.base.add(SLEEPS_AT).cast::<AtomicU32>(),
                &*self.base.add(SLEEPS_FOR_AT).cast::<AtomicU64>(),
                &*self.base.add(place_of(self.last, self.slots)).cast::<AtomicU64>(),
            )
        };
        sleeps_for.store(self.last, Ordering::Relaxed);
        sleeps.store(1, Ordering::Release);
        // Either who fills the slot sees that we sleep, or we see that it is filled.
        fence(Ordering::SeqCst);
        if slot.load(Ordering::Acquire) != rounds_of(self.last, self.slots) + 1 {
            let limit =
                libc::timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
            // SAFETY: the word is in the segment. Interrupted or late, the caller looks again anyway.
            unsafe { libc::syscall(libc::SYS_futex, sleeps.as_ptr(), libc::FUTEX_WAIT, 1, &raw const limit) };
        }
        // Who wakes us has set it to 0.
        sleeps.swap(0, Ordering::Relaxed) == 0
    }
}

/// The memory of an inbox.
#[derive(Debug)]
struct Inbox {
    /// Keeps it mapped.
    _segment: Segment,
    base: *mut u8,
    slots: u64,
}

// SAFETY: the mapping belongs to the segment inside; all words that several processes change are atomic.
unsafe impl Send for Inbox {}

struct Filled<'a> {
    from: u32,
    tag: i32,
    message_bytes: u64,
    part: &'a [u8],
}

fn place_of(number: u64, slots: u64) -> usize {
    SLOTS_AT + (number % slots) as usize * SLOT_BYTES
}

/// What the counter of slot `number % slots` says while it waits to be filled with the message of that number.
fn rounds_of(number: u64, slots: u64) -> u64 {
    number - number % slots
}

impl Inbox {
    fn new(mut segment: Segment, slots: u64) -> Result<Inbox, IoError> {
        let base = segment.bytes(SLOTS_AT as u64 + slots * SLOT_BYTES as u64)?.as_mut_ptr();
        Ok(Inbox { _segment: segment, base, slots })
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: within the segment, which is mapped at a page's border; `place` is a multiple of 8.
        unsafe { &*self.base.add(place).cast::<AtomicU64>() }
    }

    /// Fills the next slot; false if all are full.
    fn put(&self, from: u32, tag: i32, message_bytes: usize, part: &[u8]) -> bool {
        let next = self.word(0);
        let mut number = next.load(Ordering::Relaxed);
        loop {
            let rounds = self.word(place_of(number, self.slots)).load(Ordering::Acquire);
            let wanted = rounds_of(number, self.slots);
            if rounds < wanted {
                return false;
            }
            if rounds > wanted {
                number = next.load(Ordering::Relaxed);
                continue;
            }
            match next.compare_exchange_weak(number, number + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => number = now,
            }
        }
        let place = place_of(number, self.slots);
        // SAFETY: the slot is in the segment, and this rank's alone until it says that it is full; a part fits.
        unsafe {
            let slot = self.base.add(place);
            slot.add(8).cast::<u32>().write(from);
            slot.add(12).cast::<i32>().write(tag);
            slot.add(16).cast::<u64>().write(message_bytes as u64);
            slot.add(24).cast::<u64>().write(part.len() as u64);
            std::ptr::copy_nonoverlapping(part.as_ptr(), slot.add(HEAD_BYTES), part.len());
        }
        self.word(place).store(rounds_of(number, self.slots) + 1, Ordering::Release);
        true
    }

    /// Wakes the owner if it sleeps, and what it sleeps for is here.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        // SAFETY: within the segment.
        let sleeps = unsafe { &*self.base.add(SLEEPS_AT).cast::<AtomicU32>() };
        if sleeps.load(Ordering::Acquire) != 1 {
            return;
        }
        let last = self.word(SLEEPS_FOR_AT).load(Ordering::Relaxed);
        let is_filled =
            self.word(place_of(last, self.slots)).load(Ordering::Acquire) > rounds_of(last, self.slots);
        if is_filled && sleeps.swap(0, Ordering::Relaxed) == 1 {
            // SAFETY: the word is in the segment.
            unsafe { libc::syscall(libc::SYS_futex, sleeps.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }

    /// What is in the slot of this number, if it has been filled. For the owner.
    fn filled(&self, number: u64) -> Option<Filled<'_>> {
        let place = place_of(number, self.slots);
        if self.word(place).load(Ordering::Acquire) != rounds_of(number, self.slots) + 1 {
            return None;
        }
        // SAFETY: the slot is in the segment, and the owner's until it says that it is empty.
        unsafe {
            let slot = self.base.add(place);
            let len = slot.add(24).cast::<u64>().read().min(ROOM_BYTES as u64);
            Some(Filled {
                from: slot.add(8).cast::<u32>().read(),
                tag: slot.add(12).cast::<i32>().read(),
                message_bytes: slot.add(16).cast::<u64>().read(),
                part: std::slice::from_raw_parts(slot.add(HEAD_BYTES), len as usize),
            })
        }
    }

    fn emptied(&self, number: u64) {
        self.word(place_of(number, self.slots))
            .store(rounds_of(number, self.slots) + self.slots, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn mailboxes(ranks: u32) -> Vec<Mailbox> {
        let (inboxes, addresses): (Vec<_>, Vec<_>) = (0..ranks).map(|_| Segment::shared().unwrap()).collect();
        let open = |(me, own)| Mailbox::new(me, own, &addresses).unwrap();
        (0..ranks).zip(inboxes).map(open).collect()
    }

    #[test]
    fn messages_come_by_tag_and_in_order() {
        let mut all = mailboxes(3);
        all[0].send(2, 1, b"first".to_vec()).unwrap();
        all[1].send(2, 2, Vec::new()).unwrap();
        all[0].send(2, 2, b"third".to_vec()).unwrap();
        let mut take = |tag| all[2].take(tag).unwrap().map(|letter| (letter.from, letter.bytes));
        assert_eq!(take(2), Some((1, Vec::new())));
        assert_eq!(take(2), Some((0, b"third".to_vec())));
        assert_eq!((take(2), take(3)), (None, None));
        assert_eq!(take(1), Some((0, b"first".to_vec())));
    }

    /// Longer than a slot, and together more than an inbox holds: the rest goes when there is room.
    #[test]
    fn long_messages_of_several_ranks_arrive_whole() {
        let mut all = mailboxes(3);
        let text = |rank: u32| (0..30_000).map(|i| (i * (rank + 7) % 251) as u8).collect::<Vec<u8>>();
        for rank in 0..2 {
            for _ in 0..3 {
                all[rank as usize].send(2, 5, text(rank)).unwrap();
            }
        }
        let mut found = [0; 2];
        for _ in 0..10_000 {
            if let Some(letter) = all[2].take(5).unwrap() {
                assert_eq!(letter.bytes, text(letter.from));
                found[letter.from as usize] += 1;
            }
            all[0].flush();
            all[1].flush();
        }
        assert_eq!(found, [3, 3]);
        assert!(all[0].flush() && all[1].flush());
    }

    #[test]
    fn who_sleeps_is_woken() {
        let mut all = mailboxes(2);
        let (mut one, mut other) = (all.remove(0), all.remove(0));
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            for turn in 0..500_u32 {
                while one.take(0).unwrap().is_none() {
                    one.waiting_room(1).sleep(Duration::from_secs(20));
                }
                one.send(1, 0, turn.to_ne_bytes().to_vec()).unwrap();
            }
        });
        for turn in 0..500_u32 {
            other.send(0, 0, vec![1]).unwrap();
            let letter = loop {
                if let Some(letter) = other.take(0).unwrap() {
                    break letter;
                }
                other.waiting_room(1).sleep(Duration::from_secs(20));
            };
            assert_eq!(letter.bytes, turn.to_ne_bytes());
        }
        thread.join().unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "a wake-up was lost");
    }

    #[test]
    fn who_sleeps_for_several_letters_is_woken_by_the_last() {
        const OTHERS: u32 = 3;
        const TURNS: i32 = 300;
        let mut all = mailboxes(OTHERS + 1);
        let mut owner = all.remove(0);
        let began = Instant::now();
        let in_turn = |mut one: Mailbox| {
            std::thread::spawn(move || {
                for turn in 0..TURNS {
                    one.send(0, turn, vec![0; 300 * (turn as usize % 2)]).unwrap();
                    while one.take(turn).unwrap().is_none() {
                        one.flush();
                        one.waiting_room(1).sleep(Duration::from_secs(20));
                    }
                }
            })
        };
        let threads: Vec<_> = all.into_iter().map(in_turn).collect();
        for turn in 0..TURNS {
            let mut missing = OTHERS;
            while missing > 0 {
                match owner.take(turn).unwrap() {
                    Some(_) => missing -= 1,
                    None => drop(owner.waiting_room(missing).sleep(Duration::from_secs(20))),
                }
            }
            (1..=OTHERS).for_each(|to| owner.send(to, turn, Vec::new()).unwrap());
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(began.elapsed() < Duration::from_secs(20), "a wake-up was lost");
        // One of two has come: that is not what it sleeps for.
        let mut all = mailboxes(3);
        all[0].send(2, 0, Vec::new()).unwrap();
        assert!(!all[2].waiting_room(2).sleep(Duration::from_millis(1)));
        all[1].send(2, 0, Vec::new()).unwrap();
        let began = Instant::now();
        all[2].waiting_room(2).sleep(Duration::from_secs(20));
        assert!(began.elapsed() < Duration::from_secs(20), "it did not see that both are here");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut all = mailboxes(2);
        assert!(all[0].others[1].as_ref().unwrap().put(9, 0, 4, b"what"));
        assert!(all[1].take(0).is_err());
        let mut all = mailboxes(2);
        assert!(all[0].others[1].as_ref().unwrap().put(0, 0, usize::MAX, b"what"));
        assert!(all[1].take(0).is_err());
        assert!(all[0].send(7, 0, Vec::new()).is_err());
    }
}

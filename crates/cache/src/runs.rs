//! What is known of every block, held as runs of consecutive blocks that are alike.
//!
//! The blocks of a run are in the same lists, next to each other and in ascending order (a block that is touched later
//! is nearer to the end of a list, and a request touches its blocks in ascending order), and have the same [`Traits`].
//! So a policy that is defined on single blocks can be carried out on runs, with exactly the same result: it splits a
//! run where its blocks part company, and runs that come to lie behind each other are joined.

use std::ops::Range;

use crate::index::{Index, NONE, RunId};

/// Extents that are looked up together: more than the misses of its cache that a processor follows at once.
pub(crate) const GROUP: usize = 32;

/// Runs that stay in the processor's second cache, together with the index: they need no warming.
const NEAR: usize = 4096;

/// Most blocks in a run.
const LONGEST: u64 = u32::MAX as u64;

/// What is being done with the data of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// The same as below. The only data that may be evicted.
    Clean,
    /// Being fetched.
    Fetching,
    /// Newer than below, and to be written.
    Dirty,
    /// Being written.
    Writing,
    /// Being written, and changed since: to be written again.
    Rewritten,
    /// Not here: only its history is remembered.
    Gone,
}

/// What all blocks of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub data: Data,
    /// A mark of the policy: recently used (clock), low inter-reference recency (LIRS).
    pub mark: bool,
    /// Read ahead, and not used since.
    pub ahead: bool,
    /// The process that brought it in.
    pub owner: u32,
    /// The transfer that is fetching or writing it.
    pub transfer: u32,
}

impl Traits {
    /// Of clean data that nobody in particular brought in.
    pub(crate) const CLEAN: Traits =
        Traits { data: Data::Clean, mark: false, ahead: false, owner: 0, transfer: NONE };
}

/// The lists that a run can be in at once: the policy's order, and a second one that only LIRS needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rail {
    Main = 0,
    Second = 1,
}

/// Number of a list on a rail.
pub(crate) type ListId = u8;

/// Not in a list.
pub(crate) const NO_LIST: ListId = u8::MAX;

/// Consecutive blocks that are alike: a cache line of the processor.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Run {
    pub start: u64,
    pub file: u32,
    length: u32,
    previous: [RunId; 2],
    next: [RunId; 2],
    list: [ListId; 2],
    pub traits: Traits,
}

impl Run {
    pub(crate) fn length(&self) -> u64 {
        u64::from(self.length)
    }

    /// The first block behind it.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length()
    }

    /// The list it is in.
    pub(crate) fn list(&self, rail: Rail) -> ListId {
        self.list[rail as usize]
    }
}

/// Runs in an order: the first is the coldest.
#[derive(Clone, Copy)]
struct List {
    first: RunId,
    last: RunId,
    blocks: u64,
    runs: u64,
}

/// Blocks of a file that left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub file: u32,
    pub start: u64,
    pub length: u64,
    pub ahead: bool,
    pub owner: u32,
}

/// All runs, the lists they are in, and where to find them.
pub(crate) struct Runs {
    runs: Vec<Run>,
    free: Vec<RunId>,
    index: Index,
    lists: [Vec<List>; 2],
    /// What left the cache, if anybody wants to know.
    pub evicted: Vec<Evicted>,
    pub record_evicted: bool,
}

impl Runs {
    /// None yet, in so many lists on the main rail and on the second.
    pub(crate) fn new(lists: [usize; 2]) -> Runs {
        let empty = List { first: NONE, last: NONE, blocks: 0, runs: 0 };
        Runs {
            runs: Vec::new(),
            free: Vec::new(),
            index: Index::default(),
            lists: lists.map(|count| vec![empty; count]),
            evicted: Vec::new(),
            record_evicted: false,
        }
    }

    #[inline]
    pub(crate) fn get(&self, run: RunId) -> &Run {
        &self.runs[run as usize]
    }

    /// The run that holds a block.
    #[inline]
    pub(crate) fn find(&self, file: u32, block: u64) -> Option<RunId> {
        let run = self.index.candidate(file, block, |run| self.get(run).start)?;
        (block < self.get(run).end()).then_some(run)
    }

    /// Brings what touching these extents will look at first into the processor's cache: the index, then the runs, then
    /// their neighbours, each for all of the group before the next. Only time depends on it.
    pub(crate) fn warm(&self, file: u32, extents: &[Range<u64>]) {
        if self.runs.len() <= NEAR {
            return;
        }
        let mut found = [NONE; GROUP];
        for (found, blocks) in found.iter_mut().zip(extents) {
            *found = self.index.glance(file, blocks.start);
        }
        let mut neighbours = [(NONE, NONE); GROUP];
        for (neighbours, run) in neighbours.iter_mut().zip(&found).filter(|(_, run)| **run != NONE) {
            let run = self.get(*run);
            *neighbours = (run.previous[0], run.next[0]);
        }
        let start = |run: RunId| self.runs.get(run as usize).map_or(0, |run| run.start);
        let seen = neighbours.iter().fold(0, |seen, (previous, next)| seen ^ start(*previous) ^ start(*next));
        std::hint::black_box(seen);
    }

    /// Where the first run behind `block`, which is in none, begins; at most `end`.
    pub(crate) fn gap_end(&self, file: u32, block: u64, end: u64) -> u64 {
        if block + 1 == end {
            return end;
        }
        self.find_after(file, block).map_or(end, |run| self.get(run).start.min(end))
    }

    /// The first run that begins behind a block.
    pub(crate) fn find_after(&self, file: u32, block: u64) -> Option<RunId> {
        self.index.after(file, block, |run| self.get(run).start)
    }

    /// Whether the traits of any of some blocks are like that.
    pub(crate) fn any(&self, file: u32, blocks: Range<u64>, like: impl Fn(&Traits) -> bool) -> bool {
        let mut next = self.find(file, blocks.start).or_else(|| self.find_after(file, blocks.start));
        while let Some(run) = next.map(|run| self.get(run)).filter(|run| run.start < blocks.end) {
            if like(&run.traits) {
                return true;
            }
            next = self.find_after(file, run.start);
        }
        false
    }

    /// Number of blocks in a list.
    pub(crate) fn blocks(&self, rail: Rail, list: ListId) -> u64 {
        self.lists[rail as usize][list as usize].blocks
    }

    /// Number of runs in a list.
    pub(crate) fn count(&self, rail: Rail, list: ListId) -> u64 {
        self.lists[rail as usize][list as usize].runs
    }

    /// The coldest run of a list.
    pub(crate) fn first(&self, rail: Rail, list: ListId) -> Option<RunId> {
        some(self.lists[rail as usize][list as usize].first)
    }

    /// The hottest run of a list.
    pub(crate) fn last(&self, rail: Rail, list: ListId) -> Option<RunId> {
        some(self.lists[rail as usize][list as usize].last)
    }

    /// The next hotter run of the same list.
    pub(crate) fn next(&self, rail: Rail, run: RunId) -> Option<RunId> {
        some(self.get(run).next[rail as usize])
    }

    /// The next colder run of the same list.
    pub(crate) fn previous(&self, rail: Rail, run: RunId) -> Option<RunId> {
        some(self.get(run).previous[rail as usize])
    }

    /// Adds a run that is in no list, of at most `length` blocks.
    pub(crate) fn add(&mut self, file: u32, start: u64, length: u64, traits: Traits) -> RunId {
        let length = length.min(LONGEST) as u32;
        let run =
            Run { start, file, length, previous: [NONE; 2], next: [NONE; 2], list: [NO_LIST; 2], traits };
        let id = self.store(run);
        self.enter(id);
        id
    }

    /// Adds at most `length` blocks at the hot end of a list of the main rail, to the run that is there if it goes up to
    /// them and is alike; gives how many.
    pub(crate) fn append(&mut self, list: ListId, file: u32, start: u64, length: u64, traits: Traits) -> u64 {
        let length = length.min(LONGEST);
        if !self.extend_last(list, file, start, length, traits) {
            let run = self.add(file, start, length, traits);
            self.push(Rail::Main, list, run);
        }
        length
    }

    /// Lengthens the run at the hot end of a list of the main rail by blocks that the index does not know, if it goes up
    /// to them and is alike.
    #[inline]
    fn extend_last(&mut self, list: ListId, file: u32, start: u64, length: u64, traits: Traits) -> bool {
        let last = self.lists[Rail::Main as usize][list as usize].last;
        if last == NONE {
            return false;
        }
        let run = &mut self.runs[last as usize];
        let follows = run.end() == start && run.file == file && run.traits == traits;
        if !follows || run.list[Rail::Second as usize] != NO_LIST || run.length() + length > LONGEST {
            return false;
        }
        let was_single = run.length == 1;
        run.length += length as u32;
        self.lists[Rail::Main as usize][list as usize].blocks += length;
        if was_single {
            self.enter(last);
        }
        true
    }

    /// Moves the first blocks of a run, which is on the main rail only, to the hot end of a list there, and changes what
    /// they have in common.
    pub(crate) fn move_first(&mut self, list: ListId, run: RunId, length: u64, traits: Traits) {
        let Run { file, start, .. } = *self.get(run);
        // What the run loses, the other gains: the index hardly changes.
        if self.lists[Rail::Main as usize][list as usize].last != run
            && self.extend_last(list, file, start, length, traits)
        {
            self.remove_first(run, length);
            return;
        }
        let first = self.first_blocks(run, length);
        self.set_traits(first, traits);
        self.move_to(Rail::Main, list, first);
    }

    /// Changes what the blocks of a run have in common.
    pub(crate) fn set_traits(&mut self, run: RunId, traits: Traits) {
        self.runs[run as usize].traits = traits;
    }

    /// Makes a run of exactly `length` blocks from `start` on, which are all in `run`.
    pub(crate) fn isolate(&mut self, run: RunId, start: u64, length: u64) -> RunId {
        let whole = self.get(run);
        if whole.start == start && whole.length() == length {
            return run;
        }
        let whole = *whole;
        let run = if start > whole.start { self.split(run, start - whole.start) } else { run };
        if start + length < whole.end() {
            self.split(run, length);
        }
        run
    }

    /// Makes the first `length` blocks of a run a run of their own (it keeps the number).
    pub(crate) fn first_blocks(&mut self, run: RunId, length: u64) -> RunId {
        self.isolate(run, self.get(run).start, length)
    }

    /// Makes the last `length` blocks of a run a run of their own.
    pub(crate) fn last_blocks(&mut self, run: RunId, length: u64) -> RunId {
        self.isolate(run, self.get(run).end() - length, length)
    }

    /// Cuts a run behind its first `length` blocks; gives what is behind.
    fn split(&mut self, left: RunId, length: u64) -> RunId {
        let whole = *self.get(left);
        debug_assert!(0 < length && length < whole.length());
        let behind = Run {
            start: whole.start + length,
            length: whole.length - length as u32,
            previous: [left; 2],
            ..whole
        };
        let right = self.store(behind);
        self.runs[left as usize].length = length as u32;
        self.enter(right);
        for rail in 0..2 {
            if whole.list[rail] == NO_LIST {
                continue;
            }
            self.runs[left as usize].next[rail] = right;
            let list = &mut self.lists[rail][whole.list[rail] as usize];
            list.runs += 1;
            match whole.next[rail] {
                NONE => list.last = right,
                next => self.runs[next as usize].previous[rail] = right,
            }
        }
        right
    }

    /// Puts a run at the hot end of a list.
    pub(crate) fn push(&mut self, rail: Rail, list: ListId, run: RunId) {
        let ends = &mut self.lists[rail as usize][list as usize];
        let last = ends.last;
        ends.last = run;
        if last == NONE {
            ends.first = run;
        }
        let this = &mut self.runs[run as usize];
        ends.blocks += u64::from(this.length);
        ends.runs += 1;
        this.list[rail as usize] = list;
        this.previous[rail as usize] = last;
        this.next[rail as usize] = NONE;
        if last != NONE {
            self.runs[last as usize].next[rail as usize] = run;
        }
    }

    /// Takes a run out of its list, if it is in one.
    pub(crate) fn unlink(&mut self, rail: Rail, run: RunId) {
        let rail = rail as usize;
        let this = &self.runs[run as usize];
        let (list, length, next, previous) =
            (this.list[rail], this.length, this.next[rail], this.previous[rail]);
        if list == NO_LIST {
            return;
        }
        let ends = &mut self.lists[rail][list as usize];
        ends.blocks -= u64::from(length);
        ends.runs -= 1;
        match next {
            NONE => ends.last = previous,
            next => self.runs[next as usize].previous[rail] = previous,
        }
        match previous {
            NONE => ends.first = next,
            previous => self.runs[previous as usize].next[rail] = next,
        }
        self.runs[run as usize].list[rail] = NO_LIST;
    }

    /// Takes a run out of its list and puts it at the hot end of another (or the same).
    pub(crate) fn move_to(&mut self, rail: Rail, list: ListId, run: RunId) {
        if self.lists[rail as usize][list as usize].last != run {
            self.unlink(rail, run);
            self.push(rail, list, run);
        }
    }

    /// Joins a run to the one before it in its lists, if the two are one behind the other and alike; gives the run that
    /// it is now.
    pub(crate) fn join(&mut self, run: RunId) -> RunId {
        let this = self.get(run);
        let left = if this.list[0] != NO_LIST { this.previous[0] } else { this.previous[1] };
        if left == NONE {
            return run;
        }
        let before = self.get(left);
        if before.end() != this.start || before.file != this.file {
            return run;
        }
        let (this, before) = (*this, *before);
        let same_order = (0..2).all(|rail| {
            before.list[rail] == this.list[rail]
                && (this.list[rail] == NO_LIST || this.previous[rail] == left)
        });
        if !same_order || before.traits != this.traits || before.length() + this.length() > LONGEST {
            return run;
        }
        for rail in [Rail::Main, Rail::Second] {
            let list = this.list(rail);
            if list != NO_LIST {
                self.unlink(rail, run);
                self.lists[rail as usize][list as usize].blocks += this.length();
            }
        }
        self.runs[left as usize].length += this.length;
        if before.length == 1 {
            self.enter(left);
        }
        self.index.remove(this.file, this.start);
        self.free.push(run);
        left
    }

    /// Forgets a run altogether.
    pub(crate) fn remove(&mut self, run: RunId) {
        self.unlink(Rail::Main, run);
        self.unlink(Rail::Second, run);
        let (file, start) = (self.runs[run as usize].file, self.runs[run as usize].start);
        self.index.remove(file, start);
        self.free.push(run);
    }

    /// Forgets the first blocks of a run altogether.
    pub(crate) fn remove_first(&mut self, run: RunId, length: u64) {
        let whole = &mut self.runs[run as usize];
        if whole.length() == length {
            self.remove(run);
            return;
        }
        debug_assert!(length < whole.length());
        let (file, start) = (whole.file, whole.start);
        whole.start += length;
        whole.length -= length as u32;
        let is_long = whole.length > 1;
        for (lists, list) in self.lists.iter_mut().zip(whole.list) {
            if list != NO_LIST {
                lists[list as usize].blocks -= length;
            }
        }
        if !self.index.move_start(file, start, start + length, is_long) {
            self.index.remove(file, start);
            self.enter(run);
        }
    }

    /// The first blocks of a run leave the cache, and nothing is remembered of them.
    pub(crate) fn evict_first(&mut self, run: RunId, length: u64) {
        self.note_evicted(run, length);
        self.remove_first(run, length);
    }

    /// Notes that the data of the first blocks of a run leave the cache.
    pub(crate) fn note_evicted(&mut self, run: RunId, length: u64) {
        if self.record_evicted {
            let run = *self.get(run);
            let Traits { ahead, owner, .. } = run.traits;
            self.evicted.push(Evicted { file: run.file, start: run.start, length, ahead, owner });
        }
    }

    /// Enters a run in the index, as long as it is now.
    fn enter(&mut self, id: RunId) {
        let runs = &self.runs;
        let run = &runs[id as usize];
        self.index.insert(run.file, run.start, id, run.length > 1, |run| runs[run as usize].start);
    }

    fn store(&mut self, run: Run) -> RunId {
        match self.free.pop() {
            Some(id) => {
                self.runs[id as usize] = run;
                id
            }
            None => {
                self.runs.push(run);
                (self.runs.len() - 1) as RunId
            }
        }
    }
}

fn some(run: RunId) -> Option<RunId> {
    (run != NONE).then_some(run)
}

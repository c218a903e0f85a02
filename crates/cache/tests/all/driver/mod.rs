//! A driver of a cache with real bytes, which checks everything that a cache promises.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_cache::{Action, Cache, Event, FileId, ProcessId, RequestId, Settings, TransferId, Writes};

/// A byte of a file.
type Byte = (FileId, u64);

/// A cache, the memory that it manages and what is below; the content of a byte is a version, 0 at first.
pub(crate) struct Driver {
    pub cache: Cache,
    settings: Settings,
    memory: BTreeMap<Byte, u64>,
    below: BTreeMap<Byte, u64>,
    truth: BTreeMap<Byte, u64>,
    fetches: BTreeMap<u32, (FileId, Range<u64>)>,
    writes: BTreeMap<u32, (FileId, Range<u64>, Vec<u64>)>,
    requests: BTreeMap<RequestId, Open>,
    next_request: u64,
    version: u64,
    blocks: BTreeSet<Byte>,
}

/// A request that is not complete.
struct Open {
    file: FileId,
    is_write: bool,
    left: BTreeSet<u64>,
}

impl Driver {
    pub(crate) fn new(settings: Settings) -> Driver {
        Driver {
            cache: Cache::new(settings).unwrap(),
            settings,
            memory: BTreeMap::new(),
            below: BTreeMap::new(),
            truth: BTreeMap::new(),
            fetches: BTreeMap::new(),
            writes: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            version: 0,
            blocks: BTreeSet::new(),
        }
    }

    pub(crate) fn read(&mut self, process: u32, file: u64, bytes: Range<u64>) {
        let (request, file) = self.open(FileId(file), false, &bytes);
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        self.handle(Event::Read { request, process: ProcessId(process), file, offset, length });
    }

    pub(crate) fn write(&mut self, process: u32, file: u64, bytes: Range<u64>) {
        let (request, file) = self.open(FileId(file), true, &bytes);
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        self.handle(Event::Write { request, process: ProcessId(process), file, offset, length });
    }

    /// A flush, before which what was accepted so far has to be below.
    pub(crate) fn flush(&mut self, file: u64) {
        let (request, file) = self.open(FileId(file), false, &(0..0));
        self.handle(Event::Flush { request, file });
    }

    /// The size of a file is known, and is at least so many bytes.
    pub(crate) fn grow(&mut self, file: u64, bytes: u64) {
        let file = FileId(file);
        let written = self.truth.keys().filter(|byte| byte.0 == file).map(|byte| byte.1 + 1).max();
        self.handle(Event::Size { file, bytes: bytes.max(written.unwrap_or(0)) });
    }

    /// A file is gone, if nobody is using it.
    pub(crate) fn forget(&mut self, file: u64) {
        let file = FileId(file);
        if self.requests.values().any(|request| request.file == file) {
            return;
        }
        self.memory.retain(|byte, _| byte.0 != file);
        for contents in [&mut self.below, &mut self.truth] {
            contents.retain(|byte, _| byte.0 != file);
        }
        // What is under way has nowhere to go.
        for fetch in self.fetches.values_mut().filter(|fetch| fetch.0 == file) {
            fetch.1 = 0..0;
        }
        for write in self.writes.values_mut().filter(|write| write.0 == file) {
            write.1 = 0..0;
        }
        self.handle(Event::Forget { file });
        assert!(!self.blocks.iter().any(|block| block.0 == file), "a forgotten file keeps memory");
    }

    /// One of the transfers under way ends; whether there was any.
    pub(crate) fn end_transfer(&mut self, choice: usize) -> bool {
        let under_way: Vec<u32> = self.fetches.keys().chain(self.writes.keys()).copied().collect();
        if under_way.is_empty() {
            return false;
        }
        let number = under_way[choice % under_way.len()];
        let transfer = TransferId(number);
        if let Some((file, bytes)) = self.fetches.remove(&number) {
            for byte in bytes {
                let content = self.below.get(&(file, byte)).copied().unwrap_or(0);
                self.memory.insert((file, byte), content);
            }
            self.handle(Event::Fetched { transfer });
        } else if let Some((file, bytes, contents)) = self.writes.remove(&number) {
            for (byte, content) in bytes.zip(contents) {
                self.below.insert((file, byte), content);
            }
            self.handle(Event::Written { transfer });
        }
        true
    }

    /// Lets everything end; what is dirty may stay so.
    pub(crate) fn finish(&mut self) {
        let mut choice = 0;
        while self.end_transfer(choice) {
            choice += 7;
        }
        assert!(self.requests.is_empty(), "{} requests are never complete", self.requests.len());
        assert!(self.cache.is_idle());
    }

    /// Nothing is lost: after a flush, below is what was written.
    pub(crate) fn check_below(&self) {
        assert_eq!(self.cache.dirty_bytes(), 0);
        for (byte, version) in &self.truth {
            assert_eq!(self.below.get(byte), Some(version), "{byte:?} below");
        }
    }

    fn open(&mut self, file: FileId, is_write: bool, bytes: &Range<u64>) -> (RequestId, FileId) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        self.requests.insert(request, Open { file, is_write, left: bytes.clone().collect() });
        (request, file)
    }

    fn handle(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.cache.handle(event, &mut actions);
        for action in actions {
            self.carry_out(action);
        }
        let block_bytes = self.settings.block_bytes;
        assert_eq!(self.blocks.len() as u64 * block_bytes, self.cache.resident_bytes());
        if let Writes::Behind { dirty_limit_bytes } | Writes::Back { dirty_limit_bytes } =
            self.settings.writes
        {
            assert!(self.cache.dirty_bytes() <= dirty_limit_bytes);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Fetch { transfer, file, offset, length, .. } => {
                assert!(length > 0);
                self.take_memory(file, offset, length, true);
                self.fetches.insert(transfer.0, (file, offset..offset + length));
            }
            Action::Write { transfer, file, offset, length } => {
                let bytes = offset..offset + length;
                for block in self.blocks_of(&bytes) {
                    let newer = (block..block + self.settings.block_bytes).any(|byte| {
                        let below = self.below_or_on_its_way(file, byte);
                        self.memory.get(&(file, byte)).is_some_and(|content| *content != below)
                    });
                    assert!(newer, "block {block} of {file:?} is written though nothing of it is newer");
                }
                let content = |byte| self.memory.get(&(file, byte)).copied().unwrap_or(0);
                let contents = bytes.clone().map(content).collect();
                self.writes.insert(transfer.0, (file, bytes, contents));
            }
            Action::Copy { request, offset, length } => self.copy(request, offset..offset + length),
            Action::Evict { file, offset, length } => {
                for byte in offset..offset + length {
                    if let Some(content) = self.memory.remove(&(file, byte)) {
                        let below = self.below.get(&(file, byte)).copied().unwrap_or(0);
                        assert_eq!(content, below, "byte {byte} of {file:?} is evicted and newer than below");
                    }
                }
                for block in self.blocks_of(&(offset..offset + length)) {
                    assert!(self.blocks.remove(&(file, block)), "block {block} of {file:?} was not here");
                }
            }
            Action::Complete { request } => {
                let open = self.requests.remove(&request).expect("a request is complete once");
                assert!(open.left.is_empty(), "{request:?} is complete without {:?}", open.left);
            }
        }
    }

    fn copy(&mut self, request: RequestId, bytes: Range<u64>) {
        let open = self.requests.get_mut(&request).expect("only an open request moves data");
        let (file, is_write) = (open.file, open.is_write);
        for byte in bytes.clone() {
            assert!(open.left.remove(&byte), "byte {byte} of {request:?} is moved twice, or not asked for");
        }
        if is_write {
            self.version += 1;
            self.take_memory(file, bytes.start, bytes.end - bytes.start, false);
        }
        for byte in bytes {
            if is_write {
                self.memory.insert((file, byte), self.version);
                self.truth.insert((file, byte), self.version);
            } else {
                let truth = self.truth.get(&(file, byte)).copied().unwrap_or(0);
                let block = byte / self.settings.block_bytes * self.settings.block_bytes;
                assert!(
                    self.blocks.contains(&(file, block)),
                    "block {block} of {file:?} is read and not here"
                );
                // What is behind the end of the file was not fetched, and is as good as 0.
                let content = self.memory.get(&(file, byte)).copied().unwrap_or(0);
                assert_eq!(content, truth, "byte {byte} of {file:?} as read by {request:?}");
            }
        }
    }

    /// Blocks come into use, all of them new or any.
    fn take_memory(&mut self, file: FileId, offset: u64, length: u64, all_new: bool) {
        for block in self.blocks_of(&(offset..offset + length)) {
            let new = self.blocks.insert((file, block));
            assert!(new || !all_new, "block {block} of {file:?} is fetched though it is here");
        }
        let held = self.blocks.len() as u64 * self.settings.block_bytes;
        assert!(held <= self.settings.capacity_bytes, "{held} bytes are held");
    }

    fn below_or_on_its_way(&self, file: FileId, byte: u64) -> u64 {
        let on_its_way = self.writes.values().find(|write| write.0 == file && write.1.contains(&byte));
        match on_its_way {
            Some((_, bytes, contents)) => contents[(byte - bytes.start) as usize],
            None => self.below.get(&(file, byte)).copied().unwrap_or(0),
        }
    }

    fn blocks_of(&self, bytes: &Range<u64>) -> Vec<u64> {
        let block_bytes = self.settings.block_bytes;
        (bytes.start / block_bytes..bytes.end.div_ceil(block_bytes))
            .map(|block| block * block_bytes)
            .collect()
    }
}

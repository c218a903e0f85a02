//! A server's part of a file: an ordinary file, and its checksums.
//!
//! Writes go to the operating system's page cache before they are answered: they outlive the server, if not the
//! machine. Blocks that were written since the last sync are *dirty*; a sync seals them and makes them durable.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pio_layout::pack;
use pio_protocol::{Expected, Failure, FileId, Placement, SlotStrips, has_whole_block};
use rustix::fs::FallocateFlags;

use super::allowance::{Allowance, Reserved, holes, taken_by};
use super::extents::next_data;
use super::files::{Trouble, read_up_to};
use super::groups::{Group, Grouping};
use super::mapped::Mappings;
use super::ranges::Ranges;
use super::shared_sync::SharedSync;
use super::sums::{self, Entry, Header};
use crate::private;
use crate::summed::{BLOCK_BYTES, Summed};

/// Bytes that are read at once to compare them with their checksums.
const BATCH_BYTES: u64 = 1 << 20;
/// Their blocks.
const BATCH: u64 = BATCH_BYTES / BLOCK_BYTES;
/// Checksums that are read or written at once.
const ENTRIES_AT_ONCE: u64 = 4096;
/// What a file that is made takes for its first bytes.
const HEAD_TAKES_BYTES: u64 = 4096;
/// Checksums of blocks that a part remembers until they are sealed: of 16 GiB.
const MOST_SUMS: usize = 1 << 18;

/// An open part.
#[derive(Debug)]
pub(super) struct Part {
    paths: Paths,
    data: File,
    sums: File,
    placement: Placement,
    boot: u128,
    state: RwLock<State>,
    mappings: Mappings,
    shared_sync: SharedSync,
    allowance: Option<Arc<Allowance>>,
}

#[derive(Debug)]
struct State {
    /// Whether the header says that blocks may be open.
    open: bool,
    /// Whether the folder may not know of the files yet.
    new: bool,
    /// Up to where room was made sure of: its blocks are the part's, though nothing was written to them.
    preallocated: u64,
    /// Blocks written since they were sealed.
    dirty: Ranges,
    /// Blocks that need not be compared with their checksums any more.
    verified: Ranges,
    /// Checksums of dirty blocks that were written as a whole and not touched since: to seal them, nobody reads them.
    sums: BTreeMap<u64, u32>,
}

/// Where a part is.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    folder: PathBuf,
    pub(super) data: PathBuf,
    sums: PathBuf,
}

impl Paths {
    pub(super) fn new(folder: &Path, file: FileId) -> Paths {
        let name = |kind: &str| folder.join(format!("{:016x}.{kind}", file.0));
        Paths { folder: folder.to_owned(), data: name("data"), sums: name("sums") }
    }

    /// The file that a file of this name is of.
    pub(super) fn file(name: &OsStr) -> Option<FileId> {
        let (number, kind) = name.to_str()?.split_once('.')?;
        let known = ["data", "sums"].contains(&kind) && number.len() == 16;
        known.then(|| u64::from_str_radix(number, 16).ok().map(FileId))?
    }

    /// Bytes of the part; none if there are only checksums, or nothing any more.
    pub(super) fn len(&self) -> Result<u64, Trouble> {
        match fs::metadata(&self.data) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            result => Ok(result?.len()),
        }
    }

    /// Whether there is anything of the part.
    pub(super) fn exist(&self) -> bool {
        self.data.exists() || self.sums.exists()
    }

    /// Bytes that the part takes on its disk, where it has made sure of room for `own_bytes` of data.
    pub(super) fn taken_bytes(&self, own_bytes: u64) -> u64 {
        let files = [(&self.data, own_bytes), (&self.sums, 0)];
        let taken = |(path, own_bytes)| fs::metadata(path).map_or(0, |found| taken_by(&found, own_bytes));
        files.into_iter().map(taken).sum()
    }

    /// Where the part's bytes belong, as it says itself; `None` if there is none, or it does not say.
    pub(super) fn placement(&self) -> Option<Placement> {
        let header = Header::read(&File::open(&self.sums).ok()?).ok()??;
        Some(header.placement)
    }

    /// Removes the part, if there is one: the data first, as they are nothing without their checksums. Nobody may look
    /// for it in between.
    pub(super) fn remove(&self) -> Result<(), Trouble> {
        for path in [&self.data, &self.sums] {
            match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Makes it durable that the part is there, or is not.
    pub(super) fn sync_folder(&self) -> Result<(), Trouble> {
        Ok(File::open(&self.folder)?.sync_all()?)
    }
}

impl Part {
    /// Opens a part; if there is none, makes it if asked to.
    pub(super) fn open(
        paths: Paths,
        placement: Placement,
        boot: u128,
        create: bool,
        allowance: Option<Arc<Allowance>>,
    ) -> Result<Option<Part>, Trouble> {
        let exists = paths.data.exists();
        let summed = paths.sums.exists();
        if !exists && !create && !summed {
            return Ok(None);
        }
        // For the head of the checksums.
        let owner = paths.clone();
        let room =
            Reserved::new(allowance.as_deref(), &owner, || Ok(if summed { 0 } else { HEAD_TAKES_BYTES }))?;
        let options = |create: bool| {
            let mut options = private::options();
            options.read(true).write(true).create(create);
            options
        };
        // The checksums are there before the data: data without them were tampered with.
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Trouble(Failure::Damaged { block: 0 }),
            _ => error.into(),
        };
        let sums = options(!exists).open(&paths.sums).map_err(missing)?;
        let header = match Header::read(&sums)? {
            Some(header) => header,
            None if exists => return Err(Trouble(Failure::Damaged { block: 0 })),
            None if !create => return Ok(None),
            None => {
                let header = Header { open_since: None, placement };
                header.write(&sums)?;
                header
            }
        };
        if header.placement != placement {
            return Err(Trouble(Failure::Invalid(Expected::Placement)));
        }
        // Data were taken away, unless the machine went down before they reached the disk.
        let known = header.open_since.is_none_or(|since| since == boot);
        let len = if exists { fs::metadata(&paths.data)?.len() } else { 0 };
        if let (true, Some((block, end))) = (known, sums::sealed_end(&sums)?)
            && len < end
        {
            return Err(Trouble(Failure::Damaged { block }));
        }
        if !exists && !create {
            return Ok(None);
        }
        let data = options(true).open(&paths.data)?;
        let state = State {
            open: false,
            new: !exists,
            preallocated: 0,
            dirty: Ranges::default(),
            verified: Ranges::default(),
            sums: BTreeMap::new(),
        };
        let mut part = Part {
            paths,
            data,
            sums,
            placement,
            boot,
            state: RwLock::new(state),
            mappings: Mappings::default(),
            shared_sync: SharedSync::default(),
            allowance: None,
        };
        part.recover(header.open_since)?;
        drop(room);
        part.allowance = allowance;
        Ok(Some(part))
    }

    /// Finds the blocks that were being written when the server stopped.
    fn recover(&mut self, open_since: Option<u128>) -> Result<(), Trouble> {
        let Some(since) = open_since else { return Ok(()) };
        // Where the machine was up all the time, what was written is there, entries too. Else some of it may have reached the
        // disk and some not: nothing is known of any block.
        let same_boot = since == self.boot;
        let mut dirty = Ranges::default();
        let mut at = 0;
        while let Some(noted) = sums::next_noted(&self.sums, at)? {
            at = noted.end;
            for batch in batches(noted, ENTRIES_AT_ONCE) {
                let entries =
                    sums::read_entries(&self.sums, batch.start, (batch.end - batch.start) as usize)?;
                for (entry, block) in entries.iter().zip(batch.start..) {
                    if *entry == Entry::Open || !same_boot && *entry != Entry::Unwritten {
                        dirty.insert(block..block + 1);
                    }
                }
            }
        }
        // It may have been stopped while it cut the part: the checksums go first. What is in a hole was never written.
        let mut at = if same_boot { sums::count(&self.sums)? } else { 0 };
        while let Some(data) = next_data(&self.data, at.saturating_mul(BLOCK_BYTES))? {
            let blocks = blocks_of(&data);
            at = blocks.end;
            dirty.insert(blocks);
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.open = true;
        // Who made it may have stopped before its first sync.
        state.new = true;
        state.dirty = dirty.clone();
        for range in dirty.iter() {
            mark_open(&self.sums, range)?;
        }
        if !same_boot {
            Header { open_since: Some(self.boot), placement: self.placement }.write(&self.sums)?;
        }
        Ok(())
    }

    /// Where its bytes belong.
    pub(super) fn placement(&self) -> Placement {
        self.placement
    }

    /// Bytes of the part.
    pub(super) fn len(&self) -> Result<u64, Trouble> {
        Ok(self.data.metadata()?.len())
    }

    /// Whether nothing would be forgotten if the part were closed now.
    pub(super) fn is_clean(&self) -> bool {
        self.read_state().dirty.is_empty()
    }

    /// Writes `data` to the strips, in order. `window` is memory to work in.
    pub(super) fn write(
        &self,
        mut strips: SlotStrips,
        data: Summed<'_>,
        window: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        let mut done = 0;
        let mut write = |group: &Group| {
            let now = done..done + group.bytes as usize;
            done = now.end;
            let bytes = data.data.get(now.clone()).ok_or(Trouble(Failure::Invalid(Expected::DataLength)))?;
            if !group.is_dense() {
                return self.write_pieces(group, bytes, window);
            }
            if self.write_beside(&group.span, bytes)? {
                return Ok(());
            }
            let mut state = self.write_state();
            let _room = self.reserve(&state, &group.span)?;
            self.begin_writing(&mut state, &group.span, true)?;
            self.data.write_all_at(bytes, group.span.start)?;
            state.note_sums(group.span.start, data, now);
            Ok(())
        };
        let mut grouping = Grouping::default();
        while let Some(strip) = strips.next() {
            for run in strips.runs(&strip) {
                grouping.add(run, &mut write)?;
            }
        }
        grouping.finish(&mut write)
    }

    /// Writes contiguous bytes beside others who write; false if there is something to note of their blocks, and nobody may.
    fn write_beside(&self, span: &Range<u64>, data: &[u8]) -> Result<bool, Trouble> {
        // Whoever sums or cuts blocks waits.
        let state = self.read_state();
        if has_whole_block(span) || !state.is_being_written(blocks_of(span)) {
            return Ok(false);
        }
        let _room = self.reserve(&state, span)?;
        self.data.write_all_at(data, span.start)?;
        Ok(true)
    }

    /// Writes pieces with gaps between them.
    fn write_pieces(&self, group: &Group, data: &[u8], window: &mut Vec<u8>) -> Result<(), Trouble> {
        let in_place = Mappings::are_for(&group.span);
        let _room = self.reserve(&self.read_state(), &group.span)?;
        if in_place && self.write_in_place(group, data)? {
            return Ok(());
        }
        let mut state = self.write_state();
        self.begin_writing(&mut state, &group.span, false)?;
        if in_place && group.span.end <= self.len()? {
            drop(state);
            if self.write_in_place(group, data)? {
                return Ok(());
            }
            // They cannot be mapped, or somebody synced in between.
            state = self.write_state();
            self.begin_writing(&mut state, &group.span, false)?;
        }
        self.rewrite(group, data, window)
    }

    /// Copies pieces straight to their places, beside others who do; false if that cannot be, or not yet.
    ///
    /// The file is not made longer so, and its holes are not filled unless there is room: a full disk is an error of a write.
    fn write_in_place(&self, group: &Group, data: &[u8]) -> Result<bool, Trouble> {
        // Whoever sums or cuts blocks waits.
        let state = self.read_state();
        if !state.is_being_written(blocks_of(&group.span)) || group.span.end > self.len()? {
            return Ok(false);
        }
        let written = self.mappings.write(&self.data, &group.span, |memory| put_pieces(group, data, memory));
        Ok(written.transpose()?.is_some())
    }

    /// Reads what is there, puts the pieces in, and writes it back. Nobody may write meanwhile.
    fn rewrite(&self, group: &Group, data: &[u8], window: &mut Vec<u8>) -> Result<(), Trouble> {
        let len = (group.span.end - group.span.start) as usize;
        if window.len() < len {
            window.resize(len, 0);
        }
        let window = &mut window[..len];
        let there = read_up_to(&self.data, window, group.span.start)?;
        window[there..].fill(0);
        put_pieces(group, data, window)?;
        Ok(self.data.write_all_at(window, group.span.start)?)
    }

    /// Reserves the room that writing to these bytes takes, if the server's room is limited.
    fn reserve(&self, state: &State, bytes: &Range<u64>) -> Result<Reserved<'_>, Trouble> {
        let reserved = Reserved::new(self.allowance.as_deref(), &self.paths, || {
            let blocks = blocks_of(bytes);
            let beyond = bytes.start.max(state.preallocated).min(bytes.end)..bytes.end;
            Ok(holes(&self.data, &beyond)? + holes(&self.sums, &sums::entries(&blocks))?)
        });
        Ok(reserved?.owning(state.preallocated))
    }

    /// Marks the blocks of these bytes as being written. Those that keep some of their old bytes must be sound: a damage
    /// is not to be sealed.
    fn begin_writing(&self, state: &mut State, bytes: &Range<u64>, dense: bool) -> Result<(), Trouble> {
        let blocks = blocks_of(bytes);
        state.forget_sums(blocks.clone());
        let clean = state.dirty.missing(blocks.clone());
        if clean.is_empty() {
            return Ok(());
        }
        for range in &clean {
            if !dense {
                self.verify(state, range.clone())?;
                continue;
            }
            for edge in [bytes.start, bytes.end] {
                let block = edge / BLOCK_BYTES;
                if !edge.is_multiple_of(BLOCK_BYTES) && range.contains(&block) {
                    self.verify(state, block..block + 1)?;
                }
            }
        }
        self.open_header(state)?;
        for range in clean {
            mark_open(&self.sums, range.clone())?;
            state.dirty.insert(range);
        }
        Ok(())
    }

    /// Notes, durably, that checksums may say nothing if the machine goes down.
    fn open_header(&self, state: &mut State) -> Result<(), Trouble> {
        if !state.open {
            Header { open_since: Some(self.boot), placement: self.placement }.write(&self.sums)?;
            self.sums.sync_data()?;
            state.open = true;
        }
        Ok(())
    }

    /// Reads the strips into `out`, in order; says how many bytes lie before the end of the part.
    pub(super) fn read(
        &self,
        mut strips: SlotStrips,
        out: &mut [u8],
        window: &mut Vec<u8>,
    ) -> Result<u64, Trouble> {
        let len = self.len()?;
        let mut done = 0;
        let mut read = |group: &Group| {
            if group.span.start >= len {
                return Ok(());
            }
            self.verify_once(blocks_of(&(group.span.start..group.span.end.min(len))))?;
            let target = &mut out[done as usize..(done + group.bytes) as usize];
            // Nobody cuts the file meanwhile; between two groups somebody may.
            let _state = self.read_state();
            let len = len.min(self.len()?);
            if group.span.start >= len {
                return Ok(());
            }
            done += self.read_group(group, len, target, window)?;
            Ok::<(), Trouble>(())
        };
        let mut grouping = Grouping::default();
        while let Some(strip) = strips.next() {
            if strip.part_offset >= len {
                break;
            }
            for run in strips.runs(&strip) {
                grouping.add(run, &mut read)?;
            }
        }
        grouping.finish(&mut read)?;
        Ok(done)
    }

    /// Reads a group's bytes before `len`; says how many.
    fn read_group(
        &self,
        group: &Group,
        len: u64,
        out: &mut [u8],
        window: &mut Vec<u8>,
    ) -> Result<u64, Trouble> {
        let bytes = bytes_before(group, len);
        let out = &mut out[..bytes as usize];
        if group.is_dense() {
            return Ok(read_up_to(&self.data, out, group.span.start)? as u64);
        }
        let mut left = bytes;
        let runs = group.runs.iter().flat_map(|run| whole_and_rest(*run, &mut left)).collect::<Vec<_>>();
        let mut take_pieces = |memory: &[u8]| {
            pack::pack(runs.iter().copied(), memory, -(group.span.start as i64), out)
                .map_err(|_| Trouble(Failure::Invalid(Expected::DataLength)))
        };
        let there = group.span.start..group.span.end.min(len);
        if let Some(taken) = self.mappings.read(&self.data, &there, &mut take_pieces) {
            return taken.map(|()| bytes);
        }
        let span = (group.span.end - group.span.start) as usize;
        if window.len() < span {
            window.resize(span, 0);
        }
        let window = &mut window[..span];
        read_up_to(&self.data, window, group.span.start)?;
        take_pieces(window)?;
        Ok(bytes)
    }

    /// Cuts or extends the part.
    pub(super) fn set_len(&self, bytes: u64) -> Result<(), Trouble> {
        let mut state = self.write_state();
        // Nothing is reserved, but what is given back is counted.
        let room = Reserved::new(self.allowance.as_deref(), &self.paths, || Ok(0))?;
        state.preallocated = state.preallocated.min(bytes);
        let _room = room.owning(state.preallocated);
        let len = self.len()?;
        if bytes < len {
            // The block that keeps some of its bytes is another one then.
            if !bytes.is_multiple_of(BLOCK_BYTES) {
                self.begin_writing(&mut state, &(bytes - 1..bytes), false)?;
            } else {
                self.open_header(&mut state)?;
            }
            let kept = bytes.div_ceil(BLOCK_BYTES);
            sums::cut(&self.sums, kept)?;
            state.dirty.remove(kept..u64::MAX);
            state.verified.remove(kept..u64::MAX);
            state.sums.split_off(&(bytes / BLOCK_BYTES));
            self.mappings.unmap();
        }
        if state.new {
            self.open_header(&mut state)?;
        }
        Ok(self.data.set_len(bytes)?)
    }

    /// Makes it so long, if it is shorter.
    pub(super) fn extend(&self, bytes: u64) -> Result<(), Trouble> {
        let mut state = self.write_state();
        if self.len()? >= bytes {
            return Ok(());
        }
        if state.new {
            self.open_header(&mut state)?;
        }
        Ok(self.data.set_len(bytes)?)
    }

    /// Makes sure that there is room for so many bytes. It stays as long as it is: other servers may have no room.
    pub(super) fn preallocate(&self, bytes: u64) -> Result<(), Trouble> {
        let mut state = self.write_state();
        if bytes == 0 {
            return Ok(());
        }
        if state.new {
            self.open_header(&mut state)?;
        }
        let room = self.reserve(&state, &(0..bytes))?;
        match rustix::fs::fallocate(&self.data, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Not every file system can.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(Trouble(Failure::Os(errno.raw_os_error()))),
            Ok(()) => {
                state.preallocated = state.preallocated.max(bytes);
                drop(room.owning(state.preallocated));
                Ok(())
            }
        }
    }

    /// Seals what was written, and makes it durable. If that fails, `failed` is called before anybody else syncs.
    pub(super) fn sync(&self, failed: impl FnOnce()) -> Result<(), Trouble> {
        self.shared_sync.run(|| self.sync_alone().inspect_err(|_| failed()))
    }

    fn sync_alone(&self) -> Result<(), Trouble> {
        self.seal()?;
        let state = self.write_state();
        let (new, open) = (state.new, state.open);
        self.mappings.unmap();
        drop(state);
        // Others may write meanwhile: their blocks are open again, and so stays the part.
        self.data.sync_data()?;
        if new {
            self.paths.sync_folder()?;
        }
        if open {
            self.sums.sync_data()?;
        }
        let mut state = self.write_state();
        state.new &= !new;
        if open && state.open && state.dirty.is_empty() {
            Header { open_since: None, placement: self.placement }.write(&self.sums)?;
            state.open = false;
            self.sums.sync_data()?;
        }
        Ok(())
    }

    /// Sums the blocks that were written. After a power loss that is all of a part, for which nobody is to wait: between batches,
    /// others read and write.
    fn seal(&self) -> Result<(), Trouble> {
        let mut batch = Vec::new();
        let mut done = 0;
        loop {
            let mut state = self.write_state();
            let Some(dirty) = state.dirty.from(done) else { return Ok(()) };
            let Some(blocks) = batches(dirty, BATCH).next() else { return Ok(()) };
            let len = self.len()?;
            let known = state.known_entries(&blocks);
            let entries = known.map_or_else(|| self.entries_of(&blocks, len, &mut batch), Ok)?;
            sums::write_entries(&self.sums, blocks.start, &entries)?;
            state.forget_sums(blocks.clone());
            state.dirty.remove(blocks.clone());
            done = blocks.end;
            state.verified.insert(blocks);
        }
    }

    /// The checksums that blocks have now.
    fn entries_of(&self, blocks: &Range<u64>, len: u64, batch: &mut Vec<u8>) -> Result<Vec<Entry>, Trouble> {
        let bytes = blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(len);
        batch.resize(bytes.end.saturating_sub(bytes.start) as usize, 0);
        let there = read_up_to(&self.data, batch, bytes.start)?;
        let mut entries: Vec<Entry> = batch[..there]
            .chunks(BLOCK_BYTES as usize)
            .map(|block| Entry::Sealed { checksum: crc32fast::hash(block), bytes: block.len() as u32 })
            .collect();
        entries.resize((blocks.end - blocks.start) as usize, Entry::Unwritten);
        Ok(entries)
    }

    fn verify_once(&self, blocks: Range<u64>) -> Result<(), Trouble> {
        if self.read_state().verified.missing(blocks.clone()).is_empty() {
            return Ok(());
        }
        self.verify(&mut self.write_state(), blocks)
    }

    /// Compares blocks with their checksums, unless it was done before.
    fn verify(&self, state: &mut State, blocks: Range<u64>) -> Result<(), Trouble> {
        for range in state.verified.missing(blocks) {
            for blocks in batches(range, BATCH) {
                if let Some(&block) = self.damaged(&blocks)?.first() {
                    return Err(Trouble(Failure::Damaged { block }));
                }
                state.verified.insert(blocks);
            }
        }
        Ok(())
    }

    /// Those of the blocks that do not have their checksum.
    fn damaged(&self, blocks: &Range<u64>) -> Result<Vec<u64>, Trouble> {
        let entries = sums::read_entries(&self.sums, blocks.start, (blocks.end - blocks.start) as usize)?;
        let span = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
        let is_written = |entry: &Entry| matches!(entry, Entry::Sealed { .. });
        if entries.iter().all(|entry| *entry == Entry::Open)
            || !entries.iter().any(is_written) && holes(&self.data, &span)? == span.end - span.start
        {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; (span.end - span.start) as usize];
        let there = read_up_to(&self.data, &mut bytes, span.start)?;
        let sound = |entry: &Entry, at: usize| {
            let block = &bytes[at..at + BLOCK_BYTES as usize];
            let (sum_is_right, covered) = match *entry {
                Entry::Open => return true,
                Entry::Unwritten => (true, 0),
                Entry::Sealed { checksum, bytes: covered } => {
                    let covered = covered as usize;
                    let is_there = covered <= block.len() && at + covered <= there;
                    (is_there && crc32fast::hash(&block[..covered]) == checksum, covered.min(block.len()))
                }
            };
            // What was never written is zeros: other bytes were put there by somebody else.
            sum_is_right && block[covered..].iter().all(|byte| *byte == 0)
        };
        let places = (0..).step_by(BLOCK_BYTES as usize);
        let judged = entries.iter().zip(places).zip(blocks.start..);
        Ok(judged.filter(|((entry, at), _)| !sound(entry, *at)).map(|(_, block)| block).collect())
    }

    /// Compares all blocks with their checksums; says how many there are and which are damaged.
    pub(super) fn check(&self) -> Result<(u64, Vec<u64>), Trouble> {
        let blocks = sums::count(&self.sums)?.max(self.len()?.div_ceil(BLOCK_BYTES));
        let mut damaged = Vec::new();
        let mut at = 0;
        while let Some(kept) = self.next_kept(at)? {
            at = kept.end;
            for batch in batches(kept, BATCH) {
                // Between batches others read and write.
                let mut state = self.write_state();
                for block in self.damaged(&batch)? {
                    // Nobody is given what is known to be damaged, though it was sound when it was read before.
                    state.verified.remove(block..block + 1);
                    damaged.push(block);
                }
            }
        }
        Ok((blocks, damaged))
    }

    /// The first blocks from `block` on that are not in a hole, or whose checksums are not. All others are zeros that nobody
    /// wrote, and sound.
    fn next_kept(&self, block: u64) -> Result<Option<Range<u64>>, Trouble> {
        let data = next_data(&self.data, block.saturating_mul(BLOCK_BYTES))?.map(|bytes| blocks_of(&bytes));
        let noted = sums::next_noted(&self.sums, block)?;
        Ok(data.into_iter().chain(noted).min_by_key(|blocks| blocks.start))
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes the checksums of the blocks that `now` of the data, written to `start`, has the whole of: those that came with
    /// the data if they are of the same bytes.
    fn note_sums(&mut self, start: u64, data: Summed<'_>, now: Range<usize>) {
        let block_bytes = BLOCK_BYTES as usize;
        let first = start.next_multiple_of(BLOCK_BYTES);
        let skipped = (first - start) as usize;
        let places = (now.start + skipped..now.end).step_by(block_bytes);
        for (place, block) in places.zip(first / BLOCK_BYTES..) {
            if place + block_bytes > now.end || self.sums.len() >= MOST_SUMS {
                return;
            }
            let came = place.is_multiple_of(block_bytes).then(|| data.sums.get(place / block_bytes).copied());
            let sum = came.flatten();
            let sum = sum.unwrap_or_else(|| crc32fast::hash(&data.data[place..place + block_bytes]));
            self.sums.insert(block, sum);
        }
    }

    /// Whether these blocks are marked as being written, all of them, and none is taken to hold what was summed before.
    fn is_being_written(&self, blocks: Range<u64>) -> bool {
        self.dirty.missing(blocks.clone()).is_empty() && self.sums.range(blocks).next().is_none()
    }

    fn forget_sums(&mut self, blocks: Range<u64>) {
        while let Some((&block, _)) = self.sums.range(blocks.clone()).next() {
            self.sums.remove(&block);
        }
    }

    /// The entries of blocks whose checksums are all known.
    fn known_entries(&self, blocks: &Range<u64>) -> Option<Vec<Entry>> {
        let sums = self.sums.range(blocks.clone());
        let bytes = BLOCK_BYTES as u32;
        let entries: Vec<Entry> = sums.map(|(_, &checksum)| Entry::Sealed { checksum, bytes }).collect();
        (entries.len() as u64 == blocks.end - blocks.start).then_some(entries)
    }
}

/// Puts the pieces of a group into memory that holds its span.
fn put_pieces(group: &Group, data: &[u8], memory: &mut [u8]) -> Result<(), Trouble> {
    pack::unpack(group.runs.iter().copied(), memory, -(group.span.start as i64), data)
        .map_err(|_| Trouble(Failure::Invalid(Expected::DataLength)))
}

fn mark_open(sums: &File, blocks: Range<u64>) -> io::Result<()> {
    for batch in batches(blocks, ENTRIES_AT_ONCE) {
        let entries = vec![Entry::Open; (batch.end - batch.start) as usize];
        sums::write_entries(sums, batch.start, &entries)?;
    }
    Ok(())
}

/// Blocks that hold these bytes.
fn blocks_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / BLOCK_BYTES..bytes.end.div_ceil(BLOCK_BYTES)
}

/// Ranges of `most` blocks.
fn batches(blocks: Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    (blocks.start..blocks.end).step_by(most as usize).map(move |first| first..(first + most).min(blocks.end))
}

/// Bytes of a group that lie before `len`.
fn bytes_before(group: &Group, len: u64) -> u64 {
    if group.span.end <= len {
        return group.bytes;
    }
    group
        .runs
        .iter()
        .map(|run| {
            let room = len.saturating_sub(run.offset as u64);
            if run.count == 1 {
                return room.min(run.len);
            }
            let stride = run.stride as u64;
            let whole = (room / stride).min(run.count);
            let rest = if whole < run.count { (room % stride).min(run.len) } else { 0 };
            whole * run.len + rest
        })
        .sum()
}

/// The first `left` bytes of a run, as whole pieces and the beginning of one; takes them off `left`.
fn whole_and_rest(run: pio_layout::Run, left: &mut u64) -> impl Iterator<Item = pio_layout::Run> + use<> {
    let bytes = run.size().min(*left);
    *left -= bytes;
    let whole = bytes / run.len;
    let stride = if whole > 1 { run.stride } else { 0 };
    let pieces = pio_layout::Run { count: whole, stride, ..run };
    let offset = run.offset + whole as i64 * run.stride;
    let rest = pio_layout::Run { offset, len: bytes % run.len, stride: 0, count: 1 };
    [pieces, rest].into_iter().filter(|run| run.size() > 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const LEN: u64 = 1 << 43;

    /// A server that was started again wrote a checksum for each block of a hole, and read it all with the next sync; a check
    /// walked through it.
    #[test]
    fn holes_take_no_time() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path(), FileId(1));
        let placement = Placement::new(BLOCK_BYTES, 1, 0, 1).unwrap();
        let open = |boot| Part::open(paths.clone(), placement, boot, true, None).ok().unwrap().unwrap();
        let part = open(1);
        part.begin_writing(&mut part.write_state(), &(100_000..100_010), true).ok().unwrap();
        part.data.write_all_at(b"0123456789", 100_000).unwrap();
        if part.set_len(LEN).is_err() || fs::metadata(&paths.data).unwrap().blocks() > 1000 {
            eprintln!("skipped: no holes in files on this file system, or none so large");
            return;
        }
        // Without a checksum: written while the part was being cut.
        part.data.write_all_at(b"x", LEN / 2).unwrap();
        drop(part);
        for boot in [1, 2] {
            let part = open(boot);
            let dirty: u64 = part.read_state().dirty.iter().map(|range| range.end - range.start).sum();
            // The bytes, and what the file system holds beside them.
            assert!((2..100).contains(&dirty), "{dirty}");
            if boot == 2 {
                part.sync(|| ()).ok().unwrap();
                assert_eq!(part.check().ok().unwrap(), (LEN / BLOCK_BYTES, Vec::new()));
            }
        }
        assert!(paths.taken_bytes(0) < 1 << 20);
        // What somebody else puts into a hole, or makes one, is a damage as before.
        let part = open(2);
        assert!(part.is_clean());
        part.data.write_all_at(b"y", LEN / 4).unwrap();
        rustix::fs::fallocate(
            &part.data,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            BLOCK_BYTES,
            BLOCK_BYTES,
        )
        .unwrap();
        assert_eq!(part.check().ok().unwrap().1, [1, LEN / 4 / BLOCK_BYTES]);
    }
}

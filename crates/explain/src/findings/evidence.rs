//! The pass over the events: every call of the program is charged to what is remarkable about it.

use std::collections::HashMap;

use pio_trace::{Call, Event, FileId, Flags, Layer, Op, ProcessId, Tables, Target, ViewId};

use super::class::{Charge, Class};
use super::collectives::CollectiveData;
use super::files::{self, FileState};
use super::limits::{LARGE, PAGE, SMALL, SOON, STREAM_BUFFER, SYNC};
use super::mappings::Mapped;
use super::processes::ProcessState;
use super::ranges::Ranges;
use super::rates::{Rates, Regime};
use super::slots::{Reuse, Slots};
use super::streams::Order;
use crate::collectives::Collectives;
use crate::tally::{InTurn, Seen};

/// What is gathered for the findings. Its memory grows with the files and handles of the job, not with its events.
pub(crate) struct Evidence<'a> {
    pub(crate) tables: &'a Tables,
    in_turn: InTurn,
    pub(crate) rates: Rates,
    pub(crate) slots: Slots,
    pub(crate) files: Vec<FileState>,
    hosts: Vec<ProcessId>,
    /// Whether each process has a rank.
    ranked: Vec<bool>,
    pub(crate) processes: Vec<ProcessState>,
    /// Whether any file was opened for appending.
    any_appends: bool,
    /// Of each thread that calls HDF5 or PnetCDF: the last such call's operation, and its end.
    library_calls: HashMap<(ProcessId, u32), (u64, u64)>,
    pub(crate) collectives: Collectives,
    /// What becomes of collective reads and writes with which nothing else is wrong.
    pub(crate) collective_data: CollectiveData,
}

/// What becomes known of a read or write from what all processes did with its file before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shared {
    /// Of a write, its bytes that were written before, and not used since.
    overwritten: u64,
    /// Of a write that is not charged with that, whether it shares a page or stripe with the latest write of another process.
    shares: bool,
    /// Of a read of a rank, its bytes that some rank has read by itself.
    read_by_ranks: u64,
}

/// A read or write, and where in the file it is.
struct Access {
    slot: usize,
    /// Bytes of the file, if they are one behind the other.
    bytes: Option<(u64, u64)>,
    length: u64,
    order: Order,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(tables: &'a Tables) -> Evidence<'a> {
        let ranked: Vec<bool> = tables.processes.iter().map(|process| process.rank.is_some()).collect();
        Evidence {
            tables,
            in_turn: InTurn::new(tables.processes.len()),
            rates: Rates::new(tables),
            slots: Slots::new(tables),
            files: files::files(tables),
            hosts: files::hosts(tables),
            processes: ranked.iter().copied().map(ProcessState::new).collect(),
            ranked,
            any_appends: false,
            library_calls: HashMap::new(),
            collectives: Collectives::new(tables),
            collective_data: CollectiveData::default(),
        }
    }

    /// Looks at one event; they come in order of their start.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        self.add_with(event, None);
    }

    /// Looks at what one event has for itself, of events that are plain; those of each process come in order of their start. With
    /// [`Evidence::share`] of the same events, in order of start and before this, the same is found as by [`Evidence::add`].
    pub(crate) fn add_own(&mut self, event: &Seen<'_>, shared: Shared) {
        self.add_with(event, Some(shared));
    }

    /// Whether these are calls of the program on open files alone, which wait for nobody; and nothing that they are measured
    /// by changes meanwhile: only what [`Evidence::share`] finds depends on the order of processes.
    pub(crate) fn are_plain(&self, events: &[Event]) -> bool {
        let knows_parts = self.rates.knows_parts();
        let is_plain = |event: &Event| {
            let call = match event.op() {
                Op::Read | Op::Write => !knows_parts || event.transferred() < LARGE,
                Op::Open | Op::Close => event.result >= 0,
                Op::Sync | Op::Seek => true,
                Op::Metadata | Op::View | Op::Communicate | Op::Mark => false,
            };
            let is_at_files = matches!(event.layer(), Layer::Posix | Layer::Stdio);
            let place =
                matches!(event.target, Target::None | Target::Extent { .. }) || event.call_site().is_some();
            let flags = [Flags::PHYSICAL, Flags::UNFINISHED, Flags::APPEND];
            let known = event.handle.is_some() && event.process.index() < self.processes.len();
            call && is_at_files && place && known && !flags.into_iter().any(|flag| event.flags.contains(flag))
        };
        !self.any_appends && events.iter().all(is_plain)
    }

    /// What all processes together have of an event that is plain; with its slot made, as slots are in order of first use.
    pub(crate) fn share(&mut self, event: &Seen<'_>) -> Shared {
        let mut shared = Shared::default();
        let Some(handle) = event.handle.filter(|_| !event.failed || event.op() == Op::Sync) else {
            return shared;
        };
        if self.slots.of_handle(self.tables, handle, event.process).is_none() {
            return shared;
        }
        let Some(file) = self.tables.handles.get(handle.index()).map(|known| known.file) else {
            return shared;
        };
        match event.op() {
            Op::Close | Op::Sync => {
                if let Some(file) = self.files.get_mut(file.index()) {
                    file.unused.clear();
                }
            }
            Op::Read | Op::Write if event.bytes > 0 => {
                if let Target::Extent { offset } = event.target
                    && let Some(end) = offset.checked_add(event.bytes)
                {
                    shared = self.share_access(event, file, offset, end);
                    let alone = event.op() == Op::Read || is_most(shared.overwritten, event.bytes);
                    shared.shares = !alone && self.shares(event.process, file, offset, end);
                }
            }
            _ => {}
        }
        shared
    }

    fn add_with(&mut self, event: &Seen<'_>, shared: Option<Shared>) {
        let request = self.in_turn.request(event);
        let event = &request.as_ref().map_or(*event, Seen::of);
        let charge = self.charge(event, shared);
        self.collectives.add(event, charge);
        if self.collectives.has_news() {
            self.take_news();
        }
    }

    /// All events were seen.
    pub(crate) fn end(&mut self) {
        self.collectives.end();
        self.charge_parts();
    }

    fn take_news(&mut self) {
        for (process, time_ns) in self.collectives.take_waits() {
            if let Some(process) = self.processes.get_mut(process.index()) {
                process.waited_for_ranks(time_ns);
            }
        }
        self.charge_parts();
    }

    /// Calls of MPI-IO of which it has become known where their time went: what was waiting for late ranks is not charged to
    /// anything else.
    fn charge_parts(&mut self) {
        for one in self.collectives.take_settled() {
            let Some(Charge { slot, class }) = one.charge else { continue };
            let costs = &mut self.slots.slots[slot].costs;
            if one.split.late_ns > 0 {
                if let Some(class) = class {
                    let cost = costs.of(class);
                    cost.take_away(one.split.late_ns);
                }
                costs.of(Class::Late).add_part(&one, one.split.late_ns);
            }
            let moves = matches!(one.op, Op::Read | Op::Write);
            if class.is_none() && moves && one.collective && one.split.unknown_ns == 0 {
                self.collective_data.add(&one, costs.of(Class::Library));
            }
        }
    }

    /// Charges a call to what is remarkable about it.
    fn charge(&mut self, event: &Seen<'_>, shared: Option<Shared>) -> Option<Charge> {
        let op = event.op();
        if let Some(process) = self.processes.get_mut(event.process.index()) {
            if matches!(op, Op::Read | Op::Write) && event.layer().is_at_files() {
                process.add_at_files(event);
            }
            if !event.is_physical() {
                process.think(event.think_ns);
            }
        }
        if !self.is_charged(event) || event.flags.contains(Flags::UNFINISHED) {
            return None;
        }
        let event = &self.overlapped(event);
        match op {
            Op::Read | Op::Write => self.add_access(event, shared),
            Op::Open | Op::Close => self.add_open(event, shared.is_some()),
            Op::Sync => self.add_sync(event, shared.is_some()),
            // Programs ask so whether a file is a pipe: no request comes behind it.
            Op::Seek if event.failed => None,
            Op::Seek => self.charge_handle(event, Class::Seek),
            Op::Metadata if matches!(event.call, Call::Flock | Call::FcntlLock) => {
                self.charge_handle(event, Class::Lock)
            }
            Op::Metadata if !matches!(event.call, Call::Dup | Call::Mmap) => self.charge_name(event),
            Op::Metadata | Op::View => {
                let slot = self.slots.of_handle(self.tables, event.handle?, event.process)?;
                if event.call == Call::Mmap && !event.failed {
                    let before = self.slots.slots[slot].mapped;
                    let mapped = before.unwrap_or(Mapped { bytes: 0, from_ns: event.start_ns });
                    let bytes = mapped.bytes.saturating_add(event.size);
                    self.slots.slots[slot].mapped = Some(Mapped { bytes, ..mapped });
                }
                Some(Charge { slot, class: None })
            }
            Op::Communicate | Op::Mark => None,
        }
    }

    /// Takes away what of the call's time another thread of the process is in a call too.
    fn overlapped<'e>(&mut self, event: &Seen<'e>) -> Seen<'e> {
        match self.processes.get_mut(event.process.index()) {
            Some(process) => event.overlapped(process.covered.add(event.start_ns, event.end_ns()).1),
            None => *event,
        }
    }

    /// Whether it is a call that the program made, and that says which bytes of which file. HDF5 and PnetCDF name what lies
    /// in a file: what they cause directly is charged in their place.
    fn is_charged(&mut self, event: &Seen<'_>) -> bool {
        let thread = (event.process, event.thread);
        if event.layer().is_library() {
            if !event.is_physical() {
                let end_ns = if event.flags.contains(Flags::UNFINISHED) { u64::MAX } else { event.end_ns() };
                self.library_calls.insert(thread, (event.operation, end_ns));
            }
            return false;
        }
        if !event.is_physical() {
            return true;
        }
        if self.library_calls.is_empty() {
            return false;
        }
        let Some(&(operation, end_ns)) = self.library_calls.get(&thread) else { return false };
        match event.layer() {
            // It has an operation of its own.
            Layer::MpiIo => event.start_ns <= end_ns,
            Layer::Posix | Layer::Stdio => event.operation == operation && operation != 0,
            Layer::Server | Layer::Message | Layer::Hdf5 | Layer::Pnetcdf | Layer::Mark => false,
        }
    }

    fn add_open(&mut self, event: &Seen<'_>, is_shared: bool) -> Option<Charge> {
        let Some(handle) = event.handle.filter(|_| !event.failed) else {
            return self.charge_name(event);
        };
        let index = self.slots.of_handle(self.tables, handle, event.process)?;
        let (state, slot) = (&mut self.slots.handles[handle.index()], &mut self.slots.slots[index]);
        if event.op() == Op::Open {
            slot.opens += 1;
            slot.appends |= event.flags.contains(Flags::APPEND);
            self.any_appends |= slot.appends;
            slot.synced |= event.flags.contains(Flags::SYNC);
            slot.direct |= event.flags.contains(Flags::DIRECT);
            state.reopened = slot.opens > 1;
            slot.add_call_site(event);
        } else {
            state.streams = None;
            if !is_shared && let Some(file) = slot.file.and_then(|file| self.files.get_mut(file.index())) {
                file.unused.clear();
            }
        }
        let class = if state.reopened { Class::Reopen } else { Class::Open };
        slot.costs.of(class).add(event);
        Some(Charge { slot: index, class: Some(class) })
    }

    fn add_sync(&mut self, event: &Seen<'_>, is_shared: bool) -> Option<Charge> {
        let handle = event.handle?;
        let index = self.slots.of_handle(self.tables, handle, event.process)?;
        let (state, slot) = (&mut self.slots.handles[handle.index()], &mut self.slots.slots[index]);
        // A flush moves data to the kernel: it is the sync behind it that forces them to the device.
        let is_flush = event.layer() == Layer::Stdio;
        let written = std::mem::take(if is_flush { &mut state.unflushed } else { &mut state.unsynced });
        if !is_shared && let Some(file) = slot.file.and_then(|file| self.files.get_mut(file.index())) {
            file.unused.clear();
        }
        let class = if is_flush {
            (written < STREAM_BUFFER).then_some(Class::Stream)
        } else {
            (written < SYNC).then_some(Class::Sync)
        };
        if let Some(class) = class {
            slot.costs.of(class).add(event);
        }
        Some(Charge { slot: index, class })
    }

    fn charge_handle(&mut self, event: &Seen<'_>, class: Class) -> Option<Charge> {
        let slot = self.slots.of_handle(self.tables, event.handle?, event.process)?;
        self.slots.slots[slot].costs.of(class).add(event);
        Some(Charge { slot, class: Some(class) })
    }

    fn charge_name(&mut self, event: &Seen<'_>) -> Option<Charge> {
        // Attributes are asked for by name, or through an open file.
        let named = self.tables.file_id_of_event(event);
        let slot = self.slots.of_name(named, event.process);
        self.slots.slots[slot].costs.of(Class::Name).add(event);
        Some(Charge { slot, class: Some(Class::Name) })
    }

    fn add_access(&mut self, event: &Seen<'_>, shared: Option<Shared>) -> Option<Charge> {
        if event.failed {
            return None;
        }
        // A rank that has nothing to move takes part in a collective call all the same.
        if event.bytes == 0 {
            let slot = self.slots.of_handle(self.tables, event.handle?, event.process)?;
            return Some(Charge { slot, class: None });
        }
        let file =
            event.handle.and_then(|handle| self.tables.handles.get(handle.index())).map(|one| one.file);
        if event.bytes >= LARGE && !self.may_share_stripe(event, file) {
            self.rates.add(event, file);
        }
        if let Some(process) = self.processes.get_mut(event.process.index()) {
            process.add_asked(event);
        }
        let access = self.access(event)?;
        let reuse = access.bytes.and_then(|bytes| self.reuse(event, &access, bytes, shared));
        let class = reuse.map(|(class, _)| class).or_else(|| self.shape(event, &access, shared));
        match class {
            Some(class) => {
                let slot = &mut self.slots.slots[access.slot];
                let cost = slot.costs.of(class);
                cost.add(event);
                cost.again_bytes = cost.again_bytes.saturating_add(reuse.map_or(0, |(_, again)| again));
                if let (Class::RandomRead | Class::StepsRead, Some((start, end))) = (class, access.bytes) {
                    let known = slot.reach.unwrap_or((start, end));
                    slot.reach = Some((known.0.min(start), known.1.max(end)));
                }
            }
            None => {
                if let Some(process) = self.processes.get_mut(event.process.index()) {
                    process.wait(event);
                }
            }
        }
        Some(Charge { slot: access.slot, class })
    }

    /// Where it is, and in what order.
    fn access(&mut self, event: &Seen<'_>) -> Option<Access> {
        let handle = event.handle?;
        let slot = self.slots.of_handle(self.tables, handle, event.process)?;
        let (view, start): (Option<ViewId>, u64) = match event.target {
            Target::Extent { offset } | Target::Server { offset, .. } => (None, offset),
            Target::View { view, position } => (Some(view), position),
            Target::None | Target::Peer { .. } | Target::Name { .. } | Target::Mark { .. } => return None,
        };
        let length = event.bytes;
        let reads = event.op() == Op::Read;
        let state = &mut self.slots.handles[handle.index()];
        let order = state.streams.get_or_insert_default()[usize::from(reads)].follow(view, start, length);
        if !reads {
            state.unsynced = state.unsynced.saturating_add(length);
            state.unflushed = state.unflushed.saturating_add(length);
        }
        let end = start.checked_add(length)?;
        let view = view.and_then(|view| self.tables.views.get(view.index()));
        let (bytes, span) = match view {
            None => (Some((start, end)), (start, end)),
            Some(view) => {
                let span = (view.offset_of(start)?, view.offset_of(end - 1)?.checked_add(1)?);
                (view.is_contiguous_over(start..end).then_some(span), span)
            }
        };
        let slot_state = &mut self.slots.slots[slot];
        if reads {
            slot_state.read = true;
        } else {
            slot_state.written = true;
        }
        if event.layer() == Layer::MpiIo {
            let known = slot_state.span.unwrap_or(span);
            slot_state.span = Some((known.0.min(span.0), known.1.max(span.1)));
        }
        Some(Access { slot, bytes, length, order })
    }

    /// Whether at least half of the bytes were read or written before, to no avail; and how many.
    fn reuse(
        &mut self,
        event: &Seen<'_>,
        access: &Access,
        (start, end): (u64, u64),
        shared: Option<Shared>,
    ) -> Option<(Class, u64)> {
        let file = self.slots.slots[access.slot].file?;
        let shared = shared.unwrap_or_else(|| self.share_access(event, file, start, end));
        let clock = self.processes.get(event.process.index()).map_or(0, |process| process.clock);
        let if_most = |class: Class, again: u64| is_most(again, access.length).then_some((class, again));
        let reuse = self.slots.slots[access.slot].reuse.get_or_insert_default();
        if event.op() == Op::Write {
            reuse.write(start, end, clock);
            return if_most(Class::Overwrite, shared.overwritten);
        }
        let known = reuse.read(event, start, end, clock);
        if_most(Class::Reread, known)
            .or_else(|| if_most(Class::ReadBack, reuse.just_written(start, end, clock)))
            .or_else(|| if_most(Class::ReadByOthers, shared.read_by_ranks.saturating_sub(known)))
    }

    /// Takes note of what is read or written of a file, whoever does it; not whether a write shares pages.
    fn share_access(&mut self, event: &Seen<'_>, file: FileId, start: u64, end: u64) -> Shared {
        let mut shared = Shared::default();
        let Some(file) = self.files.get_mut(file.index()) else { return shared };
        if event.op() == Op::Write {
            shared.overwritten = file.unused.insert(start, end);
            return shared;
        }
        file.unused.remove(start, end);
        let is_ranked = self.ranked.get(event.process.index()).is_some_and(|ranked| *ranked);
        if is_ranked && !event.flags.contains(Flags::COLLECTIVE) {
            shared.read_by_ranks = file.read.insert(start, end);
        }
        shared
    }

    /// What is remarkable about its size and order.
    fn shape(&mut self, event: &Seen<'_>, access: &Access, shared: Option<Shared>) -> Option<Class> {
        let (order, length) = (access.order, access.length);
        let jumps = matches!(order, Order::Random | Order::Strided);
        if event.layer() == Layer::MpiIo {
            return mpi_shape(event, access);
        }
        if event.op() == Op::Write {
            if length < LARGE && self.appends_with_others(access.slot) {
                return Some(Class::Append);
            }
            let shares =
                shared.map_or_else(|| self.shares_pages(event.process, access), |shared| shared.shares);
            if shares {
                return Some(Class::SharedPage);
            }
            if length < LARGE && self.fetches_page(event, access) {
                return Some(Class::PartialPage);
            }
        }
        if jumps && length < LARGE {
            return Some(match (order == Order::Strided, event.op() == Op::Read) {
                (true, true) => Class::StepsRead,
                (true, false) => Class::StepsWrite,
                (false, true) => Class::RandomRead,
                (false, false) => Class::RandomWrite,
            });
        }
        if event.layer() == Layer::Stdio && length < STREAM_BUFFER {
            return Some(Class::Stream);
        }
        let small = if event.op() == Op::Read { Class::SmallRead } else { Class::SmallWrite };
        (length < SMALL).then_some(small)
    }

    fn appends_with_others(&self, slot: usize) -> bool {
        let slot = &self.slots.slots[slot];
        let shared = slot.file.and_then(|file| self.files.get(file.index())).is_some_and(|file| file.shared);
        slot.appends && shared
    }

    /// Whether a write, however large, may share a stripe with those of other processes: then it does not reach what others do.
    fn may_share_stripe(&self, event: &Seen<'_>, file: Option<FileId>) -> bool {
        let file = file.and_then(|file| self.files.get(file.index()));
        event.op() == Op::Write
            && file.is_some_and(|file| file.stripe.is_some_and(|stripe| event.bytes < stripe))
    }

    fn shares_pages(&mut self, process: ProcessId, access: &Access) -> bool {
        let file = self.slots.slots[access.slot].file.zip(access.bytes);
        file.is_some_and(|(file, (start, end))| self.shares(process, file, start, end))
    }

    fn shares(&mut self, process: ProcessId, file: FileId, start: u64, end: u64) -> bool {
        let Some(file) = self.files.get_mut(file.index()) else { return false };
        let host = self.hosts.get(process.index()).copied().unwrap_or(process);
        file.shares(process, host, start, end)
    }

    /// Whether the system had to fetch a page of which the write has a part.
    fn fetches_page(&mut self, event: &Seen<'_>, access: &Access) -> bool {
        let slot = &mut self.slots.slots[access.slot];
        let Some((start, end)) = access.bytes else { return false };
        let waits_anyway = slot.appends || slot.synced || slot.direct || event.flags.contains(Flags::ASYNC);
        if waits_anyway || (start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE)) {
            return false;
        }
        let Some(part_ns) = self.rates.part_ns(slot.file) else { return false };
        let large = self.rates.reference(slot.file, true, Regime::Cached);
        let bytes_ns = large.map_or(0.0, |rate| access.length as f64 / rate.bytes_per_s * 1e9);
        let waited_ns = event.elapsed_ns as f64 - bytes_ns;
        slot.edges.get_or_insert_default().add(start, end, waited_ns, part_ns)
    }
}

/// Whether these are at least half of a call's bytes.
fn is_most(bytes: u64, length: u64) -> bool {
    bytes >= length.div_ceil(2)
}

/// What is remarkable about a call of MPI-IO.
fn mpi_shape(event: &Seen<'_>, access: &Access) -> Option<Class> {
    let (one_piece, length) = (access.bytes.is_some(), access.length);
    let steps = one_piece && access.order == Order::Strided && length < LARGE;
    if event.flags.contains(Flags::COLLECTIVE) {
        return steps.then_some(Class::CollectivePieces);
    }
    if steps {
        return Some(Class::IndependentSteps);
    }
    let jumps = access.order == Order::Random && length < LARGE;
    (!one_piece || jumps || length < SMALL).then_some(Class::Independent)
}

impl Reuse {
    /// Takes note of a write of the process whose count of bytes is `clock`.
    fn write(&mut self, start: u64, end: u64, clock: u64) {
        self.read.remove(start, end);
        let newest = &mut self.recent[usize::from(self.newest)];
        if newest.1 == start && newest.0 < newest.1 {
            // Older than what is still in memory: forgotten from the front.
            *newest = (newest.0.max(end.saturating_sub(SOON)), end, clock);
        } else {
            self.newest = (self.newest + 1) % self.recent.len() as u8;
            self.recent[usize::from(self.newest)] = (start, end, clock);
        }
    }

    /// Takes note of a read; says how many of its bytes the process had read before.
    fn read(&mut self, event: &Seen<'_>, start: u64, end: u64, clock: u64) -> u64 {
        let known = self.read.insert(start, end);
        if known >= (end - start).div_ceil(2) {
            if start <= self.last_start {
                self.passes += 1;
                self.pass_bytes = self.pass_bytes.saturating_add(clock.saturating_sub(self.pass_clock));
                self.pass_clock = clock;
            }
        } else {
            self.first_bytes = self.first_bytes.saturating_add(end - start);
            self.first_ns = self.first_ns.saturating_add(event.elapsed_ns);
        }
        self.last_start = start;
        known
    }

    /// How many of these bytes the process has written so lately that it must still have had them.
    fn just_written(&self, start: u64, end: u64, clock: u64) -> u64 {
        // Extents may overlap: no byte counts twice.
        let mut counted = Ranges::default();
        let recent = self.recent.iter().filter(|extent| clock.saturating_sub(extent.2) <= SOON);
        let parts = recent.map(|extent| (start.max(extent.0), end.min(extent.1)));
        parts
            .filter(|(from, until)| from < until)
            .map(|(from, until)| until - from - counted.insert(from, until))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use pio_trace::{BlockEvents, File, Handle, HandleId, Process, Trace, TraceWriter};
    use proptest::prelude::*;

    use super::*;

    const PROCESSES: u32 = 12;
    const FILES: u32 = 3;

    /// Ranks on hosts of four, and two processes without a rank; each has each file open.
    fn tables() -> Tables {
        let process = |number| Process {
            rank: (number < 10).then_some(number),
            pid: number,
            host: format!("node{}", number / 4),
            command: "app".into(),
            start_ns: 0,
            end_ns: None,
        };
        let handle = |number| Handle {
            file: FileId(number % FILES),
            process: ProcessId(number / FILES),
            ranks: 1,
            collective: 0,
        };
        Tables {
            processes: (0..PROCESSES).map(process).collect(),
            files: (0..FILES).map(|file| File { path: format!("/data/{file}") }).collect(),
            handles: (0..PROCESSES * FILES).map(handle).collect(),
            ..Tables::default()
        }
    }

    /// A call of some process on some file: few places, so that processes meet; some of them fail, a few are not plain.
    fn call() -> impl Strategy<Value = Event> {
        let calls = [
            Call::Pwrite,
            Call::Pwrite,
            Call::Pwrite,
            Call::Pread,
            Call::Pread,
            Call::Fwrite,
            Call::Fsync,
            Call::Lseek,
            Call::Open,
            Call::Close,
            Call::Stat,
        ];
        let sizes = [0, 100, 4096, 70_000, 1 << 20, 3 << 20];
        let what = (prop::sample::select(calls.to_vec()), prop::sample::select(sizes.to_vec()), 0..40_u64);
        (what, 0..PROCESSES, 0..FILES, 0..200_000_u64, prop::bool::weighted(0.05)).prop_map(
            |((call, size, place), process, file, elapsed_ns, fails)| {
                let moves = matches!(call.op(), Op::Read | Op::Write);
                let target = if moves { Target::Extent { offset: place * 30_000 } } else { Target::None };
                let result = match (fails && call.op() != Op::Open, moves) {
                    (true, _) => -5,
                    (false, true) => size as i64,
                    (false, false) => 0,
                };
                let handle = (call != Call::Stat).then_some(HandleId(process * FILES + file));
                let size = if moves { size } else { 0 };
                let think_ns = elapsed_ns * 7 % 3_000_000;
                Event {
                    handle,
                    target,
                    size,
                    result,
                    elapsed_ns,
                    think_ns,
                    ..Event::new(call, ProcessId(process), 0)
                }
            },
        )
    }

    /// Events, at least one, as a trace has them.
    fn block(tables: &Tables, events: &[Event]) -> BlockEvents {
        let (mut bytes, mut block) = (Vec::new(), BlockEvents::default());
        let mut writer = TraceWriter::new(&mut bytes, tables.clone()).unwrap();
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        let trace = Trace::from_bytes(bytes, "trace").unwrap();
        trace.read_block(0, &mut block).unwrap();
        block
    }

    proptest! {
        // Each compares long texts.
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn by_process_the_same_is_found_as_in_order_of_time(
            blocks in prop::collection::vec((prop::collection::vec(call(), 1..150), any::<bool>()), 1..6),
        ) {
            let tables = tables();
            let (mut in_order, mut by_process) = (Evidence::new(&tables), Evidence::new(&tables));
            let mut start_ns = 0;
            for (mut events, all_plain) in blocks {
                events.retain(|event| !all_plain || event.call != Call::Stat && (event.call != Call::Close || event.result == 0));
                if events.is_empty() {
                    continue;
                }
                for event in &mut events {
                    start_ns += event.think_ns / 100;
                    event.start_ns = start_ns;
                }
                let block = block(&tables, &events);
                let plain = block.by_process().filter(|events| by_process.are_plain(events));
                prop_assert!(plain.is_some() || !all_plain);
                let mut shared = vec![Shared::default(); block.len()];
                block.each_in_order(|index, event| {
                    in_order.add(&Seen::of(event));
                    match plain {
                        Some(_) => shared[index] = by_process.share(&Seen::of(event)),
                        None => by_process.add(&Seen::of(event)),
                    }
                });
                for (event, &shared) in plain.into_iter().flatten().zip(&shared) {
                    by_process.add_own(&Seen::of(event), shared);
                }
            }
            let told = |evidence: &Evidence<'_>| {
                let Evidence { slots, files, processes, .. } = evidence;
                let files: Vec<_> = files.iter().map(|file| (&file.unused, &file.read)).collect();
                format!("{:#?} {:#?} {files:#?} {processes:#?}", slots.slots, slots.handles)
            };
            let (one, other) = (told(&in_order), told(&by_process));
            let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
            prop_assert!(one == other, "{differs:?}");
        }
    }
}

//! Requests to the file system: to servers and back, and to the directory.

use pio_layout::View;
use pio_layout::pack::is_askew;
use pio_machine::{CallCost, Duration, Storage};
use pio_plan::{Access, Direction, Event as PlanEvent, Strategy};
use pio_protocol::client::{Exchange, Naming};
use pio_trace::{Call, Event, Flags, HandleId, Target};

use super::pages::{self, PAGE, Pages};
use super::processor_cache::{FORESEEN, Found, Touch};
use super::sites::Dealt;
use super::store_requests;
use super::{Cargo, Engine, Happening};
use crate::hardware::parts;
use crate::io_node::IoNodeError;
use crate::kernel::Model;
use crate::parallel::Wanted;
use crate::process::{Copies, Request, Requests, Running, Scattered, Then, Transfer};
use crate::server::{Part, Server};
use crate::workload::What;

/// From so many bytes on, the C library of most systems gets memory from the kernel by pages, …
const LARGE_MEMORY_BYTES: u64 = 128 << 10;
/// … the first of which begins with so many bytes of its own.
const LARGE_MEMORY_AT: u64 = 16;

impl Engine<'_> {
    /// A rank begins requests. `is_buffered`: from or to a buffer of the MPI-IO library.
    pub(super) fn transfer(
        &mut self,
        rank: u32,
        handle: HandleId,
        call: Option<Call>,
        requests: Requests,
        is_buffered: bool,
    ) {
        let file = self.workload.handles[handle.index()].file;
        let physical = call.is_none();
        // Pioscope's buffers begin with a page; those of others are large memory, as programs have it.
        let is_aligned = is_buffered && !Strategy::OWN.contains(&self.strategy);
        let memory_at = if is_aligned { 0 } else { LARGE_MEMORY_AT };
        self.processes[rank as usize].transfer = Some(Box::new(Transfer {
            requests,
            current: None,
            asked: Vec::new(),
            scattered: None,
            parts_left: 0,
            to_send: Vec::new(),
            copies: Copies::default(),
            asked_bytes: 0,
            new_bytes: 0,
            cold_bytes: 0,
            soiled: 0,
            mode: self.mode_of(handle),
            moved: 0,
            memory_at,
            is_buffered,
            file,
            opened: handle,
            handle: self.physical[handle.index()],
            call,
            physical,
        }));
        self.next_request(rank);
    }

    fn next_request(&mut self, rank: u32) {
        let now = self.now;
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some((direction, offset, bytes, scattered)) = transfer.requests.next() else {
            return self.transferred(rank);
        };
        transfer.scattered = scattered;
        transfer.current = Some(Request { direction, offset, bytes, start: now });
        transfer.asked_bytes = 0;
        let file = transfer.file;
        let exclusive = matches!(self.machine.storage, Storage::Local { exclusive_writes: true });
        if exclusive && direction == Direction::Write {
            return self.take_file(rank, file);
        }
        if self.may_write(rank) {
            self.call(rank);
        }
    }

    /// The processor time of a call: before the data of a write go off. That of a read follows when they are here.
    pub(super) fn call(&mut self, rank: u32) {
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let Some(Request { direction, offset, bytes, .. }) = transfer.current else { return };
        let cost = if matches!(self.machine.storage, Storage::Local { .. }) {
            let there = self.files[transfer.file as usize].there(direction, offset, bytes);
            if self.is_direct(rank) {
                self.costs_of(direction).call
            } else {
                self.local_call(rank, direction, there)
            }
        } else {
            let by_parts = self.copies_by_parts(transfer.file);
            self.touch_pages(rank, bytes);
            match direction {
                _ if by_parts => self.costs_of(direction).call,
                Direction::Read => self.machine.calls.read.call,
                Direction::Write => self.machine.calls.write.of(bytes),
            }
        };
        let cost = cost.saturating_add(self.analysis_time(rank, direction));
        self.processes[rank as usize].called_at = Some(self.now + cost);
        self.compute(rank, cost, Then::Issue);
    }

    /// What calls of this kind cost their caller.
    pub(super) fn costs_of(&self, direction: Direction) -> &CallCost {
        match direction {
            Direction::Read => &self.machine.calls.read,
            Direction::Write => &self.machine.calls.write,
        }
    }

    /// What a call takes that moves bytes between memory and the page cache.
    fn local_call(&mut self, rank: u32, direction: Direction, bytes: u64) -> Duration {
        let costs = self.costs_of(direction);
        let (call, moving) = (costs.call, costs.moving(bytes));
        let new = self.touch_pages(rank, bytes);
        let new_pages = self.machine.calls.new_pages.as_ref().filter(|_| new > 0);
        let current = self.processes[rank as usize].transfer.as_ref().and_then(|transfer| transfer.current);
        let folios = current
            .map_or(Duration::ZERO, |request| self.time_for_folios(request.offset, request.bytes, new));
        let for_new = new_pages.map_or(Duration::ZERO, |cost| cost.of(new).saturating_add(folios));
        let moving = self.moving_through_cache(rank, bytes, moving);
        let parts =
            [moving, for_new, self.askew_time(rank, bytes), self.time_after_work(rank, direction, bytes)];
        parts.into_iter().fold(call, Duration::saturating_add)
    }

    /// What the bytes of a request take, if they do so long where the processor's cache holds none of them.
    fn moving_through_cache(&mut self, rank: u32, bytes: u64, moving: Duration) -> Duration {
        let Some(costs) = self.machine.calls.processor_cache else { return moving };
        let process = &self.processes[rank as usize];
        let Some(transfer) = &process.transfer else { return moving };
        let Some(Request { direction, offset, .. }) = transfer.current else { return moving };
        // Where ranks share processors, each mostly gets the one again that it had.
        let processor = rank % self.ranks_per_node % self.machine.nodes.cores;
        let writes = direction == Direction::Write;
        let makes_pages = transfer.new_bytes > 0;
        // Other work takes room there, and so does memory of the call that it has driven out.
        let part = process.part_cooled(self.now, &self.machine.nodes);
        let driven_out = |bytes: u64| (bytes as f64 * part) as u64;
        let caches = self.processor_caches.entry(process.node).or_default();
        caches.displace(processor, driven_out(costs.size));
        let touch = Touch { processor, file: transfer.file, offset, bytes, writes, makes_pages };
        let Found { bytes: held, unforeseen } = caches.touch(costs.size, &touch);
        caches.displace(processor, driven_out(bytes));
        let (rate, miss) = match direction {
            Direction::Read => (costs.read, costs.read_miss),
            Direction::Write => (costs.write, costs.write_miss),
        };
        let of_held = moving.picoseconds() as u128 * u128::from(held) / u128::from(bytes.max(1));
        let saved = Duration::from_picoseconds(of_held as u64).saturating_sub(rate.time_of(held));
        let missed = miss.picoseconds() * unforeseen / FORESEEN;
        moving.saturating_sub(saved).saturating_add(Duration::from_picoseconds(missed))
    }

    /// What a write of `bytes` at `offset`, so many of which are those of new pages, takes longer because they are in several folios.
    pub(super) fn time_for_folios(&self, offset: u64, bytes: u64, new: u64) -> Duration {
        let cost = self.machine.calls.new_folio;
        if cost == Duration::ZERO {
            return Duration::ZERO;
        }
        // The first pages and the last may be there.
        let begin = if new < bytes { offset.next_multiple_of(PAGE) } else { offset };
        let more = pages::folios(begin, new.min(bytes)).saturating_sub(new.div_ceil(pages::LARGEST_FOLIO));
        cost.saturating_mul(more)
    }

    /// What so many bytes of a request take longer for where its memory is. Nobody recorded that; large memory is where most C
    /// libraries put it.
    /// Pioscope's own library copies it once more instead, where that is quicker.
    fn askew_time(&self, rank: u32, bytes: u64) -> Duration {
        let (Some(askew), Some(transfer)) =
            (self.machine.calls.askew, &self.processes[rank as usize].transfer)
        else {
            return Duration::ZERO;
        };
        let Some(Request { direction, offset, .. }) = transfer.current else { return Duration::ZERO };
        let of_step = match self.step(rank) {
            What::Access { positions, .. } => positions.end - positions.start,
            What::Request { bytes, .. } => *bytes,
            _ => 0,
        };
        let memory = transfer.memory_at.wrapping_add(transfer.moved);
        let (target, source) = match direction {
            Direction::Read => (memory, offset),
            Direction::Write => (offset, memory),
        };
        if of_step < LARGE_MEMORY_BYTES || !is_askew(target, source, askew.reach) {
            return Duration::ZERO;
        }
        let longer = askew.bandwidth.time_of(bytes);
        let is_pioscope = transfer.call.is_none() && !Strategy::OWN.contains(&self.strategy);
        if is_pioscope { longer.min(self.copy_time_again(bytes)) } else { longer }
    }

    /// A copy of what this processor has just read or copied: its cache has it, if it has room for so many bytes.
    fn copy_time_again(&self, bytes: u64) -> Duration {
        let usual = self.machine.nodes.copy.bandwidth.time_of(bytes);
        let cache = self.machine.calls.processor_cache.filter(|cache| bytes <= cache.size);
        cache.map_or(usual, |cache| usual.min(cache.read.time_of(bytes)))
    }

    /// The pages of so many bytes of a request are touched, and if it is a write must go to the device when the file is synced.
    /// Bytes of those that a write is the first to touch.
    fn touch_pages(&mut self, rank: u32, bytes: u64) -> u64 {
        let process = &mut self.processes[rank as usize];
        let Some(transfer) = &mut process.transfer else { return 0 };
        let Some(Request { direction, offset, .. }) = transfer.current else { return 0 };
        let writes = direction == Direction::Write;
        // What is dirty counts where it takes time on its way to the device.
        let calls = &self.machine.calls;
        let has_device = calls.sync.is_some() || calls.write_back.is_some() || self.shared.is_some();
        let soils = writes && has_device && !transfer.mode.contains(Flags::SYNC);
        let file = &mut self.files[transfer.file as usize];
        let (mut new, before) = (0, file.dirty_bytes);
        let mut touch = |offset, bytes| {
            new += file.touched.add(offset, bytes);
            if soils {
                file.dirty_bytes += file.dirty.add(offset, bytes);
            }
        };
        match &transfer.scattered {
            None => touch(offset, bytes),
            // Where it is not asked for, it is not worth the time.
            Some(_) if self.threads.is_none() => file.dirty_bytes += if soils { bytes } else { 0 },
            Some(Scattered { access: Access { view, positions }, .. }) => {
                view.extents(positions.clone()).for_each(|extent| touch(extent.offset as u64, extent.len));
            }
        }
        (transfer.new_bytes, transfer.cold_bytes) = if writes { (new, 0) } else { (0, new) };
        transfer.soiled = file.dirty_bytes - before;
        transfer.new_bytes
    }

    /// The request goes off to the servers, if there are any.
    pub(super) fn issue(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some(request) = transfer.current else { return };
        let (file, new_bytes) = (transfer.file, transfer.new_bytes);
        let scattered = transfer.scattered.take();
        let striping = match self.files[file as usize].dealt {
            None if self.shared.is_some() => return self.go_on_asking(rank),
            None if self.parallel.is_some() => return self.ask_client(rank),
            None if self.is_direct(rank) => return self.wait_past_cache(rank),
            None if request.direction == Direction::Read => return self.wait_for_pages(rank),
            None if self.is_synced(rank) => return self.wait_for_sync(rank),
            None => return self.wait_for_device(rank),
            Some(Dealt::ByStore(placement)) => {
                let how = (request.direction, scattered.is_some());
                let scattered = scattered.unwrap_or_else(|| whole(&request));
                return self.ask_store(rank, file, placement, &scattered, how);
            }
            Some(Dealt::Round(striping)) => striping,
        };
        if let Some(scattered) = scattered {
            return self.issue_scattered(rank, file, request.direction, striping, &scattered);
        }
        let mut count = 0;
        for (server, bytes, first_strip) in parts(&striping, request.offset, request.bytes) {
            let offset = striping.len_of_server(server, request.offset);
            let part = Part {
                rank,
                file,
                server,
                number: count,
                follows: false,
                direction: request.direction,
                offset,
                bytes,
                first_strip,
                pieces: 0,
                apart: false,
                new_bytes: share(new_bytes, bytes, request.bytes),
                answer_bytes: 0,
                syncs: false,
            };
            let exchange = self.plain_exchange(&part, 0);
            self.send_part(part, exchange);
            count += 1;
        }
        self.sent_parts(rank, count);
    }

    /// What the messages of a part take where nothing else is known of them: the data, what the machine says of a message
    /// without data, and `head` bytes that name the pieces.
    pub(super) fn plain_exchange(&self, part: &Part, head: u64) -> Exchange {
        let message = self.control_bytes();
        match part.direction {
            Direction::Write => {
                Exchange { request_bytes: message + head + part.bytes, answer_bytes: message }
            }
            Direction::Read => Exchange { request_bytes: message + head, answer_bytes: part.bytes },
        }
    }

    /// A part goes off to its server, in messages of these sizes.
    pub(super) fn send_part(&mut self, part: Part, exchange: Exchange) {
        let Exchange { request_bytes, answer_bytes } = exchange;
        let from = self.processes[part.rank as usize].node;
        let to = self.hardware.servers[part.server as usize].node;
        self.ship(from, to, request_bytes, Cargo::Request(Part { answer_bytes, ..part }));
    }

    /// All parts of a request are off; without any, it is done.
    pub(super) fn sent_parts(&mut self, rank: u32, count: u32) {
        let process = &mut self.processes[rank as usize];
        let Some(transfer) = process.transfer.as_mut().filter(|_| count > 0) else {
            return self.complete(rank);
        };
        transfer.parts_left = count;
        let written = transfer.current.filter(|request| request.direction == Direction::Write);
        self.begin_asking(rank, written.map_or(0, |request| request.bytes));
    }

    /// A server takes in a part.
    pub(super) fn take_in(&mut self, part: Part) {
        let now = self.now;
        let arrived = self.hardware.servers[part.server as usize].arrive(now, part);
        self.note_failure(arrived);
        self.arm(part.server);
    }

    /// All servers drop what their memory has of a file.
    pub(super) fn empty_on_servers(&mut self, file: u32) {
        for server in 0..self.hardware.servers.len() as u32 {
            let emptied = self.hardware.servers[server as usize].empty(self.now, file);
            self.note_failure(emptied);
            self.arm(server);
        }
    }

    /// Sees to it that a server is looked after when something happens in it.
    fn arm(&mut self, number: u32) {
        let server = &mut self.hardware.servers[number as usize];
        if let Some(time) = server.next_time().filter(|time| server.armed.is_none_or(|armed| *time < armed)) {
            server.armed = Some(time);
            self.events.add(time, Happening::Server(number));
        }
    }

    /// A server carries on to this moment.
    pub(super) fn carry_on(&mut self, number: u32) {
        let server = &mut self.hardware.servers[number as usize];
        if server.armed != Some(self.now) {
            return;
        }
        server.armed = None;
        let mut done = std::mem::take(&mut self.served);
        server.advance(self.now, &mut done);
        for one in done.drain(..) {
            match one {
                Ok(part) => self.served(part),
                Err(error) => self.note_failure(Err(error)),
            }
        }
        self.served = done;
        self.arm(number);
    }

    /// What a server refuses ends the simulation.
    fn note_failure(&mut self, outcome: Result<(), IoNodeError>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error.into());
        }
    }

    /// A server has its part of a request done: the bytes that were read, or the word that all is written, go back.
    fn served(&mut self, part: Part) {
        if part.pieces > 0 && part.direction == Direction::Read {
            let picked = self.place(part);
            return self.events.add(picked, Happening::Picked(part));
        }
        self.send_back(part);
    }

    pub(super) fn send_back(&mut self, part: Part) {
        let from = self.hardware.servers[part.server as usize].node;
        let to = self.processes[part.rank as usize].node;
        self.ship(from, to, part.answer_bytes, Cargo::Answer(part));
    }

    pub(super) fn answered(&mut self, part: Part) {
        if part.syncs {
            return self.synced(part.rank);
        }
        self.store_answered(part);
        let Some(transfer) = &mut self.processes[part.rank as usize].transfer else { return };
        transfer.parts_left -= 1;
        let (left, file) = (transfer.parts_left, transfer.file);
        if part.direction == Direction::Read && self.copies_by_parts(file) {
            return self.take_part(&part);
        }
        if left > 0 {
            return;
        }
        self.end_asking(part.rank);
        self.moved(part.rank);
    }

    /// Servers are through with a rank's request: it brings what was read to its memory. Who was told that all is written goes on
    /// when it has a processor, too.
    pub(super) fn moved(&mut self, rank: u32) {
        let current = self.processes[rank as usize].transfer.as_ref().and_then(|transfer| transfer.current);
        let read = current.filter(|request| request.direction == Direction::Read);
        let moving = read.map_or(Duration::ZERO, |request| self.machine.calls.read.moving(request.bytes));
        self.compute(rank, moving, Then::Complete);
    }

    /// A request is done: note it, and make the next one.
    pub(super) fn complete(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some(request) = transfer.current.take() else { return };
        let fills = matches!(transfer.requests, Requests::FillAndWrite { .. });
        if !(fills && request.direction == Direction::Read) {
            transfer.moved += request.bytes;
        }
        let (handle, physical) = (transfer.handle, transfer.physical);
        let elapsed = self.now.since(request.start);
        if physical && matches!(self.files[transfer.file as usize].dealt, Some(Dealt::ByStore(_))) {
            let sizes = transfer.asked.drain(..).map(|asked| asked.bytes);
            self.tally.count_together(store_requests::call_of(request.direction), sizes, elapsed);
            return self.next_request(rank);
        }
        let call = transfer.call.unwrap_or(match request.direction {
            Direction::Read => Call::Pread,
            Direction::Write => Call::Pwrite,
        });
        self.tally.count(call, request.bytes, elapsed);
        let mut event = Event {
            handle: Some(handle),
            target: Target::Extent { offset: request.offset },
            size: request.bytes,
            result: request.bytes as i64,
            ..self.event(rank, call, request.start)
        };
        if physical {
            event.flags = Flags::PHYSICAL;
            event.operation = self.processes[rank as usize].operation + 1;
        } else {
            event.think_ns = self.processes[rank as usize].think_ns;
        }
        self.write(event);
        self.release_file(rank);
        self.let_write(rank, &request);
        self.next_request(rank);
    }

    /// All requests are done: tell who asked for them.
    fn transferred(&mut self, rank: u32) {
        self.release_file(rank);
        let process = &mut self.processes[rank as usize];
        let Some(transfer) = process.transfer.take() else { return };
        if !matches!(process.running, Running::Operation { .. }) {
            return self.end(rank, transfer.moved);
        }
        self.io_done(rank, transfer.moved);
    }

    /// Tells a rank's strategy that what it asked for is done.
    pub(super) fn io_done(&mut self, rank: u32, moved: u64) {
        let Some(moved) = self.go_on_with_lock(rank, moved) else { return };
        self.tell(rank, PlanEvent::IoDone { result: Ok(moved) });
        self.advance(rank);
    }

    /// Opens and closes: after the call's own time, that of the directory server, if there is one.
    pub(super) fn ask_directory(&mut self, rank: u32) {
        if let Some(time) = self.time_in_shared_files(rank) {
            return self.ask_shared(rank, time, Then::End);
        }
        if self.parallel.is_some() {
            return self.ask_metadata_server(rank);
        }
        let ([open, create], close, resize) = match &self.machine.storage {
            Storage::Striped { open, create, close, resize, .. } => ([*open, *create], *close, *resize),
            Storage::IoNodes { open, close, .. } => ([*open, Duration::ZERO], *close, Duration::ZERO),
            Storage::Local { .. } | Storage::Shared(_) | Storage::Parallel(_) => return self.end(rank, 0),
        };
        let service = match self.step(rank) {
            What::Open(handle) => {
                self.connect_to_open(rank, *handle);
                if self.makes_file(rank, *handle) { open.saturating_add(create) } else { open }
            }
            What::Resize(handle, ..) => {
                resize.saturating_add(self.until_begun(self.workload.handles[handle.index()].file))
            }
            _ => close,
        };
        if service == Duration::ZERO {
            return self.end(rank, 0);
        }
        self.processes[rank as usize].then = Then::End;
        let node = self.processes[rank as usize].node;
        self.ship(node, self.directory_node(), 0, Cargo::Directory(rank, service));
    }

    /// Whether an open makes its file: the first open of one that is written before it is read.
    /// A rank's first open with others was measured with a file that was made: to make it costs nothing more.
    pub(super) fn makes_file(&mut self, rank: u32, handle: HandleId) -> bool {
        let open = &self.workload.handles[handle.index()];
        let is_new = std::mem::take(&mut self.files[open.file as usize].is_new);
        let was_measured = open.group.is_some() && self.machine.mpi_io.is_some();
        let is_counted = was_measured && !self.processes[rank as usize].has_opened;
        is_new && !is_counted
    }

    /// The data that were written to a file go to its device: who asks for it waits for them, as do those who ask meanwhile.
    pub(super) fn flush(&mut self, rank: u32) {
        let (What::Sync(handle, _) | What::Close(handle)) = self.step(rank) else { return };
        let file = self.workload.handles[handle.index()].file;
        if self.parallel.is_some() {
            return self.want(rank, file, Wanted::Sync, Then::End);
        }
        let closes = matches!(self.step(rank), What::Close(_));
        // Else what was measured says how long it takes.
        let is_measured = self.machine.calls.sync.is_some() || self.threads.is_some();
        if !closes && !is_measured && self.hardware.servers.iter().any(Server::writes_behind) {
            return self.sync_on_servers(rank, file);
        }
        let number = file as usize;
        let file = &mut self.files[number];
        let bytes = std::mem::take(&mut file.dirty_bytes);
        let unsummed = std::mem::take(&mut file.unsummed_bytes).min(bytes);
        file.dirty = Pages::default();
        file.begun.retain(|_, begun| *begun > self.now);
        if let Storage::Shared(costs) = &self.machine.storage {
            let time = costs.sync.request.saturating_add(costs.sync.bandwidth.time_of(bytes));
            return self.ask_shared(rank, time, Then::End);
        }
        let bytes = self.not_on_device(rank, bytes);
        let cost = self.machine.calls.sync.as_ref().filter(|_| bytes > 0);
        let moving = cost.map_or(Duration::ZERO, |cost| cost.of(bytes));
        let time = moving.saturating_add(self.time_to_sum(unsummed));
        self.processes[rank as usize].then = if closes { Then::Directory } else { Then::End };
        let synced_at = &mut self.files[number].synced_at;
        *synced_at = (self.now + time).max(*synced_at);
        self.events.add(*synced_at, Happening::Resume(rank));
    }

    /// Every server is to bring a file to its disks.
    fn sync_on_servers(&mut self, rank: u32, file: u32) {
        let (message, count) = (self.control_bytes(), self.hardware.servers.len() as u32);
        let process = &mut self.processes[rank as usize];
        process.syncs_left = count;
        let from = process.node;
        for server in 0..count {
            let to = self.hardware.servers[server as usize].node;
            self.ship(from, to, message, Cargo::Request(Part::sync(rank, file, server, message)));
        }
    }

    /// A server has a file on its disks: the last one ends the call.
    fn synced(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        process.syncs_left -= 1;
        if process.syncs_left == 0 {
            self.compute(rank, Duration::ZERO, Then::End);
        }
    }

    /// Bytes of a message to or from a server that carries no data.
    pub(super) fn control_bytes(&self) -> u64 {
        match &self.machine.storage {
            Storage::IoNodes { request, .. } => *request,
            Storage::Local { .. } | Storage::Shared(_) | Storage::Parallel(_) | Storage::Striped { .. } => 0,
        }
    }

    /// The directory is on the first server's node.
    pub(super) fn directory_node(&self) -> u32 {
        self.hardware.servers.first().map_or(0, |server| server.node)
    }
}

/// New pages are spread over a request's servers as its bytes: those of a part.
pub(super) fn share(new: u64, part: u64, all: u64) -> u64 {
    (u128::from(new) * u128::from(part) / u128::from(all.max(1))) as u64
}

/// A contiguous request, as one that names its bytes by a view.
fn whole(request: &Request) -> Scattered {
    let positions = request.offset..request.offset.saturating_add(request.bytes);
    Scattered { access: Access { view: View::contiguous(0), positions }, naming: Naming::View }
}

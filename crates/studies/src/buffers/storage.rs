//! Buffers over disks: requests of processes go in, and are complete at once or when disks are done.
//!
//! The buffers are the state machine of `pio-cache`, one on top of another: what one tier fetches and writes are the
//! requests of the tier below, and those of the lowest are the disks'. Main memory comes first, if it has a size, then
//! a solid-state disk, if it has one.

use pio_cache::{
    Action, Cache, Event, FileId, ProcessId, ReadAhead, RequestId, Settings, Statistics, TransferId,
};
use pio_machine::{Computer, Duration, Ssd};
use pio_plan::Direction;
use pio_sim::SimError;
use pio_sim::kernel::Time;

use super::disk::DiskModel;
use super::program::TimedAccess;
use super::rates::Rates;

/// Buffers and disks.
pub(super) struct Storage {
    caches: Vec<Cache>,
    /// How many of the first caches share the top: one, or one a process.
    tops: u32,
    /// Of each tier: the first of its caches.
    disks: DiskModel,
    ssd: Ssd,
    /// Whether the solid-state disk is the top tier.
    ssd_is_top: bool,
    /// What caches are yet to be told.
    waiting: Vec<(u32, Event)>,
    actions: Vec<Action>,
    pub(super) flow: Flow,
}

/// A transfer of the lowest tier that a disk carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    cache: u32,
    number: TransferId,
    direction: Direction,
}

/// What came of what buffers and disks were told.
#[derive(Default)]
pub(super) struct News {
    /// Requests of processes that are complete: whose, and which.
    pub(super) complete: Vec<(u32, u32)>,
    /// Transfers that disks began, and when they end.
    pub(super) begun: Vec<(Time, Transfer)>,
    /// Processor time for transfers from and to the solid-state disk, by process.
    pub(super) costs: Vec<(u32, Duration)>,
}

/// What moved when.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// What processes read.
    pub read: Rates,
    /// What processes wrote.
    pub written: Rates,
    /// What disks read.
    pub disk_read: Rates,
    /// What disks wrote.
    pub disk_written: Rates,
    /// Requests to the disks.
    pub disk_requests: u64,
    /// Bytes that disks read.
    pub disk_read_bytes: u64,
    /// Bytes that disks wrote.
    pub disk_written_bytes: u64,
}

impl Storage {
    /// Empty buffers for so many processes.
    pub(super) fn new(computer: &Computer, processes: u32, bin: Duration) -> Result<Storage, SimError> {
        let buffers = &computer.buffers;
        let tier = |size: u64| pio_sim::buffers::settings(buffers, size);
        let mut caches = Vec::new();
        let ssd_is_top = buffers.size == 0;
        let top = if ssd_is_top { computer.ssd.size } else { buffers.size };
        let tops = if buffers.shared { 1 } else { processes };
        for _ in 0..tops {
            caches.push(Cache::new(tier(top / u64::from(tops))?)?);
        }
        if !ssd_is_top && computer.ssd.size > 0 {
            caches.push(Cache::new(Settings { read_ahead: ReadAhead::Off, ..tier(computer.ssd.size)? })?);
        }
        let rates = Rates::new(bin);
        let flow = Flow {
            read: rates.clone(),
            written: rates.clone(),
            disk_read: rates.clone(),
            disk_written: rates,
            disk_requests: 0,
            disk_read_bytes: 0,
            disk_written_bytes: 0,
        };
        Ok(Storage {
            caches,
            tops,
            disks: DiskModel::new(&computer.disks),
            ssd: computer.ssd.clone(),
            ssd_is_top,
            waiting: Vec::new(),
            actions: Vec::new(),
            flow,
        })
    }

    /// Files are so long.
    pub(super) fn size(&mut self, file: u64, bytes: u64) {
        let mut nothing = Vec::new();
        for cache in &mut self.caches {
            cache.handle(Event::Size { file: FileId(file), bytes }, &mut nothing);
        }
    }

    /// A process reads or writes; `file` is the number among the files of all.
    pub(super) fn access(
        &mut self,
        now: Time,
        (process, number): (u32, u32),
        file: u64,
        access: &TimedAccess,
        news: &mut News,
    ) {
        let rates = match access.direction {
            Direction::Read => &mut self.flow.read,
            Direction::Write => &mut self.flow.written,
        };
        rates.add(now, now, access.bytes);
        if self.ssd_is_top {
            news.costs.push((process, cost(&self.ssd, access.bytes)));
        }
        let request = RequestId(u64::from(process) << 32 | u64::from(number));
        let top = if self.tops == 1 { 0 } else { process };
        let id = (request, ProcessId(process), FileId(file));
        self.waiting.push((top, event(access.direction, id, access.offset, access.bytes)));
        self.settle(now, news);
    }

    /// A disk is done.
    pub(super) fn done(&mut self, now: Time, transfer: Transfer, news: &mut News) {
        let Transfer { cache, number, direction } = transfer;
        self.waiting.push((cache, ended(direction, number)));
        self.settle(now, news);
    }

    /// What the top tier counted.
    pub(super) fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        for cache in &self.caches[..self.tops as usize] {
            add(&mut sum, &cache.statistics());
        }
        sum
    }

    /// Time that disks were busy.
    pub(super) fn disk_time(&self) -> Duration {
        self.disks.busy()
    }

    /// Tells the caches what they have to be told, one after the other, until nothing is left.
    fn settle(&mut self, now: Time, news: &mut News) {
        let mut next = 0;
        while next < self.waiting.len() {
            let (cache, event) = self.waiting[next];
            next += 1;
            let mut actions = std::mem::take(&mut self.actions);
            self.caches[cache as usize].handle(event, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(now, cache, action, news);
            }
            self.actions = actions;
        }
        self.waiting.clear();
    }

    fn carry_out(&mut self, now: Time, cache: u32, action: Action, news: &mut News) {
        match action {
            Action::Fetch { transfer, process, file, offset, length, ahead } => {
                if !ahead && self.below(cache).is_some() {
                    news.costs.push((process.0, cost(&self.ssd, length)));
                }
                self.lower(now, (cache, transfer, Direction::Read), (process, file, offset, length), news);
            }
            Action::Write { transfer, file, offset, length } => {
                let place = (ProcessId(0), file, offset, length);
                self.lower(now, (cache, transfer, Direction::Write), place, news);
            }
            Action::Complete { request } if cache < self.tops => {
                news.complete.push(((request.0 >> 32) as u32, request.0 as u32));
            }
            Action::Complete { request } => {
                let direction = if request.0 >> 63 == 0 { Direction::Read } else { Direction::Write };
                let above = (request.0 >> 32) as u32 & 0x7fff_ffff;
                self.waiting.push((above, ended(direction, TransferId(request.0 as u32))));
            }
            Action::Copy { .. } | Action::Evict { .. } => {}
        }
    }

    /// Hands a transfer to the tier below, or to the disks.
    fn lower(
        &mut self,
        now: Time,
        (cache, number, direction): (u32, TransferId, Direction),
        (process, file, offset, length): (ProcessId, FileId, u64, u64),
        news: &mut News,
    ) {
        if let Some(below) = self.below(cache) {
            let way = u64::from(direction == Direction::Write) << 63;
            let request = RequestId(way | u64::from(cache) << 32 | u64::from(number.0));
            self.waiting.push((below, event(direction, (request, process, file), offset, length)));
            return;
        }
        let (start, end) = self.disks.request(now, file.0, offset, length);
        self.flow.disk_requests += 1;
        match direction {
            Direction::Read => {
                self.flow.disk_read.add(start, end, length);
                self.flow.disk_read_bytes += length;
            }
            Direction::Write => {
                self.flow.disk_written.add(start, end, length);
                self.flow.disk_written_bytes += length;
            }
        }
        news.begun.push((end, Transfer { cache, number, direction }));
    }

    /// The tier below a cache, if that is not the disks.
    fn below(&self, cache: u32) -> Option<u32> {
        (cache < self.tops && self.caches.len() as u32 > self.tops).then_some(self.tops)
    }
}

/// What a process pays for a transfer from or to the solid-state disk: it keeps the processor meanwhile.
fn cost(ssd: &Ssd, bytes: u64) -> Duration {
    ssd.setup.saturating_add(ssd.bandwidth.time_of(bytes))
}

fn event(
    direction: Direction,
    (request, process, file): (RequestId, ProcessId, FileId),
    offset: u64,
    length: u64,
) -> Event {
    match direction {
        Direction::Read => Event::Read { request, process, file, offset, length },
        Direction::Write => Event::Write { request, process, file, offset, length },
    }
}

fn ended(direction: Direction, transfer: TransferId) -> Event {
    match direction {
        Direction::Read => Event::Fetched { transfer },
        Direction::Write => Event::Written { transfer },
    }
}

fn add(sum: &mut Statistics, one: &Statistics) {
    sum.reads += one.reads;
    sum.reads_hit += one.reads_hit;
    sum.read_bytes += one.read_bytes;
    sum.hit_bytes += one.hit_bytes;
    sum.joined_bytes += one.joined_bytes;
    sum.missed_bytes += one.missed_bytes;
    sum.writes += one.writes;
    sum.written_bytes += one.written_bytes;
    sum.fetched_bytes += one.fetched_bytes;
    sum.ahead_bytes += one.ahead_bytes;
    sum.ahead_used_bytes += one.ahead_used_bytes;
    sum.ahead_wasted_bytes += one.ahead_wasted_bytes;
    sum.written_below_bytes += one.written_below_bytes;
    sum.evicted_bytes += one.evicted_bytes;
    sum.waits_for_room += one.waits_for_room;
    sum.waits_for_dirty_limit += one.waits_for_dirty_limit;
}

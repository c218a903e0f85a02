//! Binary traces of the Linux block layer: a file of `blktrace`, or what `blkparse -d` merged of several.
//!
//! A record is 48 bytes and what its last field says behind them, in the byte order of the machine:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 4 | 0x65617407: magic and version |
//! | 4 | 4 | sequence number |
//! | 8 | 8 | nanoseconds since the machine was started, or, from `blkparse`, since the trace began |
//! | 16 | 8 | first sector of 512 bytes |
//! | 24 | 4 | bytes |
//! | 28 | 4 | low half: what happened; high half: to what kind of request |
//! | 32 | 4 | process |
//! | 36 | 4 | device: minor number in the low 20 bits, major above |
//! | 40 | 4 | processor |
//! | 44 | 2 | error |
//! | 46 | 2 | bytes that follow |
//!
//! What the kernel notes of a trace has nanoseconds since the machine was started, from `blkparse`, too: that a process is
//! seen for the first time, just before it is; and when the trace began, with the time of day.
//!
//! An event of the trace is a request of a device, from when its driver got it (*issue*) until it was done (*complete*).

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use crate::builder::Builder;
use crate::error::ImportError;
use crate::order::{ByteOrder, text};
use crate::sort::Access;
use pio_trace::Call;
use pio_trace::Flags;
use pio_trace::{HandleId, ProcessId};

const MAGIC: u32 = 0x6561_7407;
const RECORD_LEN: usize = 48;
const SECTOR_BYTES: u64 = 512;

/// What happened to a request: the low half of the action.
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const NOTIFY_PROCESS: u32 = 0;
const NOTIFY_TIME: u32 = 1;

/// Kinds of requests: bits of the high half of the action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
/// No access to sectors: commands of the device.
const PASS_THROUGH: u32 = 1 << 9;

const NANOSECONDS: u64 = 1_000_000_000;

/// A device that does not answer so many requests is not believed any more.
const MOST_OUTSTANDING: usize = 1 << 20;

/// Whether a file that starts so is such a trace.
pub(super) fn is_trace(start: &[u8]) -> bool {
    start.first_chunk().is_some_and(|&magic| order(magic).is_some())
}

/// The byte order in which this is the magic number.
fn order(magic: [u8; 4]) -> Option<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u32(magic) == MAGIC)
}

/// Writes what a trace holds as one of ours to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    mut log: impl BufRead,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let mut reading = Reading {
        builder: Builder::new(path, "blktrace"),
        processes: HashMap::new(),
        handles: HashMap::new(),
        issued: HashMap::new(),
        names: HashMap::new(),
        began: None,
        first_process_ns: None,
    };
    let mut offset = 0;
    let mut bytes = Vec::new();
    loop {
        read_up_to(&mut log, RECORD_LEN, &mut bytes).map_err(ImportError::io(path, "read"))?;
        let Some(whole) = bytes.first_chunk() else {
            let cut = bytes.len();
            if cut > 0 {
                reading
                    .builder
                    .skip(|| format!("{cut} bytes at {offset}, a record of {RECORD_LEN} was expected"));
            }
            break;
        };
        let Some(record) = Record::of(whole) else {
            reading.builder.skip(|| format!("no record at {offset}: all from there on is left out"));
            break;
        };
        read_up_to(&mut log, usize::from(record.payload_len), &mut bytes)
            .map_err(ImportError::io(path, "read"))?;
        reading.read(&record, &bytes)?;
        offset += RECORD_LEN + bytes.len();
    }
    reading.finish(out, name)
}

/// The next bytes: so many, or as many as there are.
fn read_up_to(input: &mut impl Read, len: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    input.take(len as u64).read_to_end(bytes)?;
    Ok(())
}

struct Record {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: u16,
    payload_len: u16,
    order: ByteOrder,
}

impl Record {
    fn of(bytes: &[u8; RECORD_LEN]) -> Option<Record> {
        let (halves, words, longs) = (bytes.as_chunks().0, bytes.as_chunks().0, bytes.as_chunks().0);
        let order = order(words[0])?;
        let half = |at: usize| order.u16(halves[at / 2]);
        let word = |at: usize| order.u32(words[at / 4]);
        let long = |at: usize| order.u64(longs[at / 8]);
        Some(Record {
            time_ns: long(8),
            sector: long(16),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            error: half(44),
            payload_len: half(46),
            order,
        })
    }
}

/// A request that a device works on.
struct Issued {
    at_ns: u64,
    call: Call,
    bytes: u32,
    process: ProcessId,
}

struct Reading {
    builder: Builder,
    processes: HashMap<u32, ProcessId>,
    handles: HashMap<(u32, ProcessId), HandleId>,
    /// By device and first sector.
    issued: HashMap<(u32, u64), Issued>,
    names: HashMap<u32, String>,
    /// When the trace began: since the machine was started, and since 1970.
    began: Option<(u64, u64)>,
    /// When the first process was seen.
    first_process_ns: Option<u64>,
}

impl Reading {
    fn read(&mut self, record: &Record, payload: &[u8]) -> Result<(), ImportError> {
        let kind = record.action >> 16;
        if kind & NOTIFY != 0 {
            self.take_note(record, payload);
            return Ok(());
        }
        if kind & PASS_THROUGH != 0 {
            return Ok(());
        }
        let place = (record.device, record.sector);
        match record.action & 0xffff {
            ISSUE if self.issued.len() < MOST_OUTSTANDING => {
                let process = self.process(record.pid);
                let call = match kind {
                    _ if kind & DISCARD != 0 => Call::Fallocate,
                    _ if kind & WRITE != 0 => Call::Pwrite,
                    _ if kind & FLUSH != 0 && record.bytes == 0 => Call::Fsync,
                    _ => Call::Pread,
                };
                self.issued
                    .insert(place, Issued { at_ns: record.time_ns, call, bytes: record.bytes, process });
            }
            COMPLETE => {
                // Issued before the trace began, or merged behind our back: when it began is not known.
                if let Some(issued) = self.issued.remove(&place) {
                    let end_ns = record.time_ns.max(issued.at_ns);
                    let error = i64::from(record.error);
                    let moved = matches!(issued.call, Call::Pread | Call::Pwrite);
                    let result = match error {
                        0 if moved => i64::from(record.bytes),
                        error => -error,
                    };
                    self.add(place, &issued, result, end_ns, Flags::NONE)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take_note(&mut self, record: &Record, payload: &[u8]) {
        match record.action & 0xffff {
            NOTIFY_PROCESS => {
                let first_ns = self.first_process_ns.get_or_insert(record.time_ns);
                *first_ns = record.time_ns.min(*first_ns);
                if self.names.len() < MOST_OUTSTANDING {
                    self.names.insert(record.pid, text(payload));
                }
            }
            NOTIFY_TIME => {
                let ([seconds, nanoseconds], []) = payload.as_chunks::<4>() else { return };
                let [seconds, nanoseconds] =
                    [seconds, nanoseconds].map(|word| u64::from(record.order.u32(*word)));
                if nanoseconds < NANOSECONDS {
                    self.began.get_or_insert((record.time_ns, seconds * NANOSECONDS + nanoseconds));
                }
            }
            _ => {}
        }
    }

    /// When the first request was issued, since 1970; none if the trace does not say.
    fn epoch_ns(&self) -> Option<u64> {
        let (began_ns, began_epoch_ns) = self.began?;
        let first_ns = self.builder.first_start_ns();
        // From `blkparse`, times of requests count from the first record of a process, which its note stands just before.
        let first_ns = match self.first_process_ns {
            _ if first_ns >= began_ns => first_ns,
            Some(process_ns) => process_ns.saturating_add(first_ns),
            None => return None,
        };
        began_epoch_ns.checked_add(first_ns.saturating_sub(began_ns))
    }

    fn add(
        &mut self,
        (device, sector): (u32, u64),
        issued: &Issued,
        result: i64,
        end_ns: u64,
        flags: Flags,
    ) -> Result<(), ImportError> {
        let builder = &mut self.builder;
        let handle = *self.handles.entry((device, issued.process)).or_insert_with(|| {
            let file = builder.file(&format!("device {}:{}", device >> 20, device & 0xf_ffff));
            builder.add_handle(file, issued.process)
        });
        let has_place = issued.call != Call::Fsync;
        builder.push(Access {
            call: issued.call,
            flags,
            process: issued.process,
            thread: 0,
            handle: Some(handle),
            offset: has_place.then_some(sector).and_then(|sector| sector.checked_mul(SECTOR_BYTES)),
            size: u64::from(issued.bytes),
            result,
            start_ns: issued.at_ns,
            elapsed_ns: end_ns - issued.at_ns,
            name: None,
            other: None,
            operation: 0,
        })
    }

    fn process(&mut self, pid: u32) -> ProcessId {
        let builder = &mut self.builder;
        *self.processes.entry(pid).or_insert_with(|| builder.add_process(pid, None, "", 0))
    }

    fn finish(mut self, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        let end_ns = self.builder.last_end_ns();
        let mut unfinished: Vec<_> = self.issued.drain().collect();
        unfinished.sort_by_key(|(place, issued)| (issued.at_ns, *place));
        for (place, issued) in unfinished {
            self.add(place, &issued, 0, end_ns.max(issued.at_ns), Flags::UNFINISHED)?;
        }
        for (pid, id) in &self.processes {
            if let Some(process) = self.builder.process(*id) {
                process.command = self.names.remove(pid).unwrap_or_default();
                process.end_ns = Some(end_ns);
            }
        }
        let epoch_ns = self.epoch_ns().filter(|_| !self.builder.is_empty());
        self.builder.begin_with_first_call();
        self.builder.tables.epoch_ns = epoch_ns.unwrap_or(self.builder.tables.epoch_ns);
        self.builder.write(out, name)
    }
}

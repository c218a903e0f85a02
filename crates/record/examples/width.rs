//! What a wide job takes: writes the spools of a job of many ranks that all do the same (default 10 000 ranks of 1000 calls, on
//! nodes of 128) to a temporary folder, makes one trace of them, and prints the CPU time, the memory and the bytes that this took.
//! The same job with times that are all alike says how many of the bytes tell what the ranks did, and how many when.
//!
//! `cargo run --release -p pio-record --example width [RANKS] [CALLS] [TRACE]`; the trace is kept if it is named.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pio_record::{Settings, collect_with};
use pio_trace::Call;

const RANKS_OF_NODE: u32 = 128;
/// Bytes that a rank writes at a time, beside those of its neighbours.
const PIECE: u64 = 47_008;
/// Calls between two calls of fsync.
const SYNC_EVERY: u64 = 50;
const START_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| arguments.next().map_or(Ok(otherwise), |number| number.parse());
    let (ranks, calls) = (number(10_000)?, number(1000)?);
    let folder = tempfile::tempdir()?;
    let trace = arguments.next().map_or(folder.path().join("wide.pio"), PathBuf::from);
    let spools = folder.path().join("spools");
    let spool_bytes = write_spools(&spools, ranks, calls, Times::OfTheirOwn)?;
    let before_s = cpu_s();
    let bytes = merged(&spools, &trace, ranks * calls)?;
    let (used_s, most_kib) = (cpu_s() - before_s, most_memory_kib()?);
    let alike = |name: &str, ranks| -> Result<u64, Box<dyn std::error::Error>> {
        let spools = folder.path().join(name);
        write_spools(&spools, ranks, calls, Times::Alike)?;
        merged(&spools, &folder.path().join(format!("{name}.pio")), ranks * calls)
    };
    let (did, one) = (alike("alike", ranks)?, alike("one", 1)?);
    println!(
        "{ranks} ranks of {calls} calls, spools of {:.0} MB: merged in {used_s:.1} s of CPU, with {} MiB at \
         most; a trace of {:.1} MB, {:.2} bytes a call",
        spool_bytes as f64 / 1e6,
        most_kib / 1024,
        bytes as f64 / 1e6,
        bytes as f64 / (ranks * calls) as f64,
    );
    println!(
        "what they did: {:.1} kB, that of one rank {:.1} kB and {:.0} bytes for each other one; their times: {:.2} bytes a call",
        did as f64 / 1e3,
        one as f64 / 1e3,
        did.saturating_sub(one) as f64 / (ranks - 1).max(1) as f64,
        bytes.saturating_sub(did) as f64 / (ranks * calls) as f64,
    );
    Ok(())
}

/// Writes the spools of all ranks to a new folder; their bytes.
fn write_spools(folder: &Path, ranks: u64, calls: u64, times: Times) -> io::Result<u64> {
    fs::create_dir(folder)?;
    let mut bytes = 0;
    for rank in 0..ranks as u32 {
        let spool = spool(rank, ranks, calls, times);
        bytes += spool.len() as u64;
        fs::write(folder.join(format!("node{:05}-{rank}-1.spool", rank / RANKS_OF_NODE)), spool)?;
    }
    Ok(bytes)
}

/// Makes one trace of spools; its bytes.
fn merged(spools: &Path, trace: &Path, events: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let summary = collect_with(spools, trace, "wide", &Settings::default())?;
    assert_eq!((summary.events, summary.problems()), (events, Vec::<String>::new()));
    Ok(fs::metadata(trace)?.len())
}

/// When ranks make their calls.
#[derive(Clone, Copy)]
enum Times {
    /// Each a little earlier or later than the others.
    OfTheirOwn,
    /// All at the same time.
    Alike,
}

/// The spool of a rank that opens a file that all share, writes its piece of each step to it, now and then with an fsync, and
/// closes it (`c/pio_spool.h` draws the bytes).
fn spool(rank: u32, ranks: u64, calls: u64, times: Times) -> Vec<u8> {
    let mut random = Random(match times {
        Times::OfTheirOwn => Some(u64::from(rank)),
        Times::Alike => None,
    });
    let mut clock_ns = START_NS + random.below(1_000_000);
    let mut whole = Chunk::new(false);
    let mut short = Chunk::new(true);
    let (opened_ns, elapsed_ns) = (clock_ns, 100_000 + random.below(50_000));
    whole.open(b"/scratch/ada/run/state.dat", opened_ns, elapsed_ns);
    clock_ns += elapsed_ns;
    let mut writes = 0;
    for index in 1..calls {
        let gap_ns = if index % SYNC_EVERY == 1 { 500_000 } else { 20_000 } / 100 * (95 + random.below(10));
        let (call, size, mean_ns) = match index {
            _ if index + 1 == calls => (Call::Close, None, 5_000),
            _ if index % SYNC_EVERY == 0 => (Call::Fsync, None, 2_000_000),
            _ => (Call::Pwrite, Some(PIECE), 40_000),
        };
        let elapsed_ns = mean_ns / 100 * (90 + random.below(20));
        let offset = size.map(|size| (writes * ranks + u64::from(rank)) * size);
        writes += u64::from(size.is_some());
        short.add(call, clock_ns, gap_ns, elapsed_ns, offset, size);
        clock_ns += gap_ns + elapsed_ns;
    }
    let mut bytes = header(rank, ranks as u32, clock_ns);
    whole.append_to(&mut bytes);
    short.append_to(&mut bytes);
    let next = bytes.len() as u64;
    bytes[32..40].copy_from_slice(&next.to_le_bytes());
    bytes
}

fn header(rank: u32, ranks: u32, end_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"PIOSPOOL");
    let ended_normally = 1_u32;
    for (at, value) in
        [(8, 6), (12, 4000 + rank % RANKS_OF_NODE), (20, rank), (24, ranks), (28, ended_normally)]
    {
        put(at, &value.to_le_bytes());
    }
    let command = b"./model\0input.nml\0";
    put(48, &1_700_000_000_000_000_000_u64.to_le_bytes());
    put(64, &START_NS.to_le_bytes());
    put(72, &end_ns.to_le_bytes());
    let node = rank / RANKS_OF_NODE;
    put(80, format!("boot-{node}").as_bytes());
    put(120, format!("node{node:05}").as_bytes());
    put(224, &(command.len() as u32).to_le_bytes());
    put(400, command);
    bytes
}

/// Records of one kind, and the size that the last one had.
struct Chunk {
    is_short: bool,
    chunks: Vec<Vec<u8>>,
    size: u64,
}

impl Chunk {
    const BYTES: usize = 65_536;
    const HEADER: usize = 64;

    fn new(is_short: bool) -> Chunk {
        Chunk { is_short, chunks: Vec::new(), size: 0 }
    }

    fn open(&mut self, path: &[u8], start_ns: u64, elapsed_ns: u64) {
        let units = 1 + path.len().div_ceil(64);
        let word = u32::from(Call::Open.number()) | (units as u32) << 16;
        let fd = 3_u32;
        let device_and_temperature = 0_u64;
        let mut record = [word.to_le_bytes(), fd.to_le_bytes()].concat();
        for value in [start_ns, elapsed_ns, 0, device_and_temperature, path.len() as u64, u64::from(fd), 0] {
            record.extend(value.to_le_bytes());
        }
        record.extend(path);
        record.resize(units * 64, 0);
        self.append(&record);
    }

    /// A short record, `gap_ns` after `free_ns`, when the call before ended.
    fn add(
        &mut self,
        call: Call,
        free_ns: u64,
        gap_ns: u64,
        elapsed_ns: u64,
        offset: Option<u64>,
        size: Option<u64>,
    ) {
        const MOST_BYTES: usize = 56;
        const HAS_SIZE: u16 = 2;
        const HAS_OFFSET: u16 = 4;
        const HAS_START: u16 = 32;
        if self.chunks.last().is_none_or(|chunk| chunk.len() + Chunk::HEADER + MOST_BYTES > Chunk::BYTES) {
            self.chunks.push(Vec::new());
        }
        let is_first = self.chunks.last().is_some_and(Vec::is_empty);
        if is_first {
            self.size = 0;
        }
        let size = size.unwrap_or(0);
        let more = [
            (HAS_START, is_first.then_some(free_ns + gap_ns)),
            (HAS_SIZE, Some(size).filter(|size| *size != self.size)),
            (HAS_OFFSET, offset),
        ];
        self.size = size;
        let form = more.iter().filter(|(_, value)| value.is_some()).fold(0, |form, (flag, _)| form | flag);
        let units = 2 + more.iter().flat_map(|(_, value)| value).count() as u32;
        let word = u32::from(call.number()) | units << 16 | 128 << 24;
        let mut record = word.to_le_bytes().to_vec();
        record.extend(3_u16.to_le_bytes());
        record.extend(form.to_le_bytes());
        record.extend((gap_ns as u32).to_le_bytes());
        record.extend((elapsed_ns as u32).to_le_bytes());
        record.extend(more.iter().filter_map(|(_, value)| *value).flat_map(u64::to_le_bytes));
        self.append(&record);
    }

    fn append(&mut self, record: &[u8]) {
        match self.chunks.last_mut() {
            Some(chunk) => chunk.extend(record),
            None => self.chunks.push(record.to_vec()),
        }
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        const MAGIC: u32 = 0x4b4e_4843;
        for (sequence, records) in self.chunks.iter().enumerate() {
            let bytes = (records.len() + Chunk::HEADER).next_multiple_of(4096);
            let start = out.len();
            for word in [MAGIC, bytes as u32, 0, sequence as u32, u32::from(self.is_short)] {
                out.extend(word.to_le_bytes());
            }
            out.resize(start + Chunk::HEADER, 0);
            out.extend(records);
            out.resize(start + bytes, 0);
        }
    }
}

/// A linear congruential generator: good enough for jitter, the same numbers everywhere. Without a seed, no jitter.
struct Random(Option<u64>);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        let Some(state) = &mut self.0 else { return limit / 2 };
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    }
}

/// CPU time of this process, seconds.
fn cpu_s() -> f64 {
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
    // Clock ticks in user and kernel mode, a hundredth of a second each on Linux.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn most_memory_kib() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    Ok(line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0))
}

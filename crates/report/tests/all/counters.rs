//! Findings from the counters of a Darshan log: each with counters that show it, and with some that do not.

use pio_explain::findings::Kind;
use pio_explain::{Counted, Explanation};
use pio_import::darshan::{Log, Module, write_trace};
use pio_report::{findings_in_words, html_with_counters, text_with_counters};
use pio_trace::Trace;
use proptest::prelude::*;

use crate::writer::{Compression, LogWriter};

/// Ranks of every log, and how long its job ran.
const RANKS: i64 = 4;
const RUN_S: f64 = 9.25;
const MIB: i64 = 1 << 20;
const LUSTRE: usize = 8;
const DXT_POSIX: usize = 10;

/// A record: what it is of, its file and rank (−1: all), and the counters that are not 0.
struct Counters<'a> {
    module: Module,
    file: u64,
    rank: i64,
    integers: Vec<(&'a str, i64)>,
    times: Vec<(&'a str, f64)>,
}

fn posix<'a>(file: u64, rank: i64, integers: &[(&'a str, i64)], times: &[(&'a str, f64)]) -> Counters<'a> {
    Counters { module: Module::Posix, file, rank, integers: integers.into(), times: times.into() }
}

fn stdio<'a>(file: u64, rank: i64, integers: &[(&'a str, i64)], times: &[(&'a str, f64)]) -> Counters<'a> {
    Counters { module: Module::Stdio, ..posix(file, rank, integers, times) }
}

const NAMES: [&str; 4] = ["/scratch/a", "/scratch/b", "/home/c", "/scratch/d"];

fn log(records: &[Counters<'_>]) -> LogWriter {
    let mut writer = LogWriter::new("3.41", false, Compression::Zlib);
    writer.names = NAMES.iter().enumerate().map(|(index, name)| (index as u64, *name)).collect();
    for (module, number, version) in [(Module::Posix, 1, 4), (Module::MpiIo, 2, 3), (Module::Stdio, 9, 2)] {
        let mut words = writer.words();
        for record in records.iter().filter(|record| record.module == module) {
            let names = module.counters();
            let prefix = module.name().replace('-', "");
            let mut integers = vec![0i64; names.integers.len()];
            let mut times = vec![0f64; names.floats.len()];
            for &(name, value) in &record.integers {
                let name = format!("{prefix}_{name}");
                integers[names.integer(&name).unwrap_or_else(|| panic!("{name}"))] = value;
            }
            for &(name, value) in &record.times {
                let name = format!("{prefix}_F_{name}");
                times[names.float(&name).unwrap_or_else(|| panic!("{name}"))] = value;
            }
            words.u64(record.file).i64(record.rank);
            integers.into_iter().for_each(|value| {
                words.i64(value);
            });
            times.into_iter().for_each(|value| {
                words.f64(value);
            });
        }
        writer.modules.push((number, version, words.bytes));
    }
    writer
}

/// The layout of a file on Lustre, of one component.
fn with_stripes(mut writer: LogWriter, files: &[u64], stripes: i64, size: i64) -> LogWriter {
    let mut words = writer.words();
    for file in files {
        words.u64(*file).i64(-1).i64(1).i64(stripes).i64(size).i64(stripes);
        words.i64(0).i64(0).i64(0).i64(-1).i64(0);
        words.bytes.extend([0; 16]);
        (0..stripes).for_each(|target| {
            words.i64(target);
        });
    }
    writer.modules.push((LUSTRE, 2, words.bytes));
    writer
}

fn explained(writer: &LogWriter) -> (Trace, Explanation, Counted) {
    let log = Log::from_bytes(writer.bytes(), "made.darshan").unwrap();
    let mut bytes = Vec::new();
    write_trace(&log, &mut bytes, "made.pio".as_ref()).unwrap();
    let trace = Trace::from_bytes(bytes, "made.pio").unwrap();
    let mut found = Explanation::of_trace(&trace, &mut |_| {}).unwrap();
    let counted = Counted::of(&log);
    found.add_counters(&counted);
    (trace, found, counted)
}

fn kinds(writer: &LogWriter) -> Vec<Kind> {
    explained(writer).1.findings.iter().map(|finding| finding.kind).collect()
}

fn of(records: &[Counters<'_>]) -> Vec<Kind> {
    kinds(&log(records))
}

/// 4,000 writes of 2,000 B in a row by each rank to a file of its own, in 8 s.
fn small_writes<'a>() -> Vec<Counters<'a>> {
    let one = |file, rank| {
        posix(
            file,
            rank,
            &[
                ("OPENS", 1),
                ("WRITES", 4000),
                ("BYTES_WRITTEN", 8_000_000),
                ("MAX_BYTE_WRITTEN", 7_999_999),
                ("SEQ_WRITES", 3999),
                ("CONSEC_WRITES", 3999),
                ("SIZE_WRITE_1K_10K", 4000),
            ],
            &[("WRITE_TIME", 8.0), ("WRITE_START_TIMESTAMP", 0.5), ("WRITE_END_TIMESTAMP", 9.0)],
        )
    };
    (0..RANKS).map(|rank| one(rank as u64, rank)).collect()
}

/// 800 MiB in requests of `size`, in 1 s.
fn large_writes<'a>(file: u64, rank: i64, class: &'a str, size: i64) -> Counters<'a> {
    let count = 800 * MIB / size;
    posix(
        file,
        rank,
        &[
            ("OPENS", 1),
            ("WRITES", count),
            ("BYTES_WRITTEN", 800 * MIB),
            ("MAX_BYTE_WRITTEN", 800 * MIB - 1),
            ("SEQ_WRITES", count - 1),
            ("CONSEC_WRITES", count - 1),
            (class, count),
            ("ACCESS1_ACCESS", size),
            ("ACCESS1_COUNT", count),
        ],
        &[("WRITE_TIME", 1.0), ("WRITE_START_TIMESTAMP", 0.5), ("WRITE_END_TIMESTAMP", 1.6)],
    )
}

#[test]
fn small_writes_without_a_rate_have_no_cost() {
    let (trace, found, counted) = explained(&log(&small_writes()));
    let [finding] = found.findings.as_slice() else { panic!("{:?}", found.findings) };
    assert_eq!((finding.kind, finding.lost_ns), (Kind::SmallWrites, None));
    // Four ranks side by side: the job is held up for 8 s, not for 32.
    assert_eq!((finding.cost.calls, finding.cost.time_ns), (16_000, 32_000_000_000));
    assert!((finding.time_ns() - 8e9).abs() < 1e6, "{}", finding.time_ns());
    let text = text_with_counters(&found, &counted);
    let first = text.split("\n\n").next().unwrap();
    assert_eq!(
        first,
        "Costliest: many small writes: takes up to 86 % of the run; how much of it can be saved is not\n  \
         known, on 4 files.\n\
         Change: gather them in a buffer of a MiB or more, and write that; in MPI-IO, write collectively."
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "16,000 of 16,000 writes are of less than 100 KiB (100 %; at most 100 % of 30.52 MiB).",
        "Such calls took at most 32 s, the sum of all ranks, between 500 ms and 9 s.",
        "Files: /home/c (25 %), /scratch/a (25 %), /scratch/b (25 %), and 1 more. Ranks: 0 (25 %),",
        "They do not show the order of calls",
    ] {
        assert!(flat.contains(part), "{part}\n{text}");
    }
    let mut page = Vec::new();
    html_with_counters(&trace, &found, &counted, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for part in
        ["id=\"findings\"", "class=\"headline\"", "Many small writes", "They do not show the order of calls"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(findings_in_words(&found)[0].evidence.starts_with("16,000 of 16,000 writes"));
}

/// The same log says what large requests reach: 800 MiB/s. At that rate, each rank's 8 MB take 10 ms.
#[test]
fn other_files_of_the_log_tell_the_rate() {
    let mut records = small_writes();
    records[2].file = 0;
    let more: Vec<_> = (0..RANKS).map(|rank| large_writes(3, rank, "SIZE_WRITE_4M_10M", 8 * MIB)).collect();
    records[3].file = 1;
    records.extend(more);
    let (_, found, counted) = explained(&log(&records));
    let [finding] = found.findings.as_slice() else { panic!("{:?}", found.findings) };
    assert_eq!(finding.kind, Kind::SmallWrites);
    let lost_s = finding.lost_ns.unwrap() / 1e9;
    assert!((lost_s - (8.0 - 8e6 / (800.0 * MIB as f64))).abs() < 1e-3, "{lost_s}");
    let text = text_with_counters(&found, &counted).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("at 800 MiB/s (as other files of this log), the same bytes would take 38"),
        "{text}"
    );
    // What reaches another file system tells nothing of this one: the mounts of the log are /scratch/long and /home.
    records[RANKS as usize..].iter_mut().for_each(|record| record.file = 2);
    assert_eq!(explained(&log(&records)).1.findings[0].lost_ns, None);
}

/// Darshan counts requests of exactly 1 MiB with smaller ones.
#[test]
fn large_requests_are_clean() {
    for (class, size) in [("SIZE_WRITE_100K_1M", MIB), ("SIZE_WRITE_1M_4M", 2 * MIB)] {
        let records: Vec<_> = (0..RANKS).map(|rank| large_writes(rank as u64, rank, class, size)).collect();
        assert_eq!(of(&records), [], "{class}");
    }
    let records: Vec<_> =
        (0..RANKS).map(|rank| large_writes(rank as u64, rank, "SIZE_WRITE_100K_1M", MIB)).collect();
    let (_, found, counted) = explained(&log(&records));
    let text = text_with_counters(&found, &counted);
    let first = text.split("\n\n").next().unwrap();
    assert_eq!(
        first,
        "No finding: 89 % of the ranks' time is outside calls on files; these take 4 s (11 %), most in\n  \
         writes."
    );
}

/// However small and many, what takes a hundredth of the run is no finding.
#[test]
fn little_time_is_clean() {
    let mut records = small_writes();
    for record in &mut records {
        record.times = vec![("WRITE_TIME", 0.01 * RUN_S)];
    }
    assert_eq!(of(&records), []);
}

fn reads<'a>(sequential: i64, consecutive: i64, strides: i64) -> Counters<'a> {
    posix(
        0,
        0,
        &[
            ("OPENS", 1),
            ("READS", 10_000),
            ("BYTES_READ", 40_960_000),
            ("MAX_BYTE_READ", 999_999_999),
            ("SEQ_READS", sequential),
            ("CONSEC_READS", consecutive),
            ("SIZE_READ_1K_10K", 10_000),
            ("STRIDE1_STRIDE", 65_536),
            ("STRIDE1_COUNT", strides),
        ],
        &[("READ_TIME", 5.0)],
    )
}

#[test]
fn order_of_small_reads() {
    assert_eq!(of(&[reads(9999, 9999, 0)]), [Kind::SmallReads]);
    assert_eq!(of(&[reads(5000, 0, 10)]), [Kind::RandomAccess]);
    assert_eq!(of(&[reads(9999, 0, 9900)]), [Kind::StridedAccess]);
}

fn whole_file<'a>(rank: i64, times: i64) -> Counters<'a> {
    posix(
        0,
        rank,
        &[
            ("OPENS", 1),
            ("READS", 16 * times),
            ("BYTES_READ", 128 * MIB * times),
            ("MAX_BYTE_READ", 128 * MIB - 1),
            ("SEQ_READS", 15 * times),
            ("CONSEC_READS", 15 * times),
            ("SIZE_READ_4M_10M", 16 * times),
        ],
        &[("READ_TIME", times as f64)],
    )
}

#[test]
fn bytes_read_again() {
    assert_eq!(of(&[whole_file(0, 1)]), []);
    let (_, found, _) = explained(&log(&[whole_file(0, 5)]));
    // Four of five times: 4 s.
    assert_eq!(
        found.findings.iter().map(|finding| (finding.kind, finding.lost_ns)).collect::<Vec<_>>(),
        [(Kind::RedundantReads, Some(4e9))]
    );
    let all: Vec<_> = (0..RANKS).map(|rank| whole_file(rank, 1)).collect();
    assert_eq!(of(&all), [Kind::SameReadByAll]);
    // One record for all, of ranks that each read the file once, and ten times.
    let mut shared = whole_file(-1, RANKS);
    shared.integers.extend([("SLOWEST_RANK_BYTES", 128 * MIB), ("SLOWEST_RANK", 1)]);
    shared.times.push(("SLOWEST_RANK_TIME", 1.0));
    assert_eq!(of(&[shared]), [Kind::SameReadByAll]);
    let mut again = whole_file(-1, RANKS * 10);
    again.times = vec![("READ_TIME", 20.0), ("SLOWEST_RANK_TIME", 5.0)];
    again.integers.extend([("SLOWEST_RANK_BYTES", 1280 * MIB), ("SLOWEST_RANK", 1)]);
    assert_eq!(of(&[again]), [Kind::RedundantReads]);
    // Who reads what is written again and again waits for news.
    let mut written = whole_file(0, 5);
    written.integers.push(("WRITES", 1));
    assert_eq!(of(&[written]), []);
}

fn pieces<'a>(module: Module, independent: i64, collective: i64, size: i64, class: &'a str) -> Counters<'a> {
    let calls = independent + collective;
    Counters {
        module,
        file: 0,
        rank: -1,
        integers: vec![
            ("INDEP_WRITES", independent),
            ("COLL_WRITES", collective),
            ("COLL_OPENS", 4),
            ("BYTES_WRITTEN", calls * size),
            (class, calls),
            ("SLOWEST_RANK", 2),
            ("SLOWEST_RANK_BYTES", calls * size / RANKS),
        ],
        times: vec![("WRITE_TIME", 20.0), ("SLOWEST_RANK_TIME", 5.0)],
    }
}

/// What MPI-IO makes of them: `count` requests of `size`, by turns of the ranks, and the time of the slowest.
fn below<'a>(count: i64, size: i64, class: &'a str, slowest_s: f64) -> Counters<'a> {
    posix(
        0,
        -1,
        &[
            ("OPENS", 4),
            ("WRITES", count),
            ("BYTES_WRITTEN", count * size),
            ("MAX_BYTE_WRITTEN", count * size - 1),
            ("SEQ_WRITES", count - 4),
            (class, count),
            ("SLOWEST_RANK", 2),
            ("SLOWEST_RANK_BYTES", count * size / RANKS),
        ],
        &[("WRITE_TIME", slowest_s * 4.0), ("SLOWEST_RANK_TIME", slowest_s)],
    )
}

#[test]
fn collective_calls() {
    let independent = pieces(Module::MpiIo, 20_000, 0, 4000, "SIZE_WRITE_AGG_1K_10K");
    let small = below(20_000, 4000, "SIZE_WRITE_1K_10K", 4.5);
    assert_eq!(of(&[independent, small]), [Kind::MissingCollective]);
    // Collective, and gathered: clean. The rest of the time is nobody's that counters could name.
    let collective = || pieces(Module::MpiIo, 0, 20_000, 4000, "SIZE_WRITE_AGG_1K_10K");
    let gathered = |slowest_s| below(20, 4_000_000, "SIZE_WRITE_1M_4M", slowest_s);
    assert_eq!(of(&[collective(), gathered(4.5)]), []);
    assert_eq!(of(&[collective(), gathered(0.5)]), [Kind::BeyondFiles]);
    // Collective, and not gathered.
    let small = below(20_000, 4000, "SIZE_WRITE_1K_10K", 4.9);
    assert_eq!(of(&[collective(), small]), [Kind::InsideLibrary]);
    // Large and independent is no defect.
    let large = pieces(Module::MpiIo, 40, 0, 4_000_000, "SIZE_WRITE_AGG_1M_4M");
    assert_eq!(of(&[large, below(40, 4_000_000, "SIZE_WRITE_1M_4M", 4.5)]), []);
}

#[test]
fn syncs() {
    let synced = |syncs| {
        let one = |rank| {
            let mut record = large_writes(rank as u64, rank, "SIZE_WRITE_10K_100K", 65_536);
            record.integers.push(("FSYNCS", syncs));
            record
        };
        of(&(0..RANKS).map(one).collect::<Vec<_>>())
    };
    assert_eq!(synced(12_800), [Kind::SyncPerWrite]);
    assert_eq!(synced(4), [Kind::SmallWrites]);
}

/// By each rank to a file of its own.
fn streams_of<'a>(pieces: i64, size: i64, flushes: i64) -> Vec<Counters<'a>> {
    (0..RANKS).map(|rank| stream(rank, pieces, size, flushes)).collect()
}

fn stream<'a>(rank: i64, pieces: i64, size: i64, flushes: i64) -> Counters<'a> {
    stdio(
        rank as u64,
        rank,
        &[("OPENS", 1), ("WRITES", pieces), ("BYTES_WRITTEN", pieces * size), ("FLUSHES", flushes)],
        &[("WRITE_TIME", 2.0)],
    )
}

#[test]
fn streams() {
    assert_eq!(of(&streams_of(100_000, 50, 100_000)), [Kind::UnbufferedStream]);
    assert_eq!(of(&streams_of(100_000, 50, 0)), [Kind::StreamedData]);
    assert_eq!(of(&streams_of(100, 4 * MIB, 0)), []);
    // Beside 3,200 MiB by POSIX, 20 MB of logs are little.
    let mut records = streams_of(100_000, 50, 0);
    records.extend((0..RANKS).map(|rank| large_writes(7, rank, "SIZE_WRITE_4M_10M", 8 * MIB)));
    assert_eq!(of(&records), []);
}

fn opened<'a>(file: u64, rank: i64, opens: i64, stats: i64, seeks: i64) -> Counters<'a> {
    posix(
        file,
        rank,
        &[("OPENS", opens), ("STATS", stats), ("SEEKS", seeks), ("READS", 4)],
        &[("META_TIME", 2.0)],
    )
}

#[test]
fn opens_and_names() {
    assert_eq!(of(&[opened(0, 0, 10_000, 0, 0)]), [Kind::OpenStorm]);
    assert_eq!(of(&[opened(0, 0, 1, 10_000, 0)]), [Kind::MetadataStorm]);
    assert_eq!(of(&[opened(0, 0, 1, 0, 10_000)]), [Kind::Seeks]);
    assert_eq!(of(&[opened(0, 0, 1, 1, 2)]), [Kind::MetadataTime]);
    // What all ask for could be one rank's work: three quarters of 2 s, in each of four ranks.
    let mut all = opened(0, -1, 400, 400, 0);
    all.times = vec![("META_TIME", 8.0), ("SLOWEST_RANK_TIME", 2.0)];
    let (_, found, _) = explained(&log(&[all]));
    let told: Vec<_> = found.findings.iter().map(|finding| (finding.kind, finding.lost_ns)).collect();
    assert_eq!(told, [(Kind::SameNamesByAll, Some(1.5e9))]);
}

fn many_files(count: u64, writes: i64) -> LogWriter {
    let one = |file: u64| {
        let mut record = opened(file, (file % 4) as i64, 1, 0, 0);
        record.integers.extend([("WRITES", writes), ("BYTES_WRITTEN", 100 * writes)]);
        record.times = vec![("META_TIME", 10.0 / count as f64)];
        record
    };
    log(&(0..count).map(one).collect::<Vec<_>>())
}

#[test]
fn many_files_of_single_ranks() {
    assert_eq!(kinds(&many_files(400, 1)), [Kind::FilePerProcess]);
    assert_eq!(kinds(&many_files(2000, 0)), [Kind::ManySmallFiles]);
    assert_eq!(kinds(&many_files(40, 1)), [Kind::MetadataTime]);
}

fn shared<'a>(slowest_bytes: i64, sum_s: f64, slowest_s: f64) -> Counters<'a> {
    let mut record = below(400, 2 * MIB, "SIZE_WRITE_1M_4M", 0.0);
    record.integers.retain(|(name, _)| *name != "SLOWEST_RANK_BYTES");
    record.integers.push(("SLOWEST_RANK_BYTES", slowest_bytes));
    record.times = vec![("WRITE_TIME", sum_s), ("SLOWEST_RANK_TIME", slowest_s)];
    record
}

#[test]
fn balance() {
    assert_eq!(of(&[shared(200 * MIB, 8.0, 2.1)]), []);
    assert_eq!(of(&[shared(790 * MIB, 8.0, 7.9)]), [Kind::OneWriter]);
    assert_eq!(of(&[shared(400 * MIB, 8.0, 5.0)]), [Kind::UnevenRanks]);
    assert_eq!(of(&[shared(200 * MIB, 8.0, 5.0)]), [Kind::Straggler]);
    let (_, found, _) = explained(&log(&[shared(200 * MIB, 8.0, 5.0)]));
    // 5 s instead of the mean of 2 s.
    assert_eq!(found.findings[0].lost_ns, Some(3e9));
    let told = &findings_in_words(&found)[0];
    assert!(told.evidence.contains("The mean of all ranks is 2 s, its own 2.5 times that."), "{told:?}");
    assert!(told.place.contains("Rank: 2 (100 %)"), "{told:?}");
    // Files of single ranks: one that is four times as slow, and one that writes all.
    let own = |file: u64, time_s| {
        let mut record = large_writes(file, file as i64, "SIZE_WRITE_4M_10M", 8 * MIB);
        record.times = vec![("WRITE_TIME", time_s)];
        record
    };
    assert_eq!(of(&[own(0, 1.0), own(1, 1.0), own(2, 4.0), own(3, 1.0)]), [Kind::Straggler]);
    assert_eq!(of(&[own(0, 4.0)]), [Kind::OneWriter]);
}

#[test]
fn blocks_and_stripes() {
    let with = |integers: &[(&'static str, i64)]| {
        let mut record = shared(200 * MIB, 8.0, 2.0);
        record.integers.extend(integers);
        record
    };
    let unaligned = [("FILE_NOT_ALIGNED", 399), ("FILE_ALIGNMENT", MIB), ("MEM_NOT_ALIGNED", 7)];
    let (_, found, _) = explained(&log(&[with(&unaligned)]));
    assert_eq!(found.findings[0].kind, Kind::UnalignedRequests);
    let told = findings_in_words(&found).remove(0);
    assert!(told.evidence.contains("399 of 400 writes do not begin at a multiple of 1 MiB"), "{told:?}");
    assert_eq!(of(&[with(&[("FILE_NOT_ALIGNED", 4), ("FILE_ALIGNMENT", MIB)])]), []);

    let large = |stripes| {
        let file = with(&[("MAX_BYTE_WRITTEN", (2 << 30) - 1)]);
        kinds(&with_stripes(log(&[file]), &[0], stripes, MIB))
    };
    assert_eq!(large(1), [Kind::FewStripes]);
    assert_eq!(large(8), []);

    let small = |stripes| {
        let files: Vec<u64> = (0..200).collect();
        let one = |file: &u64| {
            let mut record = opened(*file, 0, 1, 0, 0);
            record.integers.extend([("BYTES_READ", 1000), ("MAX_BYTE_READ", 999)]);
            record.times = vec![("META_TIME", 0.004)];
            record
        };
        let writer = log(&files.iter().map(one).collect::<Vec<_>>());
        kinds(&with_stripes(writer, &files, stripes, MIB))
    };
    assert_eq!(small(16), [Kind::ManyStripes]);
    assert_eq!(small(1), []);
}

/// What was traced is judged by its events, and not told again; what was not, by counters.
#[test]
fn with_traced_accesses() {
    let mut records = small_writes();
    records.truncate(1);
    records[0].integers.retain(|(name, _)| *name != "WRITES");
    records[0].integers.push(("WRITES", 400));
    let mut writer = log(&records);
    let traced: Vec<_> =
        (0..400).map(|at| (true, at * 2000, 2000, 0.02 * at as f64, 0.02 * at as f64 + 0.019)).collect();
    let mut words = writer.words();
    words.accesses(0, 0, &traced);
    writer.modules.push((DXT_POSIX, 1, words.bytes));
    let (_, found, _) = explained(&writer);
    let told: Vec<_> =
        found.findings.iter().map(|finding| (finding.kind, finding.counters.is_some())).collect();
    assert_eq!(told, [(Kind::SmallWrites, false)]);

    let mut with_stream = records;
    with_stream.push(stream(2, 100_000, 50, 100_000));
    let mut writer_of_both = log(&with_stream);
    writer_of_both.modules.extend(writer.modules.pop());
    let (_, found, counted) = explained(&writer_of_both);
    let told: Vec<_> =
        found.findings.iter().map(|finding| (finding.kind, finding.counters.is_some())).collect();
    assert_eq!(told, [(Kind::SmallWrites, false), (Kind::UnbufferedStream, true)]);
    // Files that only counters know have their names.
    assert!(text_with_counters(&found, &counted).contains("File: /home/c"));
}

#[test]
fn a_log_that_ran_full_says_so_first() {
    let mut writer = log(&small_writes());
    writer.partial = 1 << 1;
    let (_, found, counted) = explained(&writer);
    let text = text_with_counters(&found, &counted).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("Incomplete: lost records: POSIX: the module ran out of memory"), "{text}");
    assert!(text.contains("wrote at least 30.52 MiB"), "{text}");
}

/// Any counters: negative ones, huge ones, times that are no numbers.
fn any_record() -> impl Strategy<Value = (u8, u64, i64, Vec<i64>, Vec<f64>)> {
    let integer = prop_oneof![
        Just(0i64),
        Just(-1),
        Just(i64::MIN),
        Just(i64::MAX),
        0..1000i64,
        0..1_i64 << 40,
        any::<i64>()
    ];
    let time = prop_oneof![
        Just(0f64),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(f64::MAX),
        0.0..20.0f64,
        any::<f64>()
    ];
    (0..3u8, 0..3u64, -1..5i64, proptest::collection::vec(integer, 130), proptest::collection::vec(time, 20))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_counters_make_numbers(records in proptest::collection::vec(any_record(), 0..12)) {
        let mut writer = LogWriter::new("3.41", false, Compression::None);
        writer.names = vec![(0, "/scratch/a"), (1, "/home/b")];
        let modules = [(Module::Posix, 1, 4), (Module::MpiIo, 2, 3), (Module::Stdio, 9, 2)];
        for (index, (module, number, version)) in modules.into_iter().enumerate() {
            let names = module.counters();
            let mut words = writer.words();
            for (_, file, rank, integers, times) in records.iter().filter(|record| record.0 as usize == index) {
                words.u64(*file).i64(*rank);
                integers[..names.integers.len()].iter().for_each(|value| { words.i64(*value); });
                times[..names.floats.len()].iter().for_each(|value| { words.f64(*value); });
            }
            writer.modules.push((number, version, words.bytes));
        }
        let (trace, found, counted) = explained(&writer);
        for finding in &found.findings {
            prop_assert!(finding.lost_ns.is_none_or(|lost_ns| lost_ns.is_finite() && lost_ns >= 0.0), "{finding:?}");
            prop_assert!(finding.time_ns() / 1e9 <= RUN_S + 1e-6, "{finding:?}");
            prop_assert!(finding.expected_ns.is_finite() && finding.together >= 1.0, "{finding:?}");
        }
        let text = text_with_counters(&found, &counted);
        prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
        html_with_counters(&trace, &found, &counted, &mut Vec::new()).unwrap();
    }

    #[test]
    fn nothing_counted_is_no_finding(records in proptest::collection::vec((0..3u8, 0..3u64, -1..5i64), 0..12)) {
        let records: Vec<_> = records.into_iter().map(|(module, file, rank)| {
            let module = [Module::Posix, Module::MpiIo, Module::Stdio][module as usize];
            Counters { module, ..posix(file, rank, &[], &[]) }
        }).collect();
        let (_, found, counted) = explained(&log(&records));
        prop_assert_eq!(&found.findings, &vec![]);
        prop_assert!(text_with_counters(&found, &counted).starts_with("No finding: the log tells of no time"));
    }
}

//! Reports of Darshan logs: with traced accesses, and of counters alone.

use pio_explain::{Counted, Explanation};
use pio_import::darshan::{Log, Module, write_trace};
use pio_report::{html_with_counters, text_with_counters};
use pio_trace::Trace;

use crate::writer::{Compression, LogWriter};

const POSIX: usize = 1;
const LUSTRE: usize = 8;
const DXT_POSIX: usize = 10;
const HEATMAP: usize = 15;

/// One file that all 4 ranks shared, and one each of two ranks.
fn counters() -> LogWriter {
    let mut writer = LogWriter::new("3.41", false, Compression::Zlib);
    writer.names =
        vec![(1, "/scratch/shared"), (2, "/scratch/own<&>"), (3, "/scratch/own.1"), (9, "heatmap:POSIX")];
    let mut posix = writer.words();
    for (id, rank, reads, time_s) in [(1, -1, 4, 8.0), (2, 0, 100, 0.5), (3, 1, 0, 0.25)] {
        let names = Module::Posix.counters();
        let mut integers = vec![0i64; names.integers.len()];
        let mut floats = vec![0f64; names.floats.len()];
        let mut set = |name: &str, value: i64| integers[names.integer(name).unwrap()] = value;
        set("POSIX_OPENS", 4);
        set("POSIX_READS", reads);
        set("POSIX_WRITES", 8);
        set("POSIX_BYTES_READ", reads * 4096);
        set("POSIX_BYTES_WRITTEN", 8 << 20);
        set("POSIX_SIZE_READ_1K_10K", reads);
        set("POSIX_SIZE_WRITE_1M_4M", 8);
        set("POSIX_ACCESS1_ACCESS", 1 << 20);
        set("POSIX_ACCESS1_COUNT", 8);
        set("POSIX_CONSEC_WRITES", 6);
        set("POSIX_SLOWEST_RANK", 3);
        floats[names.float("POSIX_F_WRITE_TIME").unwrap()] = time_s;
        floats[names.float("POSIX_F_SLOWEST_RANK_TIME").unwrap()] = 5.0;
        posix.u64(id).i64(rank);
        integers.into_iter().for_each(|value| {
            posix.i64(value);
        });
        floats.into_iter().for_each(|value| {
            posix.f64(value);
        });
    }
    let mut layouts = writer.words();
    layouts.u64(1).i64(-1).i64(1).i64(2).i64(1 << 20).i64(2).i64(0).i64(0).i64(0).i64(-1).i64(0);
    layouts.bytes.extend([0; 16]);
    layouts.i64(7).i64(8);
    let mut heat = writer.words();
    heat.u64(9).i64(0).f64(2.5).i64(4).u64(0).u64(0).i64(0).i64(1 << 20).i64(0).i64(0).integers(4);
    writer.modules = vec![(POSIX, 4, posix.bytes), (LUSTRE, 2, layouts.bytes), (HEATMAP, 1, heat.bytes)];
    writer
}

/// Text and page.
fn reports(writer: &LogWriter) -> (String, String, Counted) {
    let log = Log::from_bytes(writer.bytes(), "made.darshan").unwrap();
    let mut bytes = Vec::new();
    write_trace(&log, &mut bytes, "made.pio".as_ref()).unwrap();
    let trace = Trace::from_bytes(bytes, "made.pio").unwrap();
    let mut found = Explanation::of_trace(&trace, &mut |_| {}).unwrap();
    let counted = Counted::of(&log);
    found.add_counters(&counted);
    let mut page = Vec::new();
    html_with_counters(&trace, &found, &counted, &mut page).unwrap();
    (text_with_counters(&found, &counted), String::from_utf8(page).unwrap(), counted)
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.trim_start().starts_with(start));
    found.unwrap_or_else(|| panic!("no line '{start}' in:\n{text}"))
}

#[test]
fn counters_alone() {
    let (text, page, counted) = reports(&counters());
    let posix = &counted.interfaces[0];
    assert_eq!((posix.records, posix.files, posix.shared_files), (3, 3, 1));
    assert_eq!((posix.counts.reads, posix.counts.writes, posix.counts.written_bytes), (104, 24, 24 << 20));
    assert_eq!((posix.consecutive, posix.common_sizes.as_slice()), (Some(18), [(1 << 20, 24)].as_slice()));
    assert_eq!(counted.files[0].slowest.map(|share| (share.rank, share.time_s)), Some((3, 5.0)));
    assert_eq!(counted.files[0].striping, Some((1 << 20, 2)));
    assert_eq!(counted.ranks.iter().map(|rank| rank.counts.writes).collect::<Vec<_>>(), [8, 8]);

    assert!(text.contains("4 ranks ran for 9.25 s. Darshan counted their calls, but traced none."), "{text}");
    assert!(text.contains("read 416 KiB and wrote 24 MiB in 128 accesses"), "{text}");
    let columns: Vec<_> = line(&text, "/scratch/shared  ").split_whitespace().collect();
    assert_eq!(columns[..5], ["/scratch/shared", "POSIX", "all", "4", "12"], "{text}");
    assert!(line(&text, "1 MiB – 4 MiB").contains("100 %"), "{text}");
    assert!(text.contains("Data rate of POSIX over 10 s"), "{text}");
    assert!(!text.contains("lustre on /scratch/long"), "mounts are in the page");
    for part in
        ["Counters", "2 × 1 MiB", "/scratch/own&lt;&amp;&gt;", "lustre on /scratch/long", "counted by POSIX"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("<code>pioscope record</code> does, and Darshan"), "the note has a command");
}

/// Files of one rank each, on a target each: that of target 3 is ten times slower.
#[test]
fn targets_and_ranks_over_time() {
    let mut writer = LogWriter::new("3.41", false, Compression::Zlib);
    writer.names = vec![(9, "heatmap:POSIX")];
    writer.names.extend((10..).zip(["/s/a", "/s/b", "/s/c", "/s/d", "/s/e", "/s/f", "/s/g", "/s/h"]));
    let (mut posix, mut layouts, mut heat) = (writer.words(), writer.words(), writer.words());
    for rank in 0..8 {
        let counters = Module::Posix.counters();
        let mut integers = vec![0i64; counters.integers.len()];
        let mut floats = vec![0f64; counters.floats.len()];
        integers[counters.integer("POSIX_WRITES").unwrap()] = 64;
        integers[counters.integer("POSIX_BYTES_WRITTEN").unwrap()] = 64 << 20;
        floats[counters.float("POSIX_F_WRITE_TIME").unwrap()] = if rank == 3 { 10.0 } else { 1.0 };
        posix.u64(10 + rank as u64).i64(rank);
        integers.into_iter().for_each(|value| {
            posix.i64(value);
        });
        floats.into_iter().for_each(|value| {
            posix.f64(value);
        });
        layouts.u64(10 + rank as u64).i64(rank).i64(1).i64(1);
        layouts.i64(1 << 20).i64(1).i64(0).i64(0).i64(0).i64(-1).i64(0);
        layouts.bytes.extend(b"fast\0\0\0\0\0\0\0\0\0\0\0\0");
        layouts.i64(rank);
        heat.u64(9).i64(rank).f64(2.5).i64(4).u64(0).u64(0);
        (0..4).for_each(|bin| {
            heat.i64(if bin <= rank / 2 { 1 << 20 } else { 0 });
        });
        heat.i64(0).i64(0).i64(0).i64(0);
    }
    writer.modules = vec![(POSIX, 4, posix.bytes), (LUSTRE, 2, layouts.bytes), (HEATMAP, 1, heat.bytes)];
    let (text, page, counted) = reports(&writer);
    let slow = counted.layouts.slow_target().unwrap();
    assert_eq!((slow.target.number, slow.target.alone), (3, 1));
    assert_eq!(slow.median_rate, 10.0 * slow.rate);
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "Target 3 of Lustre was slow: the 1 file that lies on it alone moved 6.4 MiB/s, half of the targets 64 \
                    MiB/s or more.";
    assert!(told.contains(sentence), "{text}");
    let kind: Vec<_> = line(&text, "1 × 1 MiB").split_whitespace().collect();
    assert_eq!(kind[4..8], ["fast", "8", "512", "MiB"], "{text}");
    let (_, targets) = text.split_once("Targets of Lustre").unwrap();
    let first: Vec<_> = targets.lines().nth(3).unwrap().split_whitespace().collect();
    assert_eq!(first[..5], ["3", "1", "1", "64", "MiB"], "the slowest comes first: {text}");
    let (_, heat) = text.split_once("Bytes of POSIX over time, by rank").unwrap();
    // The job says that it has four ranks.
    let lines: Vec<_> = heat.lines().skip(1).take(4).collect();
    assert!(lines[0].contains("rank 0") && lines[0].ends_with("▏█   ▕ 1 MiB"), "{heat}");
    assert!(lines[3].contains("rank 3") && lines[3].ends_with("▏██  ▕ 2 MiB"), "{heat}");
    for part in ["Bytes of POSIX over time, by rank", "1 × 1 MiB on 3 (fast)", "Target 3 of Lustre was slow"]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn traced_accesses_and_counters() {
    let mut writer = counters();
    let mut dxt = writer.words();
    dxt.accesses(1, 2, &[(true, 0, 1 << 20, 1.0, 2.0), (true, 1 << 20, 1 << 20, 2.0, 3.0)]);
    writer.modules.insert(2, (DXT_POSIX, 1, dxt.bytes));
    writer.partial = 1 << DXT_POSIX;
    let (text, page, _) = reports(&writer);
    assert!(text.contains("wrote at least 2 MiB at "), "{text}");
    assert!(text.contains("Interfaces, as Darshan counted them"), "{text}");
    let (first, _) = text.split_once("Costliest").unwrap_or_else(|| panic!("{text}"));
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.starts_with("Incomplete: ") && first.ends_with("are lower bounds."), "{first}");
    assert!(first.contains("DXT_POSIX: the module ran out of memory"), "{first}");
    assert!(first.contains("126 of 128 of DXT_POSIX"), "{first}");
    assert!(page.contains("<p class=\"incomplete\""), "the page says it first too");
    assert!(page.contains("id=\"bars\"") && page.contains("Counters"));
}

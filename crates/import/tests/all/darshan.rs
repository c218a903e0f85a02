//! Darshan logs of every version, byte order and compression, made here; what becomes of their accesses; damage.
//! `make test-darshan` compares with PyDarshan, on the logs that it ships and on random ones.

#[path = "../support/darshan.rs"]
mod writer;

use pio_import::ImportError;
use pio_import::darshan::{Log, Module, Mount, write_trace};
use pio_trace::{Event, Flags, Layer, Op, Target, Trace};
use proptest::prelude::*;
use writer::{Compression, LogWriter};

/// The number of this module is the same in all versions.
const POSIX: usize = 1;

fn all_logs() -> impl Iterator<Item = LogWriter> {
    let versions = ["3.00", "3.10", "3.20", "3.21", "3.41"];
    let compressions = [Compression::Zlib, Compression::Bzip2, Compression::None];
    versions.into_iter().flat_map(move |version| {
        [false, true].into_iter().flat_map(move |big_endian| {
            compressions.into_iter().map(move |compression| LogWriter::new(version, big_endian, compression))
        })
    })
}

fn read(writer: &LogWriter) -> Log {
    Log::from_bytes(writer.bytes(), "made.darshan").unwrap()
}

/// The only record of a module: id, rank, file, whole numbers, times.
fn only_record(log: &Log, module: Module) -> (u64, i64, Option<u64>, Vec<i64>, Vec<f64>) {
    let mut records = log.records(module).unwrap();
    let record = records.next().unwrap();
    let found = (record.id, record.rank, record.file, record.integers.to_vec(), record.floats.to_vec());
    assert!(records.next().is_none());
    assert_eq!(records.damage(), None);
    found
}

#[test]
fn the_job_and_the_names() {
    for mut writer in all_logs() {
        writer.names = vec![(1 << 63, "/scratch/long/a"), (7, ""), (9, "/b")];
        writer.partial = 1 << POSIX;
        let log = read(&writer);
        let job = log.job();
        assert_eq!((job.uid, job.processes, job.id), (4711, 4, 99));
        // Whole seconds before 3.41: Darshan's tools add one.
        let wide = writer.version == "3.41";
        assert_eq!(job.run_time_s, if wide { 9.25 } else { 10.0 });
        assert_eq!(job.start_ns, 1_700_000_000_000_000_000 + if wide { 5 } else { 0 });
        assert_eq!(job.command, "/bin/app --size 3");
        assert_eq!(job.metadata[1], ("h".into(), "cb_nodes=4;x=y".into()));
        let longest = Mount { path: "/scratch/long".into(), kind: "lustre".into() };
        assert_eq!((job.mounts.len(), &job.mounts[0]), (3, &longest));
        let (names, damage) = log.names();
        assert_eq!(damage, None);
        assert_eq!(names.iter().collect::<Vec<_>>(), [(7, ""), (9, "/b"), (1 << 63, "/scratch/long/a")]);
        let modules: Vec<_> = log.modules().map(|region| (region.module, region.partial)).collect();
        assert_eq!(modules, [(Module::Posix, true)], "a module that kept nothing, and says so");
    }
}

#[test]
fn records_of_the_newest_versions() {
    for mut writer in all_logs() {
        let mut posix = writer.words();
        posix.u64(u64::MAX).i64(-1).integers(69).floats(17);
        writer.modules.push((POSIX, 4, posix.bytes));
        let (id, rank, file, integers, floats) = only_record(&read(&writer), Module::Posix);
        assert_eq!((id, rank, file), (u64::MAX, -1, None));
        assert_eq!(integers, (1000..1069).collect::<Vec<_>>());
        assert_eq!(floats, (0..17).map(|n| f64::from(n) + 0.5).collect::<Vec<_>>());
    }
}

#[test]
fn what_an_old_version_did_not_count_is_minus_one() {
    for big_endian in [false, true] {
        let mut writer = LogWriter::new("3.10", big_endian, Compression::Zlib);
        let mut posix = writer.words();
        posix.u64(1).i64(3).integers(64).floats(15);
        let mut mpi_io = writer.words();
        mpi_io.u64(1).i64(3).integers(51).floats(15);
        let mut hdf5 = writer.words();
        hdf5.u64(1).i64(3).integers(1).floats(2);
        let mut pnetcdf = writer.words();
        pnetcdf.u64(1).i64(3).integers(2).floats(2);
        let mut bgq = writer.words();
        bgq.u64(1).i64(3).i64(-99).integers(11).floats(1);
        let mut stdio = writer.words();
        stdio.u64(1).i64(3).integers(13).floats(15);
        let regions = [posix, mpi_io, hdf5, pnetcdf, bgq];
        let versions = [2, 1, 1, 1, 1];
        writer.modules =
            regions.into_iter().zip(versions).zip(1..).map(|((r, v), n)| (n, v, r.bytes)).collect();
        writer.modules.push((7, 1, stdio.bytes));
        let log = read(&writer);

        let (.., integers, floats) = only_record(&log, Module::Posix);
        let names = Module::Posix.counters();
        let integer = |name: &str| integers[names.integer(name).unwrap()];
        let float = |name: &str| floats[names.float(name).unwrap()];
        assert_eq!(
            (integer("POSIX_OPENS"), integer("POSIX_FILENOS"), integer("POSIX_READS")),
            (1000, -1, 1001)
        );
        assert_eq!((integer("POSIX_RENAME_TARGETS"), integer("POSIX_RENAMED_FROM")), (-1, 0));
        assert_eq!(integer("POSIX_SLOWEST_RANK_BYTES"), 1063);
        assert_eq!(
            (float("POSIX_F_CLOSE_START_TIMESTAMP"), float("POSIX_F_OPEN_END_TIMESTAMP")),
            (-1.0, -1.0)
        );
        assert_eq!((float("POSIX_F_READ_END_TIMESTAMP"), float("POSIX_F_VARIANCE_RANK_BYTES")), (3.5, 14.5));

        assert_eq!(only_record(&log, Module::MpiIo).4[3..6], [-1.0, -1.0, 3.5]);
        let (.., integers, floats) = only_record(&log, Module::Hdf5File);
        assert_eq!((integers, floats), (vec![1000, -1, -1], vec![0.5, -1.0, -1.0, 1.5, -1.0]));
        let (.., integers, floats) = only_record(&log, Module::PnetcdfFile);
        assert_eq!(integers, [-1, 2001, -1, -1, -1, -1, -1, -1, -1], "opens by one and by all are opens");
        assert_eq!(floats, [0.5, -1.0, -1.0, -1.0, 1.5, -1.0, -1.0, -1.0]);
        assert_eq!(only_record(&log, Module::BlueGeneQ).3, (1000..1011).collect::<Vec<_>>());
        assert_eq!(only_record(&log, Module::Stdio).3[..3], [1000, -1, 1001]);
    }
}

#[test]
fn first_records_that_mix_posix_and_stdio_are_passed_over() {
    let mut writer = LogWriter::new("3.00", false, Compression::Zlib);
    let mut records = writer.words();
    for fopens in [0, 5, 0] {
        records.u64(1).i64(0).integers(6).i64(fopens).i64(0).i64(0).i64(0).integers(58).floats(15);
    }
    writer.modules.push((POSIX, 1, records.bytes));
    let log = read(&writer);
    let mut records = log.records(Module::Posix).unwrap();
    let mut count = 0;
    while records.next().is_some() {
        count += 1;
    }
    assert_eq!((count, records.passed_over(), records.damage()), (2, 1, None));
}

#[test]
fn modules_of_later_versions_have_other_numbers() {
    let mut writer = LogWriter::new("3.41", true, Compression::Zlib);
    let mut dataset = writer.words();
    dataset.u64(1).i64(0).u64(77).integers(94).floats(17);
    let mut variable = writer.words();
    variable.u64(1).i64(0).u64(78).integers(120).floats(17);
    let mut daos = writer.words();
    daos.u64(1).i64(0).integers(64).floats(15).bytes.extend(*b"pool-uuid-16-bytcont-uuid-16-byt");
    daos.u64(5).u64(6);
    let mut mdhim = writer.words();
    mdhim.u64(1).i64(0).i64(1).i64(2).i64(3).i64(4).i64(3).floats(4).integers(3);
    let regions = [(4, 2, dataset), (6, 1, variable), (12, 1, mdhim), (17, 1, daos)];
    writer.modules =
        regions.into_iter().map(|(number, version, records)| (number, version, records.bytes)).collect();
    writer.modules.push((40, 1, vec![0; 100]));
    let log = read(&writer);
    assert_eq!(only_record(&log, Module::Hdf5Dataset).2, Some(77));
    assert_eq!(only_record(&log, Module::PnetcdfVariable).2, Some(78));
    let mut records = log.records(Module::Daos).unwrap();
    assert_eq!(records.next().unwrap().trailer[..32], *b"pool-uuid-16-bytcont-uuid-16-byt");
    let mut records = log.records(Module::Mdhim).unwrap();
    assert_eq!(records.next().unwrap().list, [1000, 1001, 1002]);
    let unknown: Vec<_> = log.modules().filter(|region| !log.reads(*region)).collect();
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].module.to_string(), "number 40");
    assert!(log.records(unknown[0].module).is_none());
}

#[test]
fn autoperf_s_headers_are_records_of_another_kind() {
    let mut writer = LogWriter::new("3.21", true, Compression::Zlib);
    let mut routers = writer.words();
    routers.u64(1).i64(0).integers(7);
    routers.u64(2).i64(3).integers(396);
    let mut mpi = writer.words();
    mpi.u64(1).i64(0).i64(0x41_504d_5049).u32(1).u32(0xdead_beef).floats(2);
    mpi.u64(2).i64(3).integers(396).floats(240).bytes.extend([b'n'; 128]);
    writer.modules = vec![(12, 1, routers.bytes), (13, 1, mpi.bytes)];
    let log = read(&writer);
    let mut records = log.records(Module::Apxc).unwrap();
    assert_eq!(records.next().unwrap().names.integers[1], "APXC_NBLADES");
    let record = records.next().unwrap();
    assert_eq!(
        (record.rank, record.names.integers[4].as_str()),
        (3, "APXC_AR_RTR_0_0_INQ_PRF_INCOMING_FLIT_VC0")
    );
    let mut records = log.records(Module::Apmpi).unwrap();
    assert_eq!(records.next().unwrap().integers, [0x41_504d_5049, 1]);
    let record = records.next().unwrap();
    assert_eq!(record.names.floats[239], "MPI_TOTAL_COMM_SYNC_TIME");
    assert_eq!((record.floats[239], record.trailer), (239.5, &[b'n'; 128][..]));
    assert!(records.next().is_none() && records.damage().is_none());
}

#[test]
fn layouts_and_heat_maps() {
    let mut writer = LogWriter::new("3.41", true, Compression::Bzip2);
    let mut layouts = writer.words();
    layouts.u64(1).i64(-1).i64(3).i64(4);
    for (size, count) in [(1 << 20, 1), (1 << 22, 2), (-1, -1)] {
        layouts
            .i64(size)
            .i64(count)
            .i64(0)
            .i64(16)
            .i64(0)
            .i64(-1)
            .i64(0)
            .bytes
            .extend(*b"fast\0\0\0\0\0\0\0\0\0\0\0\0");
    }
    layouts.i64(11).i64(12).i64(13).i64(14);
    let mut maps = writer.words();
    for (rank, bins) in [(0, 4), (1, 5), (2, 3)] {
        maps.u64(5).i64(rank).f64(0.5).i64(bins).u64(0xffff).u64(0xffff).integers(bins).integers(bins);
    }
    writer.modules = vec![(8, 2, layouts.bytes), (15, 1, maps.bytes)];
    let log = read(&writer);
    let record = log.lustre().unwrap().next().unwrap();
    let parts: Vec<_> = record
        .components
        .iter()
        .map(|part| (part.stripe_size, part.pool.as_str(), part.targets.clone()))
        .collect();
    assert_eq!(parts, [(1 << 20, "fast", vec![11]), (1 << 22, "fast", vec![12, 13])]);
    let maps: Vec<_> = log.heatmaps().unwrap().collect();
    assert_eq!(maps[1].written, [1000, 1001, 1002, 1003], "one bin too many");
    assert_eq!(maps[2].read, [1000, 1001, 1002, 0], "one bin too few");
}

/// Two ranks on one file, by MPI-IO, which reads and writes it by POSIX; and a file that only POSIX sees.
fn traced(version: &'static str, big_endian: bool, compression: Compression) -> LogWriter {
    let mut writer = LogWriter::new(version, big_endian, compression);
    writer.names = vec![(1, "/scratch/shared"), (2, "/scratch/own")];
    let mut counters = writer.words();
    counters.u64(1).i64(-1).i64(2).i64(0).i64(0).i64(9).i64(8).integers(64).floats(17);
    let mut posix = writer.words();
    posix.accesses(
        1,
        0,
        &[(true, 0, 4096, 1.0, 1.25), (true, 4096, 4096, 3.0, 3.5), (false, 0, 10, 2.0, 2.5)],
    );
    posix.accesses(2, 1, &[(false, 50, 7, 0.5, 0.75), (false, 57, 8, f64::NAN, 1.0)]);
    let mut mpi_io = writer.words();
    mpi_io.accesses(1, 1, &[(true, 0, 8192, 1.0, 3.75)]);
    let shift = usize::from(version == "3.41");
    writer.modules =
        vec![(POSIX, 4, counters.bytes), (9 + shift, 1, posix.bytes), (10 + shift, 2, mpi_io.bytes)];
    writer
}

fn convert(log: &Log) -> Trace {
    let mut bytes = Vec::new();
    write_trace(log, &mut bytes, "made.pio".as_ref()).unwrap();
    Trace::from_bytes(bytes, "made.pio").unwrap()
}

#[test]
fn accesses_become_events_in_the_order_of_their_start() {
    for writer in all_logs().filter(|writer| writer.version >= "3.20") {
        let log = read(&traced(writer.version, writer.big_endian, writer.compression));
        let trace = convert(&log);
        let tables = trace.tables();
        let events: Vec<Event> = trace.events().map(Result::unwrap).collect();
        let seen: Vec<_> = events
            .iter()
            .map(|event| {
                let rank = tables.processes[event.process.index()].rank.unwrap();
                let path = &tables.file_of(event.handle.unwrap()).unwrap().path;
                (
                    event.start_ns / 1_000_000,
                    event.elapsed_ns / 1_000_000,
                    event.layer(),
                    event.op(),
                    rank,
                    path.as_str(),
                )
            })
            .collect();
        let expected = [
            (500, 250, Layer::Posix, Op::Read, 1, "/scratch/own"),
            (1000, 250, Layer::Posix, Op::Write, 0, "/scratch/shared"),
            (1000, 2750, Layer::MpiIo, Op::Write, 1, "/scratch/shared"),
            (2000, 500, Layer::Posix, Op::Read, 0, "/scratch/shared"),
            (3000, 500, Layer::Posix, Op::Write, 0, "/scratch/shared"),
        ];
        assert_eq!(seen, expected);
        let physical: Vec<_> = events.iter().map(|event| event.flags == Flags::PHYSICAL).collect();
        assert_eq!(physical, [false, true, false, true, true], "what MPI-IO did to its file");
        assert_eq!((events[4].target, events[4].size), (Target::Extent { offset: 4096 }, 4096));
        assert_eq!(tables.processes.len(), 4, "idle ranks too");
        assert_eq!(tables.processes[1].host, "node1");
        assert_eq!(tables.job, "/bin/app --size 3");
        let notes = |key: &'static str| {
            tables.notes.iter().filter(move |note| note.0 == key).map(|note| note.1.as_str())
        };
        let lost: Vec<_> = notes("lost accesses").collect();
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost[0].starts_with("12 of 17 of DXT_POSIX"), "{lost:?}");
        assert!(lost[1].starts_with("1 (their times"), "{lost:?}");
        assert_eq!(notes("mount").next(), Some("lustre on /scratch/long"));
        assert!(
            notes("counted by POSIX").next().unwrap().starts_with("1 record; POSIX_OPENS 2, POSIX_READS 9")
        );
    }
}

#[test]
fn the_first_dxt_of_mpi_io_knew_no_offsets() {
    let mut writer = traced("3.21", false, Compression::Zlib);
    writer.modules[2].1 = 1;
    let trace = convert(&read(&writer));
    let event = trace.events().map(Result::unwrap).find(|event| event.layer() == Layer::MpiIo).unwrap();
    assert_eq!((event.target, event.size), (Target::None, 8192));
}

#[test]
fn what_is_no_log_is_told() {
    let error = |bytes: &[u8]| Log::from_bytes(bytes.to_vec(), "x").err().unwrap();
    assert!(matches!(error(b""), ImportError::NotALog { .. }));
    assert!(matches!(error(b"PIOTRACE and more than that"), ImportError::NotALog { .. }));
    let mut bytes = LogWriter::new("3.21", false, Compression::Zlib).bytes();
    bytes[..4].copy_from_slice(b"2.06");
    assert!(matches!(error(&bytes), ImportError::UnknownLogVersion { version, .. } if version == "2.06"));
    bytes[..4].copy_from_slice(b"3.21");
    bytes[16] = 9;
    assert!(matches!(error(&bytes), ImportError::Damaged { offset: 16, .. }));
}

#[test]
fn a_log_cut_anywhere_gives_what_came_before() {
    for compression in [Compression::Zlib, Compression::Bzip2, Compression::None] {
        let whole = traced("3.21", true, compression).bytes();
        let mut most = 0;
        for len in 0..whole.len() {
            match Log::from_bytes(whole[..len].to_vec(), "cut") {
                Err(ImportError::NotALog { .. }) => assert!(len < 16),
                Err(ImportError::Damaged { offset, .. }) => assert!(len < 360 && offset == len as u64),
                Err(error) => panic!("cut at {len}: {error}"),
                Ok(log) => {
                    let trace = convert(&log);
                    let told = trace.tables().notes.iter().any(|(key, _)| key == "lost by damage");
                    assert!(told, "cut at {len}");
                    assert!(trace.event_count() >= most);
                    most = trace.event_count();
                }
            }
        }
        assert!(most >= 4, "{most} events");
    }
}

#[test]
fn damage_in_one_region_leaves_the_others() {
    let writer = traced("3.21", false, Compression::Zlib);
    let mut bytes = writer.bytes();
    let log = Log::from_bytes(bytes.clone(), "whole").unwrap();
    let len = log.modules().next().unwrap().len as usize;
    let posix = bytes.len() - log.modules().map(|region| region.len as usize).sum::<usize>();
    bytes[posix..posix + len].fill(0xff);
    let log = Log::from_bytes(bytes, "damaged").unwrap();
    let mut records = log.records(Module::Posix).unwrap();
    assert!(records.next().is_none());
    assert_eq!(records.damage().unwrap().offset, posix as u64);
    assert_eq!(convert(&log).event_count(), 5);
}

#[test]
fn numbers_that_cannot_be_take_no_memory() {
    let mut writer = LogWriter::new("3.41", false, Compression::Zlib);
    let mut dxt = writer.words();
    dxt.u64(1).i64(0).i64(0).bytes.extend([0; 64]);
    dxt.i64(i64::MAX / 64).i64(5);
    let mut maps = writer.words();
    maps.u64(5).i64(0).f64(0.5).i64(i64::MAX).u64(0).u64(0);
    let mut layouts = writer.words();
    layouts.u64(1).i64(0).i64(1 << 40).i64(1 << 40);
    writer.modules = vec![(8, 2, layouts.bytes), (10, 1, dxt.bytes), (15, 1, maps.bytes)];
    let log = read(&writer);
    let mut dxt = log.dxt(Module::DxtPosix).unwrap();
    assert!(dxt.next_record().is_some() && dxt.segments().is_none() && dxt.damage().is_some());
    let mut maps = log.heatmaps().unwrap();
    assert!(maps.next().is_none() && maps.damage().is_some());
    let mut layouts = log.lustre().unwrap();
    assert!(layouts.next().is_none() && layouts.damage().is_some());
}

#[test]
#[ignore = "slow"]
fn slow_a_region_that_swells_without_end_is_left() {
    // 45 MB of zeros are 45 bytes of bzip2.
    let mut writer = LogWriter::new("3.21", false, Compression::Bzip2);
    writer.modules.push((9, 1, vec![0; 100 << 20]));
    let log = read(&writer);
    let mut dxt = log.dxt(Module::DxtPosix).unwrap();
    while dxt.next_record().is_some() {}
    assert!(dxt.damage().unwrap().expected.contains("swell"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever the bytes, reading ends, and takes no more memory than they justify.
    #[test]
    fn changed_bytes_never_panic(
        version in prop::sample::select(vec!["3.00", "3.10", "3.21", "3.41"]),
        big_endian: bool,
        compressed: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let compression = if compressed { Compression::Zlib } else { Compression::None };
        let mut bytes = traced(version, big_endian, compression).bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(log) = Log::from_bytes(bytes, "changed") {
            let trace = convert(&log);
            prop_assert!(trace.event_count() <= 100_000);
            for module in log.modules() {
                if let Some(mut records) = log.records(module.module) {
                    while records.next().is_some() {}
                }
            }
            log.lustre().into_iter().flatten().for_each(drop);
            log.heatmaps().into_iter().flatten().for_each(drop);
        }
    }
}

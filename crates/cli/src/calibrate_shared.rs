//! What a file system costs that all nodes of a job share, as a machine description says it.

use std::path::Path;

use anyhow::Result;
use pio_machine::{
    Bandwidth, CallCost, Calls, ClientLocks, Duration, Exclusive, Machine, Service, SharedFiles, Spreads,
    Storage,
};

use crate::benchmark;
use crate::calibrate_job::Launch;
use crate::measured::{Measured, time};

/// The program that measures: compiled by the user's own `mpicc`.
const PROGRAM: &str = include_str!("../c/shared.c");

const SMALL: u64 = 8;
const LARGE: u64 = 1 << 20;
const LONG: u64 = 4 << 20;
/// What takes so many times as long as without others waits for them.
const WAITS: f64 = 1.5;
/// Nodes together reach at least this part of what each reaches alone, times their number, unless something else is the limit.
const UNLIMITED: f64 = 0.9;
/// The same of requests at once, where processors that make them are a limit, too.
const UNLIMITED_REQUESTS: f64 = 0.6;
/// What requests of a long call take beyond its bytes is seen from this part of its time on.
const LEAST_SEEN: f64 = 0.05;

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    storage: calls of one rank a node, less their processor time. read, write: 8 bytes, and the rate of four threads of a\n\
    node that move 1 MiB each. bandwidth: the same of all nodes at once. request: what a call of 4 MiB takes beyond its bytes.\n\
    streams: small reads of up to 16 threads a node. callback, lock-strip: a write behind another node's, further and further\n\
    off. exclusive, handover: two threads of a node, within a file and at its end. What was read was in no memory of its node;\n\
    stat, unlink: files that another node had made.";

/// Puts the files of a measured machine into the file system of `folder`, which all nodes of a job share; programs and
/// results lie in the folder `scratch` within.
///
/// # Errors
/// If the program cannot be compiled, or the job fails.
pub(crate) fn measure(
    machine: &mut Machine,
    spreads: &mut Spreads,
    launch: &Launch,
    folder: &Path,
    scratch: &Path,
) -> Result<()> {
    let text = benchmark::results_of(launch, "shared", PROGRAM, scratch)?;
    let host = machine.source.split_once(", files in ").map_or(&*machine.source, |(host, _)| host);
    let nodes = match machine.nodes.count {
        1 => String::new(),
        count => format!(", which {count} nodes share"),
    };
    machine.source = format!("{host}, files in {}{nodes}", folder.display());
    let measured = Measured::read(&text);
    describe(machine, &measured)?;
    note_spreads(spreads, &measured);
    Ok(())
}

fn describe(machine: &mut Machine, measured: &Measured) -> Result<()> {
    let seconds = |name: &str, bytes| measured.of(name, bytes).map(|number| number.seconds);
    // How long a call waits.
    let waits = |name: &str, bytes| -> Result<f64> {
        Ok((seconds(name, bytes)? - seconds(&format!("cpu-{name}"), bytes)?).max(0.0))
    };
    let service = |name: &str| -> Result<Service> {
        let request = waits(name, SMALL)?;
        // Threads hinder each other where processors are slow: one of them alone may be faster. It is not told to be where the
        // bytes take no longer than what differs from one call to the next.
        let (together, waited) = (seconds(&format!("node-{name}"), LARGE)?, waits(name, LARGE)?);
        let noise = measured.of(name, SMALL)?.noise() + measured.of(name, LARGE)?.noise();
        let alone = Some(waited - request).filter(|alone| *alone > noise.max(f64::MIN_POSITIVE));
        let large = alone.map_or(together, |alone| alone.min(together));
        Ok(Service { request: time(request), bandwidth: rate(large / LARGE as f64) })
    };
    let (read, write) = (service("read")?, service("write")?);
    let small = seconds("write", SMALL)?;
    let (both_write, both_grow) = (seconds("both-write", SMALL)?, seconds("both-grow", SMALL)?);
    // In the time of a call that waits for another, two are made.
    let (exclusive, each) = if both_write > WAITS * small {
        (Exclusive::Writes, both_write / 2.0)
    } else if both_grow > WAITS * small {
        (Exclusive::Growth, both_grow / 2.0)
    } else {
        (Exclusive::Nothing, small)
    };
    let open = waits("open", 0)?;
    let (sync, synced) = (seconds("sync", SMALL)?, seconds("sync", LARGE)?);
    machine.storage = Storage::Shared(Box::new(SharedFiles {
        request: largest_request(&write, waits("write", LONG)?),
        bandwidth: of_all(measured)?,
        streams: streams(measured)?,
        locks: locks(measured)?,
        exclusive,
        handover: time(each - small),
        read,
        write,
        open: time(open),
        create: time(seconds("create", 0)? - seconds("open", 0)?),
        close: time(waits("close", 0)?),
        resize: time(seconds("resize", 0)?),
        lock: time((seconds("lock", 0)? + seconds("unlock", 0)?) / 2.0),
        stat: Some(time(waits("stat", 0)?)),
        unlink: Some(time(waits("remove", 0)?)),
        sync: Service { request: time(sync), bandwidth: rate((synced - sync) / (LARGE - SMALL) as f64) },
    }));
    let busy = |name: &str| -> Result<CallCost> {
        let (call, large) = (seconds(name, SMALL)?, seconds(name, LARGE)?);
        Ok(CallCost {
            call: time(call),
            bandwidth: rate((large - call) / (LARGE - SMALL) as f64),
            sizes: Vec::new(),
        })
    };
    machine.calls = Calls {
        open: time(seconds("cpu-open", 0)?),
        close: time(seconds("cpu-close", 0)?),
        read: busy("cpu-read")?,
        write: busy("cpu-write")?,
        stat: Some(time(seconds("cpu-stat", 0)?)),
        unlink: Some(time(seconds("cpu-remove", 0)?)),
        // They pass in the file system.
        create: Duration::ZERO,
        resize: Duration::ZERO,
        dropped_pages: None,
        rewrites: None,
        sync: None,
        new_pages: None,
        new_folio: Duration::ZERO,
        askew: None,
        processor_cache: None,
        after_work: None,
        direct: None,
        write_back: None,
        cold_reads: None,
        ..machine.calls.clone()
    };
    Ok(())
}

/// How sure the numbers are.
fn note_spreads(spreads: &mut Spreads, measured: &Measured) {
    const OF: [(&str, &str, u64); 22] = [
        ("storage.read.request", "read", SMALL),
        ("storage.read.bandwidth", "node-read", LARGE),
        ("storage.write.request", "write", SMALL),
        ("storage.write.bandwidth", "node-write", LARGE),
        ("storage.sync.request", "sync", SMALL),
        ("storage.sync.bandwidth", "sync", LARGE),
        ("storage.bandwidth", "all-write", LARGE),
        ("storage.callback", "owner", 0),
        ("storage.open", "open", 0),
        ("storage.create", "create", 0),
        ("storage.close", "close", 0),
        ("storage.resize", "resize", 0),
        ("storage.lock", "lock", 0),
        ("storage.stat", "stat", 0),
        ("storage.unlink", "remove", 0),
        ("calls.open", "cpu-open", 0),
        ("calls.close", "cpu-close", 0),
        ("calls.stat", "cpu-stat", 0),
        ("calls.unlink", "cpu-remove", 0),
        ("calls.read.call", "cpu-read", SMALL),
        ("calls.write.call", "cpu-write", SMALL),
        ("calls.write.bandwidth", "cpu-write", LARGE),
    ];
    // What is known of the node's own files has no part in this.
    for (key, ..) in OF {
        let table: Vec<&str> = key.split('.').take(2).collect();
        spreads.forget(&table.join("."));
    }
    for (key, name, bytes) in OF {
        measured.of(name, bytes).into_iter().for_each(|number| spreads.note(key, number.spread));
    }
}

/// Bytes of the requests of which a long call is made, if it waited long enough for several to be seen: a power of two, as
/// kernels have it.
fn largest_request(write: &Service, waited: f64) -> Option<u64> {
    let beyond = waited - write.bandwidth.time_of(LONG).seconds();
    let requests = beyond / write.request.seconds().max(f64::MIN_POSITIVE);
    if beyond < LEAST_SEEN * waited || requests < WAITS {
        return None;
    }
    Some((LONG as f64 / requests).log2().round().clamp(9.0, 40.0).exp2() as u64)
}

/// The rate of the file system, if nodes together do not reach what each reaches alone: of reads and writes, the mean.
fn of_all(measured: &Measured) -> Result<Option<Bandwidth>> {
    let mut times = Vec::new();
    for direction in ["read", "write"] {
        let one = measured.of(&format!("node-{direction}"), LARGE)?.seconds;
        let all = measured.of(&format!("all-{direction}"), LARGE)?.seconds;
        times.push((one, all));
    }
    // More nodes take a shorter time for each MiB of any, if each keeps its rate.
    let nodes = measured.all("threads").next().map_or(1, |first| first.bytes) as f64;
    let is_limited = times.iter().any(|(one, all)| nodes > 1.0 && one / nodes < UNLIMITED * all);
    let mean = times.iter().map(|(_, all)| all).sum::<f64>() / times.len() as f64;
    Ok(is_limited.then(|| rate(mean / LARGE as f64)))
}

/// How many small reads are carried out at the same time, if more at once do not make more of them.
fn streams(measured: &Measured) -> Result<Option<u32>> {
    let alone = measured.of("read", SMALL)?.seconds;
    let served: Vec<(f64, f64)> = measured
        .all("threads")
        .map(|number| (number.bytes as f64, number.bytes as f64 * alone / number.seconds))
        .collect();
    let Some(&[(_, before), (threads, last)]) = served.last_chunk() else { return Ok(None) };
    let is_limited = last < UNLIMITED_REQUESTS * threads && last < WAITS * before;
    Ok(is_limited.then_some(last.round().max(1.0) as u32))
}

/// What it takes to call back a lock from another node, and how far it reaches.
fn locks(measured: &Measured) -> Result<Option<ClientLocks>> {
    let alone = measured.of("write", SMALL)?.seconds;
    let behind: Vec<_> = measured.all("owner").collect();
    let Some(at_once) = behind.first().filter(|first| first.seconds > WAITS * alone) else { return Ok(None) };
    let half = (at_once.seconds + alone) / 2.0;
    let reaches = behind.iter().position(|number| number.seconds < half);
    let mut held: Vec<f64> =
        behind[..reaches.unwrap_or(behind.len())].iter().map(|number| number.seconds).collect();
    held.sort_by(f64::total_cmp);
    let callback = time(held[held.len() / 2] - alone);
    Ok(Some(ClientLocks { callback, strip: reaches.map(|place| behind[place].bytes) }))
}

fn rate(seconds_per_byte: f64) -> Bandwidth {
    // Faster than anything: the range of descriptions ends there.
    Bandwidth::from_bytes_per_second((1.0 / seconds_per_byte.max(1e-13)).clamp(1e3, 1e13) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file system of these properties would show: answers after 1 ms, 100 MB/s a node and 250 MB/s in all, requests of
    /// 1 MiB, 8 streams, locks of 64 KiB that take 5 ms to call back, writers that wait for each other where a file grows.
    fn results() -> String {
        let mut text = String::new();
        // Whole nanoseconds.
        let mut line = |name: &str, bytes: u64, ms: f64| {
            text.push_str(&format!("{name} {bytes} {} 0 0\n", (ms * 1e6).round() / 1e9));
        };
        let moved = |bytes: u64, mb_per_s: f64| bytes as f64 / mb_per_s / 1e3;
        let of_names = [
            ("open", 3.5),
            ("cpu-open", 0.5),
            ("create", 5.0),
            ("close", 0.1),
            ("cpu-close", 0.1),
            ("resize", 1.0),
            ("lock", 1.0),
            ("unlock", 1.0),
            ("stat", 0.7),
            ("cpu-stat", 0.2),
            ("remove", 2.0),
            ("cpu-remove", 0.3),
        ];
        of_names.into_iter().for_each(|(name, ms)| line(name, 0, ms));
        for name in ["read", "write"] {
            for bytes in [SMALL, LARGE, LONG] {
                line(name, bytes, bytes.div_ceil(LARGE) as f64 + moved(bytes, 100.0));
                line(&format!("cpu-{name}"), bytes, 0.0);
            }
            line(&format!("node-{name}"), LARGE, moved(LARGE, 100.0));
            line(&format!("all-{name}"), LARGE, moved(LARGE, 250.0));
        }
        line("sync", SMALL, 2.0);
        line("sync", LARGE, 2.0 + moved(LARGE, 50.0));
        line("both-write", SMALL, 1.0);
        line("both-grow", SMALL, 2.1);
        for threads in [4, 8, 16, 32, 64] {
            line("threads", threads, (threads as f64 / 8.0).max(1.0));
        }
        line("owner", 0, 6.0);
        (12..=20).for_each(|power| line("owner", 1 << power, if power < 16 { 6.0 } else { 1.0 }));
        text
    }

    fn described(text: &str) -> (Machine, SharedFiles) {
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        describe(&mut machine, &Measured::read(text)).unwrap();
        let Storage::Shared(files) = machine.storage.clone() else { panic!("shared") };
        (machine, *files)
    }

    #[test]
    fn what_was_measured_tells_what_the_file_system_is() {
        let (machine, files) = described(&results());
        for service in [&files.read, &files.write] {
            assert_eq!(service.request.to_string(), "1 ms");
            assert!(service.bandwidth.bytes_per_second().abs_diff(100_000_000) < 100_000, "{service:?}");
        }
        assert_eq!(files.request, Some(1 << 20));
        assert!(files.bandwidth.unwrap().bytes_per_second().abs_diff(250_000_000) < 10_000, "{files:?}");
        assert_eq!((files.streams, files.exclusive), (Some(8), Exclusive::Growth));
        // Of 1.05 ms, without the time of a write.
        assert_eq!(files.handover.to_string(), "49.9 us");
        let locks = files.locks.unwrap();
        assert_eq!((locks.callback.to_string().as_str(), locks.strip), ("5 ms", Some(64 << 10)));
        let times = [files.open, files.create, files.close, files.resize, files.lock];
        assert_eq!(times.map(|time| time.to_string()), ["3 ms", "1.5 ms", "0 s", "1 ms", "1 ms"]);
        let told = [files.stat, machine.calls.stat, files.unlink, machine.calls.unlink];
        assert_eq!(told.map(|time| time.unwrap().to_string()), ["500 us", "200 us", "1.7 ms", "300 us"]);
        assert!(files.sync.bandwidth.bytes_per_second().abs_diff(50_000_000) < 10_000, "{files:?}");
        assert_eq!(machine.calls.open.to_string(), "500 us");
        assert_eq!(Machine::parse("again", &machine.to_toml("")).unwrap(), machine);
    }

    /// Writes into the memory of a client waited for nothing: the file system had 10 TB/s.
    #[test]
    fn calls_that_do_not_wait_say_nothing_of_the_rate() {
        let quick = results().replace("write 1048576 0.01148576 0 0", "write 1048576 0.00101 0.0009 0.0011");
        let slower = results().replace("write 1048576 0.01148576 0 0", "write 1048576 0.0009 0.0009 0.0009");
        for text in [quick, slower] {
            assert_ne!(text, results());
            let rate = described(&text).1.write.bandwidth.bytes_per_second();
            assert!(rate.abs_diff(100_000_000) < 100_000, "{rate}");
        }
    }

    #[test]
    fn each_number_has_one_spread() {
        let (machine, _) = described(&results());
        let mut spreads = Spreads::default();
        for key in ["calls.stat", "calls.unlink", "calls.open", "calls.read.8 B", "calls.read.65536 B"] {
            spreads.note(key, 0.5);
        }
        note_spreads(&mut spreads, &Measured::read(&results()));
        let text = machine.to_toml_with("", &spreads);
        assert!(text.contains("\nstat = \"200 us\"  # ± 0 %\n") && !text.contains("50 %"), "{text}");
    }

    #[test]
    fn what_does_not_show_is_left_out() {
        let text = results()
            .replace("all-read 1048576 0.004194304", "all-read 1048576 0.0026")
            .replace("all-write 1048576 0.004194304", "all-write 1048576 0.0026")
            .replace("both-grow 8 0.0021", "both-grow 8 0.001")
            .replace("write 4194304 0.04594304", "write 4194304 0.042");
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("owner")).collect();
        let text: Vec<String> = text
            .iter()
            .map(|line| {
                if line.starts_with("threads") {
                    format!("{} 0.001 0 0", &line[..line.rfind(" 0.").unwrap_or(0)])
                } else {
                    (*line).to_owned()
                }
            })
            .collect();
        let (_, files) = described(&text.join("\n"));
        assert_eq!((files.request, files.bandwidth, files.locks), (None, None, None));
        assert_eq!(files.exclusive, Exclusive::Nothing);
    }

    #[test]
    fn a_lock_that_has_no_end_covers_the_file() {
        let text: Vec<&str> =
            results().leak().lines().filter(|line| !line.starts_with("owner 65536")).collect();
        let whole: Vec<String> = text
            .iter()
            .map(|line| {
                if line.starts_with("owner") {
                    line.replace(" 0.001 ", " 0.006 ")
                } else {
                    (*line).to_owned()
                }
            })
            .collect();
        let (_, files) = described(&whole.join("\n"));
        assert_eq!(files.locks.unwrap().strip, None);
    }
}

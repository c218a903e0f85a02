//! Calls that look files up by name, make and remove them, or change their size.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use super::processors::Processors;
use super::{BLOCK, BySize, FILE_BYTES, LARGE, MIDDLE, PAGE, RUNS, Scratch, each, fresh, time};
use crate::machine::CallCost;
use crate::quantity::{Bandwidth, Duration};
use crate::rewrites::Rewrites;
use crate::spreads::Spreads;

const OPENS: u64 = 500;
/// Files that are made at once, as programs do that write a step of their results.
const FILES: usize = 32;
const RESIZES: u64 = 500;

/// What such calls cost.
pub(super) struct Names {
    pub(super) open: Duration,
    pub(super) create: Duration,
    pub(super) close: Duration,
    pub(super) stat: Duration,
    pub(super) unlink: Duration,
    pub(super) resize: Duration,
    pub(super) dropped_pages: Bandwidth,
    pub(super) rewrites: Rewrites,
}

pub(super) fn measure(path: &Path, processors: &Processors, spreads: &mut Spreads) -> io::Result<Names> {
    let (open, close) = measure_open(path, processors, spreads)?;
    let (resize, dropped_pages) = measure_resize(path, processors, spreads)?;
    let [create, stat, unlink] = measure_files(path, processors, spreads)?;
    let rewrites = measure_rewrites(path, [open, close], processors, spreads)?;
    let of_a_page = dropped_pages.time_of(PAGE as u64).seconds();
    Ok(Names {
        open: time(open),
        create: time(create - open),
        close: time(close),
        stat: time(stat),
        unlink: time(unlink - of_a_page),
        resize: time(resize),
        dropped_pages,
        rewrites,
    })
}

/// Seconds of an open, and of a close.
fn measure_open(path: &Path, processors: &Processors, spreads: &mut Spreads) -> io::Result<(f64, f64)> {
    let (mut opens, mut closes) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let _there = processors.visit(run);
        let (mut open, mut close) = (0.0, 0.0);
        for _ in 0..OPENS {
            let start = Instant::now();
            let file = open_or_make(path)?;
            let opened = Instant::now();
            drop(file);
            open += opened.duration_since(start).as_secs_f64();
            close += opened.elapsed().as_secs_f64();
        }
        opens.push(open / OPENS as f64);
        closes.push(close / OPENS as f64);
    }
    Ok((spreads.middle("calls.open", opens), spreads.middle("calls.close", closes)))
}

/// Seconds of an open that makes its file, of asking for what is known of it, and of its removal.
fn measure_files(path: &Path, processors: &Processors, spreads: &mut Spreads) -> io::Result<[f64; 3]> {
    let of_each = |start: Instant| start.elapsed().as_secs_f64() / FILES as f64;
    let (mut creates, mut stats, mut unlinks) = (Vec::new(), Vec::new(), Vec::new());
    let mut made = Vec::new();
    for run in 0..RUNS {
        let _there = processors.visit(run);
        let name = |number| path.with_extension(format!("{run}-{number}"));
        let files: Vec<Scratch> = (0..FILES).map(|number| Scratch { path: name(number) }).collect();
        let start = Instant::now();
        let opened = files.iter().map(|file| open_or_make(&file.path)).collect::<io::Result<Vec<File>>>()?;
        creates.push(of_each(start));
        opened.iter().try_for_each(|file| file.write_all_at(&[1; PAGE], 0))?;
        drop(opened);
        let start = Instant::now();
        files.iter().try_for_each(|file| file.path.metadata().map(drop))?;
        stats.push(of_each(start));
        made.push(files);
    }
    // A file that has just been removed leaves its place for the next: they all go at the end.
    for (run, files) in made.iter().enumerate() {
        let _there = processors.visit(run);
        let start = Instant::now();
        files.iter().try_for_each(|file| std::fs::remove_file(&file.path))?;
        unlinks.push(of_each(start));
    }
    // A file system may first have to read its tables of files, or to look past those that somebody has just removed many of; nothing
    // makes files sooner than it can.
    let creates = spreads.gather("calls.create", creates);
    let create = creates.iter().copied().fold(f64::INFINITY, f64::min);
    spreads.note_runs("calls.create", &creates);
    let runs = [("calls.stat", stats), ("calls.unlink", unlinks)];
    let [stat, unlink] = runs.map(|(key, runs)| spreads.middle(key, runs));
    Ok([create, stat, unlink])
}

fn open_or_make(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// Seconds of a change of size, of a file that is made longer and cut by turns; and the rate at which pages go that are cut off.
fn measure_resize(
    path: &Path,
    processors: &Processors,
    spreads: &mut Spreads,
) -> io::Result<(f64, Bandwidth)> {
    let file = fresh(path)?;
    let data = vec![1_u8; FILE_BYTES];
    let (mut resizes, mut rates) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let _there = processors.visit(run);
        let resize = each(RESIZES, |index| file.set_len(((index + 1) % 2) * FILE_BYTES as u64))?;
        resizes.push(resize);
        file.write_all_at(&data, 0)?;
        let start = Instant::now();
        file.set_len(0)?;
        rates.push(FILE_BYTES as f64 / (start.elapsed().as_secs_f64() - resize).max(f64::MIN_POSITIVE));
    }
    let rate = spreads.middle("calls.dropped-pages", rates);
    Ok((spreads.middle("calls.resize", resizes), super::rate(1.0 / rate)))
}

/// What it takes longer than another open and another close to write a file anew, by its size.
fn measure_rewrites(
    path: &Path,
    [open, close]: [f64; 2],
    processors: &Processors,
    spreads: &mut Spreads,
) -> io::Result<Rewrites> {
    let data = vec![1_u8; LARGE];
    let (mut opens, mut closes) = (BySize::default(), BySize::default());
    for size in [PAGE, MIDDLE, BLOCK, LARGE] {
        for run in 0..=RUNS {
            let _there = processors.visit(run);
            let start = Instant::now();
            let file = fresh(path)?;
            let opened = start.elapsed().as_secs_f64();
            file.write_all_at(&data[..size], 0)?;
            let start = Instant::now();
            drop(file);
            let closed = start.elapsed().as_secs_f64();
            // What was written goes to the device before the next time, as it does while programs compute.
            File::open(path)?.sync_all()?;
            // The first time it has another size.
            if run > 0 {
                opens.of(size).push((opened - open).max(0.0));
                closes.of(size).push((closed - close).max(0.0));
            }
        }
    }
    let mut cost = |key: &str, calls: BySize| CallCost::through(&calls.middles(key, spreads));
    Ok(Rewrites { open: cost("calls.rewrites.open", opens), close: cost("calls.rewrites.close", closes) })
}

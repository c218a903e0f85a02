//! Measures the terms of the cost model on this machine, files in a folder (default: the temporary one), and prints them.
//!
//!     cargo run --release -p pio-plan --example measure_terms [FOLDER]
//!
//! Each is the least of eleven repeats or more: what else goes on only adds to it. Messages and the network are a pair of local sockets between two threads.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pio_layout::pack::pack;
use pio_layout::{Datatype, View};
use pio_plan::cost::Terms;

const REPEATS: usize = 11;
/// At least so long, with more repeats: other work on the machine may take the processor for longer than eleven.
const LEAST_TIME: Duration = Duration::from_millis(300);
const PAGE: usize = 4096;
/// Of files and sockets.
const LARGE: usize = 4 << 20;
/// Of memory: more than a cache holds.
const MEMORY: usize = 16 << 20;
/// So many that they stay in a second-level cache, as in a strategy's buffer that was just filled.
const PIECES: usize = 1 << 15;
const CALLS: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("pioscope-terms-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let source = vec![1_u8; MEMORY];
    let mut target = vec![0_u8; MEMORY + PAGE];
    // Some processors' block copies are ten times slower to a place that is some bytes off within its page.
    let page = target.as_ptr().align_offset(PAGE);
    let target = &mut target[page..page + MEMORY];
    let large = LARGE as f64;
    let calls = CALLS as f64;

    let copying = least(|| {
        target.copy_from_slice(&source);
        Ok(())
    })?;
    let copy_bytes_per_s = MEMORY as f64 / copying;

    let view = View::new(0, 4, Datatype::bytes(4).resized(0, 8)?)?;
    let positions = 0..4 * PIECES as u64;
    let packing = least(|| Ok(pack(view.runs(positions.clone()), &source, 0, &mut target[..4 * PIECES])?))?;
    let in_one = least(|| {
        target[..4 * PIECES].copy_from_slice(&source[..4 * PIECES]);
        Ok(())
    })?;
    let piece_s = (packing - in_one) / PIECES as f64;

    let listing = least(|| {
        let list: Vec<(i64, u64)> =
            view.extents(positions.clone()).map(|one| (one.offset, one.len)).collect();
        let read: u64 = std::hint::black_box(&list).iter().map(|(offset, len)| *offset as u64 ^ len).sum();
        std::hint::black_box(read);
        Ok(())
    })?;

    let writing = least(|| Ok(file.write_all_at(&source[..LARGE], 0)?))?;
    let reading = least(|| Ok(file.read_exact_at(&mut target[..LARGE], 0)?))?;
    let requesting =
        least(|| (0..CALLS).try_for_each(|call| Ok(file.write_all_at(&source[..4], 8 * call as u64)?)))?;
    let asking =
        least(|| (0..CALLS).try_for_each(|call| Ok(file.read_exact_at(&mut target[..4], 8 * call as u64)?)))?;
    let locking = least(|| {
        (0..CALLS).try_for_each(|_| {
            file.lock()?;
            Ok(file.unlock()?)
        })
    })?;
    let (message_s, network_bytes_per_s) = sockets(&source[..LARGE])?;

    let terms = Terms {
        message_s,
        network_bytes_per_s,
        copy_bytes_per_s,
        piece_s,
        extent_s: listing / PIECES as f64,
        placed_piece_s: piece_s,
        placed_bytes_per_s: copy_bytes_per_s,
        read_s: asking / calls,
        write_s: requesting / calls,
        lock_s: locking / calls,
        read_bytes_per_s: large / reading,
        write_bytes_per_s: large / writing,
        ..Terms::MEASURED
    };
    println!("{terms:#?}");
    match terms.wrong() {
        Some((name, value)) => Err(format!("{name} came out as {value}: the machine is too busy").into()),
        None => Ok(()),
    }
}

/// Seconds of a message one way, and bytes a second of a long one.
fn sockets(source: &[u8]) -> Outcome<(f64, f64)> {
    let (mut here, mut there) = UnixStream::pair()?;
    let answers = std::thread::spawn(move || -> Outcome<()> {
        let mut byte = [0];
        for _ in 0..CALLS * REPEATS {
            there.read_exact(&mut byte)?;
            there.write_all(&byte)?;
        }
        let mut buffer = vec![0; LARGE];
        for _ in 0..REPEATS {
            there.read_exact(&mut buffer)?;
            there.write_all(&byte)?;
        }
        Ok(())
    });
    let mut byte = [0];
    // The other end expects so many.
    let there_and_back = least_for(Duration::ZERO, || {
        (0..CALLS).try_for_each(|_| {
            here.write_all(&byte)?;
            Ok(here.read_exact(&mut byte)?)
        })
    })?;
    let streaming = least_for(Duration::ZERO, || {
        here.write_all(source)?;
        Ok(here.read_exact(&mut byte)?)
    })?;
    answers.join().map_err(|_| "the other end of the sockets is gone")??;
    Ok((there_and_back / CALLS as f64 / 2.0, source.len() as f64 / streaming))
}

/// The least time of the repeats of `work`, seconds.
fn least(work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    least_for(LEAST_TIME, work)
}

fn least_for(time: Duration, mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    let all = Instant::now();
    let mut repeats = 0;
    while repeats < REPEATS || all.elapsed() < time {
        let begun = Instant::now();
        work()?;
        least = least.min(begun.elapsed().as_secs_f64());
        repeats += 1;
    }
    Ok(least)
}

//! What keeping access symbolic is worth: our copies beside the same copies from a list of (offset, length) pairs.
//!
//! Both sides run alternately in one process; each line gives the median rate of both, the median ratio of
//! neighbours, and the spread of that ratio (first and third quartile).

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use pio_layout::pack::{copy, pack, unpack};
use pio_layout::{Datatype, Extent, Layout, LayoutError, Order, Striping, View, coverage};

const ROUNDS: usize = 21;
/// Data bytes in a copy: memory and stream stay within a usual shared cache, as a collective buffer does.
const DATA_BYTES: u64 = 4 << 20;

fn main() -> Result<(), LayoutError> {
    println!("pio-layout {}, {DATA_BYTES} data bytes, {ROUNDS} rounds", env!("CARGO_PKG_VERSION"));
    println!("{:34} {:>10} {:>10} {:>7}  quartiles", "", "runs GB/s", "list GB/s", "ratio");
    for (len, stride) in [
        (1, 2),
        (2, 4),
        (4, 8),
        (4, 16),
        (8, 16),
        (8, 64),
        (12, 24),
        (16, 32),
        (24, 48),
        (32, 64),
        (100, 200),
    ] {
        let layout = Layout::strided(DATA_BYTES / len, stride, Layout::bytes(len))?;
        both(&format!("{len}-byte pieces, stride {stride}"), &layout)?;
    }
    let rows =
        Datatype::subarray(&[128, 256, 64], &[128, 256, 16], &[0, 0, 24], Order::C, &Datatype::bytes(8))?;
    both("3-D block, rows of 128 bytes", rows.layout())?;
    let lists: Vec<(i64, u64)> =
        (0..DATA_BYTES as i64 / 12).map(|i| (i * 20 + i % 3, 8 + (i as u64 % 3) * 4)).collect();
    both("list of 8, 12 and 16 bytes", &Layout::blocks(lists)?)?;
    symbolic()
}

/// Gather, scatter and layout-to-layout copies of one layout.
fn both(name: &str, layout: &Layout) -> Result<(), LayoutError> {
    let size = layout.size();
    let list: Vec<Extent> = layout.extents(0..size).collect();
    let mut memory = vec![7u8; layout.upper_bound() as usize];
    let mut other = vec![7u8; layout.upper_bound() as usize];
    let mut stream = vec![1u8; size as usize];
    compare(
        &format!("gather  {name}"),
        size,
        |(memory, _, stream)| pack(layout.runs(0..size), memory, 0, stream),
        |(memory, _, stream)| {
            let mut at = 0;
            for piece in &list {
                let len = piece.len as usize;
                stream[at..at + len].copy_from_slice(&memory[piece.offset as usize..piece.end() as usize]);
                at += len;
            }
            Ok(())
        },
        (&mut memory, &mut other, &mut stream),
    )?;
    compare(
        &format!("scatter {name}"),
        size,
        |(memory, _, stream)| unpack(layout.runs(0..size), memory, 0, stream),
        |(memory, _, stream)| {
            let mut at = 0;
            for piece in &list {
                let len = piece.len as usize;
                memory[piece.offset as usize..piece.end() as usize].copy_from_slice(&stream[at..at + len]);
                at += len;
            }
            Ok(())
        },
        (&mut memory, &mut other, &mut stream),
    )?;
    compare(
        &format!("copy    {name}"),
        size,
        |(memory, other, _)| copy(layout.runs(0..size), memory, 0, layout.runs(0..size), other, 0, size),
        |(memory, other, _)| {
            for piece in &list {
                let range = piece.offset as usize..piece.end() as usize;
                other[range.clone()].copy_from_slice(&memory[range]);
            }
            Ok(())
        },
        (&mut memory, &mut other, &mut stream),
    )
}

type Buffers<'a> = (&'a mut Vec<u8>, &'a mut Vec<u8>, &'a mut Vec<u8>);

fn compare(
    name: &str,
    bytes: u64,
    ours: impl Fn(Buffers) -> Result<(), LayoutError>,
    list: impl Fn(Buffers) -> Result<(), LayoutError>,
    (memory, other, stream): Buffers,
) -> Result<(), LayoutError> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        ours((memory, other, stream))?;
        black_box((&memory, &other, &stream));
        let middle = Instant::now();
        list((memory, other, stream))?;
        black_box((&memory, &other, &stream));
        times.push(((middle - start).as_secs_f64(), middle.elapsed().as_secs_f64()));
    }
    let quartiles = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
    };
    let ours = quartiles(times.iter().map(|time| time.0).collect())[1];
    let list = quartiles(times.iter().map(|time| time.1).collect())[1];
    let ratio = quartiles(times.iter().map(|time| time.1 / time.0).collect());
    let rate = |time: f64| bytes as f64 / time / 1e9;
    println!(
        "{name:34} {:10.2} {:10.2} {:7.2}  {:.2} to {:.2}",
        rate(ours),
        rate(list),
        ratio[1],
        ratio[0],
        ratio[2]
    );
    Ok(())
}

/// Questions whose answers must not take longer the more pieces there are.
fn symbolic() -> Result<(), LayoutError> {
    let view = View::new(0, 4, Datatype::bytes(4).resized(0, 12)?)?;
    let striping = Striping::new(65536, 8, 3)?;
    for pieces in [1u64 << 20, 1 << 40] {
        timed(&format!("striping of 2^{} pieces", pieces.ilog2()), || {
            striping.intersect(5, &view, 0..4 * pieces).size()
        });
    }
    let columns: Vec<View> = (0..64)
        .map(|rank| View::new(rank * 4, 4, Datatype::bytes(4).resized(0, 256)?))
        .collect::<Result<_, _>>()?;
    for pieces in [1u64 << 10, 1 << 40] {
        let parts: Vec<(&View, Range<u64>)> = columns.iter().map(|view| (view, 0..4 * pieces)).collect();
        timed(&format!("coverage by 64 × 2^{} pieces", pieces.ilog2()), || {
            u64::from(coverage::covers(0..256 * pieces, &parts))
        });
    }
    let rows = Datatype::subarray(&[256, 256, 8], &[256, 256, 2], &[0, 0, 3], Order::C, &Datatype::bytes(8))?;
    let cyclic = Layout::strided(256, 1 << 20, Layout::blocks(vec![(0, 4), (10, 8), (40, 16)])?)?;
    let nested = Layout::strided(64, 1 << 30, cyclic)?;
    let random: Vec<i64> = (0..65536).map(|i| i * 64 + i * i % 13).collect();
    let random = Layout::indexed(random, Layout::bytes(8))?;
    for (name, layout) in [("3-D rows", rows.layout()), ("nested blocks", &nested), ("long list", &random)] {
        let count = layout.runs(0..u64::MAX).count();
        let start = Instant::now();
        let sum: i64 = layout.runs(0..u64::MAX).map(|run| run.offset).fold(0, i64::wrapping_add);
        black_box(sum);
        println!("{name:34} {:10.1} ns a run", start.elapsed().as_secs_f64() * 1e9 / count as f64);
    }
    Ok(())
}

fn timed(name: &str, work: impl Fn() -> u64) {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(work());
    }
    println!("{name:34} {:10.1} µs", start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
}

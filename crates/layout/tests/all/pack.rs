//! Copying against byte-by-byte copies.

use crate::common::{self, any_layout};
use pio_layout::pack::{copy, pack, unpack};
use pio_layout::{Layout, LayoutError, Run};
use proptest::prelude::*;

/// Bytes that tell where they come from.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
}

/// Pieces of every size that has a kernel, and some that have none, long enough for vector instructions.
fn strided() -> impl Strategy<Value = (Layout, Vec<i64>)> {
    (1u64..40, 1u64..70, -80i64..120).prop_map(|(len, count, stride)| {
        let bytes =
            (0..count as i64).flat_map(|index| (0..len as i64).map(move |byte| index * stride + byte));
        (Layout::strided(count, stride, Layout::bytes(len)).unwrap(), bytes.collect())
    })
}

fn layout() -> impl Strategy<Value = (Layout, Vec<i64>)> {
    prop_oneof![any_layout(), strided()]
}

/// Memory that just holds the layout, with some bytes around, and its origin.
fn memory_for(layout: &Layout, before: i64, behind: i64) -> (Vec<u8>, i64) {
    let len = before + layout.upper_bound() - layout.lower_bound() + behind;
    (pattern(len as usize), before - layout.lower_bound())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn pack_and_unpack((layout, bytes) in layout(), before in 0i64..9, behind in 0i64..9, cut in common::range(3000)) {
        let (memory, origin) = memory_for(&layout, before, behind);
        let end = (cut.end as usize).min(bytes.len());
        let part = &bytes[(cut.start as usize).min(end)..end];
        let expected: Vec<u8> = part.iter().map(|offset| memory[(offset + origin) as usize]).collect();
        let mut stream = vec![0; part.len()];
        pack(layout.runs(cut.clone()), &memory, origin, &mut stream).unwrap();
        prop_assert_eq!(&stream, &expected);

        let stream: Vec<u8> = pattern(part.len()).iter().map(|byte| byte ^ 0x5a).collect();
        let (mut ours, mut theirs) = (memory.clone(), memory);
        for (offset, byte) in part.iter().zip(&stream) {
            theirs[(offset + origin) as usize] = *byte;
        }
        unpack(layout.runs(cut), &mut ours, origin, &stream).unwrap();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn copy_between_layouts((from, from_bytes) in layout(), (to, to_bytes) in layout(), most in 0u64..3000) {
        let len = most.min(from.size()).min(to.size());
        let (source, source_origin) = memory_for(&from, 3, 1);
        let (target, target_origin) = memory_for(&to, 2, 5);
        let mut theirs = target.clone();
        for (from, to) in from_bytes.iter().zip(&to_bytes).take(len as usize) {
            theirs[(to + target_origin) as usize] = source[(from + source_origin) as usize];
        }
        let mut ours = target;
        copy(from.runs(0..u64::MAX), &source, source_origin, to.runs(0..u64::MAX), &mut ours, target_origin, len).unwrap();
        prop_assert_eq!(ours, theirs);
    }

    /// Whatever the runs say, nothing panics, and nothing outside the memory is touched.
    #[test]
    fn nonsense_is_an_error(
        offset in edge(), len in 0u64..50, stride in edge(), count in edge(), origin in edge(), size in 0usize..100,
    ) {
        let run = Run { offset, len, stride, count: count as u64 };
        let mut stream = vec![0; size];
        let mut memory = pattern(64);
        let packed = pack([run].into_iter(), &memory, origin, &mut stream);
        let unpacked = unpack([run].into_iter(), &mut memory, origin, &stream);
        prop_assert_eq!(packed.is_ok(), unpacked.is_ok());
        let _ = copy([run].into_iter(), &stream, origin, [run].into_iter(), &mut memory, 0, size as u64);
    }
}

fn edge() -> impl Strategy<Value = i64> {
    prop_oneof![-70i64..70, Just(i64::MAX), Just(i64::MIN), any::<i64>()]
}

#[test]
fn errors_say_what_is_wrong() {
    let runs = Layout::strided(4, 8, Layout::bytes(4)).unwrap();
    let mut stream = [0; 16];
    assert_eq!(
        pack(runs.runs(0..16), &[0; 27], 0, &mut stream),
        Err(LayoutError::OutOfBounds { offset: 0, end: 28, origin: 0, available: 27 })
    );
    assert!(matches!(
        pack(runs.runs(0..16), &[0; 99], -1, &mut stream),
        Err(LayoutError::OutOfBounds { .. })
    ));
    assert!(matches!(pack(runs.runs(0..12), &[0; 28], 0, &mut stream), Err(LayoutError::Length { .. })));
    assert!(matches!(pack(runs.runs(0..16), &[0; 28], 0, &mut stream[1..]), Err(LayoutError::Length { .. })));
    let mut target = [0; 16];
    let (from, to) = (runs.runs(0..16), Layout::bytes(16).runs(0..15));
    assert!(matches!(copy(from, &[0; 28], 0, to, &mut target, 0, 16), Err(LayoutError::Length { .. })));
}

/// A window of a file that begins at offset w has origin −w.
#[test]
fn windows_have_negative_origins() {
    let file = pattern(1000);
    let layout = Layout::strided(10, 16, Layout::bytes(4)).unwrap().shifted(600).unwrap();
    let (mut from_file, mut from_window) = ([0; 40], [0; 40]);
    pack(layout.runs(0..40), &file, 0, &mut from_file).unwrap();
    pack(layout.runs(0..40), &file[500..], -500, &mut from_window).unwrap();
    assert_eq!(from_file, from_window);
}

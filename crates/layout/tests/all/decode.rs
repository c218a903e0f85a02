//! Decoders on bytes nobody encoded: an error or a valid value, never a panic.

use crate::common::{any_layout, view};
use pio_layout::{Datatype, Distribution, Layout, Order, View};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Asks everything of whatever was decoded; what it encodes to must decode to itself.
fn use_all(bytes: &[u8]) {
    if let Ok(layout) = Layout::decode(&mut &*bytes) {
        let mut again = Vec::new();
        layout.encode(&mut again);
        assert_eq!(Layout::decode(&mut &again[..]), Ok(layout.clone()), "not a fixed point: {layout:?}");
        walk(&layout);
    }
    if let Ok(view) = View::decode(&mut &*bytes) {
        for position in [0, 1, 1000, view.limit().saturating_sub(1), view.limit(), u64::MAX] {
            let offset = view.offset_of(position);
            assert_eq!(offset.is_some(), position < view.limit());
            if let Some(offset) = offset {
                assert_eq!(view.position_at_or_after(offset), position);
            }
        }
        view.runs(0..u64::MAX).take(20).for_each(|_| ());
        view.extents(5..u64::MAX).take(20).for_each(|_| ());
    }
    if let Ok(datatype) = Datatype::decode(&mut &*bytes) {
        let _ = datatype.repeated(3);
    }
}

fn walk(layout: &Layout) {
    let size = layout.size();
    for position in [0, 1, size / 2, size.saturating_sub(1)] {
        if let Some(offset) = layout.offset_of(position) {
            assert!(offset >= layout.lower_bound() && offset < layout.upper_bound());
            if layout.is_monotone() {
                assert_eq!(layout.position_at_or_after(offset), position);
            }
        }
        layout.runs(position..size).take(20).for_each(|run| assert!(run.size() > 0));
        assert!(layout.slice(position..size).size() == size - position.min(size));
    }
    for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
        assert!(layout.position_at_or_after(offset) <= size);
        layout.clip(offset, layout.upper_bound());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        use_all(&bytes);
    }

    /// Small bytes: mostly tags and short numbers, so that many get far.
    #[test]
    fn likely_bytes(bytes in prop::collection::vec(prop_oneof![0u8..6, 0u8..6, any::<u8>()], 0..60)) {
        use_all(&bytes);
    }

    #[test]
    fn likely_descriptions(integers in prop::collection::vec(prop_oneof![-1i64..13, 1i64..4, edge()], 0..30)) {
        let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        if let Ok(datatype) = Datatype::from_description(&bytes) {
            walk(datatype.layout());
        }
    }

    #[test]
    fn random_descriptions(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Datatype::from_description(&bytes);
    }
}

fn edge() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(1 << 62), any::<i64>()]
}

/// Valid encodings, each byte replaced, and each prefix: the same on every run.
#[test]
fn mutated_encodings() {
    let mut runner = TestRunner::deterministic();
    let mut samples = Vec::new();
    for _ in 0..100 {
        let mut bytes = Vec::new();
        any_layout().new_tree(&mut runner).unwrap().current().0.encode(&mut bytes);
        samples.push(std::mem::take(&mut bytes));
        view().new_tree(&mut runner).unwrap().current().0.encode(&mut bytes);
        samples.push(bytes);
    }
    let mut accepted = 0;
    for sample in samples {
        for len in 0..sample.len() {
            use_all(&sample[..len]);
        }
        for at in 0..sample.len() {
            for value in [0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff, sample[at] ^ 1, sample[at] ^ 0x80] {
                let mut mutated = sample.clone();
                mutated[at] = value;
                use_all(&mutated);
                accepted += usize::from(Layout::decode(&mut &mutated[..]).is_ok());
            }
        }
    }
    assert!(accepted > 100, "the mutations are too wild to test anything behind the decoder");
}

#[test]
fn a_short_input_cannot_ask_for_much() {
    // A list of 2^60 displacements, blocks, parts.
    for tag in [2, 3, 4] {
        let mut bytes = vec![0, tag];
        bytes.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0]);
        assert!(Layout::decode(&mut &bytes[..]).is_err());
    }
    // A million levels.
    let mut deep = vec![0];
    deep.extend([1, 2, 40].repeat(1_000_000));
    assert_eq!(Layout::decode(&mut &deep[..]).map_err(|error| error.at < 1000), Err(true));
    let level: Vec<u8> = [7i64, 0, 8].iter().flat_map(|integer| integer.to_le_bytes()).collect();
    assert_eq!(
        Datatype::from_description(&level.repeat(100_000)).map_err(|error| error.at < 3000),
        Err(true)
    );
}

#[test]
fn errors_say_where() {
    let layout = Layout::strided(3, 10, Layout::bytes(4)).unwrap();
    let mut bytes = Vec::new();
    layout.encode(&mut bytes);
    assert_eq!(bytes, [0, 1, 3, 20, 0, 4]);
    let error = Layout::decode(&mut &bytes[..5]).unwrap_err();
    assert_eq!((error.at, error.expected.as_str()), (5, "a length, found the end"));
    bytes[4] = 9;
    let mut input = &bytes[..];
    let error = Layout::decode(&mut input).unwrap_err();
    assert_eq!((error.at, error.expected.as_str()), (4, "a shape (0 to 4)"));
    assert_eq!(input.len(), bytes.len(), "the input was consumed");
}

/// A description, integer by integer, as the header writes it.
#[test]
fn descriptions_mean_what_is_documented() {
    let describe = |integers: &[i64]| {
        let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        Datatype::from_description(&bytes)
    };
    let int = Datatype::bytes(4);
    assert_eq!(describe(&[1, 4, 4]), Ok(int.clone()));
    assert_eq!(describe(&[10, 3, 2, 5, 1, 4, 4]), Ok(Datatype::vector(3, 2, 5, &int).unwrap()));
    assert_eq!(
        describe(&[8, 2, 6, 5, 3, 2, 1, 0, 1, 1, 4, 4]),
        Ok(Datatype::subarray(&[6, 5], &[3, 2], &[1, 0], Order::Fortran, &int).unwrap())
    );
    let kinds = [Distribution::Cyclic, Distribution::Block];
    assert_eq!(
        describe(&[9, 6, 4, 2, 7, 9, 2, 1, 2, -1, 2, 3, 0, 1, 4, 4]),
        Ok(Datatype::darray(6, 4, &[7, 9], &kinds, &[Some(2), None], &[2, 3], Order::C, &int).unwrap())
    );
    let error = describe(&[2, -3, 1, 4, 4]).unwrap_err();
    assert_eq!((error.at, error.expected.as_str()), (8, "a number of 0 or more"));
    let error = describe(&[1, 4, 4, 0]).unwrap_err();
    assert_eq!((error.at, error.expected.as_str()), (24, "the end of the description"));
}

/// Neighbours that continue each other, but not within 63 bits, were once joined for ever.
#[test]
fn what_spans_too_much_to_be_joined_is_refused() {
    let inner = Layout::strided(3, 1 << 61, Layout::bytes(1)).unwrap();
    assert!(Layout::indexed(vec![-3 << 61, 0, 1], inner).is_err());
}

/// Parts that continue each other were once joined at any depth, and what lay inside them doubled with every level.
#[test]
fn nesting_does_not_multiply() {
    let mut layout = Layout::bytes(1);
    let mut stride = 10;
    for _ in 0..16 {
        let strided = Layout::strided(2, stride, layout).unwrap();
        layout = Layout::indexed(vec![0, 2 * stride, 5 * stride + 1], strided).unwrap();
        stride *= 10;
    }
    let mut bytes = Vec::new();
    layout.encode(&mut bytes);
    assert!(bytes.len() < 16 * 50, "{} bytes", bytes.len());
}

//! Datatypes against the definitions of MPI 4.1: type maps written out, arrays enumerated index by index.

use crate::common::offsets;
use pio_layout::{Datatype, Distribution, LayoutError, Order};
use proptest::prelude::*;

/// Offsets of the elements of an array of `sizes` that `keep` keeps, in storage order.
fn enumerate(sizes: &[u64], order: Order, element: u64, keep: impl Fn(&[u64]) -> bool) -> Vec<i64> {
    let total: u64 = sizes.iter().product();
    let mut kept = Vec::new();
    for linear in 0..total {
        let mut index = vec![0; sizes.len()];
        let mut rest = linear;
        let dimensions: Vec<usize> = match order {
            Order::C => (0..sizes.len()).rev().collect(),
            Order::Fortran => (0..sizes.len()).collect(),
        };
        for dimension in dimensions {
            index[dimension] = rest % sizes[dimension];
            rest /= sizes[dimension];
        }
        if keep(&index) {
            kept.extend((linear * element..(linear + 1) * element).map(|byte| byte as i64));
        }
    }
    kept
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

fn dimension() -> impl Strategy<Value = (u64, u64, Distribution, Option<u64>)> {
    let block = (1u64..8, 1u64..5, prop::option::of(0u64..4)).prop_map(|(size, grid, more)| {
        (size, grid, Distribution::Block, more.map(|more| size.div_ceil(grid) + more))
    });
    let cyclic = (1u64..8, 1u64..5, prop::option::of(1u64..4))
        .prop_map(|(size, grid, len)| (size, grid, Distribution::Cyclic, len));
    let none = (1u64..8).prop_map(|size| (size, 1, Distribution::None, None));
    prop_oneof![block, cyclic, none]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn subarrays(
        dimensions in prop::collection::vec((1u64..7, 0u64..7, 0u64..7), 1..4),
        order in order(),
        element in 1u64..5,
    ) {
        let sizes: Vec<u64> = dimensions.iter().map(|&(size, ..)| size).collect();
        let subsizes: Vec<u64> = dimensions.iter().map(|&(size, sub, _)| sub % (size + 1)).collect();
        let starts: Vec<u64> =
            dimensions.iter().zip(&subsizes).map(|(&(size, _, start), sub)| start % (size - sub + 1)).collect();
        let part = Datatype::subarray(&sizes, &subsizes, &starts, order, &Datatype::bytes(element)).unwrap();
        let inside = |index: &[u64]| {
            (0..index.len()).all(|d| index[d] >= starts[d] && index[d] < starts[d] + subsizes[d])
        };
        prop_assert_eq!(offsets(part.layout()), enumerate(&sizes, order, element, inside));
        let whole = sizes.iter().product::<u64>() * element;
        prop_assert_eq!((part.lower_bound(), part.extent()), (0, whole as i64));
    }

    #[test]
    fn darrays(dimensions in prop::collection::vec(dimension(), 1..4), order in order(), element in 1u64..5) {
        let sizes: Vec<u64> = dimensions.iter().map(|d| d.0).collect();
        let grid: Vec<u64> = dimensions.iter().map(|d| d.1).collect();
        let kinds: Vec<Distribution> = dimensions.iter().map(|d| d.2).collect();
        let arguments: Vec<Option<u64>> = dimensions.iter().map(|d| d.3).collect();
        let processes: u64 = grid.iter().product();
        // Who owns an index of one dimension, by the definition of the distribution.
        let owner = |d: usize, index: u64| match kinds[d] {
            Distribution::Block => index / arguments[d].unwrap_or(sizes[d].div_ceil(grid[d])),
            Distribution::Cyclic => index / arguments[d].unwrap_or(1) % grid[d],
            Distribution::None => 0,
        };
        // Ranks are row-major in the grid, whatever the order of the array.
        let rank_of = |index: &[u64]| (0..index.len()).fold(0, |rank, d| rank * grid[d] + owner(d, index[d]));
        for rank in 0..processes {
            let old = Datatype::bytes(element);
            let part = Datatype::darray(processes, rank, &sizes, &kinds, &arguments, &grid, order, &old).unwrap();
            prop_assert_eq!(offsets(part.layout()), enumerate(&sizes, order, element, |index| rank_of(index) == rank));
            let whole = sizes.iter().product::<u64>() * element;
            prop_assert_eq!((part.lower_bound(), part.extent()), (0, whole as i64));
        }
    }

    /// Vectors and lists of a datatype with bounds of its own: copies an extent apart, bounds over all copies.
    #[test]
    fn vectors_and_lists(
        size in 1u64..5,
        lower in -4i64..5,
        extent in -6i64..12,
        stride in -5i64..6,
        count in 1u64..4,
        blocks in prop::collection::vec((0u64..4, -9i64..10), 1..5),
    ) {
        let old = Datatype::bytes(size).resized(lower, extent).unwrap();
        let copies = |at: &[i64]| -> Vec<i64> {
            at.iter().flat_map(|at| (0..size as i64).map(move |byte| at + byte)).collect()
        };
        let bounds = |at: &[i64]| match (at.iter().min(), at.iter().max()) {
            (Some(first), Some(last)) => (lower + first, lower + extent + last),
            _ => (0, 0),
        };
        let check = |made: Datatype, at: Vec<i64>| {
            prop_assert_eq!(offsets(made.layout()), copies(&at));
            prop_assert_eq!((made.lower_bound(), made.upper_bound()), bounds(&at));
            prop_assert_eq!(made.size(), at.len() as u64 * size);
            let mut bytes = Vec::new();
            made.encode(&mut bytes);
            prop_assert_eq!(Datatype::decode(&mut &bytes[..]), Ok(made));
            Ok(())
        };
        let row = |at: i64, len: u64| (0..len as i64).map(move |index| at + index * extent);
        let block_len = blocks[0].0;
        let count_i = count as i64;
        check(Datatype::contiguous(count, &old).unwrap(), row(0, count).collect())?;
        check(
            Datatype::vector(count, block_len, stride, &old).unwrap(),
            (0..count_i).flat_map(|index| row(index * stride * extent, block_len)).collect(),
        )?;
        check(
            Datatype::hvector(count, block_len, stride, &old).unwrap(),
            (0..count_i).flat_map(|index| row(index * stride, block_len)).collect(),
        )?;
        check(
            Datatype::indexed(&blocks, &old).unwrap(),
            blocks.iter().flat_map(|&(len, at)| row(at * extent, len)).collect(),
        )?;
        check(
            Datatype::hindexed(&blocks, &old).unwrap(),
            blocks.iter().flat_map(|&(len, at)| row(at, len)).collect(),
        )?;
        let displacements: Vec<i64> = blocks.iter().map(|block| block.1).collect();
        check(
            Datatype::indexed_block(block_len, &displacements, &old).unwrap(),
            displacements.iter().flat_map(|at| row(at * extent, block_len)).collect(),
        )?;
        check(
            Datatype::hindexed_block(block_len, &displacements, &old).unwrap(),
            displacements.iter().flat_map(|&at| row(at, block_len)).collect(),
        )?;
        let parts: Vec<_> = blocks.iter().map(|&(len, at)| (len, at, old.clone())).collect();
        check(
            Datatype::structure(&parts).unwrap(),
            blocks.iter().flat_map(|&(len, at)| row(at, len)).collect(),
        )?;
    }
}

#[test]
fn explicit_bounds_win_in_a_structure() {
    let resized = Datatype::bytes(4).resized(-2, 10).unwrap();
    let plain = Datatype::bytes(4);
    let both = Datatype::structure(&[(1, 100, plain.clone()), (2, 0, resized), (1, -50, plain)]).unwrap();
    assert_eq!((both.lower_bound(), both.extent()), (-2, 20));
    assert_eq!(both.layout().lower_bound(), -50);
}

#[test]
fn repeats_tile() {
    let column = Datatype::bytes(4).resized(0, 16).unwrap();
    assert_eq!(
        column.repeated(3).unwrap(),
        *Datatype::vector(3, 1, 4, &Datatype::bytes(4)).unwrap().layout()
    );
    assert!(Datatype::bytes(4).repeated(1 << 40).unwrap().is_dense());
}

#[test]
fn arrays_that_contradict_themselves_are_refused() {
    let byte = Datatype::bytes(1);
    let refused = |made: Result<Datatype, LayoutError>| {
        assert!(matches!(made, Err(LayoutError::Array { .. })), "{made:?}")
    };
    refused(Datatype::subarray(&[4], &[5], &[0], Order::C, &byte));
    refused(Datatype::subarray(&[4], &[3], &[2], Order::C, &byte));
    refused(Datatype::subarray(&[4], &[3, 1], &[0], Order::C, &byte));
    refused(Datatype::subarray(&[], &[], &[], Order::C, &byte));
    let darray = |count, rank, kind, argument, grid| {
        Datatype::darray(count, rank, &[8], &[kind], &[argument], &[grid], Order::C, &byte)
    };
    refused(darray(4, 0, Distribution::Block, None, 3));
    refused(darray(4, 4, Distribution::Block, None, 4));
    refused(darray(0, 0, Distribution::Block, None, 0));
    refused(darray(4, 0, Distribution::Block, Some(1), 4));
    refused(darray(4, 0, Distribution::Cyclic, Some(0), 4));
    refused(darray(4, 0, Distribution::None, None, 4));
    assert!(darray(u64::MAX, 3, Distribution::Cyclic, Some(u64::MAX), u64::MAX).unwrap().layout().is_empty());
}

#[test]
fn what_does_not_fit_is_refused() {
    let big = Datatype::bytes(1 << 40);
    let refused = |made: Result<Datatype, LayoutError>| {
        assert!(matches!(made, Err(LayoutError::Overflow { .. })), "{made:?}")
    };
    refused(Datatype::contiguous(1 << 30, &big));
    refused(Datatype::vector(2, 1, i64::MAX, &big));
    refused(Datatype::hvector(u64::MAX, 1, i64::MIN, &big));
    refused(Datatype::hvector(u64::MAX, 1, 0, &big));
    refused(Datatype::hindexed(&[(1, i64::MAX)], &big));
    refused(Datatype::hindexed(&[(1, i64::MIN), (1, i64::MAX - (1 << 40))], &big));
    refused(Datatype::indexed_block(1, &[i64::MAX], &big));
    refused(Datatype::subarray(&[u64::MAX, u64::MAX], &[1, 1], &[0, 0], Order::C, &big));
    refused(big.resized(i64::MAX, 1));
}

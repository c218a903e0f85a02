//! The views that the ranks of a collective open set, round after round: set by all together, they are known beforehand.

use std::collections::BTreeMap;

use pio_layout::View;
use pio_plan::{Gaps, Shape, Views};
use pio_trace::HandleId;

use crate::workload::{What, Workload};

/// The views in force when each rank of a collective open has set one more.
#[derive(Debug)]
pub(super) struct Round {
    /// What ranks know of them: all of those whose ranks exchange them.
    pub(super) views: Views,
    /// How they lie.
    pub(super) shape: Shape,
}

/// One, as it is gathered.
#[derive(Clone, Default)]
struct Gathered {
    gaps: Option<Gaps>,
    shapes: Vec<Shape>,
    each: Vec<View>,
}

/// For each collective open, round after round.
pub(super) fn of(workload: &Workload, exchange: &dyn Fn(HandleId) -> bool) -> BTreeMap<u64, Vec<Round>> {
    let of_view: Vec<_> = workload.views.iter().map(|view| (Gaps::of(view), Shape::of(view))).collect();
    let mut found: BTreeMap<u64, Vec<Gathered>> = BTreeMap::new();
    for program in &workload.programs {
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        for step in program {
            let What::SetView(handle, view) = &step.what else { continue };
            let open = &workload.handles[handle.index()];
            let Some(group) = open.group else { continue };
            let members = &workload.groups[group as usize];
            let number = numbers.entry(open.collective).or_insert(0);
            let rounds = found.entry(open.collective).or_default();
            if rounds.len() <= *number {
                rounds.resize(*number + 1, Gathered::default());
            }
            let Gathered { gaps: worst, shapes, each } = &mut rounds[*number];
            let (gaps, shape) = of_view[view.index()];
            *worst = Some(gaps).max(*worst);
            shapes.push(shape);
            if exchange(*handle) {
                each.resize(members.len(), View::contiguous(0));
                each[members.binary_search(&open.rank).unwrap_or(0)] = workload.views[view.index()].clone();
            }
            *number += 1;
        }
    }
    let round = |Gathered { gaps, shapes, each }| Round {
        views: Views { each: (!each.is_empty()).then(|| each.into()), gaps: gaps.unwrap_or(Gaps::None) },
        shape: Shape::of_all(shapes),
    };
    found.into_iter().map(|(open, rounds)| (open, rounds.into_iter().map(round).collect())).collect()
}

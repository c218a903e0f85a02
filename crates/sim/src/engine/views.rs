//! The views that the ranks of a collective open set, round after round: set by all together, they are known beforehand.

use std::collections::BTreeMap;
use std::sync::Arc;

use pio_layout::View;
use pio_plan::Strategy;

use crate::workload::{What, Workload};

/// Of one collective open.
#[derive(Debug, Default)]
pub(super) struct Views {
    rounds: Vec<Round>,
}

/// All ranks' views after each has set one more.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Those of all ranks of the group, if the strategy has them told.
    pub(super) each: Option<Arc<[View]>>,
    /// Whether some rank's view has gaps.
    pub(super) has_gaps: bool,
    /// How many ranks there are.
    pub(super) ranks: usize,
}

impl Views {
    /// In force when each rank has set `number` views; none before the first.
    pub(super) fn round(&self, number: usize) -> Option<&Round> {
        self.rounds.get(number.checked_sub(1)?)
    }
}

/// The views of each collective open.
pub(super) fn of(workload: &Workload, strategy: Strategy) -> BTreeMap<u64, Views> {
    let gaps: Vec<bool> = workload.views.iter().map(|view| !view.is_contiguous_over(0..u64::MAX)).collect();
    let mut found: BTreeMap<u64, Vec<(bool, usize, Vec<View>)>> = BTreeMap::new();
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
                rounds.resize(*number + 1, (false, members.len(), Vec::new()));
            }
            let (has_gaps, _, each) = &mut rounds[*number];
            *has_gaps |= gaps[view.index()];
            if strategy.exchanges_views() {
                each.resize(members.len(), View::contiguous(0));
                each[members.binary_search(&open.rank).unwrap_or(0)] = workload.views[view.index()].clone();
            }
            *number += 1;
        }
    }
    let round = |(has_gaps, ranks, each): (bool, usize, Vec<View>)| Round {
        each: (!each.is_empty()).then(|| each.into()),
        has_gaps,
        ranks,
    };
    found
        .into_iter()
        .map(|(open, rounds)| (open, Views { rounds: rounds.into_iter().map(round).collect() }))
        .collect()
}

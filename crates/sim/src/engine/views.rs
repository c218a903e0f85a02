//! The views that the ranks of a collective open set, round after round: set by all together, they are known beforehand.

use std::collections::BTreeMap;

use pio_layout::View;
use pio_plan::{Gaps, Views};
use pio_trace::HandleId;

use crate::workload::{What, Workload};

/// For each collective open: the ranks' views after each has set one more; those of opens whose ranks exchange them.
pub(super) fn of(workload: &Workload, exchange: &dyn Fn(HandleId) -> bool) -> BTreeMap<u64, Vec<Views>> {
    let gaps: Vec<Gaps> = workload.views.iter().map(Gaps::of).collect();
    let mut found: BTreeMap<u64, Vec<(Gaps, Vec<View>)>> = BTreeMap::new();
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
                rounds.resize(*number + 1, (Gaps::None, Vec::new()));
            }
            let (worst, each) = &mut rounds[*number];
            *worst = gaps[view.index()].max(*worst);
            if exchange(*handle) {
                each.resize(members.len(), View::contiguous(0));
                each[members.binary_search(&open.rank).unwrap_or(0)] = workload.views[view.index()].clone();
            }
            *number += 1;
        }
    }
    let views =
        |(gaps, each): (Gaps, Vec<View>)| Views { each: (!each.is_empty()).then(|| each.into()), gaps };
    found.into_iter().map(|(open, rounds)| (open, rounds.into_iter().map(views).collect())).collect()
}

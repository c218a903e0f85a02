//! Which strategy, and why.

use crate::access::Direction;
use crate::cost::estimate::{Estimate, estimate};
use crate::cost::setting::Setting;
use crate::cost::terms::Terms;
use crate::guard::Guard;
use crate::machine::Choice;
use crate::operation::Operation;
use crate::strategy::Strategy;

/// What each strategy would take that can be used there, in the order of [`Strategy::ALL`].
pub fn possible(operation: &Operation, setting: &Setting, terms: &Terms) -> Vec<Estimate> {
    Strategy::ALL.into_iter().filter_map(|strategy| estimate(strategy, operation, setting, terms)).collect()
}

/// Before ranks have waited for each other once, they exchange data only if they would be so many times as fast as each for itself:
/// a rank on its own waits for nobody. When each was the last to come is known by when they met; not what else keeps it waiting,
/// as others that want its processor.
const WORTH_AN_EXCHANGE: f64 = 2.0;

/// Ranks that would wait for each other ask seldom whether they still would: so many times more would be lost meanwhile, if they would
/// not, than it takes to ask. Programs go on as they began.
const SELDOM: f64 = 10.0;

/// Costs that are no further apart are equal: the model does not know more.
const EQUAL: f64 = 1.1;

/// The cheapest strategy; of [`EQUAL`] ones, the first of [`Strategy::ALL`], where the simpler ones come first; but list is the
/// last, or the [first](is_list_first). One in which ranks exchange data must be cheaper with what they wait for each other, or by
/// far: [`WORTH_AN_EXCHANGE`]. The reason tells what it takes, what takes longest in it, and how much longer the others would take.
pub fn choose(operation: &Operation, setting: &Setting, terms: &Terms) -> Choice {
    let estimates = possible(operation, setting, terms);
    let times = if setting.is_first { WORTH_AN_EXCHANGE } else { 1.0 };
    let waits_s = setting.waits_s + leaves_s(operation, setting, terms);
    let expected = |one: &Estimate| match one.strategy.sends_messages() {
        true => one.seconds() * times + waits_s,
        false => one.seconds(),
    };
    let least = estimates.iter().map(expected).fold(f64::INFINITY, f64::min);
    let equal = estimates.iter().filter(|one| expected(one) <= least * EQUAL);
    // Sieving can always be used: there is always one.
    let list_first = is_list_first(operation, setting, terms);
    let Some(best) = equal.min_by_key(|one| (one.strategy == Strategy::List) != list_first) else {
        let reason = "nothing else can be used".to_owned();
        return Choice { strategy: Strategy::Sieving, holds: 0, expected_us: 0, reason };
    };
    // Where not all ranks have data, they may the next time: that is another operation.
    let holds = if operation.busy < operation.ranks { 0 } else { holds(best, &estimates, waits_s) };
    let mut reason = reason(operation, best, &estimates);
    if waits_s > 0.0 {
        reason += &format!("; who exchanges data waits {:.3} ms", waits_s * 1e3);
    }
    Choice { strategy: best.strategy, holds, expected_us: (best.seconds() * 1e6) as u64, reason }
}

/// How long ranks that end an operation together wait in the mean until each has left it. Where they share processors, the first to
/// leave goes on with something else, on the processor of those that are yet to leave: unless it meets them there. Where it was
/// measured, that counts.
fn leaves_s(operation: &Operation, setting: &Setting, terms: &Terms) -> f64 {
    if setting.meets_next || setting.has_exchanged {
        return 0.0;
    }
    terms.turns_s(operation.ranks, setting.processors) / 2.0
}

/// For how many operations `best` is to be held: see [`Choice::holds`].
fn holds(best: &Estimate, estimates: &[Estimate], waits_s: f64) -> u32 {
    let exchanging = estimates.iter().filter(|one| one.strategy.sends_messages());
    let gain_s = best.seconds() - exchanging.map(Estimate::seconds).fold(f64::INFINITY, f64::min);
    if gain_s <= 0.0 { u32::MAX } else { (waits_s / gain_s * SELDOM) as u32 }
}

/// Whether list is the first of equals, not the last.
///
/// It waits for an answer after every few pieces, which where ranks share processors costs more than is known. But where only one
/// writes a file at a time, ranks that lock all they write go one after the other, and the first is through long before the last;
/// ranks that take turns with each piece are all through at the end.
fn is_list_first(operation: &Operation, setting: &Setting, terms: &Terms) -> bool {
    let is_here = terms.are_of_node(setting.servers);
    let one_at_a_time = is_here && operation.direction == Direction::Write;
    one_at_a_time && setting.guard == Guard::Alone && operation.is_interleaved && operation.busy > 1
}

fn reason(operation: &Operation, best: &Estimate, estimates: &[Estimate]) -> String {
    if operation.bytes == 0 {
        return "no rank has data".to_owned();
    }
    let seconds = best.seconds();
    let mut others: Vec<&Estimate> =
        estimates.iter().filter(|other| other.strategy != best.strategy).collect();
    others.sort_by(|one, two| one.seconds().total_cmp(&two.seconds()));
    let times = |other: &&Estimate| format!("{} {:.1} times", other.strategy, other.seconds() / seconds);
    let others: Vec<String> = others.iter().map(times).collect();
    let mostly = best.longest().map_or("nothing", |part| part.name());
    format!(
        "{} bytes in {} pieces of {} ranks: {:.3} ms, mostly {mostly}; the others: {}",
        operation.bytes,
        operation.pieces,
        operation.busy,
        seconds * 1e3,
        others.join(", ")
    )
}

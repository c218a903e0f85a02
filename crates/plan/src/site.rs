//! Where an operation takes place, and what a strategy goes by there.
//!
//! The library fills in a [`Site`] from MPI and the open file, the simulator from a machine's description; what follows
//! from it is decided here, once.

use std::ops::Range;
use std::sync::Arc;

use pio_layout::View;

use crate::access::{Direction, Rank};
use crate::beside::Beside;
use crate::cost::Terms;
use crate::descriptions::are_told_to_all;
use crate::direct::has_large_pieces;
use crate::guard::Guard;
use crate::hints::{Describe, Hints};
use crate::leaders::Leaders;
use crate::nodes::Nodes;
use crate::remembered::Recalled;
use crate::strategy::Strategy;
use crate::told_views::ToldViews;

/// Where the ranks of an open file are, and where the file is.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Ranks that opened the file together.
    pub ranks: u32,
    /// The nodes that they are on, if the ranks of a node share memory.
    pub nodes: Option<Arc<Nodes>>,
    /// Processors that the ranks have, all nodes together; no more than one each.
    pub processors: u32,
    /// How they reach the file.
    pub via: Via,
    /// What I/O costs there. The same on all ranks.
    pub terms: Arc<Terms>,
}

/// How ranks reach a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By calls to the kernel of their node, whatever file system is behind it. Of that nothing is known.
    Kernel,
    /// By requests to I/O servers that understand views. The file is dealt out to them.
    Servers {
        /// How many servers have parts of the file.
        factor: u32,
        /// Bytes of a strip.
        unit: u64,
    },
}

/// What the ranks of a file know of the views in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// All of them, if the strategy has them exchanged.
    pub each: Option<Arc<[View]>>,
    /// What gaps they have: the worst of any rank's.
    pub gaps: Gaps,
}

impl Views {
    /// Those of a file that was just opened: every rank sees all bytes.
    pub const WHOLE: Views = Views { each: None, gaps: Gaps::None };
}

/// With what gaps a view shows the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gaps {
    /// Without any.
    None,
    /// Between pieces that are worth a request each.
    BetweenLargePieces,
    /// Between others.
    BetweenSmallPieces,
}

impl Gaps {
    /// Those of a view.
    pub fn of(view: &View) -> Gaps {
        if view.is_contiguous_over(0..u64::MAX) {
            Gaps::None
        } else if has_large_pieces(view) {
            Gaps::BetweenLargePieces
        } else {
            Gaps::BetweenSmallPieces
        }
    }

    /// What another rank said as a number, `gaps as u64`.
    pub fn of_number(number: u64) -> Gaps {
        [Gaps::None, Gaps::BetweenLargePieces]
            .into_iter()
            .find(|gaps| *gaps as u64 == number)
            .unwrap_or(Gaps::BetweenSmallPieces)
    }
}

impl Site {
    /// What an operation goes by: the same on all ranks.
    pub fn context(&self, views: &Views, hints: &Hints, direction: Direction) -> Context {
        let (gaps, asked) = (views.gaps, hints);
        let hints = self.hints_in_force(hints, direction);
        let aggregators = self.aggregators(&hints);
        Context {
            leaders: self.leaders(aggregators.as_ref(), &hints),
            aggregators,
            hints,
            asked: asked.clone(),
            nodes: self.nodes.clone(),
            views: views.each.clone(),
            servers: self.servers(),
            guard: if asked.sieves(Direction::Write) { self.guard(views) } else { Guard::Open },
            beside: Beside::Nothing,
            contiguous: gaps < Gaps::BetweenSmallPieces,
            shared_memory: self.node_count() == Some(1),
            processors: self.processors.clamp(1, self.ranks.max(1)),
            terms: self.terms.clone(),
            told: ToldViews::default(),
            remembered: Recalled::default(),
        }
    }

    /// Whether the ranks tell each other their views when they set them. View-based I/O wants them known; ranks that describe
    /// their accesses to aggregators alone tell each of these when it is the first time.
    pub fn exchanges_views(&self, strategy: Strategy, hints: &Hints) -> bool {
        strategy == Strategy::ViewBased && self.ranks > 1 && are_told_to_all(hints, self.ranks)
    }

    /// What a rank that writes does about others that may be sieving there.
    fn guard(&self, views: &Views) -> Guard {
        let may_sieve = views.gaps > Gaps::None && self.ranks > 1;
        if may_sieve { Guard::of(self.ranks, self.processors) } else { Guard::Open }
    }

    /// Whether what a rank reads or writes alone is one request to the kernel, without a lock: then the machine of every
    /// strategy ([`Strategy::alone`](crate::Strategy::alone)) asks for that and ends, and whoever would carry it out can do
    /// without one.
    pub fn is_one_request(
        &self,
        views: &Views,
        direction: Direction,
        view: &View,
        positions: &Range<u64>,
    ) -> bool {
        let locks = direction == Direction::Write && self.guard(views) != Guard::Open;
        self.via == Via::Kernel
            && !locks
            && !positions.is_empty()
            && view.is_contiguous_over(positions.clone())
    }

    /// The hints as they hold for one direction here: completed by what follows from the site, and with the striping that
    /// is, not the one that was wished for.
    fn hints_in_force(&self, hints: &Hints, direction: Direction) -> Hints {
        let mut hints = hints.clone();
        match self.via {
            Via::Servers { factor, unit } => {
                (hints.striping_unit, hints.striping_factor) = (Some(unit), Some(factor));
                hints.cb_nodes = hints.cb_nodes.or_else(|| self.lanes(&hints));
            }
            Via::Kernel if direction == Direction::Write => {
                hints.cb_nodes = hints.cb_nodes.or(self.writers());
            }
            Via::Kernel => hints.cb_nodes = hints.cb_nodes.or_else(|| self.lanes(&hints)),
        }
        hints
    }

    /// How many of many ranks aggregate; none where ranks are so few that all do. On one node, as many as can be at work at a
    /// time. On several, four times the root of the number of ranks, but one on each node at least: a rank then exchanges data with
    /// no more than that many, and an aggregator, which handles each byte by itself, has those of only a quarter of the root.
    fn lanes(&self, hints: &Hints) -> Option<u32> {
        let nodes = self.node_count().filter(|_| !are_told_to_all(hints, self.ranks))?;
        Some(if nodes > 1 { nodes.max(self.ranks.isqrt().saturating_mul(4)) } else { self.processors })
    }

    fn servers(&self) -> u32 {
        match self.via {
            Via::Kernel => 0,
            Via::Servers { factor, .. } => factor,
        }
    }

    /// How many ranks aggregate what is written through the kernel, if not all of them.
    ///
    /// A node's kernel lets one process at a time write into a file; more only wait for each other. Yet if they all have
    /// processors, they arrange the data side by side before.
    fn writers(&self) -> Option<u32> {
        self.node_count().filter(|nodes| *nodes > 1 || self.processors < self.ranks)
    }

    /// Which ranks aggregate, where it matters on which nodes they are.
    fn aggregators(&self, hints: &Hints) -> Option<Arc<[Rank]>> {
        let count = hints.aggregators(self.ranks);
        let nodes = self.nodes.as_ref().filter(|nodes| nodes.count() > 1 && count < self.ranks);
        nodes.map(|nodes| nodes.spread(count))
    }

    /// Who may speak for the others of a node, where there are so many nodes and ranks that it may be worth it.
    fn leaders(&self, aggregators: Option<&Arc<[Rank]>>, hints: &Hints) -> Option<Leaders> {
        if are_told_to_all(hints, self.ranks) || hints.describe == Some(Describe::Aggregators) {
            return None;
        }
        Leaders::of(self.nodes.as_ref()?, aggregators?)
    }

    fn node_count(&self) -> Option<u32> {
        self.nodes.as_ref().map(|nodes| nodes.count())
    }
}

/// What an operation goes by, beside its access: made by [`Site::context`].
#[derive(Clone, Debug)]
pub struct Context {
    /// What the user asks for, as it holds there. The same on all ranks.
    pub hints: Hints,
    /// What the user asks for, and nothing else: an MPI library's own way completes it by other rules.
    pub asked: Hints,
    /// The nodes that the ranks are on, if they are known.
    pub nodes: Option<Arc<Nodes>>,
    /// Which ranks aggregate, ascending: as many of one node as of another. None: ranks at equal distances. The same on all
    /// ranks.
    pub aggregators: Option<Arc<[Rank]>>,
    /// Which ranks may speak for others of their node, if there are such. The same on all ranks.
    pub leaders: Option<Leaders>,
    /// The view of each rank, if they were exchanged when they were set: what view-based two-phase I/O needs.
    pub views: Option<Arc<[View]>>,
    /// I/O servers that take requests by view; 0 for a plain file.
    pub servers: u32,
    /// What a write does about other ranks that may be sieving in the file. The same on all ranks.
    pub guard: Guard,
    /// What else the program may be writing meanwhile.
    pub beside: Beside,
    /// Whether no rank's view has gaps, so that each rank's data are always one contiguous run; or if it has, they are
    /// [between large pieces](Gaps::BetweenLargePieces). The same on all ranks.
    pub contiguous: bool,
    /// Whether every rank can reach every other's collective buffer in memory. The same on all ranks.
    pub shared_memory: bool,
    /// How many processors the ranks share. The same on all ranks.
    pub processors: u32,
    /// What I/O costs there. The same on all ranks.
    pub terms: Arc<Terms>,
    /// What ranks told each other of their views in the operations before.
    pub told: ToldViews,
    /// What the automatic choice is to know of the operations before.
    pub remembered: Recalled,
}

impl Context {
    /// What an operation in that direction does about other ranks that may be sieving: who reads disturbs nobody.
    pub(crate) fn guard_of(&self, direction: Direction) -> Guard {
        if direction == Direction::Write { self.guard } else { Guard::Open }
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::Datatype;

    use super::*;
    use crate::access::Access;
    use crate::machine::{Action, Event, Io};

    /// Eight ranks, dealt out to so many nodes in turn.
    fn site(nodes: u32, processors: u32) -> Site {
        let nodes = Some(Nodes::of((0..8).map(|rank| rank % nodes)).into());
        Site { ranks: 8, nodes, processors, via: Via::Kernel, terms: Arc::default() }
    }

    fn context(site: Site, gaps: Gaps, direction: Direction) -> Context {
        site.context(&Views { each: None, gaps }, &Hints::default(), direction)
    }

    #[test]
    fn as_many_ranks_as_nodes_write_through_the_kernel() {
        let writers =
            |site, direction| context(site, Gaps::BetweenSmallPieces, direction).hints.aggregators(8);
        assert_eq!(writers(site(1, 2), Direction::Write), 1);
        assert_eq!(writers(site(1, 2), Direction::Read), 8);
        assert_eq!(writers(site(1, 8), Direction::Write), 8, "a processor each");
        assert_eq!(writers(site(2, 8), Direction::Write), 2);
        assert_eq!(
            writers(Site { nodes: None, ..site(1, 2) }, Direction::Write),
            8,
            "nodes that are not known"
        );
        let hints = Hints { cb_nodes: Some(3), ..Hints::default() };
        let asked = site(1, 2).context(&Views::WHOLE, &hints, Direction::Write).hints;
        assert_eq!(asked.aggregators(8), 3, "the user's word counts");
    }

    #[test]
    fn of_many_ranks_on_one_node_as_many_aggregate_as_can_be_at_work() {
        let of = |nodes: u32, processors, via| {
            let nodes = (nodes > 0).then(|| Nodes::of((0..16).map(|rank| rank % nodes)).into());
            Site { ranks: 16, nodes, processors, via, terms: Arc::default() }
        };
        let count = |site: Site, direction| context(site, Gaps::None, direction).hints.aggregators(16);
        assert_eq!(count(of(1, 2, Via::Kernel), Direction::Read), 2);
        assert_eq!(count(of(2, 16, Via::Kernel), Direction::Read), 16, "four times the root, which is all");
        assert_eq!(count(of(0, 16, Via::Kernel), Direction::Read), 16, "nodes that are not known");
        for direction in [Direction::Read, Direction::Write] {
            let servers = Via::Servers { factor: 4, unit: 1 << 16 };
            assert_eq!(count(of(1, 2, servers), direction), 2, "an aggregator reaches all servers");
            let hints = Hints { describe: Some(Describe::All), ..Hints::default() };
            let described = of(1, 2, servers).context(&Views::WHOLE, &hints, direction);
            assert_eq!(described.hints.aggregators(16), 16);
        }
    }

    #[test]
    fn what_is_one_request_is_so_under_every_strategy() {
        let gaps = Views { each: None, gaps: Gaps::BetweenSmallPieces };
        let tile = Datatype::bytes(8).resized(0, 16).unwrap();
        let view = View::new(4, 8, tile).unwrap();
        let asks_once = |views: &Views, direction, positions: Range<u64>| {
            let site = site(1, 8);
            if !site.is_one_request(views, direction, &view, &positions) {
                return false;
            }
            for strategy in Strategy::ALL {
                let access = Access { view: view.clone(), positions: positions.clone() };
                let context = site.context(views, &Hints::default(), direction);
                let mut machine = strategy.alone(Rank(0), direction, access, &context);
                let mut actions = Vec::new();
                machine.handle(Event::Start, &mut actions);
                let [Action::Io(Io::Pieces { positions: asked, .. } | Io::List { positions: asked, .. })] =
                    &actions[..]
                else {
                    panic!("{strategy:?}: {actions:?}");
                };
                assert_eq!(*asked, positions, "{strategy:?}");
                machine.handle(Event::IoDone { result: Ok(3) }, &mut actions);
                assert_eq!(actions[1..], [Action::Finish { result: Ok(3) }], "{strategy:?}");
            }
            true
        };
        let both = [Direction::Read, Direction::Write];
        assert_eq!(both.map(|direction| asks_once(&Views::WHOLE, direction, 10..14)), [true, true]);
        assert_eq!(
            both.map(|direction| asks_once(&Views::WHOLE, direction, 10..18)),
            [false, false],
            "two pieces"
        );
        assert_eq!(both.map(|direction| asks_once(&gaps, direction, 8..16)), [true, false], "a lock");
        assert_eq!(
            both.map(|direction| asks_once(&Views::WHOLE, direction, 8..8)),
            [false, false],
            "nothing"
        );
        let servers = Site { via: Via::Servers { factor: 4, unit: 65536 }, ..site(1, 2) };
        assert!(!servers.is_one_request(&Views::WHOLE, Direction::Read, &view, &(0..8)));
    }

    #[test]
    fn each_node_has_its_aggregator() {
        let aggregators =
            |site: Site, direction| context(site, Gaps::BetweenSmallPieces, direction).aggregators;
        assert_eq!(aggregators(site(2, 8), Direction::Write).as_deref(), Some(&[Rank(0), Rank(1)][..]));
        assert_eq!(aggregators(site(2, 8), Direction::Read), None, "all of them");
        assert_eq!(aggregators(site(1, 2), Direction::Write), None, "on one node any will do");
    }

    #[test]
    fn the_striping_that_is_counts() {
        let site = Site { via: Via::Servers { factor: 4, unit: 65536 }, ..site(1, 2) };
        let wished = Hints { striping_unit: Some(4096), striping_factor: Some(9), ..Hints::default() };
        let context = site.context(&Views::WHOLE, &wished, Direction::Write);
        let Hints { striping_unit, striping_factor, cb_nodes, .. } = context.hints;
        assert_eq!((striping_unit, striping_factor, cb_nodes), (Some(65536), Some(4), None));
        assert_eq!(context.servers, 4);
    }

    #[test]
    fn gaps_decide_on_locks_and_descriptions() {
        let of = |gaps| {
            let context = context(site(1, 2), gaps, Direction::Write);
            (context.guard, context.contiguous)
        };
        assert_eq!(of(Gaps::None), (Guard::Open, true));
        assert_eq!(of(Gaps::BetweenLargePieces), (Guard::Shared, true));
        assert_eq!(of(Gaps::BetweenSmallPieces), (Guard::Shared, false));
        let alone = context(Site { ranks: 1, ..site(1, 2) }, Gaps::BetweenSmallPieces, Direction::Write);
        assert_eq!(alone.guard, Guard::Open);
        // Where nobody sieves, nobody locks.
        let views = Views { gaps: Gaps::BetweenSmallPieces, ..Views::WHOLE };
        let hints = Hints { ind_wr_buffer_size: Some(2), ..Hints::default() };
        assert_eq!(site(1, 2).context(&views, &hints, Direction::Write).guard, Guard::Open);
        // A processor for each.
        assert_eq!(context(site(1, 8), Gaps::BetweenSmallPieces, Direction::Write).guard, Guard::Alone);
    }

    #[test]
    fn gaps_of_views() {
        let pieces = |bytes: u64| {
            let tile = Datatype::bytes(bytes).resized(0, bytes as i64 * 2).unwrap();
            Gaps::of(&View::new(0, 1, tile).unwrap())
        };
        assert_eq!(Gaps::of(&View::contiguous(3)), Gaps::None);
        assert_eq!(pieces(16 << 10), Gaps::BetweenLargePieces);
        assert_eq!(pieces((16 << 10) - 1), Gaps::BetweenSmallPieces);
        // A large piece beside small ones, which are written alone perhaps.
        let mixed = Datatype::hindexed(&[(8, 0), (8, 16), (1 << 20, 32)], &Datatype::bytes(1)).unwrap();
        let mixed = mixed.resized(0, 2 << 20).unwrap();
        assert_eq!(Gaps::of(&View::new(0, 1, mixed).unwrap()), Gaps::BetweenSmallPieces);
        for gaps in [Gaps::None, Gaps::BetweenLargePieces, Gaps::BetweenSmallPieces] {
            assert_eq!(Gaps::of_number(gaps as u64), gaps);
        }
        assert_eq!(Gaps::of_number(99), Gaps::BetweenSmallPieces);
    }
}

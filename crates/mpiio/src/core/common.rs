//! What the ranks of a file know of each other's views.

use std::sync::Arc;

use pio_layout::View;
use pio_plan::{Context, Direction, Group, Hints, Rank, Strategy, ViewExchange, has_large_pieces};

use super::channel::Channel;
use super::driver::Driver;
use super::memory::Memory;
use super::status::Status;
use super::storage::Storage;

/// Of the views in force.
#[derive(Clone, Debug)]
pub struct Common {
    /// All of them, if the strategy wants them.
    views: Option<Arc<[View]>>,
    /// What gaps the views have: the worst of any rank's.
    gaps: Gaps,
    /// How many ranks there are.
    ranks: u32,
    /// On how many nodes they are, if those of a node share memory.
    nodes: Option<u32>,
    /// How many processors they have.
    processors: u32,
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

    /// What another rank said as a number.
    pub fn of_number(number: u64) -> Gaps {
        [Gaps::None, Gaps::BetweenLargePieces]
            .into_iter()
            .find(|gaps| *gaps as u64 == number)
            .unwrap_or(Gaps::BetweenSmallPieces)
    }
}

impl Common {
    /// Of a file that was just opened: every rank sees all bytes.
    pub fn of_new_file(channel: &Channel) -> Common {
        let Channel { nodes, processors, .. } = *channel;
        Common { views: None, gaps: Gaps::None, ranks: channel.communicator.ranks(), nodes, processors }
    }

    /// After all ranks set views, this one `view`; `gaps` are the worst of any of them. Collective, if the strategy wants
    /// to know the others' views.
    pub fn agree(
        channel: &mut Channel,
        storage: &Storage,
        strategy: Strategy,
        view: &View,
        gaps: Gaps,
    ) -> Result<Common, Status> {
        let common = Common { gaps, ..Common::of_new_file(channel) };
        let ranks = common.ranks;
        if ranks == 1 || !strategy.exchanges_views() {
            return Ok(common);
        }
        let group = Group { rank: Rank(channel.communicator.rank()), ranks };
        let mut exchange = ViewExchange::new(group, view.clone());
        Driver::new(channel, storage, &mut Memory::none(), Direction::Read, &mut exchange).run()?;
        let views = exchange.views().ok_or(Status::Internal)?;
        Ok(Common { views: Some(views), ..common })
    }

    /// How many ranks aggregate what is written to a plain file, if not all of them.
    ///
    /// A node's kernel lets one process at a time write into a file; more only wait for each other. Yet if they all have
    /// processors, they arrange the data side by side before.
    fn writers(&self) -> Option<u32> {
        self.nodes.filter(|nodes| *nodes > 1 || self.processors < self.ranks)
    }

    /// What an operation goes by.
    pub fn context(&self, hints: &Hints, storage: &Storage, direction: Direction) -> Context {
        let mut hints = hints.clone();
        if direction == Direction::Write && storage.servers() == 0 {
            hints.cb_nodes = hints.cb_nodes.or(self.writers());
        }
        if let Some((unit, factor)) = storage.striping() {
            // What is, not what was wished for.
            (hints.striping_unit, hints.striping_factor) = (Some(unit), Some(factor));
        }
        Context {
            hints,
            views: self.views.clone(),
            servers: storage.servers(),
            guarded: self.gaps > Gaps::None && self.ranks > 1,
            contiguous: self.gaps < Gaps::BetweenSmallPieces,
            shared_memory: self.nodes == Some(1),
            processors: Some(self.processors),
        }
    }
}

//! Views, exchanged once, when they are set: the first half of view-based collective I/O (Blas, Isaila, Singh and
//! Carretero 2008).

use std::sync::Arc;

use pio_layout::View;

use crate::access::{Access, Group, IoError, Rank};
use crate::machine::{Action, Event, StateMachine};
use crate::message::Message;

/// Every rank tells every other its new view.
#[derive(Debug)]
pub struct ViewExchange {
    group: Group,
    own: Access,
    views: Vec<Option<View>>,
    missing: u32,
    started: bool,
    finished: bool,
}

impl ViewExchange {
    /// The machine of one rank that sets `view`.
    pub fn new(group: Group, view: View) -> ViewExchange {
        let mut views = vec![None; group.ranks as usize];
        views[group.rank.index()] = Some(view.clone());
        let own = Access { view, positions: 0..0 };
        ViewExchange { group, own, views, missing: group.ranks - 1, started: false, finished: false }
    }

    /// The views of all ranks, when it is finished.
    pub fn views(self) -> Option<Arc<[View]>> {
        self.views.into_iter().collect::<Option<Vec<View>>>().map(Arc::from)
    }

    fn finish(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        self.finished = true;
        actions.push(Action::Finish { result });
    }
}

impl StateMachine for ViewExchange {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            _ if self.finished => return,
            Event::Start => {
                self.started = true;
                for step in 1..self.group.ranks {
                    let to = Rank((self.group.rank.0 + step) % self.group.ranks);
                    actions.push(Action::Send { to, message: Message::Register(self.own.view.clone()) });
                }
            }
            Event::Received { from, message: Message::Register(view) } => {
                match self.views.get_mut(from.index()) {
                    Some(slot @ None) => *slot = Some(view),
                    _ => return self.finish(Err(IoError::PROTOCOL), actions),
                }
                self.missing -= 1;
            }
            Event::Received { .. } | Event::Data { .. } => {
                return self.finish(Err(IoError::PROTOCOL), actions);
            }
            Event::IoDone { .. } | Event::Room { .. } => panic!("nothing was asked for"),
        }
        if self.missing == 0 && self.started {
            self.finish(Ok(0), actions);
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.group.rank).then_some(&self.own)
    }
}

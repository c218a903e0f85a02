//! How all ranks end an operation together.
//!
//! Aggregators that fill gaps with what the file holds write bytes that no rank wrote: so no rank may go on, and perhaps write
//! there, before all of them are done. That all are through goes up the [tree](crate::tree), with the first error, and
//! comes down.

use crate::access::{IoError, Rank};
use crate::machine::Action;
use crate::message::Message;
use crate::tree::{Sum, Sweep, Tree, Unexpected};

/// The end of one rank's operation.
#[derive(Debug)]
pub(crate) struct Ending {
    tree: Tree,
    sweep: Sweep<Option<IoError>>,
    /// Whether this rank has said that it is through.
    is_said: bool,
    /// The sum over this rank and those below it, until it is passed on.
    up: Option<Option<IoError>>,
    /// What all have.
    down: Option<Option<IoError>>,
}

impl Sum for Option<IoError> {
    fn add(&mut self, later: Option<IoError>) {
        *self = self.or(later);
    }
}

impl Ending {
    pub(crate) fn new(tree: Tree) -> Ending {
        Ending { tree, sweep: Sweep::new(tree), is_said: false, up: None, down: None }
    }

    /// Another rank said that those below it, or all, are through.
    pub(crate) fn take(&mut self, from: Rank, error: Option<IoError>) -> Result<(), Unexpected> {
        if self.tree.parent() != Some(from) {
            self.up = self.sweep.take(from, error)?.map_or(self.up, Some);
            return Ok(());
        }
        match self.down.replace(error) {
            None if self.is_said => Ok(()),
            _ => Err(Unexpected),
        }
    }

    /// Says what is to be said, if this rank is `through`. The first error of all, if all are.
    pub(crate) fn go_on(
        &mut self,
        through: bool,
        error: Option<IoError>,
        actions: &mut Vec<Action>,
    ) -> Option<Option<IoError>> {
        if through && !self.is_said {
            self.is_said = true;
            self.up = self.sweep.begin(error);
        }
        if let Some(error) = self.up.take() {
            match self.tree.parent() {
                Some(to) => actions.push(Action::Send { to, message: Message::Ended { error } }),
                None => self.down = Some(error),
            }
        }
        let error = self.down?;
        actions.extend(
            self.tree.children().rev().map(|to| Action::Send { to, message: Message::Ended { error } }),
        );
        Some(error)
    }
}

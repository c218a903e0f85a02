//! What one call is charged to, before it is known what others do with the same file.

use super::cost::Cost;

/// What is remarkable about a call. Each call has at most one: the most specific, so that no second is counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Reads bytes that its process had read.
    Reread,
    /// Reads bytes that another rank had read.
    ReadByOthers,
    /// Reads bytes that its process had just written.
    ReadBack,
    /// Writes bytes again that nobody had read, synced or closed since.
    Overwrite,
    /// Independent MPI-IO: small, or of many pieces by its view, or after a jump.
    Independent,
    /// The same, in steps that repeat, without a view that says so.
    IndependentSteps,
    /// Collective MPI-IO, one small piece a call in steps that repeat.
    CollectivePieces,
    /// Moves less through a stream than the stream's buffer should gather.
    Stream,
    /// Writes at the end, wherever that is now.
    Append,
    /// Writes part of a page or stripe that another process had just written part of.
    SharedPage,
    /// Writes part of a page that the system fetched first.
    PartialPage,
    /// Reads less than large, after a jump.
    RandomRead,
    /// Writes less than large, after a jump.
    RandomWrite,
    /// Reads less than large, in steps that repeat.
    StepsRead,
    /// Writes less than large, in steps that repeat.
    StepsWrite,
    /// Reads a little, one request behind the other.
    SmallRead,
    /// Writes a little, one request behind the other.
    SmallWrite,
    /// Forces few bytes to the device.
    Sync,
    /// Opens or closes a file that its process had open before.
    Reopen,
    /// The first open and its close.
    Open,
    /// On a name, or an attempt to open what is not there.
    Name,
    /// Takes a lock, or gives it back.
    Lock,
    /// Moves a file pointer.
    Seek,
    /// What of a collective call was waiting for late ranks.
    Late,
    /// What of a collective call with which nothing else is wrong went by inside the MPI library.
    Library,
}

/// Where a call was charged: a slot, and what is remarkable about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Index of the slot.
    pub(crate) slot: usize,
    /// None: nothing is.
    pub(crate) class: Option<Class>,
}

/// Costs by class: few of them at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs(Vec<(Class, Cost)>);

impl Costs {
    #[inline]
    pub(crate) fn of(&mut self, class: Class) -> &mut Cost {
        let index = match self.0.iter().position(|(known, _)| *known == class) {
            Some(index) => index,
            None => {
                self.0.push((class, Cost::default()));
                self.0.len() - 1
            }
        };
        &mut self.0[index].1
    }

    /// What all classes cost.
    pub(crate) fn sum(&self) -> Cost {
        self.0.iter().fold(Cost::default(), |mut sum, (_, cost)| {
            sum.merge(cost);
            sum
        })
    }

    pub(crate) fn get(&self, class: Class) -> Option<&Cost> {
        self.0.iter().find(|(known, _)| *known == class).map(|(_, cost)| cost)
    }
}

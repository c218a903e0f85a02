//! The part of an event that repeats as a whole.

use super::columns::{Column, ColumnReader, Columns};
use crate::call::{Call, Op};
use crate::event::{Event, Flags, Target};
use crate::tables::{DatatypeId, FileId, MarkNameId, ProcessId, Tables};

/// The part of an event that repeats as a whole: a loop's reads all have one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) call: Call,
    pub(super) thread: u32,
    /// Which handle, as the kind of block numbers them; 0 for none.
    pub(super) handle: u64,
    pub(super) target: TargetKind,
    pub(super) memory: Option<DatatypeId>,
    pub(super) flags: u16,
    /// Whether column [`Used`](Column::Used) has a number for it.
    pub(super) says_used: bool,
}

/// Beside the flags of a shape.
const SAYS_USED: u64 = 1 << 8;

/// An event's target without the number in it, the *place*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TargetKind {
    None,
    Extent,
    /// With the view, as the kind of block numbers them.
    View(u64),
    Peer,
    /// With the number of the server.
    Server(u32),
    /// With the second of two names.
    Name(Option<FileId>),
    /// With the name of the mark.
    Mark(MarkNameId),
}

impl TargetKind {
    /// The kind of an event's target; `view` is the number of its view, if it has one.
    pub(super) fn of(target: &Target, view: u64) -> TargetKind {
        match *target {
            Target::None => TargetKind::None,
            Target::Extent { .. } => TargetKind::Extent,
            Target::View { .. } => TargetKind::View(view),
            Target::Peer { .. } => TargetKind::Peer,
            Target::Server { server, .. } => TargetKind::Server(server),
            Target::Name { other, .. } => TargetKind::Name(other),
            Target::Mark { name, .. } => TargetKind::Mark(name),
        }
    }

    /// What tells its places from those of other kinds.
    pub(super) fn number(self) -> u8 {
        match self {
            TargetKind::None => 0,
            TargetKind::Extent => 1,
            TargetKind::View(_) => 2,
            TargetKind::Peer => 3,
            TargetKind::Name(_) => 4,
            TargetKind::Server(_) => 5,
            TargetKind::Mark(_) => 6,
        }
    }

    /// The target at a place, unless it has a view.
    #[inline]
    pub(super) fn at(self, place: u64, tables: &Tables) -> Result<Target, &'static str> {
        Ok(match self {
            TargetKind::None if place == 0 => Target::None,
            TargetKind::None => return Err("no place"),
            TargetKind::Extent => Target::Extent { offset: place },
            TargetKind::View(_) => return Err("a view"),
            TargetKind::Peer => Target::Peer { rank: u32::try_from(place).map_err(|_| "a rank of 32 bits")? },
            TargetKind::Server(server) => Target::Server { server, offset: place },
            TargetKind::Name(other) => Target::Name { file: file(place, tables)?, other },
            TargetKind::Mark(name) => Target::Mark { name, number: place },
        })
    }

    /// How far an event of this result moves on in its places.
    pub(super) fn moved(self, result: i64) -> u64 {
        match self {
            TargetKind::Extent | TargetKind::View(_) | TargetKind::Server(_) => {
                u64::try_from(result).unwrap_or(0)
            }
            TargetKind::None | TargetKind::Peer | TargetKind::Name(_) | TargetKind::Mark(_) => 0,
        }
    }
}

impl Shape {
    /// The shape of an event with these numbers of its handle and its view.
    pub(super) fn of(event: &Event, handle: u64, view: u64) -> Shape {
        let Event { call, thread, memory, flags, used_ns, .. } = *event;
        let target = TargetKind::of(&event.target, view);
        Shape { call, thread, handle, target, memory, flags: flags.bits(), says_used: used_ns.is_some() }
    }

    /// The event of this shape and these numbers, but for what the tables tell: its handle and its target.
    #[inline]
    pub(super) fn event(&self, process: ProcessId, numbers: &Numbers) -> Event {
        Event {
            thread: self.thread,
            memory: self.memory,
            size: numbers.size,
            result: numbers.result,
            elapsed_ns: numbers.elapsed_ns,
            think_ns: numbers.think_ns,
            flags: Flags::from_bits(self.flags),
            operation: numbers.operation,
            ..Event::new(self.call, process, numbers.start_ns)
        }
    }

    /// Whether success means a result equal to the size.
    pub(super) fn moves_data(&self) -> bool {
        matches!(self.call.op(), Op::Read | Op::Write | Op::Communicate)
    }

    pub(super) fn is_physical(&self) -> bool {
        self.flags & Flags::PHYSICAL.bits() != 0
    }

    /// Appends the definition of a shape.
    pub(super) fn put(&self, columns: &mut Columns) {
        let mut put = |value| columns.put(Column::Shape, value);
        put(u64::from(self.call.number()));
        put(u64::from(self.thread));
        put(self.handle);
        match self.target {
            TargetKind::None => put(0),
            TargetKind::Extent => put(1),
            TargetKind::View(view) => {
                put(2);
                put(view);
            }
            TargetKind::Peer => put(3),
            TargetKind::Name(None) => put(4),
            TargetKind::Name(Some(other)) => {
                put(5);
                put(u64::from(other.0));
            }
            TargetKind::Server(server) => {
                put(6);
                put(u64::from(server));
            }
            TargetKind::Mark(name) => {
                put(7);
                put(u64::from(name.0));
            }
        }
        put(self.memory.map_or(0, |memory| u64::from(memory.0) + 1));
        put(u64::from(self.flags) | if self.says_used { SAYS_USED } else { 0 });
    }

    /// Takes a definition. The numbers of its handle and view may be any, all else is in the tables.
    pub(super) fn take(columns: &mut ColumnReader<'_>, tables: &Tables) -> Result<Shape, &'static str> {
        let mut take = |what| columns.take(Column::Shape).ok_or(what);
        let call = u16::try_from(take("a call")?).ok().and_then(Call::from_number).ok_or("a known call")?;
        let thread = u32::try_from(take("a thread")?).map_err(|_| "a thread of 32 bits")?;
        let handle = take("a handle")?;
        let target = match take("the kind of a target")? {
            0 => TargetKind::None,
            1 => TargetKind::Extent,
            2 => TargetKind::View(take("a view")?),
            3 => TargetKind::Peer,
            4 => TargetKind::Name(None),
            5 => TargetKind::Name(Some(file(take("a second name")?, tables)?)),
            6 => TargetKind::Server(u32::try_from(take("a server")?).map_err(|_| "a server of 32 bits")?),
            7 => {
                let name = id_below(take("the name of a mark")?, tables.mark_names.len());
                TargetKind::Mark(MarkNameId(name.ok_or("a name of the tables")?))
            }
            _ => return Err("a known kind of target"),
        };
        let memory = match take("a memory datatype")? {
            0 => None,
            above => {
                let id = id_below(above - 1, tables.datatypes.len()).ok_or("a datatype of the tables")?;
                Some(DatatypeId(id))
            }
        };
        let flags = take("flags")?;
        let says_used = flags & SAYS_USED != 0;
        let flags = u16::try_from(flags & !SAYS_USED).map_err(|_| "known flags")?;
        if !Flags::ALL.contains(Flags::from_bits(flags)) {
            return Err("known flags");
        }
        Ok(Shape { call, thread, handle, target, memory, flags, says_used })
    }
}

/// All but the process and the shape of an event.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) place: u64,
    pub(super) size: u64,
    pub(super) result: i64,
    pub(super) start_ns: u64,
    pub(super) elapsed_ns: u64,
    pub(super) think_ns: u64,
    pub(super) operation: u64,
}

/// What results of a shape follow.
#[derive(Clone, Copy)]
pub(super) enum ResultRule {
    IsSize,
    Is(i64),
}

impl ResultRule {
    /// What is expected of a shape that did not occur yet.
    pub(super) fn at_first(shape: &Shape) -> ResultRule {
        if shape.moves_data() { ResultRule::IsSize } else { ResultRule::Is(0) }
    }

    /// What is expected after an event of a shape.
    pub(super) fn after(shape: &Shape, numbers: &Numbers) -> ResultRule {
        if shape.moves_data() && numbers.result == numbers.size as i64 {
            ResultRule::IsSize
        } else {
            ResultRule::Is(numbers.result)
        }
    }

    /// The result of an event of this size.
    #[inline]
    pub(super) fn expected(self, size: u64) -> i64 {
        match self {
            ResultRule::IsSize => size as i64,
            ResultRule::Is(result) => result,
        }
    }
}

/// What operations of a shape follow.
#[derive(Clone, Copy)]
pub(super) enum OperationRule {
    IsZero,
    StepsBy(u64),
}

/// The number in an event's target: offset, position, rank, file or that of a mark; 0 where there is none.
pub(super) fn place_of(target: &Target) -> u64 {
    match *target {
        Target::None => 0,
        Target::Extent { offset } => offset,
        Target::View { position, .. } => position,
        Target::Peer { rank } => u64::from(rank),
        Target::Server { offset, .. } => offset,
        Target::Name { file, .. } => u64::from(file.0),
        Target::Mark { number, .. } => number,
    }
}

/// What explicit places are counted in: programs jump by whole records, so the rest of the division is mostly 0.
#[inline]
pub(super) fn place_unit(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(1).max(1)
}

fn file(id: u64, tables: &Tables) -> Result<FileId, &'static str> {
    id_below(id, tables.files.len()).map(FileId).ok_or("a file of the tables")
}

/// The id, if the table of `len` entries has it.
pub(super) fn id_below(id: u64, len: usize) -> Option<u32> {
    if id < len as u64 { u32::try_from(id).ok() } else { None }
}

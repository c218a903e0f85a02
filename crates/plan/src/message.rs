//! What the machines of one operation say to each other, and its bytes.
//!
//! | message | bytes |
//! |---|---|
//! | describe | `1`, data bytes, pieces, first offset, end offset, microseconds told, `0` or `1` + view + first position |
//! | grant | `2`, window index |
//! | release | `3`, window index |
//! | acknowledge | `4`, error number or 0 |
//! | register | `5`, view |
//! | take part | `6`, first position, data bytes, microseconds told |
//! | summary | `7`, the numbers of a [`Summary`] in its order, `0` or `1` if interleaved, number of intervals, of each what lies between it and the one before, and its bytes |
//! | clients | `8`, number of runs, of each what lies between it and the one before, how many aggregators, how many clients each has |
//! | ended | `9`, error number or 0 |
//! | place | `10`, view, data bytes |
//! | among leaders | `11`, one of the others |
//! | summary with clients | `12`, as in a summary, as in clients |
//!
//! Numbers are LEB128, but microseconds, which are 8 bytes, the lowest first: no message is longer or shorter for what a clock says.
//! The view has the one encoding of `pio-layout`. A description is tens of bytes however many pieces
//! the access has: nobody ever sends a list of pairs.

use std::ops::Range;

use pio_layout::View;
use pio_layout::number::{self, NumberError, put};
use thiserror::Error;

use crate::access::{Access, IoError, Piece, Rank};
use crate::expected::{Clients, Run};
use crate::inside::Inside;
use crate::summary::{INTERVALS, Summary};

/// What a rank says of its part in the operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Data bytes.
    pub bytes: u64,
    /// Contiguous pieces that they are: see [`Access::pieces`].
    pub pieces: u64,
    /// The smallest interval of the file that holds them.
    pub bounds: Range<u64>,
    /// Microseconds from which all learn how long they wait for each other: see [`Recalled::told_us`](crate::Recalled::told_us).
    pub told_us: u64,
    /// Which bytes exactly: told to aggregators only.
    pub access: Option<Access>,
}

impl Description {
    /// Of `access`, with or without the exact bytes.
    pub fn of(access: &Access, exact: bool) -> Description {
        Description::of_pieces(access, access.pieces(), exact)
    }

    /// The same, where it is known how many pieces the access is.
    pub(crate) fn of_pieces(access: &Access, pieces: u64, exact: bool) -> Description {
        let tell = exact && access.bytes() > 0;
        Description {
            bytes: access.bytes(),
            pieces,
            bounds: access.bounds(),
            told_us: 0,
            access: tell.then(|| access.clone()),
        }
    }

    /// Whether the data are one contiguous run of the file. (A view never shows a byte twice.)
    pub fn is_dense(&self) -> bool {
        self.bounds.end - self.bounds.start == self.bytes
    }
}

/// A message between two machines of the same operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Which bytes the sender reads or writes.
    Describe(Description),
    /// The aggregator's collective buffer is free for the data of this window.
    Grant {
        /// Window of the aggregator's file domain.
        index: u64,
    },
    /// The client has taken its data of this window out of the collective buffer.
    Release {
        /// Window of the aggregator's file domain.
        index: u64,
    },
    /// All that the client sent is in the file; or why not.
    Acknowledge {
        /// The first error of the aggregator.
        error: Option<IoError>,
    },
    /// The sender's view from now on.
    Register(View),
    /// Which data bytes of its registered view the sender reads or writes.
    TakePart {
        /// Data bytes of the view.
        positions: Range<u64>,
        /// As in a [`Description`].
        told_us: u64,
    },
    /// What some ranks access together: from a child in the tree of ranks those below it, from the parent all. (Most messages are
    /// others, and smaller.)
    Summary(Box<Summary>),
    /// How many ranks will describe their accesses to aggregators: from a child as far as it is known of those below it,
    /// from the parent in all, to those below.
    Clients(Clients),
    /// The operation is over for some ranks, or why not: from a child for those below it, from the parent for all.
    Ended {
        /// The first error of these ranks.
        error: Option<IoError>,
    },
    /// Where in what a leader gathers the data of the receiver belong: there is room for them now.
    Place(Access),
    /// A message of the operation that leaders carry out for the others.
    AmongLeaders(Box<Message>),
    /// What an MPI library tells itself: only predicted, never sent.
    Inside(Inside),
}

/// What a message is for: how traces tell messages apart, beside those with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To say what ranks access.
    Describe,
    /// To say that there is room for data, or that a buffer is free.
    Grant,
    /// To say that data are in the file, or an operation over.
    Acknowledge,
}

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("malformed message: expected {expected}")]
pub struct MessageError {
    expected: &'static str,
}

const DESCRIBE: u8 = 1;
const GRANT: u8 = 2;
const RELEASE: u8 = 3;
const ACKNOWLEDGE: u8 = 4;
const REGISTER: u8 = 5;
const TAKE_PART: u8 = 6;
const SUMMARY: u8 = 7;
const CLIENTS: u8 = 8;
const ENDED: u8 = 9;
const PLACE: u8 = 10;
const AMONG_LEADERS: u8 = 11;
const SUMMARY_WITH_CLIENTS: u8 = 12;

impl Message {
    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        match self {
            Message::Describe(_)
            | Message::TakePart { .. }
            | Message::Summary(_)
            | Message::Clients(_)
            | Message::Register(_)
            | Message::Inside(_) => Purpose::Describe,
            Message::Grant { .. } | Message::Release { .. } | Message::Place(_) => Purpose::Grant,
            Message::Acknowledge { .. } | Message::Ended { .. } => Purpose::Acknowledge,
            Message::AmongLeaders(message) => message.purpose(),
        }
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        match self {
            Message::Inside(inside) => inside.bytes,
            // The simulator asks very often.
            Message::Grant { index } | Message::Release { index } => 1 + size_of(*index),
            Message::Acknowledge { error } | Message::Ended { error } => 1 + size_of(errno_of(*error)),
            Message::TakePart { positions, told_us } => {
                let bytes = positions.end.saturating_sub(positions.start);
                1 + size_of(positions.start) + size_of(bytes) + size_of_val(told_us) as u64
            }
            Message::AmongLeaders(message) => 1 + message.size(),
            _ => self.encode().len() as u64,
        }
    }

    /// The message as bytes; none for one inside an MPI library.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Message::Describe(description) => {
                out.push(DESCRIBE);
                put(&mut out, description.bytes);
                put(&mut out, description.pieces);
                put(&mut out, description.bounds.start);
                put(&mut out, description.bounds.end);
                out.extend(description.told_us.to_le_bytes());
                match &description.access {
                    None => out.push(0),
                    Some(access) => {
                        out.push(1);
                        access.view.encode(&mut out);
                        put(&mut out, access.positions.start);
                    }
                }
            }
            Message::Grant { index } => put_pair(&mut out, GRANT, *index),
            Message::Release { index } => put_pair(&mut out, RELEASE, *index),
            Message::Acknowledge { error } => put_pair(&mut out, ACKNOWLEDGE, errno_of(*error)),
            Message::Register(view) => {
                out.push(REGISTER);
                view.encode(&mut out);
            }
            Message::TakePart { positions, told_us } => {
                put_pair(&mut out, TAKE_PART, positions.start);
                put(&mut out, positions.end.saturating_sub(positions.start));
                out.extend(told_us.to_le_bytes());
            }
            Message::Summary(summary) => put_summary(&mut out, summary),
            Message::Clients(clients) => {
                out.push(CLIENTS);
                put_clients(&mut out, clients);
            }
            Message::Ended { error } => put_pair(&mut out, ENDED, errno_of(*error)),
            Message::Place(access) => {
                out.push(PLACE);
                access.view.encode(&mut out);
                put(&mut out, access.bytes());
            }
            Message::AmongLeaders(message) => {
                out.push(AMONG_LEADERS);
                out.extend(message.encode());
            }
            Message::Inside(_) => {}
        }
        out
    }

    /// The message in these bytes.
    ///
    /// # Errors
    /// If they are not exactly one valid message.
    pub fn decode(mut bytes: &[u8]) -> Result<Message, MessageError> {
        let input = &mut bytes;
        let message = match take_byte(input, "a kind of message")? {
            DESCRIBE => Message::Describe(take_description(input)?),
            GRANT => Message::Grant { index: take(input)? },
            RELEASE => Message::Release { index: take(input)? },
            ACKNOWLEDGE => Message::Acknowledge { error: take_error(input)? },
            REGISTER => Message::Register(take_view(input)?),
            TAKE_PART => {
                let start = take(input)?;
                let positions = start..take_end(input, start)?;
                Message::TakePart { positions, told_us: take_us(input)? }
            }
            SUMMARY => Message::Summary(Box::new(take_summary(input)?)),
            SUMMARY_WITH_CLIENTS => {
                let summary = take_summary(input)?;
                Message::Summary(Box::new(Summary {
                    clients: Some(Box::new(take_clients(input)?)),
                    ..summary
                }))
            }
            CLIENTS => Message::Clients(take_clients(input)?),
            ENDED => Message::Ended { error: take_error(input)? },
            PLACE => {
                let view = take_view(input)?;
                let bytes = take(input)?;
                if bytes > view.limit() {
                    return Err(MessageError { expected: "a place for all data bytes" });
                }
                Message::Place(Access { view, positions: 0..bytes })
            }
            // Leaders have no leaders: there is one level.
            AMONG_LEADERS if input.first() != Some(&AMONG_LEADERS) => {
                return Ok(Message::AmongLeaders(Box::new(Message::decode(input)?)));
            }
            _ => return Err(MessageError { expected: "a kind of message from 1 to 12" }),
        };
        if bytes.is_empty() { Ok(message) } else { Err(MessageError { expected: "the end" }) }
    }
}

/// How the data of a piece go to another rank. Its number is the first byte of the message that tells of them; a
/// [`Message`] begins with a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// They are in their place in memory that both share, or are to be taken from there.
    InPlace = 16,
    /// In the message, behind the piece, in data order.
    InMessage = 17,
    /// In the sender's outbox, which both share; behind the piece is where: 8 bytes, little-endian.
    InOutbox = 18,
}

impl DataPath {
    const ALL: [DataPath; 3] = [DataPath::InPlace, DataPath::InMessage, DataPath::InOutbox];

    /// That of a message, if it tells of data.
    pub fn of(message: &[u8]) -> Option<DataPath> {
        DataPath::ALL.into_iter().find(|path| message.first() == Some(&(*path as u8)))
    }
}

impl Piece {
    /// Appends how its data go, the piece, and what went wrong with it, as the head of a message that tells of them.
    pub fn encode(&self, path: DataPath, error: Option<IoError>, out: &mut Vec<u8>) {
        out.push(path as u8);
        put(out, u64::from(self.client.0));
        put(out, self.index);
        put(out, self.window.start);
        put(out, self.window.end);
        put(out, self.positions.start);
        put(out, self.positions.end);
        put(out, errno_of(error));
    }

    /// Takes such a head off the front of `input`.
    ///
    /// # Errors
    /// If there is none.
    pub fn decode(input: &mut &[u8]) -> Result<(DataPath, Piece, Option<IoError>), MessageError> {
        let path = DataPath::of(input).ok_or(MessageError { expected: "a message of data" })?;
        take_byte(input, "a message of data")?;
        let client = u32::try_from(take(input)?).map_err(|_| MessageError { expected: "a rank" })?;
        let index = take(input)?;
        let window = take_range(input)?;
        let positions = take_range(input)?;
        let piece = Piece { client: Rank(client), index, window, positions };
        Ok((path, piece, take_error(input)?))
    }
}

fn take_description(input: &mut &[u8]) -> Result<Description, MessageError> {
    let bytes = take(input)?;
    let pieces = take(input)?;
    let bounds = take_range(input)?;
    let told_us = take_us(input)?;
    let access = match take_byte(input, "whether a view follows")? {
        0 => None,
        1 => {
            let view = take_view(input)?;
            let start = take(input)?;
            let end = start.checked_add(bytes).ok_or(MessageError { expected: "positions in 64 bits" })?;
            Some(Access { view, positions: start..end })
        }
        _ => return Err(MessageError { expected: "0 or 1" }),
    };
    let description = Description { bytes, pieces, bounds, told_us, access };
    let honest = description.access.as_ref().is_none_or(|access| access.bounds() == description.bounds);
    if honest && description.bounds.end - description.bounds.start >= bytes {
        Ok(description)
    } else {
        Err(MessageError { expected: "bounds that hold the data" })
    }
}

fn put_summary(out: &mut Vec<u8>, summary: &Summary) {
    out.push(if summary.clients.is_some() { SUMMARY_WITH_CLIENTS } else { SUMMARY });
    let Summary { busy, bytes, most_bytes, pieces, most_pieces, spans, most_span, .. } = *summary;
    let numbers = [u64::from(busy), bytes, most_bytes, pieces, most_pieces, spans, most_span];
    numbers.into_iter().for_each(|number| put(out, number));
    [summary.told_us, summary.most_told_us].into_iter().for_each(|us| out.extend(us.to_le_bytes()));
    out.push(u8::from(summary.is_interleaved));
    put(out, summary.intervals.len() as u64);
    let mut at = 0;
    for interval in &summary.intervals {
        put(out, interval.start - at);
        put(out, interval.end - interval.start);
        at = interval.end;
    }
    if let Some(clients) = &summary.clients {
        put_clients(out, clients);
    }
}

fn take_summary(input: &mut &[u8]) -> Result<Summary, MessageError> {
    let mut summary = Summary {
        busy: take_u32(input)?,
        bytes: take(input)?,
        most_bytes: take(input)?,
        pieces: take(input)?,
        most_pieces: take(input)?,
        spans: take(input)?,
        most_span: take(input)?,
        told_us: take_us(input)?,
        most_told_us: take_us(input)?,
        is_interleaved: take_byte(input, "whether ranks are interleaved")? != 0,
        intervals: Vec::new(),
        clients: None,
    };
    let intervals = take(input)?;
    if intervals > INTERVALS as u64 {
        return Err(MessageError { expected: "4 intervals at most" });
    }
    let mut at = 0;
    for _ in 0..intervals {
        let start = take_end(input, at)?;
        at = take_end(input, start)?;
        if at == start {
            return Err(MessageError { expected: "an interval with a byte" });
        }
        summary.intervals.push(start..at);
    }
    Ok(summary)
}

fn put_clients(out: &mut Vec<u8>, clients: &Clients) {
    put(out, clients.runs.len() as u64);
    let mut at = 0;
    for Run { aggregators, clients } in &clients.runs {
        put(out, u64::from(aggregators.start - at));
        put(out, u64::from(aggregators.end - aggregators.start));
        put(out, u64::from(*clients));
        at = aggregators.end;
    }
}

fn take_clients(input: &mut &[u8]) -> Result<Clients, MessageError> {
    let mut found = Clients::default();
    let mut at = 0_u32;
    for _ in 0..take(input)? {
        let [apart, count, clients] = [take_u32(input)?, take_u32(input)?, take_u32(input)?];
        let start = at.checked_add(apart);
        let aggregators = start.and_then(|start| Some(start..start.checked_add(count)?));
        let aggregators = aggregators.filter(|aggregators| !aggregators.is_empty() && clients > 0);
        let aggregators = aggregators.ok_or(MessageError { expected: "aggregators with clients" })?;
        at = aggregators.end;
        found.runs.push(Run { aggregators, clients });
    }
    Ok(found)
}

/// Bytes of a number.
fn size_of(value: u64) -> u64 {
    u64::from((u64::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

fn take_view(input: &mut &[u8]) -> Result<View, MessageError> {
    View::decode(input).map_err(|_| MessageError { expected: "a view" })
}

/// Where what begins at `start` ends: its length follows.
fn take_end(input: &mut &[u8], start: u64) -> Result<u64, MessageError> {
    start.checked_add(take(input)?).ok_or(MessageError { expected: "positions in 64 bits" })
}

fn put_pair(out: &mut Vec<u8>, kind: u8, value: u64) {
    out.push(kind);
    put(out, value);
}

fn errno_of(error: Option<IoError>) -> u64 {
    error.map_or(0, |error| u64::from(error.errno.unsigned_abs()))
}

fn take_byte(input: &mut &[u8], expected: &'static str) -> Result<u8, MessageError> {
    let (first, rest) = input.split_first().ok_or(MessageError { expected })?;
    *input = rest;
    Ok(*first)
}

/// Microseconds.
fn take_us(input: &mut &[u8]) -> Result<u64, MessageError> {
    let (us, rest) = input.split_first_chunk().ok_or(MessageError { expected: "8 bytes of microseconds" })?;
    *input = rest;
    Ok(u64::from_le_bytes(*us))
}

fn take(input: &mut &[u8]) -> Result<u64, MessageError> {
    number::take(input).map_err(|error| MessageError {
        expected: match error {
            NumberError::Cut => "a number",
            NumberError::TooLarge => "a number of 64 bits",
        },
    })
}

fn take_u32(input: &mut &[u8]) -> Result<u32, MessageError> {
    u32::try_from(take(input)?).map_err(|_| MessageError { expected: "a number of 32 bits" })
}

fn take_range(input: &mut &[u8]) -> Result<Range<u64>, MessageError> {
    let (start, end) = (take(input)?, take(input)?);
    if start <= end { Ok(start..end) } else { Err(MessageError { expected: "an interval" }) }
}

fn take_error(input: &mut &[u8]) -> Result<Option<IoError>, MessageError> {
    let errno = i32::try_from(take(input)?).map_err(|_| MessageError { expected: "an error number" })?;
    Ok((errno != 0).then_some(IoError { errno }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_go_there_and_back() {
        let access = Access { view: View::contiguous(24), positions: 7..1000 };
        let error = Some(IoError { errno: 28 });
        for message in [
            Message::Describe(Description::of(&access, true)),
            Message::Describe(Description { told_us: 300, ..Description::of(&access, false) }),
            Message::Grant { index: 0 },
            Message::Release { index: u64::MAX },
            Message::Acknowledge { error },
            Message::Acknowledge { error: None },
            Message::Register(View::contiguous(24)),
            Message::TakePart { positions: 7..1000, told_us: 5 },
            Message::TakePart { positions: 1 << 40..u64::MAX, told_us: 127 },
            Message::Summary(Summary { told_us: 9, most_told_us: 8, ..Summary::default() }.into()),
            Message::Summary(Box::new(Summary {
                is_interleaved: true,
                intervals: vec![3..7, 9..1 << 40],
                ..Summary::of(&Description::of(&access, false))
            })),
            Message::Summary(Box::new(Summary {
                clients: Some(Clients::one_of([3, 4, 9]).into()),
                ..Summary::of(&Description::of(&access, false))
            })),
            Message::Clients(Clients::default()),
            Message::Clients(Clients::one_of([0, 1, 7, 300, u32::MAX - 1])),
            Message::Ended { error },
            Message::Place(Access { view: View::contiguous(24), positions: 0..7 }),
            Message::AmongLeaders(Box::new(Message::Grant { index: 5 })),
        ] {
            assert_eq!(message.size(), message.encode().len() as u64, "{message:?}");
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        let piece = Piece { client: Rank(9), index: 3, window: 10..900, positions: 1..2 };
        let mut bytes = Vec::new();
        piece.encode(DataPath::InOutbox, error, &mut bytes);
        assert_eq!(Piece::decode(&mut &bytes[..]), Ok((DataPath::InOutbox, piece, error)));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Message::decode(&bytes);
            let _ = Piece::decode(&mut &bytes[..]);
        }

        #[test]
        fn damaged_descriptions_do_not_panic(at in 0usize..64, value in any::<u8>()) {
            let access = Access { view: View::contiguous(24), positions: 7..1000 };
            let description = Description::of(&access, true);
            let messages = [
                Message::Summary(Box::new(Summary { intervals: vec![3..7, 9..1 << 40], ..Summary::of(&description) })),
                Message::Summary(Box::new(Summary { clients: Some(Clients::one_of([0, 1, 7]).into()), ..Summary::default() })),
                Message::Clients(Clients::one_of([0, 1, 7, 300])),
                Message::Describe(description),
            ];
            for mut bytes in messages.map(|message| message.encode()) {
                let at = at % bytes.len();
                bytes[at] = value;
                if let Ok(message) = Message::decode(&bytes) {
                    let _ = message.encode();
                }
            }
        }
    }
}

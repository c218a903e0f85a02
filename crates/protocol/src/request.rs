//! What clients ask.
//!
//! A request is its kind, its number, how far below that number lies the first one not yet answered, and the fields of
//! its kind. Numbers are LEB128. A *file id* is two: the server that keeps its record, and its count there. A *file* is
//! its id and its placement (strip, factor, base, servers); an *access* is a
//! view (`0`: the whole file; `1`, number: the one of this number; `2`, number, encoding: this one, which has this number
//! from now on) and positions (start, length); or `3` and a list of extents (how many, and each: offset, length).
//!
//! | kind | request | fields | answer |
//! |---|---|---|---|
//! | 1 | look up | name | file |
//! | 2 | create | name, `1` if it must be new, placement | file |
//! | 3 | unlink | name | file |
//! | 4 | link | name, file id | file |
//! | 5 | list | prefix, name after which to begin, how many at most | names |
//! | 6 | describe | file id | record |
//! | 7 | forget | file id | done |
//! | 8 | move pointer | file id, by | value |
//! | 9 | set pointer | file id, value | done |
//! | 10 | lock | file id, lock number, `1` if shared, range | done or wait |
//! | 11 | unlock | file id, lock number | done |
//! | 12 | write | file, access; data | written |
//! | 13 | read | file, access | data |
//! | 14 | length | file | length |
//! | 15 | set length | file, bytes of the part | written |
//! | 16 | preallocate | file, bytes of the part | written |
//! | 17 | sync | file | written |
//! | 18 | remove part | file | done |
//! | 19 | usage | | usage |
//! | 20 | check | file | damage |
//! | 21 | goodbye | | done |
//! | 22 | parts | file id from which to begin, how many at most | parts |
//! | 23 | extend | file, bytes of the part | written |

use std::ops::Range;

use pio_layout::View;

use crate::error::ProtocolError;
use crate::extents::Extents;
use crate::limits::PATH_BYTES;
use crate::placement::Placement;
use crate::wire::{Input, put, put_bytes, put_range};

/// A file of a store. The upper 16 bits say which server keeps its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

impl FileId {
    /// The `count`-th file whose record server `home` keeps.
    pub fn new(home: u32, count: u64) -> FileId {
        FileId(u64::from(home) << 48 | count & ((1 << 48) - 1))
    }

    /// The server that keeps the file's record.
    pub fn home(self) -> u32 {
        (self.0 >> 48) as u32
    }

    /// A number that grows with each file whose record one server keeps, and says when the file was made by that server's clock: 2¹⁶
    /// times the seconds since 1970, or more if there were more files.
    pub fn count(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put(out, self.home().into());
        put(out, self.count());
    }

    pub(super) fn decode(input: &mut Input) -> Result<FileId, ProtocolError> {
        let (home, count) = (input.small("a file's home")?, input.number("a file's count")?);
        let file = FileId::new(home, count);
        let same = (file.home(), file.count()) == (home, count);
        if same { Ok(file) } else { Err(ProtocolError::Malformed { expected: "a file's home and count" }) }
    }
}

/// A path of the store: parts between single slashes, none of them empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// `path` in normal form: what is empty or `.` is left out. `None` if nothing is left, a part is `..`, a character is
    /// NUL, or it is too long.
    pub fn new(path: &str) -> Option<Name> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let name = parts.join("/");
        let good =
            !name.is_empty() && name.len() <= PATH_BYTES && !name.contains('\0') && !parts.contains(&"..");
        good.then_some(Name(name))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn decode(input: &mut Input) -> Result<Name, ProtocolError> {
        let text = input.string(PATH_BYTES, "a path")?;
        let wrong = ProtocolError::Malformed { expected: "a path in normal form" };
        Name::new(&text).filter(|name| name.0 == text).ok_or(wrong)
    }
}

/// A file, as servers that keep only data have to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileRef {
    /// Which file.
    pub id: FileId,
    /// Where its bytes are.
    pub placement: Placement,
}

/// Which view.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewRef {
    /// The whole file: positions are offsets.
    Whole,
    /// The one that has this number in this session.
    Numbered(u64),
    /// This one, which has this number in this session from now on. No two views have the same.
    New(u64, View),
    /// None: these extents. The positions are all of their bytes.
    Listed(Extents),
}

/// Which bytes of a file, symbolic.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The view.
    pub view: ViewRef,
    /// Which data bytes of it; the server takes those that it has.
    pub positions: Range<u64>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table above says what the fields are")]
pub enum Body {
    /// Which file has this name?
    LookUp { name: Name },
    /// Make a file, or take the one there is.
    Create { name: Name, exclusive: bool, placement: Placement },
    /// Take a name away.
    Unlink { name: Name },
    /// Give a file a (further) name; the answer says which file had it before.
    Link { name: Name, file: FileId },
    /// Which names are there?
    List { prefix: String, after: String, most: u32 },
    /// What is known of a file? For its home.
    Describe { file: FileId },
    /// The file is gone. For its home.
    Forget { file: FileId },
    /// Add to the shared file pointer, answer what it was. For the file's home.
    MovePointer { file: FileId, by: u64 },
    /// Set the shared file pointer. For the file's home.
    SetPointer { file: FileId, value: u64 },
    /// Lock a range, or ask again whether it is one's turn. For the file's home.
    Lock { file: FileId, lock: u64, shared: bool, range: Range<u64> },
    /// Give a lock (or the wish for it) back. For the file's home.
    Unlock { file: FileId, lock: u64 },
    /// Write: the data are those of the positions that are on this server, in order.
    Write { file: FileRef, access: Selection },
    /// Read those of the positions that are on this server, in order.
    Read { file: FileRef, access: Selection },
    /// How long is your part?
    Length { file: FileRef },
    /// Cut or extend your part.
    SetLength { file: FileRef, bytes: u64 },
    /// Make sure that there is room for so long a part, which stays as long as it is.
    Preallocate { file: FileRef, bytes: u64 },
    /// Your part is to be so long at least.
    Extend { file: FileRef, bytes: u64 },
    /// Make all that was written durable.
    Sync { file: FileRef },
    /// Remove your part.
    RemovePart { file: FileRef },
    /// What is in use?
    Usage,
    /// Compare your part with its checksums.
    Check { file: FileRef },
    /// The session is over.
    Goodbye,
    /// Of which files is there a part?
    Parts { from: FileId, most: u32 },
}

/// What is asked, numbered.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Counts up from 1 in a client's requests to a server. A repeated request has its old number.
    pub number: u64,
    /// All requests below this number have been answered and need not be remembered.
    pub answered: u64,
    /// What is asked.
    pub body: Body,
}

impl Body {
    /// Whether a server may need minutes for it.
    pub fn takes_long(&self) -> bool {
        matches!(
            self,
            Body::Sync { .. }
                | Body::Preallocate { .. }
                | Body::SetLength { .. }
                | Body::RemovePart { .. }
                | Body::Check { .. }
                // They go through folders that may have millions of parts.
                | Body::Usage
                | Body::Parts { .. }
        )
    }

    fn kind(&self) -> u8 {
        match self {
            Body::LookUp { .. } => 1,
            Body::Create { .. } => 2,
            Body::Unlink { .. } => 3,
            Body::Link { .. } => 4,
            Body::List { .. } => 5,
            Body::Describe { .. } => 6,
            Body::Forget { .. } => 7,
            Body::MovePointer { .. } => 8,
            Body::SetPointer { .. } => 9,
            Body::Lock { .. } => 10,
            Body::Unlock { .. } => 11,
            Body::Write { .. } => 12,
            Body::Read { .. } => 13,
            Body::Length { .. } => 14,
            Body::SetLength { .. } => 15,
            Body::Preallocate { .. } => 16,
            Body::Sync { .. } => 17,
            Body::RemovePart { .. } => 18,
            Body::Usage => 19,
            Body::Check { .. } => 20,
            Body::Goodbye => 21,
            Body::Parts { .. } => 22,
            Body::Extend { .. } => 23,
        }
    }
}

impl Request {
    /// Appends the request's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.body.kind());
        put(out, self.number);
        put(out, self.number.saturating_sub(self.answered));
        match &self.body {
            Body::LookUp { name } | Body::Unlink { name } => put_bytes(out, name.0.as_bytes()),
            Body::Create { name, exclusive, placement } => {
                put_bytes(out, name.0.as_bytes());
                out.push(u8::from(*exclusive));
                placement.encode(out);
            }
            Body::Link { name, file } => {
                put_bytes(out, name.0.as_bytes());
                file.encode(out);
            }
            Body::List { prefix, after, most } => {
                put_bytes(out, prefix.as_bytes());
                put_bytes(out, after.as_bytes());
                put(out, u64::from(*most));
            }
            Body::Describe { file } | Body::Forget { file } => file.encode(out),
            Body::MovePointer { file, by: value } | Body::SetPointer { file, value } => {
                file.encode(out);
                put(out, *value);
            }
            Body::Lock { file, lock, shared, range } => {
                file.encode(out);
                put(out, *lock);
                out.push(u8::from(*shared));
                put_range(out, range);
            }
            Body::Unlock { file, lock } => {
                file.encode(out);
                put(out, *lock);
            }
            Body::Write { file, access } | Body::Read { file, access } => {
                file.encode(out);
                access.encode(out);
            }
            Body::SetLength { file, bytes }
            | Body::Preallocate { file, bytes }
            | Body::Extend { file, bytes } => {
                file.encode(out);
                put(out, *bytes);
            }
            Body::Length { file }
            | Body::Sync { file }
            | Body::RemovePart { file }
            | Body::Check { file } => {
                file.encode(out);
            }
            Body::Usage | Body::Goodbye => {}
            Body::Parts { from, most } => {
                from.encode(out);
                put(out, u64::from(*most));
            }
        }
    }

    /// The request in these bytes.
    ///
    /// # Errors
    /// If they are not exactly one.
    pub fn decode(bytes: &[u8]) -> Result<Request, ProtocolError> {
        let mut input = Input::new(bytes);
        let input = &mut input;
        let kind = input.byte("a kind of request")?;
        let number = input.number("a number")?;
        let distance = input.number("a distance")?;
        let answered =
            number.checked_sub(distance).ok_or(ProtocolError::Malformed { expected: "a number answered" })?;
        let body = decode_body(kind, input)?;
        input.end()?;
        Ok(Request { number, answered, body })
    }
}

fn decode_body(kind: u8, input: &mut Input) -> Result<Body, ProtocolError> {
    Ok(match kind {
        1 => Body::LookUp { name: Name::decode(input)? },
        2 => Body::Create {
            name: Name::decode(input)?,
            exclusive: input.flag()?,
            placement: Placement::decode(input)?,
        },
        3 => Body::Unlink { name: Name::decode(input)? },
        4 => Body::Link { name: Name::decode(input)?, file: FileId::decode(input)? },
        5 => Body::List {
            prefix: input.string(PATH_BYTES, "a prefix")?,
            after: input.string(PATH_BYTES, "a path")?,
            most: input.small("a number")?,
        },
        6 => Body::Describe { file: FileId::decode(input)? },
        7 => Body::Forget { file: FileId::decode(input)? },
        8 => Body::MovePointer { file: FileId::decode(input)?, by: input.number("a value")? },
        9 => Body::SetPointer { file: FileId::decode(input)?, value: input.number("a value")? },
        10 => Body::Lock {
            file: FileId::decode(input)?,
            lock: input.number("a lock")?,
            shared: input.flag()?,
            range: input.range()?,
        },
        11 => Body::Unlock { file: FileId::decode(input)?, lock: input.number("a lock")? },
        12 => Body::Write { file: FileRef::decode(input)?, access: Selection::decode(input)? },
        13 => Body::Read { file: FileRef::decode(input)?, access: Selection::decode(input)? },
        14 => Body::Length { file: FileRef::decode(input)? },
        15 => Body::SetLength { file: FileRef::decode(input)?, bytes: input.number("a length")? },
        16 => Body::Preallocate { file: FileRef::decode(input)?, bytes: input.number("a length")? },
        17 => Body::Sync { file: FileRef::decode(input)? },
        18 => Body::RemovePart { file: FileRef::decode(input)? },
        19 => Body::Usage,
        20 => Body::Check { file: FileRef::decode(input)? },
        21 => Body::Goodbye,
        22 => Body::Parts { from: FileId::decode(input)?, most: input.small("a number")? },
        23 => Body::Extend { file: FileRef::decode(input)?, bytes: input.number("a length")? },
        _ => return Err(ProtocolError::Malformed { expected: "a kind of request from 1 to 23" }),
    })
}

fn view(input: &mut Input) -> Result<View, ProtocolError> {
    View::decode(&mut input.rest).map_err(|_| ProtocolError::Malformed { expected: "a view" })
}

impl FileRef {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.id.encode(out);
        self.placement.encode(out);
    }

    pub(super) fn decode(input: &mut Input) -> Result<FileRef, ProtocolError> {
        Ok(FileRef { id: FileId::decode(input)?, placement: Placement::decode(input)? })
    }
}

impl Selection {
    /// All bytes of a list.
    pub fn listed(extents: Extents) -> Selection {
        let positions = 0..extents.bytes();
        Selection { view: ViewRef::Listed(extents), positions }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.view {
            ViewRef::Whole => out.push(0),
            ViewRef::Numbered(number) => {
                out.push(1);
                put(out, *number);
            }
            ViewRef::New(number, view) => {
                out.push(2);
                put(out, *number);
                view.encode(out);
            }
            ViewRef::Listed(extents) => {
                out.push(3);
                return extents.encode(out);
            }
        }
        put_range(out, &self.positions);
    }

    fn decode(input: &mut Input) -> Result<Selection, ProtocolError> {
        let view = match input.byte("a kind of view")? {
            0 => ViewRef::Whole,
            1 => ViewRef::Numbered(input.number("a view's number")?),
            2 => ViewRef::New(input.number("a view's number")?, view(input)?),
            3 => return Ok(Selection::listed(Extents::decode(input)?)),
            _ => return Err(ProtocolError::Malformed { expected: "a kind of view from 0 to 3" }),
        };
        Ok(Selection { view, positions: input.range()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_layout::Datatype;
    use proptest::prelude::*;

    fn one_of_each() -> Vec<Body> {
        let placement = Placement::new(65536, 3, 2, 4).unwrap();
        let file = FileRef { id: FileId::new(3, 99), placement };
        let column = View::new(4, 4, Datatype::bytes(4).resized(0, 8).unwrap()).unwrap();
        let name = || Name::new("run/a.nc").unwrap();
        let access = |view| Selection { view, positions: 7..4096 };
        let list = Extents::new(vec![(4, 9), (13, 1), (1 << 40, 70)]).unwrap();
        vec![
            Body::LookUp { name: name() },
            Body::Create { name: name(), exclusive: true, placement },
            Body::Unlink { name: name() },
            Body::Link { name: name(), file: file.id },
            Body::List { prefix: "run/".into(), after: String::new(), most: 100 },
            Body::Describe { file: file.id },
            Body::Forget { file: file.id },
            Body::MovePointer { file: file.id, by: 9 },
            Body::SetPointer { file: file.id, value: 1 << 40 },
            Body::Lock { file: file.id, lock: 3, shared: false, range: 10..20 },
            Body::Unlock { file: file.id, lock: 3 },
            Body::Write { file, access: access(ViewRef::Numbered(1)) },
            Body::Read { file, access: access(ViewRef::New(1, column)) },
            Body::Read { file, access: access(ViewRef::Whole) },
            Body::Write { file, access: Selection::listed(list) },
            Body::Length { file },
            Body::SetLength { file, bytes: 0 },
            Body::Preallocate { file, bytes: 1 << 30 },
            Body::Extend { file, bytes: 1 << 30 },
            Body::Sync { file },
            Body::RemovePart { file },
            Body::Usage,
            Body::Check { file },
            Body::Goodbye,
            Body::Parts { from: file.id, most: 100 },
        ]
    }

    fn encoded(request: &Request) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        bytes
    }

    #[test]
    fn requests_go_there_and_back() {
        for body in one_of_each() {
            let request = Request { number: 1000, answered: 990, body };
            assert_eq!(Request::decode(&encoded(&request)), Ok(request));
        }
    }

    #[test]
    fn a_million_pieces_take_tens_of_bytes() {
        let placement = Placement::new(65536, 4, 0, 4).unwrap();
        let access = Selection { view: ViewRef::Numbered(1), positions: 0..4_000_000 };
        let body = Body::Write { file: FileRef { id: FileId::new(3, 99), placement }, access };
        assert!(encoded(&Request { number: 1 << 30, answered: 1 << 30, body }).len() < 40);
    }

    #[test]
    fn paths_cannot_leave_the_store() {
        assert_eq!(Name::new("/a//./b/").unwrap().as_str(), "a/b");
        for path in ["", "/", ".", "..", "a/../b", "a\0b", &"x".repeat(PATH_BYTES + 1)] {
            assert_eq!(Name::new(path), None, "{path}");
        }
        let mut bytes = vec![1, 1, 0];
        put_bytes(&mut bytes, b"../etc");
        assert!(Request::decode(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Request::decode(&bytes);
        }

        #[test]
        fn damaged_requests_decode_or_fail_without_panic(which in 0usize..27, at in any::<usize>(), value in any::<u8>()) {
            let bodies = one_of_each();
            let body = bodies[which % bodies.len()].clone();
            let mut bytes = encoded(&Request { number: 5, answered: 5, body });
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(request) = Request::decode(&bytes) {
                prop_assert_eq!(Request::decode(&encoded(&request)), Ok(request));
            }
        }
    }
}

//! The bytes of a log, plain or compressed by gzip in one or more members.
//!
//! A member that cannot be decompressed to its end gives what can be; reading goes on with the next member.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// What a member begins with: gzip's number, and that of its one method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

const BUFFER_BYTES: usize = 1 << 16;

/// Bytes taken that are kept: a member that was cut shows only some way into the next one.
const KEPT_BYTES: usize = 1 << 17;

/// Bytes that may be read again, at first and for each byte of the log; and what it costs to try whether a member begins, in
/// such bytes. Where bytes were put so that each third seems to begin a member, they would be read thousands of times.
const AGAIN_AT_FIRST: u64 = 1 << 20;
const AGAIN_FOR_EACH: u64 = 8;
const TRY_COSTS: u64 = 4096;

/// Places of damage that are kept.
const MOST_PLACES: usize = 3;

/// Whether a file that starts so is compressed.
pub(super) fn is_packed(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Reads a log, decompressed where it must be.
pub(super) struct Members<R> {
    state: State<R>,
    damaged: Damaged,
    /// Whether anything came out of a member since the last damage: what only looks like a member gives nothing, and is
    /// part of the damage before it.
    gave: bool,
}

/// Where bytes could not be decompressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Damaged {
    /// The first offsets, in the compressed file.
    pub(super) places: Vec<u64>,
    pub(super) count: u64,
}

enum State<R> {
    Unknown(Input<R>),
    Plain(Input<R>),
    Packed(Box<GzDecoder<Input<R>>>),
    End,
}

impl<R: Read> Members<R> {
    pub(super) fn new(log: R) -> Members<R> {
        let input =
            Input { inner: log, buffer: Vec::new(), start: 0, offset: 0, member: 0, again: AGAIN_AT_FIRST };
        Members { state: State::Unknown(input), damaged: Damaged::default(), gave: true }
    }

    pub(super) fn damaged(self) -> Damaged {
        self.damaged
    }

    fn take_note(&mut self, offset: u64) {
        if !std::mem::take(&mut self.gave) {
            return;
        }
        self.damaged.count += 1;
        if self.damaged.places.len() < MOST_PLACES {
            self.damaged.places.push(offset);
        }
    }

    /// Goes on with the member that comes next, if there is one.
    fn go_on(&mut self, mut input: Input<R>) -> io::Result<()> {
        if !input.fill(MAGIC.len())?.starts_with(&MAGIC) {
            if input.fill(1)?.is_empty() {
                return Ok(());
            }
            self.take_note(input.offset);
            if !input.skip_to_member()? {
                return Ok(());
            }
        }
        input.member = input.offset;
        self.state = State::Packed(Box::new(GzDecoder::new(input)));
        Ok(())
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, State::End) {
                State::End => return Ok(0),
                State::Unknown(mut input) => {
                    let is_packed = input.fill(MAGIC.len())?.starts_with(&MAGIC);
                    self.state = if is_packed {
                        State::Packed(Box::new(GzDecoder::new(input)))
                    } else {
                        State::Plain(input)
                    };
                }
                State::Plain(mut input) => {
                    let len = input.read(buffer)?;
                    self.state = State::Plain(input);
                    return Ok(len);
                }
                State::Packed(mut member) => match member.read(buffer) {
                    Ok(0) => self.go_on(member.into_inner())?,
                    Ok(len) => {
                        self.gave = true;
                        self.state = State::Packed(member);
                        return Ok(len);
                    }
                    Err(error) if is_damage(error.kind()) => {
                        let mut input = member.into_inner();
                        self.take_note(input.offset);
                        input.go_back();
                        if input.skip_to_member()? {
                            input.member = input.offset;
                            self.state = State::Packed(Box::new(GzDecoder::new(input)));
                        }
                        // What comes next is no part of the line that was cut.
                        buffer[0] = b'\n';
                        return Ok(1);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof)
}

/// Bytes that can be looked at before they are taken.
struct Input<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Of the bytes in the buffer, how many are taken.
    start: usize,
    /// Bytes taken in all.
    offset: u64,
    /// Where the member begins.
    member: u64,
    /// Bytes that may be read again.
    again: u64,
}

impl<R: Read> Input<R> {
    /// What comes next: so many bytes at least, if there are.
    fn fill(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.start < least {
            let old = self.start.saturating_sub(KEPT_BYTES);
            self.buffer.drain(..old);
            self.start -= old;
            let had = self.buffer.len();
            self.buffer.resize(had + BUFFER_BYTES, 0);
            let read = self.inner.read(&mut self.buffer[had..]);
            self.buffer.truncate(had + read.as_ref().copied().unwrap_or(0));
            let read = read?;
            if read == 0 {
                break;
            }
            self.again += AGAIN_FOR_EACH * read as u64;
        }
        Ok(&self.buffer[self.start..])
    }

    /// Goes back to behind the beginning of the member, or as near to it as bytes are kept and may be read again.
    fn go_back(&mut self) {
        let taken = usize::try_from(self.offset - self.member).unwrap_or(usize::MAX);
        let back = self.start.min(taken.saturating_sub(1)) as u64;
        if back <= self.again {
            self.again -= back;
            self.start -= back as usize;
            self.offset -= back;
        }
    }

    /// Passes over bytes up to what looks like a member, and may be tried; false if there is none.
    fn skip_to_member(&mut self) -> io::Result<bool> {
        loop {
            let may_be_tried = self.again >= TRY_COSTS;
            let ahead = self.fill(MAGIC.len())?;
            let (len, found) = (ahead.len(), ahead.windows(MAGIC.len()).position(|bytes| bytes == MAGIC));
            if let Some(at) = found.filter(|_| may_be_tried) {
                self.consume(at);
                self.again -= TRY_COSTS;
                return Ok(true);
            }
            if len < MAGIC.len() {
                return Ok(false);
            }
            self.consume(len + 1 - MAGIC.len());
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ahead = self.fill(1)?;
        let len = ahead.len().min(buffer.len());
        buffer[..len].copy_from_slice(&ahead[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill(1)
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn read(log: &[u8]) -> (Vec<u8>, Damaged) {
        let (mut members, mut text) = (Members::new(log), Vec::new());
        members.read_to_end(&mut text).expect("memory can be read");
        (text, members.damaged())
    }

    #[test]
    fn plain_and_packed_are_the_same() {
        let text: Vec<u8> = (0..200_000u32).flat_map(|it| it.to_le_bytes()).collect();
        let whole = (text.clone(), Damaged::default());
        assert_eq!(read(&text), whole);
        assert_eq!(read(&packed(&text)), whole);
        let (first, second) = text.split_at(123_456);
        assert_eq!(read(&[packed(first), packed(second)].concat()), whole);
        assert_eq!(read(b""), (Vec::new(), Damaged::default()));
    }

    #[test]
    fn a_broken_member_costs_no_other() {
        let [first, second, third] = [b"one\n", b"two\n", b"six\n"].map(|text| packed(text));
        let mut broken = second.clone();
        broken.truncate(second.len() - 9);
        let log = [&first[..], &broken, &third].concat();
        let (text, damaged) = read(&log);
        assert!(text.starts_with(b"one\n") && text.ends_with(b"\nsix\n"), "{text:?}");
        assert_eq!(damaged.count, 1);
        let behind = [&first[..], b"rubbish", &third].concat();
        let expected = Damaged { places: vec![first.len() as u64], count: 1 };
        assert_eq!(read(&behind), (b"one\nsix\n".to_vec(), expected));
    }

    proptest! {
        /// Wherever a member is cut, the others are read.
        #[test]
        fn the_members_beside_a_cut_one_are_read(
            texts in prop::collection::vec("[a-z]{0,400}", 2..6),
            which in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
        ) {
            let which = which.index(texts.len());
            let mut log = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                let mut member = packed(format!("\n<{text}>\n").as_bytes());
                if number == which {
                    // What is left is known to be a member.
                    member.truncate(MAGIC.len() + at.index(member.len() - MAGIC.len()));
                }
                log.extend(member);
            }
            let (found, damaged) = read(&log);
            prop_assert_eq!(damaged.count, 1);
            let found = String::from_utf8_lossy(&found);
            for (_, text) in texts.iter().enumerate().filter(|(number, _)| *number != which) {
                prop_assert!(found.contains(&format!("\n<{text}>\n")), "{found:?}");
            }
        }
    }

    /// Each third byte began what looked like a member, whose head went on for 64 KiB: a megabyte took minutes.
    #[test]
    fn false_members_are_not_read_again_and_again() {
        let log = MAGIC.repeat(1 << 18);
        let Members { state: State::Unknown(mut input), .. } = Members::new(&log[..]) else {
            panic!("nothing was read")
        };
        let (mut taken, mut tries) = (0, 0);
        while input.skip_to_member().expect("memory can be read") {
            input.member = input.offset;
            let head = input.fill(1 << 16).expect("memory can be read").len().min(1 << 16);
            input.consume(head);
            input.go_back();
            (taken, tries) = (taken + head as u64, tries + 1);
        }
        let most = AGAIN_AT_FIRST + (AGAIN_FOR_EACH + 1) * log.len() as u64;
        assert!(taken <= most && tries <= most / TRY_COSTS, "{taken} bytes, {tries} tries");
    }

    #[test]
    fn a_cut_member_gives_its_beginning() {
        let text = b"0123456789abcdef".repeat(10_000);
        let mut log = packed(&text);
        log.truncate(log.len() / 2);
        let (found, damaged) = read(&log);
        let lines: Vec<_> = found.split(|&byte| byte == b'\n').collect();
        assert!(text.starts_with(lines[0]) && lines[0].len() > 1000, "{}", lines[0].len());
        assert_eq!((lines.len(), damaged.count), (2, 1));
    }
}

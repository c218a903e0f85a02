//! What a client asked a server and was not answered yet, as a state machine.

use std::collections::BTreeMap;

use pio_layout::View;

use super::split::Chunk;
use super::transfer::Direction;
use crate::error::Failure;
use crate::extents::Extents;
use crate::reply::{Reply, ReplyBody};
use crate::request::{Body, FileRef, Request, Selection, ViewRef};

/// Views whose numbers are remembered.
const MOST_VIEWS: usize = 64;

/// A client's side of its talk with one server: lasts over connections that break, and over the server's restarts.
#[derive(Debug)]
pub struct ClientSession {
    next: u64,
    outstanding: BTreeMap<u64, Asked>,
    /// Locks to be given back, as nobody waits for them any more.
    releases: BTreeMap<u64, Body>,
    views: BTreeMap<u64, Known>,
    next_view: u64,
}

/// A request that was not answered yet.
#[derive(Debug)]
struct Asked {
    body: Body,
    /// What it moves, if it moves data.
    chunk: Option<Chunk>,
}

/// A view, by its number.
#[derive(Debug)]
struct Known {
    view: View,
    /// Whether the server was told, and has not forgotten, as far as the client knows.
    told: bool,
    /// When it was last used: the number of the next request then.
    used: u64,
}

/// What a reply means.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Nothing: the request was answered before.
    Nothing,
    /// The answer of a request.
    Answer {
        /// Its number.
        number: u64,
        /// What it moved, if it moved data.
        chunk: Option<Chunk>,
        /// What is answered.
        body: ReplyBody,
    },
    /// The server forgot something: ask this in the place of that request.
    Again {
        /// The number of the request that failed.
        instead_of: u64,
        /// What to send.
        request: Request,
    },
}

impl Default for ClientSession {
    fn default() -> ClientSession {
        ClientSession::new()
    }
}

impl ClientSession {
    /// The beginning.
    pub fn new() -> ClientSession {
        ClientSession {
            next: 1,
            outstanding: BTreeMap::new(),
            releases: BTreeMap::new(),
            views: BTreeMap::new(),
            next_view: 1,
        }
    }

    /// A connection was made: all that has to be sent over it, in order.
    pub fn connected(&mut self) -> Vec<Request> {
        // The server may be another one by now, which knows of no view.
        self.views.values_mut().for_each(|known| known.told = false);
        let answered = self.answered();
        let outstanding = self.outstanding.iter().map(|(number, asked)| (*number, &asked.body));
        let releases = self.releases.iter().map(|(number, body)| (*number, body));
        let mut all: Vec<Request> = outstanding
            .chain(releases)
            .map(|(number, body)| Request { number, answered, body: body.clone() })
            .collect();
        all.sort_unstable_by_key(|request| request.number);
        all
    }

    /// Asks; the request is to be sent.
    pub fn ask(&mut self, body: Body) -> Request {
        self.ask_for(body, None)
    }

    /// Asks for a chunk of a view of a file to be moved, by the view or by a list of the pieces ([`Chunk::extents`]); the request
    /// is to be sent, with the chunk's data if they are written.
    pub fn ask_chunk(
        &mut self,
        file: FileRef,
        view: &View,
        list: Option<Extents>,
        chunk: Chunk,
        direction: Direction,
    ) -> Request {
        let access = match (list, &chunk.part) {
            (Some(list), _) => Selection::listed(list),
            (None, Some(part)) => self.access_part(part.clone(), chunk.len),
            (None, None) => self.access(view, chunk.positions.clone()),
        };
        let body = match direction {
            Direction::Write => Body::Write { file, access },
            Direction::Read => Body::Read { file, access },
        };
        self.ask_for(body, Some(chunk))
    }

    fn ask_for(&mut self, body: Body, chunk: Option<Chunk>) -> Request {
        let number = self.next;
        self.next += 1;
        self.outstanding.insert(number, Asked { body: body.clone(), chunk });
        Request { number, answered: self.answered(), body }
    }

    /// How to speak of `positions` of a view, in a request that is asked next: with the view, if the server does not know it
    /// yet.
    fn access(&mut self, view: &View, positions: std::ops::Range<u64>) -> Selection {
        let displacement = view.displacement();
        if *view == View::contiguous(displacement) {
            let positions = positions.start + displacement..positions.end + displacement;
            return Selection { view: ViewRef::Whole, positions };
        }
        let used = self.next;
        let known = self.views.iter_mut().find(|(_, known)| known.view == *view);
        let view = match known {
            Some((&number, known)) => {
                known.used = used;
                match std::mem::replace(&mut known.told, true) {
                    true => ViewRef::Numbered(number),
                    false => ViewRef::New(number, view.clone()),
                }
            }
            None => {
                self.make_room();
                let number = self.next_view;
                self.next_view += 1;
                self.views.insert(number, Known { view: view.clone(), told: true, used });
                ViewRef::New(number, view.clone())
            }
        };
        Selection { view, positions }
    }

    /// How to speak of a chunk's part of a view: it is told each time, as few are asked for again.
    fn access_part(&mut self, part: View, len: u64) -> Selection {
        let view = ViewRef::New(self.next_view, part);
        self.next_view += 1;
        Selection { view, positions: 0..len }
    }

    /// Takes a reply.
    pub fn hear(&mut self, reply: Reply) -> Heard {
        let Some(Asked { body, chunk }) = self.outstanding.remove(&reply.number) else {
            // Whoever waited for the lock was told long ago: even that it is lost is no news.
            self.releases.remove(&reply.number);
            return Heard::Nothing;
        };
        match (body, reply.body) {
            (Body::Write { file, access }, Err(Failure::UnknownView)) => {
                self.spelled_out(reply.number, access, chunk, |access| Body::Write { file, access })
            }
            (Body::Read { file, access }, Err(Failure::UnknownView)) => {
                self.spelled_out(reply.number, access, chunk, |access| Body::Read { file, access })
            }
            (_, body) => Heard::Answer { number: reply.number, chunk, body },
        }
    }

    /// How many requests are not answered yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// The request as it is to be sent now, if it is not answered yet.
    pub fn request(&self, number: u64) -> Option<Request> {
        let body = self.outstanding.get(&number)?.body.clone();
        Some(Request { number, answered: self.answered(), body })
    }

    /// What a request that is not answered yet moves, if it moves data.
    pub fn chunk(&self, number: u64) -> Option<&Chunk> {
        self.outstanding.get(&number)?.chunk.as_ref()
    }

    /// Gives up all that is not answered; whatever is answered means nothing. True if there was something: it may be half
    /// done, so the connection must go with it, that nothing of it is done after what comes next.
    ///
    /// A lock that was asked for, or was to be given back, may be held all the same: over the next connection it is given
    /// back, or this client would keep it from all, itself included, for as long as it lives.
    #[must_use]
    pub fn abandon(&mut self) -> bool {
        let abandoned = std::mem::take(&mut self.outstanding);
        for Asked { body, .. } in abandoned.values() {
            if let Body::Lock { file, lock, .. } | Body::Unlock { file, lock } = *body {
                self.releases.insert(self.next, Body::Unlock { file, lock });
                self.next += 1;
            }
        }
        !abandoned.is_empty()
    }

    /// All below have been answered.
    fn answered(&self) -> u64 {
        let first = |number: Option<&u64>| number.copied().unwrap_or(self.next);
        first(self.outstanding.keys().next()).min(first(self.releases.keys().next()))
    }

    /// The same access with the view in full: the server does not know the number.
    fn spelled_out(
        &mut self,
        number: u64,
        access: Selection,
        chunk: Option<Chunk>,
        body: impl FnOnce(Selection) -> Body,
    ) -> Heard {
        let known = match access.view {
            ViewRef::Numbered(view) => self.views.get_mut(&view).map(|known| (view, known)),
            _ => None,
        };
        let Some((view, known)) = known else {
            return Heard::Answer { number, chunk, body: Err(Failure::UnknownView) };
        };
        known.told = true;
        let access = Selection { view: ViewRef::New(view, known.view.clone()), positions: access.positions };
        Heard::Again { instead_of: number, request: self.ask_for(body(access), chunk) }
    }

    /// Forgets the view that was not used for longest, if there are many, unless something that was asked still means it.
    fn make_room(&mut self) {
        if self.views.len() >= MOST_VIEWS {
            let meant = |number: u64| self.outstanding.values().any(|asked| means(&asked.body, number));
            let free = self.views.iter().filter(|(number, _)| !meant(**number));
            let oldest = free.min_by_key(|(_, known)| known.used).map(|(number, _)| *number);
            oldest.and_then(|number| self.views.remove(&number));
        }
    }
}

/// Whether a request speaks of the view by its number.
fn means(body: &Body, number: u64) -> bool {
    let (Body::Write { access, .. } | Body::Read { access, .. }) = body else { return false };
    access.view == ViewRef::Numbered(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Answer;
    use crate::request::FileId;

    /// Its program was told that the lock was not had, and knows of nothing to give back.
    #[test]
    fn a_lock_that_nobody_waits_for_is_given_back() {
        let (file, lock) = (FileId::new(0, 1), 7);
        let mut link = ClientSession::new();
        let asked = link.ask(Body::Lock { file, lock, shared: false, range: 0..9 });
        assert!(link.abandon());
        assert!(!link.abandon());
        assert_eq!(link.outstanding(), 0);
        let next = link.ask(Body::Usage);
        let number = asked.number + 1;
        // The server must remember what it answers to the release.
        let release = Request { number, answered: number, body: Body::Unlock { file, lock } };
        assert_eq!(next.answered, number);
        assert_eq!(link.connected(), [release.clone(), next.clone()]);
        // The connection broke again before both were answered.
        assert_eq!(link.connected(), [release, next.clone()]);
        let reply = |number| Reply { number, body: Ok(Answer::Done) };
        assert_eq!(link.hear(reply(number)), Heard::Nothing);
        assert!(matches!(link.hear(reply(next.number)), Heard::Answer { .. }));
        assert_eq!(link.connected(), []);
    }
}

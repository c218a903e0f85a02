//! What a client asked a server and was not answered yet, as a state machine.

use std::collections::BTreeMap;

use pio_layout::View;

use crate::error::Failure;
use crate::protocol::{Access, Body, Reply, ReplyBody, Request, ViewRef};

/// Views whose numbers are remembered.
const MOST_VIEWS: usize = 64;

/// A client's side of its talk with one server: lasts over connections that break, and over the server's restarts.
#[derive(Debug)]
pub struct Link {
    next: u64,
    outstanding: BTreeMap<u64, Body>,
    views: BTreeMap<u64, Known>,
    next_view: u64,
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
        /// Which.
        number: u64,
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

impl Default for Link {
    fn default() -> Link {
        Link::new()
    }
}

impl Link {
    /// The beginning.
    pub fn new() -> Link {
        Link { next: 1, outstanding: BTreeMap::new(), views: BTreeMap::new(), next_view: 1 }
    }

    /// Asks; the request is to be sent.
    pub fn ask(&mut self, body: Body) -> Request {
        let number = self.next;
        self.next += 1;
        self.outstanding.insert(number, body.clone());
        Request { number, answered: self.answered(), body }
    }

    /// How to speak of `positions` of a view, in a request that is asked next: with the view, if the server does not know it
    /// yet.
    pub fn access(&mut self, view: &View, positions: std::ops::Range<u64>) -> Access {
        let displacement = view.displacement();
        if *view == View::contiguous(displacement) {
            let positions = positions.start + displacement..positions.end + displacement;
            return Access { view: ViewRef::Whole, positions };
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
        Access { view, positions }
    }

    /// Takes a reply.
    pub fn hear(&mut self, reply: Reply) -> Heard {
        let Some(body) = self.outstanding.remove(&reply.number) else { return Heard::Nothing };
        match (body, reply.body) {
            (Body::Write { file, access }, Err(Failure::UnknownView)) => {
                self.spelled_out(reply.number, access, |access| Body::Write { file, access })
            }
            (Body::Read { file, access }, Err(Failure::UnknownView)) => {
                self.spelled_out(reply.number, access, |access| Body::Read { file, access })
            }
            (_, body) => Heard::Answer { number: reply.number, body },
        }
    }

    /// All that has to be sent again over a new connection, in order.
    pub fn again(&mut self) -> Vec<Request> {
        // The server may be another one by now, which knows of no view.
        self.views.values_mut().for_each(|known| known.told = false);
        let answered = self.answered();
        let repeat = |(&number, body): (&u64, &Body)| Request { number, answered, body: body.clone() };
        self.outstanding.iter().map(repeat).collect()
    }

    /// How many requests are not answered yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// The request as it is to be sent now, if it is not answered yet.
    pub fn request(&self, number: u64) -> Option<Request> {
        let body = self.outstanding.get(&number)?.clone();
        Some(Request { number, answered: self.answered(), body })
    }

    /// Gives up a request: whatever is answered means nothing.
    pub fn forget(&mut self, number: u64) {
        self.outstanding.remove(&number);
    }

    /// All below have been answered.
    fn answered(&self) -> u64 {
        self.outstanding.keys().next().copied().unwrap_or(self.next)
    }

    /// The same access with the view in full: the server does not know the number.
    fn spelled_out(&mut self, number: u64, access: Access, body: impl FnOnce(Access) -> Body) -> Heard {
        let known = match access.view {
            ViewRef::Numbered(view) => self.views.get_mut(&view).map(|known| (view, known)),
            _ => None,
        };
        let Some((view, known)) = known else {
            return Heard::Answer { number, body: Err(Failure::UnknownView) };
        };
        known.told = true;
        let access = Access { view: ViewRef::New(view, known.view.clone()), positions: access.positions };
        Heard::Again { instead_of: number, request: self.ask(body(access)) }
    }

    /// Forgets the view that was not used for longest, if there are many, unless something that was asked still means it.
    fn make_room(&mut self) {
        if self.views.len() >= MOST_VIEWS {
            let meant = |number: u64| self.outstanding.values().any(|body| means(body, number));
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

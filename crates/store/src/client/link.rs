//! What a client asked a server and was not answered yet, as a state machine.

use std::collections::BTreeMap;

use pio_layout::View;

use crate::error::Failure;
use crate::protocol::{Access, Body, Reply, ReplyBody, Request, ViewRef};

/// Views that a client keeps registered at a server.
const MOST_VIEWS: usize = 64;

/// A client's side of its talk with one server: lasts over connections that break, and over the server's restarts.
#[derive(Debug)]
pub struct Link {
    next: u64,
    outstanding: BTreeMap<u64, Body>,
    views: BTreeMap<u32, Known>,
    next_view: u32,
}

/// A view, by its number.
#[derive(Debug)]
struct Known {
    view: View,
    /// Whether the server knows it too, as far as the client knows.
    registered: bool,
    /// When it was last used: the number of the next request then.
    used: u64,
}

/// What a reply means.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Nothing: the request was answered before, or was the link's own.
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

    /// How to speak of `positions` of a view: if the server does not know it yet, the request comes first that tells it.
    pub fn access(&mut self, view: &View, positions: std::ops::Range<u64>) -> (Access, Vec<Request>) {
        let displacement = view.displacement();
        if *view == View::contiguous(displacement) {
            let positions = positions.start + displacement..positions.end + displacement;
            return (Access { view: ViewRef::Whole, positions }, Vec::new());
        }
        let known = self.views.iter().find(|(_, known)| known.view == *view).map(|(number, _)| *number);
        let mut requests = Vec::new();
        let number = known.unwrap_or_else(|| {
            if self.views.len() >= MOST_VIEWS {
                requests.extend(self.forget_oldest());
            }
            let number = self.next_view;
            self.next_view = self.next_view.wrapping_add(1).max(1);
            number
        });
        let used = self.next;
        let known = self.views.entry(number).or_insert(Known { view: view.clone(), registered: false, used });
        known.used = used;
        if !std::mem::replace(&mut known.registered, true) {
            requests.push(self.ask(Body::RegisterView { view: number, layout: view.clone() }));
        }
        (Access { view: ViewRef::Registered(number), positions }, requests)
    }

    /// Takes a reply.
    pub fn hear(&mut self, reply: Reply) -> Heard {
        let Some(body) = self.outstanding.remove(&reply.number) else { return Heard::Nothing };
        match (body, reply.body) {
            (Body::RegisterView { view, .. }, Err(_)) => {
                self.unregister(view);
                Heard::Nothing
            }
            (Body::RegisterView { .. } | Body::ForgetView { .. }, _) => Heard::Nothing,
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
        self.outstanding
            .retain(|_, body| !matches!(body, Body::RegisterView { .. } | Body::ForgetView { .. }));
        let repeated: Vec<(u64, Body)> =
            self.outstanding.iter().map(|(number, body)| (*number, body.clone())).collect();
        let mut views = Vec::new();
        for (number, known) in &mut self.views {
            known.registered = true;
            views.push((*number, known.view.clone()));
        }
        let mut requests: Vec<Request> =
            views.into_iter().map(|(view, layout)| self.ask(Body::RegisterView { view, layout })).collect();
        let answered = self.answered();
        requests.extend(repeated.into_iter().map(|(number, body)| Request { number, answered, body }));
        requests
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
            ViewRef::Registered(view) => self.unregister(view),
            _ => None,
        };
        let Some(view) = known else {
            return Heard::Answer { number, body: Err(Failure::UnknownView) };
        };
        let access = Access { view: ViewRef::Inline(view), positions: access.positions };
        Heard::Again { instead_of: number, request: self.ask(body(access)) }
    }

    /// Notes that the server does not know a view.
    fn unregister(&mut self, view: u32) -> Option<View> {
        let known = self.views.get_mut(&view)?;
        known.registered = false;
        Some(known.view.clone())
    }

    /// Gives up the view that was not used for longest, unless something that was asked still means it.
    fn forget_oldest(&mut self) -> Option<Request> {
        let means = |view: u32| move |body: &Body| matches!(body, Body::Write { access, .. } | Body::Read { access, .. } if access.view == ViewRef::Registered(view));
        let free = self.views.iter().filter(|(view, _)| !self.outstanding.values().any(means(**view)));
        let oldest = free.min_by_key(|(_, known)| known.used).map(|(view, _)| *view)?;
        self.views.remove(&oldest);
        Some(self.ask(Body::ForgetView { view: oldest }))
    }
}

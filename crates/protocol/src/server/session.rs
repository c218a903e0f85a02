//! What a server remembers of a client.

use std::collections::{BTreeMap, BTreeSet};

use pio_layout::View;

use super::{ConnectionId, GRACE_MS};
use crate::error::Failure;
use crate::limits::Limits;
use crate::process::ClientProcess;
use crate::reply::{Answer, ReplyBody};
use crate::request::Request;

/// A client's session: lasts over connections that break.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Option<ConnectionId>,
    /// Who it is.
    pub(super) process: ClientProcess,
    pub(super) gone_since_ms: u64,
    /// For how long it is expected back.
    pub(super) grace_ms: u64,
    /// The request that said goodbye.
    pub(super) farewell: Option<u64>,
    /// All requests below have been answered, and the client knows it.
    answered: u64,
    /// Requests that are worked on.
    running: BTreeSet<u64>,
    /// Answers that the client may not have seen.
    answers: BTreeMap<u64, ReplyBody>,
    views: BTreeMap<u64, (View, u64)>,
    view_bytes: u64,
}

/// What a request is to its session.
pub(super) enum Heard {
    /// To be worked on.
    New,
    /// Over, or worked on already: its answer was seen or will come.
    Over,
    /// A repeated one.
    Answered(ReplyBody),
}

impl Session {
    pub(super) fn new() -> Session {
        Session {
            connection: None,
            process: ClientProcess::default(),
            gone_since_ms: 0,
            grace_ms: GRACE_MS,
            farewell: None,
            answered: 0,
            running: BTreeSet::new(),
            answers: BTreeMap::new(),
            views: BTreeMap::new(),
            view_bytes: 0,
        }
    }

    pub(super) fn is_working(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn hear(&mut self, request: &Request, limits: &Limits) -> Heard {
        if request.answered > self.answered {
            self.answered = request.answered;
            self.answers = self.answers.split_off(&self.answered);
        }
        if request.number < self.answered || self.running.contains(&request.number) {
            return Heard::Over;
        }
        match self.answers.get(&request.number) {
            Some(answer) => Heard::Answered(answer.clone()),
            None if self.answers.len() + self.running.len() >= limits.unacknowledged as usize => {
                Heard::Answered(Err(Failure::Limit))
            }
            None => Heard::New,
        }
    }

    pub(super) fn begin(&mut self, number: u64) {
        self.running.insert(number);
    }

    pub(super) fn end(&mut self, number: u64) {
        self.running.remove(&number);
    }

    pub(super) fn remember(&mut self, number: u64, answer: &ReplyBody) {
        // What is long and changes nothing is not kept, but done again.
        let long = matches!(
            answer,
            Ok(Answer::Data { .. } | Answer::Names { .. } | Answer::Damage { .. } | Answer::Parts { .. })
        );
        if number >= self.answered && !long {
            self.answers.insert(number, answer.clone());
        }
    }

    pub(super) fn view(&self, number: u64) -> Option<&View> {
        self.views.get(&number).map(|(view, _)| view)
    }

    /// Keeps a view under its number, as long as there is room: the client hears that it is not known any more when it says
    /// the number.
    pub(super) fn keep_view(&mut self, number: u64, view: View, limits: &Limits) {
        self.forget_view(number);
        let mut encoding = Vec::new();
        view.encode(&mut encoding);
        let bytes = encoding.len() as u64;
        let most = u64::from(limits.view_bytes);
        if bytes > most {
            return;
        }
        while self.views.len() >= limits.views as usize || self.view_bytes + bytes > most {
            // Numbers count up.
            let Some((&oldest, _)) = self.views.first_key_value() else { return };
            self.forget_view(oldest);
        }
        self.view_bytes += bytes;
        self.views.insert(number, (view, bytes));
    }

    fn forget_view(&mut self, number: u64) {
        if let Some((_, bytes)) = self.views.remove(&number) {
            self.view_bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_views_make_room() {
        let view = |displacement: u64| View::contiguous(displacement);
        let mut encoding = Vec::new();
        view(1).encode(&mut encoding);
        let bytes = encoding.len() as u32;
        let mut session = Session::new();
        let limits = Limits { views: 3, view_bytes: 10 * bytes, ..Limits::DEFAULT };
        for number in [1, 2, 2, 3, 4] {
            session.keep_view(number, view(number), &limits);
        }
        let known =
            |session: &Session| (0..9).filter(|number| session.view(*number).is_some()).collect::<Vec<_>>();
        assert_eq!(known(&session), [2, 3, 4]);
        session.keep_view(5, view(5), &Limits { view_bytes: 2 * bytes, ..limits });
        assert_eq!(known(&session), [4, 5]);
        session.keep_view(6, view(6), &Limits { view_bytes: bytes - 1, ..limits });
        assert_eq!(known(&session), [4, 5]);
    }
}

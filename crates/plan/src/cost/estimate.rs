//! The closed form of each strategy.

use crate::access::Direction;
use crate::cost::setting::Setting;
use crate::cost::terms::{Behind, FORESEEN_BYTES, Terms};
use crate::direct::is_direct;
use crate::guard::Guard;
use crate::leaders::Teams;
use crate::operation::Operation;
use crate::sieving::are_far_apart;
use crate::strategy::Strategy;
use crate::tree::Tree;

/// A step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The ranks tell each other what they access.
    Describe,
    /// Pieces are packed, or put in place.
    Arrange,
    /// Data go between ranks.
    Exchange,
    /// Requests are made and taken in, locks included.
    Request,
    /// Data go between ranks and servers.
    Transfer,
    /// Data go to the file, or come from it.
    Store,
}

impl Part {
    /// What people read.
    pub fn name(self) -> &'static str {
        match self {
            Part::Describe => "descriptions",
            Part::Arrange => "packing",
            Part::Exchange => "exchange",
            Part::Request => "requests",
            Part::Transfer => "transfer",
            Part::Store => "file",
        }
    }
}

/// How long an operation takes under one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The strategy that is estimated.
    pub strategy: Strategy,
    /// Seconds of each step that there is.
    pub parts: Vec<(Part, f64)>,
    /// Bytes that go from rank to rank, or between ranks and servers.
    pub wire_bytes: u64,
}

impl Estimate {
    /// Seconds of all steps.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|(_, seconds)| seconds).sum()
    }

    /// The step that takes longest.
    pub fn longest(&self) -> Option<Part> {
        self.parts.iter().max_by(|one, two| one.1.total_cmp(&two.1)).map(|(part, _)| *part)
    }
}

/// What `operation` takes under `strategy`; none if that cannot be there (ECIO without servers, view-based two-phase
/// without views, independent I/O, which locks nothing, beside ranks that sieve), is no strategy by itself (auto) or only predicted.
pub fn estimate(
    strategy: Strategy,
    operation: &Operation,
    setting: &Setting,
    terms: &Terms,
) -> Option<Estimate> {
    let is_possible = match strategy {
        Strategy::Auto | Strategy::Romio | Strategy::Ompio => false,
        Strategy::Ecio => setting.servers > 0,
        Strategy::ViewBased => setting.views,
        // A rank that is through may sieve in its next operation, and write back what it read before another rank's piece came.
        Strategy::Independent => setting.guard == Guard::Open,
        Strategy::Sieving | Strategy::List | Strategy::TwoPhase => true,
    };
    if !is_possible {
        return None;
    }
    let mut sum = Sum { operation, setting, terms, parts: Vec::new(), wire_bytes: 0 };
    if operation.bytes > 0 {
        match strategy {
            Strategy::Independent => sum.independent(),
            Strategy::Sieving => sum.sieving(),
            Strategy::List => sum.list(),
            Strategy::TwoPhase => sum.two_phase(true),
            Strategy::ViewBased => sum.two_phase(false),
            Strategy::Ecio => sum.ecio(),
            Strategy::Auto | Strategy::Romio | Strategy::Ompio => {}
        }
    }
    Some(Estimate { strategy, parts: sum.parts, wire_bytes: sum.wire_bytes })
}

/// Bytes of an extent in a list: offset and length.
const EXTENT_BYTES: u64 = 16;

/// Bytes of a page of memory.
const PAGE: u64 = 4096;

/// Bytes of the blocks whose checksums servers keep.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Bytes of a request with a view, or without: tens.
const REQUEST_BYTES: u64 = 64;

struct Sum<'a> {
    operation: &'a Operation,
    setting: &'a Setting,
    terms: &'a Terms,
    parts: Vec<(Part, f64)>,
    wire_bytes: u64,
}

/// What callers ask of the file or the servers.
struct Requests {
    /// Those who ask.
    callers: u64,
    /// Requests of the caller that makes most.
    own: u64,
    /// Requests of all.
    all: u64,
    /// Accesses to the file that these come to.
    accesses: u64,
    /// Bytes of the caller that has most.
    own_bytes: u64,
    /// Bytes of all.
    all_bytes: u64,
    /// Whether each access is one run of bytes; else they are lists.
    in_runs: bool,
    /// Whether callers wait for each other.
    in_turn: bool,
    /// Whether the processor's cache has the bytes.
    are_cached: bool,
}

impl Sum<'_> {
    fn independent(&mut self) {
        let operation = self.operation;
        self.request(&Requests {
            callers: u64::from(operation.busy),
            own: operation.most_pieces,
            all: operation.pieces,
            accesses: operation.pieces,
            own_bytes: operation.most_bytes,
            all_bytes: operation.bytes,
            in_runs: true,
            in_turn: false,
            are_cached: false,
        });
        self.miss();
    }

    /// What calls of each piece take longer because the processor's cache has it not, nor foresees it. A write that makes a page has it.
    fn miss(&mut self) {
        let (operation, terms) = (self.operation, self.terms);
        if !terms.are_of_node(self.setting.servers) {
            return;
        }
        let gaps = operation.most_span.saturating_sub(operation.most_bytes) as f64;
        let gap = gaps / operation.most_pieces.max(1) as f64;
        let unforeseen = (gap / FORESEEN_BYTES as f64).min(1.0);
        let missing_s = match operation.direction {
            Direction::Read => {
                operation.most_pieces as f64 * self.crowd(operation.busy.into()) * terms.read_miss_s
            }
            Direction::Write => {
                let made = operation.span.div_ceil(PAGE);
                operation.pieces.saturating_sub(made) as f64 * terms.write_miss_s
            }
        };
        self.add(Part::Request, missing_s * unforeseen);
    }

    /// Windows of each rank's span; to write, they are read first, and ranks that overlap wait for each other.
    fn sieving(&mut self) {
        let operation = self.operation;
        let writes = operation.direction == Direction::Write;
        let windows = operation.most_span.div_ceil(self.setting.sieve_buffer);
        // On servers nothing can be locked.
        if operation.is_contiguous()
            || are_far_apart(operation.most_pieces, operation.most_span)
            || writes && self.setting.servers > 0
        {
            self.lock(if operation.is_contiguous() { 1 } else { windows.min(operation.most_pieces) });
            return self.independent();
        }
        let all =
            operation.spans.div_ceil(self.setting.sieve_buffer).max(u64::from(operation.busy)).max(windows);
        self.arrange(u64::from(operation.busy), operation.most_pieces, operation.most_bytes);
        let in_turn = writes && operation.is_interleaved;
        let mut spans = Requests {
            callers: u64::from(operation.busy),
            own: windows,
            all,
            accesses: all,
            own_bytes: operation.most_span,
            all_bytes: operation.spans,
            in_runs: true,
            in_turn,
            are_cached: false,
        };
        if writes {
            let locks = if in_turn { all } else { windows };
            self.add(Part::Request, locks as f64 * self.terms.lock_s);
            // Who has one window locked lets others read the next.
            let one_window = operation.span <= self.setting.sieve_buffer;
            self.request_going(&Requests { in_turn: in_turn && one_window, ..spans }, Direction::Read);
            // What is written back has just been read; and so has the memory that it is in.
            let window = self.setting.sieve_buffer.min(operation.most_span) as f64;
            spans.are_cached =
                self.terms.are_of_node(self.setting.servers) && 2.0 * window <= self.terms.cached_bytes;
        }
        self.request(&spans);
        if in_turn {
            self.through_one_by_one();
        }
    }

    /// Ranks go one after the other, and those that are through compute, unless they meet next: in the mean half of the others, on the
    /// processor of the one whose turn it is, while one rank is through early and another late.
    fn through_one_by_one(&mut self) {
        if self.setting.meets_next || !self.terms.are_of_node(self.setting.servers) {
            return;
        }
        let (ranks, busy) = (self.operation.busy.into(), f64::from(self.operation.busy.max(1)));
        let through = (busy + 1.0) / (2.0 * busy);
        let longer = ((self.crowd(ranks) + 1.0) / 2.0 * through).max(1.0);
        self.parts.iter_mut().for_each(|(_, seconds)| *seconds *= longer);
    }

    /// Requests that list extents; a file takes them one by one.
    fn list(&mut self) {
        let operation = self.operation;
        // Where there are locks, each locks all from its first byte to its last.
        let writes = operation.direction == Direction::Write;
        let in_turn = writes && operation.is_interleaved && self.setting.guard == Guard::Alone;
        self.lock(if in_turn { u64::from(operation.busy) } else { 1 });
        match self.servers() {
            Some(servers) => self.lists_to(servers, in_turn),
            None => self.independent(),
        }
        if in_turn {
            self.through_one_by_one();
        }
    }

    /// Lists to so many servers.
    fn lists_to(&mut self, servers: f64, in_turn: bool) {
        let operation = self.operation;
        let lists = |pieces: u64| pieces.div_ceil(self.setting.list_extents.max(1));
        let (own, all) =
            (lists(operation.most_pieces), lists(operation.pieces).max(u64::from(operation.busy)));
        let all = all.max(own);
        let busy = u64::from(operation.busy);
        let extents = operation.most_pieces as f64 + operation.pieces as f64 / self.at_a_time(busy);
        self.add(Part::Request, extents * self.terms.extent_s);
        let most_listed = operation.most_pieces.saturating_mul(EXTENT_BYTES) as f64;
        let listed = operation.pieces.saturating_mul(EXTENT_BYTES);
        let through_link = most_listed.max(listed as f64 / servers);
        self.add(Part::Transfer, through_link / self.terms.network_bytes_per_s);
        self.wire(listed);
        self.place();
        self.request(&Requests {
            callers: busy,
            own,
            all,
            accesses: self.accesses_in(all),
            own_bytes: operation.most_bytes,
            all_bytes: operation.bytes,
            in_runs: operation.is_contiguous(),
            in_turn,
            are_cached: false,
        });
    }

    /// So many locks one after the other, if another rank may be sieving.
    fn lock(&mut self, locks: u64) {
        if self.setting.guard != Guard::Open {
            self.add(Part::Request, locks as f64 * self.terms.lock_s);
        }
    }

    /// Descriptions, unless views are known to all; then each rank for itself, through leaders, or by an exchange: as two-phase
    /// decides it.
    fn two_phase(&mut self, describes: bool) {
        let (operation, setting) = (self.operation, self.setting);
        self.describe(describes);
        if is_direct(operation, setting.strips_are_known) {
            return self.independent();
        }
        let worth = |teams: &Teams| teams.are_worth_it(operation, setting.collective_buffer, self.terms);
        match setting.teams.filter(worth) {
            Some(teams) => self.through_leaders(teams),
            None => self.exchange(),
        }
    }

    /// Members describe their accesses to their leader and hear where their data belong; data go to it, or come from it; and who
    /// wrote hears that they are written. Between, the leaders carry out an operation of their own.
    fn through_leaders(&mut self, teams: Teams) {
        let operation = self.operation;
        let members = u64::from(teams.most.saturating_sub(1));
        let (saying, all) = (2 * members, 2 * u64::from(operation.ranks.saturating_sub(teams.leaders)));
        self.add(Part::Describe, saying as f64 * self.terms.message_s);
        let endings = if operation.direction == Direction::Write { members } else { 0 };
        self.add(Part::Exchange, (members + endings) as f64 * self.terms.message_s);
        self.wire(all.saturating_mul(REQUEST_BYTES));
        let among = operation.among(teams);
        // Pieces of ranks that overlap take turns in what is gathered; of others, each has one run of it.
        let scattered = if operation.is_interleaved { operation.most_pieces } else { 1 };
        let gathered = scattered.saturating_mul(teams.most.into());
        self.arrange(teams.leaders.into(), gathered, among.most_bytes);
        let setting = self.setting.among(teams);
        let (terms, parts) = (self.terms, Vec::new());
        let mut leaders = Sum { operation: &among, setting: &setting, terms, parts, wire_bytes: 0 };
        leaders.two_phase(true);
        let Sum { parts, wire_bytes, .. } = leaders;
        parts.into_iter().for_each(|(part, seconds)| self.add(part, seconds));
        self.wire(wire_bytes);
    }

    /// Windows of the file domains, exchanged and accessed in turn.
    fn exchange(&mut self) {
        let operation = self.operation;
        let ranks = u64::from(operation.ranks);
        let aggregators = u64::from(self.setting.aggregators.max(1));
        let domain = operation.span.div_ceil(aggregators);
        let rounds = domain.div_ceil(self.setting.collective_buffer).max(1);
        // Ranks that have just described their accesses are all at it: nobody is at its turn with something else.
        let turns_s = if self.setting.described {
            0.0
        } else {
            self.terms.turns_s(operation.ranks, self.setting.processors)
        };
        let saying_s = if self.setting.described_to_all {
            rounds as f64 * self.terms.saying_s(operation.ranks)
        } else {
            self.describe_to_aggregators();
            self.data_messages(rounds) * self.terms.saying_one_s(operation.ranks)
        };
        let messages = saying_s + rounds as f64 * turns_s;
        // Of what a rank has, and of what an aggregator takes, the part that is not its own.
        let others = (ranks - 1) as f64 / ranks as f64;
        if self.setting.shared_memory {
            // Every rank puts its own pieces in place, or picks them out: there is no other way for them to go.
            self.arrange(u64::from(operation.busy), operation.most_pieces, operation.most_bytes);
            self.add(Part::Exchange, messages);
        } else {
            let bytes = operation.bytes.div_ceil(aggregators);
            self.arrange(aggregators, operation.pieces.div_ceil(aggregators), bytes);
            let busiest = operation.most_bytes.max(bytes) as f64;
            self.add(Part::Exchange, messages + busiest * others / self.terms.network_bytes_per_s);
        }
        self.wire((operation.bytes as f64 * others) as u64);
        let windows = Requests {
            callers: aggregators,
            own: rounds,
            all: rounds.saturating_mul(aggregators),
            accesses: rounds.saturating_mul(aggregators),
            own_bytes: domain,
            all_bytes: operation.span,
            in_runs: true,
            in_turn: false,
            are_cached: false,
        };
        // Gaps are filled with what the file holds.
        if operation.direction == Direction::Write && !operation.is_dense() {
            self.request_going(&windows, Direction::Read);
        }
        self.request(&windows);
    }

    /// Messages of the rank or aggregator that has most, where ranks talk only to those with whom they have data: data, and a word of
    /// the aggregator for each window beyond the first two. Where gaps are left, all end together; other acknowledgements nobody
    /// answers.
    fn data_messages(&self, rounds: u64) -> f64 {
        let operation = self.operation;
        let aggregators = u64::from(self.setting.aggregators.max(1));
        let of_windows = self.busiest(rounds.saturating_mul(aggregators));
        let granted = of_windows * rounds.saturating_sub(2) as f64 / rounds as f64;
        let ends_together = operation.direction == Direction::Write && !operation.is_dense();
        let ends = if ends_together { 2 * Tree::depth(operation.ranks) } else { 0 };
        of_windows + granted + f64::from(ends)
    }

    /// Of so many equal parts of the span, dealt out to the aggregators: in how many the rank with most has data, or how many ranks
    /// have data in those of an aggregator, whichever is more.
    fn busiest(&self, parts: u64) -> f64 {
        let operation = self.operation;
        let (parts, aggregators) = (parts as f64, f64::from(self.setting.aggregators.max(1)));
        let parts_in = |bytes: u64| bytes as f64 * parts / operation.span.max(1) as f64;
        // No more than its pieces reach, however far they are from each other.
        let reached = operation.most_pieces as f64 + parts_in(operation.most_bytes);
        let touched = (parts_in(operation.most_span) + 1.0).min(reached).min(parts);
        let heard = f64::from(operation.busy) * touched / aggregators;
        touched.max(heard.min(f64::from(operation.ranks - 1) * parts / aggregators))
    }

    /// What ranks say until each knows what all access together.
    fn describe(&mut self, with_views: bool) {
        let ranks = u64::from(self.operation.ranks);
        if self.setting.described {
            return;
        }
        if !self.setting.described_to_all {
            self.add_up();
            let turns_s = self.terms.turns_s(self.operation.ranks, self.setting.processors);
            self.add(Part::Describe, turns_s);
        } else if with_views {
            self.add(Part::Describe, self.terms.talk_s(self.operation.ranks, self.setting.processors));
            self.wire(ranks.saturating_mul(ranks - 1).saturating_mul(REQUEST_BYTES));
        }
    }

    /// The numbers of clients are added up, if they were not along with the summaries, and descriptions go to the aggregators:
    /// the rank that says or hears most of them is done last.
    fn describe_to_aggregators(&mut self) {
        if !self.setting.bounds_are_known {
            self.add_up();
        }
        let aggregators = u64::from(self.setting.aggregators.max(1));
        let most = self.busiest(aggregators);
        self.add(Part::Describe, most * self.terms.message_s);
        self.wire(((most * aggregators as f64) as u64).saturating_mul(REQUEST_BYTES));
    }

    /// A sum goes up the tree of ranks and comes down.
    fn add_up(&mut self) {
        let steps = 2 * Tree::depth(self.operation.ranks);
        self.add(Part::Describe, f64::from(steps) * self.terms.message_s);
        self.wire(2 * u64::from(self.operation.ranks - 1) * REQUEST_BYTES);
    }

    /// Each rank one request to each server, with its data as they lie in memory (Hong, You and Chung 2006, section 4.1).
    fn ecio(&mut self) {
        let operation = self.operation;
        let busy = u64::from(operation.busy);
        self.place();
        self.request(&Requests {
            callers: busy,
            own: 1,
            all: busy,
            accesses: self.accesses_in(busy),
            own_bytes: operation.most_bytes,
            all_bytes: operation.bytes,
            in_runs: operation.is_contiguous(),
            in_turn: false,
            are_cached: false,
        });
    }

    /// Servers put the pieces of requests in place, or pick them out; with processors of their own, while data come or go.
    fn place(&mut self) {
        let operation = self.operation;
        if operation.is_contiguous() {
            return;
        }
        let bytes = operation.bytes.min(operation.pieces.saturating_mul(PAGE)) as f64;
        let work =
            operation.pieces as f64 * self.terms.placed_piece_s + bytes / self.terms.placed_bytes_per_s;
        let moving = match self.terms.share_processors {
            true => 0.0,
            false => operation.bytes as f64 / self.terms.network_bytes_per_s,
        };
        self.add(Part::Arrange, (work - moving).max(0.0) / self.at_a_time(operation.busy.into()));
    }

    /// Accesses to the file of so many requests that name all pieces: one each, or, where pieces are long, one a piece.
    fn accesses_in(&self, requests: u64) -> u64 {
        let operation = self.operation;
        let are_long = !operation.is_contiguous() && operation.bytes / operation.pieces.max(1) >= PAGE;
        if are_long { operation.pieces } else { requests }
    }

    /// Servers that work at the same time for so many callers; if they share the ranks' processors, threads of theirs, of
    /// which each caller has one at each server.
    fn at_a_time(&self, callers: u64) -> f64 {
        let Some(servers) = self.servers() else { return 1.0 };
        let threads = servers * callers.max(1) as f64;
        if self.terms.share_processors { threads.min(self.setting.processors.into()) } else { servers }
    }

    /// Servers that share the work of the operation: all that take views; of those behind the kernel, as many as have strips of its
    /// span. None for a plain file.
    fn servers(&self) -> Option<f64> {
        if self.setting.servers > 0 {
            return Some(self.setting.servers.into());
        }
        let Behind { servers, strip } = self.terms.behind?;
        Some((self.operation.span as f64 / strip as f64).min(servers.into()).max(1.0))
    }

    /// The same, where data are long runs: of the threads of a server that shares the ranks' processors, only one writes such to
    /// a file at a time.
    fn writing_at_a_time(&self, requests: &Requests, direction: Direction) -> f64 {
        let at_a_time = self.at_a_time(requests.callers);
        let accesses = self.to_servers(requests.accesses, requests.all_bytes);
        let are_blocks = requests.in_runs && requests.all_bytes as f64 >= accesses * BLOCK_BYTES as f64;
        let alone = are_blocks && direction == Direction::Write && self.terms.share_processors;
        if alone { at_a_time.min(self.servers().unwrap_or(1.0)) } else { at_a_time }
    }

    /// So many ranks pack, or put in place, at the same time.
    fn arrange(&mut self, ranks: u64, pieces: u64, bytes: u64) {
        let work = pieces as f64 * self.terms.piece_s + bytes as f64 / self.terms.copy_bytes_per_s;
        self.add(Part::Arrange, work * self.crowd(ranks));
    }

    fn request(&mut self, requests: &Requests) {
        self.request_going(requests, self.operation.direction);
    }

    /// Seconds of a request where it is served, bytes a second, and seconds of the processor of the rank that asks.
    fn costs_of(&self, direction: Direction) -> (f64, f64, f64) {
        let terms = self.terms;
        match direction {
            Direction::Read => (terms.read_s, terms.read_bytes_per_s, terms.asking_read_s),
            Direction::Write => (terms.write_s, terms.write_bytes_per_s, terms.asking_write_s),
        }
    }

    fn request_going(&mut self, requests: &Requests, direction: Direction) {
        let (request_s, rate, asking_s) = self.costs_of(direction);
        let (own_bytes, all_bytes) = (requests.own_bytes as f64, requests.all_bytes as f64);
        if let (0, Some(behind)) = (self.setting.servers, self.terms.behind) {
            return self.request_behind(requests, behind, direction);
        }
        if self.setting.servers == 0 {
            // Most kernels let only one process at a time write a file; readers have their processors, or wait side by side.
            let alone = requests.in_turn || direction == Direction::Write;
            let crowd = if self.terms.is_remote { 1.0 } else { self.crowd(requests.callers) };
            let calls = if alone { requests.all as f64 } else { requests.own as f64 * crowd };
            let moving = if alone || self.terms.is_remote { all_bytes } else { own_bytes * crowd };
            self.add(Part::Request, calls * request_s);
            let rate = if requests.are_cached { rate.max(self.terms.cached_bytes_per_s) } else { rate };
            self.add(Part::Store, moving / rate);
            if direction == Direction::Write {
                self.new_pages(requests);
            }
            return;
        }
        let servers = f64::from(self.setting.servers);
        let (own, all) = (
            self.to_servers(requests.own, requests.own_bytes),
            self.to_servers(requests.all, requests.all_bytes),
        );
        let at_a_time = self.at_a_time(requests.callers);
        // A rank's own work is one for all servers that a request goes to.
        let (asking, waiting) = match requests.in_turn {
            true => (requests.all as f64, all),
            false => (requests.own as f64 * self.crowd(requests.callers), own),
        };
        self.add(Part::Request, asking * asking_s + waiting * self.terms.message_s);
        self.add(Part::Request, all / at_a_time * request_s);
        let link = if requests.in_turn { all_bytes } else { own_bytes.max(all_bytes / servers) };
        self.add(Part::Transfer, link / self.terms.network_bytes_per_s);
        self.add(Part::Store, all_bytes / self.writing_at_a_time(requests, direction) / rate);
        if direction == Direction::Write {
            self.new_pages(requests);
        }
        self.wire(requests.all_bytes.saturating_add((all * REQUEST_BYTES as f64) as u64));
    }

    /// Requests to servers behind the kernel. A rank's requests go one after the other, and those of all share the servers: an
    /// operation ends with the last rank, or with the last server.
    fn request_behind(&mut self, requests: &Requests, behind: Behind, direction: Direction) {
        let (operation, terms) = (self.operation, self.terms);
        let (request_s, rate, asking_s) = self.costs_of(direction);
        let at_a_time = self.at_a_time(requests.callers);
        let (own, all) = (requests.own.max(1) as f64, requests.all as f64);
        let (own_bytes, all_bytes) = (requests.own_bytes as f64, requests.all_bytes as f64);
        // Servers that a request goes to: those of the strips that it reaches into.
        let (long, most) = match requests.in_runs {
            true => (own_bytes, f64::INFINITY),
            false => (operation.most_span as f64, operation.most_pieces as f64 / own),
        };
        let wide = (1.0 + long / own / behind.strip as f64).min(most).min(at_a_time).max(1.0);
        // Where callers wait for each other, the requests of all go one after the other.
        let (calls, bytes) = if requests.in_turn { (all, all_bytes) } else { (own, own_bytes) };
        let crowd = if requests.in_turn { 1.0 } else { self.crowd(requests.callers) };
        self.add(Part::Request, calls * (asking_s * crowd + 2.0 * terms.message_s));
        let one_by_one = calls * request_s + bytes / wide / rate;
        let queued = (all * wide * request_s + all_bytes / rate) / at_a_time;
        self.add(Part::Store, one_by_one.max(queued));
        // The ranks of a node share its link.
        let on_node = requests.callers.div_ceil(self.setting.nodes.into()) as f64;
        let link =
            if requests.in_turn { all_bytes } else { (own_bytes * on_node).max(all_bytes / at_a_time) };
        self.add(Part::Transfer, link / terms.network_bytes_per_s);
        if direction == Direction::Write {
            self.new_pages(requests);
        }
        self.wire(requests.all_bytes.saturating_add((all * wide * REQUEST_BYTES as f64) as u64));
    }

    /// What writes take longer because the file is new: each page is so once, whoever writes the most of it.
    fn new_pages(&mut self, requests: &Requests) {
        let bytes = requests.all_bytes.min(self.operation.span);
        let accesses = self.to_servers(requests.accesses, bytes).min(bytes.div_ceil(PAGE) as f64);
        let at_a_time = self.writing_at_a_time(requests, Direction::Write);
        self.add(Part::Request, accesses * self.terms.new_pages_s / at_a_time);
        self.add(Part::Store, bytes as f64 * self.terms.new_byte_s / at_a_time);
    }

    /// Requests that servers get of so many for so many bytes: each goes to all servers that have a strip of it. A file gets them as
    /// they are.
    fn to_servers(&self, requests: u64, bytes: u64) -> f64 {
        let strips = bytes.div_ceil(self.setting.strip.max(1));
        requests.saturating_mul(u64::from(self.setting.servers.max(1))).min(requests.saturating_add(strips))
            as f64
    }

    /// How much slower so many busy ranks are than one, for want of processors.
    fn crowd(&self, ranks: u64) -> f64 {
        (ranks as f64 / f64::from(self.setting.processors)).max(1.0)
    }

    fn add(&mut self, part: Part, seconds: f64) {
        match self.parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, sum)) => *sum += seconds,
            None => self.parts.push((part, seconds)),
        }
    }

    fn wire(&mut self, bytes: u64) {
        self.wire_bytes = self.wire_bytes.saturating_add(bytes);
    }
}

//! Clients and a server, both state machines, stepped by hand: messages are lost, doubled and overtake each other,
//! connections break, the server restarts, work takes its time; and each byte is what it would be without all that.

use std::collections::BTreeMap;

use pio_layout::{Datatype, View};
use pio_protocol::client::{ClientSession, Direction, Heard, Split};
use pio_protocol::server::{Action, CLOSED_GRACE_MS, ConnectionId, Event, GRACE_MS, Server, Task, Work};
use pio_protocol::{
    Answer, Body, ClientId, ClientProcess, Expected, Failure, FileId, FileRef, Limits, Placement, Reply,
    ReplyBody, Request, Selection, ViewRef,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const FILE_BYTES: usize = 4000;

/// What a client does next.
#[derive(Clone, Debug)]
enum Step {
    /// Write these positions of the view with bytes made from the number.
    Write { view: View, positions: std::ops::Range<u64>, seed: u8 },
    /// Read what it wrote last.
    ReadBack,
    /// Add to the shared pointer.
    MovePointer,
}

struct Client {
    id: ClientId,
    link: ClientSession,
    connection: Option<ConnectionId>,
    steps: Vec<Step>,
    last: Option<(View, std::ops::Range<u64>, Vec<u8>)>,
    /// Requests of the present step, with their data or what is expected.
    flying: BTreeMap<u64, Vec<u8>>,
    adding: Option<u64>,
    added: Vec<u64>,
}

struct World {
    random: Pcg64Mcg,
    placement: Placement,
    server: Server,
    part: Vec<u8>,
    pointer: u64,
    /// What a real server keeps in its database: the last answer that must not be made twice.
    answers: BTreeMap<ClientId, (u64, ReplyBody)>,
    clients: Vec<Client>,
    /// Messages on their way.
    to_server: Vec<(ConnectionId, Request, Vec<u8>)>,
    to_client: Vec<(ConnectionId, Reply, Vec<u8>)>,
    working: Vec<(Work, Vec<u8>)>,
    connections: u64,
    expected: Vec<u8>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let placement = Placement::new(random.random_range(1..200), 1, 0, 1).unwrap();
        let clients = (0..2)
            .map(|rank| Client {
                id: ClientId(rank.into()),
                link: ClientSession::new(),
                connection: None,
                steps: steps(rank, &mut random),
                last: None,
                flying: BTreeMap::new(),
                adding: None,
                added: Vec::new(),
            })
            .collect();
        World {
            random,
            placement,
            server: Server::new(0, 1, Limits::DEFAULT),
            part: vec![0; FILE_BYTES],
            pointer: 0,
            answers: BTreeMap::new(),
            clients,
            to_server: Vec::new(),
            to_client: Vec::new(),
            working: Vec::new(),
            connections: 0,
            expected: vec![0; FILE_BYTES],
        }
    }

    fn file(&self) -> FileRef {
        FileRef { id: FileId::new(0, 1), placement: self.placement }
    }

    fn run(&mut self) {
        for _ in 0..200_000 {
            if self.is_over() {
                return self.judge();
            }
            match self.random.random_range(0..100) {
                0 => self.restart(),
                1 => self.break_connection(),
                2..10 => self.lose(),
                10..14 => self.double(),
                14..40 => self.deliver_to_server(),
                40..60 => self.work(),
                60..80 => self.deliver_to_client(),
                80..85 => self.repeat(),
                _ => self.go_on(),
            }
        }
        panic!("it does not come to an end");
    }

    fn is_over(&self) -> bool {
        self.clients
            .iter()
            .all(|client| client.steps.is_empty() && client.flying.is_empty() && client.adding.is_none())
    }

    fn judge(&self) {
        assert!(self.part == self.expected, "the file is not what was written");
        // Each addition happened once: the values are all different, and the pointer is their number.
        let mut added: Vec<u64> =
            self.clients.iter().flat_map(|client| client.added.iter().copied()).collect();
        added.sort_unstable();
        assert_eq!(added, (0..self.pointer).collect::<Vec<_>>());
    }

    /// A client that has nothing to wait for takes its next step; one without a connection connects.
    fn go_on(&mut self) {
        let at = self.random.random_range(0..self.clients.len());
        if self.clients[at].connection.is_none() {
            return self.connect(at);
        }
        let file = self.file();
        let client = &mut self.clients[at];
        if !client.flying.is_empty() || client.adding.is_some() || client.steps.is_empty() {
            return;
        }
        let (view, positions, data, write) = match client.steps.remove(0) {
            Step::MovePointer => {
                let body = Body::MovePointer { file: file.id, by: 1 };
                let request = client.link.ask(body);
                client.adding = Some(request.number);
                return self.send(at, request);
            }
            Step::ReadBack => match client.last.clone() {
                Some((view, positions, data)) => (view, positions, data, false),
                None => return,
            },
            Step::Write { view, positions, seed } => {
                let data: Vec<u8> = positions.clone().map(|position| (position as u8) ^ seed).collect();
                for (position, byte) in positions.clone().zip(&data) {
                    self.expected[view.offset_of(position).unwrap() as usize] = *byte;
                }
                client.last = Some((view.clone(), positions.clone(), data.clone()));
                (view, positions, data, true)
            }
        };
        let chunk_bytes = self.random.random_range(1..300);
        for chunk in Split::new(&self.placement, &view, positions, chunk_bytes, 1000) {
            let client = &mut self.clients[at];
            let bytes = chunk.bytes.iter().flat_map(|range| &data[range.start as usize..range.end as usize]);
            let bytes = bytes.copied().collect();
            let direction = if write { Direction::Write } else { Direction::Read };
            let request = client.link.ask_chunk(file, &view, None, chunk, direction);
            client.flying.insert(request.number, bytes);
            self.send(at, request);
        }
    }

    fn connect(&mut self, at: usize) {
        self.connections += 1;
        let connection = ConnectionId(self.connections);
        let actions = self.tell(Event::Connected {
            connection,
            client: self.clients[at].id,
            process: ClientProcess::default(),
        });
        if actions.contains(&Action::Welcome { connection }) {
            self.clients[at].connection = Some(connection);
            for request in self.clients[at].link.connected() {
                self.send(at, request);
            }
        } else {
            assert!(actions.contains(&Action::Busy { connection }));
        }
    }

    fn send(&mut self, at: usize, request: Request) {
        let client = &self.clients[at];
        let data = match (&request.body, client.flying.get(&request.number)) {
            (Body::Write { .. }, Some(data)) => data.clone(),
            _ => Vec::new(),
        };
        self.to_server.push((client.connection.unwrap(), request, data));
    }

    /// A client whose answer is late asks again without a new connection.
    fn repeat(&mut self) {
        let at = self.random.random_range(0..self.clients.len());
        let client = &self.clients[at];
        let numbers = client.flying.keys().copied().chain(client.adding);
        if client.connection.is_some() {
            for request in numbers.filter_map(|number| client.link.request(number)).collect::<Vec<_>>() {
                self.send(at, request);
            }
        }
    }

    fn deliver_to_server(&mut self) {
        if let Some((connection, request, data)) = take_any(&mut self.to_server, &mut self.random) {
            let data_bytes = data.len() as u64;
            for action in self.tell(Event::Received { connection, request, data_bytes }) {
                self.act(action, &data);
            }
        }
    }

    fn act(&mut self, action: Action, data: &[u8]) {
        match action {
            Action::Work(work) => self.working.push((work, data.to_vec())),
            Action::Send { connection, reply } => self.to_client.push((connection, reply, data.to_vec())),
            Action::Disconnect { .. } => {}
            _ => panic!("nobody connected"),
        }
    }

    fn work(&mut self) {
        let Some((work, data)) = take_any(&mut self.working, &mut self.random) else { return };
        let (outcome, data) = self.perform(&work, &data);
        let Work { client, number, .. } = work;
        for action in self.tell(Event::Done { client, number, outcome }) {
            self.act(action, &data);
        }
    }

    fn perform(&mut self, work: &Work, data: &[u8]) -> (ReplyBody, Vec<u8>) {
        match &work.task {
            Task::Write { strips, .. } => {
                for (place, byte) in places(strips.clone()).zip(data) {
                    self.part[place] = *byte;
                }
                (Ok(Answer::Written { epoch: 1 }), Vec::new())
            }
            Task::Read { strips, bytes, .. } => {
                let data = places(strips.clone()).map(|place| self.part[place]).collect();
                (Ok(Answer::Data { bytes: *bytes, epoch: 1 }), data)
            }
            Task::MovePointer { by, .. } => {
                let answer = match self.answers.get(&work.client) {
                    Some((number, answer)) if *number == work.number => answer.clone(),
                    _ => {
                        self.pointer += by;
                        Ok(Answer::Value(self.pointer - by))
                    }
                };
                self.answers.insert(work.client, (work.number, answer.clone()));
                (answer, Vec::new())
            }
            task => panic!("nobody asked for {task:?}"),
        }
    }

    fn deliver_to_client(&mut self) {
        let Some((connection, reply, data)) = take_any(&mut self.to_client, &mut self.random) else { return };
        let Some(at) = self.clients.iter().position(|client| client.connection == Some(connection)) else {
            return;
        };
        let client = &mut self.clients[at];
        match client.link.hear(reply) {
            Heard::Nothing => {}
            Heard::Answer { number, body, .. } => match client.flying.remove(&number) {
                Some(expected) => match body.unwrap() {
                    Answer::Data { .. } => assert!(data == expected, "read something else than was written"),
                    answer => assert_eq!(answer, Answer::Written { epoch: 1 }),
                },
                None => {
                    assert_eq!(client.adding.take(), Some(number));
                    let Answer::Value(value) = body.unwrap() else { panic!("no value") };
                    client.added.push(value);
                }
            },
            Heard::Again { instead_of, request } => {
                let flying = client.flying.remove(&instead_of).unwrap();
                client.flying.insert(request.number, flying);
                self.send(at, request);
            }
        }
    }

    fn lose(&mut self) {
        if self.random.random() {
            take_any(&mut self.to_server, &mut self.random);
        } else {
            take_any(&mut self.to_client, &mut self.random);
        }
    }

    fn double(&mut self) {
        if let Some(message) = take_any(&mut self.to_server, &mut self.random) {
            self.to_server.extend([message.clone(), message]);
        }
        if let Some(message) = take_any(&mut self.to_client, &mut self.random) {
            self.to_client.extend([message.clone(), message]);
        }
    }

    /// The client notices; the server does sooner or later, or never. What is on its way may still arrive.
    fn break_connection(&mut self) {
        let at = self.random.random_range(0..self.clients.len());
        if let Some(connection) = self.clients[at].connection.take()
            && self.random.random()
        {
            let closed = self.random.random();
            self.tell(Event::Disconnected { connection, closed });
        }
    }

    /// All connections break; work that was begun may have been done.
    fn restart(&mut self) {
        for (work, data) in std::mem::take(&mut self.working) {
            if self.random.random() {
                let _ = self.perform(&work, &data);
            }
        }
        self.server = Server::new(0, 1, Limits::DEFAULT);
        self.to_server.clear();
        self.to_client.clear();
        self.clients.iter_mut().for_each(|client| client.connection = None);
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.server.handle(event, &mut actions);
        actions
    }
}

/// Writes to pieces that are this client's alone, each read back; overlapping its own earlier ones.
fn steps(rank: u64, random: &mut Pcg64Mcg) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.random_range(1..6) {
        let piece = [4, 50][random.random_range(0..2_usize)];
        let filetype = Datatype::bytes(piece).resized(0, 100).unwrap();
        let view = View::new(rank * 50, 1, filetype).unwrap();
        let start = random.random_range(0..40 * piece);
        let end = random.random_range(start..40 * piece);
        steps.push(Step::Write { view, positions: start..end, seed: random.random() });
        steps.extend([Step::ReadBack, Step::MovePointer].into_iter().filter(|_| random.random::<bool>()));
    }
    steps
}

fn places(mut strips: pio_protocol::SlotStrips) -> impl Iterator<Item = usize> {
    let mut places = Vec::new();
    while let Some(strip) = strips.next() {
        for piece in strips.runs(&strip).flat_map(|run| run.pieces()) {
            places.extend(piece.offset as usize..piece.end() as usize);
        }
    }
    places.into_iter()
}

fn take_any<T>(from: &mut Vec<T>, random: &mut Pcg64Mcg) -> Option<T> {
    let at = (!from.is_empty()).then(|| random.random_range(0..from.len()))?;
    Some(from.swap_remove(at))
}

fn run(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        World::new(seed).run();
    }
}

#[test]
fn nothing_is_lost_doubled_or_out_of_order() {
    run(0..100);
}

#[test]
#[ignore = "slow"]
fn slow_nothing_is_lost_doubled_or_out_of_order() {
    run(100..20_000);
}

#[test]
fn a_repeated_request_is_answered_and_not_done_again() {
    let (client, connection) = (ClientId(7), ConnectionId(1));
    let mut server = Server::new(0, 1, Limits::DEFAULT);
    let mut tell = |event| {
        let mut actions = Vec::new();
        server.handle(event, &mut actions);
        actions
    };
    let placement = Placement::new(64, 1, 0, 1).unwrap();
    let access = Selection { view: ViewRef::Whole, positions: 0..10 };
    let body = Body::Write { file: FileRef { id: FileId::new(0, 1), placement }, access };
    let request = Request { number: 5, answered: 5, body };
    let received = Event::Received { connection, request, data_bytes: 10 };
    let outcome = Ok(Answer::Written { epoch: 3 });
    assert_eq!(tell(received.clone()), [], "before it connected");
    tell(Event::Connected { connection, client, process: ClientProcess::default() });
    assert!(matches!(tell(received.clone())[..], [Action::Work(Work { number: 5, .. })]));
    assert_eq!(tell(received.clone()), [], "while it is worked on");
    let answer = [Action::Send { connection, reply: Reply { number: 5, body: outcome.clone() } }];
    assert_eq!(tell(Event::Done { client, number: 5, outcome }), answer);
    assert_eq!(tell(received.clone()), answer, "from memory");
    let next = Request { number: 6, answered: 6, body: Body::Usage };
    tell(Event::Received { connection, request: next, data_bytes: 0 });
    assert_eq!(tell(received), [], "late, when its answer was seen");
}

/// A client that died holds no lock; one that closed its connection, and may come again, for a second; one of whom nothing
/// is known for half a minute.
#[test]
fn locks_are_kept_for_who_may_come_again() {
    let (holder, other) = (ClientId(1), ClientId(2));
    let process = |pid| ClientProcess { host: "node1".into(), pid, ..ClientProcess::default() };
    let lock = |number| Request {
        number,
        answered: number,
        body: Body::Lock { file: FileId::new(0, 1), lock: 1, shared: false, range: 0..9 },
    };
    for (closed, grace_ms) in [(true, CLOSED_GRACE_MS), (false, GRACE_MS)] {
        for dies in [false, true] {
            let mut server = Server::new(0, 1, Limits::DEFAULT);
            let mut tell = |event| {
                let mut actions = Vec::new();
                server.handle(event, &mut actions);
                actions
            };
            let had = |tell: &mut dyn FnMut(Event) -> Vec<Action>, number| {
                let request = lock(number);
                let event = Event::Received { connection: ConnectionId(2), request, data_bytes: 0 };
                match tell(event).pop() {
                    Some(Action::Send { reply: Reply { body: Ok(Answer::Done), .. }, .. }) => None,
                    Some(Action::Send {
                        reply: Reply { body: Ok(Answer::Wait { holder, .. }), .. }, ..
                    }) => Some(holder),
                    other => panic!("{other:?}"),
                }
            };
            for (client, connection) in [(holder, 1), (other, 2)] {
                let connection = ConnectionId(connection);
                tell(Event::Connected { connection, client, process: process(connection.0 as u32) });
            }
            tell(Event::Received { connection: ConnectionId(1), request: lock(1), data_bytes: 0 });
            tell(Event::Time { now_ms: 5_000 });
            let said = had(&mut tell, 1).unwrap().to_string();
            assert_eq!(said, "process 1 on node1 (held for 5 s)");
            // Only one that is away can be over.
            tell(Event::Died { client: holder });
            assert!(had(&mut tell, 2).is_some());
            tell(Event::Disconnected { connection: ConnectionId(1), closed });
            if dies {
                tell(Event::Died { client: holder });
            } else {
                tell(Event::Time { now_ms: 5_000 + grace_ms - 1 });
                assert!(had(&mut tell, 3).is_some());
                tell(Event::Time { now_ms: 5_000 + grace_ms });
            }
            assert_eq!(had(&mut tell, 4), None, "closed: {closed}, dies: {dies}");
        }
    }
}

/// A client that lists extents as it likes is told what a list is.
#[test]
fn a_list_of_extents_that_is_none_is_refused() {
    let (client, connection) = (ClientId(7), ConnectionId(1));
    let mut server = Server::new(0, 2, Limits::DEFAULT);
    server
        .handle(Event::Connected { connection, client, process: ClientProcess::default() }, &mut Vec::new());
    let placement = Placement::new(10, 2, 0, 2).unwrap();
    let file = FileRef { id: FileId::new(0, 1), placement };
    let mut number = 0;
    let mut ask = |extents: &[(u64, u64)], data_bytes| {
        number += 1;
        // As bytes: no client of ours makes such a list.
        let whole = Selection { view: ViewRef::Whole, positions: 0..1 };
        let mut bytes = Vec::new();
        Request { number, answered: number, body: Body::Write { file, access: whole } }.encode(&mut bytes);
        bytes.truncate(bytes.len() - 3);
        bytes.extend([3, extents.len() as u8]);
        extents.iter().for_each(|(offset, len)| {
            pio_protocol::wire::put(&mut bytes, *offset);
            pio_protocol::wire::put(&mut bytes, *len);
        });
        let request = Request::decode(&bytes).unwrap();
        let mut actions = Vec::new();
        server.handle(Event::Received { connection, request, data_bytes }, &mut actions);
        actions.pop().unwrap()
    };
    // Bytes 0 to 9, 20 to 29, ... are this server's.
    let work = ask(&[(3, 4), (12, 3), (18, 14)], 4 + 10);
    let Action::Work(Work { task: Task::Write { strips, bytes, .. }, .. }) = work else { panic!("{work:?}") };
    assert_eq!(
        (places(strips).collect::<Vec<_>>(), bytes),
        ([3, 4, 5, 6].into_iter().chain(10..20).collect(), 14)
    );
    let refused = |action| match action {
        Action::Send { reply: Reply { body: Err(failure), .. }, .. } => failure,
        other => panic!("{other:?}"),
    };
    let none = Failure::Invalid(Expected::Extents);
    let long: Vec<(u64, u64)> = (0..65).map(|k| (2 * k, 1)).collect();
    for bad in [&long[..], &[], &[(5, 2), (0, 1)], &[(0, 2), (1, 2)], &[(4, 0)], &[(u64::MAX, 9)]] {
        assert_eq!(refused(ask(bad, 1)), none, "{bad:?}");
    }
    assert_eq!(refused(ask(&[(3, 4)], 5)), Failure::Invalid(Expected::DataLength));
}

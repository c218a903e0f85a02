//! What others do wrong: nothing hangs, nothing is lost, and nobody without the token reads a byte.
// A test that cannot set up its scene fails there.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::Scene;
use pio_layout::{Datatype, View};
use pio_protocol::frame::Prefix;
use pio_protocol::handshake::Greeting;
use pio_protocol::{
    Body, ClientId, ClientProcess, Extents, FileId, FileRef, Limits, Name, Placement, Reply, Request,
    Selection, VERSION, ViewRef,
};
use pio_store::StoreError;
use pio_store::auth::{Conversation, Role, Token, random};
use pio_store::client::{Mode, Options, Store, StoreFile, StripingHints};
use pio_store::config::{Server, StoreDescription};
use pio_store::transport::{Connection, Transport};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CREATE: Mode = Mode { create: true, exclusive: false };
const PATIENCE: Duration = Duration::from_secs(10);
/// Nobody who may not see it sees it.
const SECRET: &[u8] = b"a secret that is kept on the server";

fn secret_file(store: &Store) -> StoreFile {
    let file = store.open("secret", CREATE, StripingHints::default()).unwrap();
    file.write_at(0, &SECRET.repeat(100)).unwrap();
    file.sync().unwrap();
    file
}

/// A client of our own, that can do everything wrong; it has shown the token.
fn greeted(scene: &Scene, connection: Box<dyn Connection>) -> Box<dyn Connection> {
    greet(scene, ClientId(u128::from_le_bytes(random().unwrap())), connection).unwrap()
}

/// The same, as a client that may have been there before: until what its last connection asked for is over, the server has
/// no time for it.
fn greeted_as(
    scene: &Scene,
    client: ClientId,
    connect: impl Fn() -> Box<dyn Connection>,
) -> Box<dyn Connection> {
    let start = Instant::now();
    loop {
        if let Some(connection) = greet(scene, client, connect()) {
            return connection;
        }
        assert!(start.elapsed() < PATIENCE, "the server stays busy");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// None if the server is busy with the client's last connection.
fn greet(
    scene: &Scene,
    client: ClientId,
    mut connection: Box<dyn Connection>,
) -> Option<Box<dyn Connection>> {
    let client_nonce = random().unwrap();
    let token = scene.token();
    let hello =
        Greeting::Hello { version: VERSION, store: token.store(), client, server: 0, nonce: client_nonce };
    connection.set_timeouts(Some(PATIENCE), Some(PATIENCE)).unwrap();
    connection.send(&hello.encode(), &[]).unwrap();
    let mut head = Vec::new();
    connection.receive(&mut head).unwrap();
    let Greeting::Challenge { nonce: server_nonce } = Greeting::decode(&head).unwrap() else { panic!() };
    let conversation = Conversation { client, server: 0, client_nonce, server_nonce };
    let mac = token.proof(Role::Client, &conversation);
    connection.send(&Greeting::Proof { mac, process: ClientProcess::default() }.encode(), &[]).unwrap();
    connection.receive(&mut head).unwrap();
    match Greeting::decode(&head).unwrap() {
        Greeting::Busy => return None,
        other => assert!(matches!(other, Greeting::Welcome { .. }), "{other:?}"),
    }
    connection.set_limits(&Limits::DEFAULT);
    Some(connection)
}

fn connect(scene: &Scene, transport: Transport) -> Box<dyn Connection> {
    transport.connect(scene.address(0), scene.token(), PATIENCE).unwrap()
}

fn head_of(request: &Request) -> Vec<u8> {
    let mut head = Vec::new();
    request.encode(&mut head);
    head
}

fn ask(number: u64, body: Body) -> Vec<u8> {
    head_of(&Request { number, answered: number, body })
}

fn whole(bytes: u64) -> Selection {
    Selection { view: ViewRef::Whole, positions: 0..bytes }
}

#[test]
fn nobody_without_the_token_reads_a_byte() {
    let scene = Scene::with_all_ways(1);
    let file = secret_file(&scene.client());
    let read = ask(1, Body::Read { file: file.file(), access: whole(100) });
    let stranger = Token::load_or_create(&tempfile::tempdir().unwrap().path().join("token")).unwrap();
    let (client, nonce) = (ClientId(7), [7; 32]);
    let hello = |store| Greeting::Hello { version: VERSION, store, client, server: 0, nonce }.encode();
    let guess = Greeting::Proof { mac: [9; 32], process: ClientProcess::default() }.encode();
    let another = Greeting::Proof {
        mac: stranger.proof(
            Role::Client,
            &Conversation { client, server: 0, client_nonce: nonce, server_nonce: nonce },
        ),
        process: ClientProcess::default(),
    };
    let known = scene.token().store();
    for &transport in scene.transports() {
        // At once, and at each point of a greeting.
        for heads in [
            vec![read.clone()],
            vec![hello(known), read.clone()],
            vec![hello(known), guess.clone(), read.clone()],
            vec![hello(known), another.encode(), read.clone()],
            vec![hello(stranger.store()), guess.clone(), read.clone()],
            vec![hello(known), hello(known), read.clone()],
        ] {
            let mut connection = connect(&scene, transport);
            connection.set_timeouts(Some(PATIENCE), Some(PATIENCE)).unwrap();
            for head in &heads {
                // It may be over already.
                let _ = connection.send(head, &[]);
            }
            let mut said = Vec::new();
            let error = loop {
                match connection.receive(&mut said) {
                    Ok(data) => assert_eq!((data, find(&said, SECRET)), (0, false)),
                    Err(error) => break error,
                }
            };
            assert_ne!(error.kind(), ErrorKind::TimedOut, "the server should have ended it");
        }
    }
    let mut out = vec![0; SECRET.len()];
    file.read_at(0, &mut out).unwrap();
    assert_eq!(out, SECRET);
}

fn find(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[test]
fn a_proof_that_was_heard_is_of_no_use() {
    let scene = Scene::new(1);
    secret_file(&scene.client());
    let token = scene.token();
    let (client, nonce) = (ClientId(7), [7; 32]);
    let mut proof = None;
    for attempt in 0..2 {
        let mut connection = connect(&scene, Transport::Tcp);
        connection.set_timeouts(Some(PATIENCE), Some(PATIENCE)).unwrap();
        let hello = Greeting::Hello { version: VERSION, store: token.store(), client, server: 0, nonce };
        connection.send(&hello.encode(), &[]).unwrap();
        let mut head = Vec::new();
        connection.receive(&mut head).unwrap();
        let Greeting::Challenge { nonce: server_nonce } = Greeting::decode(&head).unwrap() else { panic!() };
        let conversation = Conversation { client, server: 0, client_nonce: nonce, server_nonce };
        let proof = *proof.get_or_insert_with(|| token.proof(Role::Client, &conversation));
        connection
            .send(&Greeting::Proof { mac: proof, process: ClientProcess::default() }.encode(), &[])
            .unwrap();
        connection.receive(&mut head).unwrap();
        let welcome = matches!(Greeting::decode(&head).unwrap(), Greeting::Welcome { .. });
        assert_eq!(welcome, attempt == 0);
    }
}

#[test]
fn a_client_that_dies_in_the_middle_of_a_write_changes_nothing_else() {
    let scene = Scene::with_all_ways(1);
    let file = secret_file(&scene.client());
    let write = |number| ask(number, Body::Write { file: file.file(), access: whole(1 << 20) });
    // Half of the data over TCP; through shared memory all or nothing comes.
    let mut connection = greeted(&scene, connect(&scene, Transport::Shared));
    connection.send(&write(1)[..5], &[IoSlice::new(&[1; 1 << 20])]).unwrap();
    drop(connection);
    if scene.transports().contains(&Transport::Ucx) {
        // The server refuses it and leaves the data where they are, or the client goes first.
        let mut connection = greeted(&scene, connect(&scene, Transport::Ucx));
        let _ = connection.send(&write(1)[..5], &[IoSlice::new(&[1; 1 << 20])]);
        let mut connection = greeted(&scene, connect(&scene, Transport::Ucx));
        connection.set_timeouts(None, Some(Duration::ZERO)).unwrap();
        let _ = connection.send(&write(1), &[IoSlice::new(&[1; 1 << 20])]);
    }
    let mut stream = raw(&scene);
    let mut prefix = Vec::new();
    Prefix::new(&write(1), 1 << 20, 12345).pack(&mut prefix);
    stream.write_all(&[&prefix[..], &write(1), &[1; 1 << 19]].concat()).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    let mut out = SECRET.repeat(100);
    let other = scene.client();
    let again = other.open("secret", CREATE, StripingHints::default()).unwrap();
    again.read_at(0, &mut out).unwrap();
    assert_eq!(out, SECRET.repeat(100));
    again.write_at(3, b"written").unwrap();
    again.sync().unwrap();
    assert_eq!(other.check("secret").unwrap()[0].1.as_ref().unwrap().damaged, 0);
}

/// Acknowledgements wait for the next message if one is coming; data of a message that was refused are none.
#[test]
fn a_write_is_acknowledged_whatever_comes_behind_it() {
    let scene = Scene::new(1);
    let file = secret_file(&scene.client()).file();
    for transport in [Transport::Tcp, Transport::Shared] {
        let mut connection = greeted(&scene, connect(&scene, transport));
        let unknown = Selection { view: ViewRef::Numbered(9), positions: 0..64 };
        for (number, access) in [(1, whole(64)), (2, unknown), (1, whole(64)), (1, whole(64))] {
            let write = ask(number, Body::Write { file, access });
            let request = Request { answered: 0, ..Request::decode(&write).unwrap() };
            connection.send(&head_of(&request), &[IoSlice::new(&[5; 64])]).unwrap();
        }
        let mut numbers = Vec::new();
        for _ in 0..4 {
            let mut head = Vec::new();
            connection.receive(&mut head).unwrap();
            numbers.push(Reply::decode(&head).unwrap().number);
        }
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 1, 1, 2]);
    }
}

/// A stream that has shown the token.
fn raw(scene: &Scene) -> TcpStream {
    let token = scene.token();
    let (client, client_nonce) = (ClientId(u128::from_le_bytes(random().unwrap())), random().unwrap());
    let mut stream = TcpStream::connect(scene.tcp_address(0)).unwrap();
    let mut hear = |greeting: Greeting| {
        let head = greeting.encode();
        let mut message = Vec::new();
        Prefix::new(&head, 0, 0).pack(&mut message);
        message.extend(head);
        stream.write_all(&message).unwrap();
        let next = || {
            let mut byte = [0];
            stream.read_exact(&mut byte).map(|()| byte[0])
        };
        let mut head = vec![0; Prefix::unpack(&Limits::DEFAULT, next).unwrap().head_len as usize];
        stream.read_exact(&mut head).unwrap();
        Greeting::decode(&head).unwrap()
    };
    let hello =
        Greeting::Hello { version: VERSION, store: token.store(), client, server: 0, nonce: client_nonce };
    let Greeting::Challenge { nonce: server_nonce } = hear(hello) else { panic!() };
    let conversation = Conversation { client, server: 0, client_nonce, server_nonce };
    let mac = token.proof(Role::Client, &conversation);
    let welcome = hear(Greeting::Proof { mac, process: ClientProcess::default() });
    assert!(matches!(welcome, Greeting::Welcome { .. }));
    stream
}

#[test]
fn a_server_that_says_nothing_is_an_error_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let token = Token::load_or_create(&folder.path().join("token")).unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let description =
        StoreDescription { token: "token".into(), strip_bytes: 65536, servers: vec![Server { address }] };
    let timeout = Duration::from_millis(200);
    let options = Options { timeout, ..Options::default() };
    let store = Store::new(&description, token, options).unwrap();
    let start = Instant::now();
    let error = store.open("f", CREATE, StripingHints::default()).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(start.elapsed() < 5 * timeout);
    // It waited once, and not for one connection after the other.
    silent.set_nonblocking(true).unwrap();
    assert!(silent.accept().is_ok());
    assert_eq!(silent.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Requests of all kinds, of a file that nobody else uses.
fn requests() -> Vec<Body> {
    let placement = Placement::new(4096, 1, 0, 1).unwrap();
    let file = FileRef { id: FileId(0x7777), placement };
    let name = || Name::new("fuzz/file").unwrap();
    let view = View::new(4, 4, Datatype::bytes(4).resized(0, 24).unwrap()).unwrap();
    vec![
        Body::LookUp { name: name() },
        Body::Create { name: name(), exclusive: false, placement },
        Body::Unlink { name: name() },
        Body::Link { name: name(), file: file.id },
        Body::List { prefix: "fuzz".into(), after: String::new(), most: 10 },
        Body::Describe { file: file.id },
        Body::Forget { file: file.id },
        Body::MovePointer { file: file.id, by: 9 },
        Body::SetPointer { file: file.id, value: 4 },
        Body::Lock { file: file.id, lock: 3, shared: false, range: 10..20 },
        Body::Unlock { file: file.id, lock: 3 },
        Body::Read { file, access: Selection { view: ViewRef::New(1, view), positions: 7..71 } },
        Body::Write { file, access: Selection { view: ViewRef::Numbered(1), positions: 0..64 } },
        Body::Write { file, access: whole(64) },
        Body::Write {
            file,
            access: Selection::listed(Extents::new(vec![(3, 30), (90, 4), (5000, 30)]).unwrap()),
        },
        Body::Read { file, access: whole(4096) },
        Body::Length { file },
        Body::SetLength { file, bytes: 100 },
        Body::RemovePart { file },
        Body::Usage,
        Body::Check { file },
        Body::Parts { from: file.id, most: 3 },
    ]
}

/// Messages that are sent before their answers are looked at.
const BATCH: u32 = 16;
/// Connections of one client, before another begins.
const CONNECTIONS: u32 = 50;
/// A changed byte may make a number large; a client whose numbers are beyond this begins anew.
const MOST_NUMBER: u64 = 1 << 40;

/// A client that sends what it likes, and knows what the server has to do about it.
struct Fuzzer<'a> {
    scene: &'a Scene,
    transport: Transport,
    random: Pcg64Mcg,
    bodies: Vec<Body>,
    client: ClientId,
    /// Its next request's.
    number: u64,
    /// Requests below have been answered, as the server was told.
    answered: u64,
    sent: u32,
    most: u32,
}

impl Fuzzer<'_> {
    /// Sends `messages` fuzzed messages to a live server, over new connections as often as need be.
    fn run(scene: &Scene, transport: Transport, messages: u32, seed: u64) {
        let random = Pcg64Mcg::seed_from_u64(seed);
        let (client, bodies) = (ClientId(0), requests());
        let mut fuzzer = Fuzzer {
            scene,
            transport,
            random,
            bodies,
            client,
            number: 1,
            answered: 0,
            sent: 0,
            most: messages,
        };
        let mut connections = 0;
        while fuzzer.sent < fuzzer.most {
            if connections % CONNECTIONS == 0 || fuzzer.number > MOST_NUMBER {
                fuzzer.begin();
            }
            connections += 1;
            fuzzer.talk();
        }
    }

    fn begin(&mut self) {
        self.client = ClientId(u128::from_le_bytes(random().unwrap()));
        (self.number, self.answered) = (1, 0);
    }

    /// A connection, until the first message that is none ends it.
    fn talk(&mut self) {
        let mut connection = greeted_as(self.scene, self.client, || connect(self.scene, self.transport));
        connection.set_timeouts(Some(PATIENCE), Some(PATIENCE)).unwrap();
        let mut head = Vec::new();
        let (mut ends, mut said_goodbye) = (false, false);
        while !(ends || said_goodbye) && self.sent < self.most {
            let mut answers = 0;
            for _ in 0..BATCH.min(self.most - self.sent) {
                let message = self.message();
                let data = vec![self.sent as u8; [0, 0, 64, 64, 5000][self.random.random_range(0..5)]];
                self.sent += 1;
                match Request::decode(&message) {
                    Ok(request) => {
                        answers += u32::from(self.is_heard(&request));
                        said_goodbye = request.body == Body::Goodbye;
                    }
                    Err(_) => ends = true,
                }
                let sent = connection.send(&message, &[IoSlice::new(&data)]);
                if ends {
                    break;
                }
                sent.unwrap();
                if said_goodbye {
                    break;
                }
            }
            while answers > 0 {
                match connection.receive(&mut head) {
                    Ok(_) => drop(Reply::decode(&head).unwrap()),
                    // Acknowledgements that were to be sent together are lost with the connection.
                    Err(error) => {
                        let over = ends || said_goodbye;
                        assert!(over && error.kind() != ErrorKind::TimedOut, "{error}");
                        return;
                    }
                }
                answers -= 1;
            }
        }
        if ends {
            let error = connection.receive(&mut head).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::TimedOut, "the server should have ended it");
        }
        if said_goodbye {
            self.begin();
        }
    }

    /// Nearly half of what is fuzzed is no request, and would end the connection: of these, one of four is sent.
    fn message(&mut self) -> Vec<u8> {
        loop {
            let message = self.fuzzed();
            if Request::decode(&message).is_ok() || self.random.random_range(0..4) == 0 {
                return message;
            }
        }
    }

    /// A request that makes sense but for a byte or two, most of the time.
    fn fuzzed(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let mut body = self.bodies[random.random_range(0..self.bodies.len())].clone();
        if matches!(body, Body::Usage | Body::Parts { .. }) && random.random_range(0..100) > 0 {
            // The server looks at all of its files, of which there are more and more.
            body = self.bodies[0].clone();
        }
        let mut message = ask(self.number, body);
        self.number += 1;
        for _ in 0..random.random_range(0..3) {
            let at = random.random_range(0..message.len());
            message[at] = match random.random_range(0..3) {
                0 => random.random_range(0..=255) as u8,
                1 => [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)],
                _ => message[at] ^ 1 << random.random_range(0..8),
            };
        }
        if random.random_range(0..20) == 0 {
            message.truncate(random.random_range(1..=message.len()));
        }
        message
    }

    /// Whether the server answers: not to what was answered, and known to be.
    fn is_heard(&mut self, request: &Request) -> bool {
        self.answered = self.answered.max(request.answered);
        self.number = self.number.max(self.answered);
        request.number >= self.answered
    }
}

/// While others send what they like, a client works; and afterwards.
fn fuzz_beside_a_client(scene: Scene, transports: &[Transport], messages: u32, seed: u64) {
    let client = scene.client_by(Transport::Shared);
    let file = secret_file(&client);
    let mut out = vec![0; SECRET.len() * 100];
    let open = |index| client.open(&format!("mine/{index}"), CREATE, StripingHints::default()).unwrap();
    let mine: Vec<StoreFile> = (0..20).map(open).collect();
    std::thread::scope(|scope| {
        let fuzz = |(&transport, seed)| {
            let scene = &scene;
            scope.spawn(move || Fuzzer::run(scene, transport, messages / transports.len() as u32, seed))
        };
        let fuzzers: Vec<_> = transports.iter().zip(seed..).map(fuzz).collect();
        for round in 0.. {
            let (mine, at) = (&mine[round % mine.len()], round as u64 % 20 * 1000);
            mine.write_at(at, SECRET).unwrap();
            mine.read_at(at, &mut out[..SECRET.len()]).unwrap();
            assert!(out.starts_with(SECRET));
            file.read_at(0, &mut out).unwrap();
            assert!(out == SECRET.repeat(100));
            if round >= 20 && fuzzers.iter().all(|fuzzer| fuzzer.is_finished()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    // Who has the token may forget any file, and a changed byte may say so: then the bytes are there still, for those who
    // have opened it.
    file.read_at(0, &mut out).unwrap();
    assert!(out == SECRET.repeat(100));
    let after = scene.client().open("after", CREATE, StripingHints::default()).unwrap();
    after.write_at(0, SECRET).unwrap();
    after.sync().unwrap();
    after.read_at(0, &mut out[..SECRET.len()]).unwrap();
    assert!(out.starts_with(SECRET));
    assert!(resident_bytes() < 1 << 30, "{} bytes resident", resident_bytes());
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn fuzzed_messages_harm_nobody() {
    fuzz_beside_a_client(Scene::in_memory(1), &[Transport::Tcp, Transport::Shared], 1000, 1);
}

#[test]
#[ignore = "slow"]
fn slow_a_million_fuzzed_messages_harm_nobody() {
    fuzz_beside_a_client(Scene::in_memory(1), &[Transport::Tcp, Transport::Shared], 1_000_000, 2);
}

#[test]
#[ignore = "slow"]
fn slow_fuzzed_messages_through_ucx_harm_nobody() {
    let scene = Scene::with_all_ways(1);
    if scene.transports().contains(&Transport::Ucx) {
        fuzz_beside_a_client(scene, &[Transport::Ucx], 2000, 4);
    }
}

#[test]
fn bytes_that_are_no_messages_end_the_connection() {
    let scene = Scene::new(1);
    secret_file(&scene.client());
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for round in 0..50 {
        let mut stream =
            if round % 2 == 0 { TcpStream::connect(scene.tcp_address(0)).unwrap() } else { raw(&scene) };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let garbage: Vec<u8> =
            (0..random.random_range(16..300)).map(|_| random.random_range(0..=255) as u8).collect();
        stream.write_all(&garbage).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut said = Vec::new();
        // Reset is an end, too.
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert!(!find(&said, SECRET) && said.len() < 600);
    }
}

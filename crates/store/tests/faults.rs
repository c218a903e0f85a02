//! What others do wrong: nothing hangs, nothing is lost, and nobody without the token reads a byte.
// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::Scene;
use pio_layout::{Datatype, View};
use pio_store::auth::{Conversation, Role, Token, random};
use pio_store::client::{Mode, Options, Store, StoreFile, Striping};
use pio_store::config::{Description, Server};
use pio_store::protocol::frame::Prefix;
use pio_store::protocol::handshake::Greeting;
use pio_store::protocol::{
    Access, Body, ClientId, FileId, FileRef, Name, Register, Request, VERSION, ViewRef,
};
use pio_store::transport::{Connection, SharedConnection, TcpConnection, Way};
use pio_store::{Limits, Placement, StoreError};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CREATE: Mode = Mode { create: true, exclusive: false };
const PATIENCE: Duration = Duration::from_secs(10);
/// Nobody who may not see it sees it.
const SECRET: &[u8] = b"a secret that is kept on the server";

fn secret_file(store: &Store) -> StoreFile {
    let file = store.open("secret", CREATE, Striping::default()).unwrap();
    file.write_at(0, &SECRET.repeat(100)).unwrap();
    file.sync().unwrap();
    file
}

/// A client of our own, that can do everything wrong; it has shown the token.
fn greeted(scene: &Scene, mut connection: Box<dyn Connection>) -> Box<dyn Connection> {
    let (client, client_nonce) = (ClientId(u128::from_le_bytes(random().unwrap())), random().unwrap());
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
    connection.send(&Greeting::Proof { mac }.encode(), &[]).unwrap();
    connection.receive(&mut head).unwrap();
    assert!(matches!(Greeting::decode(&head).unwrap(), Greeting::Welcome { .. }));
    connection.set_limits(&Limits::DEFAULT);
    connection
}

fn connect(scene: &Scene, way: Way) -> Box<dyn Connection> {
    match way {
        Way::Shared => {
            let store = scene.token().store();
            Box::new(SharedConnection::connect(store, scene.address(0), PATIENCE).unwrap())
        }
        _ => Box::new(TcpConnection::connect(scene.address(0), PATIENCE).unwrap()),
    }
}

fn head_of(request: &Request) -> Vec<u8> {
    let mut head = Vec::new();
    request.encode(&mut head);
    head
}

fn ask(number: u64, body: Body) -> Vec<u8> {
    head_of(&Request { number, answered: number, body })
}

fn whole(bytes: u64) -> Access {
    Access { view: ViewRef::Whole, positions: 0..bytes }
}

#[test]
fn nobody_without_the_token_reads_a_byte() {
    let scene = Scene::new(1);
    let file = secret_file(&scene.client());
    let read = ask(1, Body::Read { file: file.file(), access: whole(100) });
    let stranger = Token::load_or_create(&tempfile::tempdir().unwrap().path().join("token")).unwrap();
    let (client, nonce) = (ClientId(7), [7; 32]);
    let hello = |store| Greeting::Hello { version: VERSION, store, client, server: 0, nonce }.encode();
    let guess = Greeting::Proof { mac: [9; 32] }.encode();
    let another = Greeting::Proof {
        mac: stranger.proof(
            Role::Client,
            &Conversation { client, server: 0, client_nonce: nonce, server_nonce: nonce },
        ),
    };
    let known = scene.token().store();
    for way in [Way::Tcp, Way::Shared] {
        // At once, and at each point of a greeting.
        for heads in [
            vec![read.clone()],
            vec![hello(known), read.clone()],
            vec![hello(known), guess.clone(), read.clone()],
            vec![hello(known), another.encode(), read.clone()],
            vec![hello(stranger.store()), guess.clone(), read.clone()],
            vec![hello(known), hello(known), read.clone()],
        ] {
            let mut connection = connect(&scene, way);
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
        let mut connection = connect(&scene, Way::Tcp);
        connection.set_timeouts(Some(PATIENCE), Some(PATIENCE)).unwrap();
        let hello = Greeting::Hello { version: VERSION, store: token.store(), client, server: 0, nonce };
        connection.send(&hello.encode(), &[]).unwrap();
        let mut head = Vec::new();
        connection.receive(&mut head).unwrap();
        let Greeting::Challenge { nonce: server_nonce } = Greeting::decode(&head).unwrap() else { panic!() };
        let conversation = Conversation { client, server: 0, client_nonce: nonce, server_nonce };
        let proof = *proof.get_or_insert_with(|| token.proof(Role::Client, &conversation));
        connection.send(&Greeting::Proof { mac: proof }.encode(), &[]).unwrap();
        connection.receive(&mut head).unwrap();
        let welcome = matches!(Greeting::decode(&head).unwrap(), Greeting::Welcome { .. });
        assert_eq!(welcome, attempt == 0);
    }
}

#[test]
fn a_client_that_dies_in_the_middle_of_a_write_changes_nothing_else() {
    let scene = Scene::new(1);
    let file = secret_file(&scene.client());
    let write = |number| ask(number, Body::Write { file: file.file(), access: whole(1 << 20) });
    // Half of the data over TCP; through shared memory all or nothing comes.
    let mut connection = greeted(&scene, connect(&scene, Way::Shared));
    connection.send(&write(1)[..5], &[IoSlice::new(&[1; 1 << 20])]).unwrap();
    drop(connection);
    let mut stream = raw(&scene);
    let mut prefix = Vec::new();
    Prefix::new(&write(1), 1 << 20, 12345).pack(&mut prefix);
    stream.write_all(&[&prefix[..], &write(1), &[1; 1 << 19]].concat()).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    let mut out = SECRET.repeat(100);
    let other = scene.client();
    let again = other.open("secret", CREATE, Striping::default()).unwrap();
    again.read_at(0, &mut out).unwrap();
    assert_eq!(out, SECRET.repeat(100));
    again.write_at(3, b"written").unwrap();
    again.sync().unwrap();
    assert_eq!(other.check("secret").unwrap()[0].damaged, 0);
}

/// A stream that has shown the token.
fn raw(scene: &Scene) -> TcpStream {
    let token = scene.token();
    let (client, client_nonce) = (ClientId(u128::from_le_bytes(random().unwrap())), random().unwrap());
    let mut stream = TcpStream::connect(scene.address(0)).unwrap();
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
    let welcome = hear(Greeting::Proof { mac: token.proof(Role::Client, &conversation) });
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
        Description { token: "token".into(), strip_bytes: 65536, servers: vec![Server { address }] };
    let timeout = Duration::from_millis(200);
    let options = Options { timeout, ..Options::default() };
    let store = Store::new(&description, token, options).unwrap();
    let start = Instant::now();
    let error = store.open("f", CREATE, Striping::default()).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(start.elapsed() < 5 * timeout);
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
        Body::FetchAdd { file: file.id, register: Register::End, at_least: 5, by: 9 },
        Body::SetRegister { file: file.id, register: Register::Pointer, value: 4 },
        Body::Lock { file: file.id, lock: 3, shared: false, range: 10..20 },
        Body::Unlock { file: file.id, lock: 3 },
        Body::RegisterView { view: 1, layout: view.clone() },
        Body::ForgetView { view: 1 },
        Body::Write { file, access: Access { view: ViewRef::Registered(1), positions: 0..64 } },
        Body::Write { file, access: whole(64) },
        Body::Read { file, access: Access { view: ViewRef::Inline(view), positions: 7..71 } },
        Body::Read { file, access: whole(4096) },
        Body::Length { file },
        Body::SetLength { file, bytes: 100 },
        Body::RemovePart { file },
        Body::Usage,
        Body::Check { file },
    ]
}

/// Sends `messages` fuzzed messages to a live server over new connections as often as need be.
fn fuzz(scene: &Scene, way: Way, messages: u32, seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let bodies = requests();
    let mut sent = 0;
    let mut head = Vec::new();
    while sent < messages {
        let mut connection = greeted(scene, connect(scene, way));
        let mut number = 1;
        // The connection ends with the first message that is none.
        loop {
            let body = bodies[random.random_range(0..bodies.len())].clone();
            let mut message = ask(number, body);
            number += 1;
            // Most make sense but for a byte or two behind kind and number.
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
            let data = vec![sent as u8; [0, 0, 64, 64, 5000][random.random_range(0..5)]];
            sent += 1;
            if connection.send(&message, &[IoSlice::new(&data)]).is_err() {
                break;
            }
            // An answer, or the end. Who is not answered (the number may be an old one) begins anew.
            connection.set_timeouts(Some(Duration::from_millis(5)), Some(PATIENCE)).unwrap();
            if connection.receive(&mut head).is_err() {
                break;
            }
            if sent >= messages {
                break;
            }
        }
    }
}

/// While others send what they like, a client works; and afterwards.
fn fuzz_beside_a_client(messages: u32, seed: u64) {
    let scene = Scene::in_memory(1);
    let client = scene.client_by(Way::Shared);
    let file = secret_file(&client);
    std::thread::scope(|scope| {
        for (way, seed) in [(Way::Tcp, seed), (Way::Shared, seed + 1)] {
            let scene = &scene;
            scope.spawn(move || fuzz(scene, way, messages / 2, seed));
        }
        let mut out = vec![0; SECRET.len() * 100];
        for round in 0..20 {
            let mine = client.open(&format!("mine/{round}"), CREATE, Striping::default()).unwrap();
            mine.write_at(round * 1000, SECRET).unwrap();
            file.read_at(0, &mut out).unwrap();
            assert!(out == SECRET.repeat(100));
        }
    });
    // Who has the token may forget any file, and a changed byte may say so: then the bytes are there still, for those who
    // have opened it.
    let mut out = vec![0; SECRET.len() * 100];
    file.read_at(0, &mut out).unwrap();
    assert!(out == SECRET.repeat(100));
    let after = scene.client().open("after", CREATE, Striping::default()).unwrap();
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
    fuzz_beside_a_client(1000, 1);
}

#[test]
#[ignore = "slow"]
fn slow_a_million_fuzzed_messages_harm_nobody() {
    fuzz_beside_a_client(1_000_000, 2);
}

#[test]
fn bytes_that_are_no_messages_end_the_connection() {
    let scene = Scene::new(1);
    secret_file(&scene.client());
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for round in 0..50 {
        let mut stream =
            if round % 2 == 0 { TcpStream::connect(scene.address(0)).unwrap() } else { raw(&scene) };
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

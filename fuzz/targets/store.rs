//! What clients and servers of a store say to each other, and a server that is told all of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pio_protocol::frame::Prefix;
use pio_protocol::handshake::Greeting;
use pio_protocol::server::{Action, ConnectionId, Event, Server};
use pio_protocol::{ClientId, ClientProcess, Limits, ProtocolError, Reply, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(greeting) = Greeting::decode(bytes) {
        assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
    }
    if let Ok(reply) = Reply::decode(bytes) {
        let mut again = Vec::new();
        reply.encode(&mut again);
        assert_eq!(Reply::decode(&again), Ok(reply));
    }
    if let Some((prefix, _)) = bytes.split_first_chunk() {
        let _ = Prefix::decode(prefix, &Limits::DEFAULT);
    }
    if let Ok(prefix) = unpacked(bytes) {
        let mut packed = Vec::new();
        prefix.pack(&mut packed);
        assert_eq!(unpacked(&packed), Ok(prefix));
    }
    serve(bytes);
});

fn unpacked(bytes: &[u8]) -> Result<Prefix, ProtocolError> {
    let mut rest = bytes.iter();
    let cut = || ProtocolError::Malformed { expected: "a byte" };
    Prefix::unpack(&Limits::DEFAULT, || rest.next().copied().ok_or_else(cut))
}

/// A session of requests, each with its length before it.
fn serve(mut bytes: &[u8]) {
    // So little that the limits are met, and a request does not take longer than the fuzzer waits.
    let limits = Limits { views: 4, unacknowledged: 8, locks: 4, strips: 1000, ..Limits::DEFAULT };
    let mut server = Server::new(0, 2, limits);
    let (connection, client) = (ConnectionId(1), ClientId(1));
    let mut actions = Vec::new();
    server.handle(Event::Connected { connection, client, process: ClientProcess::default() }, &mut actions);
    while let Some((&len, rest)) = bytes.split_first() {
        let Some((request, rest)) = rest.split_at_checked(usize::from(len)) else { return };
        bytes = rest;
        let Ok(request) = Request::decode(request) else { continue };
        let mut again = Vec::new();
        request.encode(&mut again);
        assert_eq!(Request::decode(&again), Ok(request.clone()));
        let data_bytes = u64::from(len);
        actions.clear();
        server.handle(Event::Received { connection, request, data_bytes }, &mut actions);
        assert!(actions.len() <= 2);
        if let Some(Action::Work(work)) = actions.first() {
            let (client, number) = (work.client, work.number);
            server.handle(Event::Abandoned { client, number }, &mut Vec::new());
        }
    }
}

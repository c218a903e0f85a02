//! A client's way to one server: a [`ClientSession`] driven over a connection, which may break and be made again.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use pio_layout::View;
use pio_protocol::client::{Chunk, ClientSession, Direction, Heard, Retry};
use pio_protocol::{Answer, Body, ClientId, Extents, FileRef, Reply, ReplyBody, Request};

use super::memory::{GATHER_BYTES, Sink, Source};
use super::options::{Options, Unanswered};
use crate::auth::Token;
use crate::config::StoreDescription;
use crate::error::StoreError;
use crate::greet::{Greeted, greet};
use crate::transport::{Connection, Traffic, Transport};

/// How long one attempt to connect may take: the next one may find a server that has started since.
const CONNECTING: Duration = Duration::from_secs(5);

/// Who waits longer for a server is told, and looks as often whether it is somewhere else by now.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who connects, and how.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) client: ClientId,
    pub(super) token: Token,
    pub(super) transport: Transport,
    pub(super) options: Options,
    /// The file that says where the servers are, if they were found by one.
    pub(super) description: Option<PathBuf>,
}

/// What an operation's data come from or go to.
pub(super) enum Payload<'a> {
    None,
    Out(&'a dyn Source),
    In(&'a mut dyn Sink),
}

impl Payload<'_> {
    /// Which way the data go.
    pub(super) fn direction(&self) -> Direction {
        match self {
            Payload::Out(_) => Direction::Write,
            Payload::None | Payload::In(_) => Direction::Read,
        }
    }
}

/// An answer, with what it is the answer to.
pub(super) struct Answered {
    pub(super) chunk: Option<Chunk>,
    pub(super) body: ReplyBody,
}

/// The way to one server.
#[derive(Debug)]
pub(super) struct ServerLink {
    server: u32,
    address: String,
    identity: Arc<Identity>,
    session: ClientSession,
    connection: Option<Box<dyn Connection>>,
    /// Bytes that went over connections that are no more.
    traffic: Traffic,
    /// What a message may have, as the server said.
    head_bytes: u32,
    data_bytes: u32,
    head: Vec<u8>,
    /// How long the connection waits for an answer.
    answer_timeout: Duration,
    retry: Retry,
    /// What the times of `retry` are counted from.
    start: Instant,
}

impl ServerLink {
    pub(super) fn new(server: u32, address: String, identity: Arc<Identity>) -> ServerLink {
        let retry = Retry::new(identity.options.timeout);
        ServerLink {
            server,
            address,
            identity,
            session: ClientSession::new(),
            connection: None,
            traffic: Traffic::default(),
            head_bytes: 0,
            data_bytes: 0,
            head: Vec::new(),
            answer_timeout: Duration::ZERO,
            retry,
            start: Instant::now(),
        }
    }

    pub(super) fn server(&self) -> u32 {
        self.server
    }

    /// Bytes that went to and from the server since the client began.
    pub(super) fn traffic(&self) -> Traffic {
        let now = self.connection.as_ref().map(|connection| connection.traffic());
        self.traffic + now.unwrap_or_default()
    }

    /// How many requests of the present operation are not answered yet.
    pub(super) fn waiting_for(&self) -> usize {
        self.session.outstanding()
    }

    /// Connects if need be; says how many bytes of data a message may have.
    pub(super) fn ready(&mut self) -> Result<u32, StoreError> {
        if self.connection.is_none() {
            self.recover(&Payload::None)?;
        }
        Ok(self.data_bytes)
    }

    /// Asks something without data.
    pub(super) fn ask(&mut self, body: Body) -> Result<(), StoreError> {
        // Asked even if the server cannot be reached: what is given up may have to be taken back.
        let request = self.session.ask(body);
        match self.connection {
            Some(_) => self.transmit(&request, &Payload::None),
            None => self.recover(&Payload::None),
        }
    }

    /// Asks for a chunk to be written or read, by its view or by a list.
    pub(super) fn move_chunk(
        &mut self,
        file: FileRef,
        view: &View,
        list: Option<Extents>,
        chunk: Chunk,
        payload: &Payload,
    ) -> Result<(), StoreError> {
        let request = self.session.ask_chunk(file, view, list, chunk, payload.direction());
        self.transmit(&request, payload)
    }

    /// Waits for the answer of one of the requests of the present operation.
    pub(super) fn answer(&mut self, payload: &mut Payload) -> Result<Answered, StoreError> {
        loop {
            match self.hear(payload) {
                Ok(Some(answered)) => {
                    self.retry.over();
                    return Ok(answered);
                }
                Ok(None) => {}
                Err(error) => {
                    self.broke(error)?;
                    self.recover(payload)?;
                }
            }
        }
    }

    /// Gives the present operation up. Its requests may be half done: the connection goes with them, so that nothing of
    /// them is done after what comes next.
    pub(super) fn abandon(&mut self) {
        if self.session.abandon() {
            self.disconnect();
        }
        self.retry.over();
    }

    /// Says goodbye, if anybody is there to hear it.
    pub(super) fn farewell(&mut self) {
        if self.connection.is_some() {
            let request = self.session.ask(Body::Goodbye);
            let _ = self.put(&request, &Payload::None);
        }
    }

    fn disconnect(&mut self) {
        self.traffic = self.traffic();
        self.connection = None;
    }

    /// Sends a request, over a new connection if the old one is no good.
    fn transmit(&mut self, request: &Request, payload: &Payload) -> Result<(), StoreError> {
        match self.put(request, payload) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.broke(error)?;
                self.recover(payload)
            }
        }
    }

    fn put(&mut self, request: &Request, payload: &Payload) -> io::Result<()> {
        self.head.clear();
        request.encode(&mut self.head);
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if self.head.len() > self.head_bytes as usize {
            // The server would hang up, again and again.
            let (bytes, limit) = (self.head.len() as u64, self.head_bytes.into());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, TooLong { bytes, limit }));
        }
        let timeout = self.retry.answer_timeout(&request.body);
        if timeout != self.answer_timeout {
            connection.set_timeouts(Some(timeout), Some(self.retry.timeout()))?;
            self.answer_timeout = timeout;
        }
        match (payload, self.session.chunk(request.number), &request.body) {
            (Payload::Out(source), Some(chunk), Body::Write { .. }) => {
                send_chunk(&mut **connection, &self.head, chunk, *source)
            }
            _ => connection.send(&self.head, &[]),
        }
    }

    /// Takes the next message; `None` if it was no answer of the present operation.
    fn hear(&mut self, payload: &mut Payload) -> io::Result<Option<Answered>> {
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let data_len = connection.receive(&mut self.head)?;
        let reply = Reply::decode(&self.head)?;
        let data_bytes = if let Ok(Answer::Data { bytes, .. }) = reply.body { bytes } else { 0 };
        if data_bytes != data_len as u64 {
            let wrong = format!("{data_len} bytes of data: expected the {data_bytes} of the answer");
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
        }
        if data_len > 0
            && let (Some(chunk), Payload::In(sink)) = (self.session.chunk(reply.number), &mut *payload)
        {
            receive_chunk(&mut **connection, chunk, data_bytes, *sink)?;
        }
        match self.session.hear(reply) {
            Heard::Nothing => Ok(None),
            Heard::Answer { chunk, body, .. } => Ok(Some(Answered { chunk, body })),
            Heard::Again { request, .. } => {
                self.put(&request, payload)?;
                Ok(None)
            }
        }
    }

    /// Notes that the connection broke, and waits a while if it is not the first one; an error if nothing has worked for too long,
    /// or will work.
    fn broke(&mut self, error: io::Error) -> Result<(), StoreError> {
        self.disconnect();
        self.check_length(&error)?;
        let waited = error.kind() == io::ErrorKind::TimedOut;
        match self.retry.broke(self.start.elapsed(), waited) {
            Some(pause) => {
                thread::sleep(pause);
                Ok(())
            }
            None => Err(self.unreachable(error)),
        }
    }

    /// Connects, and sends again what was not answered.
    fn recover(&mut self, payload: &Payload) -> Result<(), StoreError> {
        self.retry.begin(self.start.elapsed());
        let mut said = false;
        let mut look_at = self.start.elapsed();
        loop {
            let rejected = match self.reconnect(payload, self.retry.left(self.start.elapsed())) {
                Ok(()) => return Ok(()),
                Err(rejected) => rejected,
            };
            self.disconnect();
            let error = match rejected {
                Rejected::Broke(error) => error,
                Rejected::Refused(reason) => {
                    let (server, address) = (self.server, self.address.clone());
                    return Err(StoreError::Refused { server, address, reason });
                }
            };
            self.check_length(&error)?;
            let Some(pause) = self.retry.failed(self.start.elapsed()) else {
                return Err(self.unreachable(error));
            };
            if self.start.elapsed() >= look_at {
                look_at = self.start.elapsed() + PATIENCE;
                self.look_where_it_is();
            }
            let left = self.retry.left(self.start.elapsed());
            if !said && self.retry.timeout().saturating_sub(left) >= PATIENCE {
                said = true;
                let (server, address) = (self.server, &*self.address);
                (self.identity.options.waits)(&Unanswered { server, address, error: &error, left });
            }
            thread::sleep(pause);
        }
    }

    /// Whether an error is one that comes again however often a connection is made.
    fn check_length(&self, error: &io::Error) -> Result<(), StoreError> {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(&TooLong { bytes, limit }) => Err(StoreError::TooLong { server: self.server, bytes, limit }),
            _ => Ok(()),
        }
    }

    /// A server that is started again may listen somewhere else; then the store's description says so.
    fn look_where_it_is(&mut self) {
        let Some(path) = &self.identity.description else { return };
        let Ok(description) = StoreDescription::load(path) else { return };
        if let Some(server) = description.servers.into_iter().nth(self.server as usize) {
            self.address = server.address;
        }
    }

    fn unreachable(&self, source: io::Error) -> StoreError {
        let (server, address) = (self.server, self.address.clone());
        StoreError::Unreachable { server, address, seconds: self.retry.timeout().as_secs(), source }
    }

    /// Connects once; `left` is how long the server may take to say who it is.
    fn reconnect(&mut self, payload: &Payload, left: Duration) -> Result<(), Rejected> {
        let Identity { token, transport, .. } = &*self.identity;
        let mut connection = transport.connect(&self.address, token, left.min(CONNECTING))?;
        connection.set_timeouts(Some(left), Some(left))?;
        let welcome = match greet(&mut *connection, token, self.identity.client, self.server) {
            Ok(Greeted::Welcome { head_bytes, data_bytes }) => Ok((head_bytes, data_bytes)),
            Ok(Greeted::Busy) => Err(Rejected::Broke(io::ErrorKind::ResourceBusy.into())),
            Ok(Greeted::Refused(reason)) => Err(Rejected::Refused(reason)),
            Err(error) => Err(Rejected::Broke(error)),
        };
        (self.head_bytes, self.data_bytes) =
            welcome.inspect_err(|_| self.traffic = self.traffic + connection.traffic())?;
        connection.set_timeouts(Some(self.retry.timeout()), Some(self.retry.timeout()))?;
        self.connection = Some(connection);
        self.answer_timeout = self.retry.timeout();
        for request in self.session.connected() {
            self.put(&request, payload)?;
        }
        Ok(())
    }
}

/// A request's head is longer than its server takes.
#[derive(Debug, thiserror::Error)]
#[error("a request with a head of {bytes} bytes: expected at most {limit}")]
struct TooLong {
    bytes: u64,
    limit: u64,
}

enum Rejected {
    Refused(String),
    Broke(io::Error),
}

impl From<io::Error> for Rejected {
    fn from(error: io::Error) -> Rejected {
        Rejected::Broke(error)
    }
}

/// Sends the data of a chunk from where they lie, or packed if they lie in crumbs.
fn send_chunk(
    connection: &mut dyn Connection,
    head: &[u8],
    chunk: &Chunk,
    source: &dyn Source,
) -> io::Result<()> {
    let crumbs = chunk.len < chunk.bytes.len() as u64 * GATHER_BYTES;
    let mut pieces: Vec<IoSlice> = Vec::with_capacity(chunk.bytes.len());
    if !crumbs && chunk.bytes.iter().all(|bytes| source.gather(bytes.clone(), &mut pieces)) {
        return connection.send(head, &pieces);
    }
    connection.send_filled(head, chunk.len as usize, &mut |mut out| {
        for bytes in &chunk.bytes {
            let (now, later) = out.split_at_mut((bytes.end - bytes.start) as usize);
            source.pack(bytes.clone(), now);
            out = later;
        }
        Ok(())
    })
}

/// Receives the first `len` bytes of a chunk: straight to their place if that is one.
fn receive_chunk(
    connection: &mut dyn Connection,
    chunk: &Chunk,
    len: u64,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    if len > chunk.len {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more data than were asked for"));
    }
    if let [bytes] = &chunk.bytes[..]
        && let Some(place) = sink.slice(bytes.start..bytes.start + len)
    {
        return connection.receive_into(place);
    }
    let mut data = connection.receive_data()?;
    for bytes in &chunk.bytes {
        let (now, later) = data.split_at((bytes.end - bytes.start).min(data.len() as u64) as usize);
        sink.unpack(bytes.start..bytes.start + now.len() as u64, now);
        data = later;
    }
    connection.release();
    Ok(())
}

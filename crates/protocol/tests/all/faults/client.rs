//! A client: the shipped state machines, driven as `pio_store::client` drives them, and a random program over them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use pio_layout::{Datatype, View};
use pio_protocol::client::{
    Chunk, ClientSession, Direction, Heard, MOST_STRIPS, OperationError, Retry, Split, Transfer, Unsynced,
    chunk_bytes, holes, lengths,
};
use pio_protocol::handshake::Greeting;
use pio_protocol::{
    Answer, Body, Failure, FileId, FileRef, Name, Placement, Reply, ReplyBody, Request, VERSION, owner_of,
};

use super::disk::{EIO, ENOSPC, Tag};
use super::history::{FILE_BYTES, Hold, Reader};
use super::kernel::{MS, SECOND, Time};
use super::network::{Ended, Message, Socket};
use super::world::World;

/// Why an operation came to nothing.
#[derive(Debug)]
enum Error {
    /// Nothing worked for too long.
    Unreachable,
    Operation(OperationError),
}

impl From<OperationError> for Error {
    fn from(error: OperationError) -> Error {
        Error::Operation(error)
    }
}

/// What an operation's data come from or go to.
enum Payload<'a> {
    None,
    Out(&'a [Tag]),
    In(&'a mut [Tag]),
}

struct Answered {
    chunk: Option<Chunk>,
    body: ReplyBody,
}

/// The way to one server.
struct Lane {
    link: ClientSession,
    retry: Retry,
    socket: Option<Socket>,
    data_bytes: u32,
    answer_timeout: Duration,
}

/// An open file.
struct Open {
    file: FileRef,
    unsynced: Unsynced,
}

pub(crate) struct Client {
    world: Rc<World>,
    index: usize,
    lanes: Vec<Lane>,
    files: BTreeMap<FileId, Open>,
    next_lock: u64,
}

impl Client {
    pub(crate) fn new(world: &Rc<World>, index: usize) -> Client {
        let lane = |_| Lane {
            link: ClientSession::new(),
            retry: Retry::new(world.settings.timeout),
            socket: None,
            data_bytes: 0,
            answer_timeout: Duration::ZERO,
        };
        Client {
            world: world.clone(),
            index,
            lanes: (0..world.settings.servers).map(lane).collect(),
            files: BTreeMap::new(),
            next_lock: 1,
        }
    }

    /// The client's program.
    pub(crate) async fn run(mut self) {
        for _ in 0..self.world.settings.steps {
            self.step(true).await;
            if self.world.kernel.chance(20) {
                self.world.kernel.sleep(self.world.kernel.random(MS..300 * MS)).await;
            }
        }
        if self.world.kernel.chance(50) {
            for server in 0..self.lanes.len() {
                self.farewell(server);
            }
        }
        let World { kernel, network, .. } = &*self.world;
        self.lanes.iter().filter_map(|lane| lane.socket).for_each(|socket| network.close(kernel, socket));
    }

    async fn step(&mut self, may_lock: bool) {
        let world = self.world.clone();
        let kernel = &world.kernel;
        let open = self.files.len() as u64;
        let which = if open == 0 { 0 } else { kernel.random(0..100) };
        let file = (open > 0).then(|| {
            let at = kernel.random(0..open) as usize;
            self.files.values().nth(at).map(|open| open.file)
        });
        let Some(Some(file)) = file else { return self.open().await };
        match which {
            0..8 => self.open().await,
            8..38 => self.write(file).await,
            38..62 => self.read(file).await,
            62..78 => self.sync(file).await,
            78..82 => self.set_size(file).await,
            82..92 => self.fetch_add(file).await,
            92..98 if may_lock => Box::pin(self.with_lock(file)).await,
            98.. => self.unlink(file).await,
            _ => {}
        }
    }

    fn fail(&mut self, what: &str, file: Option<FileId>, error: &Error) {
        let world = &self.world;
        world.log(|| format!("client {}: {what} of {file:?}: {error:?}", self.index));
        match error {
            Error::Unreachable => {}
            Error::Operation(OperationError::Lost(lost)) => {
                let file = file.expect("a file of which something was lost");
                // Who syncs in vain has to write all of it again, wherever it was; else one server is meant.
                let all = 0..world.settings.servers;
                let servers = if what == "syncing" { all } else { lost.server..lost.server + 1 };
                let now = world.kernel.now();
                servers.for_each(|server| {
                    world.history.borrow_mut().told_of_loss(self.index, file, server, now);
                });
            }
            Error::Operation(OperationError::Failed { failure, .. }) => {
                let expected = [
                    Failure::Os(ENOSPC),
                    Failure::Os(EIO),
                    Failure::NotFound,
                    Failure::Exists,
                    Failure::NotLocked,
                ];
                assert!(expected.contains(failure), "{what} of {file:?}: {failure}");
            }
            Error::Operation(OperationError::Confused { server }) => {
                panic!("{what} of {file:?}: server {server} answered something else than was asked")
            }
        }
    }

    async fn open(&mut self) {
        let world = self.world.clone();
        let name = ["a", "b", "c"][world.kernel.random(0..3) as usize];
        let name = Name::new(name).expect("a name");
        let exclusive = world.kernel.chance(30);
        match self.create(name, exclusive).await {
            Ok(file) => {
                world.log(|| format!("client {} opened {:?}", self.index, file.id));
                self.files.entry(file.id).or_insert_with(|| Open { file, unsynced: Unsynced::default() });
            }
            Err(error) => self.fail("opening", None, &error),
        }
    }

    async fn create(&mut self, name: Name, exclusive: bool) -> Result<FileRef, Error> {
        let world = self.world.clone();
        let servers = world.settings.servers;
        let owner = owner_of(name.as_str(), servers);
        let (unit, factor) =
            (world.kernel.random(1..100), world.kernel.random(1..u64::from(servers) + 1) as u32);
        let placement = Placement::new(unit, factor, owner, servers).expect("a placement");
        let (id, new) = match self.call(owner, Body::Create { name, exclusive, placement }).await? {
            Answer::File { file: Some(id), new } => (id, new),
            _ => return Err(OperationError::Confused { server: owner }.into()),
        };
        if exclusive {
            world.history.borrow_mut().made_exclusively(id);
        }
        let file = if new { FileRef { id, placement } } else { self.describe(id).await? };
        world.history.borrow_mut().opened(id, file.placement);
        Ok(file)
    }

    async fn describe(&mut self, id: FileId) -> Result<FileRef, Error> {
        match self.call(id.home(), Body::Describe { file: id }).await? {
            Answer::Record(placement) => Ok(FileRef { id, placement }),
            _ => Err(OperationError::Confused { server: id.home() }.into()),
        }
    }

    /// A contiguous access or one in pieces.
    fn access(&self) -> (View, Range<u64>) {
        let random = |range| self.world.kernel.random(range);
        let start = random(0..FILE_BYTES / 2);
        if random(0..2) == 0 {
            let end = random(start + 1..(start + 120).min(FILE_BYTES));
            return (View::contiguous(0), start..end);
        }
        // A few views, used again and again.
        let (displacement, len, gap) = (7 * random(0..4), 1 + 3 * random(0..3), 5 * random(1..3));
        let filetype = Datatype::bytes(len).resized(0, (len + gap) as i64).expect("a filetype");
        let view = View::new(displacement, 1, filetype).expect("a view");
        let all = view.position_at_or_after(FILE_BYTES);
        let start = random(0..all / 2);
        (view, start..random(start + 1..(start + 60).min(all)))
    }

    async fn write(&mut self, file: FileRef) {
        let world = self.world.clone();
        let (view, positions) = self.access();
        let bytes = positions.clone().filter_map(|position| view.offset_of(position));
        let tag = world.history.borrow_mut().begin(self.index, file.id, bytes, false, world.kernel.now());
        world.log(|| {
            format!("client {} writes {tag} to {:?}: {positions:?} of {view:?}", self.index, file.id)
        });
        let data = vec![tag; (positions.end - positions.start) as usize];
        let result = self.transfer(file, &view, positions, Payload::Out(&data)).await;
        let result = result.map(|missing| assert_eq!(missing, []));
        self.changed("writing", file.id, tag, result);
    }

    fn changed(&mut self, what: &str, file: FileId, tag: Tag, result: Result<(), Error>) {
        let now = self.world.kernel.now();
        let mut history = self.world.history.borrow_mut();
        match &result {
            Ok(()) => history.acknowledged(tag, now),
            Err(Error::Operation(OperationError::Failed { .. })) => history.failed(tag, now),
            Err(_) => history.abandoned(tag, now),
        }
        drop(history);
        if let Err(error) = result {
            self.fail(what, Some(file), &error);
        }
    }

    async fn read(&mut self, file: FileRef) {
        let world = self.world.clone();
        let (view, positions) = self.access();
        let start = world.kernel.now();
        let mut data = vec![0; (positions.end - positions.start) as usize];
        match self.read_into(file, &view, &positions, &mut data).await {
            Ok(()) => {
                let end = world.kernel.now();
                let bytes = positions.filter_map(|position| view.offset_of(position)).zip(data);
                let bytes: Vec<(u64, Tag)> = bytes.collect();
                world.log(|| format!("client {} read {:?} since {start}: {bytes:?}", self.index, file.id));
                let reader = Reader { client: Some(self.index), start, end };
                world.history.borrow_mut().read(reader, file.id, &bytes);
            }
            Err(error) => self.fail("reading", Some(file.id), &error),
        }
    }

    async fn read_into(
        &mut self,
        file: FileRef,
        view: &View,
        positions: &Range<u64>,
        data: &mut [Tag],
    ) -> Result<(), Error> {
        let missing = self.transfer(file, view, positions.clone(), Payload::In(&mut *data)).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let answers = self.each_part(file, |_| Body::Length { file }).await?;
        let size = file.placement.size(&lengths(&file.placement, &self.files[&file.id].unsynced, answers)?);
        let (len, holes) = holes(missing, view, positions, size);
        holes.for_each(|hole| data[hole.start as usize..hole.end as usize].fill(0));
        // Behind the end of the file there is nothing, which is what zero says here.
        data[len as usize..].fill(0);
        Ok(())
    }

    async fn sync(&mut self, file: FileRef) {
        let world = self.world.clone();
        let start = world.kernel.now();
        let syncing = self.files[&file.id].unsynced.begin_sync();
        let result = match self.each_part(file, |_| Body::Sync { file }).await {
            Ok(answers) => {
                let epochs = answers.into_iter().map(|(server, answer)| match answer {
                    Answer::Written { epoch } => (server, epoch),
                    other => panic!("a sync was answered with {other:?}"),
                });
                let open = self.files.get_mut(&file.id).expect("an open file");
                open.unsynced.end_sync(syncing, epochs).map_err(|lost| OperationError::Lost(lost).into())
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => {
                world.log(|| format!("client {} synced {:?}", self.index, file.id));
                world.history.borrow_mut().synced(self.index, file.id, start, world.kernel.now());
            }
            Err(error) => self.fail("syncing", Some(file.id), &error),
        }
    }

    async fn set_size(&mut self, file: FileRef) {
        let world = self.world.clone();
        let size = world.kernel.random(0..FILE_BYTES);
        let bytes = size..FILE_BYTES;
        let tag = world.history.borrow_mut().begin(self.index, file.id, bytes, true, world.kernel.now());
        world.log(|| format!("client {} cuts {:?} at {size}: {tag}", self.index, file.id));
        let result = self.cut(file, size).await;
        self.changed("cutting", file.id, tag, result);
    }

    async fn cut(&mut self, file: FileRef, size: u64) -> Result<(), Error> {
        let len = |server| {
            let slot = file.placement.slot_of_server(server).unwrap_or(0);
            file.placement.striping().len_of_server(slot, size)
        };
        let answers = self.each_part(file, |server| Body::SetLength { file, bytes: len(server) }).await?;
        for (server, answer) in answers {
            let Answer::Written { epoch } = answer else {
                return Err(OperationError::Confused { server }.into());
            };
            let open = self.files.get_mut(&file.id).expect("an open file");
            open.unsynced.note_written(server, epoch).map_err(OperationError::from)?;
        }
        Ok(())
    }

    async fn fetch_add(&mut self, file: FileRef) {
        let world = self.world.clone();
        let (start, by) = (world.kernel.now(), world.kernel.random(1..5));
        let body = Body::MovePointer { file: file.id, by };
        let which = world.history.borrow_mut().begin_adding(file.id, by, start);
        match self.call(file.id.home(), body).await {
            Ok(Answer::Value(value)) => {
                world.log(|| format!("client {} added {by} to {:?} at {value}", self.index, file.id));
                world.history.borrow_mut().added(file.id, which, value, world.kernel.now());
            }
            Ok(other) => panic!("an addition was answered with {other:?}"),
            Err(error) => self.fail("adding to", Some(file.id), &error),
        }
    }

    async fn with_lock(&mut self, file: FileRef) {
        let world = self.world.clone();
        let kernel = &world.kernel;
        let (home, lock) = (file.id.home(), self.next_lock);
        self.next_lock += 1;
        let start = kernel.random(0..FILE_BYTES / 2);
        let (range, shared) = (start..start + kernel.random(1..FILE_BYTES), kernel.chance(30));
        let mut pause = MS;
        loop {
            let body = Body::Lock { file: file.id, lock, shared, range: range.clone() };
            match self.call(home, body).await {
                Ok(Answer::Done) => break,
                Ok(Answer::Wait { .. }) => {}
                Ok(other) => panic!("a lock was answered with {other:?}"),
                Err(error) => return self.fail("locking", Some(file.id), &error),
            }
            kernel.sleep(pause).await;
            pause = (2 * pause).min(SECOND);
        }
        let from = kernel.now();
        world.log(|| format!("client {} has lock {lock} of {:?}: {range:?}", self.index, file.id));
        for _ in 0..kernel.random(0..3) {
            self.step(false).await;
        }
        let to = kernel.now();
        match self.call(home, Body::Unlock { file: file.id, lock }).await {
            Ok(_) => {
                let hold = Hold { file: file.id, range, shared, from, to };
                world.log(|| format!("client {} had lock {lock}: {hold:?}", self.index));
                world.history.borrow_mut().held(hold);
            }
            Err(error) => self.fail("unlocking", Some(file.id), &error),
        }
    }

    async fn unlink(&mut self, file: FileRef) {
        let world = self.world.clone();
        let name = ["a", "b", "c"][world.kernel.random(0..3) as usize];
        let name = Name::new(name).expect("a name");
        let owner = owner_of(name.as_str(), world.settings.servers);
        let unlinked = match self.call(owner, Body::Unlink { name }).await {
            Ok(Answer::File { file: Some(unlinked), .. }) => unlinked,
            Ok(other) => panic!("an unlink was answered with {other:?}"),
            Err(error) => return self.fail("unlinking", Some(file.id), &error),
        };
        world.log(|| format!("client {} unlinked {unlinked:?}", self.index));
        world.history.borrow_mut().unlinked(unlinked);
        self.files.remove(&unlinked);
        if let Err(error) = self.drop_data(unlinked).await {
            self.fail("removing", Some(unlinked), &error);
        }
    }

    async fn drop_data(&mut self, id: FileId) -> Result<(), Error> {
        let file = self.describe(id).await?;
        self.each_part(file, |_| Body::RemovePart { file }).await?;
        self.call(id.home(), Body::Forget { file: id }).await.map(drop)
    }

    /// Asks each server that has a part of a file, all before any answer is waited for.
    async fn each_part(
        &mut self,
        file: FileRef,
        body: impl Fn(u32) -> Body,
    ) -> Result<Vec<(u32, Answer)>, Error> {
        let servers = file.placement.servers_with_a_part();
        self.call_all(servers.iter().map(|server| (*server, body(*server))).collect()).await
    }

    async fn call(&mut self, server: u32, body: Body) -> Result<Answer, Error> {
        let answers = self.call_all(vec![(server, body)]).await?;
        answers.into_iter().next().map(|(_, answer)| answer).ok_or(Error::Unreachable)
    }

    async fn call_all(&mut self, calls: Vec<(u32, Body)>) -> Result<Vec<(u32, Answer)>, Error> {
        let servers: Vec<u32> = calls.iter().map(|(server, _)| *server).collect();
        let result = self.call_each(calls).await;
        self.abandon(&servers);
        result
    }

    async fn call_each(&mut self, calls: Vec<(u32, Body)>) -> Result<Vec<(u32, Answer)>, Error> {
        let servers: Vec<u32> = calls.iter().map(|(server, _)| *server).collect();
        for (server, body) in calls {
            let request = self.lane(server).link.ask(body);
            match self.lane(server).socket {
                Some(_) => self.transmit(server, &request, &mut Payload::None).await?,
                None => self.recover(server, &mut Payload::None).await?,
            }
        }
        let mut answers = Vec::new();
        for server in servers {
            let Answered { body, .. } = self.answer(server, &mut Payload::None).await?;
            answers.push(body.map(|answer| (server, answer)).map_err(|failure| (server, failure)));
        }
        let failed = |(server, failure)| OperationError::Failed { server, failure }.into();
        answers.into_iter().map(|answer| answer.map_err(failed)).collect()
    }

    /// Moves data; says which parts ended before.
    async fn transfer(
        &mut self,
        file: FileRef,
        view: &View,
        positions: Range<u64>,
        mut payload: Payload<'_>,
    ) -> Result<Vec<Range<u64>>, Error> {
        let servers = file.placement.servers_touched(view, &positions);
        let direction = match payload {
            Payload::Out(_) => Direction::Write,
            _ => Direction::Read,
        };
        let mut transfer = Transfer::new(direction);
        let moved = self.move_all(file, view, positions, &servers, &mut payload, &mut transfer).await;
        self.abandon(&servers);
        moved?;
        Ok(transfer.finish()?)
    }

    async fn move_all(
        &mut self,
        file: FileRef,
        view: &View,
        positions: Range<u64>,
        servers: &[u32],
        payload: &mut Payload<'_>,
        transfer: &mut Transfer,
    ) -> Result<(), Error> {
        let world = self.world.clone();
        let mut bytes = chunk_bytes(world.settings.chunk_bytes, transfer.direction(), view);
        for &server in servers {
            bytes = bytes.min(self.ready(server).await?.into());
        }
        let window = world.settings.window;
        for chunk in Split::new(&file.placement, view, positions, bytes, MOST_STRIPS) {
            let server = file.placement.server_of_slot(chunk.slot);
            if self.lane(server).link.outstanding() >= window {
                while self.lane(server).link.outstanding() > window / 2 {
                    self.settle(file, server, payload, transfer).await?;
                }
            }
            if transfer.has_failed() {
                break;
            }
            // Some by lists: where there are too many pieces, by the view.
            let list = if world.kernel.chance(30) { chunk.extents(view, &file.placement).ok() } else { None };
            let request = self.lane(server).link.ask_chunk(file, view, list, chunk, transfer.direction());
            self.transmit(server, &request, payload).await?;
        }
        for &server in servers {
            while self.lane(server).link.outstanding() > 0 {
                self.settle(file, server, payload, transfer).await?;
            }
        }
        Ok(())
    }

    async fn settle(
        &mut self,
        file: FileRef,
        server: u32,
        payload: &mut Payload<'_>,
        transfer: &mut Transfer,
    ) -> Result<(), Error> {
        let Answered { chunk, body } = self.answer(server, payload).await?;
        let open = self.files.get_mut(&file.id).expect("an open file");
        Ok(transfer.settle(&mut open.unsynced, server, chunk.as_ref(), body)?)
    }

    fn lane(&mut self, server: u32) -> &mut Lane {
        &mut self.lanes[server as usize]
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.world.kernel.now())
    }

    async fn ready(&mut self, server: u32) -> Result<u32, Error> {
        if self.lane(server).socket.is_none() {
            self.recover(server, &mut Payload::None).await?;
        }
        Ok(self.lane(server).data_bytes)
    }

    async fn answer(&mut self, server: u32, payload: &mut Payload<'_>) -> Result<Answered, Error> {
        loop {
            self.repeat_by_mistake(server, payload);
            match self.hear(server, payload).await {
                Ok(Some(answered)) => {
                    self.lane(server).retry.over();
                    return Ok(answered);
                }
                Ok(None) => {}
                Err(ended) => {
                    self.broke(server, ended).await?;
                    self.recover(server, payload).await?;
                }
            }
        }
    }

    /// A request that comes twice over one connection is harmless.
    fn repeat_by_mistake(&mut self, server: u32, payload: &Payload<'_>) {
        if self.world.kernel.chance(3) {
            let numbers = 0..self.world.kernel.random(1..10_000);
            let lane = &self.lanes[server as usize];
            if let Some(request) = numbers.rev().find_map(|number| lane.link.request(number)) {
                let _ = self.put(server, &request, payload);
            }
        }
    }

    fn abandon(&mut self, servers: &[u32]) {
        for &server in servers {
            if self.lane(server).link.abandon() {
                self.disconnect(server);
            }
            self.lane(server).retry.over();
        }
    }

    fn farewell(&mut self, server: usize) {
        if self.lanes[server].socket.is_some() {
            let request = self.lanes[server].link.ask(Body::Goodbye);
            let _ = self.put(server as u32, &request, &Payload::None);
        }
    }

    fn disconnect(&mut self, server: u32) {
        if let Some(socket) = self.lane(server).socket.take() {
            self.world.network.close(&self.world.kernel, socket);
        }
    }

    async fn transmit(
        &mut self,
        server: u32,
        request: &Request,
        payload: &mut Payload<'_>,
    ) -> Result<(), Error> {
        match self.put(server, request, payload) {
            Ok(()) => Ok(()),
            Err(ended) => {
                self.broke(server, ended).await?;
                self.recover(server, payload).await
            }
        }
    }

    fn put(&mut self, server: u32, request: &Request, payload: &Payload<'_>) -> Result<(), Ended> {
        let World { kernel, network, .. } = &*self.world;
        let lane = &mut self.lanes[server as usize];
        lane.answer_timeout = lane.retry.answer_timeout(&request.body);
        let mut head = Vec::new();
        request.encode(&mut head);
        let data = match (payload, lane.link.chunk(request.number)) {
            (Payload::Out(data), Some(chunk)) => {
                let bytes =
                    chunk.bytes.iter().flat_map(|bytes| &data[bytes.start as usize..bytes.end as usize]);
                bytes.copied().collect()
            }
            _ => Vec::new(),
        };
        let socket = lane.socket.ok_or(Ended::Broken)?;
        network.send(kernel, socket, Message { head, data, cut: false })
    }

    async fn receive(&self, server: u32, within: Duration) -> Result<Message, Ended> {
        let World { kernel, network, .. } = &*self.world;
        let socket = self.lanes[server as usize].socket.ok_or(Ended::Broken)?;
        let deadline = kernel.now() + within.as_micros() as Time;
        let message = network.receive(kernel, socket, Some(deadline)).await?;
        if message.cut { Err(Ended::Broken) } else { Ok(message) }
    }

    async fn hear(&mut self, server: u32, payload: &mut Payload<'_>) -> Result<Option<Answered>, Ended> {
        let timeout = self.lane(server).answer_timeout;
        let Message { head, data, .. } = self.receive(server, timeout).await?;
        let reply = Reply::decode(&head).expect("a reply");
        if let (Payload::In(memory), Some(chunk), false) =
            (&mut *payload, self.lane(server).link.chunk(reply.number), data.is_empty())
        {
            assert!(data.len() as u64 <= chunk.len, "more data than were asked for");
            let places = chunk.bytes.iter().flat_map(|bytes| bytes.start as usize..bytes.end as usize);
            places.zip(data).for_each(|(place, tag)| memory[place] = tag);
        }
        match self.lane(server).link.hear(reply) {
            Heard::Nothing => Ok(None),
            Heard::Answer { chunk, body, .. } => Ok(Some(Answered { chunk, body })),
            Heard::Again { request, .. } => {
                self.put(server, &request, payload)?;
                Ok(None)
            }
        }
    }

    async fn broke(&mut self, server: u32, ended: Ended) -> Result<(), Error> {
        if let (Ended::TimedOut, Some(socket)) = (ended, self.lane(server).socket) {
            let node = self.world.node(server);
            let begun = self.world.kernel.now() - self.lane(server).answer_timeout.as_micros() as Time;
            let fast = !node.is_slow.get() && node.fast_since.get() < begun;
            let sound = fast && self.world.network.is_sound(socket, begun);
            assert!(!sound, "client {} waits in vain for server {server}, which works", self.index);
        }
        self.disconnect(server);
        let now = self.now();
        let pause = self.lane(server).retry.broke(now, ended == Ended::TimedOut).ok_or(Error::Unreachable)?;
        self.world.kernel.sleep(pause.as_micros() as Time).await;
        Ok(())
    }

    async fn recover(&mut self, server: u32, payload: &mut Payload<'_>) -> Result<(), Error> {
        let now = self.now();
        self.lane(server).retry.begin(now);
        loop {
            if self.reconnect(server, payload).await.is_ok() {
                return Ok(());
            }
            self.disconnect(server);
            let now = self.now();
            let pause = self.lane(server).retry.failed(now).ok_or(Error::Unreachable)?;
            self.world.kernel.sleep(pause.as_micros() as Time).await;
        }
    }

    async fn reconnect(&mut self, server: u32, payload: &mut Payload<'_>) -> Result<(), Ended> {
        let world = self.world.clone();
        let left = self.lanes[server as usize].retry.left(self.now()).min(Duration::from_secs(5));
        let node = world.node(server);
        world.kernel.sleep(world.kernel.random(20..MS)).await;
        let parted = world.network.partitioned(self.index, server as usize) > world.kernel.now();
        if !node.is_up.get() || parted {
            // Refused by its machine, or nobody answers.
            let waits = if parted { left } else { Duration::from_micros(100) };
            world.kernel.sleep(waits.as_micros() as Time).await;
            return Err(Ended::TimedOut);
        }
        let (socket, of_server) = world.network.connect(self.index, server as usize);
        node.accept(&world, self.index, of_server);
        self.lane(server).socket = Some(socket);
        let hello = Greeting::Hello {
            version: VERSION,
            store: 1,
            client: world.client_id(self.index),
            server,
            nonce: [0; 32],
        };
        world.network.send(
            &world.kernel,
            socket,
            Message { head: hello.encode(), data: Vec::new(), cut: false },
        )?;
        let message = self.receive(server, left).await?;
        match Greeting::decode(&message.head) {
            Ok(Greeting::Welcome { data_bytes, .. }) => {
                world.history.borrow_mut().welcomed(self.index, server, world.kernel.now());
                let lane = self.lane(server);
                lane.data_bytes = data_bytes;
                lane.answer_timeout = lane.retry.timeout();
                for request in lane.link.connected() {
                    self.put(server, &request, payload)?;
                }
                Ok(())
            }
            Ok(Greeting::Busy) => Err(Ended::Broken),
            other => panic!("greeted with {other:?}"),
        }
    }
}

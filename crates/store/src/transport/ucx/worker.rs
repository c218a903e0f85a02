//! A worker of UCX with at most one endpoint: what a connection and a listener are made of. Safe to use: all `unsafe` of
//! this transport beside the declarations is here.
//!
//! What makes it sound: a worker is used by one thread at a time (its owner's); its handlers are called only while it
//! makes progress or is destroyed; what they are given lives in a box that outlives the worker; and memory lent to an
//! operation under way is given back only when the operation is over or the worker destroyed.

#![allow(unsafe_code)] // Talks to C.

use std::ffi::{CStr, c_void};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::inbox::{Body, Failed, Inbox};
use super::library::{self, Api, RequestParam, Status};
use super::socket_address;

/// The number under which our messages are known to UCX.
const MESSAGE_ID: u32 = 0;
/// How long to look for something to do before sleeping: what a reply from the same rack takes.
const SPIN: Duration = Duration::from_micros(20);
/// How long what is cancelled may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// Tells a thread that waits that it is not to wait any longer.
#[derive(Debug)]
pub(super) struct Interrupt {
    set: AtomicBool,
    event: OwnedFd,
}

impl Interrupt {
    fn new() -> io::Result<Arc<Interrupt>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Interrupt { set: AtomicBool::new(false), event }))
    }

    pub(super) fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        // Whoever waits sees it even if the event is at its highest already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    pub(super) fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }
}

/// UCX as this process uses it: one context.
struct Context {
    api: &'static Api,
    raw: library::Context,
}

// SAFETY: the context was made for workers in several threads.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The context of this process.
fn context() -> io::Result<&'static Context> {
    static CONTEXT: OnceLock<Result<Context, String>> = OnceLock::new();
    CONTEXT
        .get_or_init(make_context)
        .as_ref()
        .map_err(|why| io::Error::new(ErrorKind::Unsupported, why.as_str()))
}

fn make_context() -> Result<Context, String> {
    let api = library::library()?;
    let params = library::Params {
        field_mask: library::params::FEATURES | library::params::MT_WORKERS_SHARED,
        features: library::params::FEATURE_AM | library::params::FEATURE_WAKEUP,
        mt_workers_shared: 1,
        ..Default::default()
    };
    let (mut config, mut raw) = (null_mut(), null_mut());
    let (major, minor) = library::API_VERSION;
    // SAFETY: pointers to what is to be written, and null for "as the environment says".
    let status = unsafe { (api.ucp_config_read)(null(), null(), &mut config) };
    check(api, status).map_err(|error| format!("UCX cannot read its settings: {error}"))?;
    for (variable, name, value) in [
        // UCX's shared memory does not notice that a peer died, so that UCX never chooses it for us; to set it up for each
        // connection all the same takes tens of milliseconds.
        ("UCX_TLS", c"TLS", c"^sm"),
        // A server that was killed finds its port again.
        ("UCX_TCP_CM_REUSEADDR", c"CM_REUSEADDR", c"y"),
    ] {
        if std::env::var_os(variable).is_none() {
            // It works without: an older UCX that does not know the name says so, and nobody needs to know.
            // SAFETY: the configuration that was read, and two C strings.
            unsafe { (api.ucp_config_modify)(config, name.as_ptr(), value.as_ptr()) };
        }
    }
    // SAFETY: the parameters that the mask names are set; the configuration was read above.
    let status = unsafe { (api.ucp_init_version)(major, minor, &params, config, &mut raw) };
    // SAFETY: the configuration is of no more use.
    unsafe { (api.ucp_config_release)(config) };
    check(api, status).map_err(|error| format!("UCX cannot start: {error}"))?;
    Ok(Context { api, raw })
}

/// Whether UCX can be used here; else why not.
pub(super) fn available() -> io::Result<()> {
    context().map(drop)
}

/// A worker, and what it was told.
pub(super) struct Worker {
    api: &'static Api,
    raw: library::Worker,
    endpoint: Option<library::Endpoint>,
    listener: Option<library::Listener>,
    interrupt: Arc<Interrupt>,
    /// Bytes of the header of a message.
    header_bytes: usize,
    /// Messages that are sent while the owner does something else, in turn.
    posted: [Posted; 2],
    turn: usize,
    /// The handlers use it until the worker is gone.
    inbox: Rc<Inbox>,
}

// SAFETY: the worker was made for threads that take turns; what it points to, and the inbox, is known to nobody else.
unsafe impl Send for Worker {}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// A request of a client to be connected.
#[derive(Debug)]
pub(super) struct ConnectionRequest(library::ConnectionRequest);

// SAFETY: it is handed from the listener's worker to that of the connection.
unsafe impl Send for ConnectionRequest {}

/// Data that are still with who sent them: to be [fetched](Worker::fetch) or [discarded](Worker::discard).
#[derive(Debug)]
pub(super) struct Descriptor(*mut c_void);

// SAFETY: it stays with the worker that it came through.
unsafe impl Send for Descriptor {}

/// Something that is under way.
#[derive(Debug)]
struct Request(library::StatusPointer);

/// A message that is sent while its owner does something else. Header and data stay as they are while there is a request.
#[derive(Debug, Default)]
struct Posted {
    header: Vec<u8>,
    data: Vec<u8>,
    request: Option<Request>,
}

impl Worker {
    fn new() -> io::Result<Worker> {
        let Context { api, raw: context } = *context()?;
        let interrupt = Interrupt::new()?;
        let params = library::WorkerParams {
            field_mask: library::worker::THREAD_MODE,
            thread_mode: library::worker::THREAD_MODE_SERIALIZED,
            ..Default::default()
        };
        let mut raw = null_mut();
        // SAFETY: the context is never given back; the parameters that the mask names are set.
        check(api, unsafe { (api.ucp_worker_create)(context, &params, &mut raw) })?;
        let mut worker = Worker {
            api,
            raw,
            endpoint: None,
            listener: None,
            interrupt,
            header_bytes: 0,
            posted: Default::default(),
            turn: 0,
            inbox: Rc::default(),
        };
        let mut attr =
            library::WorkerAttr { field_mask: library::worker::ATTR_MAX_AM_HEADER, ..Default::default() };
        // SAFETY: the worker is there, and there is room for what it says.
        check(api, unsafe { (api.ucp_worker_query)(raw, &mut attr) })?;
        worker.header_bytes = attr.max_am_header;
        let param = library::HandlerParam {
            field_mask: library::am::HANDLER_ID | library::am::HANDLER_CB | library::am::HANDLER_ARG,
            id: MESSAGE_ID,
            cb: Some(on_message),
            arg: worker.inbox_pointer(),
            ..Default::default()
        };
        // SAFETY: the handler takes the inbox, which outlives the worker.
        check(api, unsafe { (api.ucp_worker_set_am_recv_handler)(raw, &param) })?;
        Ok(worker)
    }

    /// A worker whose endpoint is connected to the listener at `address`.
    pub(super) fn connect(address: &SocketAddr, timeout: Duration) -> io::Result<Worker> {
        let mut worker = Worker::new()?;
        let socket_address = socket_address::encode(address);
        worker.make_endpoint(library::EndpointParams {
            field_mask: library::endpoint::SOCK_ADDR | library::endpoint::FLAGS,
            flags: library::endpoint::FLAG_CLIENT_SERVER,
            sockaddr: library::SockAddr { addr: &socket_address, addrlen: socket_address::len(address) },
            ..Default::default()
        })?;
        // Nothing to send, but to be connected is waited for.
        worker.flush(Instant::now().checked_add(timeout))?;
        Ok(worker)
    }

    /// A worker whose endpoint is connected to who made the request.
    pub(super) fn accept(request: ConnectionRequest) -> io::Result<Worker> {
        let mut worker = Worker::new()?;
        worker.make_endpoint(library::EndpointParams {
            field_mask: library::endpoint::CONN_REQUEST,
            conn_request: request.0,
            ..Default::default()
        })?;
        Ok(worker)
    }

    /// A worker that is told who wants to be connected to `address`, and where that is if any port was asked for.
    pub(super) fn listen(address: &SocketAddr) -> io::Result<(Worker, SocketAddr)> {
        let mut worker = Worker::new()?;
        let socket_address = socket_address::encode(address);
        let params = library::ListenerParams {
            field_mask: library::listener::SOCK_ADDR | library::listener::CONN_HANDLER,
            sockaddr: library::SockAddr { addr: &socket_address, addrlen: socket_address::len(address) },
            conn_handler: Some(on_connection),
            conn_handler_arg: worker.inbox_pointer(),
            ..Default::default()
        };
        let mut listener = null_mut();
        // SAFETY: the parameters that the mask names are set; the handler takes the inbox, which outlives the listener.
        check(worker.api, unsafe { (worker.api.ucp_listener_create)(worker.raw, &params, &mut listener) })?;
        worker.listener = Some(listener);
        let mut attr = library::ListenerAttr {
            field_mask: library::listener::ATTR_SOCKADDR,
            sockaddr: library::SocketAddress([0; 128]),
        };
        // SAFETY: the listener is there, and there is room for what it says.
        check(worker.api, unsafe { (worker.api.ucp_listener_query)(listener, &mut attr) })?;
        let here = socket_address::decode(&attr.sockaddr)
            .ok_or_else(|| io::Error::new(ErrorKind::Unsupported, "UCX listens at no internet address"))?;
        Ok((worker, here))
    }

    pub(super) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub(super) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    pub(super) fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Makes progress until `done` says that it is enough.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if the deadline passed before; if the other side is gone; if it was interrupted.
    pub(super) fn wait(
        &self,
        deadline: Option<Instant>,
        mut done: impl FnMut(&Worker) -> bool,
    ) -> io::Result<()> {
        let mut idle_since = None;
        loop {
            if done(self) {
                return Ok(());
            }
            if self.interrupt.is_set() {
                return Err(io::Error::new(ErrorKind::ConnectionAborted, "the connection was broken"));
            }
            let progressed = self.progress();
            if done(self) {
                return Ok(());
            }
            self.failure()?;
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(ErrorKind::TimedOut.into());
            }
            if progressed {
                idle_since = None;
            } else if now.duration_since(*idle_since.get_or_insert(now)) < SPIN {
                std::hint::spin_loop();
            } else {
                self.sleep(deadline.map(|deadline| deadline - now))?;
            }
        }
    }

    /// Sends a message. Its data are not copied if there are many.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(super) fn send(
        &mut self,
        header: &[u8],
        data: &[IoSlice<'_>],
        rendezvous: bool,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        // SAFETY: both are borrowed until the request is over, or the worker destroyed.
        match unsafe { self.begin(header, data, rendezvous) }? {
            Some(request) => self.finish(request, deadline),
            None => Ok(()),
        }
    }

    /// Begins to send a message whose header and data stay where they are.
    ///
    /// # Safety
    /// What header and data point to stays until the request that is returned is over, or the worker destroyed.
    unsafe fn begin(
        &mut self,
        header: &[u8],
        data: &[IoSlice<'_>],
        rendezvous: bool,
    ) -> io::Result<Option<Request>> {
        let Some(endpoint) = self.endpoint else { return Err(closed()) };
        let flags = if rendezvous { library::am::SEND_RENDEZVOUS } else { library::am::SEND_EAGER };
        let (buffer, count, datatype) = match data {
            [] => (null(), 0, library::operation::BYTES),
            [piece] => (piece.as_ptr().cast::<c_void>(), piece.len(), library::operation::BYTES),
            // A slice for vectored I/O is a pointer and a length, as is an element of UCX's list.
            pieces => (pieces.as_ptr().cast(), pieces.len(), library::operation::IOV),
        };
        let param = RequestParam {
            op_attr_mask: library::operation::DATATYPE | library::operation::FLAGS,
            flags,
            datatype,
            ..Default::default()
        };
        // SAFETY: the endpoint is open; the caller keeps header and data.
        let pointer = unsafe {
            (self.api.ucp_am_send_nbx)(
                endpoint,
                MESSAGE_ID,
                header.as_ptr().cast(),
                header.len(),
                buffer,
                count,
                &param,
            )
        };
        self.begun(pointer)
    }

    /// Memory for the data of the next message to be [posted](Worker::post), as soon as there is some.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(super) fn room(&mut self, len: usize, deadline: Option<Instant>) -> io::Result<&mut [u8]> {
        let turn = self.turn;
        if let Some(request) = self.posted[turn].request.take() {
            self.finish(request, deadline)?;
        }
        let data = &mut self.posted[turn].data;
        if data.len() < len {
            data.resize(len, 0);
        }
        Ok(&mut data[..len])
    }

    /// Sends a message whose data are the first `len` bytes of the [room](Worker::room) there was, and does not wait.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(super) fn post(&mut self, header: &[u8], len: usize, rendezvous: bool) -> io::Result<()> {
        let turn = self.turn;
        assert!(self.posted[turn].request.is_none(), "a message is posted into room that is there");
        let message = &mut self.posted[turn];
        message.header.clear();
        message.header.extend_from_slice(header);
        let (header, data): (*const [u8], *const [u8]) = (&message.header[..], &message.data[..len]);
        // SAFETY: both are on the heap, and neither touched nor given back before the request is over.
        let begun = unsafe { self.begin(&*header, &[IoSlice::new(&*data)], rendezvous) }?;
        self.posted[turn].request = begun;
        self.turn = (turn + 1) % self.posted.len();
        self.progress();
        Ok(())
    }

    /// What a posted message's data are, before it is posted.
    pub(super) fn posted(&self, len: usize) -> &[u8] {
        &self.posted[self.turn].data[..len]
    }

    /// Gives memory back that is kept from message to message.
    pub(super) fn trim(&mut self) {
        for posted in self.posted.iter_mut().filter(|posted| posted.request.is_none()) {
            *posted = Posted::default();
        }
    }

    /// Takes data that are still with the sender.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(super) fn fetch(
        &mut self,
        descriptor: Descriptor,
        out: &mut [u8],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        if self.endpoint.is_none() {
            return Err(closed());
        }
        let param = RequestParam::default();
        // SAFETY: the descriptor is UCX's and was not used; `out` is borrowed until the request is over.
        let pointer = unsafe {
            (self.api.ucp_am_recv_data_nbx)(
                self.raw,
                descriptor.0,
                out.as_mut_ptr().cast(),
                out.len(),
                &param,
            )
        };
        match self.begun(pointer)? {
            Some(request) => self.finish(request, deadline),
            None => Ok(()),
        }?;
        // The sender waits for a word that the data were taken.
        for _ in 0..4 {
            if !self.progress() {
                break;
            }
        }
        Ok(())
    }

    /// Says that nobody wants data that are with the sender.
    pub(super) fn discard(&self, descriptor: Descriptor) {
        // With the worker went what it had received.
        if !self.raw.is_null() {
            // SAFETY: the worker is there; the descriptor is its, and was not used.
            unsafe { (self.api.ucp_am_data_release)(self.raw, descriptor.0) };
        }
    }

    /// Waits until all that was sent is with the transport's other end.
    pub(super) fn flush(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let Some(endpoint) = self.endpoint else { return Err(closed()) };
        // SAFETY: the endpoint is open.
        let pointer = unsafe { (self.api.ucp_ep_flush_nbx)(endpoint, &RequestParam::default()) };
        match self.begun(pointer)? {
            Some(request) => self.finish(request, deadline),
            None => Ok(()),
        }
    }

    /// Ends it: all that is under way is cancelled, and no memory is touched any more.
    pub(super) fn close(&mut self) {
        self.end(None);
    }

    /// Lets a client go that asked to be connected.
    pub(super) fn reject(&self, request: ConnectionRequest) {
        if let Some(listener) = self.listener {
            // SAFETY: the request came through this listener and was not used.
            unsafe { (self.api.ucp_listener_reject)(listener, request.0) };
        }
    }

    fn make_endpoint(&mut self, params: library::EndpointParams) -> io::Result<()> {
        let params = library::EndpointParams {
            field_mask: params.field_mask
                | library::endpoint::ERR_HANDLING_MODE
                | library::endpoint::ERR_HANDLER,
            err_mode: library::endpoint::ERR_HANDLING_MODE_PEER,
            err_handler: Some(on_failure),
            err_handler_arg: self.inbox_pointer(),
            ..params
        };
        let mut endpoint = null_mut();
        // SAFETY: the parameters that the mask names are set; the handler takes the inbox, which outlives the worker.
        check(self.api, unsafe { (self.api.ucp_ep_create)(self.raw, &params, &mut endpoint) })?;
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// What handlers are given.
    fn inbox_pointer(&self) -> *mut c_void {
        Rc::as_ptr(&self.inbox).cast_mut().cast()
    }

    fn progress(&self) -> bool {
        // SAFETY: the worker is there as long as `self`, but for `end`, after which nothing calls this.
        !self.raw.is_null() && unsafe { (self.api.ucp_worker_progress)(self.raw) } != 0
    }

    /// What the endpoint failed with, or a message that makes no sense.
    fn failure(&self) -> io::Result<()> {
        match self.inbox.failed() {
            Some(Failed::Status(status)) => check(self.api, status)?,
            Some(Failed::Malformed(expected)) => return Err(malformed(expected)),
            None => {}
        }
        if self.raw.is_null() { Err(closed()) } else { Ok(()) }
    }

    /// Sleeps until there is something to do.
    fn sleep(&self, most: Option<Duration>) -> io::Result<()> {
        let mut fd = -1;
        // SAFETY: the worker is there; it keeps its descriptor as long.
        check(self.api, unsafe { (self.api.ucp_worker_get_efd)(self.raw, &mut fd) })?;
        // SAFETY: as above.
        let status = unsafe { (self.api.ucp_worker_arm)(self.raw) };
        if status == library::BUSY {
            return Ok(());
        }
        check(self.api, status)?;
        // SAFETY: the worker's descriptor, which stays open as long as the worker.
        let worker = unsafe { BorrowedFd::borrow_raw(fd) };
        let mut fds = [
            PollFd::from_borrowed_fd(worker, PollFlags::IN),
            PollFd::new(&self.interrupt.event, PollFlags::IN),
        ];
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        match poll(&mut fds, most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn begun(&mut self, pointer: library::StatusPointer) -> io::Result<Option<Request>> {
        match library::outcome(pointer) {
            Ok(request) => Ok(request.map(Request)),
            Err(status) => {
                self.end(None);
                check(self.api, status).map(|()| None)
            }
        }
    }

    /// Waits until a request is over.
    fn finish(&mut self, request: Request, deadline: Option<Instant>) -> io::Result<()> {
        let waited = self.wait(deadline, |worker| worker.status(&request) != library::IN_PROGRESS);
        let status = self.status(&request);
        if waited.is_ok() && status == library::OK {
            self.free(request);
            return Ok(());
        }
        let error = match waited {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                io::Error::new(ErrorKind::ConnectionAborted, "a message stopped in the middle")
            }
            Err(error) => error,
            Ok(()) => self
                .failure()
                .and_then(|()| check(self.api, status))
                .err()
                .unwrap_or_else(|| ErrorKind::ConnectionAborted.into()),
        };
        self.end(Some(request));
        Err(error)
    }

    fn status(&self, request: &Request) -> Status {
        // SAFETY: the request was not given back.
        unsafe { (self.api.ucp_request_check_status)(request.0) }
    }

    fn free(&self, request: Request) {
        // SAFETY: the request was not given back, nor is it used any more.
        unsafe { (self.api.ucp_request_free)(request.0) }
    }

    /// Closes the endpoint without asking the other side, waits a little for what was under way to be cancelled, and
    /// destroys the worker: after that nothing of it touches memory.
    fn end(&mut self, under_way: Option<Request>) {
        if self.raw.is_null() {
            return;
        }
        for body in self.inbox.empty() {
            if let Body::There { descriptor, .. } = body {
                self.discard(descriptor);
            }
        }
        while let Some(request) = self.inbox.next_request() {
            self.reject(request);
        }
        let mut ending: Vec<Request> = under_way.into_iter().collect();
        ending.extend(self.posted.iter_mut().filter_map(|posted| posted.request.take()));
        if let Some(endpoint) = self.endpoint.take() {
            let param = RequestParam {
                op_attr_mask: library::operation::FLAGS,
                flags: library::endpoint::CLOSE_FLAG_FORCE,
                ..Default::default()
            };
            // SAFETY: the endpoint is open, and not used any more.
            let pointer = unsafe { (self.api.ucp_ep_close_nbx)(endpoint, &param) };
            ending.extend(library::outcome(pointer).ok().flatten().map(Request));
        }
        let start = Instant::now();
        while ending.iter().any(|request| self.status(request) == library::IN_PROGRESS)
            && start.elapsed() < ENDING
        {
            if !self.progress() {
                std::thread::yield_now();
            }
        }
        ending.into_iter().for_each(|request| self.free(request));
        if let Some(listener) = self.listener.take() {
            // SAFETY: the listener is there, and not used any more.
            unsafe { (self.api.ucp_listener_destroy)(listener) };
        }
        // SAFETY: the worker is there, and not used any more.
        unsafe { (self.api.ucp_worker_destroy)(self.raw) };
        self.raw = null_mut();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// UCX's handler of failures: the argument is the inbox.
unsafe extern "C" fn on_failure(inbox: *mut c_void, _: library::Endpoint, status: Status) {
    // SAFETY: the inbox outlives the worker, and is shared only within the thread that makes progress.
    unsafe { &*inbox.cast::<Inbox>() }.fail(Failed::Status(status));
}

/// UCX's handler of who wants to be connected: the argument is the inbox.
unsafe extern "C" fn on_connection(request: library::ConnectionRequest, inbox: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*inbox.cast::<Inbox>() }.take_request(ConnectionRequest(request));
}

/// UCX's handler of messages: the argument is the inbox.
unsafe extern "C" fn on_message(
    inbox: *mut c_void,
    header: *const c_void,
    header_len: usize,
    data: *mut c_void,
    len: usize,
    param: *const library::MessageParam,
) -> Status {
    // SAFETY: as above.
    let inbox = unsafe { &*inbox.cast::<Inbox>() };
    // SAFETY: so many bytes are there while the handler runs.
    let header = unsafe { bytes(header.cast(), header_len) };
    // SAFETY: UCX gives a parameter that is there while the handler runs.
    let rendezvous = unsafe { (*param).recv_attr } & library::am::RECV_RENDEZVOUS != 0;
    if rendezvous {
        // What is refused here is dropped by UCX, which is told so by anything but "in progress".
        let body = Body::There { descriptor: Descriptor(data), len };
        return if inbox.take(header, body) { library::IN_PROGRESS } else { library::OK };
    }
    // SAFETY: so many bytes are there while the handler runs.
    let data = unsafe { bytes(data.cast(), len) };
    if inbox.admits(header, len) {
        inbox.take(header, Body::Here(data.to_vec()));
    }
    library::OK
}

/// # Safety
/// So many bytes are there for as long as the result is used.
unsafe fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, len) } }
}

/// An error of UCX, in our words where there are any.
fn check(api: &Api, status: Status) -> io::Result<()> {
    if status >= 0 {
        return Ok(());
    }
    let kind = match status {
        library::CONNECTION_RESET | library::ENDPOINT_TIMEOUT => ErrorKind::UnexpectedEof,
        library::UNREACHABLE | library::REJECTED => ErrorKind::ConnectionRefused,
        library::NO_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::ConnectionReset,
    };
    // SAFETY: a string that is never given back.
    let text = unsafe { CStr::from_ptr((api.ucs_status_string)(status)) };
    Err(io::Error::new(kind, format!("UCX: {}", text.to_string_lossy())))
}

/// A message that makes no sense.
pub(super) fn malformed(expected: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed message: expected {expected}"))
}

fn closed() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the connection is closed")
}

//! A worker of UCX with at most one endpoint: what a connection and a listener are made of. Safe to use: all `unsafe` of
//! this transport beside the declarations is here.
//!
//! What makes it sound: a worker is used by one thread at a time (its owner's); its handlers are called only while it
//! makes progress or is destroyed; what they are given lives in a box that outlives the worker; and memory lent to an
//! operation under way is given back only when the operation is over or the worker destroyed.

#![allow(unsafe_code)] // Talks to C.

use std::ffi::c_void;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

mod context;
mod traffic;

use self::context::{Context, check, closed, context};
use self::traffic::{Posted, Request};
use super::handles::{ConnectionRequest, Descriptor};
use super::inbox::{Body, Failed, Inbox};
use super::interrupt::Interrupt;
use super::library::{self, Api, RequestParam, Status};
use super::socket_address;

pub use self::context::available;
pub(super) use self::context::malformed;

/// The number under which our messages are known to UCX.
const MESSAGE_ID: u32 = 0;
/// How long to look for something to do before sleeping: what a reply from the same rack takes.
const SPIN: Duration = Duration::from_micros(20);
/// How long what is cancelled may take to end. It takes milliseconds; on a machine that is too busy to do it in time, it is
/// safer to wait: UCX's own thread may be at it still.
const ENDING: Duration = Duration::from_secs(10);

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
        let mut fds = [PollFd::from_borrowed_fd(worker, PollFlags::IN), self.interrupt.poll_fd()];
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        match poll(&mut fds, most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
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

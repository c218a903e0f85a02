//! The least that UCX can do: messages of a chunk, one behind the other, from a thread to another, and nothing else.

#![allow(unsafe_code)] // Talks to C.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::ptr::{null, null_mut};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

/// As our transport does.
const SPIN: Duration = Duration::from_micros(20);

#[allow(dead_code)] // Each has what it needs.
#[path = "../../src/transport/ucx/library.rs"]
mod library;
#[path = "../../src/transport/ucx/socket_address.rs"]
mod socket_address;

use library::{Api, RequestParam, Status};

/// UCX, with a context.
pub(crate) struct Bare {
    api: &'static Api,
    context: library::Context,
}

// SAFETY: the context was made for workers in several threads.
unsafe impl Sync for Bare {}

/// A worker and what came for it.
struct Worker<'a> {
    api: &'a Api,
    raw: library::Worker,
    endpoint: library::Endpoint,
    came: Box<RefCell<Came>>,
}

#[derive(Default)]
struct Came {
    requests: VecDeque<library::ConnectionRequest>,
    messages: VecDeque<Message>,
}

enum Message {
    Here(Vec<u8>),
    There(*mut c_void),
}

impl Bare {
    /// `None` if there is no UCX here.
    pub(crate) fn new() -> Result<Option<Bare>> {
        let Ok(api) = library::library() else { return Ok(None) };
        let (mut config, mut context) = (null_mut(), null_mut());
        let params = library::Params {
            field_mask: library::params::FEATURES | library::params::MT_WORKERS_SHARED,
            features: library::params::FEATURE_AM | library::params::FEATURE_WAKEUP,
            mt_workers_shared: 1,
            ..Default::default()
        };
        let (major, minor) = library::API_VERSION;
        // SAFETY: as the API says.
        unsafe {
            check((api.ucp_config_read)(null(), null(), &mut config))?;
            // As our transport does.
            for (name, value) in [(c"TLS", c"^sm"), (c"CM_USE_ALL_DEVICES", c"n")] {
                let is_set = std::env::var_os(format!("UCX_{}", name.to_string_lossy())).is_some();
                if !is_set && (value == c"^sm" || !pio_store::transport::ucx::has_hardware()) {
                    check((api.ucp_config_modify)(config, name.as_ptr(), value.as_ptr()))?;
                }
            }
            check((api.ucp_init_version)(major, minor, &params, config, &mut context))?;
            (api.ucp_config_release)(config);
        }
        Ok(Some(Bare { api, context }))
    }

    /// The version of the library.
    pub(crate) fn version(&self) -> String {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: three numbers to write to.
        unsafe { (self.api.ucp_get_version)(&mut major, &mut minor, &mut release) };
        format!("{major}.{minor}.{release}")
    }

    /// Sends `count` chunks, of which `window` are under way at most beside the one that `next` says where it is; `take`
    /// is given the number of each that came, and what puts it somewhere.
    pub(crate) fn stream(
        &self,
        count: usize,
        window: usize,
        mut next: impl FnMut(usize) -> Result<(*const u8, usize)> + Send,
        mut take: impl FnMut(usize, &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        thread::scope(|scope| {
            let (here, there) = mpsc::channel::<SocketAddr>();
            let sender = scope.spawn(move || -> Result<()> {
                let address = there.recv().map_err(|_| Error::other("nobody listens"))?;
                let mut worker = Worker::new(self)?;
                worker.connect(&address)?;
                let mut under_way = VecDeque::new();
                for number in 0..count {
                    let (start, len) = next(number)?;
                    under_way.extend(worker.send(start, len)?);
                    while under_way.len() > window {
                        under_way.pop_front().map_or(Ok(()), |request| worker.finish(request))?;
                    }
                }
                under_way.into_iter().try_for_each(|request| worker.finish(request))?;
                worker.wait(|worker| !worker.came.borrow().messages.is_empty())
            });
            let mut worker = Worker::new(self)?;
            worker.accept(&here)?;
            for number in 0..count {
                take(number, &mut |out| worker.receive(out))?;
            }
            // So that neither goes before the other is done.
            if let Some(request) = worker.send([0].as_ptr(), 1)? {
                worker.finish(request)?;
            }
            sender.join().map_err(|_| Error::other("the sender failed"))?
        })
    }
}

impl<'a> Worker<'a> {
    fn new(bare: &'a Bare) -> Result<Worker<'a>> {
        let params = library::WorkerParams {
            field_mask: library::worker::THREAD_MODE,
            thread_mode: library::worker::THREAD_MODE_SERIALIZED,
            ..Default::default()
        };
        let mut worker =
            Worker { api: bare.api, raw: null_mut(), endpoint: null_mut(), came: Box::default() };
        let handler = library::HandlerParam {
            field_mask: library::am::HANDLER_ID | library::am::HANDLER_CB | library::am::HANDLER_ARG,
            cb: Some(on_message),
            arg: worker.came(),
            ..Default::default()
        };
        // SAFETY: as the API says; what came stays where it is.
        unsafe {
            check((bare.api.ucp_worker_create)(bare.context, &params, &mut worker.raw))?;
            check((bare.api.ucp_worker_set_am_recv_handler)(worker.raw, &handler))?;
        }
        Ok(worker)
    }

    fn came(&self) -> *mut c_void {
        std::ptr::from_ref::<RefCell<Came>>(&self.came).cast_mut().cast()
    }

    fn connect(&mut self, address: &SocketAddr) -> Result<()> {
        let socket_address = socket_address::encode(address);
        self.make_endpoint(&library::EndpointParams {
            field_mask: library::endpoint::SOCK_ADDR
                | library::endpoint::FLAGS
                | library::endpoint::ERR_HANDLING_MODE,
            err_mode: library::endpoint::ERR_HANDLING_MODE_PEER,
            flags: library::endpoint::FLAG_CLIENT_SERVER,
            sockaddr: library::SockAddr { addr: &socket_address, addrlen: socket_address::len(address) },
            ..Default::default()
        })
    }

    fn accept(&mut self, here: &mpsc::Sender<SocketAddr>) -> Result<()> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket_address = socket_address::encode(&any);
        let params = library::ListenerParams {
            field_mask: library::listener::SOCK_ADDR | library::listener::CONN_HANDLER,
            sockaddr: library::SockAddr { addr: &socket_address, addrlen: socket_address::len(&any) },
            conn_handler: Some(on_connection),
            conn_handler_arg: self.came(),
            ..Default::default()
        };
        let mut attr = library::ListenerAttr {
            field_mask: library::listener::ATTR_SOCKADDR,
            sockaddr: library::SocketAddress([0; 128]),
        };
        let mut listener = null_mut();
        // SAFETY: as the API says; what came stays where it is. The listener ends with its worker.
        unsafe {
            check((self.api.ucp_listener_create)(self.raw, &params, &mut listener))?;
            check((self.api.ucp_listener_query)(listener, &mut attr))?;
        }
        let address = socket_address::decode(&attr.sockaddr).ok_or_else(|| Error::other("an address"))?;
        here.send(address).map_err(|_| Error::other("nobody connects"))?;
        self.wait(|worker| !worker.came.borrow().requests.is_empty())?;
        let request = self.came.borrow_mut().requests.pop_front().unwrap_or(null_mut());
        self.make_endpoint(&library::EndpointParams {
            field_mask: library::endpoint::CONN_REQUEST | library::endpoint::ERR_HANDLING_MODE,
            err_mode: library::endpoint::ERR_HANDLING_MODE_PEER,
            conn_request: request,
            ..Default::default()
        })?;
        // SAFETY: there is nobody else to come.
        unsafe { (self.api.ucp_listener_destroy)(listener) };
        Ok(())
    }

    fn make_endpoint(&mut self, params: &library::EndpointParams) -> Result<()> {
        // SAFETY: as the API says.
        check(unsafe { (self.api.ucp_ep_create)(self.raw, params, &mut self.endpoint) })
    }

    fn send(&self, start: *const u8, len: usize) -> Result<Option<*mut c_void>> {
        let param = RequestParam::default();
        // SAFETY: the caller keeps the data until the request is over.
        let pointer =
            unsafe { (self.api.ucp_am_send_nbx)(self.endpoint, 0, null(), 0, start.cast(), len, &param) };
        library::outcome(pointer).map_err(error)
    }

    fn receive(&self, out: &mut [u8]) -> Result<()> {
        self.wait(|worker| !worker.came.borrow().messages.is_empty())?;
        let message = self.came.borrow_mut().messages.pop_front();
        match message {
            Some(Message::Here(data)) => out.copy_from_slice(&data),
            Some(Message::There(descriptor)) => {
                let (start, len) = (out.as_mut_ptr().cast(), out.len());
                let param = RequestParam::default();
                // SAFETY: the data are waited for.
                let pointer =
                    unsafe { (self.api.ucp_am_recv_data_nbx)(self.raw, descriptor, start, len, &param) };
                library::outcome(pointer).map_err(error)?.map_or(Ok(()), |request| self.finish(request))?;
            }
            None => {}
        }
        Ok(())
    }

    fn finish(&self, request: *mut c_void) -> Result<()> {
        // SAFETY: the request is given back below.
        let status = || unsafe { (self.api.ucp_request_check_status)(request) };
        self.wait(|_| status() != library::IN_PROGRESS)?;
        let status = status();
        // SAFETY: it is over.
        unsafe { (self.api.ucp_request_free)(request) };
        check(status)
    }

    fn wait(&self, done: impl Fn(&Worker) -> bool) -> Result<()> {
        let mut idle_since = None;
        while !done(self) {
            // SAFETY: the worker is there, in this thread.
            if unsafe { (self.api.ucp_worker_progress)(self.raw) } != 0 {
                idle_since = None;
                continue;
            }
            if idle_since.get_or_insert_with(Instant::now).elapsed() < SPIN {
                std::hint::spin_loop();
                continue;
            }
            let mut fd = -1;
            // SAFETY: as above.
            unsafe {
                check((self.api.ucp_worker_get_efd)(self.raw, &mut fd))?;
                if (self.api.ucp_worker_arm)(self.raw) == library::OK {
                    poll(&mut [PollFd::from_borrowed_fd(BorrowedFd::borrow_raw(fd), PollFlags::IN)], None)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let param = RequestParam {
            op_attr_mask: library::operation::FLAGS,
            flags: library::endpoint::CLOSE_FLAG_FORCE,
            ..Default::default()
        };
        // SAFETY: neither is used any more.
        unsafe {
            if !self.endpoint.is_null()
                && let Ok(Some(request)) =
                    library::outcome((self.api.ucp_ep_close_nbx)(self.endpoint, &param))
            {
                let _ = self.finish(request);
            }
            (self.api.ucp_worker_destroy)(self.raw);
        }
    }
}

unsafe extern "C" fn on_connection(request: library::ConnectionRequest, came: *mut c_void) {
    // SAFETY: what came outlives the worker, and is in its thread.
    unsafe { &*came.cast::<RefCell<Came>>() }.borrow_mut().requests.push_back(request);
}

unsafe extern "C" fn on_message(
    came: *mut c_void,
    _: *const c_void,
    _: usize,
    data: *mut c_void,
    len: usize,
    param: *const library::MessageParam,
) -> Status {
    // SAFETY: as the API says; what came outlives the worker, and is in its thread.
    let (came, rendezvous, data_here) = unsafe {
        let rendezvous = (*param).recv_attr & library::am::RECV_RENDEZVOUS != 0;
        let here = if rendezvous { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), len) };
        (&*came.cast::<RefCell<Came>>(), rendezvous, here)
    };
    let message = if rendezvous { Message::There(data) } else { Message::Here(data_here.to_vec()) };
    came.borrow_mut().messages.push_back(message);
    if rendezvous { library::IN_PROGRESS } else { library::OK }
}

fn check(status: Status) -> Result<()> {
    if status < 0 { Err(error(status)) } else { Ok(()) }
}

fn error(status: Status) -> Error {
    Error::other(format!("UCX: {status}"))
}

//! UCX's library as we use it: its structures and functions, found when the program runs.
//!
//! Declared by hand from the documented API (`ucp/api/ucp.h`) of UCX 1.10 to 1.19. A structure begins with a mask of the
//! fields that are set, and fields are only ever added behind the others: a library that is older or newer than this file
//! reads what the mask says and nothing else. Only what we use is declared.

#![allow(unsafe_code)] // Talks to C.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// What functions return: an enumeration that UCX packs into a byte.
pub(super) type Status = i8;
pub(super) const OK: Status = 0;
pub(super) const IN_PROGRESS: Status = 1;
pub(super) const NO_MEMORY: Status = -4;
pub(super) const UNREACHABLE: Status = -6;
pub(super) const BUSY: Status = -15;
pub(super) const REJECTED: Status = -23;
pub(super) const CONNECTION_RESET: Status = -25;
pub(super) const ENDPOINT_TIMEOUT: Status = -80;
/// The last of the errors that a pointer may be instead of a request.
const LAST_ERROR: Status = -100;

pub(super) type Context = *mut c_void;
pub(super) type Worker = *mut c_void;
pub(super) type Endpoint = *mut c_void;
pub(super) type Listener = *mut c_void;
pub(super) type ConnectionRequest = *mut c_void;
pub(super) type Config = *mut c_void;
/// Null: done. A small negative number: an error. Else a request under way.
pub(super) type StatusPointer = *mut c_void;

/// Whether something that was begun is done, failed, or under way.
pub(super) fn outcome(pointer: StatusPointer) -> Result<Option<StatusPointer>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    let error = pointer as isize;
    if (isize::from(LAST_ERROR)..0).contains(&error) { Err(error as Status) } else { Ok(Some(pointer)) }
}

pub(super) mod params {
    pub(crate) const FEATURES: u64 = 1 << 0;
    pub(crate) const MT_WORKERS_SHARED: u64 = 1 << 5;
    pub(crate) const FEATURE_WAKEUP: u64 = 1 << 4;
    pub(crate) const FEATURE_AM: u64 = 1 << 6;
}

/// `ucp_params_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Params {
    pub field_mask: u64,
    pub features: u64,
    pub request_size: usize,
    pub request_init: usize,
    pub request_cleanup: usize,
    pub tag_sender_mask: u64,
    pub mt_workers_shared: c_int,
    pub estimated_num_eps: usize,
    pub estimated_num_ppn: usize,
    pub name: usize,
}

pub(super) mod worker {
    pub(crate) const THREAD_MODE: u64 = 1 << 0;
    pub(crate) const THREAD_MODE_SERIALIZED: u32 = 1;
    pub(crate) const ATTR_MAX_AM_HEADER: u64 = 1 << 3;
}

/// `ucp_worker_params_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct WorkerParams {
    pub field_mask: u64,
    pub thread_mode: c_uint,
    pub cpu_mask: [u64; 16],
    pub events: c_uint,
    pub user_data: usize,
    pub event_fd: c_int,
    pub flags: u64,
    pub name: usize,
    pub am_alignment: usize,
    pub client_id: u64,
}

/// `ucp_worker_attr_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct WorkerAttr {
    pub field_mask: u64,
    pub thread_mode: c_uint,
    pub address_flags: u32,
    pub address: usize,
    pub address_length: usize,
    pub max_am_header: usize,
    pub name: [u8; 32],
    pub max_debug_string: usize,
}

/// `ucs_sock_addr_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct SockAddr {
    pub addr: *const SocketAddress,
    pub addrlen: u32,
}

pub(super) mod endpoint {
    pub(crate) const ERR_HANDLING_MODE: u64 = 1 << 1;
    pub(crate) const ERR_HANDLER: u64 = 1 << 2;
    pub(crate) const SOCK_ADDR: u64 = 1 << 4;
    pub(crate) const FLAGS: u64 = 1 << 5;
    pub(crate) const CONN_REQUEST: u64 = 1 << 6;
    pub(crate) const ERR_HANDLING_MODE_PEER: u32 = 1;
    pub(crate) const FLAG_CLIENT_SERVER: u32 = 1 << 0;
    pub(crate) const CLOSE_FLAG_FORCE: u32 = 1 << 0;
}

/// `ucp_err_handler_cb_t`.
pub(super) type ErrorHandler = unsafe extern "C" fn(*mut c_void, Endpoint, Status);

/// `ucp_ep_params_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct EndpointParams {
    pub field_mask: u64,
    pub address: usize,
    pub err_mode: c_uint,
    pub err_handler: Option<ErrorHandler>,
    pub err_handler_arg: *mut c_void,
    pub user_data: usize,
    pub flags: c_uint,
    pub sockaddr: SockAddr,
    pub conn_request: ConnectionRequest,
    pub name: usize,
    pub local_sockaddr: SockAddr,
}

pub(super) mod listener {
    pub(crate) const SOCK_ADDR: u64 = 1 << 0;
    pub(crate) const CONN_HANDLER: u64 = 1 << 2;
    pub(crate) const ATTR_SOCKADDR: u64 = 1 << 0;
}

/// `ucp_listener_conn_callback_t`.
pub(super) type ConnectionHandler = unsafe extern "C" fn(ConnectionRequest, *mut c_void);

/// `ucp_listener_params_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct ListenerParams {
    pub field_mask: u64,
    pub sockaddr: SockAddr,
    pub accept_handler: [usize; 2],
    pub conn_handler: Option<ConnectionHandler>,
    pub conn_handler_arg: *mut c_void,
}

/// `ucp_listener_attr_t`.
#[repr(C)]
pub(super) struct ListenerAttr {
    pub field_mask: u64,
    pub sockaddr: SocketAddress,
}

/// `struct sockaddr_storage`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketAddress(pub [u8; 128]);

pub(super) mod am {
    pub(crate) const HANDLER_ID: u64 = 1 << 0;
    pub(crate) const HANDLER_CB: u64 = 1 << 2;
    pub(crate) const HANDLER_ARG: u64 = 1 << 3;
    pub(crate) const RECV_RENDEZVOUS: u64 = 1 << 17;
    pub(crate) const SEND_EAGER: u32 = 1 << 1;
    pub(crate) const SEND_RENDEZVOUS: u32 = 1 << 2;
}

/// `ucp_am_recv_callback_t`.
pub(super) type MessageHandler = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *const MessageParam,
) -> Status;

/// `ucp_am_handler_param_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct HandlerParam {
    pub field_mask: u64,
    pub id: c_uint,
    pub flags: u32,
    pub cb: Option<MessageHandler>,
    pub arg: *mut c_void,
}

/// `ucp_am_recv_param_t`.
#[repr(C)]
pub(super) struct MessageParam {
    pub recv_attr: u64,
    pub reply_ep: Endpoint,
}

pub(super) mod operation {
    pub(crate) const DATATYPE: u32 = 1 << 3;
    pub(crate) const FLAGS: u32 = 1 << 4;
    /// Elements of a byte, side by side.
    pub(crate) const BYTES: u64 = 1 << 3;
    /// A list of places and lengths.
    pub(crate) const IOV: u64 = 2;
}

/// `ucp_request_param_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct RequestParam {
    pub op_attr_mask: u32,
    pub flags: u32,
    pub request: usize,
    pub cb: usize,
    pub datatype: u64,
    pub user_data: usize,
    pub reply_buffer: usize,
    pub memory_type: c_uint,
    pub recv_info: usize,
    pub memh: usize,
}

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that we use, by their names in the API.
        #[allow(missing_docs)]
        pub(super) struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: libloading::Library,
        }

        impl Api {
            fn find(library: libloading::Library) -> Result<Api, libloading::Error> {
                Ok(Api {
                    $($name: {
                        // SAFETY: the declaration below is that of the API for this name.
                        *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    ucp_get_version: fn(*mut c_uint, *mut c_uint, *mut c_uint);
    ucp_config_read: fn(*const c_char, *const c_char, *mut Config) -> Status;
    ucp_config_modify: fn(Config, *const c_char, *const c_char) -> Status;
    ucp_config_release: fn(Config);
    ucp_init_version: fn(c_uint, c_uint, *const Params, Config, *mut Context) -> Status;
    ucp_worker_create: fn(Context, *const WorkerParams, *mut Worker) -> Status;
    ucp_worker_destroy: fn(Worker);
    ucp_worker_query: fn(Worker, *mut WorkerAttr) -> Status;
    ucp_worker_get_efd: fn(Worker, *mut c_int) -> Status;
    ucp_worker_arm: fn(Worker) -> Status;
    ucp_worker_progress: fn(Worker) -> c_uint;
    ucp_worker_set_am_recv_handler: fn(Worker, *const HandlerParam) -> Status;
    ucp_listener_create: fn(Worker, *const ListenerParams, *mut Listener) -> Status;
    ucp_listener_query: fn(Listener, *mut ListenerAttr) -> Status;
    ucp_listener_reject: fn(Listener, ConnectionRequest) -> Status;
    ucp_listener_destroy: fn(Listener);
    ucp_ep_create: fn(Worker, *const EndpointParams, *mut Endpoint) -> Status;
    ucp_ep_flush_nbx: fn(Endpoint, *const RequestParam) -> StatusPointer;
    ucp_ep_close_nbx: fn(Endpoint, *const RequestParam) -> StatusPointer;
    ucp_am_send_nbx: fn(Endpoint, c_uint, *const c_void, usize, *const c_void, usize, *const RequestParam) -> StatusPointer;
    ucp_am_recv_data_nbx: fn(Worker, *mut c_void, *mut c_void, usize, *const RequestParam) -> StatusPointer;
    ucp_am_data_release: fn(Worker, *mut c_void);
    ucp_request_check_status: fn(*mut c_void) -> Status;
    ucp_request_free: fn(*mut c_void);
    ucs_status_string: fn(Status) -> *const c_char;
}

/// The version of the API that this file declares.
pub(super) const API_VERSION: (c_uint, c_uint) = (1, 10);

/// The library, once it was found; else why there is none.
pub(super) fn library() -> Result<&'static Api, &'static str> {
    static LIBRARY: OnceLock<Result<Api, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(String::as_str)
}

fn load() -> Result<Api, String> {
    // SAFETY: the name is that of UCX's API of major version 1; what it does when it is loaded (hooks for memory that is
    // unmapped while hardware knows it) is what every program that is linked with it does.
    let library = unsafe { libloading::Library::new("libucp.so.0") }
        .map_err(|error| format!("UCX is not there ({error}): install libucx0 (Debian) or ucx (Red Hat)"))?;
    let api = Api::find(library)
        .map_err(|error| format!("UCX is too old ({error}): expected version 1.10 or newer"))?;
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: three numbers to write to.
    unsafe { (api.ucp_get_version)(&mut major, &mut minor, &mut release) };
    if (major, minor) < API_VERSION || major > API_VERSION.0 {
        return Err(format!("UCX is of version {major}.{minor}.{release}: expected 1.10 or newer, below 2"));
    }
    Ok(api)
}

//! Where workloads of the twin tests run: in a folder or on I/O servers, and on a machine that is described alike.

use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use pio_machine::Machine;
use pio_plan::Strategy;
use pio_protocol::Limits;
use pio_store::auth::Token;
use pio_store::client::{Options, Store};
use pio_store::config::{Server, StoreDescription};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::{Listener, TcpListener};

use crate::core::mpi::progress::PROGRAM_OF_TESTS;
use crate::core::storage::{backend, servers};

const MACHINE: &str = include_str!("../../../../tests/twin/machine.toml");
const FILES: &str = include_str!("../../../../tests/twin/files.toml");
const SERVERS: &str = include_str!("../../../../tests/twin/servers.toml");
/// As described there.
const SERVER_COUNT: u32 = 3;
const STRIP_BYTES: u64 = 8 << 10;

/// How a workload is placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) ranks_per_node: u32,
    pub(super) strategy: Strategy,
    /// Whether there is something already wherever ranks read, and nothing of what they do is to be seen in the files: ranks
    /// of a trace do not wait for what others write, as the program did.
    pub(super) files_exist: bool,
}

/// Where files are.
pub(super) struct Scene {
    folder: tempfile::TempDir,
    /// None: files are in the folder.
    servers: Option<Vec<Running>>,
    /// The process has one list of nonblocking operations, and one connection to servers.
    _program: MutexGuard<'static, ()>,
}

impl Scene {
    /// In a folder.
    pub(super) fn of_files() -> Scene {
        let program = PROGRAM_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        Scene { folder: tempfile::tempdir().unwrap(), servers: None, _program: program }
    }

    /// On servers, in threads of the test. They have their parts in memory, if this machine has a folder there.
    pub(super) fn of_servers() -> Scene {
        Scene::of_servers_with(Options::default())
    }

    /// The same, for a client with these options.
    pub(super) fn of_servers_with(options: Options) -> Scene {
        let program = PROGRAM_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let token = Token::load_or_create(&folder.path().join("token")).unwrap();
        let start = |index: u32| {
            let folders = vec![folder.path().join(index.to_string())];
            let (token, limits) = (token.clone(), Limits::DEFAULT);
            let listener: Box<dyn Listener> = Box::new(TcpListener::bind("127.0.0.1:0").unwrap());
            let settings = Settings { index, servers: SERVER_COUNT, folders, token, limits };
            serve::start(settings, vec![listener]).unwrap()
        };
        let running: Vec<Running> = (0..SERVER_COUNT).map(start).collect();
        let address = |server: &Running| Server { address: server.addresses()[0].clone() };
        let addresses = running.iter().map(address).collect();
        let (path, servers) = (PathBuf::from("token"), addresses);
        let description = StoreDescription { token: path, strip_bytes: STRIP_BYTES, servers };
        servers::connect_to(Some(Store::new(&description, token, options).unwrap()));
        Scene { folder, servers: Some(running), _program: program }
    }

    /// Ours, of which the workload's path becomes a part. The name says on which server a file begins: there it stays what
    /// it is.
    pub(super) fn name_of(&self, path: &str) -> String {
        match self.servers {
            Some(_) => format!("pioscope:{path}"),
            None => self.folder.path().join(path.replace('/', "_")).to_str().unwrap().to_owned(),
        }
    }

    /// Ends a server.
    pub(super) fn stop(&mut self, index: usize) {
        self.servers.as_mut().unwrap().remove(index).stop();
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, path: &str) {
        let name = std::ffi::CString::new(self.name_of(path)).unwrap();
        let _ = backend::remove(&name);
    }

    /// The machine that this is, of so many nodes.
    pub(super) fn machine(&self, nodes: u32) -> Machine {
        let cores = std::thread::available_parallelism().unwrap();
        let machine = MACHINE.replace("NODES", &nodes.to_string()).replace("CORES", &cores.to_string());
        let storage = if self.servers.is_some() { SERVERS } else { FILES };
        Machine::parse("machine.toml", &format!("{machine}{storage}")).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(servers) = self.servers.take() {
            servers::connect_to(None);
            servers.into_iter().for_each(Running::stop);
        }
    }
}

//! Servers in threads of the test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use pio_protocol::Limits;
use pio_store::auth::Token;
use pio_store::client::{Options, Store};
use pio_store::config::{STRIP_BYTES, Server, StoreDescription};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::{Address, Listener, TcpListener, Transport, ucx};

/// A store of servers in threads, each with its folder.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    token: Token,
    servers: Vec<Option<Running>>,
    description: StoreDescription,
    /// How the servers can be reached.
    transports: Vec<Transport>,
    /// What servers allow that are started from now on.
    pub(crate) limits: Limits,
}

/// Shared memory and TCP, which are everywhere.
const PLAIN: [Transport; 2] = [Transport::Tcp, Transport::Shared];

impl Scene {
    pub(crate) fn new(servers: usize) -> Scene {
        Scene::within(tempfile::tempdir().unwrap(), servers, PLAIN.to_vec())
    }

    /// One whose servers can be reached by every transport that this machine has.
    pub(crate) fn with_all_ways(servers: usize) -> Scene {
        let mut transports = PLAIN.to_vec();
        match ucx::available() {
            Ok(()) => transports.push(Transport::Ucx),
            Err(error) => eprintln!("skipped what goes through UCX: {error}"),
        }
        Scene::within(tempfile::tempdir().unwrap(), servers, transports)
    }

    /// One whose disks are in memory, if this machine has such: syncing takes no time.
    pub(crate) fn in_memory(servers: usize) -> Scene {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Scene::within(folder.unwrap(), servers, PLAIN.to_vec())
    }

    fn within(folder: tempfile::TempDir, servers: usize, transports: Vec<Transport>) -> Scene {
        let token = Token::load_or_create(&folder.path().join("token")).unwrap();
        let description =
            StoreDescription { token: "token".into(), strip_bytes: STRIP_BYTES, servers: Vec::new() };
        let limits = Limits::DEFAULT;
        let mut scene = Scene { folder, token, servers: Vec::new(), description, transports, limits };
        // Each scene at an address of its own: while a server is stopped, nobody else takes its port. UCX only knows those
        // that interfaces have.
        static SCENES: AtomicU16 = AtomicU16::new(0);
        let [high, low] = SCENES.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let address = match scene.transports.contains(&Transport::Ucx) {
            true => "127.0.0.1:0".to_owned(),
            false => format!("127.1.{high}.{low}:0"),
        };
        for index in 0..servers {
            let running = scene.start(index, servers, &address);
            // The last knows of the others.
            let address = running.addresses().last().unwrap().clone();
            scene.description.servers.push(Server { address });
            scene.servers.push(Some(running));
        }
        scene.description.save(&scene.folder.path().join("store.toml")).unwrap();
        scene
    }

    /// A client over TCP.
    pub(crate) fn client(&self) -> Store {
        self.client_by(Transport::Tcp)
    }

    pub(crate) fn client_by(&self, transport: Transport) -> Store {
        let options = Options { transport: Some(transport), ..Options::default() };
        Store::connect_with(&self.folder.path().join("store.toml"), options).unwrap()
    }

    pub(crate) fn client_with(&self, timeout: Duration) -> Store {
        let options = Options { timeout, transport: Some(Transport::Tcp), ..Options::default() };
        Store::connect_with(&self.folder.path().join("store.toml"), options).unwrap()
    }

    /// A client with a token of its own making.
    pub(crate) fn stranger(&self) -> Store {
        let token = Token::load_or_create(&self.folder.path().join("another")).unwrap();
        Store::new(&self.description, token, Options::default()).unwrap()
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn transports(&self) -> &[Transport] {
        &self.transports
    }

    pub(crate) fn address(&self, index: usize) -> &str {
        &self.description.servers[index].address
    }

    /// Host and port.
    pub(crate) fn tcp_address(&self, index: usize) -> &str {
        Address::parse(self.address(index)).tcp
    }

    pub(crate) fn stop(&mut self, index: usize) {
        self.servers[index].take().unwrap().stop();
    }

    pub(crate) fn restart(&mut self, index: usize) {
        if let Some(running) = self.servers[index].take() {
            running.stop();
        }
        let address = self.description.servers[index].address.clone();
        self.servers[index] = Some(self.start(index, self.servers.len(), &address));
    }

    /// Starts a server again, at another port.
    pub(crate) fn restart_elsewhere(&mut self, index: usize) {
        let before = self.tcp_address(index).to_owned();
        self.stop(index);
        let (host, _) = before.rsplit_once(':').unwrap();
        let running = self.start(index, self.servers.len(), &format!("{host}:0"));
        self.description.servers[index].address = running.addresses().last().unwrap().clone();
        assert_ne!(self.tcp_address(index), before);
        self.servers[index] = Some(running);
        self.description.save(&self.folder.path().join("store.toml")).unwrap();
    }

    /// Changes a byte of the only part of a stopped server.
    pub(crate) fn damage(&self, index: usize, at: usize) {
        let parts = std::fs::read_dir(self.folder_of(index).join("parts")).unwrap();
        let data =
            parts.map(|entry| entry.unwrap().path()).find(|path| path.extension() == Some("data".as_ref()));
        let mut bytes = std::fs::read(data.as_ref().unwrap()).unwrap();
        bytes[at] ^= 1;
        std::fs::write(data.unwrap(), bytes).unwrap();
    }

    fn start(&self, index: usize, servers: usize, address: &str) -> Running {
        let settings = Settings {
            index: index as u32,
            servers: servers as u32,
            folders: vec![self.folder_of(index)],
            token: self.token.clone(),
            limits: self.limits,
        };
        let address = Address::parse(address);
        let listener: Box<dyn Listener> = Box::new(TcpListener::bind(address.tcp).unwrap());
        let near = Transport::Shared.listen(&self.token, listener.address()).unwrap();
        let here = Address { tcp: listener.address(), ..address }.to_string();
        let mut listeners = vec![near, listener];
        if self.transports.contains(&Transport::Ucx) {
            listeners.extend(Transport::Ucx.listen_through_ucx(&here).unwrap());
        }
        serve::start(settings, listeners).unwrap()
    }

    pub(crate) fn folder_of(&self, index: usize) -> PathBuf {
        self.folder.path().join(format!("server-{index}"))
    }
}

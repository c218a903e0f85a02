//! Servers in threads of the bench.

use std::path::Path;

use pio_protocol::Limits;
use pio_store::auth::Token;
use pio_store::client::{Options, Store};
use pio_store::config::{STRIP_BYTES, Server, StoreDescription};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::{Listener, TcpListener, Transport};

use super::Outcome;

/// A store, each of whose servers has a folder of its own.
pub(crate) struct Scene {
    description: StoreDescription,
    token: Token,
    _servers: Vec<Running>,
    folder: tempfile::TempDir,
}

impl Scene {
    /// Starts so many servers whose folders are below `folder`; reachable through UCX too, if that is there.
    pub(crate) fn new(folder: &Path, servers: u32) -> Outcome<Scene> {
        let folder = tempfile::tempdir_in(folder)?;
        let token = Token::load_or_create(&folder.path().join("token"))?;
        let mut description =
            StoreDescription { token: "token".into(), strip_bytes: STRIP_BYTES, servers: Vec::new() };
        let mut running = Vec::new();
        for index in 0..servers {
            let listener: Box<dyn Listener> = Box::new(TcpListener::bind("127.0.0.1:0")?);
            let mut address = listener.address().to_owned();
            let near = Transport::Shared.listen(&token, &address).ok_or("no shared memory here")?;
            let mut listeners = vec![listener, near];
            if let Some(through_ucx) = Transport::Ucx.listen_through_ucx(&address)? {
                address = through_ucx.address().to_owned();
                listeners.push(through_ucx);
            }
            let settings = Settings {
                index,
                servers,
                folders: vec![folder.path().join(format!("server-{index}"))],
                token: token.clone(),
                limits: Limits::DEFAULT,
            };
            running.push(serve::start(settings, listeners)?);
            description.servers.push(Server { address });
        }
        Ok(Scene { description, token, _servers: running, folder })
    }

    /// A client.
    pub(crate) fn client(&self, transport: Transport) -> Outcome<Store> {
        let options = Options { transport: Some(transport), ..Options::default() };
        Ok(Store::new(&self.description, self.token.clone(), options)?)
    }

    /// Where everything is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

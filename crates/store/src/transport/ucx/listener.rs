//! Where clients come in through UCX.

use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::sync::Arc;

use super::connection::UcxConnection;
use super::worker::{Worker, available};
use crate::transport::address::Address;
use crate::transport::connection::{Breaker, Connection, Listener};

/// Where clients come in through UCX.
#[derive(Debug)]
pub struct UcxListener {
    worker: Worker,
    address: String,
}

impl UcxListener {
    /// Listens beside the server that listens over TCP at `address` (host and port), on the port for UCX that the address
    /// says if that is free, else on any that is.
    ///
    /// # Errors
    /// If there is no UCX here, or the address is not this machine's.
    pub fn bind(address: &str) -> io::Result<UcxListener> {
        available()?;
        let address = Address::parse(address);
        // After a server that was killed, the port may not be free for a minute.
        let places = [address, address.with_ucx(0)].map(|address| address.ucx().unwrap_or_default());
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for here in places.iter().flat_map(|place| place.to_socket_addrs().into_iter().flatten()) {
            match Worker::listen(&here) {
                Ok((worker, here)) => {
                    let address = address.with_ucx(here.port()).to_string();
                    return Ok(UcxListener { worker, address });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Listener for UcxListener {
    fn accept(&mut self) -> io::Result<Box<dyn Connection>> {
        self.worker.wait(None, |worker| worker.inbox().has_request())?;
        while let Some(request) = self.worker.inbox().surplus_request() {
            self.worker.reject(request);
        }
        let request = self.worker.inbox().next_request().ok_or(ErrorKind::Interrupted)?;
        Ok(Box::new(UcxConnection::new(Worker::accept(request)?, true)))
    }

    fn waker(&self) -> Breaker {
        let interrupt = Arc::clone(self.worker.interrupt());
        Box::new(move || interrupt.set())
    }

    fn address(&self) -> &str {
        &self.address
    }
}

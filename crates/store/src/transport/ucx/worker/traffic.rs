//! Messages of a worker: sent from where their data lie, and taken to where they belong.

use std::ffi::c_void;
use std::io::{self, ErrorKind, IoSlice};
use std::ptr::null;
use std::time::Instant;

use super::context::{check, closed};
use super::{MESSAGE_ID, Worker};
use crate::transport::ucx::handles::Descriptor;
use crate::transport::ucx::library::{self, RequestParam};

/// Something that is under way.
#[derive(Debug)]
pub(super) struct Request(pub(super) library::StatusPointer);

/// A message that is sent while its owner does something else. Header and data stay as they are while there is a request.
#[derive(Debug, Default)]
pub(super) struct Posted {
    header: Vec<u8>,
    data: Vec<u8>,
    pub(super) request: Option<Request>,
}

impl Worker {
    /// Sends a message. Its data are not copied if there are many.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(in crate::transport::ucx) fn send(
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
    pub(in crate::transport::ucx) fn room(
        &mut self,
        len: usize,
        deadline: Option<Instant>,
    ) -> io::Result<&mut [u8]> {
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
    pub(in crate::transport::ucx) fn post(
        &mut self,
        header: &[u8],
        len: usize,
        rendezvous: bool,
    ) -> io::Result<()> {
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
    pub(in crate::transport::ucx) fn posted(&self, len: usize) -> &[u8] {
        &self.posted[self.turn].data[..len]
    }

    /// Gives memory back that is kept from message to message.
    pub(in crate::transport::ucx) fn trim(&mut self) {
        for posted in self.posted.iter_mut().filter(|posted| posted.request.is_none()) {
            *posted = Posted::default();
        }
    }

    /// Takes data that are still with the sender.
    ///
    /// # Errors
    /// As [`Worker::wait`]; then the worker is closed.
    pub(in crate::transport::ucx) fn fetch(
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
    pub(in crate::transport::ucx) fn discard(&self, descriptor: Descriptor) {
        // With the worker went what it had received.
        if !self.raw.is_null() {
            // SAFETY: the worker is there; the descriptor is its, and was not used.
            unsafe { (self.api.ucp_am_data_release)(self.raw, descriptor.0) };
        }
    }

    /// Waits until all that was sent is with the transport's other end.
    pub(in crate::transport::ucx) fn flush(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let Some(endpoint) = self.endpoint else { return Err(closed()) };
        // SAFETY: the endpoint is open.
        let pointer = unsafe { (self.api.ucp_ep_flush_nbx)(endpoint, &RequestParam::default()) };
        match self.begun(pointer)? {
            Some(request) => self.finish(request, deadline),
            None => Ok(()),
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
}

//! The least that moving a stream from memory to a file can cost: the bare transport, and the bare file.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use pio_store::transport::Transport;

use super::Outcome;
use super::bare_ucx::Bare;

/// What is moved at a time: as our client does.
const CHUNK: usize = 512 << 10;

/// A file, and what is to be in it.
pub(crate) struct Limit<'a> {
    file: File,
    data: &'a [u8],
    /// Whether what is written must be durable.
    sync: bool,
    /// For the limit through UCX.
    bare: Option<&'a Bare>,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(
        folder: &Path,
        data: &'a [u8],
        sync: bool,
        bare: Option<&'a Bare>,
    ) -> Outcome<Limit<'a>> {
        let file = File::options().read(true).write(true).create_new(true).open(folder.join("plain"))?;
        Ok(Limit { file, data, sync, bare })
    }

    pub(crate) fn write(&self, transport: Transport) -> Outcome<()> {
        if transport == Transport::Shared {
            let mut chunk = vec![0; CHUNK];
            for (number, data) in self.data.chunks(CHUNK).enumerate() {
                chunk[..data.len()].copy_from_slice(data);
                self.file.write_all_at(&chunk[..data.len()], (number * CHUNK) as u64)?;
            }
        } else if let (Transport::Ucx, Some(bare)) = (transport, self.bare) {
            let mut chunk = vec![0; CHUNK];
            let next = |number: usize| {
                let piece = &self.data[number * CHUNK..][..CHUNK];
                Ok((piece.as_ptr(), piece.len()))
            };
            bare.stream(self.data.len() / CHUNK, 4, next, |number, take| {
                take(&mut chunk)?;
                self.file.write_all_at(&chunk, (number * CHUNK) as u64)
            })?;
        } else {
            let (mut near, mut far) = pair()?;
            thread::scope(|scope| {
                let sender = scope.spawn(move || near.write_all(self.data));
                let mut chunk = vec![0; CHUNK];
                for (number, data) in self.data.chunks(CHUNK).enumerate() {
                    far.read_exact(&mut chunk[..data.len()])?;
                    self.file.write_all_at(&chunk[..data.len()], (number * CHUNK) as u64)?;
                }
                Outcome::Ok(sender.join().map_err(|_| "the sender failed")??)
            })?;
        }
        if self.sync { Ok(self.file.sync_data()?) } else { Ok(()) }
    }

    pub(crate) fn read(&self, transport: Transport, out: &mut [u8]) -> Outcome<()> {
        let mut chunk = vec![0; CHUNK];
        if transport == Transport::Shared {
            for (number, out) in out.chunks_mut(CHUNK).enumerate() {
                self.file.read_exact_at(&mut chunk[..out.len()], (number * CHUNK) as u64)?;
                out.copy_from_slice(&chunk[..out.len()]);
            }
            return Ok(());
        }
        if let (Transport::Ucx, Some(bare)) = (transport, self.bare) {
            // One is filled while the others are under way.
            let mut chunks = [(); 4].map(|()| vec![0; CHUNK]);
            let next = |number: usize| {
                let chunk = &mut chunks[number % 4];
                self.file.read_exact_at(chunk, (number * CHUNK) as u64)?;
                Ok((chunk.as_ptr(), CHUNK))
            };
            let take_one = |number: usize, take: &mut dyn FnMut(&mut [u8]) -> std::io::Result<()>| {
                take(&mut out[number * CHUNK..][..CHUNK])
            };
            return Ok(bare.stream(self.data.len() / CHUNK, 1, next, take_one)?);
        }
        let (mut near, mut far) = pair()?;
        let len = out.len();
        thread::scope(|scope| {
            let sender = scope.spawn(move || -> std::io::Result<()> {
                for start in (0..len).step_by(CHUNK) {
                    let chunk = &mut chunk[..CHUNK.min(len - start)];
                    self.file.read_exact_at(chunk, start as u64)?;
                    far.write_all(chunk)?;
                }
                Ok(())
            });
            near.read_exact(out)?;
            Ok(sender.join().map_err(|_| "the sender failed")??)
        })
    }
}

fn pair() -> Outcome<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    Ok((near, listener.accept()?.0))
}

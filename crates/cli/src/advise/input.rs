//! The standard input of the runs: each is to read what the first one did.

use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::stdio::dup2_stdin;

/// What was given to this command as its standard input.
pub(super) enum Input {
    /// Such as `/dev/null`: it is the same for each run by itself.
    Device,
    /// Whoever types cannot do so again for each run: the first has it, the others read nothing.
    Terminal { is_used: bool },
    /// Read anew from where it was.
    File { file: File, start: u64 },
    /// What has come from it is kept, and given to each run before what comes then. It is read as runs read, for it may
    /// never end.
    Pipe { source: Option<Source>, feeder: Option<Feeder> },
}

impl Input {
    pub(super) fn of_command() -> Result<Input> {
        let stdin = io::stdin();
        let what = || "cannot look at the standard input";
        let status = rustix::fs::fstat(&stdin).with_context(what)?;
        Ok(match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {
                let mut file = File::from(stdin.as_fd().try_clone_to_owned().with_context(what)?);
                let start = file.stream_position().with_context(what)?;
                Input::File { file, start }
            }
            FileType::Fifo | FileType::Socket => {
                let from = stdin.as_fd().try_clone_to_owned().with_context(what)?;
                let kept =
                    tempfile::tempfile().context("cannot make a file to keep the standard input in")?;
                let source = Source { from, kept, kept_bytes: 0, has_ended: false, error: None };
                Input::Pipe { source: Some(source), feeder: None }
            }
            _ if stdin.is_terminal() => Input::Terminal { is_used: false },
            _ => Input::Device,
        })
    }

    /// Makes the standard input of the next run what it was for the first; nothing of the last run reads it any more.
    ///
    /// # Errors
    /// If the system refuses, or what came could not be kept.
    pub(super) fn renew(&mut self) -> Result<()> {
        let renewed = match self {
            Input::Device => Ok(()),
            Input::Terminal { is_used: false } => {
                *self = Input::Terminal { is_used: true };
                Ok(())
            }
            Input::Terminal { is_used: true } => {
                File::open("/dev/null").and_then(|null| Ok(dup2_stdin(null)?))
            }
            Input::File { file, start } => file.seek(io::SeekFrom::Start(*start)).map(|_| ()),
            Input::Pipe { source, feeder } => {
                if let Some(feeder) = feeder.take() {
                    *source = feeder.stop();
                }
                source.take().map_or(Ok(()), |source| {
                    *feeder = Some(Feeder::start(source)?);
                    Ok(())
                })
            }
        };
        renewed.context("cannot give the standard input to another run (< /dev/null gives none)")
    }
}

/// A pipe, and what has come from it.
pub(super) struct Source {
    from: OwnedFd,
    kept: File,
    kept_bytes: u64,
    has_ended: bool,
    /// Why it could not be kept.
    error: Option<io::Error>,
}

/// What is read or written at once.
const PIECE_BYTES: usize = 1 << 16;

impl Source {
    /// Writes what is kept, and then what comes, to a pipe that does not block, until that is all or `stop` is closed.
    fn feed(mut self, to: &PipeWriter, stop: &PipeReader) -> Source {
        let mut piece = vec![0; PIECE_BYTES];
        let mut given_bytes = 0;
        while given_bytes < self.kept_bytes || !self.has_ended {
            let is_kept = given_bytes < self.kept_bytes;
            let next =
                if is_kept { (to.as_fd(), PollFlags::OUT) } else { (self.from.as_fd(), PollFlags::IN) };
            let mut either = [PollFd::new(stop, PollFlags::IN), PollFd::from_borrowed_fd(next.0, next.1)];
            match poll(&mut either, None) {
                Err(Errno::INTR) => continue,
                Ok(_) if either[0].revents().is_empty() => {}
                _ => break,
            }
            let done = if is_kept {
                self.give(to, given_bytes, &mut piece)
            } else {
                self.take(&mut piece).map(|()| 0)
            };
            match done {
                Ok(count) => given_bytes += count as u64,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self
    }

    fn give(&self, to: &PipeWriter, given_bytes: u64, piece: &mut [u8]) -> io::Result<usize> {
        let count = self.kept.read_at(piece, given_bytes)?;
        Ok(rustix::io::write(to, &piece[..count])?)
    }

    fn take(&mut self, piece: &mut [u8]) -> io::Result<()> {
        let count = rustix::io::read(&self.from, &mut *piece)?;
        self.kept.write_all_at(&piece[..count], self.kept_bytes)?;
        self.kept_bytes += count as u64;
        self.has_ended = count == 0;
        Ok(())
    }
}

/// A thread that feeds the standard input of a run.
pub(super) struct Feeder {
    /// Closed to end it.
    go_on: Option<PipeWriter>,
    thread: Option<JoinHandle<Source>>,
}

impl Feeder {
    fn start(source: Source) -> io::Result<Feeder> {
        if let Some(error) = source.error {
            return Err(error);
        }
        let (reader, writer) = io::pipe()?;
        let (stop, go_on) = io::pipe()?;
        let flags = rustix::fs::fcntl_getfl(&writer)?;
        rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
        // As long as it is our own standard input, too, a write to it raises no signal, though no run reads it any more.
        dup2_stdin(reader)?;
        let thread = thread::Builder::new()
            .name("standard input".to_owned())
            .spawn(move || source.feed(&writer, &stop))?;
        Ok(Feeder { go_on: Some(go_on), thread: Some(thread) })
    }

    /// The source, to begin anew.
    fn stop(mut self) -> Option<Source> {
        drop(self.go_on.take());
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

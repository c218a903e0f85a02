//! A shared file system of set slowness: each mount is a client of the same servers, which are this process.
//!
//! It gives the nodes of a cluster that are namespaces of one machine what a parallel file system gives those of a real
//! one: a latency, links, servers that everybody shares, and locks between clients. What it was asked for can be read
//! from the file `.slowfs` in any of its mounts.

mod files;
mod inodes;
mod owners;
mod server;
mod service;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use fuser::{Config, MountOption, SessionACL};
use nix::sys::signal::{SigSet, Signal};
use pio_machine::{Bandwidth, Duration, parse_size};

use crate::files::Files;
use crate::server::Server;
use crate::service::{Locks, Slowness};

/// Mounts a folder as clients of a slow shared file system see it, until it is killed
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder whose files are shown
    folder: PathBuf,
    /// Where to mount it: each is a client
    #[arg(required = true)]
    mounts: Vec<PathBuf>,
    /// What every request takes, such as '1 ms'
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0 s")]
    latency: Duration,
    /// Of each client's link, such as '100 MB/s' [default: no limit]
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth)]
    bandwidth: Option<Bandwidth>,
    /// Of the servers, for all clients together [default: no limit]
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth)]
    total_bandwidth: Option<Bandwidth>,
    /// Requests that the servers carry out at the same time [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    streams: Option<u16>,
    /// Who writes keeps a lock until another client comes; that takes so long [default: no locks]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    callback: Option<Duration>,
    /// Bytes that a lock covers [default: the whole file, so that one client writes at a time]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "callback")]
    strip: Option<u64>,
    /// Let the kernel of each client keep what was read (as consistent as NFS: from close to open)
    #[arg(long)]
    cached: bool,
}

/// Requests of a client that may be under way.
const THREADS: usize = 32;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // Sleep to the microsecond.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1000)).context("cannot sleep precisely")?;
    // Blocked in all threads, which inherit that, and waited for at the end.
    let stop = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    stop.thread_block().context("cannot block signals")?;
    let locks = arguments.callback.map(|callback| Locks { strip: arguments.strip, callback });
    let slowness = Slowness {
        latency: arguments.latency,
        bandwidth: arguments.bandwidth,
        total_bandwidth: arguments.total_bandwidth,
        streams: arguments.streams.map(usize::from),
        locks,
    };
    let server = Arc::new(Server::new(slowness, arguments.mounts.len()));
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("slowfs".to_owned()), MountOption::Subtype("slowfs".to_owned())];
    config.mount_options.push(MountOption::DefaultPermissions);
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    ensure!(arguments.folder.is_dir(), "{}: expected a folder", arguments.folder.display());
    let mut sessions = Vec::new();
    for (client, mount) in arguments.mounts.iter().enumerate() {
        let files = Files::new(client, Arc::clone(&server), &arguments.folder, arguments.cached)
            .with_context(|| format!("cannot open {}", arguments.folder.display()))?;
        let session = fuser::spawn_mount(files, mount, &config);
        sessions.push(session.with_context(|| format!("cannot mount on {}", mount.display()))?);
    }
    println!("mounted");
    stop.wait().context("cannot wait for a signal")?;
    for session in sessions {
        session.umount_and_join().context("cannot unmount")?;
    }
    Ok(())
}

fn duration(text: &str) -> Result<Duration, String> {
    Duration::parse(text).ok_or_else(|| "expected a time with its unit, such as `1 ms`".to_owned())
}

fn bandwidth(text: &str) -> Result<Bandwidth, String> {
    Bandwidth::parse(text).ok_or_else(|| "expected a bandwidth with its unit, such as `100 MB/s`".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text)
        .filter(|&size| size > 0)
        .ok_or_else(|| "expected a size with its unit, such as `64 KiB`".to_owned())
}

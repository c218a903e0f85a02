//! `pioscope serve`.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use pio_machine::parse_size;
use pio_protocol::Limits;
use pio_report::units::{bytes, things};
use pio_store::StoreError;
use pio_store::auth::Token;
use pio_store::config::{self, Server};
use pio_store::disk::{Allowance, Disks, Loss};
use pio_store::private;
use pio_store::serve::{self, Running, Settings};
use pio_store::stand_in;
use pio_store::transport::{Address, Listener, TcpListener, Transport};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::flags::whole;

/// How long another server of the store may take to be found when this one has been started.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope serve --servers 4 --dir /scratch/me/store
  srun -N 8 --ntasks-per-node=1 sh -c 'pioscope serve --servers 8 --server-index $SLURM_PROCID \\
      --listen $(hostname) --dir /local/me --store-file $HOME/store.toml'

Clients find the servers by the store's description: PIOSCOPE_STORE=/scratch/me/store/store.toml")]
pub(crate) struct Arguments {
    /// Servers of the store
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    servers: u32,
    /// Folder in which each server makes its own; give several to spread each server over several disks
    #[arg(long, value_name = "FOLDER", required = true)]
    dir: Vec<PathBuf>,
    /// Start this one server only, counted from 0: the others run elsewhere
    #[arg(long, value_name = "INDEX", value_parser = whole::<u32>)]
    server_index: Option<u32>,
    /// Host, or host and port, that clients connect to [default: where it was last, else any port of this machine]
    #[arg(long, value_name = "HOST[:PORT]")]
    listen: Option<String>,
    /// The store's description, for clients; all servers must see it [default: store.toml in the first folder]
    #[arg(long, value_name = "FILE")]
    store_file: Option<PathBuf>,
    /// Bytes of a strip of new files
    #[arg(long, value_name = "SIZE", default_value = "64 KiB", value_parser = strip)]
    strip: u64,
    /// Room that the files of all servers started here may take together, such as `100 GiB`; a write beyond it fails as on a
    /// full disk [default: what the disks have]
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    limit: Option<u64>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let servers = arguments.servers;
    let indices = match arguments.server_index {
        Some(index) => {
            ensure!(index < servers, "there is no server {index}: expected less than {servers}");
            index..index + 1
        }
        None => 0..servers,
    };
    if let Some(port) = arguments.listen.as_deref().and_then(port)
        && indices.len() > 1
    {
        bail!(
            "--listen with port {port}: {} servers in one process cannot all listen there. Give the host alone, and each takes a \
             port of its own; or start each with --server-index and a port",
            indices.len()
        );
    }
    // For what is made without a mode, and against a umask that would take from the owner, too.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    raise_descriptor_limit();
    let mut made_private = 0;
    for folder in &arguments.dir {
        made_private += u64::from(private::prepare_folder(folder)?);
    }
    let description = arguments.store_file.clone().unwrap_or_else(|| arguments.dir[0].join("store.toml"));
    let token = token(&description)?;
    let allowance = allowance(&arguments, indices.clone())?;
    let mut running = Vec::new();
    let mut failed = Vec::new();
    let mut complete = None;
    for index in indices.clone() {
        let (listener, ucx_port) = listener(&arguments, index, &description)?;
        let listeners = listeners(listener, ucx_port, &token)?;
        // The last knows of the others.
        let address = listeners.last().map(|listener| listener.address().to_owned()).unwrap_or_default();
        let known = Server { address: address.clone() };
        let folders = folders(&arguments, index);
        let started = config::noted(&description, index)?.is_some();
        match Disks::open(&folders, index, servers, allowance.clone(), started) {
            Ok((disks, past)) => {
                if let Some(loss) = past.loss {
                    say(format_args!("server {index} of {servers} was started before, and {}", said(loss)));
                }
                made_private += disks.made_private();
                let settings =
                    Settings { index, servers, folders, token: token.clone(), limits: Limits::DEFAULT };
                running.push(serve::start_on(disks, settings, listeners));
                say(format_args!("server {index} of {servers} at {address}"));
            }
            // Nothing is wrong with the folder.
            Err(error @ StoreError::OtherServer { .. }) => return Err(error.into()),
            Err(error) => {
                stand_in::start(index, token.clone(), &error.to_string(), listeners);
                failed.push((index, error));
            }
        }
        complete = config::publish(&description, index, servers, &known, arguments.strip)?;
    }
    if running.is_empty()
        && let Some((_, error)) = failed.pop()
    {
        return Err(error.into());
    }
    if made_private > 0 {
        say(format_args!(
            "others could read {} of the store: now only their owner can (0600 and 0700)",
            things(made_private, "file or folder", "files and folders")
        ));
    }
    if let Some(allowance) = allowance {
        let [taken, limit] =
            [allowance.taken_bytes(), allowance.limit_bytes()].map(|size| bytes(size as f64));
        say(format_args!("the files take {taken} of the {limit} that they may take"));
    }
    for (index, error) in &failed {
        say(format_args!(
            "server {index} of {servers} cannot be started: {error}. Its clients get this error; the other servers run. \
             Restore its names.redb from a copy, or move it away and start again: then the files whose names it kept are lost, \
             and `pioscope store check` says what is left of them"
        ));
    }
    if let Some(complete) = complete {
        // For jobs that start in other folders.
        let description = std::path::absolute(&description)?;
        let others = (0..).zip(&complete.servers).filter(|(index, _)| !indices.contains(index));
        match others.into_iter().find(|(_, server)| !answers(&server.address)) {
            None => {
                let without =
                    failed.iter().map(|(index, _)| index.to_string()).collect::<Vec<_>>().join(", ");
                let but = if failed.is_empty() { "" } else { ", but for server " };
                say(format_args!(
                    "the store is ready{but}{without}: PIOSCOPE_STORE={}",
                    description.display()
                ));
            }
            // It was there before. When it is started again, it says that the store is ready.
            Some((index, server)) => {
                say(format_args!(
                    "server {index} of {servers} is not there yet: {} does not answer",
                    server.address
                ));
            }
        }
    }
    running.into_iter().for_each(Running::wait);
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What people read.
fn said(loss: Loss) -> &'static str {
    match loss {
        Loss::All => "has empty folders now: what it had of files is lost",
        Loss::Names => "has no names.redb now: the files whose names it kept are lost",
        Loss::LatestNames => {
            "has parts of files that its names.redb, a copy, does not know of: the names of the latest files are lost"
        }
    }
}

/// Clients and parts of files take descriptors: as many as the system lets this process have, not as few as programs get that may not
/// know how to use more.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If it is refused, it stays as it is, and servers keep fewer files open.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The room that all servers of this process share, if it is limited.
fn allowance(arguments: &Arguments, indices: Range<u32>) -> Result<Option<Arc<Allowance>>> {
    let Some(limit) = arguments.limit else { return Ok(None) };
    let folders: Vec<PathBuf> = indices.flat_map(|index| folders(arguments, index)).collect();
    let allowance =
        Allowance::new(limit, &folders).context("cannot find out how much room the files take")?;
    Ok(Some(Arc::new(allowance)))
}

/// Where a server keeps its data.
fn folders(arguments: &Arguments, index: u32) -> Vec<PathBuf> {
    arguments.dir.iter().map(|folder| folder.join(format!("server-{index}"))).collect()
}

/// A server goes on when nobody listens any more to what it says.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "pioscope: {text}");
}

/// The store's token, and a word if others could read it.
fn token(description: &Path) -> Result<Token> {
    let parent = description.parent().filter(|parent| !parent.as_os_str().is_empty());
    private::refuse_replaceable(parent.unwrap_or(Path::new(".")))?;
    let path = config::token_path(description);
    if path.exists() {
        let shown = path.display();
        let closed =
            private::close_to_others(&path).with_context(|| format!("{shown}: cannot change its mode"))?;
        if closed > 0 {
            say(format_args!(
                "{shown}: others could read the token: now only its owner can (0600). If somebody may have read it, remove \
                 it and start the servers again, for a new one"
            ));
        }
    }
    Ok(Token::load_or_create(&path)?)
}

/// All that a server listens at, its TCP address or more last.
fn listeners(
    listener: Box<dyn Listener>,
    ucx_port: Option<u16>,
    token: &Token,
) -> Result<Vec<Box<dyn Listener>>> {
    let transport = Transport::from_environment()?;
    let near = transport.listen(token, listener.address());
    let address = Address { tcp: listener.address(), ucx_port }.to_string();
    let through_ucx = transport.listen_through_ucx(&address).context("PIOSCOPE_TRANSPORT=ucx")?;
    Ok([near, Some(listener), through_ucx].into_iter().flatten().collect())
}

/// Where the server was last, so that clients find it again; or somewhere new. And at which port for UCX, if it was.
fn listener(
    arguments: &Arguments,
    index: u32,
    description: &Path,
) -> Result<(Box<dyn Listener>, Option<u16>)> {
    let last = config::noted(description, index)?.map(|server| server.address);
    let address = match (&arguments.listen, last.clone()) {
        (Some(listen), _) if listen.contains(':') => listen.clone(),
        (Some(host), Some(last)) if last.starts_with(&format!("{host}:")) => last,
        (Some(host), _) => format!("{host}:0"),
        (None, Some(last)) => last,
        (None, None) => "127.0.0.1:0".into(),
    };
    let is_known = last.as_ref() == Some(&address);
    let Address { tcp, ucx_port } = Address::parse(&address);
    // The description tells clients to connect to what is listened at: of other hosts, none could.
    if tcp.to_socket_addrs().is_ok_and(|mut all| all.any(|one| one.ip().is_unspecified())) {
        bail!(
            "cannot tell clients to connect to {tcp}, which means any address of a host: --listen expects the name or the address \
             that they know this host by, such as --listen $(hostname)"
        );
    }
    let listener = match TcpListener::bind(tcp) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_known => bail!(
            "cannot listen at {tcp}, where server {index} of this store was last: it seems to run already ({error}; if another \
             program listens there, --listen names another address)"
        ),
        bound => bound.with_context(|| format!("cannot listen at {tcp}: --listen names another address"))?,
    };
    Ok((Box::new(listener), ucx_port))
}

/// Whether anybody listens at a server's address.
fn answers(address: &str) -> bool {
    let found = Address::parse(address).tcp.to_socket_addrs();
    found.is_ok_and(|mut all| all.any(|one| TcpStream::connect_timeout(&one, ANSWERS_WITHIN).is_ok()))
}

/// The port that an address names, if it is not any.
fn port(address: &str) -> Option<u16> {
    let (_, port) = Address::parse(address).tcp.rsplit_once(':')?;
    port.parse().ok().filter(|port| *port != 0)
}

fn limit(text: &str) -> Result<u64> {
    let bytes = parse_size(text).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| anyhow!("expected a size from 1 B on, such as `100 GiB`"))
}

/// Bytes of a strip, from a text such as `64 KiB`.
pub(crate) fn strip(text: &str) -> Result<u64> {
    let bytes = parse_size(text).filter(|bytes| (1..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| anyhow!("expected a size from 1 B to 1 TiB, such as `64 KiB`"))
}

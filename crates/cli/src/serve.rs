//! `pioscope serve`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use pio_machine::parse_size;
use pio_store::Limits;
use pio_store::auth::Token;
use pio_store::config::{self, Server};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::{Address, Listener, TcpListener, Way};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope serve --servers 4 --dir /scratch/me/store
  srun -N 8 --ntasks-per-node=1 sh -c 'pioscope serve --servers 8 --server-index $SLURM_PROCID \\
      --listen $(hostname) --dir /local/me --store-file $HOME/store.toml'

Clients find the servers by the store's description: PIOSCOPE_STORE=/scratch/me/store/store.toml")]
pub struct Arguments {
    /// Servers of the store
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    servers: u32,
    /// Where the servers keep their data, a folder each; several: each server on all of these disks
    #[arg(long, value_name = "FOLDER", required = true)]
    dir: Vec<PathBuf>,
    /// Start this one server only, counted from 0: the others run elsewhere
    #[arg(long, value_name = "INDEX")]
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
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let servers = arguments.servers;
    let indices = match arguments.server_index {
        Some(index) => index..index + 1,
        None => 0..servers,
    };
    ensure!(indices.end <= servers, "there is no server {}: expected less than {servers}", indices.start);
    for folder in &arguments.dir {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot make it", folder.display()))?;
    }
    let description = arguments.store_file.clone().unwrap_or_else(|| arguments.dir[0].join("store.toml"));
    let token = Token::load_or_create(&config::token_path(&description))?;
    let mut running = Vec::new();
    let mut complete = false;
    for index in indices {
        let server = start(&arguments, index, &description, token.clone())?;
        // The last knows of the others.
        let address = server.addresses().last().cloned().unwrap_or_default();
        let known = Server { address: address.clone() };
        complete = config::publish(&description, index, servers, &known, arguments.strip)?;
        say(format_args!("server {index} of {servers} at {address}"));
        running.push(server);
    }
    if complete {
        say(format_args!("the store is ready: PIOSCOPE_STORE={}", description.display()));
    }
    running.into_iter().for_each(Running::wait);
    Ok(ExitCode::SUCCESS)
}

/// A server goes on when nobody listens any more to what it says.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "pioscope: {text}");
}

fn start(arguments: &Arguments, index: u32, description: &Path, token: Token) -> Result<Running> {
    let (listener, ucx_port) = listener(arguments, index, description)?;
    let way = Way::from_environment()?;
    let near = way.listen(&token, listener.address());
    let address = Address { tcp: listener.address(), ucx_port }.to_string();
    let through_ucx = way.listen_through_ucx(&address).context("PIOSCOPE_TRANSPORT=ucx")?;
    let listeners = [near, Some(listener), through_ucx].into_iter().flatten().collect();
    let folders = arguments.dir.iter().map(|folder| folder.join(format!("server-{index}"))).collect();
    let settings = Settings { index, servers: arguments.servers, folders, token, limits: Limits::DEFAULT };
    Ok(serve::start(settings, listeners)?)
}

/// Where the server was last, so that clients find it again; or somewhere new. And at which port for UCX, if it was.
fn listener(
    arguments: &Arguments,
    index: u32,
    description: &Path,
) -> Result<(Box<dyn Listener>, Option<u16>)> {
    let last = config::noted(description, index)?.map(|server| server.address);
    let address = match (&arguments.listen, last) {
        (Some(listen), _) if listen.contains(':') => listen.clone(),
        (Some(host), Some(last)) if last.starts_with(&format!("{host}:")) => last,
        (Some(host), _) => format!("{host}:0"),
        (None, Some(last)) => last,
        (None, None) => "127.0.0.1:0".into(),
    };
    let Address { tcp, ucx_port } = Address::parse(&address);
    let listener = TcpListener::bind(tcp)
        .with_context(|| format!("cannot listen at {tcp}: --listen names another address"))?;
    Ok((Box::new(listener), ucx_port))
}

/// Bytes of a strip, from a text such as `64 KiB`.
pub fn strip(text: &str) -> Result<u64> {
    let bytes = parse_size(text).filter(|bytes| (1..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| anyhow!("expected a size from 1 B to 1 TiB, such as `64 KiB`"))
}

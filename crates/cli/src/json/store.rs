//! The objects of `pioscope store ls`, `stat` and `df` with `--json`.

use pio_protocol::Usage;
use pio_store::client::Stat;
use serde::Serialize;

/// Files of the store.
#[derive(Serialize)]
pub(crate) struct Listed {
    schema: &'static str,
    files: Vec<ListedFile>,
}

/// A file, with its size where that was asked for.
#[derive(Serialize)]
struct ListedFile {
    path: String,
    size_bytes: Option<u64>,
}

impl Listed {
    /// The object of these paths and sizes.
    pub(crate) fn of(files: impl IntoIterator<Item = (String, Option<u64>)>) -> Listed {
        let file = |(path, size_bytes)| ListedFile { path, size_bytes };
        Listed { schema: "pioscope.store.ls/1", files: files.into_iter().map(file).collect() }
    }
}

/// Files of the store, and where they are.
#[derive(Serialize)]
pub(crate) struct Status {
    schema: &'static str,
    files: Vec<FileStatus>,
}

/// A file's size, and how it is dealt out.
#[derive(Serialize)]
struct FileStatus {
    path: String,
    id: String,
    size_bytes: u64,
    strip_bytes: u64,
    servers: Vec<u32>,
}

impl Status {
    /// The object of these files.
    pub(crate) fn of(files: Vec<Stat>) -> Status {
        let file = |Stat { path, file, size, placement, .. }: Stat| FileStatus {
            path,
            id: format!("{:016x}", file.0),
            size_bytes: size,
            strip_bytes: placement.striping().unit,
            servers: (0..placement.striping().factor).map(|slot| placement.server_of_slot(slot)).collect(),
        };
        Status { schema: "pioscope.store.stat/1", files: files.into_iter().map(file).collect() }
    }
}

/// The room on the servers.
#[derive(Serialize)]
pub(crate) struct Room {
    schema: &'static str,
    servers: Vec<ServerRoom>,
}

/// The room on one server.
#[derive(Serialize)]
struct ServerRoom {
    server: usize,
    address: String,
    file_count: u64,
    used_bytes: u64,
    free_bytes: u64,
    total_bytes: u64,
}

impl Room {
    /// The object of the servers' addresses and usage, in their order.
    pub(crate) fn of(servers: impl IntoIterator<Item = (String, Usage)>) -> Room {
        let server = |(server, (address, usage)): (usize, (String, Usage))| ServerRoom {
            server,
            address,
            file_count: usage.files,
            used_bytes: usage.used_bytes,
            free_bytes: usage.free_bytes,
            total_bytes: usage.total_bytes,
        };
        Room { schema: "pioscope.store.df/1", servers: servers.into_iter().enumerate().map(server).collect() }
    }
}

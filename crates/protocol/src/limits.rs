//! What a server allows, checked before memory is taken.

/// What a server allows, checked before memory is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the head of a message: names, views, positions.
    pub head_bytes: u32,
    /// Bytes of the data of a message: a longer access takes several. Both sides keep at most one such buffer a connection.
    pub data_bytes: u32,
    /// Views that a session remembers.
    pub views: u32,
    /// Bytes of the encodings of all views that a session remembers.
    pub view_bytes: u32,
    /// Answers that a session remembers because its client may not have seen them.
    pub unacknowledged: u32,
    /// Locks that a session holds or waits for.
    pub locks: u32,
    /// Sessions, connected or expected back.
    pub sessions: u32,
    /// Connections, of whoever.
    pub connections: u32,
    /// Strips that a request may touch, on whichever server: bounds the time of a request.
    pub strips: u32,
}

impl Limits {
    /// What a server allows if nothing else is said.
    pub const DEFAULT: Limits = Limits {
        head_bytes: 1 << 20,
        data_bytes: 4 << 20,
        views: 1024,
        view_bytes: 8 << 20,
        unacknowledged: 4096,
        locks: 1024,
        sessions: 65536,
        connections: 16384,
        strips: 1 << 20,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Bytes of a path of the store.
pub const PATH_BYTES: usize = 1024;

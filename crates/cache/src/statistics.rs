//! What a cache counts.

/// What a cache counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests to read.
    pub reads: u64,
    /// Requests to read all of whose bytes were here.
    pub reads_hit: u64,
    /// Bytes that were asked for.
    pub read_bytes: u64,
    /// Of these, bytes that were here.
    pub hit_bytes: u64,
    /// Of these, bytes that were on their way already.
    pub joined_bytes: u64,
    /// Of these, bytes that had to be fetched.
    pub missed_bytes: u64,
    /// Requests to write.
    pub writes: u64,
    /// Bytes that were to be written.
    pub written_bytes: u64,
    /// Bytes fetched from below, read ahead or not.
    pub fetched_bytes: u64,
    /// Of these, bytes read ahead.
    pub ahead_bytes: u64,
    /// Bytes of blocks read ahead that somebody then asked for.
    pub ahead_used_bytes: u64,
    /// Bytes of blocks read ahead that were evicted before anybody asked for them.
    pub ahead_wasted_bytes: u64,
    /// Bytes written below.
    pub written_below_bytes: u64,
    /// Bytes of blocks evicted.
    pub evicted_bytes: u64,
    /// How often a request had to wait for room.
    pub waits_for_room: u64,
    /// How often a writer had to wait because of the dirty limit.
    pub waits_for_dirty_limit: u64,
}

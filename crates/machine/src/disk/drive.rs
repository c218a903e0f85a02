//! A disk drive, all of it.

use super::{Layout, SeekCurve};
use crate::quantity::{Bandwidth, Duration};

/// A disk drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// What the maker calls it.
    pub name: String,
    /// Surfaces with data.
    pub surfaces: u32,
    /// Cylinders.
    pub cylinders: u32,
    /// Blocks that it says it has.
    pub blocks: u64,
    /// Where blocks are.
    pub layout: Layout,
    /// Arm and spindle.
    pub mechanics: Mechanics,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Time of a block on the bus between host and buffer.
    pub bus_block: BusBlock,
    /// What the drive's processor takes.
    pub overheads: Overheads,
    /// The buffer that is also a cache.
    pub buffer: Buffer,
    /// What the description says and the model does not know, as `key = value`.
    pub not_modelled: Vec<String>,
}

impl Drive {
    /// The same drive on a bus of these bandwidths for reads and writes: the slower of drive and bus sets the time of a block.
    pub fn on_bus(self, read: Bandwidth, write: Bandwidth) -> Drive {
        let time = |bandwidth: Bandwidth| bandwidth.time_of(u64::from(self.block_bytes));
        let BusBlock { read: own_read, write: own_write } = self.bus_block;
        let bus_block = BusBlock { read: own_read.max(time(read)), write: own_write.max(time(write)) };
        Drive { bus_block, ..self }
    }
}

/// Time of a block on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusBlock {
    /// To the host.
    pub read: Duration,
    /// From the host.
    pub write: Duration,
}

impl BusBlock {
    /// The same both ways.
    pub const fn both(time: Duration) -> BusBlock {
        BusBlock { read: time, write: time }
    }
}

/// Arm and spindle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// What counts as access time.
    pub access: AccessModel,
    /// Arm.
    pub seek: SeekCurve,
    /// To another surface; goes on at the same time as a seek.
    pub head_switch: Duration,
    /// Added before a write to any move of arm or head, picoseconds; below 0 for a drive that is sooner ready to write.
    pub write_settle_ps: i64,
    /// Time of a revolution.
    pub period: Duration,
}

/// What counts as access time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessModel {
    /// Each access takes the same.
    Constant(Duration),
    /// Moves of the arm and half a revolution.
    AverageRotation,
    /// Moves of the arm, then where the platter is.
    Full,
}

/// What the drive's processor takes before data move, by what it did before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overheads {
    /// Every request, in addition.
    pub request: Duration,
    /// A read whose first block is in the buffer: after a read, after a write.
    pub read_hit: [Duration; 2],
    /// Any other read.
    pub read_miss: [Duration; 2],
    /// A write that is done when it is in the buffer.
    pub write_hit: [Duration; 2],
    /// Any other write.
    pub write_miss: [Duration; 2],
    /// At the end of a read.
    pub read_completion: Duration,
    /// At the end of a write.
    pub write_completion: Duration,
    /// Before the data, with the bus already held.
    pub data_preparation: Duration,
    /// To let go of the bus when data must come from the surface, while the arm is on its way.
    pub read_disconnect: [Duration; 2],
    /// To come back to the bus for the first time in a request.
    pub reselect: Duration,
    /// To come back to the bus again.
    pub reselect_again: Duration,
    /// To let go of the bus when a write's data are in the buffer, while the arm is on its way.
    pub write_disconnect: Duration,
    /// What a write after another one goes through that does not continue it, if anything.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// The least from the end of a write's overhead to its media access, unless it appends.
    pub least_seek: Duration,
}

/// A write lets go of the bus before it takes its data, and comes back for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraDisconnect {
    /// In place of the overhead of a write.
    pub command: Duration,
    /// To let go of the bus the first time.
    pub first: Duration,
    /// Until it comes back.
    pub pause: Duration,
    /// To let go of the bus when the data are in the buffer.
    pub second: Duration,
    /// From the end of the command until the arm begins to move.
    pub arm_delay: Duration,
}

/// The buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Whether data stay for later requests.
    pub caches: bool,
    /// Segments, each of contiguous blocks.
    pub segments: u32,
    /// Whether the write segment is one apart, which reads do not use.
    pub separate_write_segment: bool,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// How far it reads on.
    pub read_ahead: ReadAhead,
    /// Blocks to read ahead before another request is let in.
    pub least_read_ahead: u32,
    /// Blocks to read ahead at most; 0 leaves it to the segment.
    pub most_read_ahead: u32,
    /// Whether what was read ahead may push out what was asked for.
    pub read_ahead_over_requested: bool,
    /// Whether a read that found all in the buffer begins to read ahead.
    pub read_ahead_on_hit: bool,
    /// Whether sectors that pass before the first wanted are kept.
    pub read_free_blocks: bool,
    /// Whether a read of the very block that is being read ahead is a hit.
    pub almost_hits: bool,
    /// Whether reads may use what writes left.
    pub read_hits_on_writes: bool,
    /// Whether a hit need not wait for the arm to finish something else: all of it there, part of it there.
    pub sneaky_hits: (bool, bool),
    /// Whether data go out at once of which not all are there.
    pub partial_transfer: bool,
    /// How much must be there before the bus is asked for.
    pub read_watermark: Watermark,
    /// Whether a write is done when its data are in the buffer: what does not continue it then waits until they are on the
    /// surface. Otherwise it is done when they are on the surface.
    pub fast_writes: bool,
    /// Whether writes that follow each other share a segment.
    pub combine_writes: bool,
    /// Whether sectors are read in the order in which they pass.
    pub zero_latency_read: bool,
    /// Whether sectors are written in the order in which they pass.
    pub zero_latency_write: bool,
    /// Whether reading ahead is broken off within a sector.
    pub stop_in_sector: bool,
}

/// How far a drive reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// Not at all.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and one track more if the segment began before this track.
    TrackAhead,
}

/// How much of a read must be in the buffer before the bus is asked for, in millionths; at least a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watermark {
    /// This part of the request.
    OfRequest(u32),
    /// Blocks that are this part of a segment.
    OfSegment(u32),
}

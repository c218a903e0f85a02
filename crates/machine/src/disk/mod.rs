//! Disks: what a request costs a drive, from one number of each kind to the whole drive with its zones and its buffer.

mod angle;
mod device;
pub mod diskspecs;
mod drive;
mod flash;
mod layout;
mod raid;
mod seek;

pub use angle::Angle;
pub use device::{Discipline, Disk, Disks, SolidState};
pub use drive::{
    AccessModel, Buffer, BusBlock, Drive, ExtraDisconnect, Mechanics, Overheads, ReadAhead, Watermark,
};
pub use flash::{Burst, Flash, HalfDuplex};
pub use layout::{
    IndexEntry, IndexedLayout, Layout, Mapping, Node, Remap, Sparing, TrackPattern, Zone, ZonedLayout,
};
pub use raid::{Raid, RaidLevel, Rebuild};
pub use seek::SeekCurve;

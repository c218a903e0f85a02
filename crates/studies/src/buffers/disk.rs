//! The disks under the buffers.
//!
//! As Miller and Katz have them (1991, section 6.1): how long a request takes depends on where it is and how close that
//! is to the request before, and on nothing else; requests do not wait for each other, however many there are. The
//! formula was not printed. Here it is one of three times (going on where the last request ended; elsewhere in its
//! file; another file), plus bytes over the rate of the disks that the file is striped over. With `queue`, requests
//! wait for their turn at their disks, first come, first served.

use pio_machine::{Disks, Duration};

use pio_sim::kernel::Time;

/// All disks, in groups over which files are striped; file `f` is on group `f` modulo their number.
#[derive(Debug)]
pub struct DiskModel {
    disks: Disks,
    groups: Vec<Group>,
    /// Picoseconds that requests took, without waiting.
    busy: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// File and offset behind the last request.
    head: Option<(u64, u64)>,
    free_at: Time,
}

impl DiskModel {
    /// Disks that nobody has used yet.
    pub fn new(disks: &Disks) -> DiskModel {
        let groups = (disks.count / disks.stripe).max(1) as usize;
        DiskModel { disks: disks.clone(), groups: vec![Group::default(); groups], busy: 0 }
    }

    /// A request comes: from when to when it is carried out.
    pub fn request(&mut self, now: Time, file: u64, offset: u64, bytes: u64) -> (Time, Time) {
        let groups = self.groups.len();
        let group = &mut self.groups[(file % groups as u64) as usize];
        let service = positioning(&self.disks, group.head, file, offset)
            .picoseconds()
            .saturating_add(transfer(&self.disks, bytes).picoseconds());
        let start = if self.disks.queue { now.max(group.free_at) } else { now };
        let end = start + Duration::from_picoseconds(service);
        *group = Group { head: Some((file, offset + bytes)), free_at: end };
        self.busy += service;
        (start, end)
    }

    /// Time that requests took, without waiting, over all groups.
    pub fn busy(&self) -> Duration {
        Duration::from_picoseconds(self.busy)
    }
}

fn positioning(disks: &Disks, head: Option<(u64, u64)>, file: u64, offset: u64) -> Duration {
    match head {
        Some(head) if head == (file, offset) => disks.sequential,
        Some((last, _)) if last == file => disks.near,
        _ => disks.far,
    }
}

fn transfer(disks: &Disks, bytes: u64) -> Duration {
    let one = disks.bandwidth.time_of(bytes).picoseconds();
    Duration::from_picoseconds(one.div_ceil(u64::from(disks.stripe)))
}

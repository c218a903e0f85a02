//! The process that a client is: so that a server can say who holds a lock, and see at once that it died.
//!
//! A connection that is closed does not say that: a client also closes one that does not work, and comes again.

use std::fs;

use crate::error::ProtocolError;
use crate::wire::{Input, put, put_bytes};

/// Bytes of a host's name: Linux has at most 64.
pub(crate) const HOST_BYTES: usize = 64;

/// A process of some machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Name of the machine.
    pub host: String,
    /// Its number, in its own namespace.
    pub pid: u32,
    /// When it began, in clock ticks since the start of the machine; 0 if it does not know.
    pub began: u64,
    /// The start of its machine (Linux's boot id); 0 if it does not know.
    pub boot: u128,
    /// The inode number of its namespace of process numbers; 0 if it does not know.
    pub namespace: u64,
}

impl Process {
    /// This process.
    pub fn this() -> Process {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim_end();
        let pid = std::process::id();
        Process {
            host: host.get(..HOST_BYTES).unwrap_or(host).to_owned(),
            pid,
            began: Stat::of(pid).map_or(0, |stat| stat.began),
            boot: boot_id().unwrap_or(0),
            namespace: namespace().unwrap_or(0),
        }
    }

    /// Whether it runs where this process sees it, and would see its end.
    pub fn is_in_sight(&self) -> bool {
        self.began != 0
            && Some(self.boot) == boot_id()
            && Some(self.namespace) == namespace()
            && Stat::of(self.pid).is_some_and(|stat| stat.began == self.began)
    }

    /// Whether a process that was in sight is over.
    pub fn is_over(&self) -> bool {
        Stat::of(self.pid).is_none_or(|stat| stat.began != self.began || stat.is_dead)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.host.as_bytes());
        put(out, u64::from(self.pid));
        put(out, self.began);
        out.extend(self.boot.to_le_bytes());
        put(out, self.namespace);
    }

    pub(crate) fn decode(input: &mut Input) -> Result<Process, ProtocolError> {
        Ok(Process {
            host: input.string(HOST_BYTES, "the name of a host")?,
            pid: input.small("a process")?,
            began: input.number("a time")?,
            boot: u128::from_le_bytes(input.array("a start of a machine")?),
            namespace: input.number("a namespace")?,
        })
    }
}

/// Which start of the machine this is, if Linux says so.
pub(crate) fn boot_id() -> Option<u128> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

/// The namespace of process numbers: `pid:[4026531836]`.
fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// What Linux says of a process in `/proc/PID/stat`.
struct Stat {
    began: u64,
    /// It only waits for its parent to take note of its end.
    is_dead: bool,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The state follows the name, which may hold anything; the beginning is 19 fields later (proc(5)).
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        Some(Stat { began: fields.nth(18)?.parse().ok()?, is_dead: matches!(state, "Z" | "X") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_until_it_is_over() {
        let this = Process::this();
        assert!(this.is_in_sight() && !this.is_over() && !this.host.is_empty());
        assert!(!Process { boot: this.boot ^ 1, ..this.clone() }.is_in_sight());
        assert!(!Process { began: this.began + 1, ..this.clone() }.is_in_sight());
        assert!(!Process::default().is_in_sight());
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let began = Stat::of(child.id()).unwrap().began;
        let other = Process { pid: child.id(), began, ..this };
        assert!(other.is_in_sight() && !other.is_over());
        child.kill().unwrap();
        // Its parent has not asked for it yet.
        while !Stat::of(child.id()).unwrap().is_dead {
            std::thread::yield_now();
        }
        assert!(other.is_over());
        child.wait().unwrap();
        assert!(other.is_over());
    }
}

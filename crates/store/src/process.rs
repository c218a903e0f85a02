//! Whether a client's process still runs, as far as this machine can tell.

use std::fs;

use pio_protocol::{ClientProcess, HOST_BYTES};

/// This process.
pub fn this() -> ClientProcess {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim_end();
    let pid = std::process::id();
    ClientProcess {
        host: host.get(..HOST_BYTES).unwrap_or(host).to_owned(),
        pid,
        began: Stat::of(pid).map_or(0, |stat| stat.began),
        boot: boot_id().unwrap_or(0),
        namespace: namespace().unwrap_or(0),
    }
}

/// Whether a process runs where this one sees it, and would see its end.
pub fn is_in_sight(process: &ClientProcess) -> bool {
    process.began != 0
        && Some(process.boot) == boot_id()
        && Some(process.namespace) == namespace()
        && Stat::of(process.pid).is_some_and(|stat| stat.began == process.began)
}

/// Whether a process that was in sight is over.
pub fn is_over(process: &ClientProcess) -> bool {
    Stat::of(process.pid).is_none_or(|stat| stat.began != process.began || stat.is_dead)
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
        let this = this();
        assert!(is_in_sight(&this) && !is_over(&this) && !this.host.is_empty());
        assert!(!is_in_sight(&ClientProcess { boot: this.boot ^ 1, ..this.clone() }));
        assert!(!is_in_sight(&ClientProcess { began: this.began + 1, ..this.clone() }));
        assert!(!is_in_sight(&ClientProcess::default()));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let began = Stat::of(child.id()).unwrap().began;
        let other = ClientProcess { pid: child.id(), began, ..this };
        assert!(is_in_sight(&other) && !is_over(&other));
        child.kill().unwrap();
        // Its parent has not asked for it yet.
        while !Stat::of(child.id()).unwrap().is_dead {
            std::thread::yield_now();
        }
        assert!(is_over(&other));
        child.wait().unwrap();
        assert!(is_over(&other));
    }
}

//! A file system that all nodes share, as its nodes see it from outside: how long its answers take, and what its clients
//! wait for. What is behind it (servers, disks, their number) is not known, and need not be.

use std::fmt::{self, Write};

use crate::describe::write_said;
use crate::error::MachineError;
use crate::machine::{Service, service};
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, word_of};

/// What a shared file system costs its nodes, each of which is one client. All times pass without a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFiles {
    /// A read: how long the answer takes, and the rate of a node's link.
    pub read: Service,
    /// The same of a write. Reads and writes pass one link.
    pub write: Service,
    /// Bytes of a request, at most: the kernel makes several of a longer call, one after the other. None: of any size.
    pub request: Option<u64>,
    /// The rate of the file system for all nodes together; none where their links are the limit.
    pub bandwidth: Option<Bandwidth>,
    /// How many requests are carried out at the same time; the others wait. None: all of them.
    pub streams: Option<u32>,
    /// What the file system promises writers.
    pub locks: Option<ClientLocks>,
    /// Which writers of one file wait for each other within a node.
    pub exclusive: Exclusive,
    /// From when one of them is through until the next, which sleeps, has its turn.
    pub handover: Duration,
    /// An open, beyond its processor time.
    pub open: Duration,
    /// What it takes beyond that if the file is not there yet.
    pub create: Duration,
    /// A close.
    pub close: Duration,
    /// A change of a file's size.
    pub resize: Duration,
    /// To ask for, or give back, a lock of a program on a part of a file.
    pub lock: Duration,
    /// To ask for what is known of a name. None where nobody measured it: such calls take as long as they did where they were
    /// recorded. So it is with the next.
    pub stat: Option<Duration>,
    /// To remove a file by its name.
    pub unlink: Option<Duration>,
    /// To make durable what was written: the request, and the rate for what was written since the last one.
    pub sync: Service,
}

/// A node that writes keeps a lock on where it wrote, until another node reads or writes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLocks {
    /// How long it takes to call a lock back from the node that has it.
    pub callback: Duration,
    /// Bytes that a lock covers; none for the whole file.
    pub strip: Option<u64>,
}

/// Which writers of one file the kernel of a node lets wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusive {
    /// None.
    Nothing,
    /// Those that make the file longer for all others.
    Growth,
    /// All.
    Writes,
}

const EXCLUSIVE: &[(&str, Exclusive)] =
    &[("nothing", Exclusive::Nothing), ("growth", Exclusive::Growth), ("writes", Exclusive::Writes)];

impl SharedFiles {
    pub(crate) fn read(section: &mut Section<'_>) -> Result<SharedFiles, MachineError> {
        let time = |key, section: &mut Section<'_>| section.duration(key, "1000 s");
        let size = |key, section: &mut Section<'_>| {
            if section.has(key) { section.size(key, 512..=1 << 40).map(Some) } else { Ok(None) }
        };
        let locks = if section.has("callback") {
            let callback = time("callback", section)?;
            Some(ClientLocks { callback, strip: size("lock-strip", section)? })
        } else {
            None
        };
        Ok(SharedFiles {
            read: service(section.section("read")?)?,
            write: service(section.section("write")?)?,
            request: size("request", section)?,
            bandwidth: section.if_said("bandwidth", Section::bandwidth)?,
            streams: if section.has("streams") {
                Some(section.number("streams", 1..=1 << 20)?)
            } else {
                None
            },
            locks,
            exclusive: section.word("exclusive", EXCLUSIVE)?,
            handover: section.duration_or(Duration::ZERO, "handover", "1 s")?,
            open: time("open", section)?,
            create: time("create", section)?,
            close: time("close", section)?,
            resize: time("resize", section)?,
            lock: time("lock", section)?,
            stat: section.if_said("stat", |section, key| time(key, section))?,
            unlink: section.if_said("unlink", |section, key| time(key, section))?,
            sync: service(section.section("sync")?)?,
        })
    }

    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[storage]\nkind = \"shared\"")?;
        for (key, service) in [("read", &self.read), ("write", &self.write), ("sync", &self.sync)] {
            let Service { request, bandwidth } = service;
            writeln!(out, "{key} = {{ request = \"{request}\", bandwidth = \"{bandwidth}\" }}")?;
        }
        if let Some(request) = self.request {
            writeln!(out, "request = \"{}\"", size_text(request))?;
        }
        if let Some(bandwidth) = self.bandwidth {
            writeln!(out, "bandwidth = \"{bandwidth}\"")?;
        }
        if let Some(streams) = self.streams {
            writeln!(out, "streams = {streams}")?;
        }
        if let Some(ClientLocks { callback, strip }) = self.locks {
            writeln!(out, "callback = \"{callback}\"")?;
            if let Some(strip) = strip {
                writeln!(out, "lock-strip = \"{}\"", size_text(strip))?;
            }
        }
        writeln!(out, "exclusive = \"{}\"", word_of(EXCLUSIVE, &self.exclusive))?;
        if self.handover > Duration::ZERO {
            writeln!(out, "handover = \"{}\"", self.handover)?;
        }
        let times = [
            ("open", Some(self.open)),
            ("create", Some(self.create)),
            ("close", Some(self.close)),
            ("resize", Some(self.resize)),
            ("lock", Some(self.lock)),
            ("stat", self.stat),
            ("unlink", self.unlink),
        ];
        write_said(&times, out)
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::{Machine, Storage};

    const STORAGE: &str = r#"[storage]
kind = "shared"
read = { request = "1 ms", bandwidth = "100 MB/s" }
write = { request = "2 ms", bandwidth = "90 MB/s" }
sync = { request = "3 ms", bandwidth = "80 MB/s" }
request = "1 MiB"
bandwidth = "400 MB/s"
streams = 8
callback = "5 ms"
lock-strip = "64 KiB"
exclusive = "growth"
handover = "20 us"
open = "4 ms"
create = "1 ms"
close = "0 s"
resize = "6 ms"
lock = "1 ms"
stat = "500 us"
unlink = "2 ms"
"#;

    /// A machine of which only the storage matters.
    fn text(storage: &str) -> String {
        let machine = Machine::built_in("sp-argonne").unwrap().to_toml("");
        let (before, rest) = machine.split_at(machine.find("[storage]").unwrap());
        let behind = &rest[rest.find("[calls]").unwrap()..];
        format!("{before}{storage}{behind}")
    }

    #[test]
    fn it_is_read_and_written() {
        let optional = [
            "request = \"1 MiB\"\n",
            "bandwidth = \"400 MB/s\"\n",
            "streams = 8\n",
            "lock-strip = \"64 KiB\"\n",
            "handover = \"20 us\"\n",
            "stat = \"500 us\"\n",
            "unlink = \"2 ms\"\n",
        ];
        let least = optional.iter().fold(STORAGE.to_owned(), |text, line| text.replace(line, ""));
        let without_locks = least.replace("callback = \"5 ms\"\n", "").replace("growth", "nothing");
        for storage in [STORAGE, &least, &without_locks] {
            let machine = Machine::parse("shared", &text(storage)).unwrap();
            assert!(matches!(machine.storage, Storage::Shared(_)));
            assert_eq!(Machine::parse("again", &machine.to_toml("")).unwrap(), machine);
        }
    }

    #[test]
    fn a_strip_without_locks_is_refused() {
        let error =
            Machine::parse("shared", &text(&STORAGE.replace("callback = \"5 ms\"\n", ""))).unwrap_err();
        assert!(error.to_string().contains("storage.lock-strip"), "{error}");
    }
}

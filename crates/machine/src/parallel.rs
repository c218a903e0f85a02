//! A parallel file system from its parts: clients with caches, files in strips on the targets of object servers, locks
//! on extents, metadata servers, journals. What each part does: `docs/design/parallel-file-systems.md`.

use std::fmt::{self, Write};

use crate::describe::write_said;
use crate::error::MachineError;
use crate::machine::{IoNodes, STRIPS, Service, io_nodes, service};
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::section::{Section, word_of};

/// A parallel file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelFiles {
    /// The object servers.
    pub io: IoNodes,
    /// What each of them has.
    pub servers: ObjectServers,
    /// How the beginning of a file is dealt out, where it is dealt out otherwise than the rest; by ascending end.
    pub components: Vec<Component>,
    /// Bytes of a strip, behind the components.
    pub strip: u64,
    /// Objects of a file, behind the components; none for one on each target. Where there are more than targets, targets have
    /// several.
    pub stripe_count: Option<u32>,
    /// The client on each node.
    pub client: Client,
    /// What keeps the caches of clients coherent; none where nothing does.
    pub locks: Option<ExtentLocks>,
    /// The metadata servers.
    pub metadata: Metadata,
}

/// What an object server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectServers {
    /// Targets of a server.
    pub targets: u32,
    /// What a read takes a target.
    pub read: Service,
    /// What a write takes a target.
    pub write: Service,
    /// Requests that a server works on at a time; none for any number.
    pub threads: Option<u32>,
    /// The rate of a server towards the network, each way; none where its link is as those of other nodes.
    pub link: Option<Bandwidth>,
    /// Bytes of writes that a target has in memory before its device has them.
    pub memory: u64,
    /// What a target needs to make durable what its device has.
    pub journal: Duration,
}

/// A part of every file that is dealt out in its own way: a component of Lustre's progressive file layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Where in the file it ends.
    pub to: u64,
    /// Bytes of a strip.
    pub strip: u64,
    /// Objects it is dealt out to; none for one on each target.
    pub stripe_count: Option<u32>,
}

/// The file system's part of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Bytes of a request, at most.
    pub request: u64,
    /// Requests under way to a target, at most.
    pub in_flight: u32,
    /// Its memory of file data; none if every read and write goes to the servers.
    pub cache: Option<ClientCache>,
}

/// A client's memory of file data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCache {
    /// Bytes of it.
    pub size: u64,
    /// Bytes of a page. A write of a part of one first reads the rest of it.
    pub page: u64,
    /// Bytes for a target that may be newer than there.
    pub dirty: u64,
    /// How far it reads ahead, at most.
    pub read_ahead: u64,
    /// Whether a close waits until all that its node wrote is durable.
    pub flush_on_close: bool,
}

/// Locks on extents, which clients keep until they are called back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentLocks {
    /// What a lock is on.
    pub on: LocksOn,
    /// How much a client gets.
    pub grant: Grant,
    /// How much of it a client gives back to another that wants a part.
    pub yields: Yields,
    /// Bytes to whose multiples locks are rounded.
    pub unit: u64,
    /// A server's time for a client's wish.
    pub request: Duration,
    /// A client's time to give one back, once its data are on the server.
    pub callback: Duration,
    /// Whether what was written under a lock is durable before another gets it; only for locks on objects.
    pub sync: bool,
}

/// What extent locks are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocksOn {
    /// The part of a file on one target; its server keeps them.
    Objects,
    /// The file; one of the servers keeps them.
    Files,
}

/// How much a client gets that asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// As much around it as no other has or waits for.
    Widest,
    /// What it asks for.
    Asked,
}

/// How much of a lock a client gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// All.
    Lock,
    /// What lies on the other's side of where it last read or wrote.
    Extent,
}

/// The metadata servers. Times are those for which an operation keeps its server busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// How many.
    pub servers: u32,
    /// Whether the entries of a directory are dealt out to all of them; otherwise a directory is on one.
    pub striped_directories: bool,
    /// An open.
    pub open: Duration,
    /// What an open takes beyond that if it makes the file.
    pub create: Duration,
    /// A close.
    pub close: Duration,
    /// A change of a file's size.
    pub resize: Duration,
    /// To give, or to take back, a lock of the program (`fcntl`).
    pub lock: Duration,
    /// To say what is known of a name (`stat`); none where nobody measured it.
    pub stat: Option<Duration>,
    /// To remove a name (`unlink`); none where nobody measured it.
    pub unlink: Option<Duration>,
}

impl ParallelFiles {
    /// Targets of all servers.
    pub fn targets(&self) -> u32 {
        self.io.count * self.servers.targets
    }

    /// Targets of a file behind its components.
    pub fn stripe_count(&self) -> u32 {
        self.stripe_count.map_or(self.targets(), |count| count.min(self.targets()))
    }
}

const MOST: u64 = 1 << 50;
const ON: &[(&str, LocksOn)] = &[("objects", LocksOn::Objects), ("files", LocksOn::Files)];
const GRANT: &[(&str, Grant)] = &[("widest", Grant::Widest), ("asked", Grant::Asked)];
const YIELDS: &[(&str, Yields)] = &[("lock", Yields::Lock), ("extent", Yields::Extent)];
const DIRECTORIES: &[(&str, bool)] = &[("one-server", false), ("striped", true)];

impl ParallelFiles {
    pub(crate) fn read(section: &mut Section<'_>, nodes: u32) -> Result<ParallelFiles, MachineError> {
        let io = io_nodes(section.section("io")?, nodes, false)?;
        let servers = servers(section.section("servers")?)?;
        let targets = io.count.checked_mul(servers.targets);
        if targets.is_none_or(|targets| targets > 1 << 20) {
            let expected = "at most 1048576 targets, those of all servers together".to_owned();
            return Err(section.conflict("servers", expected));
        }
        let mut components: Vec<Component> = Vec::new();
        if section.has("components") {
            for mut one in section.sections("components")? {
                let least = components.last().map_or(1, |last| last.to + 1);
                let (to, strip) = (one.size("to", least..=1 << 60)?, one.size("strip", STRIPS)?);
                if !to.is_multiple_of(strip) {
                    return Err(one.conflict("to", format!("a multiple of its strip, {}", size_text(strip))));
                }
                components.push(Component { to, strip, stripe_count: stripe_count(&mut one)? });
                one.finish()?;
            }
        }
        let client = client(section.section("client")?)?;
        let locks = match (section.has("locks"), &client.cache) {
            (false, _) => None,
            (true, Some(cache)) => Some(locks(section.section("locks")?, cache.page)?),
            (true, None) => {
                let expected = "no such key where storage.client has no cache that it could guard".to_owned();
                return Err(section.conflict("locks", expected));
            }
        };
        Ok(ParallelFiles {
            io,
            servers,
            components,
            strip: section.size("strip", STRIPS)?,
            stripe_count: stripe_count(section)?,
            client,
            locks,
            metadata: metadata(section.section("metadata")?)?,
        })
    }

    pub(crate) fn write(&self, io: &str, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[storage]\nkind = \"parallel\"\n{io}")?;
        if !self.components.is_empty() {
            writeln!(out, "components = [")?;
            for Component { to, strip, stripe_count } in &self.components {
                let count = stripe_count.map_or(String::new(), |count| format!(", stripe-count = {count}"));
                writeln!(
                    out,
                    "    {{ to = \"{}\", strip = \"{}\"{count} }},",
                    size_text(*to),
                    size_text(*strip)
                )?;
            }
            writeln!(out, "]")?;
        }
        writeln!(out, "strip = \"{}\"", size_text(self.strip))?;
        if let Some(count) = self.stripe_count {
            writeln!(out, "stripe-count = {count}")?;
        }
        self.servers.write(out)?;
        self.client.write(out)?;
        if let Some(locks) = &self.locks {
            locks.write(out)?;
        }
        self.metadata.write(out)
    }
}

/// Of a file: Lustre's own limit (`LOV_MAX_STRIPE_COUNT`).
const MOST_OBJECTS: u32 = 2000;

fn stripe_count(section: &mut Section<'_>) -> Result<Option<u32>, MachineError> {
    if section.has("stripe-count") {
        section.number("stripe-count", 1..=MOST_OBJECTS).map(Some)
    } else {
        Ok(None)
    }
}

fn servers(mut section: Section<'_>) -> Result<ObjectServers, MachineError> {
    let servers = ObjectServers {
        targets: section.number("targets", 1..=1 << 16)?,
        read: service(section.section("read")?)?,
        write: service(section.section("write")?)?,
        threads: if section.has("threads") { Some(section.number("threads", 1..=1 << 20)?) } else { None },
        link: section.if_said("link", Section::bandwidth)?,
        memory: if section.has("memory") { section.size("memory", 0..=MOST)? } else { 0 },
        journal: section.duration_or(Duration::ZERO, "journal", "1000 s")?,
    };
    section.finish()?;
    Ok(servers)
}

impl ObjectServers {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[storage.servers]\ntargets = {}", self.targets)?;
        for (key, Service { request, bandwidth }) in [("read", &self.read), ("write", &self.write)] {
            writeln!(out, "{key} = {{ request = \"{request}\", bandwidth = \"{bandwidth}\" }}")?;
        }
        if let Some(threads) = self.threads {
            writeln!(out, "threads = {threads}")?;
        }
        if let Some(link) = self.link {
            writeln!(out, "link = \"{link}\"")?;
        }
        if self.memory > 0 {
            writeln!(out, "memory = \"{}\"", size_text(self.memory))?;
        }
        if self.journal > Duration::ZERO {
            writeln!(out, "journal = \"{}\"", self.journal)?;
        }
        Ok(())
    }
}

fn client(mut section: Section<'_>) -> Result<Client, MachineError> {
    let client = Client {
        request: section.size("request", 512..=1 << 40)?,
        in_flight: section.number("in-flight", 1..=1 << 16)?,
        cache: section.section_if_said("cache", cache)?,
    };
    section.finish()?;
    Ok(client)
}

fn cache(mut section: Section<'_>) -> Result<ClientCache, MachineError> {
    let cache = ClientCache {
        size: section.size("size", 4096..=MOST)?,
        page: section.size("page", 1..=1 << 30)?,
        dirty: section.size("dirty", 1..=MOST)?,
        read_ahead: section.size("read-ahead", 0..=MOST)?,
        flush_on_close: section.has("flush-on-close") && section.flag("flush-on-close")?,
    };
    if cache.size < cache.page {
        return Err(section.conflict("size", format!("at least a page of {}", size_text(cache.page))));
    }
    section.finish()?;
    Ok(cache)
}

impl Client {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[storage.client]\nrequest = \"{}\"", size_text(self.request))?;
        writeln!(out, "in-flight = {}", self.in_flight)?;
        let Some(ClientCache { size, page, dirty, read_ahead, flush_on_close }) = &self.cache else {
            return Ok(());
        };
        writeln!(out, "\n[storage.client.cache]\nsize = \"{}\"", size_text(*size))?;
        writeln!(out, "page = \"{}\"\ndirty = \"{}\"", size_text(*page), size_text(*dirty))?;
        writeln!(out, "read-ahead = \"{}\"", size_text(*read_ahead))?;
        if *flush_on_close {
            writeln!(out, "flush-on-close = true")?;
        }
        Ok(())
    }
}

/// `page`: what a client reads to write a part of it, which its lock must cover.
fn locks(mut section: Section<'_>, page: u64) -> Result<ExtentLocks, MachineError> {
    let locks = ExtentLocks {
        on: section.word("on", ON)?,
        grant: section.word("grant", GRANT)?,
        yields: section.word("yields", YIELDS)?,
        unit: section.size("unit", 1..=1 << 40)?,
        request: section.duration("request", "1000 s")?,
        callback: section.duration("callback", "1000 s")?,
        sync: section.has("sync") && section.flag("sync")?,
    };
    if locks.sync && locks.on == LocksOn::Files {
        return Err(section.conflict("sync", "false, as storage.locks.on is \"files\"".to_owned()));
    }
    if !locks.unit.is_multiple_of(page) {
        return Err(section.conflict("unit", format!("a multiple of a page, {}", size_text(page))));
    }
    section.finish()?;
    Ok(locks)
}

impl ExtentLocks {
    fn write(&self, out: &mut String) -> fmt::Result {
        let ExtentLocks { on, grant, yields, unit, request, callback, sync } = self;
        writeln!(out, "\n[storage.locks]\non = \"{}\"", word_of(ON, on))?;
        writeln!(out, "grant = \"{}\"\nyields = \"{}\"", word_of(GRANT, grant), word_of(YIELDS, yields))?;
        writeln!(out, "unit = \"{}\"", size_text(*unit))?;
        writeln!(out, "request = \"{request}\"\ncallback = \"{callback}\"")?;
        if *sync { writeln!(out, "sync = true") } else { Ok(()) }
    }
}

fn metadata(mut section: Section<'_>) -> Result<Metadata, MachineError> {
    let time = |key, section: &mut Section<'_>| section.duration(key, "1000 s");
    let metadata = Metadata {
        servers: section.number("servers", 1..=1 << 16)?,
        striped_directories: section.word("directories", DIRECTORIES)?,
        open: time("open", &mut section)?,
        create: time("create", &mut section)?,
        close: time("close", &mut section)?,
        resize: time("resize", &mut section)?,
        lock: time("lock", &mut section)?,
        stat: section.if_said("stat", |section, key| time(key, section))?,
        unlink: section.if_said("unlink", |section, key| time(key, section))?,
    };
    section.finish()?;
    Ok(metadata)
}

impl Metadata {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[storage.metadata]\nservers = {}", self.servers)?;
        writeln!(out, "directories = \"{}\"", word_of(DIRECTORIES, &self.striped_directories))?;
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
kind = "parallel"
io = { count = 2, placement = "clustered", dedicated = true }
components = [
    { to = "64 MiB", strip = "1 MiB", stripe-count = 1 },
    { to = "1 GiB", strip = "1 MiB", stripe-count = 4 },
]
strip = "4 MiB"
stripe-count = 3

[storage.servers]
targets = 2
read = { request = "1 ms", bandwidth = "100 MB/s" }
write = { request = "2 ms", bandwidth = "90 MB/s" }
threads = 16
link = "400 MB/s"
memory = "64 MiB"
journal = "3 ms"

[storage.client]
request = "4 MiB"
in-flight = 8

[storage.client.cache]
size = "1 GiB"
page = "4 KiB"
dirty = "64 MiB"
read-ahead = "64 MiB"
flush-on-close = true

[storage.locks]
on = "objects"
grant = "widest"
yields = "lock"
unit = "4 KiB"
request = "10 us"
callback = "20 us"
sync = true

[storage.metadata]
servers = 1
directories = "striped"
open = "4 ms"
create = "1 ms"
close = "1 us"
resize = "6 ms"
lock = "1 ms"

"#;

    /// A machine of which only the storage matters.
    fn text(storage: &str) -> String {
        let machine = Machine::built_in("sp-argonne").unwrap().to_toml("");
        let (before, rest) = machine.split_at(machine.find("[storage]").unwrap());
        format!("{before}{storage}{}", &rest[rest.find("[calls]").unwrap()..])
    }

    /// Without a table, up to the next one.
    fn without(text: &str, table: &str) -> String {
        let (before, rest) = text.split_at(text.find(table).unwrap());
        format!("{before}{}", &rest[1 + rest[1..].find("\n[").unwrap()..])
    }

    #[test]
    fn it_is_read_and_written() {
        let optional = [
            "stripe-count = 3\n",
            "threads = 16\n",
            "link = \"400 MB/s\"\n",
            "memory = \"64 MiB\"\n",
            "sync = true\n",
        ];
        let least = optional.iter().fold(STORAGE.to_owned(), |text, line| text.replace(line, ""));
        let without_locks = without(STORAGE, "[storage.locks]");
        let direct = without(&without_locks, "[storage.client.cache]");
        for storage in [STORAGE, &least, &without_locks, &direct] {
            let machine = Machine::parse("parallel", &text(storage)).unwrap();
            let Storage::Parallel(files) = &machine.storage else { panic!("parallel") };
            assert_eq!((files.targets(), files.components.len()), (4, 2));
            assert_eq!(Machine::parse("again", &machine.to_toml("")).unwrap(), machine);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_and_named() {
        let refused = |from: &str, to: &str| {
            Machine::parse("parallel", &text(&STORAGE.replace(from, to))).unwrap_err().to_string()
        };
        assert!(refused("stripe-count = 3", "stripe-count = 0").contains("storage.stripe-count = 0"));
        assert!(refused("to = \"1 GiB\"", "to = \"32 MiB\"").contains("storage.components[1].to"));
        assert!(refused("to = \"64 MiB\"", "to = \"1000 kB\"").contains("a multiple of its strip, 1 MiB"));
        assert!(refused("page = \"4 KiB\"", "page = \"1 GiB\"\npgae = 1").contains("pgae"));
        assert!(refused("unit = \"4 KiB\"", "unit = \"512 B\"").contains("a multiple of a page, 4 KiB"));
        assert!(refused("on = \"objects\"", "on = \"disks\"").contains("\"objects\" or \"files\""));
        assert!(refused("on = \"objects\"", "on = \"files\"").contains("storage.locks.sync"));
        let direct = Machine::parse("parallel", &text(&without(STORAGE, "[storage.client.cache]")));
        assert!(direct.unwrap_err().to_string().contains("storage.locks"));
    }
}

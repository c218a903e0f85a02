//! The description itself. Its text and the meaning of every key: `docs/machines.md`.

use std::path::Path;

use crate::arm::Arm;
use crate::buffers::Buffers;
use crate::built_in;
use crate::call_costs::CallCosts;
use crate::cold_reads::ColdReads;
use crate::error::MachineError;
use crate::io_node::IoNode;
use crate::keys;
use crate::mpi_io::MpiIo;
use crate::network::Network;
use crate::parallel::ParallelFiles;
use crate::processor_cache::ProcessorCache;
use crate::quantity::{Bandwidth, Duration, size_text};
use crate::rewrites::Rewrites;
use crate::section::{Section, Source, read_file};
use crate::shared_files::SharedFiles;
use crate::write_back::WriteBack;

/// What I/O costs on one computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Short name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// The compute nodes.
    pub nodes: Nodes,
    /// What a message costs the processors.
    pub messages: Messages,
    /// What connects the nodes.
    pub network: Network,
    /// Where files are.
    pub storage: Storage,
    /// What is inside an I/O node, if the description says it.
    pub io_node: Option<IoNode>,
    /// What calls cost the process that makes them.
    pub calls: Calls,
    /// What MPI-IO costs beyond them, if the description says it.
    pub mpi_io: Option<MpiIo>,
}

/// The compute nodes, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Number of compute nodes.
    pub count: u32,
    /// Processor cores of each.
    pub cores: u32,
    /// Time to put another process on a core.
    pub switch: Duration,
    /// How long a process keeps a core while another waits for it; not 0.
    pub quantum: Duration,
    /// How long a process surely keeps a core: one that wakes takes it from a process that has it for longer, and else waits
    /// for the end of the quantum.
    pub slice: Duration,
    /// From when a process wakes another that sleeps until that one works; 0 where nobody measured it.
    pub wake: Duration,
    /// After so long of other work, a core's caches have nothing left of what a process used before; 0 where nobody measured it:
    /// then all is still there.
    pub cooling: Duration,
    /// Copying within a node's memory.
    pub copy: Copy,
}

impl Nodes {
    /// Where a description says nothing: Linux looks at every tick, 250 times a second, whether another waits.
    pub const USUAL_QUANTUM: Duration = Duration::from_picoseconds(4_000_000_000);
}

/// Copying within memory: packing, unpacking, and messages within a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Bytes copied a second by one core.
    pub bandwidth: Bandwidth,
    /// Added for every contiguous piece.
    pub piece: Duration,
}

/// What a message costs the processors at its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Processor time of the sender.
    pub send: Duration,
    /// Processor time of the receiver.
    pub receive: Duration,
    /// Time on the way between two processes of one node.
    pub local_latency: Duration,
}

/// Where files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the file system of the node's own kernel: calls cost what [`Calls`] says and nothing else.
    Local {
        /// Whether the kernel lets only one process at a time write a file (the inode lock of most Linux file systems).
        exclusive_writes: bool,
    },
    /// In a file system that the nodes share, of which only its answers are known.
    Shared(Box<SharedFiles>),
    /// In a parallel file system, of which the parts are known.
    Parallel(Box<ParallelFiles>),
    /// On I/O nodes, dealt out in strips.
    Striped {
        /// The nodes that serve.
        io: IoNodes,
        /// Bytes of a strip.
        strip: u64,
        /// What a read costs a server.
        read: Service,
        /// What a write costs a server.
        write: Service,
        /// Time the directory server is busy with one open.
        open: Duration,
        /// What it takes longer to make the file.
        create: Duration,
        /// Time the directory server is busy with one close.
        close: Duration,
        /// Time the directory server is busy with one change of a file's size.
        resize: Duration,
        /// How much longer the first write to a file takes each of its servers, after it was made or made durable: a server may note
        /// on its disk, before it writes, that what it knows of the file's bytes may soon be wrong.
        begin: Duration,
        /// How much longer the first request of a process takes to each of them: it connects.
        connect: Duration,
        /// At which rate all servers together, in a sync, read and sum the blocks of which no write filled all; if nothing is said,
        /// that takes no time.
        summing: Option<Bandwidth>,
        /// What pieces cost of requests that name many; if nothing is said, callers nothing, and servers as much as `nodes.copy`.
        pieces: Option<Pieces>,
        /// Whether they are servers as Pioscope's own: they take requests by view, and say how a file is dealt out.
        takes_views: bool,
        /// Bytes of writes that a server takes into its memory before they are on its disk; then a writer goes on. Not where
        /// servers share cores.
        memory: u64,
        /// What the arms of their disks do; none where requests take turns, strip by strip, and what they ask for lies anywhere. Not
        /// where servers share cores.
        arm: Option<Arm>,
        /// Whether closes have a queue of their own, and do not wait for opens nor the other way round.
        separate_closes: bool,
    },
    /// The same, with what is inside an I/O node: as [`Machine::io_node`] describes it.
    IoNodes {
        /// The nodes that serve.
        io: IoNodes,
        /// Bytes of a strip.
        strip: u64,
        /// Bytes of the message that asks for a read, announces a write, or says that it is done.
        request: u64,
        /// Memory of each node that keeps what was read and written, if it has such.
        cache: Option<Buffers>,
        /// Time the directory server is busy with one open.
        open: Duration,
        /// Time the directory server is busy with one close.
        close: Duration,
    },
}

impl Storage {
    /// The I/O nodes; none where files are in the node's own file system, or in one of which they are not known.
    pub fn io_nodes(&self) -> Option<&IoNodes> {
        match self {
            Storage::Local { .. } | Storage::Shared(_) => None,
            Storage::Striped { io, .. } | Storage::IoNodes { io, .. } => Some(io),
            Storage::Parallel(files) => Some(&files.io),
        }
    }

    /// Whether I/O servers work on the cores of the ranks.
    pub fn shares_cores(&self) -> bool {
        self.io_nodes().is_some_and(|io| io.shares_cores)
    }

    /// I/O nodes beside the compute nodes.
    pub(crate) fn dedicated_nodes(&self) -> u32 {
        self.io_nodes().filter(|io| io.dedicated).map_or(0, |io| io.count)
    }

    /// Bytes of a strip; none where there are no I/O nodes.
    pub fn strip(&self) -> Option<u64> {
        match self {
            Storage::Local { .. } | Storage::Shared(_) => None,
            Storage::Striped { strip, .. } | Storage::IoNodes { strip, .. } => Some(*strip),
            Storage::Parallel(files) => Some(files.strip),
        }
    }
}

/// Which nodes are I/O nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoNodes {
    /// Number of I/O nodes.
    pub count: u32,
    /// Where they are among the nodes.
    pub placement: IoNodePlacement,
    /// Whether they are nodes of their own, added to the compute nodes, or compute nodes serve beside their work.
    pub dedicated: bool,
    /// Whether what servers do takes cores of the compute nodes that they are on, by turns with ranks. There may be several on
    /// a node. Only where storage is striped.
    pub shares_cores: bool,
    /// Where they do: how much longer a request or an answer takes that finds a core which has been idle for
    /// [`IoNodes::ASLEEP_AFTER`].
    pub wake: Duration,
    /// The same after [`IoNodes::FAST_ASLEEP_AFTER`] or longer.
    pub deep_wake: Duration,
    /// Where they do: how much longer a server works on a request of a rank whose last one was another server's. A rank and the
    /// thread that works for it take turns on a core, and such a thread comes in between.
    pub change: Duration,
    /// Where they do: at which rate the memory through which data go between a rank and a server's thread is made, when it is first
    /// used; if nothing is said, that takes no time.
    pub channel: Option<Bandwidth>,
}

impl IoNodes {
    /// For how long cores were idle where [`IoNodes::wake`] was measured.
    pub const ASLEEP_AFTER: Duration = Duration::from_picoseconds(200_000_000);
    /// And [`IoNodes::deep_wake`].
    pub const FAST_ASLEEP_AFTER: Duration = Duration::from_picoseconds(2_000_000_000);

    /// How much longer takes what finds a core that has been idle for so long. Cores sleep the deeper the longer they are idle, and who
    /// has just gone to sleep often wakes where it was, on the core of who wakes it: between what was measured it grows with the
    /// time.
    pub fn time_to_wake(&self, idle: Duration) -> Duration {
        let (asleep, fast) = (Self::ASLEEP_AFTER.seconds(), Self::FAST_ASLEEP_AFTER.seconds());
        let (wake, deep) = (self.wake.seconds(), self.deep_wake.seconds());
        let idle = idle.seconds().min(fast);
        let longer = if idle < asleep {
            wake * idle / asleep
        } else {
            wake + (deep - wake) * (idle - asleep) / (fast - asleep)
        };
        Duration::from_seconds(longer)
    }
}

/// Where the I/O nodes are among the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoNodePlacement {
    /// At equal distances.
    Distributed,
    /// The last ones.
    Clustered,
}

impl IoNodePlacement {
    /// All of them.
    pub const ALL: [IoNodePlacement; 2] = [IoNodePlacement::Distributed, IoNodePlacement::Clustered];

    /// As descriptions name it.
    pub fn name(self) -> &'static str {
        match self {
            IoNodePlacement::Distributed => "distributed",
            IoNodePlacement::Clustered => "clustered",
        }
    }
}

/// How long a server is busy with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// For each request.
    pub request: Duration,
    /// And for its bytes.
    pub bandwidth: Bandwidth,
}

/// What the pieces cost of a request that names many, by list or by view (ECIO: Hong, You and Chung 2006, sections 3.1 and 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Processor time of a reader for each of its pieces: from its datatype to positions and lengths, and to their places.
    pub read: Duration,
    /// The same of a writer.
    pub write: Duration,
    /// How a server puts pieces in their places, or picks them out.
    pub server: Copy,
}

/// What calls cost the process that makes them, in processor time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// One open.
    pub open: Duration,
    /// What it costs beyond that if the file is not there yet. Only where files are in the node's own file system.
    pub create: Duration,
    /// One close.
    pub close: Duration,
    /// One seek.
    pub seek: Duration,
    /// One change of a file's size.
    pub resize: Duration,
    /// To ask for what is known of a name. None where nobody measured it: such calls take as long as they did where they were
    /// recorded. So it is with the next.
    pub stat: Option<Duration>,
    /// To remove a file by its name.
    pub unlink: Option<Duration>,
    /// At this rate such a removal, or a change of size, takes longer for the bytes of the pages that leave memory. None where
    /// that costs nothing; only where files are in the node's own file system.
    pub dropped_pages: Option<Bandwidth>,
    /// What it takes longer to write a file anew. None where nobody measured it: then an open takes as long for what it cuts off as
    /// another change of size; only where files are in the node's own file system.
    pub rewrites: Option<Rewrites>,
    /// What it takes until a file's data are on its device: for the call, and for the bytes that were written since they last
    /// were. Only where files are in the node's own file system.
    pub sync: Option<CallCost>,
    /// What a read costs.
    pub read: CallCost,
    /// What a write costs.
    pub write: CallCost,
    /// What a write costs beyond that, if it touches pages of the file that the node's memory does not have yet: for the
    /// call, and for the bytes of those pages. Only where files are in the node's own file system.
    pub new_pages: Option<CallCost>,
    /// And for each folio of them but the first: file systems with large folios take a power of two of pages at a time, where a
    /// write begins and ends with such. 0 for others.
    pub new_folio: Duration,
    /// What bytes of a read or write take longer if the place that they go to is a little further into its page than that where
    /// they come from: some processors' block copies then move them one by one. None where that costs nothing. Only where files
    /// are in the node's own file system.
    pub askew: Option<Askew>,
    /// What bytes of a read or write cost that the processors' caches hold. None where that is no less; only where files are in
    /// the node's own file system.
    pub processor_cache: Option<ProcessorCache>,
    /// What reads and writes take longer after [`Nodes::cooling`] of other work: by then the processor's caches have nothing left
    /// of the kernel's code and of the memory of the call. After less it is less, in proportion. What a call costs otherwise is
    /// what it takes right behind another, from or to the same memory. None where nobody measured it; only where files are in the
    /// node's own file system.
    pub after_work: Option<CallCosts>,
    /// What reads and writes take that go past the page cache (`O_DIRECT`), one at a time. None where memory is the device, or
    /// nothing is known: then they cost what others do; only where files are in the node's own file system.
    pub direct: Option<CallCosts>,
    /// When what was written goes to the device without being asked to. None where memory is the device, or nothing is known;
    /// only where files are in the node's own file system.
    pub write_back: Option<WriteBack>,
    /// What reads wait for that do not find their pages in memory. None where memory is the device, or nothing is known; only
    /// where files are in the node's own file system.
    pub cold_reads: Option<ColdReads>,
    /// Whether a rank leaves a collective open, close or view only when all ranks have come to it.
    pub collective_waits: bool,
    /// Whether opens, closes and seeks cost this at each level of a binary tree of the ranks that opened the file together.
    pub by_levels: bool,
}

/// What copies cost to a place that is a little further into its page than that where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Askew {
    /// At this rate their bytes take longer.
    pub bandwidth: Bandwidth,
    /// Where it is further by fewer bytes than this.
    pub reach: u64,
}

/// What a read or write call costs the process that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCost {
    /// For each call.
    pub call: Duration,
    /// And for its bytes: all of them, or those beyond the largest of `sizes`.
    pub bandwidth: Bandwidth,
    /// Sizes in bytes, ascending, and what a call of that size takes in all; one between them lies on the line between two.
    pub sizes: Vec<(u64, Duration)>,
}

impl CallCost {
    /// What a call with so many bytes takes.
    pub fn of(&self, bytes: u64) -> Duration {
        self.call.saturating_add(self.moving(bytes))
    }

    /// What so many bytes take, beyond the call.
    pub fn moving(&self, bytes: u64) -> Duration {
        let call = self.call.picoseconds();
        let (mut below, mut there) = (0, call);
        for (size, time) in &self.sizes {
            let time = time.picoseconds().max(there);
            if bytes < *size {
                let part = u128::from(bytes - below) * u128::from(time - there) / u128::from(size - below);
                return Duration::from_picoseconds(there - call + part as u64);
            }
            (below, there) = (*size, time);
        }
        let beyond = self.bandwidth.time_of(bytes - below).picoseconds();
        Duration::from_picoseconds((there - call).saturating_add(beyond))
    }
}

pub(crate) const MOST_NODES: u32 = 1 << 20;
const MOST_CORES: u32 = 4096;
/// No kernel looks more often whether another process waits; each time costs a simulation an event.
const LEAST_QUANTUM: Duration = Duration::from_picoseconds(1_000_000);
/// No processor takes longer for a piece.
const MOST_OF_A_PIECE: &str = "1 s";
/// Bytes below which known processors find copies askew, at most.
pub(crate) const ASKEW_REACH: u64 = 32;
pub(crate) const STRIPS: std::ops::RangeInclusive<u64> = 512..=1 << 30;

impl Machine {
    /// Reads a description from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is wrong: names file, line, and what is allowed.
    pub fn load(path: &Path) -> Result<Machine, MachineError> {
        let (file, text) = read_file(path)?;
        Machine::parse(&file, &text)
    }

    /// Reads a description from a text; `file` is its name in errors.
    ///
    /// # Errors
    /// If something in it is wrong: names file, line, and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Machine, MachineError> {
        Machine::read(&Source { file, text, is_seen: true })
    }

    pub(crate) fn read(source: &Source<'_>) -> Result<Machine, MachineError> {
        let table = source.table()?;
        machine(Section::root(source, table.get_ref())).map_err(|error| match error {
            // A key that is misspelt is unknown and missing: the misspelt one is what its author must find.
            MachineError::MissingKey { .. } => keys::of_another_kind(source, table.get_ref())
                .or_else(|| keys::unknown(source, table.get_ref()))
                .unwrap_or(error),
            _ => error,
        })
    }

    /// The source of what is measured on this host, with files in this folder.
    pub fn source_of(host: &str, folder: &Path) -> String {
        format!("measured on host '{host}', files in {}", folder.display())
    }

    /// The host on which it was measured, and the folder of the files; none if it was not.
    pub fn measured_on(&self) -> Option<(&str, &str)> {
        let (host, folder) = self.source.strip_prefix("measured on host '")?.split_once("', files in ")?;
        Some((host, folder.split(", which ").next().unwrap_or(folder)))
    }

    /// Compute nodes and dedicated I/O nodes: what the network connects.
    pub fn all_nodes(&self) -> u32 {
        self.nodes.count + self.storage.dedicated_nodes()
    }

    /// Links of all these nodes into the network.
    pub fn network_ends(&self) -> u32 {
        // No more than what the network has room for; or it is one that grows with them.
        let ends = self.network.rails.ends(self.nodes.count, self.storage.dedicated_nodes());
        u32::try_from(ends).unwrap_or(u32::MAX)
    }

    /// The description that is built in under this name.
    ///
    /// # Errors
    /// If there is none: names those there are.
    pub fn built_in(name: &str) -> Result<Machine, MachineError> {
        let (file, text) = built_in::text(name)?;
        Machine::parse(&file, &text)
    }

    /// The names of the descriptions that are built in.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        built_in::names()
    }

    /// The description of this name, or in this file if it has a path's or a `.toml` file's looks.
    ///
    /// # Errors
    /// As [`Machine::built_in`] and [`Machine::load`].
    pub fn find(name_or_path: &str) -> Result<Machine, MachineError> {
        let (file, text) = Machine::find_text(name_or_path)?;
        Machine::parse(&file, &text)
    }

    /// The file of the description that [`Machine::find`] finds, and its text, with the comments that say where numbers are from.
    ///
    /// # Errors
    /// If there is no such description, or it cannot be read.
    pub fn find_text(name_or_path: &str) -> Result<(String, String), MachineError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            read_file(Path::new(name_or_path))
        } else {
            built_in::text(name_or_path)
        }
    }
}

fn machine(mut root: Section<'_>) -> Result<Machine, MachineError> {
    // Simulated traces are named after the machine.
    let (name, description) = (root.file_name("name")?, root.text("source")?);
    let nodes = nodes(root.section("nodes")?)?;
    let storage = storage(root.section("storage")?, nodes.count)?;
    let needs_io_node = matches!(storage, Storage::IoNodes { .. });
    let network = Network::read(root.section("network")?, nodes.count, storage.dedicated_nodes())?;
    let machine = Machine {
        name,
        source: description,
        nodes,
        messages: messages(root.section("messages")?)?,
        network,
        storage,
        io_node: if needs_io_node || root.has("io-node") {
            Some(IoNode::read(root.section("io-node")?)?)
        } else {
            None
        },
        calls: calls(root.section("calls")?)?,
        mpi_io: if root.has("mpi-io") { Some(MpiIo::read(root.section("mpi-io")?)?) } else { None },
    };
    if let (Storage::IoNodes { strip, .. }, Some(node)) = (&machine.storage, &machine.io_node)
        && node.together(*strip) > node.buffer
    {
        let buffer = size_text(node.buffer);
        let expected = match node.disks.raid {
            Some(_) => format!("at most io-node.buffer = \"{buffer}\""),
            None => format!("at most io-node.buffer = \"{buffer}\", or an io-node.unit of at most that"),
        };
        return Err(root.section("storage")?.conflict("strip", expected));
    }
    root.finish()?;
    Ok(machine)
}

fn nodes(mut section: Section<'_>) -> Result<Nodes, MachineError> {
    let quantum = quantum(&mut section)?;
    let nodes = Nodes {
        count: section.number("count", 1..=MOST_NODES)?,
        cores: section.number("cores", 1..=MOST_CORES)?,
        switch: section.duration("switch", "1 s")?,
        quantum,
        slice: section.duration_or(quantum, "slice", "1000 s")?,
        wake: section.duration_or(Duration::ZERO, "wake", "1 s")?,
        cooling: section.duration_or(Duration::ZERO, "cooling", "1000 s")?,
        copy: copy(section.section("copy")?)?,
    };
    section.finish()?;
    Ok(nodes)
}

fn quantum(section: &mut Section<'_>) -> Result<Duration, MachineError> {
    if !section.has("quantum") {
        return Ok(Nodes::USUAL_QUANTUM);
    }
    let quantum = section.duration("quantum", "1000 s")?;
    if quantum < LEAST_QUANTUM {
        return Err(section.conflict("quantum", format!("a time from \"{LEAST_QUANTUM}\"")));
    }
    Ok(quantum)
}

fn copy(mut section: Section<'_>) -> Result<Copy, MachineError> {
    let copy = Copy {
        bandwidth: section.bandwidth("bandwidth")?,
        piece: section.duration("piece", MOST_OF_A_PIECE)?,
    };
    section.finish()?;
    Ok(copy)
}

fn messages(mut section: Section<'_>) -> Result<Messages, MachineError> {
    let messages = Messages {
        send: section.duration("send", "1 s")?,
        receive: section.duration("receive", "1 s")?,
        local_latency: section.duration("local-latency", "1 s")?,
    };
    section.finish()?;
    Ok(messages)
}

fn storage(mut section: Section<'_>, nodes: u32) -> Result<Storage, MachineError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Local,
        Shared,
        Parallel,
        Striped,
        IoNodes,
    }
    let kinds = [
        ("local", Kind::Local),
        ("shared", Kind::Shared),
        ("parallel", Kind::Parallel),
        ("striped", Kind::Striped),
        ("io-nodes", Kind::IoNodes),
    ];
    let storage = match section.word("kind", &kinds)? {
        Kind::Local => Storage::Local { exclusive_writes: section.flag("exclusive-writes")? },
        Kind::Shared => Storage::Shared(Box::new(SharedFiles::read(&mut section)?)),
        Kind::Parallel => Storage::Parallel(Box::new(ParallelFiles::read(&mut section, nodes)?)),
        Kind::Striped => Storage::Striped {
            io: io_nodes(section.section("io")?, nodes, true)?,
            strip: section.size("strip", STRIPS)?,
            read: service(section.section("read")?)?,
            write: service(section.section("write")?)?,
            open: section.duration("open", "1000 s")?,
            close: section.duration("close", "1000 s")?,
            create: section.duration_or(Duration::ZERO, "create", "1000 s")?,
            resize: section.duration_or(Duration::ZERO, "resize", "1000 s")?,
            begin: section.duration_or(Duration::ZERO, "begin", "1000 s")?,
            connect: section.duration_or(Duration::ZERO, "connect", "1000 s")?,
            summing: section.if_said("summing", Section::bandwidth)?,
            pieces: section.section_if_said("pieces", pieces)?,
            takes_views: section.has("takes-views") && section.flag("takes-views")?,
            memory: if section.has("memory") { section.size("memory", 0..=1 << 50)? } else { 0 },
            arm: section.section_if_said("arm", Arm::read)?,
            separate_closes: section.has("separate-closes") && section.flag("separate-closes")?,
        },
        Kind::IoNodes => Storage::IoNodes {
            io: io_nodes(section.section("io")?, nodes, false)?,
            strip: section.size("strip", STRIPS)?,
            request: section.size("request", 0..=1 << 20)?,
            cache: section.section_if_said("cache", Buffers::read_cache)?,
            open: section.duration("open", "1000 s")?,
            close: section.duration("close", "1000 s")?,
        },
    };
    if let Storage::Striped { io, memory, arm, .. } = &storage
        && io.shares_cores
    {
        for (key, is_there) in [("memory", *memory > 0), ("arm", arm.is_some())] {
            if is_there {
                let expected = "no such key where storage.io.shares-cores is true".to_owned();
                return Err(section.conflict(key, expected));
            }
        }
    }
    section.finish()?;
    Ok(storage)
}

pub(crate) fn io_nodes(
    mut section: Section<'_>,
    nodes: u32,
    may_share: bool,
) -> Result<IoNodes, MachineError> {
    let placements = IoNodePlacement::ALL.map(|placement| (placement.name(), placement));
    let wake = section.duration_or(Duration::ZERO, "wake", "1 s")?;
    let io = IoNodes {
        count: section.number("count", 1..=MOST_NODES)?,
        placement: section.word("placement", &placements)?,
        dedicated: section.flag("dedicated")?,
        shares_cores: section.has("shares-cores") && section.flag("shares-cores")?,
        wake,
        deep_wake: section.duration_or(wake, "deep-wake", "1 s")?,
        change: section.duration_or(Duration::ZERO, "change", "1 s")?,
        channel: section.if_said("channel", Section::bandwidth)?,
    };
    if io.shares_cores && (io.dedicated || !may_share) {
        let expected = "false, unless storage is striped, on nodes that are not dedicated".to_owned();
        return Err(section.conflict("shares-cores", expected));
    }
    for (key, time) in [("wake", io.wake), ("deep-wake", io.deep_wake), ("change", io.change)] {
        if time > Duration::ZERO && !io.shares_cores {
            return Err(section.conflict(key, "nothing, unless shares-cores is true".to_owned()));
        }
    }
    if io.channel.is_some() && !io.shares_cores {
        return Err(section.conflict("channel", "nothing, unless shares-cores is true".to_owned()));
    }
    if !io.dedicated && !io.shares_cores && io.count > nodes {
        let expected = format!("at most nodes.count = {nodes}, as they are not dedicated");
        return Err(section.conflict("count", expected));
    }
    section.finish()?;
    Ok(io)
}

pub(crate) fn service(mut section: Section<'_>) -> Result<Service, MachineError> {
    let service = Service {
        request: section.duration("request", "1000 s")?,
        bandwidth: section.bandwidth("bandwidth")?,
    };
    section.finish()?;
    Ok(service)
}

fn pieces(mut section: Section<'_>) -> Result<Pieces, MachineError> {
    let pieces = Pieces {
        read: section.duration("read", MOST_OF_A_PIECE)?,
        write: section.duration("write", MOST_OF_A_PIECE)?,
        server: copy(section.section("server")?)?,
    };
    section.finish()?;
    Ok(pieces)
}

fn askew(section: &mut Section<'_>) -> Result<Option<Askew>, MachineError> {
    let reach =
        if section.has("askew-reach") { section.size("askew-reach", 2..=ASKEW_REACH)? } else { ASKEW_REACH };
    let bandwidth = section.if_said("askew", Section::bandwidth)?;
    Ok(bandwidth.map(|bandwidth| Askew { bandwidth, reach }))
}

pub(crate) fn call_cost(mut section: Section<'_>) -> Result<CallCost, MachineError> {
    let (call, bandwidth) = (section.duration("call", "1000 s")?, section.bandwidth("bandwidth")?);
    let mut sizes: Vec<(u64, Duration)> = Vec::new();
    if section.has("sizes") {
        for mut one in section.sections("sizes")? {
            let least = sizes.last().map_or(1, |(last, _)| last + 1);
            sizes.push((one.size("bytes", least..=1 << 40)?, one.duration("time", "1000 s")?));
            one.finish()?;
        }
    }
    section.finish()?;
    Ok(CallCost { call, bandwidth, sizes })
}

fn calls(mut section: Section<'_>) -> Result<Calls, MachineError> {
    let time = |section: &mut Section<'_>, key| section.duration(key, "1000 s");
    let calls = Calls {
        open: section.duration("open", "1000 s")?,
        create: section.duration_or(Duration::ZERO, "create", "1000 s")?,
        close: section.duration("close", "1000 s")?,
        seek: section.duration("seek", "1000 s")?,
        resize: section.duration_or(Duration::ZERO, "resize", "1000 s")?,
        stat: section.if_said("stat", time)?,
        unlink: section.if_said("unlink", time)?,
        dropped_pages: section.if_said("dropped-pages", Section::bandwidth)?,
        rewrites: section.section_if_said("rewrites", Rewrites::read)?,
        sync: section.section_if_said("sync", call_cost)?,
        read: call_cost(section.section("read")?)?,
        write: call_cost(section.section("write")?)?,
        new_pages: section.section_if_said("new-pages", call_cost)?,
        new_folio: section.duration_or(Duration::ZERO, "new-folio", "1000 s")?,
        askew: askew(&mut section)?,
        processor_cache: section.section_if_said("processor-cache", ProcessorCache::read)?,
        after_work: section.section_if_said("after-work", CallCosts::read)?,
        direct: section.section_if_said("direct", CallCosts::read)?,
        write_back: section.section_if_said("write-back", WriteBack::read)?,
        cold_reads: section.section_if_said("cold-reads", ColdReads::read)?,
        collective_waits: section.has("collective-waits") && section.flag("collective-waits")?,
        by_levels: section.has("by-levels") && section.flag("by-levels")?,
    };
    section.finish()?;
    Ok(calls)
}

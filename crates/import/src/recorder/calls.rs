//! From calls to events: what a path or a handle stands for, and where its file pointer is.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use super::Broken;
use super::folder::Folder;
use super::meaning::{Meaning, Object, Place, What};
use super::metadata::Metadata;
use super::signatures::{Signature, Signatures, Usable};
use crate::builder::Builder;
use crate::collective::is_collective;
use crate::error::ImportError;
use crate::sort::Access;
use pio_trace::Flags;
use pio_trace::{Call, Layer, Op};
use pio_trace::{FileId, HandleId, ProcessId};

/// What becomes of a folder.
pub(super) struct Reading {
    pub(super) builder: Builder,
    /// Names of handles of MPI-IO.
    shared: HashMap<String, u32>,
    tick_ns: f64,
    has_depth: bool,
    /// How many processes have made a call whose offset is another one for each of them, by its signature; none if
    /// processes have signatures of their own.
    makers: Option<HashMap<u32, u32>>,
    /// Calls that a trace has no place for.
    passed_over: u64,
    sizes_lost: u64,
    offsets_lost: u64,
}

impl Reading {
    pub(super) fn new(folder: &Folder, metadata: &Metadata) -> Reading {
        let (major, minor) = metadata.version;
        let mut builder = Builder::new(folder.path(), &format!("Recorder {major}.{minor}"));
        builder.tables.epoch_ns = metadata.epoch_ns;
        if metadata.missing_ranks > 0 {
            let value = format!("{}: their files are missing", metadata.missing_ranks);
            builder.note("lost processes", value);
        }
        Reading {
            builder,
            shared: HashMap::new(),
            tick_ns: metadata.tick_ns,
            has_depth: metadata.has_depth,
            makers: metadata.merged.then(HashMap::new),
            passed_over: 0,
            sizes_lost: 0,
            offsets_lost: 0,
        }
    }

    /// What can be used of a part; takes note of what cannot.
    pub(super) fn usable<T>(&mut self, (part, broken): Usable<T>) -> T {
        if let Some(broken) = broken {
            self.broken(broken);
        }
        part
    }

    pub(super) fn broken(&mut self, Broken { file, offset, expected }: Broken) {
        self.builder.note("lost by damage", format!("{file}: damaged at byte {offset}: expected {expected}"));
    }

    /// Takes a read or write of a library, with what it is known to have moved.
    fn gathered(&mut self, Gathering { access, .. }: Gathering) -> Result<(), ImportError> {
        self.sizes_lost += u64::from(access.size == 0);
        self.builder.push(access)
    }

    /// The number of a handle of MPI-IO.
    pub(super) fn shared(&mut self, name: &str) -> u32 {
        let count = self.shared.len() as u32;
        *self.shared.entry(name.to_owned()).or_insert(count)
    }

    pub(super) fn process<'a>(&'a mut self, rank: u32, signatures: &'a Signatures) -> Process<'a> {
        let id = self.builder.add_process(0, signatures.any_mpi.then_some(rank), "", 0);
        Process {
            reading: self,
            signatures,
            rank,
            id,
            open: HashMap::new(),
            shared: HashMap::new(),
            opened_by_hdf5: HashMap::new(),
            threads: HashMap::new(),
            operations: 0,
            numbers: HashMap::new(),
            end_ns: 0,
        }
    }

    pub(super) fn finish(mut self, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        let mut ranks: BTreeMap<u64, u32> = BTreeMap::new();
        for handle in &self.builder.tables.handles {
            *ranks.entry(handle.collective).or_default() += 1;
        }
        for handle in self.builder.tables.handles.iter_mut().filter(|handle| handle.collective != 0) {
            handle.ranks = ranks.get(&handle.collective).copied().unwrap_or(1);
        }
        let told = [
            ("passed over", self.passed_over, "calls of other functions (NetCDF, H5Sclose, ftell, …)"),
            ("lost sizes", self.sizes_lost, "calls: Recorder does not tell how large their data are"),
            (
                "lost offsets",
                self.offsets_lost,
                "calls: Recorder does not tell where the file pointer or view was",
            ),
        ];
        self.builder.note_counts(told);
        self.builder.write(out, name)
    }
}

/// A process, while its calls are read.
pub(super) struct Process<'a> {
    pub(super) reading: &'a mut Reading,
    signatures: &'a Signatures,
    rank: u32,
    id: ProcessId,
    open: HashMap<FileId, Open>,
    shared: HashMap<u32, Open>,
    opened_by_hdf5: HashMap<FileId, HandleId>,
    threads: HashMap<u64, Thread>,
    /// Calls so far that are an operation of their own.
    operations: u32,
    /// Which of those that make a call this process is, by its signature.
    numbers: HashMap<u32, u32>,
    end_ns: u64,
}

/// An open file.
#[derive(Clone, Copy)]
struct Open {
    handle: HandleId,
    /// Where the file pointer stands, if that is known; of a view, bytes of its data.
    position: Option<u64>,
    appends: bool,
    /// Where a view without gaps begins, and bytes of its elements; none if it has gaps.
    view: Option<(u64, u64)>,
}

#[derive(Default)]
struct Thread {
    number: u32,
    /// For each depth, the call there.
    above: Vec<Above>,
    /// Where depths are not stored: when its last call of a library ends, and its last of MPI-IO, in units, and which
    /// operations they are.
    until: [(i64, u32); 2],
    /// A read or write of a library that may not have ended.
    gathering: Option<Gathering>,
}

/// What a call lies in.
#[derive(Clone, Copy, Default)]
struct Above {
    /// Whether the call there or one above it is in the trace.
    is_known: bool,
    /// The operation that it is, or belongs to.
    operation: u32,
    /// Whether the innermost of those that are in the trace is a read or write of a library.
    gathers: bool,
}

/// A read or write of a library: what it moved shows in the calls that it caused.
struct Gathering {
    depth: u8,
    access: Access,
}

/// Of layers that have a layer below, the upper first: libraries, MPI-IO, and the end of the list for all others.
fn level(layer: Layer) -> usize {
    match layer {
        Layer::Hdf5 | Layer::Pnetcdf => 0,
        Layer::MpiIo => 1,
        Layer::Posix | Layer::Stdio | Layer::Server | Layer::Message | Layer::Mark => 2,
    }
}

/// Which bytes.
#[derive(Default)]
struct Bytes {
    handle: Option<HandleId>,
    offset: Option<u64>,
    size: u64,
    flags: Flags,
}

impl Process<'_> {
    /// Takes the call of a signature. Its times are in units since the process began.
    pub(super) fn call(&mut self, number: u32, start: i64, end: i64) -> Result<(), ImportError> {
        let Some(signature) = self.signatures.get(number) else {
            let rank = self.rank;
            self.reading.builder.skip(|| format!("rank {rank}: signature {number}"));
            return Ok(());
        };
        self.end_gathering(signature)?;
        let (thread, above, operation) = self.place(signature, start, end);
        let Some(meaning) = &signature.meaning else {
            self.reading.passed_over += 1;
            return Ok(());
        };
        let bytes = self.bytes(meaning, signature);
        let moves = matches!(meaning.call.op(), Op::Read | Op::Write);
        let start_ns = self.nanoseconds(start);
        let end_ns = self.nanoseconds(end);
        self.end_ns = self.end_ns.max(end_ns);
        let mut flags = bytes.flags;
        for (holds, flag) in [
            (above.is_known, Flags::PHYSICAL),
            (is_collective(meaning.call), Flags::COLLECTIVE),
            (meaning.call.is_asynchronous(), Flags::ASYNC),
        ] {
            flags = if holds { flags | flag } else { flags };
        }
        let access = Access {
            call: meaning.call,
            flags,
            process: self.id,
            thread,
            handle: bytes.handle,
            offset: bytes.offset,
            size: bytes.size,
            result: if moves { i64::try_from(bytes.size).unwrap_or(i64::MAX) } else { 0 },
            start_ns,
            elapsed_ns: end_ns.saturating_sub(start_ns),
            name: None,
            other: None,
            operation,
        };
        if above.gathers {
            self.gather(signature.thread, &access);
        }
        let Some(thread) = self.threads.get_mut(&signature.thread) else { return Ok(()) };
        if thread.above.last().is_some_and(|own| own.gathers) && !above.is_known {
            thread.gathering = Some(Gathering { depth: signature.depth, access });
            return Ok(());
        }
        self.reading.builder.push(access)
    }

    /// Ends the read or write of a library that the next call of its thread does not lie in.
    fn end_gathering(&mut self, next: &Signature) -> Result<(), ImportError> {
        let Some(thread) = self.threads.get_mut(&next.thread) else { return Ok(()) };
        match thread.gathering.take_if(|gathering| next.depth <= gathering.depth) {
            Some(gathering) => self.reading.gathered(gathering),
            None => Ok(()),
        }
    }

    /// Adds what a call moved to the read or write of a library that caused it.
    fn gather(&mut self, thread: u64, caused: &Access) {
        let gathering = self.threads.get_mut(&thread).and_then(|thread| thread.gathering.as_mut());
        let Some(Gathering { access, .. }) = gathering.filter(|it| it.access.call.op() == caused.call.op())
        else {
            return;
        };
        access.size = access.size.saturating_add(caused.size);
        access.result = access.result.saturating_add(caused.result);
        if access.handle.is_none() {
            let file =
                caused.handle.and_then(|handle| self.reading.builder.tables.handles.get(handle.index()));
            access.handle = file.and_then(|entry| self.opened_by_hdf5.get(&entry.file)).copied();
        }
    }

    pub(super) fn end(self) -> Result<(), ImportError> {
        if let Some(process) = self.reading.builder.process(self.id) {
            process.end_ns = Some(self.end_ns);
        }
        let mut threads: Vec<_> = self.threads.into_values().collect();
        threads.sort_unstable_by_key(|thread| thread.number);
        let mut gatherings = threads.into_iter().filter_map(|thread| thread.gathering);
        gatherings.try_for_each(|gathering| self.reading.gathered(gathering))
    }

    fn nanoseconds(&self, units: i64) -> u64 {
        (units.max(0) as f64 * self.reading.tick_ns).round() as u64
    }

    /// The number of the thread, what the call lies in, and the operation that it is or belongs to.
    fn place(&mut self, signature: &Signature, start: i64, end: i64) -> (u32, Above, u32) {
        let next = self.threads.len() as u32;
        let new = || Thread { number: next, ..Thread::default() };
        let thread = self.threads.entry(signature.thread).or_insert_with(new);
        let known = signature.meaning.as_ref();
        let level = known.map_or(0, |meaning| level(meaning.call.layer()));
        let above = if self.reading.has_depth {
            let innermost = thread.above.last().copied().unwrap_or_default();
            thread.above.resize(usize::from(signature.depth), innermost);
            thread.above.last().copied().unwrap_or_default()
        } else {
            let lies_in = thread.until[..level].iter().rev().find(|(until, _)| start < *until);
            lies_in.map_or_else(Above::default, |&(_, operation)| Above {
                is_known: true,
                operation,
                gathers: false,
            })
        };
        let mut own = above;
        if let Some(meaning) = known {
            own.is_known = true;
            // What one call of a library does for another is part of that.
            let is_part = level == 0 && above.is_known;
            let moves_below = matches!(meaning.what, What::MoveBelow { size: None });
            own.gathers = if is_part { above.gathers } else { self.reading.has_depth && moves_below };
            if let Some(until) = thread.until.get_mut(level).filter(|_| !is_part) {
                self.operations = self.operations.wrapping_add(1);
                own.operation = self.operations;
                *until = (*until).max((end, own.operation));
            }
        }
        if self.reading.has_depth {
            thread.above.push(own);
        }
        (thread.number, above, own.operation)
    }

    fn bytes(&mut self, meaning: &Meaning, signature: &Signature) -> Bytes {
        match meaning.what {
            What::Open(flags) => self.open(meaning.object, flags),
            What::OpenShared { file, together } => self.open_shared(meaning.object, file, together),
            What::OpenLibrary => {
                let Object::File(file) = meaning.object else { return Bytes::default() };
                let handle = self.reading.builder.add_handle(file, self.id);
                self.opened_by_hdf5.insert(file, handle);
                Bytes { handle: Some(handle), ..Bytes::default() }
            }
            What::Close => {
                let closed = match meaning.object {
                    Object::File(file) => self.open.remove(&file),
                    Object::Shared(name) => self.shared.remove(&name),
                    Object::None => None,
                };
                Bytes { handle: closed.map(|open| open.handle), ..Bytes::default() }
            }
            What::Move { place, size } => self.moved(meaning.call, meaning.object, place, size, signature),
            What::MoveBelow { size } => {
                let handle = self.opened(meaning.object).map(|open| open.handle);
                // Where depths are not stored, nobody adds up what the calls below it move.
                self.reading.sizes_lost += u64::from(size.is_none() && !self.reading.has_depth);
                Bytes { handle, size: size.unwrap_or(0), ..Bytes::default() }
            }
            What::Seek(place) => {
                let by_rank = self.resolved(place, signature);
                let Some(open) = self.opened(meaning.object) else { return Bytes::default() };
                let unit = open.view.map_or(1, |(_, unit)| unit);
                open.position = target(open, by_rank, unit);
                Bytes { handle: Some(open.handle), offset: in_file(open, open.position), ..Bytes::default() }
            }
            What::View { displacement, unit } => {
                let Some(open) = self.opened(meaning.object) else { return Bytes::default() };
                open.view = unit.map(|unit| (displacement, unit));
                open.position = Some(0);
                Bytes { handle: Some(open.handle), ..Bytes::default() }
            }
            What::Other { size } => {
                let handle = self.opened(meaning.object).map(|open| open.handle);
                Bytes { handle, size, ..Bytes::default() }
            }
        }
    }

    fn open(&mut self, object: Object, flags: Flags) -> Bytes {
        let Object::File(file) = object else { return Bytes::default() };
        let handle = self.reading.builder.add_handle(file, self.id);
        let appends = flags.contains(Flags::APPEND);
        self.open.insert(file, Open { handle, position: Some(0), appends, view: Some((0, 1)) });
        Bytes { handle: Some(handle), flags, ..Bytes::default() }
    }

    fn open_shared(&mut self, object: Object, file: FileId, together: bool) -> Bytes {
        let Object::Shared(name) = object else { return Bytes::default() };
        let handle = self.reading.builder.add_handle(file, self.id);
        if together && let Some(entry) = self.reading.builder.tables.handles.get_mut(handle.index()) {
            entry.collective = u64::from(name) + 1;
        }
        self.shared.insert(name, Open { handle, position: Some(0), appends: false, view: Some((0, 1)) });
        Bytes { handle: Some(handle), ..Bytes::default() }
    }

    /// What stands for an object: of a file that was opened before Recorder came, nothing but the file is known.
    fn opened(&mut self, object: Object) -> Option<&mut Open> {
        match object {
            Object::None => None,
            Object::Shared(name) => self.shared.get_mut(&name),
            Object::File(file) => {
                let (builder, process) = (&mut self.reading.builder, self.id);
                Some(self.open.entry(file).or_insert_with(|| Open {
                    handle: builder.add_handle(file, process),
                    position: None,
                    appends: false,
                    view: Some((0, 1)),
                }))
            }
        }
    }

    /// Data moved. Without an offset of its own, the call uses and moves the file pointer.
    fn moved(
        &mut self,
        call: Call,
        object: Object,
        place: Place,
        size: Option<u64>,
        signature: &Signature,
    ) -> Bytes {
        let place = self.resolved(place, signature);
        let Some(open) = self.opened(object) else {
            self.reading.offsets_lost += 1;
            return Bytes { size: size.unwrap_or(0), ..Bytes::default() };
        };
        let appends = open.appends && call.op() == Op::Write;
        let unit = open.view.map_or(1, |(_, unit)| unit);
        let position = target(open, place, unit).filter(|_| !appends);
        if matches!(place, Place::FromPosition(_)) {
            open.position = position.zip(size).and_then(|(position, size)| position.checked_add(size));
        }
        let (handle, offset) = (open.handle, in_file(open, position));
        self.reading.sizes_lost += u64::from(size.is_none());
        self.reading.offsets_lost += u64::from(offset.is_none() && !appends);
        let flags = if appends { Flags::APPEND } else { Flags::NONE };
        Bytes { handle: Some(handle), offset, size: size.unwrap_or(0), flags }
    }

    /// A place that is another one for every rank, for this rank. The ranks that such a pattern is of are those that make
    /// the call; they come in their order.
    fn resolved(&mut self, place: Place, signature: &Signature) -> Place {
        let Place::ByRank { step, first } = place else { return place };
        let number = match &mut self.reading.makers {
            None => self.rank,
            Some(makers) => *self.numbers.entry(signature.number).or_insert_with(|| {
                let maker = makers.entry(signature.number).or_default();
                *maker += 1;
                *maker - 1
            }),
        };
        let offset = step.checked_mul(i64::from(number)).and_then(|offset| offset.checked_add(first));
        offset.and_then(|offset| u64::try_from(offset).ok()).map_or(Place::Unknown, Place::At)
    }
}

/// The byte (of a view's data) that a place means, if that is known.
fn target(open: &Open, place: Place, unit: u64) -> Option<u64> {
    match place {
        Place::At(offset) => offset.checked_mul(unit),
        Place::FromPosition(distance) => {
            let bytes = distance.checked_mul(i64::try_from(unit).ok()?)?;
            open.position?.checked_add_signed(bytes)
        }
        Place::ByRank { .. } | Place::Unknown => None,
    }
}

/// Where in the file a byte of a view without gaps is.
fn in_file(open: &Open, position: Option<u64>) -> Option<u64> {
    let (displacement, _) = open.view?;
    position?.checked_add(displacement)
}

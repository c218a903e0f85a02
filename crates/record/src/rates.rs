//! What large requests would reach where a job made small ones: measured, once the job is over.
//!
//! Findings say what small requests cost: their time, less that of the same bytes in large ones. A job that makes no
//! large requests tells nothing about these, so they are tried here, in the folder that the small ones went to: with a
//! file that has no name and is gone when it is closed. It takes a part of a second for a file system, is kept for a
//! day ([`Cache`]), and is left out where nothing can be written.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{Advice, fadvise};

use pio_trace::{
    Call, Event, FileId, Flags, HandleId, LargeRequests, Layer, MeasuredRate, Op, PageFaults, ProcessId,
    Tables, Target,
};

use crate::members::host;
use crate::mounts;
use crate::paths::text_of;

/// From which size on a request is large, bytes: as in the findings.
const LARGE: u64 = 1 << 20;
/// So many of the job's own large requests make a rate.
const ENOUGH: u64 = 4;
/// Small requests that took less in all cannot cost anything worth telling, nanoseconds.
const LEAST_NS: u64 = 1_000_000;
/// A small request that took longer waited for a device or server, nanoseconds.
const WAITED_NS: u64 = 20_000;
/// Requests of each kind that are tried.
const REQUESTS: u64 = 32;
/// … and of those that need the device: they take longest, and disturb others.
const DEVICE_REQUESTS: u64 = 8;
/// … and of single pages.
const PAGE_REQUESTS: u64 = 64;
/// A page of memory, bytes: the smallest of those in use.
const PAGE: u64 = 4096;
/// What is tried on all file systems ends after this long.
const LONGEST: Duration = Duration::from_secs(1);
/// How long a measurement is good for.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// Nothing is tried on a file system that has less room, bytes.
const LEAST_ROOM: u64 = 1 << 30;

/// What a job's requests on one file took.
#[derive(Clone, Copy, Debug, Default)]
struct Small {
    small_ns: [u64; 2],
    large: [u64; 2],
    waited_ns: u64,
    /// What page faults that waited took at least.
    faults_ns: u64,
    /// What writes took that begin or end within a page, and waited: the system may have fetched the page first.
    parts_ns: u64,
    /// What collective calls took: the MPI library may have copied their data.
    collective_ns: u64,
}

impl Small {
    fn time_ns(&self) -> u64 {
        let small_ns = self.small_ns[0].saturating_add(self.small_ns[1]);
        small_ns.saturating_add(self.faults_ns).saturating_add(self.collective_ns)
    }
}

/// What a job's requests took, by file.
#[derive(Debug, Default)]
pub(crate) struct SmallRequests {
    files: Vec<Small>,
    /// Of each process, the file of its longest mapping.
    mapped: BTreeMap<ProcessId, (u64, FileId)>,
    /// Handles whose writes wait for other reasons than alignment.
    apart: HashSet<HandleId>,
}

impl SmallRequests {
    /// Takes note of a read or write that the program made.
    pub(crate) fn add(&mut self, event: &Event, tables: &Tables) {
        let direction = match event.op() {
            Op::Read => 0,
            Op::Write => 1,
            Op::Open => return self.add_open(event),
            _ => return self.add_mapping(event, tables),
        };
        let at_files = matches!(event.layer(), Layer::Posix | Layer::Stdio | Layer::MpiIo);
        let handle = event.handle.and_then(|handle| tables.handles.get(handle.index()));
        let Some(handle) = handle.filter(|_| at_files && event.result > 0) else { return };
        let is_part = is_unaligned(event) && event.handle.is_some_and(|handle| !self.apart.contains(&handle));
        let sums = self.of_file(handle.file);
        let collective = event.flags.contains(Flags::COLLECTIVE);
        if collective {
            sums.collective_ns = sums.collective_ns.saturating_add(event.elapsed_ns);
        }
        if event.transferred() < LARGE {
            sums.small_ns[direction] = sums.small_ns[direction].saturating_add(event.elapsed_ns);
            if direction == 0 && event.elapsed_ns > WAITED_NS {
                sums.waited_ns = sums.waited_ns.saturating_add(event.elapsed_ns);
            }
            if direction == 1 && event.elapsed_ns > WAITED_NS && is_part {
                sums.parts_ns = sums.parts_ns.saturating_add(event.elapsed_ns);
            }
        } else if !collective && !event.flags.contains(Flags::ASYNC) {
            sums.large[direction] += 1;
        }
    }

    fn add_open(&mut self, event: &Event) {
        let apart = [Flags::SYNC, Flags::DIRECT, Flags::APPEND];
        if let Some(handle) = event.handle.filter(|_| apart.iter().any(|flag| event.flags.contains(*flag))) {
            self.apart.insert(handle);
        }
    }

    fn of_file(&mut self, file: FileId) -> &mut Small {
        if self.files.len() <= file.index() {
            self.files.resize(file.index() + 1, Small::default());
        }
        &mut self.files[file.index()]
    }

    fn add_mapping(&mut self, event: &Event, tables: &Tables) {
        let handle = event.handle.and_then(|handle| tables.handles.get(handle.index()));
        if let Some(handle) = handle.filter(|_| event.call == Call::Mmap && event.result >= 0) {
            let longest = self.mapped.entry(event.process).or_insert((0, handle.file));
            *longest = (*longest).max((event.size, handle.file));
        }
    }

    /// Takes note of the page faults of processes that mapped files.
    pub(crate) fn add_faults(&mut self, faults: &[PageFaults]) {
        for faults in faults {
            if let Some(&(_, file)) = self.mapped.get(&faults.process) {
                let faults_ns = faults.major.saturating_mul(WAITED_NS);
                let sums = self.of_file(file);
                sums.faults_ns = sums.faults_ns.saturating_add(faults_ns);
            }
        }
    }

    /// Measures what large requests reach on the file systems where the trace cannot tell, those of most time first.
    pub(crate) fn measure(&self, tables: &Tables, cache: &Cache) -> Vec<LargeRequests> {
        let deadline = Instant::now() + LONGEST;
        let mut places: Vec<_> = self.places(tables).into_iter().collect();
        places.sort_by_key(|(mount, place)| (std::cmp::Reverse(place.sums.time_ns()), mount.clone()));
        let silent = places.iter().filter(|(_, place)| place.needs_rates());
        let measured = silent.filter_map(|(mount, place)| {
            let rates = cache.get(mount, place).or_else(|| {
                let rates = measure(place, deadline)?;
                cache.put(mount, &rates);
                Some(rates)
            })?;
            Some((mount, place, rates))
        });
        let notes = measured.flat_map(|(mount, place, rates)| {
            let of = |folder: &String| LargeRequests { folder: folder.clone(), ..rates.clone() };
            std::iter::once(&mount.folder).chain(&place.aliases).map(of).collect::<Vec<_>>()
        });
        notes.collect()
    }

    /// The file systems of this host that the job's files lie on, and what it did there.
    fn places(&self, tables: &Tables) -> BTreeMap<Mount, Place> {
        let host = host();
        let mounts = mounts::mounts();
        let here: BTreeSet<FileId> = tables
            .handles
            .iter()
            .filter(|handle| tables.processes.get(handle.process.index()).is_some_and(|one| one.host == host))
            .map(|handle| handle.file)
            .collect();
        let mut known: BTreeMap<PathBuf, Option<(PathBuf, Mount)>> = BTreeMap::new();
        let mut places: BTreeMap<Mount, Place> = BTreeMap::new();
        for (index, sums) in
            self.files.iter().enumerate().filter(|(index, _)| here.contains(&FileId(*index as u32)))
        {
            let Some(folder) = tables.files.get(index).and_then(|file| Path::new(&file.path).parent()) else {
                continue;
            };
            let found = known.entry(folder.to_owned()).or_insert_with(|| {
                let real = folder.canonicalize().ok()?;
                let mount = Mount::of(&real, &mounts)?;
                Some((real, mount))
            });
            let Some((real, mount)) = found else { continue };
            let place = places.entry(mount.clone()).or_default();
            place.add(sums, real);
            // The trace has the path as the program gave it: the mount's folder need not be its beginning.
            if !folder.starts_with(&mount.folder)
                && let Some(folder) = folder.to_str()
            {
                place.aliases.insert(folder.to_owned());
            }
        }
        places
    }
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mount {
    folder: String,
    device: u64,
}

impl Mount {
    /// Where the file system of a folder is mounted.
    fn of(folder: &Path, mounts: &[mounts::Mount]) -> Option<Mount> {
        let device = fs::metadata(folder).ok()?.dev();
        let above = mounts.iter().map(|mount| &mount.point).filter(|point| folder.starts_with(point));
        let point = above.max_by_key(|point| point.as_os_str().len())?;
        Some(Mount { folder: text_of(point), device })
    }
}

/// What a job did on one file system, and where it may be tried.
#[derive(Clone, Debug, Default)]
struct Place {
    sums: Small,
    /// The folder of the file that took most, and what that was.
    folder: PathBuf,
    most_ns: u64,
    aliases: BTreeSet<String>,
}

impl Place {
    fn add(&mut self, sums: &Small, folder: &Path) {
        for direction in 0..2 {
            self.sums.small_ns[direction] =
                self.sums.small_ns[direction].saturating_add(sums.small_ns[direction]);
            self.sums.large[direction] = self.sums.large[direction].saturating_add(sums.large[direction]);
        }
        self.sums.waited_ns = self.sums.waited_ns.saturating_add(sums.waited_ns);
        self.sums.faults_ns = self.sums.faults_ns.saturating_add(sums.faults_ns);
        self.sums.parts_ns = self.sums.parts_ns.saturating_add(sums.parts_ns);
        self.sums.collective_ns = self.sums.collective_ns.saturating_add(sums.collective_ns);
        let time_ns = sums.time_ns();
        if time_ns >= self.most_ns {
            (self.most_ns, self.folder) = (time_ns, folder.to_owned());
        }
    }

    fn needs_rates(&self) -> bool {
        let silent =
            |direction| self.sums.small_ns[direction] >= LEAST_NS && self.sums.large[direction] < ENOUGH;
        (0..2).any(silent) || self.needs_pages() || self.needs_parts() || self.needs_copy()
    }

    fn needs_device(&self) -> bool {
        self.sums.waited_ns >= LEAST_NS || self.needs_pages()
    }

    fn needs_parts(&self) -> bool {
        self.sums.parts_ns >= LEAST_NS
    }

    /// Whether it matters what copying memory takes.
    fn needs_copy(&self) -> bool {
        self.sums.collective_ns >= LEAST_NS && self.sums.large[0] < ENOUGH
    }

    fn needs_pages(&self) -> bool {
        self.sums.faults_ns >= LEAST_NS
    }
}

/// Writes and reads a file without a name in a folder; none if it cannot be written.
fn measure(place: &Place, deadline: Instant) -> Option<LargeRequests> {
    if Instant::now() >= deadline || room(&place.folder)? < LEAST_ROOM {
        return None;
    }
    let file = nameless(&place.folder).ok()?;
    let mut buffer = vec![b'x'; LARGE as usize];
    let write = || {
        file.set_len(0).ok()?;
        rate_of(LARGE, REQUESTS, deadline, |index| file.write_all_at(&buffer, index * LARGE))
    };
    // The first time, the system may have to find memory for the file, and a virtual machine for the system.
    let (first, second) = (write(), write());
    let write = match (first, second) {
        (Some(first), Some(second)) if first.bytes_per_s > second.bytes_per_s => Some(first),
        (first, second) => second.or(first),
    };
    let written = file.metadata().ok()?.len().min(REQUESTS * LARGE) / LARGE;
    let cached_read =
        rate_of(LARGE, written, deadline, |index| file.read_exact_at(&mut buffer, index * LARGE));
    let mut rates = LargeRequests { write, cached_read, ..LargeRequests::default() };
    let kept = written.min(DEVICE_REQUESTS);
    if (place.needs_device() || place.needs_parts()) && Instant::now() < deadline {
        let _ = file.set_len(kept * LARGE);
    }
    if place.needs_device() && kept > 0 && Instant::now() < deadline {
        if forget(&file).is_ok() {
            rates.device_read =
                rate_of(LARGE, kept, deadline, |index| file.read_exact_at(&mut buffer, index * LARGE));
        }
        if place.needs_pages() && forget(&file).is_ok() && fadvise(&file, 0, None, Advice::Random).is_ok() {
            rates.page_read = rate_of(PAGE, PAGE_REQUESTS, deadline, |index| {
                file.read_exact_at(&mut buffer[..PAGE as usize], page_at(index, kept))
            });
        }
    }
    if place.needs_parts() && kept > 0 && Instant::now() < deadline && forget(&file).is_ok() {
        let write_of = |bytes: u64, first: u64| {
            rate_of(bytes, PAGE_REQUESTS, deadline, |index| {
                file.write_all_at(&buffer[..bytes as usize], page_at(first + index, kept))
            })
        };
        rates.page_write = write_of(PAGE, 0);
        rates.part_write = write_of(LargeRequests::PART, PAGE_REQUESTS);
    }
    Some(rates)
}

/// Where the single page of an index is in a file of `kept` large requests: in steps of a prime number of pages, so that none
/// is next to the one before, and none comes twice.
fn page_at(index: u64, kept: u64) -> u64 {
    index * 1009 % (kept * LARGE / PAGE) * PAGE
}

/// Whether a write begins or ends within a page.
fn is_unaligned(event: &Event) -> bool {
    let Target::Extent { offset } = event.target else { return false };
    !offset.is_multiple_of(PAGE) || !offset.wrapping_add(event.transferred()).is_multiple_of(PAGE)
}

/// Brings a file to the device, and drops what the system has of it in memory.
fn forget(file: &File) -> io::Result<()> {
    file.sync_data()?;
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// The rate of as many requests of `bytes` as the time allows; none if they fail or are too few.
fn rate_of(
    bytes: u64,
    requests: u64,
    deadline: Instant,
    mut request: impl FnMut(u64) -> io::Result<()>,
) -> Option<MeasuredRate> {
    let mut rates = Vec::new();
    for index in 0..requests {
        let start = Instant::now();
        request(index).ok()?;
        rates.push(bytes as f64 / start.elapsed().as_secs_f64().max(1e-9));
        if Instant::now() >= deadline {
            break;
        }
    }
    rates.sort_by(f64::total_cmp);
    let at = |quarter: usize| rates[(rates.len() - 1) * quarter / 4];
    (rates.len() as u64 >= ENOUGH).then(|| MeasuredRate { bytes_per_s: at(2), low: at(1), high: at(3) })
}

/// Bytes that may still be written on the file system of a folder.
fn room(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// A new file that no folder names: nothing of it is left, however this process ends. Where the file system has no such
/// files, one whose name is removed at once.
fn nameless(folder: &Path) -> io::Result<File> {
    let nameless =
        File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    if nameless.is_ok() {
        return nameless;
    }
    let path = folder.join(format!(".pioscope-{}-{}", host(), std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// The folder of what was measured in the last day, a file for each file system of each host; none: nothing is kept.
pub(crate) struct Cache<'a>(pub(crate) Option<&'a Path>);

impl Cache<'_> {
    /// What was measured before; none if it is too old, or lacks a rate that is needed of the device.
    fn get(&self, mount: &Mount, place: &Place) -> Option<LargeRequests> {
        let text = fs::read_to_string(self.path(mount)?).ok()?;
        let (at_s, rates) = text.trim_end().split_once(' ')?;
        let age = now()?.checked_sub(Duration::from_secs(at_s.parse().ok()?))?;
        let rates: LargeRequests = rates.parse().ok()?;
        let whole = (rates.device_read.is_some() || !place.needs_device())
            && (rates.page_read.is_some() || !place.needs_pages())
            && (rates.part_write.is_some() || !place.needs_parts());
        (age < GOOD_FOR && whole && rates.folder == mount.folder).then_some(rates)
    }

    /// Keeps a measurement; that it cannot be kept means only that it is made again.
    fn put(&self, mount: &Mount, rates: &LargeRequests) {
        let (Some(folder), Some(path), Some(now)) = (self.0, self.path(mount), now()) else { return };
        let line = format!(
            "{} {}\n",
            now.as_secs(),
            LargeRequests { folder: mount.folder.clone(), ..rates.clone() }
        );
        let fresh = path.with_extension(std::process::id().to_string());
        let written = fs::create_dir_all(folder)
            .and_then(|()| File::create(&fresh))
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .and_then(|()| fs::rename(&fresh, &path));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }

    fn path(&self, mount: &Mount) -> Option<PathBuf> {
        Some(self.0?.join(format!("rates-{}-{:x}.txt", host(), mount.device)))
    }
}

fn now() -> Option<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(folder: &Path) -> Place {
        let sums = Small {
            small_ns: [LEAST_NS; 2],
            waited_ns: LEAST_NS,
            faults_ns: LEAST_NS,
            parts_ns: LEAST_NS,
            ..Small::default()
        };
        Place { sums, folder: folder.to_owned(), ..Place::default() }
    }

    #[test]
    fn nothing_is_left_in_the_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        if room(folder.path()).is_none_or(|room| room < LEAST_ROOM) {
            println!("skipped: the temporary folder has less than 1 GiB of room");
            return;
        }
        let rates = measure(&here(folder.path()), Instant::now() + 10 * LONGEST).expect("rates");
        let write = rates.write.expect("a rate of writes");
        assert!(0.0 < write.low && write.low <= write.bytes_per_s && write.bytes_per_s <= write.high);
        assert!(rates.cached_read.is_some());
        let [whole, part] = [rates.page_write, rates.part_write].map(|rate| rate.expect("a rate of pages"));
        assert!(whole.bytes_per_s > 0.0 && part.bytes_per_s > 0.0);
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    #[test]
    fn a_folder_that_is_gone_has_no_rates() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = here(&folder.path().join("gone"));
        assert_eq!(measure(&place, Instant::now() + LONGEST), None);
        assert_eq!(measure(&here(folder.path()), Instant::now()), None, "the time is up");
    }

    #[test]
    fn a_measurement_is_kept_for_a_day() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache(Some(folder.path()));
        let path = |mount: &Mount| cache.path(mount).expect("a path");
        let mount = Mount { folder: "/data".into(), device: 7 };
        let rate = Some(MeasuredRate { bytes_per_s: 2e9, low: 1e9, high: 3e9 });
        let rates = LargeRequests {
            folder: "/data".into(),
            write: rate,
            cached_read: rate,
            ..LargeRequests::default()
        };
        let cached = Place::default();
        let device = Place { sums: Small { waited_ns: LEAST_NS, ..Small::default() }, ..Place::default() };
        assert_eq!(cache.get(&mount, &cached), None);
        cache.put(&mount, &rates);
        assert_eq!(cache.get(&mount, &cached), Some(rates.clone()));
        assert_eq!(cache.get(&mount, &device), None, "the device was not measured");
        let parts = Place { sums: Small { parts_ns: LEAST_NS, ..Small::default() }, ..Place::default() };
        assert_eq!(cache.get(&mount, &parts), None, "parts of pages were not measured");
        assert_eq!(cache.get(&Mount { folder: "/other".into(), device: 7 }, &cached), None);
        let old = now().expect("a clock").as_secs() - GOOD_FOR.as_secs() - 1;
        fs::write(path(&mount), format!("{old} {rates}\n")).expect("the file is written");
        assert_eq!(cache.get(&mount, &cached), None);
        fs::write(path(&mount), "no rates").expect("the file is written");
        assert_eq!(cache.get(&mount, &cached), None);
    }
}

//! The other side of `c/pio_mpiio.h`: what the shim calls, and what it lets us call.
//!
//! No panic crosses it: one that we did not foresee becomes an internal error of the operation.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use pio_layout::Datatype;
use pio_plan::Direction;

use crate::core::file::access::Positioning;
use crate::core::file::access::Whence;
use crate::core::file::handle::{Displacement, File};
use crate::core::file::hints::Given;
use crate::core::file::settings::Settings;
use crate::core::mpi::backoff;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::progress_thread;
use crate::core::mpi::status::Status;
use crate::core::mpi::table::MpiTable;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::run::queue::Completion;
use crate::core::storage::backend;
use crate::core::storage::mode::Mode;
use crate::say::say;

/// `PIO_VERSION`.
const VERSION: u32 = 7;

const KEY_BYTES: usize = 32;
const VALUE_BYTES: usize = 256;
/// `PIO_DISPLACEMENT_CURRENT`.
const CURRENT: i64 = i64::MIN;

/// `struct pio_hint`.
#[repr(C)]
struct Hint {
    key: [c_char; KEY_BYTES],
    value: [c_char; VALUE_BYTES],
}

/// `struct pio_memory`.
#[repr(C)]
struct MemoryGiven {
    address: *mut c_void,
    count: u64,
    datatype: *const Datatype,
}

/// `struct pio_core`: what we do for the shim.
#[repr(C)]
struct CoreTable {
    open: unsafe extern "C" fn(
        *const c_void,
        *mut *const ChannelPool,
        *const c_char,
        c_int,
        *const Hint,
        u64,
        *mut *mut File,
        *mut *const c_void,
    ) -> c_int,
    close: unsafe extern "C" fn(*const File) -> c_int,
    free: unsafe extern "C" fn(*mut File),
    remove: unsafe extern "C" fn(*const c_char) -> c_int,
    forget: unsafe extern "C" fn(*const ChannelPool, c_int),
    type_create: unsafe extern "C" fn(*const u8, u64) -> *mut Datatype,
    type_free: unsafe extern "C" fn(*mut Datatype),
    type_size: unsafe extern "C" fn(*const Datatype) -> i64,
    type_extent: unsafe extern "C" fn(*const Datatype) -> i64,
    set_view:
        unsafe extern "C" fn(*const File, i64, *const Datatype, *const Datatype, *const Hint, u64) -> c_int,
    displacement: unsafe extern "C" fn(*const File, *mut i64) -> c_int,
    transfer: unsafe extern "C" fn(*const File, c_int, i64, *const MemoryGiven, c_int, *mut u64) -> c_int,
    start: unsafe extern "C" fn(*const File, c_int, i64, *const MemoryGiven, c_int, *mut c_void) -> c_int,
    progress: unsafe extern "C" fn(),
    relax: unsafe extern "C" fn(*mut u64),
    seek: unsafe extern "C" fn(*const File, i64, c_int) -> c_int,
    position: unsafe extern "C" fn(*const File, *mut i64) -> c_int,
    seek_shared: unsafe extern "C" fn(*const File, i64, c_int) -> c_int,
    position_shared: unsafe extern "C" fn(*const File, *mut i64) -> c_int,
    byte_offset: unsafe extern "C" fn(*const File, i64, *mut i64) -> c_int,
    sync: unsafe extern "C" fn(*const File) -> c_int,
    get_size: unsafe extern "C" fn(*const File, *mut i64) -> c_int,
    set_size: unsafe extern "C" fn(*const File, i64) -> c_int,
    preallocate: unsafe extern "C" fn(*const File, i64) -> c_int,
    set_hints: unsafe extern "C" fn(*const File, *const Hint, u64) -> c_int,
    get_hints: unsafe extern "C" fn(*const File, *mut Hint, c_int) -> c_int,
    set_atomic: unsafe extern "C" fn(*const File, c_int) -> c_int,
    get_atomic: unsafe extern "C" fn(*const File) -> c_int,
}

static CORE: CoreTable = CoreTable {
    open,
    close,
    free,
    remove,
    forget,
    type_create,
    type_free,
    type_size,
    type_extent,
    set_view,
    displacement,
    transfer,
    start,
    progress,
    relax,
    seek,
    position,
    seek_shared,
    position_shared,
    byte_offset,
    sync,
    get_size,
    set_size,
    preallocate,
    set_hints,
    get_hints,
    set_atomic,
    get_atomic,
};

struct Attached {
    mpi: &'static MpiTable,
    settings: Settings,
}

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// The one symbol that the shim looks up: takes its table, gives ours; null, and the reason on the standard error
/// output, if the core cannot work.
///
/// # Safety
/// `mpi` must point to a `struct pio_mpi` of this version that stays.
#[unsafe(no_mangle)]
unsafe extern "C" fn pio_mpiio_attach(version: u32, mpi: *const MpiTable) -> *const c_void {
    if version != VERSION {
        say(format_args!(
            "the shim has version {version}, the core {VERSION}: they are of two builds, build both again"
        ));
        return std::ptr::null();
    }
    match Settings::from_environment() {
        // SAFETY: by contract.
        Ok(settings) => ATTACHED.get_or_init(|| Attached { mpi: unsafe { &*mpi }, settings }),
        Err(error) => {
            say(error);
            return std::ptr::null();
        }
    };
    announce();
    std::ptr::from_ref(&CORE).cast()
}

/// Creates the file that `PIOSCOPE_APPLIED` names: how the launcher knows that the job had files for us at all.
fn announce() {
    let name = std::env::var_os("PIOSCOPE_APPLIED").and_then(|name| CString::new(name.into_vec()).ok());
    let Some(name) = name else { return };
    // Not by open(): a recorder would count it as the program's.
    // SAFETY: the name is a string that lives across the calls; a failed open gives -1, which close refuses.
    unsafe {
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), flags, 0o600);
        libc::syscall(libc::SYS_close, fd);
    }
}

/// Runs `work`; what it says, or that it panicked, as a number for the shim.
fn guarded(work: impl FnOnce() -> Result<(), Status>) -> c_int {
    Status::number(catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Status::Internal)))
}

unsafe extern "C" fn open(
    communicator: *const c_void,
    cache: *mut *const ChannelPool,
    path: *const c_char,
    mode: c_int,
    hints: *const Hint,
    hint_count: u64,
    file: *mut *mut File,
    own: *mut *const c_void,
) -> c_int {
    guarded(|| {
        let Attached { mpi, settings } = ATTACHED.get().ok_or(Status::Internal)?;
        // SAFETY: the shim's pointers are valid; `cache` is null or what we left there at an earlier open.
        unsafe {
            if (*cache).is_null() {
                *cache = Arc::into_raw(ChannelPool::new(mpi, communicator, settings.shared_memory)?);
            }
            Arc::increment_strong_count(*cache);
            let kept = Arc::from_raw(*cache);
            let opened = File::open(
                &kept,
                settings,
                CStr::from_ptr(path),
                Mode(mode),
                &hints_from(hints, hint_count),
            )?;
            *own = opened.communicator();
            *file = Box::into_raw(Box::new(opened));
        }
        Ok(())
    })
}

unsafe extern "C" fn close(file: *const File) -> c_int {
    // SAFETY: from `open`.
    guarded(|| unsafe { (*file).close() })
}

unsafe extern "C" fn free(file: *mut File) {
    guarded(|| {
        // SAFETY: from `open`, and not used again.
        drop(unsafe { Box::from_raw(file) });
        Ok(())
    });
}

unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    // SAFETY: the program's path is a C string.
    guarded(|| Ok(backend::remove(unsafe { CStr::from_ptr(path) })?))
}

unsafe extern "C" fn forget(cache: *const ChannelPool, communicate: c_int) {
    guarded(|| {
        // SAFETY: from `open`; the communicator's reference to it ends here.
        unsafe { Arc::from_raw(cache) }.forget(communicate != 0);
        Ok(())
    });
}

unsafe extern "C" fn type_create(description: *const u8, length: u64) -> *mut Datatype {
    // SAFETY: the shim's bytes, so many.
    let description = unsafe { std::slice::from_raw_parts(description, length as usize) };
    match catch_unwind(|| Datatype::from_description(description)) {
        Ok(Ok(datatype)) => Box::into_raw(Box::new(datatype)),
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn type_free(datatype: *mut Datatype) {
    // SAFETY: from `type_create`, and not used again.
    drop(unsafe { Box::from_raw(datatype) });
}

unsafe extern "C" fn type_size(datatype: *const Datatype) -> i64 {
    // SAFETY: from `type_create`.
    unsafe { (*datatype).size() as i64 }
}

unsafe extern "C" fn type_extent(datatype: *const Datatype) -> i64 {
    // SAFETY: from `type_create`.
    unsafe { (*datatype).extent() }
}

unsafe extern "C" fn set_view(
    file: *const File,
    displacement: i64,
    etype: *const Datatype,
    filetype: *const Datatype,
    hints: *const Hint,
    hint_count: u64,
) -> c_int {
    // SAFETY: the file is from `open`, the types from `type_create` or null, the rest the program's.
    guarded(|| unsafe {
        let types = etype.as_ref().zip(filetype.as_ref());
        let hints = hints_from(hints, hint_count);
        let displacement = match displacement {
            CURRENT => Displacement::Current,
            byte => Displacement::Byte(byte),
        };
        (*file).set_view(displacement, types, &hints)
    })
}

unsafe extern "C" fn displacement(file: *const File, displacement: *mut i64) -> c_int {
    // SAFETY: the file is from `open`; the shim's pointer is valid.
    guarded(|| unsafe { put(displacement, (*file).displacement()) })
}

const WRITE: c_int = 1;
const COLLECTIVE: c_int = 2;
const EXPLICIT_OFFSET: c_int = 4;
const SHARED: c_int = 8;

/// What an operation does, where, and with which memory.
///
/// # Safety
/// The shim's pointer must be valid; the type, if there is no error, from `type_create`; the memory what the program
/// gave MPI for this operation.
unsafe fn asked(
    how: c_int,
    offset: i64,
    given: *const MemoryGiven,
    error: c_int,
) -> (Direction, Positioning, Result<Memory, Status>) {
    // SAFETY: by contract.
    let memory = Status::check(error).and_then(|()| unsafe {
        let MemoryGiven { address, count, datatype } = &*given;
        let datatype = datatype.as_ref().ok_or(Status::Type)?;
        Memory::new(address.cast(), *count, datatype).map_err(|_| Status::Argument)
    });
    let direction = if how & WRITE != 0 { Direction::Write } else { Direction::Read };
    let positioning = match how & (EXPLICIT_OFFSET | SHARED) {
        0 => Positioning::Individual,
        SHARED => Positioning::Shared,
        _ => Positioning::Explicit(offset),
    };
    (direction, positioning, memory)
}

unsafe extern "C" fn transfer(
    file: *const File,
    how: c_int,
    offset: i64,
    given: *const MemoryGiven,
    error: c_int,
    moved: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: as `asked` needs it; the file is from `open`.
        unsafe {
            let (direction, positioning, memory) = asked(how, offset, given, error);
            *moved = (*file).transfer(direction, how & COLLECTIVE != 0, positioning, memory)?;
        }
        Ok(())
    })
}

unsafe extern "C" fn start(
    file: *const File,
    how: c_int,
    offset: i64,
    given: *const MemoryGiven,
    error: c_int,
    token: *mut c_void,
) -> c_int {
    guarded(|| {
        let mpi = ATTACHED.get().ok_or(Status::Internal)?.mpi;
        // SAFETY: as `asked` needs it; the file is from `open`.
        unsafe {
            let (direction, positioning, memory) = asked(how, offset, given, error);
            (*file).start(direction, how & COLLECTIVE != 0, positioning, memory, Completion { mpi, token })
        }
    })
}

unsafe extern "C" fn progress() {
    guarded(|| {
        progress_thread::progress();
        Ok(())
    });
}

unsafe extern "C" fn relax(since_ns: *mut u64) {
    guarded(|| {
        // SAFETY: the shim's pointer is valid.
        backoff::relax(unsafe { &mut *since_ns });
        Ok(())
    });
}

fn whence_of(number: c_int) -> Result<Whence, Status> {
    match number {
        0 => Ok(Whence::Start),
        1 => Ok(Whence::Current),
        2 => Ok(Whence::End),
        _ => Err(Status::Argument),
    }
}

unsafe extern "C" fn seek(file: *const File, offset: i64, whence: c_int) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).seek(offset, whence_of(whence)?) })
}

unsafe extern "C" fn position(file: *const File, position: *mut i64) -> c_int {
    // SAFETY: the file is from `open`; the shim's pointer is valid.
    guarded(|| unsafe { put(position, (*file).position()?) })
}

unsafe extern "C" fn seek_shared(file: *const File, offset: i64, whence: c_int) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).seek_shared(offset, whence_of(whence)) })
}

unsafe extern "C" fn position_shared(file: *const File, position: *mut i64) -> c_int {
    // SAFETY: the file is from `open`; the shim's pointer is valid.
    guarded(|| unsafe { put(position, (*file).position_shared()?) })
}

unsafe extern "C" fn byte_offset(file: *const File, offset: i64, byte: *mut i64) -> c_int {
    // SAFETY: the file is from `open`; the shim's pointer is valid.
    guarded(|| unsafe { put(byte, (*file).byte_offset(offset)?) })
}

unsafe extern "C" fn sync(file: *const File) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).sync() })
}

unsafe extern "C" fn get_size(file: *const File, size: *mut i64) -> c_int {
    // SAFETY: the file is from `open`; the shim's pointer is valid.
    guarded(|| unsafe { put(size, (*file).size()?) })
}

unsafe extern "C" fn set_size(file: *const File, size: i64) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).set_size(size) })
}

unsafe extern "C" fn preallocate(file: *const File, size: i64) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).preallocate(size) })
}

unsafe extern "C" fn set_hints(file: *const File, hints: *const Hint, hint_count: u64) -> c_int {
    // SAFETY: the file is from `open`; the shim has so many hints.
    guarded(|| unsafe { (*file).set_hints(&hints_from(hints, hint_count)) })
}

unsafe extern "C" fn get_hints(file: *const File, hints: *mut Hint, capacity: c_int) -> c_int {
    // SAFETY: the file is from `open`; the shim has room for so many hints.
    let (file, hints) = unsafe { (&*file, std::slice::from_raw_parts_mut(hints, capacity as usize)) };
    let pairs = catch_unwind(AssertUnwindSafe(|| {
        let (followed, kept) = file.hints();
        followed
            .pairs()
            .into_iter()
            .chain(kept.pairs().map(|(key, value)| (key, value.to_owned())))
            .collect::<Vec<_>>()
    }));
    let mut count = 0;
    for ((key, value), hint) in pairs.unwrap_or_default().iter().zip(hints) {
        put_text(key, &mut hint.key);
        put_text(value, &mut hint.value);
        count += 1;
    }
    count
}

unsafe extern "C" fn set_atomic(file: *const File, atomic: c_int) -> c_int {
    // SAFETY: the file is from `open`.
    guarded(|| unsafe { (*file).set_atomic(atomic != 0) })
}

unsafe extern "C" fn get_atomic(file: *const File) -> c_int {
    // SAFETY: the file is from `open`.
    c_int::from(unsafe { (*file).is_atomic() })
}

/// # Safety
/// `target` must be valid.
unsafe fn put(target: *mut i64, value: u64) -> Result<(), Status> {
    let value = i64::try_from(value).map_err(|_| Status::Argument)?;
    // SAFETY: by contract.
    unsafe { *target = value };
    Ok(())
}

/// Hints from the program. Values that make no sense are passed over, as MPI wants it.
///
/// # Safety
/// `hints` must point to so many.
unsafe fn hints_from(hints: *const Hint, count: u64) -> Given {
    let mut known = Given::default();
    if count == 0 {
        return known;
    }
    // SAFETY: by contract.
    for hint in unsafe { std::slice::from_raw_parts(hints, count as usize) } {
        known.set(&text_of(&hint.key), &text_of(&hint.value));
    }
    known
}

fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|char| *char as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

fn put_text(text: &str, chars: &mut [c_char]) {
    let most = chars.len() - 1;
    for (char, byte) in chars.iter_mut().zip(text.bytes().take(most).chain([0])) {
        *char = byte as c_char;
    }
}

//! How a file is opened, by what a program gave to the call.

use pio_trace::Flags;

/// Of Linux on most processors.
const KNOWN: [(i64, Flags); 4] = [
    (0o1000, Flags::TRUNCATE), // O_TRUNC
    (0o2000, Flags::APPEND),
    (0o10000, Flags::SYNC), // O_DSYNC, of which O_SYNC has the bit
    (0o40000, Flags::DIRECT),
];

/// By the flags of `open`.
pub(super) fn by_flags(flags: i64) -> Flags {
    let given = KNOWN.iter().filter(|(bit, _)| flags & bit != 0);
    given.fold(Flags::NONE, |all, &(_, flag)| all | flag)
}

/// By the mode of `fopen`.
pub(super) fn by_mode(mode: &str) -> Flags {
    match mode.as_bytes().first() {
        Some(b'a') => Flags::APPEND,
        Some(b'w') => Flags::TRUNCATE,
        _ => Flags::NONE,
    }
}

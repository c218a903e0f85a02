//! File buffers as a description has them, as the settings of a cache.

use pio_cache::{ReadAhead, Settings, SettingsError, Writes};
use pio_machine::Buffers;

/// A cache of this size, otherwise as buffers are described.
pub fn settings(buffers: &Buffers, size: u64) -> Result<Settings, SettingsError> {
    let percent = |part: u32| (u128::from(size) * u128::from(part) / 100) as u64;
    let dirty_limit_bytes = percent(buffers.dirty_limit).max(buffers.block);
    Ok(Settings {
        capacity_bytes: size,
        block_bytes: buffers.block,
        policy: buffers.policy.parse()?,
        read_ahead: if buffers.read_ahead { ReadAhead::JustRead } else { ReadAhead::Off },
        writes: if buffers.write_behind { Writes::Behind { dirty_limit_bytes } } else { Writes::Through },
        process_limit_bytes: (buffers.process_limit < 100)
            .then(|| percent(buffers.process_limit).max(buffers.block)),
    })
}

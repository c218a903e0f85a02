//! Traces for other tools.

mod chrome;
mod fio;
#[cfg(feature = "parquet")]
mod parquet;

pub use self::chrome::chrome;
pub use self::fio::{Requests, fio};
#[cfg(feature = "parquet")]
pub use self::parquet::parquet;

/// Events after which progress is told.
const STEP: u64 = 1 << 14;

//! Traces for other tools.

mod chrome;
#[cfg(feature = "parquet")]
mod parquet;

pub use self::chrome::chrome;
#[cfg(feature = "parquet")]
pub use self::parquet::parquet;

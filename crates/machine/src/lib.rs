//! What hardware: typed machine descriptions, read from TOML.

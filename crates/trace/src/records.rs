//! Events as bytes: the payload of an events block.
//!
//! As in Miller and Katz (1991, section 4.2) a record says only what its predecessors do not tell: one header byte of
//! eight flags, and a field for each flag that is not set. Encoder and decoder run the same model, which predicts
//! each field; a set flag means that the prediction is right. Fields of one kind lie together in [`columns`], because
//! zstd then finds more in them than in whole records.
//!
//! A block stands alone: the model starts empty in each.

pub(crate) mod by_process;
mod columns;
mod expected;
pub(crate) mod in_turn;
mod shape;

/// Flags of the header byte. Part of the file format.
mod header {
    /// The process is that of the previous event; in blocks in order of start, the one that followed it the last time.
    pub(super) const PROCESS: u8 = 1 << 0;
    /// The shape is the one that followed the process's previous shape the last time.
    pub(super) const SHAPE: u8 = 1 << 1;
    /// The place lies as far behind the end of the handle's previous access as that one lay behind its predecessor:
    /// sequential and evenly strided access.
    pub(super) const PLACE: u8 = 1 << 2;
    /// The size is that of the previous event of this shape.
    pub(super) const SIZE: u8 = 1 << 3;
    /// The result agrees with the size, or with the previous result, as it did for the previous event of this shape.
    pub(super) const RESULT: u8 = 1 << 4;
    /// The elapsed time is that of the previous event of this shape.
    pub(super) const ELAPSED: u8 = 1 << 5;
    /// The think time is that of the previous event of this shape.
    pub(super) const THINK: u8 = 1 << 6;
    /// The operation follows from the process's latest as it did for the previous event of this shape.
    pub(super) const OPERATION: u8 = 1 << 7;
}

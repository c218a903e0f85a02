//! Events of a block in order of start, as versions 1 to 9 wrote them.

mod decode;
mod model;

pub(crate) use decode::decode;

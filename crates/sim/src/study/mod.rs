//! The studies of published papers: what they ran, run on our models.

pub mod coll;
pub mod hong;
pub mod miller_katz;

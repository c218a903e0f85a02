//! The studies of published papers: what they ran, run on our models.

pub mod coll;

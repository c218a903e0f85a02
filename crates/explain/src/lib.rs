//! Explain: statistics of a trace, in one pass.

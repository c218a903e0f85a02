//! The pioscope command.

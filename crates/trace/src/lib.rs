//! What happened: events, the trace file, readers and writers, export.

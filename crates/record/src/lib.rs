//! Record: the preload libraries and the collector that turns their spools into a trace.

//! Who moves which bytes: the I/O strategies as pure state machines.

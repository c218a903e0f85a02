//! Which input ports of a switch ask for which output ports.

pub(super) const PORTS: usize = 64;

/// Requests of a switch, kept so that no memory is asked for in each cycle.
#[derive(Debug)]
pub(super) struct Requests {
    /// The input ports that ask for each output port, and the other way round.
    pub(super) inputs: [u64; PORTS],
    pub(super) outputs: [u64; PORTS],
    /// The input ports that each output port grants, or the other way round.
    pub(super) granted: [u64; PORTS],
    /// The lane that each input port would send from to each output port.
    pub(super) lane: [[u8; PORTS]; PORTS],
}

impl Requests {
    pub(super) fn new() -> Box<Requests> {
        Box::new(Requests {
            inputs: [0; PORTS],
            outputs: [0; PORTS],
            granted: [0; PORTS],
            lane: [[0; PORTS]; PORTS],
        })
    }
}

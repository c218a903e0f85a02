//! A network as a drawing.

/// Where a device is drawn: columns from the left, rows from the top, in units of the distance between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Place {
    pub(super) fn new(x: f64, y: f64) -> Place {
        Place { x, y }
    }
}

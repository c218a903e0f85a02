//! What hardware costs.

/// What the steps of an operation cost on a machine. All are above 0 and finite; a bandwidth is in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Seconds of a message from rank to rank, or from a rank to a server: both ends, and the way.
    pub message_s: f64,
    /// Of one rank's or server's link, each way.
    pub network_bytes_per_s: f64,
    /// Of one processor that copies long pieces in memory.
    pub copy_bytes_per_s: f64,
    /// Seconds added for each piece that is packed or put in place.
    pub piece_s: f64,
    /// Seconds added for each extent that a request lists: to write it down, send it, and read it.
    pub extent_s: f64,
    /// Seconds of a call to a file system, or that a server is busy with a request, beside its bytes.
    pub request_s: f64,
    /// Seconds to lock an interval of a file and unlock it.
    pub lock_s: f64,
    /// Of a file to one reader, or of one server.
    pub read_bytes_per_s: f64,
    /// Of a file to its writers together, or of one server.
    pub write_bytes_per_s: f64,
}

impl Terms {
    /// A virtual machine with two processors of 2026, files in its memory, ranks and servers on it and connected by
    /// sockets: the best of nine runs of `cargo run --release -p pio-plan --example measure_terms /dev/shm`, as other
    /// work on the machine only adds to times; two digits. Yours differs: run it.
    pub const MEASURED: Terms = Terms {
        message_s: 5.4e-6,
        network_bytes_per_s: 5.4e9,
        copy_bytes_per_s: 12e9,
        piece_s: 0.23e-9,
        extent_s: 12e-9,
        request_s: 1.1e-6,
        lock_s: 0.89e-6,
        read_bytes_per_s: 13e9,
        write_bytes_per_s: 10e9,
    };

    /// The first term that is no time or bandwidth: not above 0, or not finite.
    pub fn wrong(&self) -> Option<(&'static str, f64)> {
        let terms = [
            ("message", self.message_s),
            ("network", self.network_bytes_per_s),
            ("copy", self.copy_bytes_per_s),
            ("piece", self.piece_s),
            ("extent", self.extent_s),
            ("request", self.request_s),
            ("lock", self.lock_s),
            ("read", self.read_bytes_per_s),
            ("write", self.write_bytes_per_s),
        ];
        terms.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
    }
}

impl Default for Terms {
    fn default() -> Terms {
        Terms::MEASURED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_terms_are_named() {
        assert_eq!(Terms::MEASURED.wrong(), None);
        assert_eq!(Terms { piece_s: 0.0, ..Terms::MEASURED }.wrong(), Some(("piece", 0.0)));
        let infinite = Terms { copy_bytes_per_s: f64::INFINITY, ..Terms::MEASURED };
        assert_eq!(infinite.wrong(), Some(("copy", f64::INFINITY)));
        assert!(Terms { lock_s: f64::NAN, ..Terms::MEASURED }.wrong().is_some());
    }
}

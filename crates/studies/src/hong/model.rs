//! The cost model of sections 3 and 4, in a form that fits the tables.
//!
//! As printed, the analysis costs (α + β) n for *all* n segments, however many clients share them, and there is no
//! start-up. The printed times are for 100 executions, have a start-up of some 12 ms an execution (and a little more where
//! data are redistributed), and grow with each
//! client's own segments, n/m. So here, for one execution with n segments of k bytes, m clients and s servers:
//!
//! ```text
//! two-phase  t₀ + t₁ + (α + β) n/m + (m−1)/m · n/m · k/Sₙ + n/m · k/Sₙ + Q + D
//! ECIO       t₀      + α n/m       + n/m · k/S_sg                       + Q + D
//! Q          (n/s − n/m) · k/Sₙ, where the servers' links are fewer than the clients'
//! D          n/m · k/(s S_d), or n · k/(s S_d) if servers take one client's data after the other's
//! ```
//!
//! It is linear in [`Parameters`]: start-up, time a segment, and time a byte (one over a bandwidth).

use pio_plan::Direction;

/// How the clients' pieces get to the server, or from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Two-phase collective I/O, every client an aggregator.
    Collective,
    /// Extended collective I/O: gather/scatter straight to the server, which puts the pieces in place.
    Ecio,
}

impl Method {
    /// Both, in the order of the tables' columns.
    pub const ALL: [Method; 2] = [Method::Collective, Method::Ecio];

    /// As strategies are called everywhere else.
    pub fn name(self) -> &'static str {
        match self {
            Method::Collective => "two-phase",
            Method::Ecio => "ecio",
        }
    }
}

/// One execution of the paper's benchmark: clients own every m-th segment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// What is compared.
    pub method: Method,
    /// Whether the operation reads or writes.
    pub direction: Direction,
    /// Segments of all clients together (n).
    pub pieces: u64,
    /// Bytes of each (k).
    pub piece_bytes: u64,
    /// Clients (m).
    pub clients: u32,
    /// Servers (s).
    pub servers: u32,
}

/// Number of parameters.
pub(super) const COUNT: usize = 9;

/// The parameters, in the order of [`Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// t₀: of an execution, seconds.
    StartUp,
    /// t₁: of a redistribution, seconds.
    Redistribution,
    /// α: from datatype to positions and lengths, seconds a segment.
    Analysis,
    /// β: who gets which segment, seconds a segment.
    Assignment,
    /// 1/Sₙ: the network, seconds a byte.
    Network,
    /// 1/S_sg of writes: gather from a client's memory, seconds a byte.
    Gather,
    /// 1/S_sg of reads: scatter into a client's memory, seconds a byte.
    Scatter,
    /// 1/S_d of writes: what the server does with a byte, seconds.
    DiskWrite,
    /// 1/S_d of reads.
    DiskRead,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Parameter; COUNT] = [
        Parameter::StartUp,
        Parameter::Redistribution,
        Parameter::Analysis,
        Parameter::Assignment,
        Parameter::Network,
        Parameter::Gather,
        Parameter::Scatter,
        Parameter::DiskWrite,
        Parameter::DiskRead,
    ];

    /// The paper's symbol, as text.
    pub fn symbol(self) -> &'static str {
        ["start-up", "redistribution", "α", "β", "S_n", "S_sg write", "S_sg read", "S_d write", "S_d read"]
            [self as usize]
    }

    /// Whether it is a time by itself, for no segment and no byte.
    pub fn is_start_up(self) -> bool {
        self as usize <= Parameter::Redistribution as usize
    }

    /// Whether it is the inverse of a bandwidth.
    pub fn is_bandwidth(self) -> bool {
        self as usize >= Parameter::Network as usize
    }
}

/// A value for each [`Parameter`], in seconds, seconds a segment, or seconds a byte.
pub type Parameters = [f64; COUNT];

/// How a server's time for the data grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTime {
    /// With a client's own segments: the clients' data come in at once, into memory.
    Concurrent,
    /// With all segments: one disk, or one core, is what everyone waits for.
    Shared,
}

impl Experiment {
    /// Segments of one client (n/m).
    pub fn own_pieces(&self) -> f64 {
        self.pieces as f64 / f64::from(self.clients)
    }

    /// How often each parameter counts.
    pub fn coefficients(&self, server: ServerTime) -> Parameters {
        let (clients, servers) = (f64::from(self.clients), f64::from(self.servers));
        let own = self.own_pieces();
        let bytes = self.piece_bytes as f64;
        let mut times = [0.0; COUNT];
        times[Parameter::StartUp as usize] = 1.0;
        times[Parameter::Analysis as usize] = own;
        // What waits for the servers' links, where the clients' are faster together.
        let queued = (self.pieces as f64 / servers - own).max(0.0);
        match self.method {
            Method::Collective => {
                let resent = (clients - 1.0) / clients * own;
                times[Parameter::Redistribution as usize] = 1.0;
                times[Parameter::Assignment as usize] = own;
                times[Parameter::Network as usize] = (resent + own + queued) * bytes;
            }
            Method::Ecio => {
                times[Parameter::Network as usize] = queued * bytes;
                let gathers = match self.direction {
                    Direction::Write => Parameter::Gather,
                    Direction::Read => Parameter::Scatter,
                };
                times[gathers as usize] = own * bytes;
            }
        }
        let disk = match self.direction {
            Direction::Write => Parameter::DiskWrite,
            Direction::Read => Parameter::DiskRead,
        };
        let segments = match server {
            ServerTime::Concurrent => own,
            ServerTime::Shared => self.pieces as f64,
        };
        times[disk as usize] = segments / servers * bytes;
        times
    }

    /// Seconds of one execution.
    pub fn seconds(&self, server: ServerTime, parameters: &Parameters) -> f64 {
        let times = self.coefficients(server);
        times.iter().zip(parameters).map(|(times, value)| times * value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = [1e-2, 1e-3, 1e-6, 3e-7, 1e-9, 2e-8, 1e-8, 3e-8, 2e-8];

    fn experiment(method: Method, clients: u32, servers: u32) -> Experiment {
        let direction = Direction::Write;
        Experiment { method, direction, pieces: 1000, piece_bytes: 4, clients, servers }
    }

    #[test]
    fn both_formulas_by_hand() {
        // Two-phase, 500 own segments: 11 ms + 500 (1300 ns + 4·30 ns) + (250 + 500 + 500) · 4 ns.
        let two_phase = experiment(Method::Collective, 2, 1).seconds(ServerTime::Concurrent, &PARAMETERS);
        assert!((two_phase - (1.1e-2 + 500.0 * 1.42e-6 + 5e-6)).abs() < 1e-12, "{two_phase}");
        let ecio = experiment(Method::Ecio, 2, 1).seconds(ServerTime::Shared, &PARAMETERS);
        assert!((ecio - (1e-2 + 500.0 * 1.08e-6 + 2e-6 + 1000.0 * 1.2e-7)).abs() < 1e-12, "{ecio}");
    }

    #[test]
    fn many_clients_come_to_the_link_of_the_server() {
        for method in Method::ALL {
            let start_up = if method == Method::Collective { 1.1e-2 } else { 1e-2 };
            let limit = start_up + 1000.0 * 4.0 * 1e-9;
            let time = experiment(method, 1 << 20, 1).seconds(ServerTime::Concurrent, &PARAMETERS);
            assert!(time >= limit && time < limit + 1e-8, "{method:?}: {time}");
        }
    }

    #[test]
    fn more_clients_or_servers_never_take_longer() {
        for method in Method::ALL {
            for server in [ServerTime::Concurrent, ServerTime::Shared] {
                let time =
                    |clients, servers| experiment(method, clients, servers).seconds(server, &PARAMETERS);
                assert!(time(4, 1) < time(2, 1));
                assert!(time(4, 2) <= time(4, 1));
            }
        }
    }
}

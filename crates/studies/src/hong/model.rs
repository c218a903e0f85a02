//! The cost model of sections 3 and 4, in a form that fits the tables.
//!
//! As printed, the analysis costs (α + β) n for *all* n segments, however many clients share them; there is no start-up; and
//! what the server does with a view is hidden. The printed times are for 100 executions, have a start-up of some 12 ms an
//! execution, grow with each client's own segments, n/m, and, with ECIO, with all segments, too: the server's work is not
//! hidden. So here, for one execution with n segments of k bytes, m clients and s servers:
//!
//! ```text
//! two-phase  t₀ + w m + q (m−1) t₁ + (α + β) n/m + (1 + (m−1)/m) n/m · k/Sₙ + n/s · k/S_d
//! ECIO       t₀ + w m              + γ n/m       +                 n/m · k/Sₙ + n/s · k/S_d + n/s · τ
//! ```
//!
//! The server takes in one write after the other (w, 0 for reads). Clients redistribute with one partner after the other,
//! and send it q messages: 2 for a read (what is wanted, the data), 3 for a write (and that the data are there). γ is a client's analysis of a segment with its gather (write) or scatter (read); τ the server's analysis of a segment
//! and its way to its place. It is linear in [`Parameters`]; Sₙ is given.

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
pub(super) const COUNT: usize = 8;

/// 4x InfiniBand: 10 Gb/s on the wire, 8 of 10 bits data (section 5). With pieces of 4 bytes it hardly matters.
pub(super) const LINK_BYTES_PER_S: f64 = 1e9;

/// The parameters, in the order of [`Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// t₀: of an execution, seconds.
    StartUp,
    /// w: of a client's write at a server, which takes one after the other, seconds.
    Write,
    /// t₁: of a message of a redistribution, at both ends, seconds.
    Message,
    /// α + β: from datatype to positions and lengths, and who gets which segment; seconds a segment.
    Segment,
    /// γ of writes: analysis and gather, seconds a segment.
    Gather,
    /// γ of reads: analysis and scatter, seconds a segment.
    Scatter,
    /// τ: the server's analysis of a segment and its way to its place under ECIO, seconds a segment.
    Placing,
    /// 1/S_d: what the server does with a byte, seconds.
    ServerByte,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Parameter; COUNT] = [
        Parameter::StartUp,
        Parameter::Write,
        Parameter::Message,
        Parameter::Segment,
        Parameter::Gather,
        Parameter::Scatter,
        Parameter::Placing,
        Parameter::ServerByte,
    ];

    /// The paper's symbol, or ours, as text.
    pub fn symbol(self) -> &'static str {
        ["t₀", "w", "t₁", "α + β", "γ write", "γ read", "τ", "S_d"][self as usize]
    }

    /// What it stands for.
    pub fn meaning(self) -> &'static str {
        [
            "start-up of an execution",
            "a client's write, taken in by the server",
            "a message of a redistribution",
            "two-phase, for each segment of a client",
            "ECIO: analysis and gather, for each segment of a client",
            "ECIO: analysis and scatter, for each segment of a client",
            "ECIO: the server, for each segment of all clients",
            "the server, for each byte",
        ][self as usize]
    }

    /// Whether it is a time by itself, for no segment and no byte.
    pub fn is_start_up(self) -> bool {
        self as usize <= Parameter::Message as usize
    }

    /// Whether tables with one number of clients tell it: what grows with all segments or all clients is then hidden in
    /// what grows with a client's own.
    pub fn needs_several_numbers_of_clients(self) -> bool {
        matches!(self, Parameter::Write | Parameter::Placing | Parameter::ServerByte)
    }
}

/// A value for each [`Parameter`], in seconds, seconds a segment, or seconds a byte.
pub type Parameters = [f64; COUNT];

impl Experiment {
    /// Segments of one client (n/m).
    pub fn own_pieces(&self) -> f64 {
        self.pieces as f64 / f64::from(self.clients)
    }

    /// How often each parameter counts.
    pub fn coefficients(&self) -> Parameters {
        let (clients, servers) = (f64::from(self.clients), f64::from(self.servers));
        let own = self.own_pieces();
        let at_a_server = self.pieces as f64 / servers;
        let mut times = [0.0; COUNT];
        times[Parameter::StartUp as usize] = 1.0;
        times[Parameter::ServerByte as usize] = at_a_server * self.piece_bytes as f64;
        if self.direction == Direction::Write {
            times[Parameter::Write as usize] = clients;
        }
        match (self.method, self.direction) {
            (Method::Collective, _) => {
                let messages = if self.direction == Direction::Write { 3.0 } else { 2.0 };
                times[Parameter::Message as usize] = messages * (clients - 1.0);
                times[Parameter::Segment as usize] = own;
            }
            (Method::Ecio, direction) => {
                let way = match direction {
                    Direction::Write => Parameter::Gather,
                    Direction::Read => Parameter::Scatter,
                };
                times[way as usize] = own;
                times[Parameter::Placing as usize] = at_a_server;
            }
        }
        times
    }

    /// Seconds of a client's own link, which are given.
    pub fn on_the_link(&self) -> f64 {
        let resent = match self.method {
            Method::Collective => 1.0 - 1.0 / f64::from(self.clients),
            Method::Ecio => 0.0,
        };
        (1.0 + resent) * self.own_pieces() * self.piece_bytes as f64 / LINK_BYTES_PER_S
    }

    /// Seconds of one execution.
    pub fn seconds(&self, parameters: &Parameters) -> f64 {
        let times = self.coefficients();
        self.on_the_link() + times.iter().zip(parameters).map(|(times, value)| times * value).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = [1e-2, 1e-4, 1e-3, 1.3e-6, 1e-6, 9e-7, 1e-7, 5e-9];

    fn experiment(method: Method, clients: u32, servers: u32) -> Experiment {
        let direction = Direction::Write;
        Experiment { method, direction, pieces: 1000, piece_bytes: 4, clients, servers }
    }

    #[test]
    fn both_formulas_by_hand() {
        // Two-phase, 500 own segments: 10 + 0.2 + 3 ms + 500 · 1300 ns + (250 + 500) · 4 ns + 4000 · 5 ns.
        let two_phase = experiment(Method::Collective, 2, 1).seconds(&PARAMETERS);
        assert!((two_phase - (1.32e-2 + 6.5e-4 + 3e-6 + 2e-5)).abs() < 1e-12, "{two_phase}");
        let ecio = experiment(Method::Ecio, 2, 1).seconds(&PARAMETERS);
        assert!((ecio - (1.02e-2 + 5e-4 + 2e-6 + 2e-5 + 1e-4)).abs() < 1e-12, "{ecio}");
    }

    #[test]
    fn many_clients_wait_for_the_server_and_more_servers_share_it() {
        for method in Method::ALL {
            let time = |clients, servers| {
                let reading =
                    Experiment { direction: Direction::Read, ..experiment(method, clients, servers) };
                reading.seconds(&PARAMETERS)
            };
            assert!(time(4, 2) < time(4, 1), "{method:?}");
        }
        let many = Experiment { direction: Direction::Read, ..experiment(Method::Ecio, 1 << 20, 1) };
        let limit = 1e-2 + 1000.0 * (1e-7 + 4.0 * 5e-9);
        assert!((many.seconds(&PARAMETERS) / limit - 1.0).abs() < 1e-6);
    }
}

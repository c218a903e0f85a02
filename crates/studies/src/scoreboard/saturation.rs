//! How the bandwidth of many clients on the same servers grows with their number.
//!
//! n clients, each able to move c bytes a second alone, share servers that move S together. Programs that move data in
//! step, as IOR's ranks do after each barrier, have all their requests at the servers at once: each request waits for those
//! of all other clients. A client then takes 1/c + n/S seconds for a byte, so n of them move
//!
//! ```text
//! B(n) = n / (1/c + n/S) = 1 / (1/(n c) + 1/S)
//! ```
//!
//! bytes a second. That is the lower of the asymptotic bounds of a closed queueing network with n jobs (Lazowska et al.,
//! *Quantitative System Performance*, 1984, section 5.2); requests at random times lie between it and min(n c, S).

/// How many times the bandwidth grows when the clients become `clients_ratio` times as many and the servers
/// `servers_ratio` times as fast, if the servers were used to the part `utilisation` (0 to 1, B/S) before.
pub(super) fn growth(utilisation: f64, clients_ratio: f64, servers_ratio: f64) -> f64 {
    1.0 / ((1.0 - utilisation) / clients_ratio + utilisation / servers_ratio)
}

#[cfg(test)]
mod tests {
    use pio_machine::Duration;
    use pio_sim::kernel::{Stop, Time};
    use pio_sim::queueing::{Class, Options, Place, QueueingNetwork, Service, Source, Visit, run};

    use super::*;

    #[test]
    fn limits() {
        assert_eq!(growth(0.0, 8.0, 1.0), 8.0);
        assert_eq!(growth(1.0, 8.0, 1.0), 1.0);
        assert_eq!(growth(1.0, 8.0, 3.0), 3.0);
        assert!((growth(0.4, 1e9, 1.0) - 2.5).abs() < 1e-6);
    }

    /// Clients that work alone for 10 ms a request, and servers that take 2 ms for it, simulated.
    fn simulated_per_s(clients: u32) -> f64 {
        let [alone, served] =
            [10.0, 2.0].map(|ms: f64| Service::Exponential(Duration::from_seconds(ms * 1e-3)));
        let model = QueueingNetwork {
            name: "clients and servers".to_owned(),
            stations: vec![Place::delay("clients"), Place::servers("servers", 1)],
            classes: vec![Class {
                name: "request".to_owned(),
                source: Source::Closed(clients),
                visits: vec![Visit::then(0, alone, 1), Visit::last(1, served)],
            }],
        };
        let stop = Stop { count: Some(40_000), ..Stop::default() };
        let options = Options { seed: 1, warm_up: Some(Time(1_000_000_000_000)), stop };
        run(&model, &options, &mut |_| {}).expect("a model that can be").stations[1].throughput
    }

    /// The closed form is the lower bound of what the simulator's own queueing network does, and meets it for one client
    /// and for many.
    #[test]
    fn a_bound_of_the_simulated_network() {
        let (client, servers) = (1.0 / 12e-3, 1.0 / 2e-3);
        let utilisation = client / servers;
        for clients in [1, 2, 4, 8, 16, 64] {
            let count = f64::from(clients);
            let bound = client * growth(utilisation, count, 1.0);
            let upper = (count * client).min(servers);
            let found = simulated_per_s(clients);
            assert!(bound * 0.98 <= found && found <= upper * 1.02, "{clients}: {bound} {found} {upper}");
            if clients == 1 || clients == 64 {
                assert!((found / bound - 1.0).abs() < 0.1, "{clients}: {bound} {found}");
            }
        }
    }
}

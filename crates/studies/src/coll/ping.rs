//! Pings (sections 4.1 and 4.2): what the adapters are calibrated on.

use pio_machine::circuit::{Library, Memory};
use pio_sim::kernel::{Model, Time};
use pio_sim::network::{MessageId, Network};

use crate::coll::options::{MEGA, System};
use pio_report::chart::{Figure, Point, Series};

/// The three ways to send that Figures 4 and 5 compare.
const WAYS: [(&str, Memory, Library); 3] = [
    ("Elan3lib, Elan to Elan", Memory::Adapter, Library::Direct),
    ("Elan3lib, main to main", Memory::Main, Library::Direct),
    ("MPI, main to main", Memory::Main, Library::Mpi),
];

/// Seconds from a message's being sent to its receiver's knowing of it, while another goes the other way or not. Between
/// two nodes of one switch: the paper does not say which.
pub(super) fn latency(system: &System, bytes: u64, both_ways: bool) -> f64 {
    let mut network = system.network();
    network.send(Time(0), MessageId(0), 0, 1, bytes);
    if both_ways {
        network.send(Time(0), MessageId(1), 1, 0, bytes);
    }
    let mut delivered = Vec::new();
    network.advance_through(Time::NEVER, &mut delivered);
    let last = delivered.iter().map(|delivery| delivery.last_byte).max().unwrap_or_default();
    last.since(Time(0)).seconds()
}

/// Bytes a second of one direction.
pub(super) fn bandwidth(system: &System, bytes: u64, both_ways: bool) -> f64 {
    bytes as f64 / latency(system, bytes, both_ways)
}

/// The same network, its data elsewhere or its messages sent by another library.
pub(super) fn sent_by(system: &System, memory: Memory, library: Library) -> System {
    let mut system = system.clone();
    system.switches.adapter.memory = memory;
    system.switches.adapter.library = library;
    system
}

/// Figures 4 a and b, or 5 a and b.
pub(super) fn plots(system: &System, both_ways: bool) -> Vec<Figure> {
    let (figure, direction) = if both_ways { (5, "Bidirectional") } else { (4, "Unidirectional") };
    let curves = |sizes: &[u64], value: &dyn Fn(&System, u64) -> f64| -> Vec<Series> {
        let curve = |(name, memory, library): &(&str, Memory, Library)| {
            let system = sent_by(system, *memory, *library);
            let point = |bytes: &u64| Point::exact(*bytes as f64, value(&system, *bytes));
            Series { name: (*name).to_owned(), points: sizes.iter().map(point).collect() }
        };
        WAYS.iter().map(curve).collect()
    };
    let powers: Vec<u64> = (0..=22).map(|power| 1 << power).collect();
    let small: Vec<u64> = std::iter::once(0).chain((0..=64).map(|step| (step * 64).max(1))).collect();
    let each = if both_ways { ", each way" } else { "" };
    vec![
        Figure {
            name: format!("{figure}a"),
            title: format!("{direction} ping: bandwidth"),
            x_label: "Message size (B)".to_owned(),
            y_label: format!("Bandwidth{each} (MB/s)"),
            log_x: true,
            log_y: false,
            series: curves(&powers, &|system, bytes| bandwidth(system, bytes, both_ways) / MEGA),
        },
        Figure {
            name: format!("{figure}b"),
            title: format!("{direction} ping: latency"),
            x_label: "Message size (B)".to_owned(),
            y_label: "Latency (us)".to_owned(),
            log_x: false,
            log_y: false,
            series: curves(&small, &|system, bytes| latency(system, bytes, both_ways) * 1e6),
        },
    ]
}

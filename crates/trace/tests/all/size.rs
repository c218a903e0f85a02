//! Traces grow with what they hold, and no clock in them ends.

use crate::support::{all_events, event, tables};
use pio_trace::{Call, Event, Target, Trace, TraceWriter};

fn written(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables()).unwrap();
    for event in events {
        writer.push(event).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// Reads at offsets that are all different, in no order.
fn distinct_offsets(count: u64) -> Vec<Event> {
    let offset = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..count).map(|i| Event { target: Target::Extent { offset: offset(i) }, ..event(20_000 * i) }).collect()
}

#[test]
fn distinct_offsets_cost_the_same_each() {
    let [few, many] =
        [20_000, 160_000].map(|count| written(&distinct_offsets(count)).len() as f64 / count as f64);
    assert!(many < 1.05 * few, "{few} bytes an event become {many}");
}

#[test]
fn a_job_of_a_year_has_all_its_times() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let events: Vec<Event> = (0..365)
        .map(|day| Event { elapsed_ns: DAY_NS / 2 + day, think_ns: DAY_NS / 4, ..event(day * DAY_NS) })
        .collect();
    let trace = Trace::from_bytes(written(&events), "year.pio").unwrap();
    assert_eq!(all_events(&trace), events);
}

/// Waits of ranks that spin take no room for that, and traces without such calls none at all.
#[test]
fn processor_time_that_is_all_the_time_takes_no_room() {
    let calls = |call, used: fn(u64) -> Option<u64>| -> Vec<Event> {
        let elapsed = |i: u64| 500 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000;
        let one = |i| Event { call, elapsed_ns: elapsed(i), used_ns: used(elapsed(i)), ..event(20_000 * i) };
        (0..20_000).map(one).collect()
    };
    let unknown = written(&calls(Call::MpiBarrier, |_| None)).len();
    let spinning = written(&calls(Call::MpiBarrier, Some)).len();
    let sleeping = written(&calls(Call::MpiBarrier, |_| Some(200))).len();
    let reading = written(&calls(Call::Pread, |_| None)).len();
    assert!(spinning < unknown + 20_000 / 50, "{unknown} bytes become {spinning}");
    assert!(sleeping > unknown + 20_000 / 5, "{unknown} bytes become {sleeping}");
    assert!(reading.abs_diff(unknown) < 100, "{reading} bytes against {unknown}");
}

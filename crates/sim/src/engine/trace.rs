//! What happens, as a trace.

use std::collections::BTreeMap;

use pio_trace::{Call, Event, GivenHints, HandleId, ProcessId, Tables};

use super::Engine;
use crate::kernel::Time;

impl Engine<'_> {
    /// An event that ends now, with nothing but its times.
    pub(super) fn event(&self, rank: u32, call: Call, start: Time) -> Event {
        let start_ns = start.nanoseconds();
        Event { elapsed_ns: self.now.nanoseconds() - start_ns, ..Event::new(call, ProcessId(rank), start_ns) }
    }

    pub(super) fn write(&mut self, event: Event) {
        self.tally.happened(&event);
        if let Some(output) = &mut self.output {
            output.push(event);
        }
    }

    pub(super) fn tables(&self) -> Tables {
        let workload = self.workload;
        let process = |rank: u32| pio_trace::Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{}", self.processes[rank as usize].node),
            command: workload.name.clone(),
            start_ns: 0,
            end_ns: None,
        };
        let handle = |open: &crate::workload::Open, physical: bool| {
            let group = open.group.filter(|_| !physical);
            pio_trace::Handle {
                file: pio_trace::FileId(open.file),
                process: ProcessId(open.rank),
                ranks: group.map_or(1, |group| workload.groups[group as usize].len() as u32),
                collective: if group.is_some() { open.collective } else { 0 },
            }
        };
        let mut handles: Vec<_> = workload.handles.iter().map(|open| handle(open, false)).collect();
        let below = workload.handles.iter().filter(|open| open.group.is_some());
        handles.extend(below.map(|open| handle(open, true)));
        let note = |key: &str, value: String| (key.to_owned(), value);
        let mut first: BTreeMap<u64, u32> = BTreeMap::new();
        for (number, open) in (0..).zip(&workload.handles) {
            first.entry(open.collective).or_insert(number);
        }
        let given = workload.hints.iter().filter_map(|(collective, hints)| {
            let handle = HandleId(*first.get(collective)?);
            let pairs = hints.all_pairs().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Some(note(GivenHints::NOTE, GivenHints { handle, pairs }.to_string()))
        });
        let site = workload.site_hints.all_pairs();
        let site: Vec<String> = site.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let site = (!site.is_empty()).then(|| note(Tables::SITE_HINTS, site.join(", ")));
        Tables {
            job: format!("{} on {}", workload.name, self.machine.name),
            notes: [
                note("simulator", format!("pio-sim {}", env!("CARGO_PKG_VERSION"))),
                note("machine", self.machine.name.clone()),
                note(Tables::STRATEGY, self.strategy.to_string()),
                note(Tables::HINTS, self.hints.to_text()),
            ]
            .into_iter()
            .chain(given)
            .chain(site)
            .collect(),
            epoch_ns: 0,
            processes: (0..workload.ranks()).map(process).collect(),
            files: workload.files.clone(),
            handles,
            views: workload.views.clone(),
            ..Tables::default()
        }
    }
}

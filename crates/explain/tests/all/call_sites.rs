//! What each line of a program did, within its phases, and which line a finding is about.

use pio_explain::findings::Kind;
use pio_explain::{CallSiteId, Explanation};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, MarkNameId, Process, ProcessId, Tables, Target,
};

const MS: u64 = 1_000_000;
const LOAD: CallSiteId = CallSiteId { name: MarkNameId(0), line: 12 };
const SAVE: CallSiteId = CallSiteId { name: MarkNameId(1), line: 40 };
const EPOCH: MarkNameId = MarkNameId(2);
const WAIT: MarkNameId = MarkNameId(3);
/// Files that each of the processes opens.
const FILES: u32 = 200;
const PIECES: u64 = 32;

/// Process 0 marks two epochs and a wait in each; the others read files in small pieces, half of them in each epoch, each file
/// opened at one line, and the last also at another.
fn job(processes: u32) -> (Tables, Vec<Event>) {
    let process = |pid| Process {
        rank: None,
        pid,
        host: "node".into(),
        command: "python train.py".into(),
        start_ns: 0,
        end_ns: Some(2000 * MS),
    };
    let names = ["load in /a/train.py through numpy", "save in /a/train.py", "epoch", "batch wait"];
    let mut tables = Tables {
        processes: (0..processes).map(process).collect(),
        mark_names: names.map(String::from).into(),
        ..Tables::default()
    };
    let mut events = Vec::new();
    for epoch in 0..2 {
        for (name, from_ms, to_ms) in [(EPOCH, 0, 990), (WAIT, 100, 500)] {
            events.push(Event {
                target: Target::Mark { name, number: epoch },
                elapsed_ns: (to_ms - from_ms) * MS,
                ..Event::new(Call::Phase, ProcessId(0), (1000 * epoch + from_ms) * MS)
            });
        }
    }
    for process in 1..processes {
        for file in 0..FILES {
            let id = FileId(tables.files.len() as u32);
            tables.files.push(File { path: format!("/data/{process}/{file}") });
            let epoch = u64::from(file % 2);
            let mut at = (1000 * epoch + u64::from(file) * 4) * MS + u64::from(process);
            let sites = if file == FILES - 1 { vec![LOAD, SAVE] } else { vec![LOAD] };
            for site in sites {
                let handle = Some(HandleId(tables.handles.len() as u32));
                tables.handles.push(Handle {
                    file: id,
                    process: ProcessId(process),
                    ranks: 1,
                    collective: 0,
                });
                let call = |call, start_ns, elapsed_ns| Event {
                    handle,
                    elapsed_ns,
                    ..Event::new(call, ProcessId(process), start_ns)
                };
                let flags = if epoch == 0 { Flags::COLD } else { Flags::NONE };
                let target = Target::Mark { name: site.name, number: site.line };
                events.push(Event { target, flags, ..call(Call::Open, at, 1000) });
                for piece in 0..PIECES {
                    at += 50_000;
                    let target = Target::Extent { offset: piece * 512 };
                    let read = call(Call::Read, at, 40_000);
                    events.push(Event { target, size: 512, result: 512, ..read });
                }
                events.push(call(Call::Close, at + 50_000, 1000));
                at += 60_000;
            }
        }
    }
    events.sort_by_key(|event| event.start_ns);
    (tables, events)
}

fn explained(processes: u32) -> Explanation {
    let (tables, events) = job(processes);
    Explanation::of(&tables, events)
}

#[test]
fn a_line_has_what_was_done_through_what_it_opened() {
    let found = explained(2);
    let [load, save] = found.call_sites.as_slice() else { panic!("{:?}", found.call_sites) };
    assert_eq!(load.call_site().to_string(), "/a/train.py:12 load, through numpy");
    assert_eq!((load.id, save.id), (LOAD, SAVE));
    assert_eq!(found.call_site(SAVE).map(|site| site.function), Some("save"));
    let files = u64::from(FILES);
    assert_eq!((load.opens.count, save.opens.count), (files, 1));
    // Files of the first epoch were not in memory.
    assert_eq!(load.moved.from_storage.bytes, files / 2 * PIECES * 512);
    assert_eq!(load.moved.from_memory.bytes, files / 2 * PIECES * 512);
    assert_eq!((save.moved.from_memory.bytes, save.moved.other.count), (PIECES * 512, 1));
    assert_eq!(save.all().time_ns, PIECES * 40_000 + 2000);
}

#[test]
fn phases_tell_which_line_their_calls_are_of() {
    let found = explained(2);
    let marked = &found.marked;
    let (epoch, wait) =
        (marked.find("epoch").expect("the name"), marked.find("batch wait").expect("the name"));
    let first = &marked.names[epoch].numbers[0].1;
    let of_line: Vec<_> = first.by_site.iter().map(|(site, tally)| (*site, tally.bytes)).collect();
    assert_eq!(of_line, [(LOAD, u64::from(FILES) / 2 * PIECES * 512)]);
    // All calls of a line but those between epochs are in one of them, and a wait has those of its own time.
    let load = &found.call_sites[0];
    let within = |name| load.within_ns.iter().find(|(known, _)| *known == name).map(|(_, time_ns)| *time_ns);
    let sum = |name: usize| marked.names[name].sum.by_site[&LOAD].time_ns;
    assert_eq!((within(epoch), within(wait)), (Some(sum(epoch)), Some(sum(wait))));
    assert_eq!(sum(epoch), load.all().time_ns);
    assert!(sum(wait) * 3 < sum(epoch) * 2 && sum(wait) * 3 > sum(epoch), "{} of {}", sum(wait), sum(epoch));
}

#[test]
fn findings_name_the_lines_of_their_files() {
    // Of many processes events are looked at in another order.
    for processes in [2, 300] {
        let (tables, mut events) = job(processes);
        if processes == 300 {
            events.retain(|event| event.process.0 > 0);
        }
        let found = Explanation::of(&tables, events);
        let small = found.findings.iter().find(|one| one.kind == Kind::SmallReads).expect("the finding");
        let [load, save] = small.call_sites.as_slice() else { panic!("{:?}", small.call_sites) };
        assert_eq!((load.id, save.id), (LOAD, SAVE), "{processes}");
        assert_eq!(load.calls + save.calls, small.cost.calls);
        // Two lines opened a file, and are taken to have read half of it each; what is read a second time is another finding.
        assert_eq!(save.calls, u64::from(processes - 1) * PIECES / 2, "{:?}", small.cost);
    }
}

#[test]
fn programs_without_python_have_none() {
    let (mut tables, mut events) = job(2);
    for event in events.iter_mut().filter(|event| event.call == Call::Open) {
        event.target = Target::None;
    }
    assert_eq!(Explanation::of(&tables, events.clone()).call_sites, []);
    events.retain(|event| event.call != Call::Phase);
    tables.mark_names.clear();
    let found = Explanation::of(&tables, events);
    assert_eq!(found.call_sites, []);
    assert!(found.findings.iter().all(|finding| finding.call_sites.is_empty()));
}

//! What a cache does in the cases that a user thinks of first.

use std::collections::VecDeque;

use pio_cache::{
    Action, Cache, Event, FileId, Policy, ProcessId, ReadAhead, RequestId, Settings, SettingsError,
    TransferId, Writes,
};

const FILE: FileId = FileId(7);
const PROCESS: ProcessId = ProcessId(0);

fn settings() -> Settings {
    Settings {
        capacity_bytes: 1 << 20,
        block_bytes: 4096,
        policy: Policy::Lru,
        read_ahead: ReadAhead::Off,
        writes: Writes::Behind { dirty_limit_bytes: 64 << 10 },
        process_limit_bytes: None,
    }
}

fn handle(cache: &mut Cache, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    cache.handle(event, &mut actions);
    actions
}

fn read(request: u64, offset: u64, length: u64) -> Event {
    Event::Read { request: RequestId(request), process: PROCESS, file: FILE, offset, length }
}

fn write(request: u64, offset: u64, length: u64) -> Event {
    Event::Write { request: RequestId(request), process: PROCESS, file: FILE, offset, length }
}

fn fetch(transfer: u32, offset: u64, length: u64, ahead: bool) -> Action {
    Action::Fetch { transfer: TransferId(transfer), process: PROCESS, file: FILE, offset, length, ahead }
}

fn copy(request: u64, offset: u64, length: u64) -> Action {
    Action::Copy { request: RequestId(request), offset, length }
}

fn complete(request: u64) -> Action {
    Action::Complete { request: RequestId(request) }
}

#[test]
fn sequential_reads_find_what_was_read_ahead() {
    let mut cache = Cache::new(Settings { read_ahead: ReadAhead::JustRead, ..settings() }).unwrap();
    handle(&mut cache, Event::Size { file: FILE, bytes: 40960 });
    let actions = handle(&mut cache, read(1, 0, 16384));
    assert_eq!(actions, [fetch(0, 0, 16384, false), fetch(1, 16384, 16384, true)]);
    let actions = handle(&mut cache, Event::Fetched { transfer: TransferId(0) });
    assert_eq!(actions, [copy(1, 0, 16384), complete(1)]);
    handle(&mut cache, Event::Fetched { transfer: TransferId(1) });
    // The next is here; read ahead goes no further than the file.
    let actions = handle(&mut cache, read(2, 16384, 16384));
    let [first, fetched, done] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((first, done), (&copy(2, 16384, 16384), &complete(2)));
    assert!(matches!(fetched, Action::Fetch { offset: 32768, length: 8192, ahead: true, .. }), "{actions:?}");
    let counted = cache.statistics();
    assert_eq!((counted.reads_hit, counted.hit_bytes, counted.missed_bytes), (1, 16384, 16384));
    assert_eq!((counted.ahead_bytes, counted.ahead_used_bytes), (24576, 16384));
}

#[test]
fn reads_elsewhere_are_not_followed() {
    let mut cache = Cache::new(Settings { read_ahead: ReadAhead::JustRead, ..settings() }).unwrap();
    let actions = handle(&mut cache, read(1, 8192, 4096));
    assert_eq!(actions, [fetch(0, 8192, 4096, false)]);
}

#[test]
fn a_miss_that_is_on_its_way_is_joined() {
    let mut cache = Cache::new(settings()).unwrap();
    assert_eq!(handle(&mut cache, read(1, 0, 8192)), [fetch(0, 0, 8192, false)]);
    assert_eq!(handle(&mut cache, read(2, 4096, 100)), []);
    let actions = handle(&mut cache, Event::Fetched { transfer: TransferId(0) });
    assert_eq!(actions, [copy(1, 0, 8192), complete(1), copy(2, 4096, 100), complete(2)]);
    assert_eq!(cache.statistics().joined_bytes, 100);
}

#[test]
fn a_writer_goes_on_until_the_dirty_limit_is_reached() {
    let mut cache = Cache::new(settings()).unwrap();
    let limit = 64 << 10;
    let actions = handle(&mut cache, write(1, 0, limit));
    let below = |transfer, offset, length| Action::Write {
        transfer: TransferId(transfer),
        file: FILE,
        offset,
        length,
    };
    assert_eq!(actions, [copy(1, 0, limit), below(0, 0, limit), complete(1)]);
    assert_eq!(handle(&mut cache, write(2, limit, 4096)), []);
    assert_eq!(cache.statistics().waits_for_dirty_limit, 1);
    let actions = handle(&mut cache, Event::Written { transfer: TransferId(0) });
    let [copied, written, done] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((copied, done), (&copy(2, limit, 4096), &complete(2)));
    assert!(matches!(written, Action::Write { .. }));
}

#[test]
fn a_writer_through_waits_and_a_writer_back_does_not_write() {
    let mut cache = Cache::new(Settings { writes: Writes::Through, ..settings() }).unwrap();
    let actions = handle(&mut cache, write(1, 0, 4096));
    assert!(matches!(actions[..], [Action::Copy { .. }, Action::Write { .. }]), "{actions:?}");
    let actions = handle(&mut cache, Event::Written { transfer: TransferId(0) });
    assert_eq!(actions, [complete(1)]);

    let writes = Writes::Back { dirty_limit_bytes: 8192 };
    let mut cache = Cache::new(Settings { writes, ..settings() }).unwrap();
    assert_eq!(handle(&mut cache, write(1, 0, 4096)), [copy(1, 0, 4096), complete(1)]);
    assert_eq!(handle(&mut cache, write(2, 0, 4096)), [copy(2, 0, 4096), complete(2)]);
    let actions = handle(&mut cache, Event::Flush { request: RequestId(3), file: FILE });
    assert!(matches!(actions[..], [Action::Write { offset: 0, length: 4096, .. }]), "{actions:?}");
    assert_eq!(handle(&mut cache, Event::Written { transfer: TransferId(0) }), [complete(3)]);
}

/// Main memory over a solid-state disk: what the upper cache wants of below is a request to the lower one.
#[test]
fn caches_can_be_stacked() {
    let mut memory = Cache::new(Settings { capacity_bytes: 8192, ..settings() }).unwrap();
    let mut ssd = Cache::new(settings()).unwrap();
    let mut from_disk = 0;
    for round in 0..3 {
        for block in 0..4 {
            let mut upper = handle(&mut memory, read(round * 4 + block, block * 4096, 4096));
            while let Some(action) = upper.pop() {
                let Action::Fetch { transfer, process, file, offset, length, .. } = action else { continue };
                let request = RequestId(transfer.0.into());
                let mut lower = handle(&mut ssd, Event::Read { request, process, file, offset, length });
                while let Some(action) = lower.pop() {
                    match action {
                        Action::Fetch { transfer, length, .. } => {
                            from_disk += length;
                            lower.extend(handle(&mut ssd, Event::Fetched { transfer }));
                        }
                        Action::Complete { .. } => {
                            upper.extend(handle(&mut memory, Event::Fetched { transfer }))
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    // A scan that is larger than memory misses there every time, and below only the first.
    assert_eq!(memory.statistics().missed_bytes, 12 * 4096);
    assert_eq!(from_disk, 4 * 4096);
    assert!(memory.is_idle() && ssd.is_idle());
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |settings| Cache::new(settings).err().unwrap().to_string();
    assert_eq!(
        refused(Settings { block_bytes: 0, ..settings() }),
        "a cache's block has 0 bytes: expected at least 1"
    );
    assert_eq!(
        refused(Settings { capacity_bytes: 100, ..settings() }),
        "a cache's size is 100 bytes: expected at least a block of 4096"
    );
    let writes = Writes::Behind { dirty_limit_bytes: 10 };
    assert!(refused(Settings { writes, ..settings() }).starts_with("a cache's dirty limit is 10 bytes"));
    let policy = Policy::Slru { segments: 0 };
    assert!(refused(Settings { policy, ..settings() }).contains("expected 1 to 64 segments"));
    assert_eq!("2q".parse::<Policy>(), Err(SettingsError::UnknownPolicy("2q".to_owned())));
    for policy in Policy::ALL {
        assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
    }
}

#[test]
fn many_processes_wait_for_room_and_get_it_in_their_order() {
    // Each transfer that ends lets one go on. If it looked at all that wait, or each read at all processes, this would take
    // minutes.
    let processes = 200_000;
    let settings = Settings { capacity_bytes: 4 * 4096, read_ahead: ReadAhead::JustRead, ..settings() };
    let mut cache = Cache::new(settings).unwrap();
    let (mut fetching, mut complete) = (VecDeque::new(), Vec::new());
    let mut note = |actions: Vec<Action>, fetching: &mut VecDeque<TransferId>| {
        for action in actions {
            match action {
                Action::Fetch { transfer, .. } => fetching.push_back(transfer),
                Action::Complete { request } => complete.push(request.0),
                _ => {}
            }
        }
    };
    for process in 0..processes {
        // Nobody reads on.
        let offset = (u64::from(process) + 1) * 4096;
        let (request, process) = (RequestId(process.into()), ProcessId(process));
        let read = Event::Read { request, process, file: FILE, offset, length: 4096 };
        note(handle(&mut cache, read), &mut fetching);
    }
    while let Some(transfer) = fetching.pop_front() {
        note(handle(&mut cache, Event::Fetched { transfer }), &mut fetching);
    }
    assert!(complete.into_iter().eq(0..u64::from(processes)));
    assert!(cache.is_idle());
}

/// A gigabyte in 4 KiB blocks costs what one block costs: a handful of runs, not a quarter of a million.
#[test]
fn a_large_access_is_one_transfer() {
    let capacity_bytes = 4 << 30;
    let mut cache = Cache::new(Settings { capacity_bytes, ..settings() }).unwrap();
    let actions = handle(&mut cache, read(1, 0, 1 << 30));
    assert_eq!(actions, [fetch(0, 0, 1 << 30, false)]);
    let actions = handle(&mut cache, Event::Fetched { transfer: TransferId(0) });
    assert_eq!(actions, [copy(1, 0, 1 << 30), complete(1)]);
}

//! What is wrong with the description of central-queue switches is named: file, line, and what is allowed.

// A test that cannot set up its scene fails there.

use pio_machine::{Machine, Switching};

const TEXT: &str = include_str!("../../../../machines/pios-64.toml");

fn message(line: &str, instead: &str) -> String {
    assert!(TEXT.contains(line), "the description has no '{line}'");
    Machine::parse("my.toml", &TEXT.replace(line, instead)).unwrap_err().to_string()
}

#[test]
fn the_paper_s_switch_is_read() {
    let machine = Machine::parse("my.toml", TEXT).unwrap();
    let Switching::CentralQueue(queue) = &machine.network.switching else { panic!("{machine:?}") };
    assert_eq!((queue.chunks_of(512), queue.chunks_of(0), queue.shared_chunks(8)), (32, 1, 120));
    assert_eq!(Machine::parse("its own", &machine.to_toml("")).unwrap(), machine);
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (line, instead, expected) in [
        ("chunks = 128", "chunks = 32", "central-queue.chunks = 32: expected at least 33"),
        (
            "buffer = \"4 KiB\"",
            "buffer = \"511 B\"",
            "adapter.buffer = \"511 B\": expected room for a packet of 512 B",
        ),
        (
            "latency = \"199.5 ns\"",
            "latency = \"1 ns\"",
            "latency = \"1 ns\": expected no less than bypass = \"66.5 ns\"",
        ),
        ("packet = \"512 B\"", "packet = \"0 B\"", "expected a size from \"1 B\" to \"1 MiB\""),
        ("reserved = 1", "reserved = 0", "reserved = 0: expected a whole number from 1 to 65536"),
        ("reserved = 1", "slots = 1", "unknown key 'network.central-queue.slots'"),
    ] {
        let found = message(line, instead);
        assert!(found.contains(expected), "{found}");
    }
}

//! The section `[io-node]`: alone, in a machine, written and read again, and what is wrong with one.

// A test that cannot set up its scene fails there.

use std::fs;

use pio_machine::disk::{Discipline, Disk, RaidLevel};
use pio_machine::{IoNode, Machine};

const SECTION: &str = include_str!("../../../../machines/io-nodes/baylor-1995.toml");
const MACHINE: &str = include_str!("../../../../machines/sp-argonne.toml");

/// A machine with this section.
fn machine(section: &str) -> Result<Machine, String> {
    Machine::parse("my.toml", &format!("{MACHINE}\n{section}")).map_err(|error| error.to_string())
}

#[test]
fn the_node_of_baylor_has_their_adapter_and_disks() {
    let node = IoNode::of_baylor().unwrap();
    assert_eq!((node.adapter.bytes_per_second(), node.disks.count), (85_000_000, 6));
    assert_eq!((node.disks.queue, node.disks.array), (Discipline::Fcfs, 1));
    assert_eq!(machine(SECTION).unwrap().io_node, Some(node));
    assert_eq!(Machine::built_in("sp-argonne").unwrap().io_node, None);
}

#[test]
fn what_is_written_reads_the_same() {
    let with = |disk: &str| {
        let start = SECTION.find("disk = ").unwrap();
        let machine = machine(&format!("{}{disk}\n", &SECTION[..start])).unwrap();
        assert_eq!(Machine::parse("again.toml", &machine.to_toml("")).unwrap(), machine);
        machine.io_node.unwrap().disks
    };
    with("disk = { count = 3, seek = \"9.5 ms\", bandwidth = \"5 MB/s\", array = 8, queue = \"look\" }");
    let raid = "raid = { level = 6, group = 10, failed = [3, 17], rebuild = { rate = \"50 MB/s\", bytes = \"4 TB\" } }";
    let disks = with(&format!("disk = {{ count = 20, seek = \"8 ms\", bandwidth = \"200 MB/s\", {raid} }}"));
    let raid = disks.raid.unwrap();
    assert_eq!((raid.level, raid.group, raid.failed), (RaidLevel::DoubleParity, 10, vec![3, 17]));
    let device =
        "solid-state = { read = \"80 us\", write = \"20 us\", bandwidth = \"2 GB/s\", channels = 4 }";
    let disks = with(&format!("disk = {{ count = 1, {device}, queue = \"sstf\" }}"));
    assert!(matches!(disks.disk, Disk::SolidState(device) if device.channels == 4));
}

const WITH_IO_NODES: &str = include_str!("../../../../machines/pios-64.toml");

/// What is wrong with the machine whose files are on I/O nodes, with these changes.
fn message(changes: &[(&str, &str)]) -> Option<String> {
    let text = changes.iter().fold(WITH_IO_NODES.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    Machine::parse("my.toml", &text).err().map(|error| error.to_string())
}

#[test]
fn strips_that_an_io_node_cannot_hold_are_refused() {
    let line = WITH_IO_NODES.lines().position(|line| line.starts_with("strip = ")).unwrap() + 1;
    let small = ("buffer = \"64 MiB\"", "buffer = \"16 KiB\"");
    let expected = format!(
        "my.toml:{line}: storage.strip = \"32 KiB\": expected at most io-node.buffer = \"16 KiB\", or an io-node.unit"
    );
    let found = message(&[small]).unwrap();
    assert!(found.starts_with(&expected), "{found}");
    // The node has a request for each of its disks.
    assert_eq!(message(&[small, ("unit = \"1 MiB\"", "unit = \"16 KiB\"")]), None);
}

#[test]
fn memory_of_an_io_node_is_not_divided_among_ranks() {
    let found = message(&[("shared = true", "shared = false")]).unwrap();
    assert!(found.contains("storage.cache.shared = false: expected true: an I/O node's memory"), "{found}");
    let found =
        message(&[("policy = \"lru\"", "policy = \"slru\""), ("block = \"4 KiB\"", "block = \"32 MiB\"")]);
    let expected = "storage.cache.block = \"32 MiB\": expected at most a 4th of storage.cache.size for slru";
    assert!(found.as_ref().is_some_and(|found| found.contains(expected)), "{found:?}");
}

const NVME: &str = include_str!("../../../../machines/io-nodes/nvme-p4500.toml");
const SATA: &str = include_str!("../../../../machines/io-nodes/sata-s4500.toml");

#[test]
fn flash_devices_are_read_and_written() {
    let burst = "burst = { size = \"64 GiB\", program = \"200 us\", idle = \"1 s\" }\ndepth = 32";
    let with_burst = SATA.replace("depth = 32", burst);
    for (text, raw_over_capacity) in [(NVME, 1.099), (SATA, 1.145), (&with_burst, 1.145)] {
        let machine = machine(text).unwrap();
        assert_eq!(Machine::parse("again.toml", &machine.to_toml("")).unwrap(), machine);
        let Disk::Flash(flash) = machine.io_node.unwrap().disks.disk else { panic!("flash was expected") };
        assert!((flash.raw_over_capacity() - raw_over_capacity).abs() < 0.001, "{flash:?}");
    }
}

#[test]
fn wrong_flash_devices_are_refused_by_key_and_reason() {
    let says = |from: &str, to: &str, expected: &str| {
        assert!(SATA.contains(from));
        let found = IoNode::parse("my.toml", &SATA.replace(from, to)).unwrap_err().to_string();
        assert!(found.starts_with("my.toml:") && found.contains(expected), "{found}");
    };
    let flash = "io-node.disk.flash";
    says(
        "blocks = 1024",
        "blocks = 900",
        &format!("{flash}.blocks = 900: expected at least 901: the capacity, and 6"),
    );
    says(
        "mapping = \"4 KiB\"",
        "mapping = \"3 KiB\"",
        &format!("{flash}.mapping = \"3 KiB\": expected a part of 32 KiB"),
    );
    says("mapping = \"4 KiB\"", "mapping = \"64 KiB\"", "expected a part of 32 KiB, a page of all planes");
    says(
        "buffer = \"16 MiB\"",
        "buffer = \"16 KiB\"",
        &format!("{flash}.buffer = \"16 KiB\": expected at least 32 KiB"),
    );
    says(
        "depth = 32",
        "burst = { size = \"4 KiB\", program = \"1 us\", idle = \"1 s\" }\ndepth = 32",
        "expected a size of at least 32 KiB, a page of all planes",
    );
    says(
        "depth = 32",
        "burst = { size = \"1 GiB\", idle = \"1 s\" }\ndepth = 32",
        "burst.program' is missing",
    );
    says("filled = true", "filled = 1", &format!("{flash}.filled = 1: expected true or false"));
    says("erase = ", "colour = 1\nerase = ", &format!("unknown key '{flash}.colour'"));
    says("depth = 32 ", "", &format!("'{flash}.depth' is missing"));
    says(
        "count = 1",
        "count = 1\nqueue = \"look\"",
        "io-node.disk.queue = \"look\": expected \"fcfs\": a flash device",
    );
    says("count = 1", "count = 1\narray = 2", "io-node.disk.array = 2: expected no array");
}

#[test]
fn a_group_of_the_examples_is_read_and_written() {
    let machine = machine(include_str!("../../../../machines/io-nodes/raid-6.toml")).unwrap();
    assert_eq!(Machine::parse("again.toml", &machine.to_toml("")).unwrap(), machine);
    let raid = machine.io_node.unwrap().disks.raid.unwrap();
    assert_eq!((raid.level.data(raid.group), raid.rebuild.unwrap().bytes), (8, 2_000_000_000_000));
}

#[test]
fn wrong_groups_are_refused_by_key_and_reason() {
    let says = |count: u32, raid: &str, expected: &str| {
        let to = format!("count = {count}, raid = {{ {raid} }}");
        let found = IoNode::parse("my.toml", &SECTION.replace("count = 6", &to)).unwrap_err().to_string();
        assert!(found.starts_with("my.toml:10: ") && found.contains(expected), "{found}");
    };
    let raid = "io-node.disk.raid";
    says(6, "level = 4", &format!("{raid}.level = 4: expected 0, 1, 5, 6 or 10"));
    for (count, level, needed) in [
        (2, 5, "at least 3 disks"),
        (3, 6, "at least 4 disks"),
        (1, 1, "at least 2 disks"),
        (3, 10, "an even number of disks"),
    ] {
        let expected = format!("{raid}.level = {level}: expected another level, or {needed} (found {count})");
        says(count, &format!("level = {level}"), &expected);
    }
    says(
        6,
        "level = 5, group = 4",
        &format!("{raid}.group = 4: expected a number from 3 of which the 6 disks"),
    );
    says(6, "level = 10, group = 3", &format!("{raid}.group = 3: expected an even number from 2"));
    says(
        6,
        "level = 5, failed = [6]",
        &format!("{raid}.failed = [6]: expected a list of 1 to 65536 whole numbers from 0 to 5"),
    );
    let lost = "expected disks whose loss the level survives, in each group";
    says(6, "level = 0, failed = [1]", lost);
    says(6, "level = 5, failed = [1, 2]", lost);
    says(6, "level = 6, failed = [1, 2, 3]", lost);
    says(6, "level = 10, failed = [2, 3]", lost);
    says(6, "level = 1, failed = [0, 1, 2, 3, 4, 5]", lost);
    says(
        6,
        "level = 5, rebuild = { rate = \"1 MB/s\", bytes = \"1 TB\" }",
        "expected nothing where no disk has failed",
    );
    says(6, "level = 5, spare = 1", &format!("unknown key '{raid}.spare'"));
    // One of each group, or of each pair.
    for raid in ["level = 5, group = 3, failed = [0, 5]", "level = 10, failed = [0, 3, 5]"] {
        let text = SECTION.replace("count = 6", &format!("count = 6, raid = {{ {raid} }}"));
        assert!(IoNode::parse("my.toml", &text).is_ok(), "{raid}");
    }
}

#[test]
fn a_drive_is_found_beside_the_description() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("test.diskspecs", include_str!("../drive/test.diskspecs")),
        ("test.model", include_str!("../drive/test.model")),
        ("test.seek", include_str!("../drive/test.seek")),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let section =
        SECTION.replace("seek = \"12.8 ms\", bandwidth = \"10 MB/s\"", "specs = \"test.diskspecs\"");
    let path = folder.path().join("my.toml");
    fs::write(&path, format!("{MACHINE}\n{section}")).unwrap();
    let machine = Machine::load(&path).unwrap();
    let Disk::Drive { drive, .. } = &machine.io_node.as_ref().unwrap().disks.disk else {
        panic!("a drive was expected")
    };
    assert_eq!(drive.name, "TEST");
    // The description is written into other folders, and read anew where a sweep changes a key.
    assert_eq!(Machine::parse("elsewhere/my.toml", &machine.to_toml("")).unwrap(), machine);
    let changed = machine.with("io-node.disk.queue", "look").unwrap();
    assert_eq!(changed.with("io-node.disk.queue", "fcfs").unwrap(), machine);
    let missing = IoNode::parse("nowhere/my.toml", &section).unwrap_err().to_string();
    assert!(missing.starts_with("nowhere/test.diskspecs: No such file"), "{missing}");
}

#[test]
fn wrong_nodes_are_refused_by_key_and_range() {
    let says = |from: &str, to: &str, expected: &str| {
        let found = machine(&SECTION.replace(from, to)).unwrap_err();
        assert!(found.contains(expected), "{found}");
    };
    says("\"80 MB/s\"", "\"0 MB/s\"", "io-node.bus = \"0 MB/s\": expected a bandwidth from");
    says("\"64 MiB\"", "\"1 B\"", "io-node.buffer = \"1 B\": expected a size from \"4 KiB\"");
    says("count = 6", "count = 0", "io-node.disk.count = 0: expected a whole number from 1 to 65536");
    says("\"fcfs\"", "\"lifo\"", "io-node.disk.queue = \"lifo\": expected \"fcfs\" or \"sstf\" or \"look\"");
    says("seek = \"12.8 ms\", ", "", "'io-node.disk.seek' is missing");
    says("unit = ", "colour = \"red\"\nunit = ", "unknown key 'io-node.colour'");
    let device = "solid-state = { read = \"1 us\", write = \"1 us\", bandwidth = \"1 GB/s\", channels = 1 }, array = 2";
    says("seek = \"12.8 ms\", bandwidth = \"10 MB/s\"", device, "io-node.disk.array = 2: expected no array");
}

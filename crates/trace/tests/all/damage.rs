//! Whatever happens to a file, its reader gives whole blocks of its events or a clear error. It never panics.

use crate::support::{small_job, tables, write};
use pio_trace::{Event, Trace, TraceError};

/// The events up to the first error, whether there was one, and the trace if it opened.
fn read(bytes: Vec<u8>) -> (Vec<Event>, bool, Result<Trace, TraceError>) {
    let trace = Trace::from_bytes(bytes, "cut.pio");
    let mut events = Vec::new();
    let mut failed = false;
    if let Ok(trace) = &trace {
        for event in trace.events() {
            match event {
                Ok(event) => events.push(event),
                Err(_) => failed = true,
            }
        }
    }
    (events, failed, trace)
}

#[test]
fn a_file_cut_anywhere_gives_the_whole_blocks_before() {
    let events = small_job();
    let whole = write(tables(), &events, 10);
    let mut seen = 0;
    for len in 0..whole.len() {
        let (found, failed, trace) = read(whole[..len].to_vec());
        assert!(!failed, "cut at {len}");
        match trace {
            Err(TraceError::NotATrace { .. }) => assert!(len < 8),
            Err(TraceError::Damaged { offset: 0, .. }) => assert!((8..16).contains(&len)),
            Err(error) => panic!("cut at {len}: {error}"),
            Ok(trace) => {
                let damage = trace.damage().unwrap();
                assert_eq!(damage.events_saved, found.len() as u64);
                assert_eq!(damage.offset + damage.bytes_lost, len as u64);
                assert_eq!(found, events[..found.len()]);
                assert!(found.len() % 10 == 0 || found.len() == events.len());
                assert!(found.len() >= seen, "a longer file gives no less");
                seen = found.len();
            }
        }
    }
    assert_eq!(seen, events.len());
}

#[test]
fn a_byte_changed_anywhere_is_noticed() {
    let events = small_job();
    let whole = write(tables(), &events, 10);
    for at in 0..whole.len() {
        for bit in [1u8, 0x10, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            let (found, failed, trace) = read(bytes);
            // All up to the damage, or all but one block.
            let lacks = |from: usize| {
                let behind = (from + 10).min(events.len());
                found.iter().eq(events[..from].iter().chain(&events[behind..]))
            };
            let is_whole = found == events[..found.len()] || (0..events.len()).step_by(10).any(lacks);
            assert!(is_whole && !failed, "byte {at}");
            let noticed = failed || trace.as_ref().map_or(true, |trace| trace.damage().is_some());
            assert!(noticed, "byte {at} changed by {bit:#x} went unnoticed");
            assert_eq!(trace.is_err(), at < 16, "only the file header is needed to open");
        }
    }
}

/// Some commands went on behind a damaged block, and others stopped there.
#[test]
fn a_damaged_block_costs_its_own_events() {
    let events = small_job();
    let whole = write(tables(), &events, 10);
    let trace = Trace::from_bytes(whole.clone(), "whole.pio").unwrap();
    let (first, second) = (trace.blocks()[0], trace.blocks()[1]);
    let (behind, duration_ns) = (trace.blocks()[2..].to_vec(), trace.duration_ns());
    // The blocks of events lie one behind the other, before the index.
    let stored = whole.windows(4).enumerate().filter(|(_, word)| word == b"PBLK").map(|(at, _)| at);
    let offsets: Vec<usize> = stored.collect();
    let at = offsets[offsets.len() - 1 - trace.blocks().len() + 1];
    let mut bytes = whole;
    bytes[at + second.file_bytes() as usize - 1] ^= 1;
    let (found, failed, trace) = read(bytes);
    let trace = trace.unwrap();
    assert!(!failed);
    assert_eq!(found, [&events[..10], &events[20..]].concat());
    assert_eq!(trace.blocks()[0], first);
    assert_eq!(trace.blocks()[1..], behind);
    assert_eq!((trace.event_count(), trace.duration_ns()), (found.len() as u64, duration_ns));
    let damage = trace.damage().unwrap();
    assert_eq!((damage.offset, damage.events_lost), (at as u64, Some(10)));
    assert_eq!((damage.events_saved, damage.bytes_lost), (found.len() as u64, second.file_bytes()));
    assert!(damage.to_string().contains("10 events in damaged blocks"), "{damage}");
}

#[test]
fn what_is_no_trace_is_named() {
    let open = |bytes: &[u8]| Trace::from_bytes(bytes.to_vec(), "run.pio").err().unwrap().to_string();
    assert_eq!(
        open(b"#!/bin/sh\nexit 0\n"),
        "run.pio: not a Pioscope trace (expected the bytes 'PIOTRACE' at 0, found '#!/bin/s')"
    );
    assert_eq!(
        open(b""),
        "run.pio: not a Pioscope trace (expected the bytes 'PIOTRACE' at 0, found an empty file)"
    );
    let mut newer = b"PIOTRACE\x0d\0\0\0".to_vec();
    newer.extend(crc32fast::hash(&newer).to_le_bytes());
    assert_eq!(open(&newer), "run.pio: version 13 is newer than this program reads (12): update Pioscope");
}

/// A block as `docs/design/format.md` draws it, with whatever lengths.
fn block(kind: u8, stored: &[u8], stored_len: u32, raw_len: u32, count: u32) -> Vec<u8> {
    let mut bytes = b"PBLK".to_vec();
    bytes.extend([kind, 0, 0, 0]);
    for field in [stored_len, raw_len, count, crc32fast::hash(stored)] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([0; 24]);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(stored);
    bytes
}

/// A trace of these blocks, without an index.
fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PIOTRACE\x01\0\0\0".to_vec();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(blocks.concat());
    bytes
}

fn damage_of(bytes: Vec<u8>) -> String {
    let trace = Trace::from_bytes(bytes, "hostile.pio").unwrap();
    assert_eq!(trace.event_count(), 0);
    trace.damage().unwrap().expected.clone()
}

#[test]
fn lengths_that_lie_are_refused() {
    let zip = |raw: &[u8]| zstd::bulk::compress(raw, 3).unwrap();
    let far = block(2, b"", u32::MAX, 100, 100);
    assert_eq!(damage_of(file(&[far])), "a block of 4294967295 bytes, found 0 before the end");
    let large = block(2, b"", 0, u32::MAX, 100);
    assert_eq!(damage_of(file(&[large])), "a block of at most 67108864 bytes, found 4294967295");
    let many = block(2, b"", 0, 100, 101);
    assert_eq!(damage_of(file(&[many])), "at most 100 entries in 100 bytes, found 101");
    let most = block(2, b"", 0, 1 << 20, 1 << 20);
    assert_eq!(damage_of(file(&[most])), "a block of 1 to 65536 events, found 1048576");
    // A note whose name claims to be 2^60 bytes long.
    let note = [3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
    let text = zip(&note);
    let long = block(1, &text, text.len() as u32, note.len() as u32, 1);
    assert_eq!(damage_of(file(&[long])), "the name of a note as definition 0 of a block");
    // More comes out of the payload than the header says.
    let bomb = zip(&vec![0; 1 << 24]);
    let small = block(1, &bomb, bomb.len() as u32, 100, 1);
    assert_eq!(damage_of(file(&[small])), "a block that decompresses to 100 bytes");
}

#[test]
fn tables_have_a_limit() {
    // The name of the job, over and over: each fits, but a reader must not have to go on for ever.
    let len = 60 << 20;
    let mut name = vec![1, 0x80, 0x80, 0x80, 0x1e];
    name.resize(name.len() + len, b' ');
    let stored = zstd::bulk::compress(&name, 3).unwrap();
    let names = block(1, &stored, stored.len() as u32, name.len() as u32, 1);
    let trace = Trace::from_bytes(file(&[names.clone(), names.clone()]), "names.pio").unwrap();
    assert_eq!(trace.tables().job.len(), len);
    assert_eq!(damage_of(file(&vec![names; 5])), "at most 268435456 bytes of definitions");
}

/// The blocks of a file: header and decompressed payload.
fn blocks(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rest = &bytes[16..];
    let mut blocks = Vec::new();
    while rest.starts_with(b"PBLK") {
        let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (stored_len, raw_len) = (number(8), number(12));
        let raw = zstd::bulk::decompress(&rest[52..52 + stored_len], raw_len).unwrap();
        blocks.push((rest[..52].to_vec(), raw));
        rest = &rest[52 + stored_len..];
    }
    blocks
}

/// A block of this header and another payload, its lengths and checksums right.
fn reseal(header: &[u8], raw: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(raw, 3).unwrap();
    let mut bytes = header[..48].to_vec();
    bytes[8..12].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&(raw.len() as u32).to_le_bytes());
    bytes[20..24].copy_from_slice(&crc32fast::hash(&stored).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(stored);
    bytes
}

/// Checksums catch accidents, not intent: here they are right and the payload is wrong.
#[test]
fn a_payload_changed_anywhere_is_decoded_safely() {
    let whole = write(tables(), &small_job(), 40);
    let parts = blocks(&whole);
    for changed in 0..parts.len() {
        for at in 0..parts[changed].1.len() {
            for bit in [1u8, 0x10, 0x80, 0xff] {
                let mut altered = parts.clone();
                altered[changed].1[at] ^= bit;
                let sealed: Vec<_> = altered.iter().map(|(header, raw)| reseal(header, raw)).collect();
                let (events, _, trace) = read(file(&sealed));
                let tables = trace.as_ref().unwrap().tables();
                for event in events {
                    assert!(event.process.index() < tables.processes.len());
                    assert!(event.handle.is_none_or(|handle| tables.file_of(handle).is_some()));
                    assert!(event.memory.is_none_or(|memory| memory.index() < tables.datatypes.len()));
                }
            }
        }
    }
}

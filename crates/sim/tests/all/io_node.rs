//! I/O nodes against closed forms, and the node of Baylor et al. 1995 against what their text says of it.

use pio_machine::{Bandwidth, IoNode as Description};
use pio_plan::Direction::{self, Read, Write};
use pio_sim::io_node::{Adapter, Between, IoDone, IoNode, IoNodeError, IoRequest, OpenLoad, Processing};
use pio_sim::kernel::{Estimate, Model, Time};

fn of_baylor() -> Description {
    Description::of_baylor().unwrap()
}

/// A node whose one disk is all that takes time.
fn only_a_disk(disk: &str) -> Description {
    let text = format!(
        "[io-node]\nadapter = \"10000 GB/s\"\ncpu = {{ request = \"0 s\", response = \"0 s\" }}\nbus = \"10000 GB/s\"\n\
         channel = \"10000 GB/s\"\nbuffer = \"1 GiB\"\nunit = \"1 MiB\"\ndisk = {{ count = 1, {disk} }}\n"
    );
    Description::parse("test.toml", &text).unwrap()
}

fn request(id: u32, direction: Direction, bytes: u64, hit: bool) -> IoRequest {
    IoRequest {
        id,
        direction,
        offset: 0,
        bytes,
        message: if direction == Read { 200 } else { 0 },
        hit,
        between: Between::NetworkAndDisk,
    }
}

/// Serves requests that come at picoseconds, in order; everything until nothing is left to do.
fn serve(node: &mut IoNode, requests: &[(u64, IoRequest)]) -> Vec<IoDone> {
    let mut done = Vec::new();
    for (time, request) in requests {
        while node.next_time().is_some_and(|next| next < Time(*time)) {
            node.advance(Time(*time - 1), &mut done);
        }
        node.arrive(Time(*time), *request).unwrap();
    }
    node.advance_through(Time::NEVER, &mut done);
    done
}

#[test]
fn a_request_that_is_alone_takes_what_one_reckons_to_the_picosecond() {
    let alone = |direction, hit| {
        let mut node = IoNode::new(&of_baylor(), Adapter::Own);
        let done = serve(&mut node, &[(0, request(7, direction, 32_768, hit))]);
        assert_eq!((done.len(), done[0].id), (1, 7));
        done[0].done.0
    };
    // 200 B and 32 KB at 85 MB/s; 32 KB at 17, 80 and 10 MB/s; each rounded up.
    let (message, adapter, channel, bus) = (2_352_942, 385_505_883, 1_927_529_412, 409_600_000);
    let (request, response, disk) = (100_000_000, 50_000_000, 12_800_000_000 + 3_276_800_000);
    assert_eq!(alone(Read, true), message + request + channel + bus + response + adapter);
    assert_eq!(alone(Read, false), message + request + disk + bus + response + adapter);
    assert_eq!(alone(Write, true), adapter + request + bus + channel);
    assert_eq!(alone(Write, false), adapter + request + bus + disk);
}

#[test]
fn without_its_adapter_a_node_takes_that_much_less() {
    let time = |adapter| {
        serve(&mut IoNode::new(&of_baylor(), adapter), &[(0, request(0, Read, 4096, true))])[0].done.0
    };
    assert_eq!(time(Adapter::Own) - time(Adapter::OfTheNetwork), 2_352_942 + 48_188_236);
}

#[test]
fn a_disk_with_random_arrivals_is_an_m_d_1_queue() {
    // 8 ms and 4 KB at 4.096 MB/s: 9 ms. Utilisation 0.72.
    let node = only_a_disk("seek = \"8 ms\", bandwidth = \"4096 kB/s\"");
    let load =
        OpenLoad { rate: 80.0, bytes: 4096, message: 0, reads: 1.0, misses: 1.0, requests: 200_000, seed: 5 };
    let found = load.run(&node, Adapter::Own).unwrap();
    let mean = found.read_miss.unwrap().mean;
    // Pollaczek and Khinchine; the interval of this seed's mean is about ±1.5 %.
    let expected = 0.009 * (1.0 + 0.72 / (2.0 * (1.0 - 0.72)));
    assert!((mean / expected - 1.0).abs() < 0.02, "{mean} is not {expected}");
    let utilisation = found.in_use.disks.seconds() / found.end.since(Time(0)).seconds();
    assert!((utilisation - 0.72).abs() < 0.01, "{utilisation}");
}

#[test]
fn at_saturation_the_disks_are_what_bounds_it() {
    let load = OpenLoad { rate: 3000.0, requests: 60_000, ..load(3000.0, 32_768) };
    // A small buffer, so that few misses are still inside at the end.
    let node = Description { buffer: 8 << 20, ..of_baylor() };
    let found = load.run(&node, Adapter::Own).unwrap();
    let seconds = found.end.since(Time(0)).seconds();
    let disks = found.in_use.disks.seconds() / 6.0 / seconds;
    assert!(disks > 0.97 && disks < 1.02, "{disks}");
    // What is done is what six disks can do for the three requests in ten that need one.
    let bound = 6.0 / (0.3 * 0.016_076_8);
    let rate = 60_000.0 / seconds;
    assert!(rate > 0.95 * bound && rate < 1.02 * bound, "{rate} of {bound}");
}

#[test]
fn a_full_buffer_keeps_requests_outside_in_their_order() {
    let mut description = of_baylor();
    description.buffer = 65_536;
    let mut node = IoNode::new(&description, Adapter::OfTheNetwork);
    let requests: Vec<(u64, IoRequest)> = [(0, 32_768), (1, 32_768), (2, 65_536), (3, 4096)]
        .map(|(id, bytes)| (0, request(id, Write, bytes, true)))
        .into();
    let done = serve(&mut node, &requests);
    assert_eq!(node.blocked(), 2);
    assert_eq!(node.present(), 0);
    let order: Vec<u32> = done.iter().map(|done| done.id).collect();
    assert_eq!(order, [0, 1, 2, 3]);
    // The third has all of the buffer: it enters when both before it have left, and takes its own time.
    let alone = 100_000_000 + 819_200_000 + 3_855_058_824;
    assert_eq!(done[2].done.0, done[1].done.0 + alone);
    assert!(done[3].came == Time(0) && done[3].done > done[2].done);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let mut node = IoNode::new(&of_baylor(), Adapter::Own);
    for bytes in [0, (64 << 20) + 1] {
        let error = node.arrive(Time(0), request(0, Read, bytes, true)).unwrap_err();
        assert_eq!(error, IoNodeError::Size { bytes, most: 64 << 20 });
    }
    let error = OpenLoad { misses: 1.5, ..load(5.0, 4096) }.run(&of_baylor(), Adapter::Own).unwrap_err();
    assert_eq!(error.to_string(), "misses = 1.5: expected a probability from 0 to 1");
    let error = load(0.0, 4096).run(&of_baylor(), Adapter::Own).unwrap_err();
    assert_eq!(error.to_string(), "rate = 0: expected above 0 and at most 1e9 a second");
}

#[test]
fn a_solid_state_device_serves_as_many_as_it_has_channels() {
    let device =
        "solid-state = { read = \"80 us\", write = \"20 us\", bandwidth = \"100 MB/s\", channels = 2 }";
    let mut node = IoNode::new(&only_a_disk(device), Adapter::OfTheNetwork);
    let requests = [0, 1, 2].map(|id| (0, IoRequest { offset: 0, ..request(id, Read, 100_000, false) }));
    let done = serve(&mut node, &requests);
    let times: Vec<u64> = done.iter().map(|done| done.done.0 / 1_000_000).collect();
    assert_eq!(times, [1080, 1080, 2160]);
}

#[test]
fn what_a_solid_state_device_serves_at_a_time_shares_its_channel_to_the_bus() {
    let device =
        "solid-state = { read = \"80 us\", write = \"20 us\", bandwidth = \"100 MB/s\", channels = 4 }";
    let mut machine = only_a_disk(device);
    machine.channel = Bandwidth::from_bytes_per_second(200_000_000);
    let mut node = IoNode::new(&machine, Adapter::OfTheNetwork);
    let requests = [0, 1, 2, 3].map(|id| (0, IoRequest { offset: 0, ..request(id, Read, 100_000, false) }));
    let times: Vec<u64> = serve(&mut node, &requests).iter().map(|done| done.done.0 / 1_000_000).collect();
    // Two at a time are what it takes; four pass it in turn, each in half of what its data take on the device.
    assert_eq!(times, [1080, 1080, 1500, 2000]);
}

/// Two channels of two dies, 64 MiB for 40.
const FLASH: &str = "flash = { capacity = \"40 MiB\", filled = true, channels = 2, dies = 2, planes = 2, blocks = 64, \
     pages = 16, page = \"8 KiB\", mapping = \"4 KiB\", read = \"50 us\", program = \"400 us\", erase = \"2 ms\", \
     bus = \"409.6 MB/s\", link = \"819.2 MB/s\", latency = \"5 us\", controller = \"1 us\", buffer = \"1 MiB\", \
     depth = 64 }";

#[test]
fn a_flash_device_is_a_disk_like_others() {
    let mut node = IoNode::new(&only_a_disk(FLASH), Adapter::OfTheNetwork);
    // Two dies read at the same time; the second's data wait for the link, until 71. The bus adds less than a nanosecond.
    let far = |id, offset| IoRequest { offset, ..request(id, Read, 4096, false) };
    let done = serve(&mut node, &[(0, far(0, 0)), (0, far(1, 16_384))]);
    let times: Vec<u64> = done.iter().map(|done| done.done.0 / 1_000_000).collect();
    assert_eq!(times, [71, 76]);
    let beyond = IoRequest { offset: 40 << 20, ..request(0, Read, 4096, false) };
    let error = node.arrive(done[1].done, beyond).unwrap_err();
    assert_eq!(error, IoNodeError::Beyond { offset: 40 << 20, end: (40 << 20) + 4096, bytes: 40 << 20 });
}

#[test]
fn flash_under_an_open_load_is_as_busy_as_its_reads_make_it() {
    let load = OpenLoad {
        rate: 30_000.0,
        bytes: 4096,
        message: 0,
        reads: 1.0,
        misses: 1.0,
        requests: 60_000,
        seed: 2,
    };
    let found = load.run(&only_a_disk(FLASH), Adapter::OfTheNetwork).unwrap();
    // Each read keeps one of four dies busy for 50 us. At random the rate is within 1 % (three standard errors: 1.2 %).
    let busy = found.in_use.disks.seconds() / 4.0 / found.end.since(Time(0)).seconds();
    assert!((busy / (30_000.0 * 50e-6 / 4.0) - 1.0).abs() < 0.012, "{busy}");
    // Waiting for a die is that of M/D/1 at a utilisation of 0.375; that for channel and link is less, and above 0.
    let wait = found.read_miss.unwrap().mean - 71e-6;
    let die = 50e-6 * 0.375 / (2.0 * (1.0 - 0.375));
    assert!((die..1.5 * die).contains(&wait), "{wait} beside {die}");
}

/// A node whose disks, in a group of level 5, are all that takes time.
fn only_a_group(failed: &str) -> Description {
    let raid = format!("raid = {{ level = 5{failed} }}");
    let mut node = only_a_disk("seek = \"10 ms\", bandwidth = \"1 MB/s\"");
    let text = format!(
        "[io-node]\nadapter = \"1 GB/s\"\ncpu = {{ request = \"0 s\", response = \"0 s\" }}\nbus = \"1 GB/s\"\n\
         channel = \"1 GB/s\"\nbuffer = \"1 GiB\"\nunit = \"64 KiB\"\n\
         disk = {{ count = 5, seek = \"10 ms\", bandwidth = \"1 MB/s\", {raid} }}\n"
    );
    node.disks = Description::parse("test.toml", &text).unwrap().disks;
    node.unit = 65_536;
    node
}

#[test]
fn a_group_is_the_disks_of_a_node() {
    let time = |node: &Description, request: IoRequest| {
        serve(&mut IoNode::new(node, Adapter::OfTheNetwork), &[(0, request)])[0].done.0 / 1_000_000
    };
    // Old data and parity, then both anew: twice 10 ms and 4 KB.
    let whole = only_a_group("");
    assert_eq!(time(&whole, request(0, Write, 4096, false)), 28_192);
    // Four strips and their parity at once.
    assert_eq!(time(&whole, request(0, Write, 4 * 65_536, false)), 10_000 + 65_536);
}

#[test]
fn a_degraded_group_is_as_busy_as_its_reads_make_it() {
    let load =
        OpenLoad { rate: 10.0, bytes: 4096, message: 0, reads: 1.0, misses: 1.0, requests: 20_000, seed: 3 };
    let busy = |failed: &str| {
        let found = load.run(&only_a_group(failed), Adapter::OfTheNetwork).unwrap();
        found.in_use.disks.seconds() / found.end.since(Time(0)).seconds()
    };
    // One read in five is of the lost strip and reads four others: 4/5 + 4/5 operations for each, where it was one. The
    // same reads come in both runs; how many are of the lost strip is within three standard errors (2.2 %).
    let ratio = busy(", failed = [1]") / busy("");
    assert!((ratio / 1.6 - 1.0).abs() < 0.022, "{ratio}");
}

#[test]
fn a_synchronous_array_is_one_disk_as_many_times_as_fast() {
    let time = |disk: &str| {
        let mut node = IoNode::new(&only_a_disk(disk), Adapter::OfTheNetwork);
        let miss = IoRequest { offset: 512 << 10, ..request(0, Write, 80_000, false) };
        serve(&mut node, &[(0, miss)])[0].done.0 / 1_000_000
    };
    assert_eq!(time("seek = \"10 ms\", bandwidth = \"1 MB/s\""), 90_000);
    assert_eq!(time("seek = \"10 ms\", bandwidth = \"1 MB/s\", array = 8"), 20_000);
}

fn load(rate: f64, bytes: u64) -> OpenLoad {
    OpenLoad { rate, bytes, message: 200, reads: 0.67, misses: 0.3, requests: 60_000, seed: 1 }
}

fn ms(estimate: &Option<Estimate>) -> f64 {
    estimate.unwrap().mean * 1e3
}

/// Baylor et al. 1995, section IV, "I/O Node Results", within 10 %.
#[test]
fn the_node_of_baylor_does_what_their_text_says_of_it() {
    let run = |rate, bytes| load(rate, bytes).run(&of_baylor(), Adapter::Own).unwrap();
    let [quiet_4k, busy_4k] = [5.0, 650.0].map(|rate| run(rate, 4096));
    let [quiet_32k, busy_32k] = [5.0, 650.0].map(|rate| run(rate, 32_768));
    // "relatively small (hundreds of microseconds for 4K bytes and approximately 3 milliseconds for 32K bytes) for request
    // rates less than 650 requests/sec", "independent of the I/O request rate"
    for found in [&quiet_4k, &busy_4k] {
        assert!([&found.read_hit, &found.write_hit].iter().all(|hit| (0.2..1.0).contains(&ms(hit))));
    }
    for found in [&quiet_32k, &busy_32k] {
        assert!([&found.read_hit, &found.write_hit].iter().all(|hit| (2.7..3.3).contains(&ms(hit))));
    }
    let rise = |of: fn(&Processing) -> &Option<Estimate>| ms(of(&busy_32k)) / ms(of(&quiet_32k));
    assert!(rise(|found| &found.read_hit) < 1.1 && rise(|found| &found.write_hit) < 1.1);
    // "between 14 and 25 milliseconds"
    assert!(ms(&quiet_4k.write_miss) > 0.9 * 14.0 && ms(&busy_32k.read_miss) < 1.1 * 25.0);
    // "the read miss processing time is slightly larger than the write miss processing time"
    for found in [&quiet_32k, &busy_32k] {
        let ratio = ms(&found.read_miss) / ms(&found.write_miss);
        assert!(ratio > 1.0 && ratio < 1.03, "{ratio}");
    }
    // "For request rates greater than 850 requests/sec, the I/O node begins to saturate for the 32K byte request size": a
    // miss takes twice what it takes without load.
    let twice = 2.0 * ms(&quiet_32k.read_miss);
    assert!(ms(&run(765.0, 32_768).read_miss) < twice && ms(&run(935.0, 32_768).read_miss) > twice);
}

//! Disks and I/O nodes: a drive with zones, arm and buffer under reads and writes at random and in sequence; the I/O node of
//! Baylor et al. 1995 under an open load.

use pio_machine::Duration;
use pio_machine::IoNode;
use pio_machine::disk::{
    AccessModel, Angle, Buffer, BusBlock, Drive, Layout, Mapping, Mechanics, Overheads, ReadAhead, SeekCurve,
    Sparing, Watermark, Zone, ZonedLayout,
};
use pio_plan::Direction;
use pio_sim::disk::{DriveModel, Request};
use pio_sim::io_node::{Adapter, OpenLoad};
use pio_sim::kernel::{Stream, Time};

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "disks", run };

const REQUESTS: u64 = 1_000_000;

fn run() {
    let drive = drive();
    let requests = requests(&drive);
    against_bare_loop("a drive, requests at random and in sequence", "requests", || {
        let mut model = DriveModel::new(&drive);
        let mut now = Time::default();
        for request in requests.iter().cycle().take(REQUESTS as usize) {
            let Ok(served) = model.serve(now, *request) else { break };
            now = served.done + us(2_000);
        }
        REQUESTS
    });
    let Ok(node) = IoNode::of_baylor() else { return };
    let load = OpenLoad {
        rate: 650.0,
        bytes: 32_768,
        message: 200,
        reads: 0.67,
        misses: 0.3,
        requests: REQUESTS,
        seed: 1,
    };
    against_bare_loop("an I/O node with six disks, three in ten misses", "requests", || {
        load.run(&node, Adapter::Own).map_or(0, |_| REQUESTS)
    });
}

fn us(us: u64) -> Duration {
    Duration::from_picoseconds(us * 1_000_000)
}

/// A third of the requests go on where the last one ended; a third are writes.
fn requests(drive: &Drive) -> Vec<Request> {
    let mut stream = Stream::named(1, "requests of a drive");
    let blocks = DriveModel::new(drive).blocks();
    let mut next = 0;
    let request = |_| {
        if next + 8 > blocks || !stream.chance(1.0 / 3.0) {
            next = stream.below(blocks - 8);
        }
        let direction = if stream.chance(1.0 / 3.0) { Direction::Write } else { Direction::Read };
        let request = Request { direction, block: next, blocks: 8 };
        next += 8;
        request
    };
    (0..1 << 16).map(request).collect()
}

/// A drive of about 1998: eleven zones, 200 slipped sectors in each.
fn drive() -> Drive {
    let zone = |number: u32| Zone {
        first_cylinder: number * 500,
        last_cylinder: number * 500 + 499,
        sectors: 190 - 6 * number,
        offset: Angle::default(),
        reserved: 0,
        track_skew: Angle::of_revolutions(0.2),
        cylinder_skew: Angle::of_revolutions(0.3),
        spares: 300,
        slips: (0..200).map(|slip| 997 * slip + 13).collect(),
        remaps: Vec::new(),
    };
    let root = |distance: u32| (distance, us(1_000 + (200.0 * f64::from(distance).sqrt()) as u64));
    Drive {
        name: "made up".to_owned(),
        surfaces: 5,
        cylinders: 5500,
        blocks: 4_000_000,
        layout: Layout::Zoned(ZonedLayout {
            mapping: Mapping::FromFirst,
            sparing: Sparing::ZoneEnd,
            zones: (0..11).map(zone).collect(),
        }),
        mechanics: Mechanics {
            access: AccessModel::Full,
            seek: SeekCurve::Measured((1..100).map(|step| root(step * step / 2 + step)).collect()),
            head_switch: us(500),
            write_settle_ps: 400_000_000,
            period: Duration::from_seconds(60.0 / 7200.0),
        },
        block_bytes: 512,
        bus_block: BusBlock::both(us(50)),
        overheads: Overheads {
            request: us(0),
            read_hit: [us(100); 2],
            read_miss: [us(500); 2],
            write_hit: [us(700); 2],
            write_miss: [us(900); 2],
            read_completion: us(0),
            write_completion: us(0),
            data_preparation: us(0),
            read_disconnect: [us(0); 2],
            reselect: us(0),
            reselect_again: us(0),
            write_disconnect: us(0),
            extra_disconnect: None,
            least_seek: us(0),
        },
        buffer: Buffer {
            caches: true,
            segments: 3,
            separate_write_segment: false,
            segment_blocks: 300,
            read_ahead: ReadAhead::Segment,
            least_read_ahead: 0,
            most_read_ahead: 300,
            read_ahead_over_requested: true,
            read_ahead_on_hit: false,
            read_free_blocks: false,
            almost_hits: false,
            read_hits_on_writes: true,
            sneaky_hits: (false, false),
            partial_transfer: true,
            read_watermark: Watermark::OfRequest(0),
            fast_writes: true,
            combine_writes: true,
            zero_latency_read: false,
            zero_latency_write: false,
            stop_in_sector: false,
        },
        not_modelled: Vec::new(),
    }
}

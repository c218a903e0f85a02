//! A drive made up for tests: numbers that are easy to reckon with.

use pio_machine::Duration;
use pio_machine::disk::{
    AccessModel, Angle, Buffer, BusBlock, Drive, Layout, Mapping, Mechanics, Overheads, ReadAhead, SeekCurve,
    Sparing, Watermark, Zone, ZonedLayout,
};

pub(super) fn us(us: u64) -> Duration {
    Duration::from_picoseconds(us * 1_000_000)
}

/// Two surfaces; 10 sectors a track of 1 ms each in the one zone of 100 cylinders; a seek takes 2 ms and 0.1 ms a
/// cylinder, a block on the bus 0.1 ms. One buffer segment of 40 blocks; no overheads, no read-ahead.
pub(super) fn drive() -> Drive {
    Drive {
        name: "example".to_owned(),
        surfaces: 2,
        cylinders: 100,
        blocks: 2000,
        layout: Layout::Zoned(ZonedLayout {
            mapping: Mapping::FromFirst,
            sparing: Sparing::None,
            zones: vec![zone()],
        }),
        mechanics: Mechanics {
            access: AccessModel::Full,
            seek: SeekCurve::Measured(vec![(1, us(2_100)), (100, us(12_000))]),
            head_switch: us(1_000),
            write_settle_ps: 500_000_000,
            period: us(10_000),
        },
        block_bytes: 512,
        bus_block: BusBlock::both(us(100)),
        overheads: Overheads {
            request: Duration::ZERO,
            read_hit: [us(0); 2],
            read_miss: [us(0); 2],
            write_hit: [us(0); 2],
            write_miss: [us(0); 2],
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
            segments: 1,
            separate_write_segment: false,
            segment_blocks: 40,
            read_ahead: ReadAhead::None,
            least_read_ahead: 0,
            most_read_ahead: 0,
            read_ahead_over_requested: true,
            read_ahead_on_hit: false,
            read_free_blocks: false,
            almost_hits: false,
            read_hits_on_writes: true,
            sneaky_hits: (false, false),
            partial_transfer: true,
            read_watermark: Watermark::OfRequest(0),
            fast_writes: false,
            combine_writes: true,
            zero_latency_read: false,
            zero_latency_write: false,
            stop_in_sector: false,
        },
        not_modelled: Vec::new(),
    }
}

/// The zone of [`drive`], its tracks and cylinders one and three sectors askew.
pub(super) fn zone() -> Zone {
    Zone {
        first_cylinder: 0,
        last_cylinder: 99,
        sectors: 10,
        offset: Angle::default(),
        reserved: 0,
        track_skew: Angle::of_sectors(1, 10),
        cylinder_skew: Angle::of_sectors(3, 10),
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    }
}

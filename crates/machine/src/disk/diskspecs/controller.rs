//! The block `disksim_disk`: what lies between the surfaces and the bus.

use super::fields::Fields;
use super::model;
use super::text::Block;
use crate::disk::{Buffer, BusBlock, Drive, ExtraDisconnect, Overheads, ReadAhead, Watermark};
use crate::error::MachineError;
use crate::quantity::Duration;

/// Bytes of a block, in all of DiskSim.
const BLOCK_BYTES: u32 = 512;

/// Keys that the model does not know, each with the value that asks for nothing or makes no difference to one request at
/// a time.
const LEFT_OUT: &[(&str, f64)] = &[
    ("Allow sneaky intermediate read hits", 0.0),
    ("Allow write prebuffering", 0.0),
    ("Preseeking level", 0.0),
    ("Maximum number of write segments", 1.0),
    ("Low (write) water mark", 0.0),
    ("Disconnect write if seek", 0.0),
    ("Write hit stop prefetch", 1.0),
    ("Read directly to buffer", 1.0),
];

/// What DiskSim prints, how its host queues, and hints to schedulers are no part of a drive; a bus with one disk need not
/// be let go in the middle of data.
const NO_MATTER: [&str; 7] = [
    "Print stats",
    "Avg sectors per cylinder",
    "Max queue length",
    "Scheduler",
    "Calc sector by sector",
    "Hold bus entire read xfer",
    "Hold bus entire write xfer",
];

/// The drive; `models` are those of the same file.
pub(super) fn drive<'b>(fields: Fields<'b>, models: &[&'b Block]) -> Result<Drive, MachineError> {
    let mut model = model::read(Fields::new(fields.block_of("Model", models)?))?;
    let overheads = overheads(&fields)?;
    let buffer = buffer(&fields)?;
    // Below 0 says in DiskSim that the bus decides, as 0 does.
    let bus_block_ms = fields.number("Bulk sector transfer time", -1000.0..=1000.0)?.max(0.0);
    let name = if fields.block.name.is_empty() { model.name } else { fields.block.name.clone() };
    for key in NO_MATTER {
        fields.has(key);
    }
    let mut not_modelled = std::mem::take(&mut model.not_modelled);
    not_modelled.extend(fields.finish(LEFT_OUT)?);
    Ok(Drive {
        name,
        surfaces: model.surfaces,
        cylinders: model.cylinders,
        blocks: model.blocks,
        layout: model.layout,
        mechanics: model.mechanics,
        block_bytes: BLOCK_BYTES,
        bus_block: BusBlock::both(Duration::from_seconds(bus_block_ms / 1e3)),
        overheads,
        buffer,
        not_modelled,
    })
}

fn overheads(fields: &Fields<'_>) -> Result<Overheads, MachineError> {
    let scale = fields.number("Time scale for overheads", 0.0..=1000.0)?;
    let ms = |key| -> Result<Duration, MachineError> {
        Ok(Duration::from_seconds(fields.ms(key)?.seconds() * scale))
    };
    let extra = ExtraDisconnect {
        command: ms("Extradisc command overhead")?,
        first: ms("Extradisc disconnect overhead")?,
        pause: ms("Extradisc inter-disconnect delay")?,
        second: ms("Extradisc 2nd disconnect overhead")?,
        arm_delay: ms("Extradisc seek delta")?,
    };
    let holds = fields.flag("Never disconnect")?;
    // Whoever never lets go of the bus need not come back to it.
    let unless_held = |key| if holds { fields.ms(key).map(|_| Duration::ZERO) } else { ms(key) };
    Ok(Overheads {
        request: ms("Per-request overhead time")?,
        read_hit: [ms("Read hit over. after read")?, ms("Read hit over. after write")?],
        read_miss: [ms("Read miss over. after read")?, ms("Read miss over. after write")?],
        write_hit: [ms("Write hit over. after read")?, ms("Write hit over. after write")?],
        write_miss: [ms("Write miss over. after read")?, ms("Write miss over. after write")?],
        read_completion: ms("Read completion overhead")?,
        write_completion: ms("Write completion overhead")?,
        data_preparation: ms("Data preparation overhead")?,
        read_disconnect: [
            unless_held("Read disconnect afterread")?,
            unless_held("Read disconnect afterwrite")?,
        ],
        reselect: unless_held("First reselect overhead")?,
        reselect_again: unless_held("Other reselect overhead")?,
        write_disconnect: unless_held("Write disconnect overhead")?,
        extra_disconnect: (fields.flag("Extra write disconnect")? && !holds).then_some(extra),
        least_seek: ms("Minimum seek delay")?,
    })
}

fn buffer(fields: &Fields<'_>) -> Result<Buffer, MachineError> {
    let segments = fields.count("Number of buffer segments", 1..=65_536)?;
    let segment_blocks = fields.count("Segment size (in blks)", 1..=1 << 30)?;
    let level = |key, most| -> Result<u32, MachineError> { fields.count(key, 0..=most) };
    let by_request = fields.flag("Set watermark by reqsize")?;
    let watermark = (fields.number("High (read) water mark", 0.0..=1.0)? * 1e6).round() as u32;
    let read_ahead = match level("Buffer continuous read", 4)? {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::TrackAhead,
    };
    Ok(Buffer {
        caches: level("Enable caching in buffer", 2)? > 0,
        segments,
        separate_write_segment: fields.flag("Use separate write segment")?,
        segment_blocks,
        read_ahead,
        least_read_ahead: level("Minimum read-ahead (blks)", segment_blocks)?,
        most_read_ahead: level("Maximum read-ahead (blks)", segment_blocks)?,
        read_ahead_over_requested: fields.number("Read-ahead over requested", -1.0..=1.0)? > 0.0,
        read_ahead_on_hit: fields.flag("Read-ahead on idle hit")?,
        read_free_blocks: fields.flag("Read any free blocks")?,
        almost_hits: fields.flag("Allow almost read hits")?,
        read_hits_on_writes: fields.flag("Allow read hits on write data")?,
        sneaky_hits: (
            fields.flag("Allow sneaky full read hits")?,
            fields.flag("Allow sneaky partial read hits")?,
        ),
        partial_transfer: fields.flag("Immed transfer partial hit")?,
        read_watermark: if by_request {
            Watermark::OfRequest(watermark)
        } else {
            Watermark::OfSegment(watermark)
        },
        fast_writes: level("Fast write level", 2)? > 0,
        combine_writes: fields.flag("Combine seq writes")?,
        zero_latency_read: level("Immediate buffer read", 2)? > 0,
        zero_latency_write: level("Immediate buffer write", 2)? > 0,
        stop_in_sector: fields.flag("Stop prefetch in sector")?,
    })
}

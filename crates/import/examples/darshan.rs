//! Prints everything that a Darshan log holds, one JSON object a line, with numbers as Darshan stores them. Times are
//! given as the bits of the number, so that nothing is lost on the way.
//!
//! `cargo run -p pio-import --example darshan -- LOG`; with `--count` behind it, only the number of accesses and their
//! bytes: how fast a log is read.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use pio_import::darshan::{Log, LogDamage, Module};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which log?")?;
    let log = Log::open(Path::new(&path))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if std::env::args_os().nth(2).is_some_and(|word| word == "--count") {
        return Ok(count(&log, &mut out)?);
    }
    about(&log, &mut out)?;
    for module in log.modules().map(|region| region.module) {
        match module {
            Module::DxtPosix | Module::DxtMpiIo => accesses(&log, module, &mut out)?,
            Module::Heatmap => heatmaps(&log, &mut out)?,
            Module::Lustre => layouts(&log, &mut out)?,
            _ => counters(&log, module, &mut out)?,
        }
    }
    out.flush()?;
    Ok(())
}

fn count(log: &Log, out: &mut impl Write) -> io::Result<()> {
    for module in [Module::DxtPosix, Module::DxtMpiIo] {
        let Some(mut dxt) = log.dxt(module) else {
            continue;
        };
        let (mut accesses, mut bytes, mut time_s) = (0, 0, 0.0);
        while dxt.next_record().is_some() {
            while let Some((_, segments)) = dxt.segments() {
                accesses += segments.len();
                bytes += segments.iter().map(|segment| segment.length).sum::<i64>();
                time_s += segments.iter().map(|segment| segment.end_s - segment.start_s).sum::<f64>();
            }
        }
        writeln!(out, "{module}: {accesses} accesses, {bytes} bytes, {time_s:.3} s")?;
        tell(dxt.damage().as_ref(), out)?;
    }
    Ok(())
}

fn about(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let job = log.job();
    let mounts: Vec<_> = job.mounts.iter().map(|mount| (&mount.path, &mount.kind)).collect();
    let line = json!({
        "what": "job", "version": log.version().to_string(), "uid": job.uid, "start_ns": job.start_ns,
        "end_ns": job.end_ns, "run_time_s": job.run_time_s, "processes": job.processes, "id": job.id,
        "metadata": job.metadata, "command": job.command, "mounts": mounts,
    });
    writeln!(out, "{line}")?;
    for region in log.modules() {
        let (module, version, partial) = (region.module.to_string(), region.version, region.partial);
        let line = json!({"what": "module", "module": module, "version": version, "partial": partial, "len": region.len});
        writeln!(out, "{line}")?;
    }
    let (names, damage) = log.names();
    for (id, name) in names.iter() {
        writeln!(out, "{}", json!({"what": "name", "id": id, "name": name}))?;
    }
    tell(damage.as_ref().or(log.damage()), out)
}

fn counters(log: &Log, module: Module, out: &mut impl Write) -> io::Result<()> {
    let Some(mut records) = log.records(module) else {
        return writeln!(out, "{}", json!({"what": "passed over", "module": module.to_string()}));
    };
    while let Some(record) = records.next() {
        let floats: Vec<_> = record.floats.iter().map(|value| value.to_bits()).collect();
        let line = json!({
            "what": "record", "module": module.name(), "id": record.id, "rank": record.rank, "file": record.file,
            "names": [record.names.integers, record.names.floats], "integers": record.integers, "floats": floats,
            "trailer": record.trailer, "list": record.list,
        });
        writeln!(out, "{line}")?;
    }
    tell(records.damage().as_ref(), out)
}

fn accesses(log: &Log, module: Module, out: &mut impl Write) -> io::Result<()> {
    let Some(mut dxt) = log.dxt(module) else {
        return writeln!(out, "{}", json!({"what": "passed over", "module": module.to_string()}));
    };
    while let Some(record) = dxt.next_record() {
        let mut segments = [Vec::new(), Vec::new()];
        while let Some((is_write, some)) = dxt.segments() {
            let rows = some.iter().map(|segment| {
                json!([segment.offset, segment.length, segment.start_s.to_bits(), segment.end_s.to_bits()])
            });
            segments[usize::from(is_write)].extend(rows);
        }
        let line = json!({
            "what": "accesses", "module": module.name(), "id": record.id, "rank": record.rank, "host": record.host,
            "writes": segments[1], "reads": segments[0],
        });
        writeln!(out, "{line}")?;
    }
    tell(dxt.damage().as_ref(), out)
}

fn heatmaps(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let Some(mut heatmaps) = log.heatmaps() else {
        return writeln!(out, "{}", json!({"what": "passed over", "module": "HEATMAP"}));
    };
    for map in heatmaps.by_ref() {
        let line = json!({
            "what": "heatmap", "module": "HEATMAP", "id": map.id, "rank": map.rank, "bin_s": map.bin_s.to_bits(),
            "written": map.written, "read": map.read,
        });
        writeln!(out, "{line}")?;
    }
    tell(heatmaps.damage().as_ref(), out)
}

fn layouts(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let Some(mut layouts) = log.lustre() else {
        return writeln!(out, "{}", json!({"what": "passed over", "module": "LUSTRE"}));
    };
    for record in layouts.by_ref() {
        let components: Vec<_> = record
            .components
            .iter()
            .map(|part| {
                let numbers = [
                    part.stripe_size,
                    part.stripe_count,
                    part.pattern,
                    part.flags,
                    part.start,
                    part.end,
                    part.mirror,
                ];
                json!([numbers, part.pool, part.targets])
            })
            .collect();
        let line = json!({
            "what": "layout", "module": "LUSTRE", "id": record.id, "rank": record.rank, "components": components,
        });
        writeln!(out, "{line}")?;
    }
    tell(layouts.damage().as_ref(), out)
}

fn tell(damage: Option<&LogDamage>, out: &mut impl Write) -> io::Result<()> {
    match damage {
        Some(damage) => writeln!(out, "{}", json!({"what": "damage", "damage": damage.to_string()})),
        None => Ok(()),
    }
}

//! A machine as the text that describes it.

use std::fmt::{self, Write as _};

use crate::machine::{Askew, CallCost, Copy, IoNodes, Machine, Nodes, Pieces, Storage};
use crate::quantity::{Duration, size_text};

impl Machine {
    /// The description as TOML, after a comment of these lines. [`Machine::parse`] reads the same machine from it.
    pub fn to_toml(&self, comment: &str) -> String {
        let mut text = String::new();
        for line in comment.lines() {
            text.push_str(format!("# {line}").trim_end());
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "name = {}", quoted(&self.name))?;
        writeln!(out, "source = {}", quoted(&self.source))?;
        let nodes = &self.nodes;
        writeln!(out, "\n[nodes]\ncount = {}\ncores = {}", nodes.count, nodes.cores)?;
        writeln!(out, "switch = \"{}\"", nodes.switch)?;
        if nodes.quantum != Nodes::USUAL_QUANTUM {
            writeln!(out, "quantum = \"{}\"", nodes.quantum)?;
        }
        if nodes.slice != nodes.quantum {
            writeln!(out, "slice = \"{}\"", nodes.slice)?;
        }
        if nodes.wake != Duration::ZERO {
            writeln!(out, "wake = \"{}\"", nodes.wake)?;
        }
        if nodes.cooling != Duration::ZERO {
            writeln!(out, "cooling = \"{}\"", nodes.cooling)?;
        }
        writeln!(out, "copy = {}", copy_text(&nodes.copy))?;
        let messages = &self.messages;
        writeln!(out, "\n[messages]\nsend = \"{}\"\nreceive = \"{}\"", messages.send, messages.receive)?;
        writeln!(out, "local-latency = \"{}\"", messages.local_latency)?;
        self.network.write(out)?;
        match &self.storage {
            Storage::Local { exclusive_writes } => {
                writeln!(out, "\n[storage]\nkind = \"local\"\nexclusive-writes = {exclusive_writes}")?;
            }
            Storage::Shared(files) => files.write(out)?,
            Storage::Parallel(files) => files.write(&io_text(&files.io), out)?,
            Storage::Striped {
                io,
                strip,
                read,
                write,
                open,
                create,
                close,
                resize,
                begin,
                connect,
                summing,
                pieces,
                takes_views,
                memory,
                arm,
                separate_closes,
            } => {
                writeln!(out, "\n[storage]\nkind = \"striped\"\n{}", io_text(io))?;
                writeln!(out, "strip = \"{}\"", size_text(*strip))?;
                for (name, service) in [("read", read), ("write", write)] {
                    let (request, bandwidth) = (service.request, service.bandwidth);
                    writeln!(out, "{name} = {{ request = \"{request}\", bandwidth = \"{bandwidth}\" }}")?;
                }
                writeln!(out, "open = \"{open}\"\nclose = \"{close}\"")?;
                for (name, time) in
                    [("create", create), ("resize", resize), ("begin", begin), ("connect", connect)]
                {
                    if *time > Duration::ZERO {
                        writeln!(out, "{name} = \"{time}\"")?;
                    }
                }
                if let Some(rate) = summing {
                    writeln!(out, "summing = \"{rate}\"")?;
                }
                if let Some(Pieces { read, write, server }) = pieces {
                    let server = copy_text(server);
                    writeln!(
                        out,
                        "pieces = {{ read = \"{read}\", write = \"{write}\", server = {server} }}"
                    )?;
                }
                if *takes_views {
                    writeln!(out, "takes-views = true")?;
                }
                if *memory > 0 {
                    writeln!(out, "memory = \"{}\"", size_text(*memory))?;
                }
                if let Some(arm) = arm {
                    writeln!(out, "arm = {}", arm.text())?;
                }
                if *separate_closes {
                    writeln!(out, "separate-closes = true")?;
                }
            }
            Storage::IoNodes { io, strip, request, cache, open, close } => {
                writeln!(out, "\n[storage]\nkind = \"io-nodes\"\n{}", io_text(io))?;
                writeln!(out, "strip = \"{}\"\nrequest = \"{}\"", size_text(*strip), size_text(*request))?;
                if let Some(cache) = cache {
                    out.push_str("cache = ");
                    cache.write(out)?;
                }
                writeln!(out, "open = \"{open}\"\nclose = \"{close}\"")?;
            }
        }
        if let Some(node) = &self.io_node {
            node.write(out)?;
        }
        let calls = &self.calls;
        writeln!(out, "\n[calls]")?;
        let times = [
            ("open", calls.open),
            ("create", calls.create),
            ("close", calls.close),
            ("seek", calls.seek),
            ("resize", calls.resize),
        ];
        for (key, time) in times {
            // Zero is what these are if nothing is said.
            if time > Duration::ZERO || !["create", "resize"].contains(&key) {
                writeln!(out, "{key} = \"{time}\"")?;
            }
        }
        write_said(&[("stat", calls.stat), ("unlink", calls.unlink)], out)?;
        if let Some(rate) = calls.dropped_pages {
            writeln!(out, "dropped-pages = \"{rate}\"")?;
        }
        if let Some(rewrites) = &calls.rewrites {
            writeln!(out, "rewrites = {}", rewrites.text())?;
        }
        if let Some(sync) = &calls.sync {
            writeln!(out, "sync = {}", call_text(sync))?;
        }
        writeln!(out, "read = {}\nwrite = {}", call_text(&calls.read), call_text(&calls.write))?;
        if let Some(new_pages) = &calls.new_pages {
            writeln!(out, "new-pages = {}", call_text(new_pages))?;
        }
        if calls.new_folio > Duration::ZERO {
            writeln!(out, "new-folio = \"{}\"", calls.new_folio)?;
        }
        if let Some(Askew { bandwidth, reach }) = calls.askew {
            writeln!(out, "askew = \"{bandwidth}\"\naskew-reach = \"{reach} B\"")?;
        }
        if let Some(cache) = &calls.processor_cache {
            writeln!(out, "processor-cache = {}", cache.text())?;
        }
        if let Some(after_work) = &calls.after_work {
            writeln!(out, "after-work = {}", after_work.text())?;
        }
        if let Some(direct) = &calls.direct {
            writeln!(out, "direct = {}", direct.text())?;
        }
        if let Some(write_back) = &calls.write_back {
            writeln!(out, "write-back = {}", write_back.text())?;
        }
        if let Some(cold_reads) = &calls.cold_reads {
            writeln!(out, "cold-reads = {}", cold_reads.text())?;
        }
        if calls.collective_waits {
            writeln!(out, "collective-waits = true")?;
        }
        if self.calls.by_levels {
            writeln!(out, "by-levels = true")?;
        }
        if let Some(mpi_io) = &self.mpi_io {
            mpi_io.write(out)?;
        }
        Ok(())
    }
}

/// A line for each of these times that is known.
pub(crate) fn write_said(times: &[(&str, Option<Duration>)], out: &mut String) -> fmt::Result {
    let said = times.iter().filter_map(|(key, time)| Some((key, (*time)?)));
    said.into_iter().try_for_each(|(key, time)| writeln!(out, "{key} = \"{time}\""))
}

pub(crate) fn call_text(CallCost { call, bandwidth, sizes }: &CallCost) -> String {
    let size = |(bytes, time): &(u64, Duration)| format!("{{ bytes = \"{bytes} B\", time = \"{time}\" }}");
    let sizes: Vec<String> = sizes.iter().map(size).collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!(", sizes = [{}]", sizes.join(", ")) };
    format!("{{ call = \"{call}\", bandwidth = \"{bandwidth}\"{sizes} }}")
}

fn copy_text(copy: &Copy) -> String {
    format!("{{ bandwidth = \"{}\", piece = \"{}\" }}", copy.bandwidth, copy.piece)
}

fn io_text(io: &IoNodes) -> String {
    let placement = io.placement.name();
    let shares = if io.shares_cores { ", shares-cores = true" } else { "" };
    // What each is if nothing is said.
    let times = [
        ("wake", io.wake, Duration::ZERO),
        ("deep-wake", io.deep_wake, io.wake),
        ("change", io.change, Duration::ZERO),
    ];
    let said = times.into_iter().filter(|(_, time, otherwise)| time != otherwise);
    let times: String = said.map(|(key, time, _)| format!(", {key} = \"{time}\"")).collect();
    let channel = io.channel.map_or_else(String::new, |rate| format!(", channel = \"{rate}\""));
    format!(
        "io = {{ count = {}, placement = \"{placement}\", dedicated = {}{shares}{times}{channel} }}",
        io.count, io.dedicated
    )
}

pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cold_reads::ColdReads;
    use crate::quantity::Bandwidth;
    use crate::write_back::WriteBack;

    #[test]
    fn every_built_in_machine_is_written_and_read_again() {
        for name in Machine::built_in_names() {
            let machine = Machine::built_in(name).unwrap();
            let text = machine.to_toml("measured\n\ntoday");
            assert!(text.starts_with("# measured\n#\n# today\nname = "), "{text}");
            assert_eq!(Machine::parse(name, &text).unwrap(), machine);
        }
    }

    #[test]
    fn what_no_built_in_machine_has_is_written_and_read_again() {
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        let write_back = WriteBack {
            background: 2_385_752 << 10,
            limit: 4_777_340 << 10,
            age: Duration::from_seconds(30.0),
            bandwidth: Bandwidth::from_bytes_per_second(123_456_789),
        };
        (machine.calls.write_back, machine.calls.new_folio) =
            (Some(write_back), Duration::from_seconds(2e-6));
        machine.calls.cold_reads = Some(ColdReads {
            request: Duration::from_seconds(8e-5),
            stream: Bandwidth::from_bytes_per_second(1_234_567_890),
            bandwidth: Bandwidth::from_bytes_per_second(2_345_678_901),
        });
        let Storage::Striped { resize, connect, io, memory, arm, .. } = &mut machine.storage else {
            panic!("{:?}", machine.storage)
        };
        (*resize, *connect) = (Duration::from_seconds(0.007), Duration::from_seconds(2e-4));
        (io.dedicated, io.shares_cores, io.wake) = (false, true, Duration::from_seconds(5e-5));
        io.channel = Some(Bandwidth::from_bytes_per_second(1_500_000_000));
        assert_eq!(io.deep_wake, Duration::ZERO, "sooner than without sleep, as it is written");
        (*memory, *arm) = (0, None);
        let text = machine.to_toml("");
        assert_eq!(Machine::parse("x", &text).unwrap(), machine);
        let error =
            Machine::parse("x", &text.replace("limit = \"4777340 KiB\"", "limit = \"much\"")).unwrap_err();
        assert!(error.to_string().contains("limit"), "{error}");
    }

    #[test]
    fn names_may_hold_quotes_and_line_ends() {
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        machine.source = "a \"quoted\"\nname \\ with all".to_owned();
        assert_eq!(Machine::parse("x", &machine.to_toml("")).unwrap(), machine);
    }
}

//! What MPI-IO costs beyond messages and the kernel's calls: the library that carries it out, and the MPI under it.

use std::fmt::Write as _;

use crate::describe::quoted;
use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration};
use crate::section::Section;

/// That one call takes at most.
const MOST: &str = "1000 s";

/// What calls of MPI-IO cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MpiIo {
    /// The MPI library under which it was measured, such as `MPICH (libmpi.so.12)`; none if nobody says.
    pub library: Option<String>,
    /// Whether a rank that waits in a barrier or a reduction of MPI keeps its processor, and does nothing but look (MPICH);
    /// else it lets others have it.
    pub spins: bool,
    /// With Pioscope's library.
    pub pioscope: LibraryCosts,
    /// With the MPI's own.
    pub own: LibraryCosts,
}

/// What a library's calls cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryCosts {
    /// Processor time of a read or write beyond the calls to the kernel that it makes.
    pub call: Duration,
    /// At which rate a rank gets memory for data that it exchanges with others: for as many bytes as it has not exchanged at
    /// once before. None where nobody measured it, or memory is gotten anew each time.
    pub fresh: Option<Bandwidth>,
    /// What a piece of data takes, beyond its bytes, who packs or unpacks it in an exchange. None where nobody measured it:
    /// what it takes to copy it.
    pub piece: Option<Duration>,
    /// What calls of all ranks cost, by the number of ranks on a node, ascending.
    pub together: Vec<Together>,
}

/// What a call takes each time but the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// After [`crate::Nodes::cooling`] of other work, when the processor's caches have nothing left of the library; after less it is
    /// less, in proportion.
    pub after_work: Duration,
    /// Right behind another call of the library.
    pub again: Duration,
}

impl Repeated {
    /// The same whatever was before.
    pub fn always(time: Duration) -> Repeated {
        Repeated { after_work: time, again: time }
    }

    /// After such a part of the other work, of 0 to 1.
    pub fn after(&self, part: f64) -> Duration {
        self.again.towards(self.after_work, part)
    }

    fn text(self, key: &str) -> String {
        let Repeated { after_work, again } = self;
        if after_work == again {
            format!("{key} = \"{after_work}\"")
        } else {
            format!("{key} = \"{after_work}\", {key}-again = \"{again}\"")
        }
    }
}

/// From when the last rank comes to a call of all ranks until a rank leaves it, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Ranks on a node.
    pub ranks: u32,
    /// The first open of a process.
    pub first_open: Duration,
    /// Another open.
    pub open: Repeated,
    /// The first close of a process.
    pub first_close: Duration,
    /// Another close.
    pub close: Repeated,
    /// The first view that a process sets.
    pub first_view: Duration,
    /// Another view.
    pub view: Repeated,
    /// A collective write of a few bytes by each rank, of which one writes all; 0 where nobody measured it.
    pub collective: Repeated,
    /// A barrier of MPI. Where ranks spin, and are more than the cores, it follows from how they take turns instead.
    pub barrier: Duration,
    /// A write of a few bytes to an I/O server, where all ranks make such; 0 where nobody measured it.
    pub request: Duration,
}

impl MpiIo {
    pub(crate) fn read(mut section: Section<'_>) -> Result<MpiIo, MachineError> {
        let library = if section.has("library") { Some(section.text("library")?) } else { None };
        let costs = MpiIo {
            library,
            spins: section.flag("spins")?,
            pioscope: LibraryCosts::read(section.section("pioscope")?)?,
            own: LibraryCosts::read(section.section("own")?)?,
        };
        section.finish()?;
        Ok(costs)
    }

    pub(crate) fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n[mpi-io]")?;
        if let Some(library) = &self.library {
            writeln!(out, "library = {}", quoted(library))?;
        }
        writeln!(out, "spins = {}", self.spins)?;
        self.pioscope.write("pioscope", out)?;
        self.own.write("own", out)
    }
}

impl LibraryCosts {
    fn read(mut section: Section<'_>) -> Result<LibraryCosts, MachineError> {
        let call = section.duration("call", "1 s")?;
        let fresh = if section.has("fresh") { Some(section.bandwidth("fresh")?) } else { None };
        let piece = if section.has("piece") { Some(section.duration("piece", "1 s")?) } else { None };
        let mut together: Vec<Together> = Vec::new();
        for mut job in section.sections("together")? {
            let least = together.last().map_or(1, |last| last.ranks + 1);
            let open = repeated(&mut job, ["open", "open-again"])?;
            let close = repeated(&mut job, ["close", "close-again"])?;
            let view = repeated(&mut job, ["view", "view-again"])?;
            together.push(Together {
                ranks: job.number("ranks", least..=1 << 20)?,
                first_open: job.duration("first-open", MOST)?,
                open,
                first_close: job.duration_or(close.after_work, "first-close", MOST)?,
                close,
                first_view: job.duration_or(view.after_work, "first-view", MOST)?,
                view,
                collective: if job.has("collective") {
                    repeated(&mut job, ["collective", "collective-again"])?
                } else {
                    Repeated::default()
                },
                barrier: job.duration("barrier", MOST)?,
                request: job.duration_or(Duration::ZERO, "request", MOST)?,
            });
            job.finish()?;
        }
        section.finish()?;
        Ok(LibraryCosts { call, fresh, piece, together })
    }

    /// For so many ranks on a node: on the line between the next fewer and the next more that are known, or else the next
    /// that is.
    pub fn of(&self, ranks: u32) -> Together {
        let above = self.together.iter().find(|one| one.ranks >= ranks).or(self.together.last());
        let below = self.together.iter().rev().find(|one| one.ranks <= ranks).or(self.together.first());
        let (Some(below), Some(above)) = (below, above) else { return Together::default() };
        let all = f64::from(above.ranks.saturating_sub(below.ranks)).max(1.0);
        let part = (f64::from(ranks.saturating_sub(below.ranks)) / all).min(1.0);
        let time = |time: fn(&Together) -> Duration| time(below).towards(time(above), part);
        let repeated = |call: fn(&Together) -> Repeated| {
            let (low, high) = (call(below), call(above));
            Repeated {
                after_work: low.after_work.towards(high.after_work, part),
                again: low.again.towards(high.again, part),
            }
        };
        Together {
            ranks,
            first_open: time(|one| one.first_open),
            open: repeated(|one| one.open),
            first_close: time(|one| one.first_close),
            close: repeated(|one| one.close),
            first_view: time(|one| one.first_view),
            view: repeated(|one| one.view),
            collective: repeated(|one| one.collective),
            barrier: time(|one| one.barrier),
            request: time(|one| one.request),
        }
    }

    fn write(&self, name: &str, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n[mpi-io.{name}]\ncall = \"{}\"", self.call)?;
        if let Some(fresh) = self.fresh {
            writeln!(out, "fresh = \"{fresh}\"")?;
        }
        if let Some(piece) = self.piece {
            writeln!(out, "piece = \"{piece}\"")?;
        }
        writeln!(out, "together = [")?;
        for one in &self.together {
            let Together {
                ranks,
                first_open,
                open,
                first_close,
                close,
                first_view,
                view,
                collective,
                barrier,
                request,
            } = one;
            let request =
                if *request > Duration::ZERO { format!(", request = \"{request}\"") } else { String::new() };
            writeln!(
                out,
                "    {{ ranks = {ranks}, first-open = \"{first_open}\", {}, first-close = \"{first_close}\", {}, \
                 first-view = \"{first_view}\", {}, {}, barrier = \"{barrier}\"{request} }},",
                open.text("open"),
                close.text("close"),
                view.text("view"),
                collective.text("collective"),
            )?;
        }
        writeln!(out, "]")
    }
}

fn repeated(job: &mut Section<'_>, [key, again]: [&'static str; 2]) -> Result<Repeated, MachineError> {
    let after_work = job.duration(key, MOST)?;
    Ok(Repeated { after_work, again: job.duration_or(after_work, again, MOST)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_lies_between_what_was() {
        let job = |ranks, open| {
            let open = Repeated::always(Duration::from_picoseconds(open));
            Together { ranks, open, ..Together::default() }
        };
        let costs = LibraryCosts {
            together: vec![job(2, 100), job(4, 300), job(8, 1100)],
            ..LibraryCosts::default()
        };
        let open = |ranks| costs.of(ranks).open.again.picoseconds();
        assert_eq!([1, 2, 3, 4, 6, 8, 99].map(open), [100, 100, 200, 300, 700, 1100, 1100]);
        let unknown = LibraryCosts::default();
        assert_eq!(unknown.of(4), Together::default());
    }
}

//! Cycles, phases and classes, in words and tables.

use pio_explain::rhythm::{Gaps, Moves, NoCycles, Peak, Rhythm};
use pio_explain::{Explanation, Purpose};

use crate::escape;
use crate::sections::Limits;
use crate::table::Table;
use crate::units::{self, things};

/// Whether the I/O comes in cycles, and who says so; nothing if there are too few bursts to ask.
pub(crate) fn sentence(found: &Explanation) -> Option<String> {
    let rhythm = &found.rhythm;
    let Some(period_s) = rhythm.period_s else {
        let (gaps, why) = (rhythm.gaps?, rhythm.why_not()?);
        let (mean, varies) = (units::time_s(gaps.mean_s), units::percent(gaps.variation));
        let bursts = things(rhythm.bursts, "burst", "bursts");
        let why = match why {
            NoCycles::Uneven => format!(
                "but not in cycles: the gaps between their starts vary by {varies} of their mean of {mean} (those of cycles \
                 by no more than {})",
                units::percent(Gaps::MOST_VARIATION)
            ),
            NoCycles::Chance => format!(
                "but not in cycles that could be told from chance: the gaps between their starts vary by {varies} of their \
                 mean of {mean}"
            ),
            NoCycles::Few => format!(
                "too few to tell whether in cycles, which takes {} gaps: there are {}, of {mean} on average",
                Rhythm::LEAST_GAPS,
                units::count(gaps.count)
            ),
            NoCycles::Disagree => format!(
                "but not in cycles: the gaps between their starts have a mean of {mean}; {}, {}",
                other("spectrum", rhythm.spectrum),
                other("autocorrelation", rhythm.autocorrelation)
            ),
        };
        return Some(format!("It does its I/O in {bursts}, {why}."));
    };
    let spread = rhythm.gaps.filter(|gaps| gaps.is_regular()).map_or(String::new(), |gaps| {
        format!(
            ", from the gaps between {} bursts, which vary by {}",
            gaps.count + 1,
            units::percent(gaps.variation)
        )
    });
    let view = |name: &str, peak: Option<Peak>| match peak {
        Some(peak) if rhythm.agrees(peak.period_s) => {
            format!("the {name} agrees ({})", units::time_s(peak.period_s))
        }
        peak => other(name, peak),
    };
    Some(format!(
        "Its I/O comes in cycles of {}{spread}; {}, {}.",
        units::time_s(period_s),
        view("spectrum", rhythm.spectrum),
        view("autocorrelation", rhythm.autocorrelation),
    ))
}

/// What else than the gaps says of the period.
fn other(name: &str, peak: Option<Peak>) -> String {
    match peak {
        Some(peak) => format!("the {name} says {}", units::time_s(peak.period_s)),
        None => format!("the {name} has none"),
    }
}

/// Miller and Katz's classes.
pub(crate) fn purposes(found: &Explanation, limits: &Limits) -> Table {
    let times = |bytes: u64, size: u64| {
        if bytes == 0 {
            String::new()
        } else {
            format!("{} ×", units::significant(round(bytes as f64 / size.max(1) as f64)))
        }
    };
    let rows = found.purposes.iter().map(|total| {
        let files = match total.in_series {
            0 => units::count(total.files),
            part if part == total.files => format!("{} in series", units::count(total.files)),
            part => format!("{}, {} in series", units::count(total.files), units::count(part)),
        };
        vec![
            total.purpose.name().to_string(),
            files,
            units::bytes(total.size_bytes as f64),
            units::bytes(total.read_bytes as f64),
            times(total.read_bytes, total.size_bytes),
            units::bytes(total.write_bytes as f64),
            times(total.write_bytes, total.size_bytes),
            escape::shorten(&total.largest, limits.path),
        ]
    });
    let named = |purpose| found.purposes.iter().any(|total| total.purpose == purpose);
    let mut note = String::from("Miller and Katz 1991, section 5.1.");
    for (purpose, words) in [
        (Purpose::Required, " Required: read or written about once."),
        (
            Purpose::Checkpoint,
            " Checkpoint: written over again, or a series of like files one after the other, and not read back.",
        ),
        (Purpose::Staging, " Staging: written and read back, or read again and again."),
    ] {
        if named(purpose) {
            note.push_str(words);
        }
    }
    Table {
        title: "Why the I/O is done".into(),
        note,
        columns: vec!["class", ">files", ">size", ">read", ">of size", ">written", ">of size", "most on"],
        rows: rows.collect(),
    }
}

/// What is done when.
pub(crate) fn phases(found: &Explanation) -> Table {
    let rows = found.rhythm.phases.iter().map(|phase| {
        let moves = match phase.moves {
            Moves::Reads => "reads",
            Moves::Writes => "writes",
            Moves::Both => "reads and writes",
        };
        vec![
            if phase.is_rest { format!("{moves}: all that follow") } else { moves.to_string() },
            units::time_ns(phase.from_ns),
            units::time_ns(phase.until_ns),
            units::count(phase.bursts),
            units::bytes(phase.read_bytes.round()),
            units::bytes(phase.write_bytes.round()),
        ]
    });
    Table {
        title: "Phases".into(),
        note: "Bursts of one kind that follow one another.".into(),
        columns: vec!["what", ">from", ">until", ">bursts", ">read", ">written"],
        rows: rows.collect(),
    }
}

/// Starts of the cycles, seconds, if they are few enough to be drawn.
pub(crate) fn cycle_starts(found: &Explanation) -> Vec<f64> {
    const MOST: f64 = 200.0;
    let phases = &found.rhythm.phases;
    let (Some(period_s), Some(first), Some(last)) = (found.rhythm.period_s, phases.first(), phases.last())
    else {
        return Vec::new();
    };
    let (from_s, until_s) = (first.from_ns as f64 / 1e9, last.until_ns as f64 / 1e9);
    let count = ((until_s - from_s) / period_s).ceil();
    if !(1.0..=MOST).contains(&count) {
        return Vec::new();
    }
    (0..count as usize).map(|cycle| from_s + cycle as f64 * period_s).collect()
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

//! The block `dm_mech_g1`.

use super::curve;
use super::fields::{Fields, number};
use super::text::Item;
use crate::disk::{AccessModel, Mechanics, SeekCurve};
use crate::error::MachineError;
use crate::quantity::Duration;

#[derive(Clone, Copy)]
enum Access {
    Constant,
    Average,
    Full,
}

#[derive(Clone, Copy, PartialEq)]
enum Seek {
    Constant,
    Linear,
    Curve,
    Hpl,
    HplPlus10,
    Extracted,
}

/// Arm and spindle of a drive with so many cylinders, and what of them is not modelled.
pub(super) fn read(fields: Fields<'_>, cylinders: u32) -> Result<(Mechanics, Vec<String>), MachineError> {
    if fields.block.kind != "dm_mech_g1" {
        return Err(fields.wrong_kind("dm_mech_g1"));
    }
    let accesses = [
        ("constant", Access::Constant),
        ("averageRotation", Access::Average),
        ("trackSwitchPlusRotation", Access::Full),
    ];
    let access = match fields.word("Access time type", &accesses)? {
        Access::Constant => AccessModel::Constant(fields.ms("Constant access time")?),
        Access::Average => AccessModel::AverageRotation,
        Access::Full => AccessModel::Full,
    };
    let rpm = fields.count("Rotation speed (in rpms)", 1..=1_000_000)?;
    let mechanics = Mechanics {
        access,
        seek: seek(&fields, cylinders)?,
        head_switch: fields.ms("Head switch time")?,
        write_settle_ps: (fields.number("Add. write settling delay", -1000.0..=1000.0)? * 1e9).round() as i64,
        period: Duration::from_seconds(60.0 / f64::from(rpm)),
    };
    // What belongs to another form of the curve than the one chosen is no part of the drive.
    for key in [
        "Constant access time",
        "Constant seek time",
        "Single cylinder seek time",
        "Average seek time",
        "Full strobe seek time",
        "Full seek curve",
        "HPL seek equation values",
        "First ten seek times",
    ] {
        fields.has(key);
    }
    let not_modelled = fields.finish(&[("Percent error in rpms", 0.0)])?;
    Ok((mechanics, not_modelled))
}

fn seek(fields: &Fields<'_>, cylinders: u32) -> Result<SeekCurve, MachineError> {
    let kinds = [
        ("constant", Seek::Constant),
        ("linear", Seek::Linear),
        ("curve", Seek::Curve),
        ("hpl", Seek::Hpl),
        ("hplplus10", Seek::HplPlus10),
        ("extracted", Seek::Extracted),
    ];
    let kind = fields.word("Seek type", &kinds)?;
    Ok(match kind {
        Seek::Constant => SeekCurve::Constant(fields.ms("Constant seek time")?),
        Seek::Linear | Seek::Curve => {
            let single = fields.ms("Single cylinder seek time")?;
            let average = fields.ms("Average seek time")?;
            let full = fields.ms("Full strobe seek time")?;
            if single > average || average > full {
                return Err(fields
                    .conflict("Average seek time", "at least that of one cylinder, at most that of all"));
            }
            match kind {
                Seek::Linear => SeekCurve::Linear { single, average, full, cylinders },
                _ => SeekCurve::Curve { single, average, full, cylinders },
            }
        }
        Seek::Hpl | Seek::HplPlus10 => equation(fields, kind == Seek::HplPlus10)?,
        Seek::Extracted => SeekCurve::Measured(curve::read(&fields.path("Full seek curve")?)?),
    })
}

/// V1 to V6 of Ruemmler and Wilkes: the distance from which it is a line, constant and factor of the root, constant and
/// factor of the line, and the time of one cylinder unless that is -1.
fn equation(fields: &Fields<'_>, with_first: bool) -> Result<SeekCurve, MachineError> {
    let key = "HPL seek equation values";
    let expected = "six numbers: a distance in cylinders, then times in ms from 0 on, the last also -1";
    let values = times(fields, key, 6, expected)?;
    let valid = values.iter().enumerate().all(|(index, value)| {
        let most = if index == 0 { f64::from(u32::MAX) } else { 100_000.0 };
        (0.0..=most).contains(value) || (index == 5 && *value == -1.0)
    });
    if !valid || values[0].fract() != 0.0 {
        return Err(fields.conflict(key, expected));
    }
    let first = if with_first {
        let key = "First ten seek times";
        let expected = "ten times in ms, from 0 on";
        let first = times(fields, key, 10, expected)?;
        if first.iter().any(|ms| !(0.0..=100_000.0).contains(ms)) {
            return Err(fields.conflict(key, expected));
        }
        first
    } else if values[5] == -1.0 {
        Vec::new()
    } else {
        vec![values[5]]
    };
    let time = |ms: f64| Duration::from_seconds(ms / 1e3);
    Ok(SeekCurve::RootThenLine {
        first: first.into_iter().map(time).collect(),
        division: values[0] as u32,
        root: (time(values[1]), time(values[2])),
        line: (time(values[3]), time(values[4])),
    })
}

fn times(
    fields: &Fields<'_>,
    key: &'static str,
    count: usize,
    expected: &str,
) -> Result<Vec<f64>, MachineError> {
    let items: &[Item] = fields.list(key)?;
    if items.len() != count {
        return Err(fields.conflict(key, expected));
    }
    items.iter().map(|item| number(item).ok_or_else(|| fields.wrong(key, item, expected))).collect()
}

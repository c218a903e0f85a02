//! A `.seek` file: `distance, ms` or `distance, ms, deviation` a line, after an optional line that counts them.

use std::path::Path;

use super::text::{contents, syntax};
use crate::error::MachineError;
use crate::quantity::Duration;

/// The points of a seek curve, ascending.
pub(super) fn read(path: &Path) -> Result<Vec<(u32, Duration)>, MachineError> {
    let text = contents(path)?;
    let mut points = Vec::new();
    let mut last_line = 1;
    for (line, words) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if words.is_empty() || words.starts_with('#') || words.starts_with("Seek distances measured") {
            continue;
        }
        let point = point(words).ok_or_else(|| {
            let message =
                format!("found '{words}': expected a distance in cylinders, a comma, and a time in ms");
            syntax(path, line, message)
        })?;
        points.push((point.0, point.1, line));
        last_line = line;
    }
    if points.is_empty() {
        return Err(syntax(path, last_line, "expected at least one distance, ms".to_owned()));
    }
    points.sort_by_key(|(distance, _, _)| *distance);
    if let Some(twice) = points.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (distance, line) = (twice[1].0, twice[0].2.max(twice[1].2));
        return Err(syntax(path, line, format!("distance {distance} a second time")));
    }
    // An entry for no distance at all would say what no seek takes: nothing.
    Ok(points.into_iter().filter(|point| point.0 > 0).map(|(distance, time, _)| (distance, time)).collect())
}

fn point(words: &str) -> Option<(u32, Duration)> {
    let mut fields = words.split([',', ' ', '\t']).filter(|field| !field.is_empty());
    let distance: u32 = fields.next()?.parse().ok()?;
    let ms: f64 = fields.next()?.parse().ok().filter(|ms| (0.0..=100_000.0).contains(ms))?;
    let deviation = fields.next().is_none_or(|field| field.parse::<f64>().is_ok());
    (deviation && fields.next().is_none()).then(|| (distance, Duration::from_seconds(ms / 1e3)))
}

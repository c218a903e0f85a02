//! Time over the number of segments: published, computed, and predicted.

use pio_plan::Direction;
use pio_report::chart::{Figure, Point, Series};

use super::{Cell, Row, Table};

/// A table's figure.
pub fn figure(table: &Table) -> Figure {
    let series = |name: &str, point: &dyn Fn(&Row) -> Option<Point>| Series {
        name: name.to_owned(),
        points: table.rows.iter().filter_map(point).collect(),
    };
    let published = |pick: fn(&Row) -> &Cell| {
        move |row: &Row| pick(row).published.map(|seconds| Point::exact(row.pieces as f64, seconds))
    };
    let computed = |pick: fn(&Row) -> &Cell| {
        move |row: &Row| {
            let Cell { computed, low, high, published, .. } = *pick(row);
            let x = row.pieces as f64;
            // Where there is something to compare with, that is what is to be seen.
            Some(if published.is_some() {
                Point::exact(x, computed)
            } else {
                Point { x, y: computed, low, high }
            })
        }
    };
    let simulated = |pick: fn(&Row) -> &Cell| {
        move |row: &Row| pick(row).simulated.map(|seconds| Point::exact(row.pieces as f64, seconds))
    };
    let collective: fn(&Row) -> &Cell = |row| &row.collective;
    let ecio: fn(&Row) -> &Cell = |row| &row.ecio;
    let mut lines = vec![
        series("two-phase, published", &published(collective)),
        series("two-phase, model", &computed(collective)),
        series("two-phase, simulated", &simulated(collective)),
        series("ECIO, published", &published(ecio)),
        series("ECIO, model", &computed(ecio)),
        series("ECIO, simulated", &simulated(ecio)),
    ];
    lines.retain(|line| !line.points.is_empty());
    Figure {
        name: file_name(table),
        title: format!("Hong et al. 2006, {}", title(table)),
        x_label: "segments of all clients".to_owned(),
        y_label: format!("seconds, {} executions", table.executions),
        log_x: true,
        log_y: true,
        series: lines,
    }
}

/// What a table shows.
pub(super) fn title(table: &Table) -> String {
    let number = table.number.map(|number| format!("Table {number}: ")).unwrap_or_default();
    let plural = if table.servers == 1 { "" } else { "s" };
    format!(
        "{number}{} of {}-byte segments, {} clients + {} server{plural}",
        direction(table.direction),
        table.piece_bytes,
        table.clients,
        table.servers
    )
}

pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

fn file_name(table: &Table) -> String {
    match table.number {
        Some(number) => format!("table-{number}"),
        None => format!("{}-{}-{}", direction(table.direction), table.clients, table.servers),
    }
}

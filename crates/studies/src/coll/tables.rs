//! The study as tables, and its figures as they are drawn.

use pio_report::Table;
use pio_report::chart::{Figure, Point, Series};

use super::{Most, Study};
use crate::{Computed, LOOKED_UP, Published, Statement};

impl Study {
    /// All that is told of it.
    pub fn text(&self) -> String {
        let mut tables: Vec<Table> =
            self.figures.iter().filter(|figure| !is_long(figure)).map(figure_table).collect();
        if !self.most.is_empty() {
            tables.push(most_table(&self.most));
        }
        tables.push(statements_table(&self.statements));
        tables.iter().map(Table::text).collect::<Vec<_>>().join("\n")
    }

    /// Its figures, to be drawn.
    pub fn drawings(&self) -> Vec<Figure> {
        self.figures.iter().map(drawn).collect()
    }
}

fn is_numbered(figure: &Figure) -> bool {
    figure.name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Pings, and all nodes of a machine: too many points to print.
fn is_long(figure: &Figure) -> bool {
    figure.series.iter().any(|line| line.points.len() > 20)
}

fn file_name(figure: &Figure) -> String {
    if is_numbered(figure) { format!("figure-{}", figure.name) } else { figure.name.clone() }
}

fn title(figure: &Figure) -> String {
    if is_numbered(figure) {
        format!("Figure {}: {}", figure.name, figure.title)
    } else {
        figure.title.clone()
    }
}

/// As it is drawn.
fn drawn(figure: &Figure) -> Figure {
    Figure {
        name: file_name(figure),
        title: format!("Coll et al. 2003, {}", title(figure)),
        ..figure.clone()
    }
}

fn figure_table(figure: &Figure) -> Table {
    let row = |line: &Series, point: &Point| {
        vec![
            line.name.clone(),
            point.x.to_string(),
            format!("{:.1}", point.y),
            if point.half_width() > 0.0 { format!("± {:.1}", point.half_width()) } else { String::new() },
        ]
    };
    let lines = figure.series.iter();
    Table {
        title: title(figure),
        note: format!("x: {}. y: {}.", figure.x_label, figure.y_label),
        columns: vec!["line", ">x", ">y", ">95 %"],
        rows: lines.flat_map(|line| line.points.iter().map(|point| row(line, point))).collect(),
    }
}

fn most_table(most: &[Most]) -> Table {
    let known = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    let row = |most: &Most| {
        let error = most.published.map(|published| most.accepted / published - 1.0);
        vec![
            most.traffic.clone(),
            most.application.clone(),
            known(most.published),
            format!("{:.0}", most.accepted),
            error.map_or("–".to_owned(), |error| format!("{:+.0} %", error * 100.0)),
            known(most.predicted),
        ]
    };
    Table {
        title: "Table 1: what I/O nodes accept in the mean of the highest quarter of the offered loads, MB/s each"
            .to_owned(),
        note: format!(
            "Nothing was fitted to the table. That all data go to I/O nodes was decided after it was looked up; the last column \
             was predicted before, on {LOOKED_UP}, with half of the data leaving them. The paper prints no table by application."
        ),
        columns: vec!["traffic", "application", ">published", ">computed", ">error", ">predicted then"],
        rows: most.iter().map(row).collect(),
    }
}

fn statements_table(statements: &[Statement]) -> Table {
    let number = |value: f64, unit: &str| format!("{value:.3} {unit}").trim_end().to_owned();
    let row = |statement: &Statement| {
        let (value, unit) = match &statement.computed {
            Computed::Number(value, unit) => (number(*value, unit), *unit),
            Computed::Words(words) => (words.clone(), ""),
        };
        vec![
            statement.place.to_owned(),
            statement.what.clone(),
            match statement.published {
                Published::Number(published) | Published::AtLeast(published) => number(published, unit),
                Published::Words(words) => format!("\"{words}\""),
                Published::Nothing => "–".to_owned(),
            },
            value,
            statement.verdict_cell(),
            statement.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the paper states, and what we compute".to_owned(),
        note: "exact: follows from the description. calibrated: a parameter was fitted to the number. predicted: no \
               parameter was fitted to it, but mechanisms were chosen after all numbers had been looked up. papers/coll-2003/README.md says where each number comes from."
            .to_owned(),
        columns: vec!["section", "what", ">published", ">computed", ">error", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}

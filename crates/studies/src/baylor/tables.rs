//! The study as tables, and its figures as they are drawn.

use pio_report::Table;
use pio_report::chart::{Figure, Point, Series};

use super::{Plot, loads, rates};
use crate::{Computed, LOOKED_UP, Published, Statement};

/// All that is told of the study: its figures, its rates, and what its text says.
pub fn text(plots: &[Plot], statements: &[Statement]) -> String {
    let mut tables: Vec<Table> = plots.iter().map(plot_table).collect();
    tables.push(rates_table());
    let mut text = tables.iter().map(Table::text).collect::<Vec<_>>().join("\n");
    text.push('\n');
    if !statements.is_empty() {
        text.push_str(&statements_table(statements).text());
    }
    text
}

fn plot_table(plot: &Plot) -> Table {
    let row = |line: &Series, point: &Point| {
        vec![
            line.name.clone(),
            point.x.to_string(),
            format!("{:.4} {}", point.y, plot.unit).trim_end().to_owned(),
            format!("± {:.1} %", point.half_width() / point.y * 100.0),
        ]
    };
    let lines = plot.figure.series.iter();
    Table {
        title: plot.figure.title.clone(),
        note: String::new(),
        columns: vec![
            "line",
            match plot.figure.x_label.as_str() {
                "nodes" => ">nodes",
                "I/O nodes" => ">I/O nodes",
                _ => ">requests/s",
            },
            ">mean",
            ">95 %",
        ],
        rows: lines.flat_map(|line| line.points.iter().map(|point| row(line, point))).collect(),
    }
}

impl Plot {
    /// As it is drawn.
    pub fn drawing(&self) -> Figure {
        Figure { title: format!("Baylor et al. 1995, {}", self.figure.title), ..self.figure.clone() }
    }
}

fn rates_table() -> Table {
    let mut rows: Vec<Vec<String>> = rates()
        .map(|(row, ratio, computed)| {
            vec![
                format!("F/B {}", row.flops_per_byte),
                format!("{} ({ratio:.2})", row.printed_ratio),
                format!("{:.2}", row.printed_per_s),
                format!("{computed:.2}"),
                format!("{:+.2} %", (computed / row.printed_per_s - 1.0) * 100.0),
            ]
        })
        .collect();
    rows.extend(loads().map(|(load, printed, computed)| {
        vec![
            format!("load {load}"),
            "–".to_owned(),
            printed.to_string(),
            format!("{computed:.2}"),
            format!("{:+.2} %", (computed / printed - 1.0) * 100.0),
        ]
    }));
    Table {
        title: "Table 1 and the loads of section III: requests/s".to_owned(),
        note: "The printed ratios 4, 3, 2, 1 stand beside the rates of 4, 2, 1.33 and 1 (8, 16, 24, 32 I/O nodes). Loads \
               are bytes a cycle of 25 ns."
            .to_owned(),
        columns: vec!["label", ">ratio printed (meant)", ">published", ">computed", ">error"],
        rows,
    }
}

fn statements_table(statements: &[Statement]) -> Table {
    let row = |statement: &Statement| {
        let published = match statement.published {
            Published::Words(words) => words.to_owned(),
            _ => "(predicted before it was looked up)".to_owned(),
        };
        let computed = if let Computed::Words(words) = &statement.computed { words } else { "" };
        vec![
            statement.place.to_owned(),
            statement.what.clone(),
            published,
            computed.to_owned(),
            statement.verdict_cell(),
            statement.basis.name().to_owned(),
        ]
    };
    Table {
        title: "What the text says, and what is computed".to_owned(),
        note: format!(
            "independent: varies by at most 10 %. slightly, small: by at most 25 %. calibrated: parameters of the I/O node \
             were chosen for it. predicted: nothing was. What was not known was looked up on {LOOKED_UP}. \
             papers/baylor-1995/README.md says where each number comes from."
        ),
        columns: vec!["where", "what", "published", "computed", ">error", "basis"],
        rows: statements.iter().map(row).collect(),
    }
}

//! The results of a sweep: one row a point, as text, CSV, figures and a page.

use comfy_table::{CellAlignment, ContentArrangement, Table as TextTable, presets};

use crate::chart::{self, Figure, Point, Series};
use crate::{escape, units};

const STYLE: &str = include_str!("page.css");

/// Nothing may be loaded, whatever the page contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// What was swept, and what came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// What it shows.
    pub title: String,
    /// How it can be had again: version, workload, machines, seed.
    pub note: String,
    /// The names of what was set at each point.
    pub settings: Vec<String>,
    /// What was found at each point.
    pub measures: Vec<Measure>,
    /// The points, in order.
    pub rows: Vec<Row>,
}

/// Something found at each point.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What people read.
    pub name: &'static str,
    /// What programs read, with its unit.
    pub column: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Whether it is drawn.
    pub is_drawn: bool,
}

/// What something is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A duration, in seconds.
    Seconds,
    /// Bytes a second.
    BytesPerSecond,
    /// A number without a unit.
    Number,
    /// A whole number of things.
    Count,
    /// 0 for no, anything else for yes.
    YesNo,
}

/// One point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The value of each setting, as it was written.
    pub settings: Vec<String>,
    /// The value of each setting as a number, in its basic unit, where it is one.
    pub places: Vec<Option<f64>>,
    /// What was found.
    pub values: Vec<f64>,
}

impl Sweep {
    /// As text for a terminal.
    pub fn text(&self) -> String {
        let mut table = TextTable::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let names = self.settings.iter().map(String::as_str);
        table.set_header(names.chain(self.measures.iter().map(|measure| measure.name)).map(escape::terminal));
        for row in &self.rows {
            table.add_row(self.cells(row).iter().map(|cell| escape::terminal(cell)));
        }
        for index in 0..self.settings.len() + self.measures.len() {
            if let Some(column) = table.column_mut(index) {
                column.set_padding((0, 2));
                if index >= self.settings.len() || self.is_numeric(index) {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut text = format!("{}\n", escape::terminal(&self.title));
        for (index, line) in lines.iter().enumerate() {
            text.push_str(&format!("  {line}\n"));
            if index == 0 {
                text.push_str(&format!("  {}\n", "─".repeat(width)));
            }
        }
        text.push_str(&format!("  {}\n", escape::terminal(&self.note)));
        text
    }

    /// As CSV (RFC 4180), numbers in the units of their columns.
    pub fn csv(&self) -> String {
        let names = self.settings.iter().map(String::as_str);
        let mut text = line(names.chain(self.measures.iter().map(|measure| measure.column)));
        for row in &self.rows {
            let values: Vec<String> = row.values.iter().map(f64::to_string).collect();
            text.push_str(&line(row.settings.iter().chain(&values).map(String::as_str)));
        }
        text
    }

    /// A figure of every measure that is drawn, over the setting that varies as a number; none if none does. Measures
    /// with the same unit share a figure, whose name is the column of the first.
    pub fn figures(&self) -> Vec<Figure> {
        let Some(along) = self.along() else { return Vec::new() };
        let mut figures: Vec<(&Measure, Figure)> = Vec::new();
        for (index, measure) in self.measures.iter().enumerate().filter(|(_, measure)| measure.is_drawn) {
            let series = self.series(along, index);
            match figures.iter_mut().find(|(first, _)| first.unit == measure.unit) {
                Some((_, figure)) => {
                    figure.y_label.push_str(&format!(", {}", measure.name));
                    figure.series.extend(series);
                }
                None => figures.push((measure, self.figure(along, measure, series))),
            }
        }
        figures.into_iter().map(|(first, figure)| in_units(first.unit, figure)).collect()
    }

    /// As one HTML page that needs nothing else.
    pub fn html(&self) -> String {
        let title = escape::html(&self.title);
        let figures: String = self
            .figures()
            .iter()
            .map(|figure| format!("<figure>{}</figure>\n", chart::svg(figure)))
            .collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header><div><p class=\"kind\">Sweep</p><h1>{title}</h1></div></header>\n\
             <section>{figures}{}<p>{}</p></section>\n</main>\n</body>\n</html>\n",
            self.html_table(),
            escape::html(&self.note)
        )
    }

    fn html_table(&self) -> String {
        let numeric: Vec<bool> = (0..self.settings.len() + self.measures.len())
            .map(|index| index >= self.settings.len() || self.is_numeric(index))
            .collect();
        let cells = |tag: &str, cells: &[String]| -> String {
            let cell = |(cell, is_numeric): (&String, &bool)| {
                let class = if *is_numeric { " class=\"n\"" } else { "" };
                format!("<{tag}{class}>{}</{}>", escape::html(cell), &tag[..2])
            };
            format!("<tr>{}</tr>", cells.iter().zip(&numeric).map(cell).collect::<String>())
        };
        let measures = self.measures.iter().map(|measure| measure.name.to_owned());
        let names: Vec<String> = self.settings.iter().cloned().chain(measures).collect();
        let head = cells("th scope=\"col\"", &names);
        let body: String = self.rows.iter().map(|row| cells("td", &self.cells(row))).collect();
        format!(
            "<figure class=\"table\"><div class=\"scroll\" tabindex=\"0\"><table><thead>{head}</thead>\
             <tbody>{body}</tbody></table></div></figure>"
        )
    }

    /// What people read of a row.
    fn cells(&self, row: &Row) -> Vec<String> {
        let values = self.measures.iter().zip(&row.values).map(|(measure, value)| match measure.unit {
            _ if !value.is_finite() => "–".to_owned(),
            Unit::Seconds => units::time_s(*value),
            Unit::BytesPerSecond => units::rate(*value),
            Unit::Number => units::significant(*value),
            Unit::Count => units::count(*value as u64),
            Unit::YesNo => if *value == 0.0 { "no" } else { "yes" }.to_owned(),
        });
        row.settings.iter().cloned().chain(values).collect()
    }

    fn is_numeric(&self, setting: usize) -> bool {
        self.rows.iter().all(|row| row.places.get(setting).is_some_and(Option::is_some))
    }

    /// The setting to draw along: of those that are numbers everywhere the one with most different values.
    fn along(&self) -> Option<usize> {
        let different = |setting: usize| self.places(setting).len();
        let candidates = (0..self.settings.len()).filter(|setting| self.is_numeric(*setting));
        let counted = candidates.map(|setting| (different(setting), setting)).filter(|(count, _)| *count > 1);
        // Of several the first one.
        counted.max_by_key(|(count, setting)| (*count, usize::MAX - setting)).map(|(_, setting)| setting)
    }

    /// The different values of a setting, ascending.
    fn places(&self, setting: usize) -> Vec<f64> {
        let mut places: Vec<f64> = self.rows.iter().filter_map(|row| row.places[setting]).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The unit in which the first value of a setting is written, and how much it is in the basic unit.
    fn written_unit(&self, setting: usize) -> (f64, &str) {
        let Some(row) = self.rows.first() else { return (1.0, "") };
        let text = row.settings[setting].trim();
        let end = text.find(|c: char| c.is_alphabetic() && c != 'e').unwrap_or(text.len());
        match (text[..end].trim().parse::<f64>(), row.places[setting]) {
            (Ok(number), Some(place)) if number != 0.0 && end < text.len() => (place / number, &text[end..]),
            _ => (1.0, ""),
        }
    }

    fn figure(&self, along: usize, measure: &Measure, series: Vec<Series>) -> Figure {
        let name = &self.settings[along];
        let (_, unit) = self.written_unit(along);
        Figure {
            name: measure.column.to_owned(),
            title: self.title.clone(),
            x_label: if unit.is_empty() { name.clone() } else { format!("{name} [{unit}]") },
            y_label: measure.name.to_owned(),
            log_x: is_geometric(&self.places(along)),
            log_y: false,
            series,
        }
    }

    /// A line for each combination of the other settings that vary.
    fn series(&self, along: usize, measure: usize) -> Vec<Series> {
        let drawn =
            self.measures.iter().filter(|other| other.is_drawn && other.unit == self.measures[measure].unit);
        let is_alone = drawn.count() == 1;
        let mut lines: Vec<Series> = Vec::new();
        let (factor, _) = self.written_unit(along);
        for row in &self.rows {
            let mut words: Vec<&str> = (0..self.settings.len())
                .filter(|setting| *setting != along && self.varies(*setting))
                .map(|setting| row.settings[setting].as_str())
                .collect();
            if !is_alone || words.is_empty() {
                words.push(self.measures[measure].name);
            }
            let name = words.join(", ");
            let (Some(x), y) = (row.places[along], row.values[measure]) else { continue };
            if !y.is_finite() {
                continue;
            }
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(Point::exact(x / factor, y)),
                None => lines.push(Series { name, points: vec![Point::exact(x / factor, y)] }),
            }
        }
        for line in &mut lines {
            line.points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
        lines
    }

    fn varies(&self, setting: usize) -> bool {
        self.rows.iter().any(|row| row.settings[setting] != self.rows[0].settings[setting])
    }
}

/// Whether each value is the same multiple of the one before, as in 1, 4, 16: then a logarithmic axis spreads them evenly.
fn is_geometric(ascending: &[f64]) -> bool {
    let ratios: Vec<f64> = ascending.windows(2).map(|pair| pair[1] / pair[0]).collect();
    ratios.len() > 1
        && ascending[0] > 0.0
        && ratios.iter().all(|ratio| (ratio / ratios[0] - 1.0).abs() < 1e-9)
}

/// The figure with its values in the unit in which the largest has few digits.
fn in_units(unit: Unit, mut figure: Figure) -> Figure {
    let names: &[(f64, &str)] = match unit {
        Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
        Unit::BytesPerSecond => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
        Unit::Number | Unit::Count | Unit::YesNo => return figure,
    };
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let largest = points().map(|point| point.y).fold(0.0, f64::max);
    // Beside a saturated network or a slow strategy, all others would lie on the axis.
    figure.log_y =
        points().all(|point| point.y > largest / 1e6) && points().any(|point| point.y < largest / 30.0);
    let (factor, name) =
        *names.iter().find(|(factor, _)| largest >= *factor).unwrap_or(&names[names.len() - 1]);
    for point in figure.series.iter_mut().flat_map(|series| &mut series.points) {
        *point = Point::exact(point.x, point.y / factor);
    }
    figure.y_label.push_str(&format!(" [{name}]"));
    figure
}

/// A line of CSV.
fn line<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.to_owned()
        }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep() -> Sweep {
        let row = |cache: &str, bytes: f64, policy: &str, time: f64| Row {
            settings: vec![cache.into(), policy.into()],
            places: vec![Some(bytes), None],
            values: vec![time],
        };
        Sweep {
            title: "Idle <time>".into(),
            note: "seed 1".into(),
            settings: vec!["cache".into(), "policy, \"named\"".into()],
            measures: vec![Measure { name: "idle", column: "idle_s", unit: Unit::Seconds, is_drawn: true }],
            rows: vec![
                row("16 MB", 16e6, "lru", 2.5),
                row("16 MB", 16e6, "mru", 1.0),
                row("8 MB", 8e6, "lru", 3.0),
                row("8 MB", 8e6, "mru", 2.0),
            ],
        }
    }

    #[test]
    fn a_line_for_each_setting_that_is_no_number_sorted_along_the_one_that_is() {
        let figures = sweep().figures();
        let [figure] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!(figure.name, "idle_s");
        assert_eq!((figure.x_label.as_str(), figure.y_label.as_str()), ("cache [MB]", "idle [s]"));
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["lru", "mru"]);
        assert_eq!(figure.series[0].points, [Point::exact(8.0, 3.0), Point::exact(16.0, 2.5)]);
    }

    #[test]
    fn small_times_are_drawn_in_small_units_and_doublings_evenly() {
        let mut sweep = sweep();
        for (row, place) in sweep.rows.iter_mut().zip([1e6, 2e6, 4e6, 8e6]) {
            row.settings[0] = format!("{} MB", place / 1e6);
            row.places[0] = Some(place);
            row.values[0] /= 1e4;
        }
        let figures = sweep.figures();
        assert!(figures[0].log_x);
        assert_eq!(figures[0].y_label, "idle [µs]");
        assert!((figures[0].series[0].points[0].y - 250.0).abs() < 1e-9);
    }

    #[test]
    fn csv_quotes_what_it_must() {
        let csv = sweep().csv();
        assert!(csv.starts_with("cache,\"policy, \"\"named\"\"\",idle_s\r\n16 MB,lru,2.5\r\n"), "{csv}");
    }

    #[test]
    fn text_has_a_line_a_point_and_the_page_escapes() {
        let text = sweep().text();
        assert_eq!(text.lines().count(), 1 + 2 + 4 + 1, "{text}");
        assert!(text.contains("2.5 s"), "{text}");
        let html = sweep().html();
        assert!(html.contains("Idle &lt;time&gt;") && html.contains("<svg"));
    }
}

//! A scoreboard as text: a table of how good the predictions are, then each of them, worst first.

use pio_report::Table;

use super::ScoreError;
use super::leave_out::{COVERAGE, Predicted, median};

/// What is predicted and measured, and how far apart they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoreboard {
    /// The table of how good they are: its title, and what one must know to read it.
    pub title: String,
    /// The same.
    pub note: String,
    /// One a quantity.
    pub sections: Vec<Section>,
}

/// The predictions of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The quantity, with its unit.
    pub name: String,
    /// What repeats of one run differ by in the median, parts of the larger; none if it is not known.
    pub noise: Option<f64>,
    /// Simple predictions of the same cases: what they say, and their median error.
    pub simple: Vec<(&'static str, f64)>,
    /// One a case.
    pub lines: Vec<Line>,
    /// Some of the same cases, counted for themselves too.
    pub parts: Vec<Section>,
}

/// A prediction beside a measurement, in the unit of its section.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The system.
    pub system: String,
    /// What was measured first, and what is predicted from it.
    pub case: String,
    /// What was measured.
    pub measured: f64,
    /// What is predicted.
    pub predicted: f64,
    /// The interval given for it: its ends; infinite if too few other families tell how wide it is.
    pub interval: (f64, f64),
    /// Where the measurement was published; may be empty.
    pub published: String,
}

impl Line {
    pub(super) fn new(
        system: &str,
        case: String,
        measured: f64,
        predicted: Predicted,
        published: String,
    ) -> Line {
        let Predicted { value, low, high } = predicted;
        Line { system: system.to_owned(), case, measured, predicted: value, interval: (low, high), published }
    }

    /// How far the prediction is off, as a part of what was measured.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// By which factor it is off, either way: 1 or more.
    pub fn factor(&self) -> f64 {
        (self.predicted / self.measured).max(self.measured / self.predicted)
    }

    fn has_interval(&self) -> bool {
        self.interval.1.is_finite()
    }

    fn is_held(&self) -> bool {
        (self.interval.0..=self.interval.1).contains(&self.measured)
    }
}

impl Section {
    /// The median of the errors' sizes, parts of what was measured.
    pub fn median_error(&self) -> f64 {
        median(self.lines.iter().map(|line| line.error().abs()))
    }

    /// The median of the factors by which predictions are off.
    pub fn median_factor(&self) -> f64 {
        median(self.lines.iter().map(Line::factor))
    }

    /// The part of the measurements that the intervals hold; NaN if there are none.
    pub fn held(&self) -> f64 {
        let with_interval = || self.lines.iter().filter(|line| line.has_interval());
        with_interval().filter(|line| line.is_held()).count() as f64 / with_interval().count() as f64
    }

    /// The quarter of the errors that is worst begins here.
    fn worst_quarter(&self) -> f64 {
        let mut errors: Vec<f64> = self.lines.iter().map(|line| line.error().abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        errors.get(errors.len() * 3 / 4).copied().unwrap_or(f64::NAN)
    }

    fn table(&self) -> Table {
        let is_published = self.lines.iter().any(|line| !line.published.is_empty());
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|one, other| other.factor().total_cmp(&one.factor()));
        let row = |line: &&Line| {
            let mut cells = vec![
                line.system.clone(),
                line.case.clone(),
                number(line.measured),
                number(line.predicted),
                if line.has_interval() {
                    format!("{} to {}", number(line.interval.0), number(line.interval.1))
                } else {
                    "–".to_owned()
                },
                if line.is_held() { "" } else { "outside" }.to_owned(),
                signed(line.error()),
            ];
            cells.extend(is_published.then(|| line.published.clone()));
            cells
        };
        let mut columns = vec!["system", "from → to", ">measured", ">predicted", ">interval", "", ">error"];
        columns.extend(is_published.then_some("published in"));
        Table {
            title: self.name.clone(),
            note: String::new(),
            columns,
            rows: lines.iter().map(row).collect(),
        }
    }
}

impl Scoreboard {
    /// As text for a terminal.
    pub fn text(&self) -> String {
        let counted: Vec<&Section> =
            self.sections.iter().flat_map(|section| std::iter::once(section).chain(&section.parts)).collect();
        let summary = Table {
            title: self.title.clone(),
            note: self.note.clone(),
            columns: vec![
                "predicted",
                ">cases",
                ">median error",
                ">factor",
                ">worst quarter from",
                ">interval holds",
                ">repeats differ by",
                "simple predictions",
            ],
            rows: counted
                .iter()
                .map(|section| {
                    vec![
                        section.name.clone(),
                        section.lines.len().to_string(),
                        percent(section.median_error()),
                        factor(section.median_factor()),
                        percent(section.worst_quarter()),
                        format!("{} (of {})", percent(section.held()), percent(COVERAGE)),
                        section.noise.map_or_else(|| "–".to_owned(), percent),
                        simple_cell(section),
                    ]
                })
                .collect(),
        };
        let mut text = summary.text();
        for section in &self.sections {
            text.push('\n');
            text.push_str(&section.table().text());
        }
        text
    }

    /// Refuses one without a case.
    pub(super) fn with_cases(self, needed: &'static str, why: String) -> Result<Scoreboard, ScoreError> {
        if self.sections.iter().all(|section| section.lines.is_empty()) {
            return Err(ScoreError::NothingToPredict { needed, why });
        }
        Ok(self)
    }
}

fn simple_cell(section: &Section) -> String {
    let cells: Vec<String> =
        section.simple.iter().map(|(what, error)| format!("{what} {}", percent(*error))).collect();
    cells.join(", ")
}

fn percent(part: f64) -> String {
    if part.is_nan() { "–".to_owned() } else { format!("{:.0} %", part * 100.0) }
}

fn factor(factor: f64) -> String {
    if factor.is_nan() { "–".to_owned() } else { format!("{factor:.2}") }
}

/// An error with its sign; one that has no place in a table of percents as a factor.
fn signed(error: f64) -> String {
    if error > 9.99 { format!("× {:.0}", error + 1.0) } else { format!("{:+.0} %", error * 100.0) }
}

/// Three figures.
fn number(value: f64) -> String {
    match value {
        _ if value < 1.0 => format!("{value:.3}"),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

//! The report's figures one by one, for who shows them elsewhere: in a notebook.

use pio_explain::Explanation;

use crate::figures;
use crate::html::STYLE;

/// A figure that needs nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigurePage {
    /// Name, for looking it up: `time`, `rate`, `sizes` or `processes`.
    pub name: &'static str,
    /// A whole HTML page with the figure, its title and its key.
    pub html: String,
}

/// The figures of an explanation that have something to show.
pub fn figure_pages(found: &Explanation) -> Vec<FigurePage> {
    let figures = [
        ("time", figures::time_by_operation(found)),
        ("rate", figures::data_rate(found)),
        ("sizes", figures::request_sizes(found)),
        ("processes", figures::processes(found)),
    ];
    let shown = figures.into_iter().filter(|(_, body)| !body.is_empty());
    shown.map(|(name, body)| FigurePage { name, html: page(&body) }).collect()
}

fn page(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n"
    )
}

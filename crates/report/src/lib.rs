//! Report: tables, figures and the HTML report.
//!
//! [`text()`] is for the terminal (a [`Screen`] says how wide that is), [`html()`] writes one file that needs nothing else: no network, no library, no font.

mod bars;
mod brief;
mod call_sites;
pub mod chart;
mod collectives;
mod columns;
mod comparison;
mod counted;
mod crowd;
mod diff;
mod escape;
mod figure_pages;
mod figures;
mod file_systems;
mod findings;
mod gathered;
mod headline;
mod html;
mod live;
mod marked;
mod marks;
mod mpi_errors;
mod named_files;
mod over_time;
mod prediction;
mod rhythm;
mod rows;
mod screen;
mod sections;
mod sweep;
mod table;
mod text;
mod timeline;
pub mod units;
mod words;

pub use brief::brief;
pub use counted::text_with_counters;
pub use diff::diff_text;
pub use figure_pages::{FigurePage, figure_pages};
pub use findings::{Told, findings_in_words, not_advised_in_words};
pub use gathered::{Gathering, explain_for_page};
pub use headline::{has_counters_alone, losses};
pub use html::{html, html_of_trace, html_with_counters};
pub use prediction::{AsItIs, Prediction, interval_text, predictions_text};
pub use screen::Screen;
pub use sweep::{Measure, Row, Sweep, Unit};
pub use table::{Table, entry};
pub use text::text;

//! Report: tables, figures and the HTML report.
//!
//! [`text`] is for the terminal, [`html`] writes one file that needs nothing else: no network, no library, no font.

mod escape;
mod prediction;
mod sections;
mod table;
mod text;
pub mod units;
mod words;

pub use prediction::{Prediction, predictions_text};
pub use text::text;

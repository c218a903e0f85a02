//! Report: tables, figures and the HTML report.

//! A table, as text and as HTML.

use comfy_table::{CellAlignment, ContentArrangement, Table as TextTable, presets};

use crate::escape;

/// Rows of text under headings. Cells and note are plain text, whatever they hold: each output escapes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What one must know to read it; may be empty.
    pub note: String,
    /// Headings; those of numbers start with `>` (to the right).
    pub columns: Vec<&'static str>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// As text for a terminal, each line indented by two blanks.
    pub fn text(&self) -> String {
        let mut table = TextTable::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|name| name.trim_start_matches('>')));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| escape::terminal(cell)));
        }
        for (index, name) in self.columns.iter().enumerate() {
            if let Some(column) = table.column_mut(index) {
                if name.starts_with('>') {
                    column.set_cell_alignment(CellAlignment::Right);
                }
                column.set_padding((0, 2));
            }
        }
        let body = table.to_string();
        let mut text = format!("{}\n", self.title);
        let width = body.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        for (index, line) in body.lines().enumerate() {
            text.push_str(&format!("  {}\n", line.trim_end()));
            if index == 0 {
                text.push_str(&format!("  {}\n", "─".repeat(width)));
            }
        }
        if !self.note.is_empty() {
            text.push_str(&wrap(&escape::terminal(&self.note), 96, "  "));
        }
        text
    }

    /// As HTML, the title as its caption.
    pub(crate) fn html(&self) -> String {
        let mut html = String::from("<figure class=\"table\"><div class=\"scroll\" tabindex=\"0\"><table>");
        html.push_str(&format!("<caption>{}</caption><thead><tr>", escape::html(&self.title)));
        for name in &self.columns {
            let (class, name) = name.strip_prefix('>').map_or(("", *name), |name| (" class=\"n\"", name));
            html.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape::html(name)));
        }
        html.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            html.push_str("<tr>");
            for (cell, name) in row.iter().zip(&self.columns) {
                let class = if name.starts_with('>') { " class=\"n\"" } else { "" };
                html.push_str(&format!("<td{class}>{}</td>", escape::html(cell)));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>");
        if !self.note.is_empty() {
            html.push_str(&format!("<figcaption>{}</figcaption>", escape::html(&self.note)));
        }
        html.push_str("</figure>\n");
        html
    }
}

/// Words in lines of at most `width` columns. A number stays with the word behind it, which is likely its unit.
pub(crate) fn wrap(words: &str, width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in glued(words) {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(indent);
            column = indent.chars().count();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(&word);
        column += length;
    }
    if column > 0 {
        text.push('\n');
    }
    text
}

fn glued(words: &str) -> Vec<String> {
    let mut glued: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match glued.last_mut().filter(|last| last.ends_with(|end: char| end.is_ascii_digit())) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => glued.push(word.to_string()),
        }
    }
    glued
}

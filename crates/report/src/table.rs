//! A table, as text and as HTML.

use comfy_table::{CellAlignment, ContentArrangement, Table as TextTable, presets};

use crate::live::Live;
use crate::{escape, screen};

/// Rows of text under headings. Title, cells and note are plain text, whatever they hold: each output escapes them.
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
        for row in self.fitted(screen::columns()) {
            table.add_row(row);
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
        let mut text = format!("{}\n", screen::title(&escape::terminal(&self.title)));
        let width = body.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        for (index, line) in body.lines().enumerate() {
            text.push_str(&format!("  {}\n", line.trim_end()));
            if index == 0 {
                text.push_str(&format!("  {}\n", screen::faint(&"─".repeat(width))));
            }
        }
        if !self.note.is_empty() {
            text.push_str(&wrap(&escape::terminal(&self.note), 96, "  "));
        }
        text
    }

    /// The cells as a terminal may show them. Where a line may not have more than so many columns, those of text are shortened,
    /// widest first: a path in its middle, other text at its end.
    fn fitted(&self, most: Option<usize>) -> Vec<Vec<String>> {
        /// Text that is cut down to less says nothing.
        const LEAST: usize = 12;
        let length = |text: &str| text.chars().count();
        let mut rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| escape::terminal(cell)).collect()).collect();
        let Some(most) = most else { return rows };
        let title = |index: usize| length(self.columns[index].trim_start_matches('>'));
        let cells = |index: usize| rows.iter().filter_map(move |row| Some(row.get(index)?.chars().count()));
        let mut widths: Vec<usize> =
            (0..self.columns.len()).map(|index| cells(index).max().unwrap_or(0).max(title(index))).collect();
        let needed = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        while needed(&widths) > most {
            let can_shrink = |index: &usize| {
                !self.columns[*index].starts_with('>') && widths[*index] > LEAST.max(title(*index))
            };
            let Some(widest) = (0..widths.len()).filter(can_shrink).max_by_key(|index| widths[*index]) else {
                break;
            };
            widths[widest] -= 1;
        }
        for row in &mut rows {
            for (cell, width) in row.iter_mut().zip(&widths) {
                *cell = if cell.contains('/') {
                    escape::without_middle(cell, *width)
                } else {
                    escape::beginning(cell, *width)
                };
            }
        }
        rows
    }

    /// As HTML, the title as its caption.
    pub(crate) fn html(&self) -> String {
        self.html_with(None)
    }

    /// The same; the page's script counts its rows anew for chosen calls, if it is told how.
    pub(crate) fn html_with(&self, live: Option<&Live>) -> String {
        let attributes = live.map_or(String::new(), Live::attributes);
        let title = escape::html(&self.title);
        let mut html = format!(
            "<figure class=\"table\"><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">\
             <table{attributes}><caption>{title}</caption><thead><tr>"
        );
        for (index, name) in self.columns.iter().enumerate() {
            let (class, name) = name.strip_prefix('>').map_or(("", *name), |name| (" class=\"n\"", name));
            let measure = live.map_or(String::new(), |live| live.of_column(index));
            html.push_str(&format!("<th scope=\"col\"{class}{measure}>{}</th>", escape::html(name)));
        }
        html.push_str("</tr></thead><tbody>");
        for (index, row) in self.rows.iter().enumerate() {
            html.push_str(&format!("<tr{}>", live.map_or(String::new(), |live| live.of_row(index))));
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

/// Words in lines of at most `width` columns, or as many as the screen has. A number stays with the word behind it, which is likely its unit.
pub(crate) fn wrap(words: &str, width: usize, indent: &str) -> String {
    let width = screen::text_columns(width);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_where_the_table_is_too_wide() {
        let table = Table {
            columns: vec!["file", ">bytes", "what"],
            rows: vec![vec![
                "/scratch/ada/run-0017/results/field.0001".into(),
                "123456789012345678".into(),
                "a text of more words than fit".into(),
            ]],
            ..Table::default()
        };
        assert_eq!(table.fitted(None), table.rows);
        assert_eq!(table.fitted(Some(200)), table.rows);
        let fitted = table.fitted(Some(60));
        assert_eq!(fitted[0], ["/scra…s/field.0001", "123456789012345678", "a text of more wo…"]);
        // Numbers stay, and what is left of text can be read.
        let least = table.fitted(Some(10));
        assert_eq!(least[0], ["/sc…eld.0001", "123456789012345678", "a text of m…"]);
    }
}

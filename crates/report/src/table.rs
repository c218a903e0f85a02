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
    /// As text for a terminal, each line indented by two blanks. What is too wide for it goes on below, behind the same names.
    pub fn text(&self) -> String {
        let columns = screen::columns();
        let rows = self.fitted(columns);
        let mut text = format!("{}\n", screen::title(&escape::terminal(&self.title)));
        for part in self.parts(&rows, columns) {
            text.push_str(&self.part(&rows, &part));
        }
        if !self.note.is_empty() {
            text.push_str(&wrap(&escape::terminal(&self.note), 96, "  "));
        }
        text
    }

    /// Some columns of it.
    fn part(&self, rows: &[Vec<String>], part: &[usize]) -> String {
        let mut table = TextTable::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(part.iter().map(|&index| self.columns[index].trim_start_matches('>')));
        for row in rows {
            table.add_row(part.iter().map(|&index| row.get(index).map_or("", String::as_str)));
        }
        for (place, &index) in part.iter().enumerate() {
            if let Some(column) = table.column_mut(place) {
                if self.columns[index].starts_with('>') {
                    column.set_cell_alignment(CellAlignment::Right);
                }
                column.set_padding((0, 2));
            }
        }
        let body = table.to_string();
        let width = body.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (index, line) in body.lines().enumerate() {
            text.push_str(&format!("  {}\n", line.trim_end()));
            if index == 0 {
                text.push_str(&format!("  {}\n", screen::faint(&"─".repeat(width))));
            }
        }
        text
    }

    /// Columns in front that name a row: those before the first number, one at least.
    fn names(&self) -> usize {
        let before = self.columns.iter().take_while(|name| !name.starts_with('>')).count();
        if before == self.columns.len() { 1 } else { before.max(1) }
    }

    /// The columns that go beside each other where a line may have `most`; the names are in front of each part.
    fn parts(&self, rows: &[Vec<String>], most: Option<usize>) -> Vec<Vec<usize>> {
        let widths = self.widths(rows);
        let Some(most) = most.filter(|most| needed(&widths) > *most) else {
            return vec![(0..widths.len()).collect()];
        };
        let names: Vec<usize> = (0..self.names().min(widths.len())).collect();
        let mut parts = vec![names.clone()];
        let mut used = needed(&widths[..names.len()]);
        for index in names.len()..widths.len() {
            let wide = needed(&widths[index..=index]);
            if used + wide > most && parts.last().is_some_and(|part| part.len() > names.len()) {
                parts.push(names.clone());
                used = needed(&widths[..names.len()]);
            }
            used += wide;
            if let Some(part) = parts.last_mut() {
                part.push(index);
            }
        }
        parts
    }

    /// The widest text of each column.
    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let cells = |index: usize| rows.iter().filter_map(move |row| Some(row.get(index)?.chars().count()));
        (0..self.columns.len())
            .map(|index| cells(index).max().unwrap_or(0).max(self.title_width(index)))
            .collect()
    }

    fn title_width(&self, index: usize) -> usize {
        self.columns[index].trim_start_matches('>').chars().count()
    }

    /// The cells as a terminal may show them. Where a line may not have more than so many columns, those of text are shortened,
    /// widest first: a path in its middle, other text at its end. Where that is not enough, the table is in parts: then the names
    /// that each begins with take half a line at most, and other text what is left of one.
    fn fitted(&self, most: Option<usize>) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| escape::terminal(cell)).collect()).collect();
        let Some(most) = most else { return rows };
        let natural = self.widths(&rows);
        let mut widths = natural.clone();
        self.shrink(&mut widths, 0, most);
        if needed(&widths) > most {
            let names = self.names().min(natural.len());
            widths = natural;
            self.shrink(&mut widths[..names], 0, most / 2);
            let left = most.saturating_sub(needed(&widths[..names]));
            for index in names..widths.len() {
                self.shrink(&mut widths[index..=index], index, left);
            }
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

    /// Takes from the widest columns of text until they fit, or say nothing if cut down further. `widths` begins with that of column
    /// `first`.
    fn shrink(&self, widths: &mut [usize], first: usize, most: usize) {
        /// Text that is cut down to less says nothing.
        const LEAST: usize = 12;
        while needed(widths) > most {
            let can_shrink = |index: &usize| {
                let column = first + index;
                !self.columns[column].starts_with('>') && widths[*index] > LEAST.max(self.title_width(column))
            };
            let Some(widest) = (0..widths.len()).filter(can_shrink).max_by_key(|index| widths[*index]) else {
                break;
            };
            widths[widest] -= 1;
        }
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
            "<figure class=\"{}\"><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">\
             <table{attributes}><caption>{title}</caption><thead><tr>",
            figure_class(self.rows.len())
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

/// Columns that a line takes, with two blanks before each.
fn needed(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum()
}

/// The class of a table's figure: of a long one, the page shows and prints the first rows, and all at a press of a button.
fn figure_class(rows: usize) -> &'static str {
    /// As in page.css and page/tables.js.
    const SHORT: usize = 40;
    if rows > SHORT { "table long" } else { "table" }
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

/// An entry of a list: a name, and behind so many columns what is said of it, which goes on below where the screen has no room.
pub fn entry(name: &str, said: &str, room: usize) -> String {
    let first = format!("{name:room$} ");
    match screen::columns() {
        Some(columns) => first + wrap(said, columns, &" ".repeat(room + 1)).trim_start(),
        None => format!("{first}{said}\n"),
    }
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

    #[test]
    fn the_page_knows_long_tables() {
        let of = |rows: usize| Table {
            columns: vec!["file"],
            rows: vec![vec!["/d/a".to_owned()]; rows],
            ..Table::default()
        };
        assert!(of(40).html().starts_with("<figure class=\"table\">"));
        assert!(of(41).html().starts_with("<figure class=\"table long\">"));
    }

    #[test]
    fn a_table_that_cannot_be_made_to_fit_goes_on_below() {
        let table = Table {
            columns: vec!["layer", "operation", ">calls", ">total time", ">mean", ">data", "most of it on"],
            rows: [
                [
                    "posix",
                    "read",
                    "1,000",
                    "12.5 ms",
                    "12.5 µs",
                    "3.75 MiB",
                    "/scratch/ada/run-17/field.0001",
                ],
                ["", "write", "9", "400 ms", "44.4 ms", "", "/scratch/ada/run-17/field.0002"],
            ]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec(),
            ..Table::default()
        };
        for most in [40, 50, 60] {
            let rows = table.fitted(Some(most));
            let parts = table.parts(&rows, Some(most));
            assert!(parts.len() > 1, "{most}");
            // Every column once, but for the names, which begin each part; no line is too long.
            assert!(parts.iter().all(|part| part.starts_with(&[0, 1])));
            let others: Vec<_> = parts.iter().flat_map(|part| &part[2..]).copied().collect();
            assert_eq!(others, (2..7).collect::<Vec<_>>(), "{most}");
            for part in parts {
                let text = table.part(&rows, &part);
                assert!(text.lines().all(|line| line.chars().count() <= most), "{most}:\n{text}");
            }
        }
        for most in [None, Some(200), Some(72)] {
            assert_eq!(table.parts(&table.fitted(most), most), [[0, 1, 2, 3, 4, 5, 6]], "{most:?}");
        }
    }
}

//! Names from outside, made harmless.

/// For a terminal: control characters (which could move the cursor or change its colours) are spelt out.
pub(crate) fn terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// For text and attributes of HTML and SVG.
pub(crate) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ if is_unsafe(character) => safe.extend(character.escape_default()),
            _ => safe.push(character),
        }
    }
    safe
}

/// For sentences of HTML: no line ends between a number and its unit, nor behind the `…` of a name that is shortened.
pub(crate) fn prose(text: &str) -> String {
    const UNITS: [&str; 15] =
        ["%", "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ns", "µs", "ms", "s", "min", "h", "×"];
    let mut kept = String::with_capacity(text.len());
    for (index, character) in text.char_indices() {
        let rest = &text[index + character.len_utf8()..];
        let is_before_unit =
            || UNITS.contains(&rest.split([' ', ',', '.', ';', ':', ')', '/']).next().unwrap_or_default());
        match character {
            ' ' if kept.ends_with(|before: char| before.is_ascii_digit()) && is_before_unit() => {
                kept.push('\u{a0}')
            }
            '…' if rest.starts_with(|next: char| !next.is_whitespace()) => kept.push_str("…\u{2060}"),
            _ => kept.push(character),
        }
    }
    html(&kept)
}

/// The same, with what stands between back ticks as code.
pub(crate) fn prose_with_code(text: &str) -> String {
    let mut safe = String::new();
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => safe.push_str(&prose(part)),
            _ => safe.push_str(&format!("<code>{}</code>", html(part))),
        }
    }
    safe
}

/// A string literal of JSON that may stand inside a `<script>` element: `<` is spelt out, so that neither `</script>`
/// nor `<!--` can end or change it.
pub(crate) fn json(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                literal.push_str(&format!("\\u{:04x}", character as u32));
            }
            _ => literal.push(character),
        }
    }
    literal.push('"');
    literal
}

/// The end of a name that is too long: what tells files apart is at their end.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_string();
    }
    let end: String = text.chars().skip(length + 1 - columns).collect();
    format!("…{end}")
}

/// Both ends of a name that is too long, more of its last part.
pub(crate) fn without_middle(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns || columns == 0 {
        return text.to_string();
    }
    let begin = (columns - 1) / 3;
    let end = columns - 1 - begin;
    text.chars().take(begin).chain(['…']).chain(text.chars().skip(length - end)).collect()
}

/// A job is called what was typed to start it; some programs are started with pages of arguments.
pub(crate) const TITLE_COLUMNS: usize = 200;

/// The beginning of a text that is too long.
pub(crate) fn beginning(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.to_string(),
        Some(_) => text.chars().take(columns - 1).chain(['…']).collect(),
    }
}

/// A process without a rank: `python3 (pid 4711)`.
pub(crate) fn program(name: &str, pid: u32) -> String {
    const COLUMNS: usize = 24;
    if name.is_empty() { format!("pid {pid}") } else { format!("{} (pid {pid})", beginning(name, COLUMNS)) }
}

/// Control characters, and those that change the direction of text (a name could show as another one).
fn is_unsafe(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_harmless() {
        let name = "a</script><!--\"'&\u{1b}[2J\u{202e}\n";
        assert_eq!(terminal(name), "a</script><!--\"'&\\u{1b}[2J\\u{202e}\\n");
        assert_eq!(html(name), "a&lt;/script&gt;&lt;!--&quot;&#39;&amp;\\u{1b}[2J\\u{202e}\\n");
        assert_eq!(json(name), "\"a\\u003c/script\\u003e\\u003c!--\\\"'\\u0026\\u001b[2J\u{202e}\\u000a\"");
    }

    #[test]
    fn what_stands_between_back_ticks_is_code() {
        assert_eq!(prose_with_code("try `apply <x>`, or"), "try <code>apply &lt;x&gt;</code>, or");
        assert_eq!(prose_with_code("take `a 4 s` of 4 s"), "take <code>a 4 s</code> of 4\u{a0}s");
        assert_eq!(prose_with_code("a`b"), "a<code>b</code>");
    }

    #[test]
    fn numbers_keep_to_their_units_and_names_to_their_dots() {
        assert_eq!(prose("1.5 MiB/s, 3 % of 2 h."), "1.5\u{a0}MiB/s, 3\u{a0}% of 2\u{a0}h.");
        assert_eq!(prose("12 min 5 s in 3 states, x B"), "12\u{a0}min 5\u{a0}s in 3 states, x B");
        assert_eq!(prose("on …run/field <1>… by"), "on …\u{2060}run/field &lt;1&gt;… by");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shorten("/data/run/field.0001", 12), "…/field.0001");
        assert_eq!(shorten("short", 12), "short");
        assert_eq!(without_middle("/data/run/field.0001", 14), "/dat…ield.0001");
        assert_eq!(without_middle("short", 12), "short");
    }

    #[test]
    fn long_commands_keep_their_beginning() {
        assert_eq!(beginning("mpiexec -n 8 ./run", 12), "mpiexec -n …");
        assert_eq!(beginning("mpiexec -n 8", 12), "mpiexec -n 8");
    }
}

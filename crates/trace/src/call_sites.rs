//! Where in a program a file was opened: the line of its Python code.

use std::fmt;

use crate::call::{Layer, Op};
use crate::event::{Event, Target};
use crate::tables::{MarkNameId, Tables};

/// A line of a Python program that opened files, by its own hand or by a library that it called.
///
/// An open has one as its [`Target::Mark`]: the number is that of the line, the name the rest, as
/// `load in /home/ann/train.py through numpy`. Displayed, it is `/home/ann/train.py:12 load, through numpy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallSite<'a> {
    /// Path of the file of Python code.
    pub path: &'a str,
    /// Its line, from 1.
    pub line: u64,
    /// The function that the line is in: `<module>` for none.
    pub function: &'a str,
    /// The library that the line called and that opened the file; none if it opened it itself, or a library did in C.
    pub library: Option<&'a str>,
}

impl<'a> CallSite<'a> {
    /// The call site with this name and number.
    pub fn of(name: &'a str, line: u64) -> CallSite<'a> {
        // No function's name has a blank.
        let (function, rest) = name.split_once(" in ").unwrap_or(("", name));
        // A path may have any words, a library's name has neither blank nor slash.
        let through = rest.rsplit_once(" through ").filter(|(_, library)| !library.contains(['/', ' ']));
        let (path, library) = through.map_or((rest, None), |(path, library)| (path, Some(library)));
        CallSite { path, line, function, library }
    }
}

impl fmt::Display for CallSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)?;
        if !self.function.is_empty() {
            write!(f, " {}", self.function)?;
        }
        self.library.map_or(Ok(()), |library| write!(f, ", through {library}"))
    }
}

impl Event {
    /// The name and the number of the call site of an open; none of all other events, and where it is not known.
    pub fn call_site(&self) -> Option<(MarkNameId, u64)> {
        match self.target {
            Target::Mark { name, number } if self.op() == Op::Open => Some((name, number)),
            _ => None,
        }
    }
}

impl Tables {
    /// The call site of an open, if it is known.
    pub fn call_site_of_event(&self, event: &Event) -> Option<CallSite<'_>> {
        let (name, line) = event.call_site()?;
        Some(CallSite::of(self.mark_names.get(name.index())?, line))
    }

    /// The name of a mark or a phase. None for all other events.
    pub fn mark_of_event(&self, event: &Event) -> Option<&str> {
        match event.target {
            Target::Mark { name, .. } if event.layer() == Layer::Mark => {
                self.mark_names.get(name.index()).map(String::as_str)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::tables::ProcessId;

    #[test]
    fn a_call_site_is_read_from_its_name() {
        for (name, path, function, library, shown) in [
            ("load in /a/train.py", "/a/train.py", "load", None, "/a/train.py:7 load"),
            ("load in /a/b.py through PIL", "/a/b.py", "load", Some("PIL"), "/a/b.py:7 load, through PIL"),
            // Folders may be named like anything.
            (
                "f in /in in/b through c/d.py",
                "/in in/b through c/d.py",
                "f",
                None,
                "/in in/b through c/d.py:7 f",
            ),
            ("<module> in <string>", "<string>", "<module>", None, "<string>:7 <module>"),
            ("what", "what", "", None, "what:7"),
        ] {
            let site = CallSite::of(name, 7);
            assert_eq!(site, CallSite { path, line: 7, function, library });
            assert_eq!(site.to_string(), shown);
        }
    }

    #[test]
    fn opens_have_call_sites_and_marks_have_names() {
        let tables = Tables { mark_names: vec!["f in /a.py".into()], ..Tables::default() };
        let event = |call| Event {
            target: Target::Mark { name: MarkNameId(0), number: 3 },
            ..Event::new(call, ProcessId(0), 0)
        };
        assert_eq!(tables.call_site_of_event(&event(Call::Open)), Some(CallSite::of("f in /a.py", 3)));
        assert_eq!(tables.mark_of_event(&event(Call::Open)), None);
        assert_eq!(tables.call_site_of_event(&event(Call::Phase)), None);
        assert_eq!(tables.mark_of_event(&event(Call::Phase)), Some("f in /a.py"));
    }
}

//! What of a job is to be in its trace.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use pio_trace::{Event, Layer, Op, Tables};

use crate::error::Error;
use crate::paths;

/// The recorder in the job has room for so many bytes of rules (`pio_path_rules` in `c/pio_told.h`).
const MOST_PATH_BYTES: usize = 16383;

/// What to keep; by default everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Files to keep or to leave out, in this order: the first rule that matches decides. If none does, a file is kept
    /// unless some rule keeps files.
    pub paths: Vec<PathRule>,
    /// Ranks to keep. Processes without a rank are kept.
    pub ranks: Vec<RangeInclusive<u32>>,
    /// Layers to keep; all, if none is named.
    pub layers: Vec<Layer>,
    /// Reads and writes that ask for fewer bytes are left out.
    pub least_bytes: u64,
}

/// Keeps files, or leaves them out, by their absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Whether to keep what matches.
    pub keeps: bool,
    /// `*` stands for any characters, `/` among them, `?` for one.
    pub pattern: String,
}

impl PathRule {
    /// The rules of a pattern that is meant from this folder on: it itself, and, if it leads through symbolic links, what it leads to.
    /// Files that are opened are known by that name alone.
    pub fn of(keeps: bool, pattern: &str, folder: &Path) -> Vec<PathRule> {
        let pattern = absolute(pattern, folder);
        let resolved = resolved_pattern(&pattern).filter(|resolved| *resolved != pattern);
        [Some(pattern), resolved].into_iter().flatten().map(|pattern| PathRule { keeps, pattern }).collect()
    }
}

impl Filter {
    /// Whether everything is kept.
    pub fn keeps_all(&self) -> bool {
        self.paths.is_empty() && self.ranks.is_empty() && self.layers.is_empty() && self.least_bytes == 0
    }

    /// Whether a file is kept. The recorder in the job asks the same of POSIX files (`c/pio_paths.c`).
    pub fn keeps_path(&self, path: &str) -> bool {
        let decided = self.paths.iter().find(|rule| matches(rule.pattern.as_bytes(), path.as_bytes()));
        decided.map_or(!self.paths.iter().any(|rule| rule.keeps), |rule| rule.keeps)
    }

    /// Whether a process of this rank is kept.
    pub fn keeps_rank(&self, rank: Option<u32>) -> bool {
        self.ranks.is_empty() || rank.is_none_or(|rank| self.ranks.iter().any(|ranks| ranks.contains(&rank)))
    }

    /// Whether an event is kept.
    pub fn keeps(&self, event: &Event, tables: &Tables) -> bool {
        // Marks are no calls: they say where the calls that are kept were made.
        let layer_is_kept =
            self.layers.is_empty() || self.layers.contains(&event.layer()) || event.layer() == Layer::Mark;
        let size_is_kept = !matches!(event.op(), Op::Read | Op::Write) || event.size >= self.least_bytes;
        let path_is_kept = || {
            let file = event.handle.and_then(|handle| tables.file_of(handle));
            self.paths.is_empty() || file.is_none_or(|file| self.keeps_path(&file.path))
        };
        layer_is_kept && size_is_kept && path_is_kept()
    }

    /// The rules for the recorder in the job, a line each.
    pub(crate) fn path_lines(&self) -> Result<String, Error> {
        if self.paths.iter().any(|rule| rule.pattern.contains('\n')) {
            let reason = "a pattern of paths contains a line break: write `?` for it";
            return Err(Error::Patterns { reason });
        }
        let lines =
            self.paths.iter().map(|rule| format!("{}{}\n", if rule.keeps { '+' } else { '-' }, rule.pattern));
        let lines: String = lines.collect();
        if lines.len() > MOST_PATH_BYTES {
            return Err(Error::Patterns { reason: "the patterns of paths are more than 16 KiB: use fewer" });
        }
        Ok(lines)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        for rule in &self.paths {
            words.push(format!("{} {}", if rule.keeps { "path" } else { "not path" }, rule.pattern));
        }
        for ranks in &self.ranks {
            words.push(format!("ranks {}-{}", ranks.start(), ranks.end()));
        }
        for layer in &self.layers {
            words.push(format!("layer {}", layer.name()));
        }
        if self.least_bytes > 0 {
            words.push(format!("at least {} bytes", self.least_bytes));
        }
        f.write_str(&words.join(", "))
    }
}

/// Ranks as `3` or `0-7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(pub RangeInclusive<u32>);

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Ranks, String> {
        let wrong = || format!("'{text}': expected a rank or a range of ranks, such as 3 or 0-7");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first: u32 = first.trim().parse().map_err(|_| wrong())?;
        let last = last.trim().parse().map_err(|_| wrong())?;
        if first > last { Err(wrong()) } else { Ok(Ranks(first..=last)) }
    }
}

/// An absolute pattern: a relative one is meant from this folder on. Without `.` and `..`, as no file's path has them.
fn absolute(pattern: &str, folder: &Path) -> String {
    match pattern.as_bytes().first() {
        Some(b'*') => pattern.to_owned(),
        _ => {
            let mut path = PathBuf::new();
            for part in folder.join(pattern).components() {
                match part {
                    Component::CurDir => {}
                    Component::ParentDir => drop(path.pop()),
                    part => path.push(part),
                }
            }
            path.display().to_string()
        }
    }
}

/// An absolute pattern with the folders before its first `*` or `?` as they are without symbolic links.
fn resolved_pattern(pattern: &str) -> Option<String> {
    let folder = match pattern.find(['*', '?']) {
        Some(first) => pattern[..first].rfind('/')?,
        None => pattern.len(),
    };
    let (folder, rest) = pattern.split_at(folder);
    let found = paths::text_of(&paths::resolved(Path::new(folder)));
    // A rule is a line, in which `?` stands for any character.
    Some(format!("{}{rest}", found.trim_end_matches('/').replace('\n', "?")))
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut rest) = (0, 0);
    // Where the last star was, and where the text went on behind it.
    let mut star = None;
    while rest < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, rest));
                at += 1;
            }
            Some(&c) if c == b'?' || c == text[rest] => {
                at += 1;
                rest += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (at, rest) = (after, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_told() {
        for (pattern, text, expected) in [
            ("*", "/a/b", true),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/b/c", false),
            ("*.dat", "/x/y.dat", true),
            ("*.dat", "/x/y.data", false),
            ("/a/?", "/a/b", true),
            ("/a/?", "/a/", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "aabab", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn patterns_lead_through_symbolic_links() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("a folder");
        std::fs::create_dir_all(place.join("real/deep")).expect("folders");
        std::os::unix::fs::symlink("real", place.join("link")).expect("a link");
        let patterns = |pattern: &str| {
            let rules = PathRule::of(true, pattern, &place);
            let short = |rule: PathRule| rule.pattern.replace(&*place.to_string_lossy(), "");
            rules.into_iter().map(short).collect::<Vec<_>>()
        };
        assert_eq!(patterns("link/*"), ["/link/*", "/real/*"]);
        assert_eq!(patterns("./link/d?ep/x"), ["/link/d?ep/x", "/real/d?ep/x"]);
        assert_eq!(patterns("link/deep"), ["/link/deep", "/real/deep"]);
        assert_eq!(patterns("link/new/file"), ["/link/new/file", "/real/new/file"]);
        for alone in ["real/*", "link*", "*"] {
            assert_eq!(patterns(alone).len(), 1, "{alone}");
        }
        assert_eq!(PathRule::of(true, "/*", Path::new("/nowhere")).len(), 1);
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rule = |keeps, pattern: &str| PathRule { keeps, pattern: pattern.to_owned() };
        let filter = Filter { paths: vec![rule(false, "*.log"), rule(true, "/data/*")], ..Filter::default() };
        assert!(
            filter.keeps_path("/data/x") && !filter.keeps_path("/data/x.log") && !filter.keeps_path("/etc/x")
        );
        let filter = Filter { paths: vec![rule(false, "*.log")], ..Filter::default() };
        assert!(filter.keeps_path("/etc/x") && !filter.keeps_path("/x.log"));
    }
}

//! A line of strace's output, taken apart.
//!
//! `[PID ]TIME NAME(ARGUMENTS) = RESULT [ERROR (TEXT)] [<SECONDS>]`, where strings stand in quotation marks with
//! escapes, structures in braces, arrays in brackets, and, with `-y`, the path of a descriptor in angles behind it, with
//! the same escapes.

use crate::lines::seconds_ns;
use pio_trace::names;

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// The thread; none if strace followed only one.
    pub(super) tid: Option<u32>,
    pub(super) time_ns: u64,
    pub(super) what: What<'a>,
}

#[derive(Debug, PartialEq)]
pub(super) enum What<'a> {
    /// A whole call: `name(arguments) = result`.
    Call(&'a str),
    /// `name(arguments <unfinished ...>`, without that mark.
    Begin(&'a str),
    /// `<... name resumed>rest`: the rest.
    End(&'a str),
    /// `+++ exited with 0 +++`
    Exited,
    /// `+++ killed by SIGKILL +++`
    Killed,
    /// A signal, or another thing that is no call.
    Other,
}

impl<'a> Line<'a> {
    /// None for what is no line of strace, or has no time (`-ttt`, or `-tt`).
    pub(super) fn of(text: &'a str) -> Option<Line<'a>> {
        let text = text.trim_end();
        let (tid, rest) = split_tid(text);
        let (time, rest) = rest.trim_start().split_once(' ')?;
        let time_ns = time_ns(time)?;
        Some(Line { tid, time_ns, what: What::of(rest.trim_start()) })
    }
}

/// `4711 …` in a file, `[pid 4711] …` on a terminal.
fn split_tid(text: &str) -> (Option<u32>, &str) {
    if let Some((tid, rest)) = text.strip_prefix("[pid").and_then(|rest| rest.split_once(']')) {
        return (tid.trim().parse().ok(), rest);
    }
    match text.split_once(' ') {
        Some((tid, rest)) if tid.bytes().all(|byte| byte.is_ascii_digit()) && !tid.is_empty() => {
            (tid.parse().ok(), rest)
        }
        _ => (None, text),
    }
}

/// Seconds since 1970 (`-ttt`), or hours, minutes and seconds (`-tt`), with a fraction.
fn time_ns(text: &str) -> Option<u64> {
    if !text.contains('.') {
        return None;
    }
    let (before, seconds) = text.rsplit_once(':').unwrap_or(("", text));
    let mut minutes = 0u64;
    for part in before.split(':').filter(|part| !part.is_empty()) {
        minutes = minutes.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    minutes.checked_mul(60 * 1_000_000_000)?.checked_add(seconds_ns(seconds)?)
}

impl<'a> What<'a> {
    fn of(text: &'a str) -> What<'a> {
        if let Some(rest) = text.strip_prefix("<... ") {
            return match rest.split_once(" resumed>") {
                Some((_, rest)) => What::End(rest),
                None => What::Other,
            };
        }
        if let Some(rest) = text.strip_prefix("+++ ") {
            return match rest {
                _ if rest.starts_with("exited") => What::Exited,
                _ if rest.starts_with("killed") => What::Killed,
                _ => What::Other,
            };
        }
        if text.starts_with("---") {
            return What::Other;
        }
        match text.strip_suffix("<unfinished ...>") {
            Some(begin) => What::Begin(begin.trim_end()),
            None => What::Call(text),
        }
    }
}

/// A call of the system.
#[derive(Debug, PartialEq)]
pub(super) struct Syscall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// What it returned, or minus the error number; none if it never returned, or returned an address.
    pub(super) result: Option<i64>,
    /// False if the thread ended within.
    pub(super) returned: bool,
    /// The path of the descriptor that it returned, with `-y`.
    pub(super) result_path: Option<String>,
    /// None without `-T`.
    pub(super) elapsed_ns: Option<u64>,
}

impl<'a> Syscall<'a> {
    /// None for what is no call.
    pub(super) fn of(text: &'a str) -> Option<Syscall<'a>> {
        let (name, rest) = text.split_once('(')?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !is_name(name) {
            return None;
        }
        let (arguments, rest) = split_arguments(rest);
        let rest = rest.trim_start().strip_prefix('=')?.trim();
        let parts = rest.strip_suffix('>').and_then(|rest| rest.rsplit_once(" <"));
        let (rest, elapsed_ns) = match parts.and_then(|(rest, seconds)| Some((rest, time_ns(seconds)?))) {
            Some((rest, elapsed_ns)) => (rest, Some(elapsed_ns)),
            None => (rest, None),
        };
        let (result, result_path) = outcome(rest);
        let returned = result.is_some() || !rest.starts_with('?');
        Some(Syscall { name, arguments, result, returned, result_path, elapsed_ns })
    }

    pub(super) fn argument(&self, index: usize) -> &'a str {
        self.arguments.get(index).copied().unwrap_or_default()
    }
}

/// The arguments up to the closing bracket, or the end, and what stands behind it.
fn split_arguments(text: &str) -> (Vec<&str>, &str) {
    let bytes = text.as_bytes();
    let mut arguments = Vec::new();
    let (mut depth, mut start, mut at) = (0u32, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'<' if begins_path(bytes, at) => at = end_of_path(bytes, at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b')' => {
                if at > start || !arguments.is_empty() {
                    arguments.push(text[start..at].trim());
                }
                return (arguments, &text[at + 1..]);
            }
            b',' if depth == 0 => {
                arguments.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if start < text.len() {
        arguments.push(text[start..].trim());
    }
    (arguments, "")
}

/// Where the quotation mark is that closes the one at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// Whether the angle at `at` stands between a descriptor and its path: `3</tmp/x>`, `3<socket:[12]>`, no `1<<3`.
fn begins_path(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_alphanumeric());
    // All letters of a path are escapes with `-xx`.
    before
        && bytes.get(at + 1).is_some_and(|&next| matches!(next, b'/' | b'\\') || next.is_ascii_alphabetic())
}

/// Where the angle is that closes the one at `start`. Those of the path itself are escaped, but for arrows between the
/// ends of a connection.
fn end_of_path(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && (bytes[at] != b'>' || bytes[at - 1] == b'-') {
        at += 1;
    }
    at
}

/// `3`, `3</tmp/x>`, `-1 ENOENT (No such file or directory)`, `0x7f…`, `?`, `? <unavailable>`, `? ERESTARTSYS (To be restarted …)`. Where
/// a signal interrupts a call that is to be restarted, that is shown as another call.
fn outcome(text: &str) -> (Option<i64>, Option<String>) {
    let (value, rest) = match text.split_once(' ') {
        Some((value, rest)) => (value, rest),
        None => (text, ""),
    };
    if let Some((number, _)) = value.split_once('<') {
        return (number.parse().ok(), path_behind(text));
    }
    if value == "?" && rest.starts_with("ERESTART") {
        return (Some(-super::errors::number("EINTR")), None);
    }
    if value == "-1" {
        let error = rest.split(' ').next().unwrap_or_default();
        return (Some(-super::errors::number(error)), None);
    }
    (value.parse().ok(), None)
}

/// The text of a quoted argument; none if it is cut off ("…"...) or none.
pub(super) fn unquoted(argument: &str) -> Option<String> {
    unescaped(argument.strip_prefix('"')?.strip_suffix('"')?)
}

/// The path that stands in angles behind a descriptor: `3</tmp/x>`, `3</tmp/x>(deleted)`, `AT_FDCWD</tmp>`.
pub(super) fn path_behind(argument: &str) -> Option<String> {
    let (_, path) = argument.split_once('<')?;
    unescaped(path.rsplit_once('>')?.0)
}

/// A text with its escapes resolved; none if it ends within one.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'x' => {
                let mut digit = || rest.next().and_then(|byte| (byte as char).to_digit(16));
                (digit()? * 16 + digit()?) as u8
            }
            first @ b'0'..=b'7' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| matches!(byte, b'0'..=b'7')) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                value as u8
            }
            other => other,
        });
    }
    Some(names::of_bytes(&bytes).into_owned())
}

/// The texts of an array of strings; those that are cut off without their end.
pub(super) fn strings(array: &str) -> Vec<String> {
    let inner = array.strip_prefix('[').unwrap_or(array);
    let (items, _) = split_arguments(inner.strip_suffix(']').unwrap_or(inner));
    items
        .into_iter()
        .filter_map(|item| unquoted(item).or_else(|| unquoted(item.strip_suffix("...")?)))
        .collect()
}

/// The items of an array; those before the dots if it is cut off.
pub(super) fn items(array: &str) -> Vec<&str> {
    let inner = array.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or_default();
    split_arguments(inner).0.into_iter().filter(|item| !item.is_empty() && *item != "...").collect()
}

/// The names and values of a structure: `{l_type=F_WRLCK, l_start=0}`.
pub(super) fn fields(structure: &str) -> Vec<(&str, &str)> {
    let inner = structure.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or_default();
    split_arguments(inner).0.into_iter().filter_map(|field| field.split_once('=')).collect()
}

/// Bytes asked for by `[{iov_base="…", iov_len=12}, …]`; none if the list is cut off.
pub(super) fn vector_len(argument: &str) -> Option<u64> {
    if argument.contains("...]") {
        return None;
    }
    argument
        .split("iov_len=")
        .skip(1)
        .map(|rest| rest.split(['}', ',']).next().and_then(|text| text.trim().parse::<u64>().ok()))
        .try_fold(0u64, |sum, len| sum.checked_add(len?))
}

/// A descriptor. Its path with `-y` is what [`path_behind`] gives.
pub(super) fn descriptor(argument: &str) -> Option<i32> {
    argument.split_once('<').map_or(argument, |(number, _)| number).parse().ok()
}

/// A whole number, decimal or hexadecimal, as numbers of sizes and offsets are written.
pub(super) fn number(argument: &str) -> Option<i64> {
    match argument.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value as i64),
        None => argument.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Syscall<'_> {
        match Line::of(text).map(|line| line.what) {
            Some(What::Call(call)) => Syscall::of(call).unwrap_or_else(|| panic!("no call: {text}")),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_line_of_a_file_is_taken_apart() {
        let text = r#"17863 1795305092.224530 openat(AT_FDCWD, "/tmp/a, \"b\") = 7", O_WRONLY|O_CREAT, 0666) = 3 <0.000111>"#;
        let line = Line::of(text);
        assert_eq!(
            line.as_ref().map(|line| (line.tid, line.time_ns)),
            Some((Some(17863), 1_795_305_092_224_530_000))
        );
        let call = parse(text);
        assert_eq!((call.name, call.result, call.elapsed_ns), ("openat", Some(3), Some(111_000)));
        assert_eq!(call.arguments.len(), 4);
        assert_eq!(unquoted(call.argument(1)).as_deref(), Some("/tmp/a, \"b\") = 7"));
    }

    #[test]
    fn a_line_of_a_terminal_is_taken_apart() {
        let call =
            parse(r#"[pid   12] 10:00:01.5 read(3</tmp/a,(b>, ""..., 512) = -1 EIO (Input/output error)"#);
        assert_eq!(descriptor(call.argument(0)), Some(3));
        assert_eq!(path_behind(call.argument(0)).as_deref(), Some("/tmp/a,(b"));
        assert_eq!((call.result, call.elapsed_ns), (Some(-5), None));
        assert_eq!(Line::of("10:00:01.5 close(3) = 0").map(|line| line.time_ns), Some(36_001_500_000_000));
    }

    #[test]
    fn what_did_not_return_is_told_from_what_was_interrupted() {
        let outcome = |text| (parse(text).returned, parse(text).result, parse(text).elapsed_ns);
        assert_eq!(outcome("1.0 read(0, \"\", 1) = ?"), (false, None, None));
        assert_eq!(outcome("1.0 read(0,  <unfinished ...>) = ?"), (false, None, None));
        assert_eq!(outcome("1.0 read(0, 0x7ffd, 1) = ? <unavailable>"), (false, None, None));
        assert_eq!(
            outcome("1.0 read(0, 0x7f, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.5>"),
            (true, Some(-4), Some(500_000_000))
        );
        assert_eq!(outcome("1.0 mmap(NULL, 1) = 0x7f0000000000 <0.5>"), (true, None, Some(500_000_000)));
    }

    #[test]
    fn structures_are_one_argument() {
        let call = parse("1.0 fstat(3, {st_mode=S_IFREG|0644, st_size=53495, ...}) = 0");
        assert_eq!(call.arguments, ["3", "{st_mode=S_IFREG|0644, st_size=53495, ...}"]);
        assert_eq!(parse("1.0 pause() = ?").arguments, Vec::<&str>::new());
        let connection = parse("1.0 write(3<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"x\", 1) = 1");
        assert_eq!(connection.arguments, ["3<TCP:[127.0.0.1:1->127.0.0.1:2]>", "\"x\"", "1"]);
    }

    #[test]
    fn bytes_in_octal_and_hexadecimal_are_read() {
        assert_eq!(unquoted(r#""a\303\274\x41\0\n""#).as_deref(), Some("aüA\0\n"));
        assert_eq!(unquoted(r#""cut"..."#), None);
        assert_eq!(unquoted(r#""\374""#).as_deref(), Some(r"\xfc"), "a name of another character set");
    }

    /// One file was two: by the path in angles, and by the name in quotes.
    #[test]
    fn paths_in_angles_have_the_escapes_of_names() {
        let call = parse(r#"1.0 openat(AT_FDCWD</w\74\76>, "x", O_RDONLY) = 3</d/\303\274 \"\n\<>"#);
        assert_eq!(path_behind(call.argument(0)).as_deref(), Some("/w<>"));
        assert_eq!(call.result_path.as_deref(), Some("/d/ü \"\n<"));
        assert_eq!(path_behind(r"3</d/x>(deleted)").as_deref(), Some("/d/x"));
        let call = parse(r#"1.0 read(3<\x2f\x2c\x29>, "", 4) = 0"#);
        assert_eq!((call.arguments.len(), path_behind(call.argument(0)).as_deref()), (3, Some("/,)")));
        assert_eq!(parse("1.0 ioctl(3, 1<<3) = 0").arguments.len(), 2);
    }

    #[test]
    fn what_is_no_call_is_told_apart() {
        let what = |text| Line::of(text).map(|line| line.what);
        assert_eq!(what("5 1.0 +++ exited with 0 +++"), Some(What::Exited));
        assert_eq!(what("5 1.0 +++ killed by SIGKILL +++"), Some(What::Killed));
        assert_eq!(what("5 1.0 --- SIGCHLD {si_signo=SIGCHLD} ---"), Some(What::Other));
        assert_eq!(what("5 1.0 read(0, <unfinished ...>"), Some(What::Begin("read(0,")));
        assert_eq!(what("5 1.0 <... read resumed>\"\", 10) = 0"), Some(What::End("\"\", 10) = 0")));
        assert_eq!(what("hello world"), None);
        assert_eq!(what("5 read(0) = 0"), None);
    }
}

//! Paths of files, as logs give them.

/// A path without `.`, `..` and empty parts, so that one file has one name. A log does not say which folders are links:
/// `..` behind one is taken for the folder before it.
pub(super) fn normal(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let path = parts.join("/");
    match path.as_str() {
        _ if is_absolute => format!("/{path}"),
        "" => ".".to_owned(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a//b/", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/a"),
            ("/", "/"),
            ("./a", "a"),
            ("../../a/..", "../.."),
            ("a/..", "."),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }
}

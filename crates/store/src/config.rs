//! The description of a store, `store.toml`: what clients need to find it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::auth::Token;
use crate::error::StoreError;

/// Bytes of a strip, where nothing else is said.
pub const STRIP_BYTES: u64 = 64 << 10;

/// The description of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StoreDescription {
    /// The file with the token; relative to the description's folder.
    pub token: PathBuf,
    /// Bytes of a strip of new files.
    pub strip_bytes: u64,
    /// The servers, in order.
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
}

/// A server of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Server {
    /// Host and port.
    pub address: String,
}

impl StoreDescription {
    /// Reads a description.
    ///
    /// # Errors
    /// If it cannot be read or makes no sense.
    pub fn load(path: &Path) -> Result<StoreDescription, StoreError> {
        let wrong = |what: String| StoreError::Config { path: path.to_owned(), what };
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong(
                "no description of a store (expected the file store.toml that `pioscope serve` writes)"
                    .into(),
            ),
            _ => wrong(error.to_string()),
        })?;
        let description: StoreDescription =
            toml::from_str(&text).map_err(|error| wrong(in_a_line(&text, &error)))?;
        if description.servers.is_empty() || description.servers.len() > usize::from(u16::MAX) {
            return Err(wrong("expected 1 to 65535 servers".into()));
        }
        if description.strip_bytes == 0 || description.strip_bytes > 1 << 40 {
            return Err(wrong("expected strips of 1 byte to 1 TiB".into()));
        }
        Ok(description)
    }

    /// Writes the description, at once or not at all.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        let wrong = |what: String| StoreError::Config { path: path.to_owned(), what };
        let text = toml::to_string(self).map_err(|error| wrong(error.to_string()))?;
        replace(path, text.as_bytes()).map_err(|error| wrong(error.to_string()))
    }

    /// Reads the token that the description names.
    ///
    /// # Errors
    /// As [`Token::load`].
    pub fn token(&self, path: &Path) -> Result<Token, StoreError> {
        Token::load(&path.parent().unwrap_or(Path::new(".")).join(&self.token))
    }
}

/// Makes a server known: notes its address beside the description `path`, and writes the description when all servers of
/// the store have noted theirs: then that is returned. It says what they noted last, even if several do so at a time: each
/// looks again after it has written.
///
/// # Errors
/// If the folder cannot be written to, or what others noted makes no sense.
pub fn publish(
    path: &Path,
    index: u32,
    servers: u32,
    server: &Server,
    strip_bytes: u64,
) -> Result<Option<StoreDescription>, StoreError> {
    let wrong = |path: &Path, what: String| StoreError::Config { path: path.to_owned(), what };
    let note = note(path, index);
    let text = toml::to_string(server).map_err(|error| wrong(&note, error.to_string()))?;
    replace(&note, text.as_bytes()).map_err(|error| wrong(&note, error.to_string()))?;
    describe(path, servers, strip_bytes, || {})
}

/// Writes the description until it says what all servers have noted, if all have.
fn describe(
    path: &Path,
    servers: u32,
    strip_bytes: u64,
    mut before_it_is_written: impl FnMut(),
) -> Result<Option<StoreDescription>, StoreError> {
    let mut saved = None;
    loop {
        let known = (0..servers).map(|index| noted(path, index)).collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(servers) = known else { return Ok(None) };
        let token = token_path(path).file_name().map(PathBuf::from).unwrap_or_default();
        let description = StoreDescription { token, strip_bytes, servers };
        if saved.as_ref() == Some(&description) {
            return Ok(saved);
        }
        before_it_is_written();
        description.save(path)?;
        saved = Some(description);
    }
}

/// What a server noted when it was last started; where it should come back to.
///
/// # Errors
/// If it makes no sense.
pub fn noted(path: &Path, index: u32) -> Result<Option<Server>, StoreError> {
    let note = note(path, index);
    let wrong = |what: String| StoreError::Config { path: note.clone(), what };
    match fs::read_to_string(&note) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(|error| wrong(in_a_line(&text, &error))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Where the token of the store `path` is kept.
pub fn token_path(path: &Path) -> PathBuf {
    path.with_extension("token")
}

/// What is wrong with a text, without a picture of the place.
fn in_a_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message().replace('\n', " "))
}

fn note(path: &Path, index: u32) -> PathBuf {
    path.with_extension(format!("{index}.address"))
}

/// Replaces a file at once.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_go_there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.toml");
        let servers = ["node1:4000", "node2:4000"].map(|address| Server { address: address.into() }).to_vec();
        let description = StoreDescription { token: "token".into(), strip_bytes: STRIP_BYTES, servers };
        description.save(&path).unwrap();
        assert_eq!(StoreDescription::load(&path).unwrap(), description);
        fs::write(&path, "token = \"token\"\nstrip-bytes = 0\n[[server]]\naddress = \"a:1\"\n").unwrap();
        assert!(StoreDescription::load(&path).unwrap_err().to_string().contains("1 TiB"));
    }

    #[test]
    fn a_description_is_written_when_all_servers_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.toml");
        let server = |port: u32| Server { address: format!("node:{port}") };
        assert_eq!(publish(&path, 1, 2, &server(1), STRIP_BYTES).unwrap(), None);
        assert!(!path.exists());
        let published = publish(&path, 0, 2, &server(0), STRIP_BYTES).unwrap();
        assert_eq!(published.as_ref().unwrap().servers, [server(0), server(1)]);
        assert_eq!(StoreDescription::load(&path).ok(), published);
        assert_eq!(noted(&path, 1).unwrap(), Some(server(1)));
        // One comes back elsewhere.
        assert!(publish(&path, 1, 2, &server(7), STRIP_BYTES).unwrap().is_some());
        assert_eq!(StoreDescription::load(&path).unwrap().servers, [server(0), server(7)]);
    }

    /// Who had read the other's note before it changed, and wrote after the other, wrote where it was before.
    #[test]
    fn servers_that_come_back_together_are_both_found_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.toml");
        let server = |port: u32| Server { address: format!("node:{port}") };
        publish(&path, 0, 2, &server(0), STRIP_BYTES).unwrap();
        publish(&path, 1, 2, &server(1), STRIP_BYTES).unwrap();
        let mut other = Some(server(7));
        let described = describe(&path, 2, STRIP_BYTES, || {
            if let Some(other) = other.take() {
                publish(&path, 1, 2, &other, STRIP_BYTES).unwrap();
            }
        });
        assert_eq!(described.unwrap().unwrap().servers, [server(0), server(7)]);
        assert_eq!(StoreDescription::load(&path).unwrap().servers, [server(0), server(7)]);
    }
}

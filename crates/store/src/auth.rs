//! The store's token: whoever can read it may use the store.
//!
//! The token is never sent. Each side proves that it knows it by a keyed hash (HMAC-SHA-256) of what both said, with a
//! random number of each in it, so that nothing heard can be used again.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use pio_protocol::ClientId;
use sha2::{Digest, Sha256};

use crate::error::StoreError;

/// The secret of a store.
#[derive(Clone)]
pub struct Token([u8; 32]);

/// What is proved: who talks to whom, in which conversation.
#[derive(Clone, Copy, Debug)]
pub struct Conversation {
    /// Who.
    pub client: ClientId,
    /// To which server.
    pub server: u32,
    /// The client's random number.
    pub client_nonce: [u8; 32],
    /// The server's.
    pub server_nonce: [u8; 32],
}

/// Who proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Token {
    /// Reads the token, or makes a new one in a file that only its owner can read.
    ///
    /// # Errors
    /// If the file cannot be read or made, is no token, or can be read by others.
    pub fn load_or_create(path: &Path) -> Result<Token, StoreError> {
        // Not made first: on a full disk there is no room for it, and files must still be removed.
        if path.exists() {
            return Token::load(path);
        }
        let token: [u8; 32] = random().map_err(|error| wrong(path, error.to_string()))?;
        let text: String = token.iter().map(|byte| format!("{byte:02x}")).chain(["\n".into()]).collect();
        match write_new(path, text.as_bytes()) {
            Ok(()) => Ok(Token(token)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Token::load(path),
            Err(error) => Err(wrong(path, error.to_string())),
        }
    }

    /// Reads the token.
    ///
    /// # Errors
    /// If the file cannot be read, is no token, or can be read by others.
    pub fn load(path: &Path) -> Result<Token, StoreError> {
        let metadata = fs::metadata(path).map_err(|error| wrong(path, error.to_string()))?;
        if metadata.mode() & 0o077 != 0 {
            return Err(wrong(path, "the token can be read by others: expected mode 0600".into()));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(path, error.to_string()))?;
        parse(text.trim_end()).map(Token).ok_or_else(|| wrong(path, "expected 64 hexadecimal digits".into()))
    }

    /// What the store is called: known to who knows the token, and says nothing of it.
    pub fn store(&self) -> u128 {
        let hash = Sha256::new().chain_update(b"pioscope store").chain_update(self.0).finalize();
        let mut store = [0; 16];
        store.copy_from_slice(&hash[..16]);
        u128::from_le_bytes(store)
    }

    /// The proof that `role` knows the token.
    pub fn proof(&self, role: Role, conversation: &Conversation) -> [u8; 32] {
        self.mac(role, conversation).finalize().into_bytes().into()
    }

    /// Whether this is the proof that `role` knows the token; in constant time.
    pub fn accepts(&self, role: Role, conversation: &Conversation, proof: &[u8; 32]) -> bool {
        self.mac(role, conversation).verify_slice(proof).is_ok()
    }

    fn mac(&self, role: Role, conversation: &Conversation) -> Hmac<Sha256> {
        // A key shorter than a block of the hash is filled up with zeros (RFC 2104, section 2).
        let mut key = [0; 64];
        key[..32].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&key.into());
        mac.update(match role {
            Role::Client => b"pioscope client",
            Role::Server => b"pioscope server",
        });
        mac.update(&conversation.client.0.to_le_bytes());
        mac.update(&conversation.server.to_le_bytes());
        mac.update(&conversation.client_nonce);
        mac.update(&conversation.server_nonce);
        mac
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// If the operating system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that was not there, whole or not at all: others may be about to do the same.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unique: [u8; 8] = random()?;
    let name = format!("{}.{:016x}", path.display(), u64::from_le_bytes(unique));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
    let linked =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&name, path));
    fs::remove_file(&name)?;
    linked
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let mut token = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in token.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(token)
}

fn wrong(path: &Path, what: String) -> StoreError {
    StoreError::Config { path: path.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn conversation() -> Conversation {
        Conversation { client: ClientId(1), server: 2, client_nonce: [3; 32], server_nonce: [4; 32] }
    }

    #[test]
    fn only_the_same_token_in_the_same_conversation_is_accepted() {
        let (token, other) = (Token([1; 32]), Token([2; 32]));
        let proof = token.proof(Role::Client, &conversation());
        assert!(token.accepts(Role::Client, &conversation(), &proof));
        assert!(!other.accepts(Role::Client, &conversation(), &proof));
        assert!(!token.accepts(Role::Server, &conversation(), &proof));
        let another = Conversation { server_nonce: [5; 32], ..conversation() };
        assert!(!token.accepts(Role::Client, &another, &proof));
        assert_ne!(token.store(), other.store());
    }

    #[test]
    fn a_token_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::load_or_create(&path).unwrap();
        assert_eq!(Token::load_or_create(&path).unwrap().0, token.0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Token::load(&path).unwrap_err().to_string().contains("0600"));
    }
}

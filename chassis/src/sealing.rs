//! Secrets at rest: encrypted with AES-256-GCM under a key that is stored elsewhere.
//!
//! An envelope names its key, and is bound to its place (table, column, row) as associated data: moved to another row, it does
//! not open. A [`Keyring`] seals with its first key and opens with all of them, so that keys can be rotated while everything
//! stays readable; [`columns::reseal`] then re-encrypts every row under the first key.

pub mod columns;

use std::fmt;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

use crate::entropy::Entropy;

/// The value of a `sealing` column for plaintext.
pub const UNSEALED: &str = "none";
/// The value of a `sealing` column for an envelope.
pub const AES_256_GCM: &str = "aes-256-gcm";

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 12;
/// The version of the envelope, the id of the key and the nonce; the ciphertext follows.
const HEADER_BYTES: usize = 1 + ID_BYTES + NONCE_BYTES;
const ENVELOPE_VERSION: u8 = 1;
/// Domain separation of key ids from every other hash of the keys.
const ID_CONTEXT: &str = "cairn.dev 2026 id of a sealing key";

/// The text has no usable keys. The error never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// It is empty.
    #[error(
        "there is no key: give 32 random bytes in hexadecimal or base64, such as `openssl rand -hex 32` makes"
    )]
    Empty,
    /// A key is not 32 bytes.
    #[error("key {0} is not 32 bytes in hexadecimal or base64; `openssl rand -hex 32` makes one")]
    Malformed(usize),
}

/// A secret cannot be sealed: it exceeds the limit of the cipher (64 GiB).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is too long to be sealed")]
pub struct SealError;

/// An envelope cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was sealed under a key that is not in the keyring.
    #[error(
        "it is sealed under the key {0}, which is not among those given: add that key to CAIRN_SECRET_KEY"
    )]
    UnknownKey(String),
    /// It is malformed, was modified, or is from another place.
    #[error("it is damaged, or was moved from another row")]
    Damaged,
}

/// Encryption keys: the first seals, all open.
pub struct Keyring {
    keys: Vec<Key>,
}

struct Key {
    id: [u8; ID_BYTES],
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    cipher: Aes256Gcm,
}

/// The ids only.
impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keyring").field("ids", &self.ids()).finish_non_exhaustive()
    }
}

impl Keyring {
    /// Parses keys of 32 bytes, in hexadecimal or base64, separated by commas or white space; the first one seals.
    ///
    /// # Errors
    /// When there is none, or one is malformed.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let is_separator = |character: char| character == ',' || character.is_whitespace();
        let parts = text.split(is_separator).filter(|part| !part.is_empty());
        let read = |(place, part): (usize, &str)| match decode(part) {
            Some(bytes) => Ok(Key::new(bytes)),
            None => Err(KeyringError::Malformed(place + 1)),
        };
        let keys: Vec<Key> = parts.enumerate().map(read).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyringError::Empty) } else { Ok(Self { keys }) }
    }

    /// A keyring with one new key.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self { keys: vec![Key::generate(entropy)] }
    }

    /// This keyring with a new first key.
    #[must_use]
    pub fn with_new_key(mut self, entropy: &dyn Entropy) -> Self {
        self.keys.insert(0, Key::generate(entropy));
        self
    }

    /// This keyring with only its first key.
    #[must_use]
    pub fn without_old_keys(mut self) -> Self {
        self.keys.truncate(1);
        self
    }

    /// The keys in hexadecimal, one a line, in the form that [`Self::parse`] reads.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(self.keys.len() * (KEY_BYTES * 2 + 1)));
        for key in &self.keys {
            text.push_str(&Zeroizing::new(hex::encode(key.bytes.as_slice())));
            text.push('\n');
        }
        text
    }

    /// The ids of the keys, which reveal nothing about them; the first one seals.
    pub fn ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| hex::encode(key.id)).collect()
    }

    /// Seals a secret for one place, such as `signing_keys.seed/<id>`; it can be opened only there.
    ///
    /// # Errors
    /// When the secret is too long for the cipher.
    pub fn seal(&self, secret: &[u8], place: &str, entropy: &dyn Entropy) -> Result<Vec<u8>, SealError> {
        let key = self.keys.first().ok_or(SealError)?;
        let mut nonce = [0_u8; NONCE_BYTES];
        entropy.fill(&mut nonce);
        let mut envelope = Vec::with_capacity(HEADER_BYTES + secret.len() + 16);
        envelope.push(ENVELOPE_VERSION);
        envelope.extend_from_slice(&key.id);
        let bound = bound_to(&envelope, place);
        envelope.extend_from_slice(&nonce);
        let payload = Payload { msg: secret, aad: &bound };
        envelope.extend(key.cipher.encrypt(&Nonce::from(nonce), payload).map_err(|_| SealError)?);
        Ok(envelope)
    }

    /// Opens an envelope of [`Self::seal`] for that place.
    ///
    /// # Errors
    /// When it was sealed under an unknown key or for another place, or was modified.
    pub fn open(&self, envelope: &[u8], place: &str) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (header, sealed) = envelope.split_at_checked(HEADER_BYTES).ok_or(OpenError::Damaged)?;
        let (head, nonce) = header.split_at_checked(1 + ID_BYTES).ok_or(OpenError::Damaged)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| OpenError::Damaged)?;
        let id = key_id(head).ok_or(OpenError::Damaged)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == id)
            .ok_or_else(|| OpenError::UnknownKey(hex::encode(id)))?;
        let payload = Payload { msg: sealed, aad: &bound_to(head, place) };
        let opened = key.cipher.decrypt(&Nonce::from(nonce), payload).map_err(|_| OpenError::Damaged)?;
        Ok(Zeroizing::new(opened))
    }

    /// Whether it was sealed under the current first key.
    pub fn is_current(&self, envelope: &[u8]) -> bool {
        let sealed_by = key_id(envelope);
        sealed_by.is_some() && sealed_by == self.keys.first().map(|key| key.id)
    }
}

impl Key {
    fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut id = [0_u8; ID_BYTES];
        blake3::Hasher::new_derive_key(ID_CONTEXT).update(bytes.as_slice()).finalize_xof().fill(&mut id);
        let cipher = Aes256Gcm::new(&(*bytes).into());
        Self { id, bytes, cipher }
    }

    fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = Zeroizing::new([0_u8; KEY_BYTES]);
        entropy.fill(bytes.as_mut_slice());
        Self::new(bytes)
    }
}

/// The id of the key in an envelope of a known version.
fn key_id(envelope: &[u8]) -> Option<[u8; ID_BYTES]> {
    let rest = envelope.strip_prefix(&[ENVELOPE_VERSION])?;
    rest.first_chunk::<ID_BYTES>().copied()
}

/// The associated data. The head has a fixed length, so the boundary between it and the place is unambiguous.
fn bound_to(head: &[u8], place: &str) -> Vec<u8> {
    [head, place.as_bytes()].concat()
}

fn decode(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut bytes = Zeroizing::new([0_u8; KEY_BYTES]);
    let is_hex = text.len() == KEY_BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex {
        hex::decode_to_slice(text, bytes.as_mut_slice()).ok()?;
        return Some(bytes);
    }
    // Both alphabets, with or without padding.
    let plain = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let decoded = Zeroizing::new(STANDARD_NO_PAD.decode(plain).ok()?);
    bytes.copy_from_slice(decoded.get(..KEY_BYTES).filter(|_| decoded.len() == KEY_BYTES)?);
    Some(bytes)
}

#[cfg(test)]
mod tests;

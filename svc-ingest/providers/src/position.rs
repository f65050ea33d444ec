//! Where a listing or the changes go on.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// The cursor of a provider: JSON of at most 16 KiB, opaque to everyone else.
///
/// It includes the version of its schema. A position of another version is lost, which only costs a full listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position(String);

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u16,
    at: T,
}

impl Position {
    /// Bytes of a position.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Serializes `at`, with the version of its schema.
    ///
    /// # Errors
    /// [`Fault::Broken`] when it is larger than 16 KiB.
    pub fn new<T: Serialize>(version: u16, at: &T) -> Result<Self, Fault> {
        let unwritable = |_| Fault::broken("the place in the listing cannot be written down");
        let text = serde_json::to_string(&Versioned { v: version, at }).map_err(unwritable)?;
        if text.len() > Self::MAX_BYTES {
            return Err(Fault::broken("the place in the listing takes more than 16 KiB to write down"));
        }
        Ok(Self(text))
    }

    /// Deserializes a position of this version.
    ///
    /// # Errors
    /// [`Fault::PositionLost`] when it has another version or schema.
    pub fn read<T: DeserializeOwned>(&self, version: u16) -> Result<T, Fault> {
        match serde_json::from_str::<Versioned<T>>(&self.0) {
            Ok(read) if read.v == version => Ok(read.at),
            Ok(_) | Err(_) => Err(Fault::PositionLost),
        }
    }

    /// The JSON, for storage.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is too long for a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position has at most 16 KiB")]
pub struct TooLong;

impl TryFrom<String> for Position {
    type Error = TooLong;

    fn try_from(text: String) -> Result<Self, TooLong> {
        if text.len() > Self::MAX_BYTES { Err(TooLong) } else { Ok(Self(text)) }
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let position = Position::new(2, &("a", 7)).unwrap();
        assert_eq!(position.read::<(String, u8)>(2), Ok(("a".to_owned(), 7)));
        let kept = Position::try_from(position.as_str().to_owned()).unwrap();
        assert_eq!(kept, position);
    }

    #[test]
    fn another_version_or_shape_is_lost() {
        let position = Position::new(2, &("a", 7)).unwrap();
        assert_eq!(position.read::<(String, u8)>(1), Err(Fault::PositionLost));
        assert_eq!(position.read::<Vec<u8>>(2), Err(Fault::PositionLost));
        let odd = Position::try_from("{".to_owned()).unwrap();
        assert_eq!(odd.read::<()>(2), Err(Fault::PositionLost));
    }

    #[test]
    fn a_position_does_not_grow_without_bound() {
        assert!(Position::new(1, &"x".repeat(16_000)).is_ok());
        assert!(matches!(Position::new(1, &"x".repeat(16_384)), Err(Fault::Broken(_))));
        assert_eq!(Position::try_from("x".repeat(16_385)), Err(TooLong));
    }
}

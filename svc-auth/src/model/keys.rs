//! Signing keys, as stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PublicKey;

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Published, signs next.
    Next,
    /// Signs.
    Active,
    /// Verifies only.
    Retired,
}

impl State {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Active => "active",
            Self::Retired => "retired",
        }
    }
}

impl std::str::FromStr for State {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Next, Self::Active, Self::Retired].into_iter().find(|state| state.as_str() == text).ok_or(())
    }
}

/// A key without its private half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) state: State,
    /// When it entered its state.
    pub(crate) since: Timestamp,
    /// The time from which an active key is due for rotation, whatever its age.
    pub(crate) rotate_after: Option<Timestamp>,
}

/// A seed as stored, sealed or in the clear.
pub(crate) struct StoredSeed {
    pub(crate) id: String,
    pub(crate) seed: Vec<u8>,
    pub(crate) sealing: String,
}

/// A key to insert.
pub(crate) struct NewKey {
    pub(crate) public: PublicKey,
    pub(crate) seed: Vec<u8>,
    pub(crate) sealing: &'static str,
}

cairn_chassis::debug_fields!(NewKey { public });

//! Signing keys, as they are stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PublicKey;

/// What a key does.
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

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) state: State,
    /// When it came into its state.
    pub(crate) since: Timestamp,
    /// From when on an active key is to be replaced, whatever its age.
    pub(crate) rotate_after: Option<Timestamp>,
}

/// A seed as it is stored, sealed or not.
pub(crate) struct StoredSeed {
    pub(crate) id: String,
    pub(crate) seed: Vec<u8>,
    pub(crate) sealing: String,
}

/// A key to be stored.
pub(crate) struct NewKey {
    pub(crate) public: PublicKey,
    pub(crate) seed: Vec<u8>,
    pub(crate) sealing: &'static str,
}

cairn_chassis::debug_fields!(NewKey { public });

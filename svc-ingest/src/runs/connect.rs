//! Creates providers from the settings of sources.

use std::fmt;

use cairn_chassis::outbound::Guard;
use cairn_chassis::status::Violation;
use cairn_proto::domain::SourceMode;
use cairn_providers::{Provider, ProviderKind, Reach};
use serde_json::Value;

/// Creates providers; tests substitute their own.
pub(crate) trait Connect: fmt::Debug + Send + Sync {
    /// The modes of a provider, its default first; empty when it cannot be connected.
    fn modes(&self, kind: ProviderKind) -> &'static [SourceMode];

    /// Creates a provider, without a request.
    ///
    /// # Errors
    /// All violations at once.
    fn connect(
        &self,
        kind: ProviderKind,
        settings: &Value,
        credentials: Option<&Value>,
        mode: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>>;

    /// The guard that all requests pass.
    fn guard(&self) -> &Guard;
}

impl Connect for Reach {
    fn modes(&self, kind: ProviderKind) -> &'static [SourceMode] {
        cairn_providers::modes(kind)
    }

    fn connect(
        &self,
        kind: ProviderKind,
        settings: &Value,
        credentials: Option<&Value>,
        mode: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        cairn_providers::connect(kind, settings, credentials, mode, self)
    }

    fn guard(&self) -> &Guard {
        Self::guard(self)
    }
}

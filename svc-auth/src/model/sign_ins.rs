//! Counts of failed sign-ins.

use cairn_chassis::clock::Timestamp;

use crate::secrets::Digest;

/// A window that an attempt counts in.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) subject: Digest,
    pub(crate) seconds: i64,
    pub(crate) ends_at: Timestamp,
    /// The limit.
    pub(crate) most: i64,
    /// The counted subject, as a metric label.
    pub(crate) of: &'static str,
}

//! Counts of failed sign-ins.

use cairn_chassis::clock::Timestamp;

use crate::secrets::Digest;

/// What one attempt counts in.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) subject: Digest,
    pub(crate) seconds: i64,
    pub(crate) ends_at: Timestamp,
    /// How many fit.
    pub(crate) most: i64,
    /// What is counted, as metrics name it.
    pub(crate) of: &'static str,
}

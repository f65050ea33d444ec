//! Feedback reports, as stored.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{FeedbackCategory, FeedbackChannel};
use cairn_proto::ids::FeedbackId;

/// The author of a report.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A stored report; without its text if it was mailed.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: FeedbackId,
    pub(crate) created_at: Timestamp,
    pub(crate) reporter: Reporter,
    pub(crate) category: FeedbackCategory,
    pub(crate) channel: FeedbackChannel,
    pub(crate) message: Option<String>,
    pub(crate) context: Option<String>,
}

//! The output of a script (contract: "vfs/exec body").

use std::time::Duration;

use cairn_proto::retrieval::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::search::Citation;
use super::{CoverageNote, Links};

/// What a script printed, and what it took.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScriptAnswer {
    /// What a terminal would have shown: output and errors in their order.
    pub(crate) output: String,
    /// For every file whose content was returned, one for each contiguous range of lines.
    pub(crate) citations: Vec<Citation>,
    /// How many further ranges were returned, when there are too many to cite each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uncited: Option<u32>,
    /// As bash's last status: the last command failed, or the script was refused or stopped. The output says why.
    pub(crate) failed: bool,
    /// Whether the output was cut at `maxOutputBytes`; its last line says so.
    pub(crate) truncated: bool,
    pub(crate) stats: ScriptStats,
    /// The folder that the script ended in: where the next one may begin.
    pub(crate) cwd: String,
    /// With `asOf`: what the tree of then does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) coverage: Vec<CoverageNote>,
}

/// What a script took of its budget.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScriptStats {
    files_opened: u64,
    bytes_read: u64,
    /// Folders and files that were looked at.
    nodes_visited: u64,
    elapsed_ms: u64,
}

impl ScriptAnswer {
    pub(crate) fn read(answer: proto::ExecuteScriptResponse, links: &Links) -> Self {
        let citations = answer.citations.into_iter().map(|cited| Citation::of_lines(cited, links));
        Self {
            output: answer.output,
            citations: citations.collect(),
            uncited: Some(answer.uncited).filter(|count| *count > 0),
            failed: answer.failed,
            truncated: answer.truncated,
            stats: answer.stats.unwrap_or_default().into(),
            cwd: answer.cwd,
            coverage: answer.coverage,
        }
    }
}

impl From<proto::ScriptStats> for ScriptStats {
    fn from(stats: proto::ScriptStats) -> Self {
        let elapsed = stats.elapsed.and_then(|elapsed| Duration::try_from(elapsed).ok()).unwrap_or_default();
        Self {
            files_opened: stats.files_opened,
            bytes_read: stats.bytes_read,
            nodes_visited: stats.nodes_visited,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

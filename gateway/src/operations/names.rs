//! Folders, databases and memories by a part of their names.

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::FindNamesRequest;

use super::answered;
use crate::answers::FoundNames;
use crate::upstreams::Upstreams;

/// What is live and has a name that holds the text: so many of each kind, the owner's number when left out.
pub(crate) async fn find(
    upstreams: &Upstreams,
    call: &Call,
    query: String,
    limit: Option<u32>,
) -> Result<FoundNames, Problem> {
    let request = call.request(FindNamesRequest { query, limit: limit.unwrap_or_default() });
    answered(upstreams.names().find_names(request).await)
}

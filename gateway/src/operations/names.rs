//! Finds folders, databases and memories by name.

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::FindNamesRequest;

use super::answered;
use crate::answers::FoundNames;
use crate::upstreams::Upstreams;

/// Live items whose names contain the text, at most `limit` of each kind (the service's default if absent).
pub(crate) async fn find(
    upstreams: &Upstreams,
    call: &Call,
    query: String,
    limit: Option<u32>,
) -> Result<FoundNames, Problem> {
    let request = call.request(FindNamesRequest { query, limit: limit.unwrap_or_default() });
    answered(upstreams.names().find_names(request).await)
}

//! Scripts over the workspace as a file system.

use cairn_chassis::status::Problem;
use cairn_proto::retrieval::v1 as proto;
use serde::Deserialize;
use utoipa::ToSchema;

use super::past_moment::PastMoment;
use super::{Context, answered};
use crate::answers::ScriptAnswer;
use crate::schema::inputs;

inputs!(ExecuteScript);

/// A script and where it begins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExecuteScript {
    /// Commands of the read-only shell, at most 16 KiB: `grep -rn "rate limit" /files | head -20`. `help` lists them.
    #[schema(min_length = 1, max_length = 16384)]
    pub(crate) script: String,
    /// The folder to begin in, as an absolute path.
    #[schema(default = "/")]
    pub(crate) cwd: Option<String>,
    /// The output is cut to so many bytes: 1024 to 204800, 61440 when left out.
    #[schema(minimum = 1024, maximum = 204800, default = 61440)]
    pub(crate) max_output_bytes: Option<u32>,
    /// Shows the files, folders and memories that are there now as they stood at a time (RFC 3339), or after the write that
    /// answered a change token.
    pub(crate) as_of: Option<String>,
}

pub(crate) async fn execute(context: &Context, input: ExecuteScript) -> Result<ScriptAnswer, Problem> {
    let moment = PastMoment::read(input.as_of.as_deref(), None)?;
    let request = context.call.request(proto::ExecuteScriptRequest {
        script: input.script,
        cwd: input.cwd.unwrap_or_default(),
        max_output_bytes: input.max_output_bytes.unwrap_or_default(),
        link_base: context.links.to(""),
        when: moment.and_then(PastMoment::of_script),
    });
    let answer = answered(context.upstreams.browse().execute_script(request).await)?;
    Ok(ScriptAnswer::read(answer, &context.links))
}

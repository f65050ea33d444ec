//! The feedback tool.

use cairn_chassis::status::Problem;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::{Hints, Terms, Tool};
use crate::operations::Context;
use crate::operations::feedback::{self, ReportFeedback};
use crate::schema::Input as _;

pub(super) static SUBMIT_FEEDBACK: Tool = Tool {
    name: "submit_feedback",
    title: "Report a problem to the maintainers",
    description: "Tell the people who maintain this workspace what is missing, out of date, wrong or hard to use; they \
        get it by mail or in a list, 10 reports an hour at most. Use it when the workspace lacked what a task needed or \
        gave something wrong, not to save notes (create_file does that). Example: {\"message\": \"The deploy guide still \
        names the old registry\", \"category\": \"stale_content\", \"context\": {\"fileId\": \"…\"}}.",
    hints: Hints::REPORT,
    terms: Terms::READ,
    input: ReportFeedback::contract,
    output: None,
    recovery: "go on without it, and tell the user what you wanted to report.",
    run: |context, arguments| Box::pin(run(context, arguments)),
};

async fn run(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let sent = feedback::report(context, arguments.read()?).await?;
    Ok(Outcome::text(sent.message))
}

//! `cairn feedback`.

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::connection::{Connection, ConnectionOptions};
use super::output::{print, print_json};

pub(super) const EXAMPLES: &str = "Examples:
  cairn feedback \"The deploy guide still names the old registry\" --category stale_content
  cairn feedback \"Search found nothing on invoices\" --context '{\"query\": \"invoices\"}'";

#[derive(Debug, Args)]
pub(crate) struct FeedbackOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// What is missing, out of date or wrong; at most 5000 characters.
    message: String,
    /// missing_context, stale_content, wrong_result, tool_problem or other.
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
    /// What belongs to it: a JSON object of at most 10 KiB.
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// Print the answer as the API gives it.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: FeedbackOptions) -> anyhow::Result<()> {
    let context: Option<Value> =
        options.context.as_deref().map(serde_json::from_str).transpose().context("--context is not JSON")?;
    // The API treats null like an absent field.
    let body = json!({
        "message": options.message, "channel": "cli", "category": options.category, "context": context,
    });
    let connection = Connection::open(&options.connection)?;
    let request = connection.request(Method::POST, "/api/v1/feedback").json(&body);
    let answer = connection.json(request).await?;
    if options.json {
        return print_json(&answer);
    }
    print(answer.get("message").and_then(Value::as_str).unwrap_or("sent"))
}

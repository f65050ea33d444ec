//! The usage guides: short and true texts, shipped in the binary.

use cairn_chassis::status::Problem;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::{Hints, Tool};
use crate::operations::Context;
use crate::schema::{Input as _, inputs};
use crate::validate;

inputs!(GetUsageGuide);

/// The one file that each topic has.
const MAIN_FILE: &str = "guide.md";

struct Guide {
    topic: &'static str,
    summary: &'static str,
    body: &'static str,
}

const GUIDES: [Guide; 3] = [
    Guide {
        topic: "getting-started",
        summary: "What Cairn is, which tool to take for what, and how errors help.",
        body: include_str!("../../../guides/getting-started.md"),
    },
    Guide {
        topic: "searching",
        summary: "Queries that find things: syntax, strategies, sub-queries, citations, coverage notes.",
        body: include_str!("../../../guides/searching.md"),
    },
    Guide {
        topic: "files",
        summary: "Reading, writing and ordering files and folders without losing anything.",
        body: include_str!("../../../guides/files.md"),
    },
];

/// Names a guide.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetUsageGuide {
    /// The guide's topic, such as `searching`. Left out: the list of topics.
    topic: Option<String>,
    /// A file of the guide; `guide.md` when left out.
    file: Option<String>,
}

pub(super) static GET_USAGE_GUIDE: Tool = Tool {
    name: "get_usage_guide",
    title: "Read how to use Cairn",
    description: "Read how Cairn's tools are used well, as markdown. Call it without arguments for the list of topics, \
        then with one: {\"topic\": \"searching\"}. Use it when a tool did not do what you expected, or before larger \
        work. It says nothing about the workspace's own content: for that use search_context.",
    hints: Hints::READ,
    input: GetUsageGuide::contract,
    output: None,
    recovery: "call get_usage_guide with {} for the list of topics.",
    run: |context, arguments| Box::pin(run(context, arguments)),
};

async fn run(_context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: GetUsageGuide = arguments.read()?;
    read(input.topic.as_deref(), input.file.as_deref()).map(Outcome::text)
}

fn read(topic: Option<&str>, file: Option<&str>) -> Result<String, Problem> {
    let Some(topic) = topic.filter(|topic| !topic.is_empty()) else {
        return Ok(index().to_string());
    };
    let topics: Vec<&str> = GUIDES.iter().map(|guide| guide.topic).collect();
    let Some(guide) = GUIDES.iter().find(|guide| guide.topic == topic) else {
        let advice = match validate::nearest(topic, &topics) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the topics are: {}", topics.join(", ")),
        };
        return Err(Problem::not_found(format!("there is no guide of that topic; {advice}")));
    };
    match file {
        None | Some("" | MAIN_FILE) => Ok(guide.body.to_owned()),
        Some(_) => Err(Problem::not_found(format!("the guide `{topic}` has one file: {MAIN_FILE}"))),
    }
}

fn index() -> Value {
    let topics =
        GUIDES.map(|guide| json!({"topic": guide.topic, "summary": guide.summary, "files": [MAIN_FILE]}));
    json!({"topics": topics})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_guides_that_can_be_read() {
        let index: Value = serde_json::from_str(&read(None, None).unwrap()).unwrap();
        for topic in index["topics"].as_array().unwrap() {
            let name = topic["topic"].as_str();
            assert!(read(name, None).unwrap().starts_with("# "));
            assert_eq!(read(name, topic["files"][0].as_str()), read(name, None));
        }
    }

    #[test]
    fn a_wrong_topic_is_put_right() {
        assert!(read(Some("serching"), None).unwrap_err().message.contains("`searching`"));
        assert!(read(Some("x"), None).unwrap_err().message.contains("getting-started, searching, files"));
        assert!(read(Some("files"), Some("other.md")).is_err());
    }
}

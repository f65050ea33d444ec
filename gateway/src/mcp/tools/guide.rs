//! The usage guides, for agents that know nothing of skills.

use cairn_chassis::status::Problem;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::{Hints, Terms, Tool};
use crate::guides::{self, Guide, MAIN_FILE};
use crate::operations::Context;
use crate::schema::{Input as _, inputs};
use crate::validate;

inputs!(GetUsageGuide);

const INDEX: &str = "call get_usage_guide with {} for the list of topics.";

/// Names a guide.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GetUsageGuide {
    /// The guide's topic. Left out: the list of topics.
    #[schema(examples("searching"))]
    topic: Option<String>,
    /// A further file of the guide, as the list of topics names it. Left out: the guide itself.
    #[schema(examples("references/commands.md"))]
    file: Option<String>,
}

pub(super) static GET_USAGE_GUIDE: Tool = Tool {
    name: "get_usage_guide",
    title: "Read how to use Cairn",
    description: "Read how Cairn's tools are used well, as markdown. Without arguments it gives the list of topics as JSON; \
        then call it with one: {\"topic\": \"searching\"}. Use it when a tool did not do what you expected, or before \
        larger work. For the workspace's content use search_context. Needs no permission.",
    hints: Hints::READ,
    terms: Terms::ORDINARY,
    input: GetUsageGuide::contract,
    output: None,
    recovery: INDEX,
    run: |context, arguments| Box::pin(run(context, arguments)),
};

async fn run(_context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: GetUsageGuide = arguments.read()?;
    let given =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    match (given(input.topic), given(input.file)) {
        (None, None) => Ok(Outcome::text(index().to_string())),
        (Some(topic), file) => Ok(read(&topic, file.as_deref())),
        (None, Some(_)) => {
            let problem = Problem::not_found("a file is of a topic: name the topic, too");
            Ok(Outcome::refused(problem, INDEX.to_owned()))
        }
    }
}

fn read(topic: &str, file: Option<&str>) -> Outcome {
    let Some(guide) = named(topic) else {
        return no_topic(topic);
    };
    match file {
        None | Some(MAIN_FILE) => Outcome::text(guide.body().to_owned()),
        Some(path) => match guide.file(path) {
            Some(file) => Outcome::text(file.text.to_owned()),
            None => no_file(guide, path),
        },
    }
}

/// The topic by exact or similar name.
fn named(topic: &str) -> Option<&'static Guide> {
    let plain = topic.to_lowercase().replace([' ', '_'], "-");
    guides::named(&plain)
}

fn no_topic(topic: &str) -> Outcome {
    let topics: Vec<&str> = guides::all().iter().map(|guide| guide.name).collect();
    let near = validate::nearest(topic, &topics);
    let advice = match near {
        Some(near) => format!("did you mean `{near}`? The topics are: {}", topics.join(", ")),
        None => format!("the topics are: {}", topics.join(", ")),
    };
    let next = near.map_or_else(|| INDEX.to_owned(), |near| call(&json!({"topic": near})));
    Outcome::refused(Problem::not_found(format!("there is no guide of that topic; {advice}")), next)
}

fn no_file(guide: &Guide, path: &str) -> Outcome {
    let files: Vec<&str> = guide.files.iter().map(|file| file.path).collect();
    let message = format!("the guide `{}` has no such file; it has: {}", guide.name, files.join(", "));
    let next = match validate::nearest(path, &files) {
        Some(near) => call(&json!({"topic": guide.name, "file": near})),
        None => call(&json!({"topic": guide.name})),
    };
    Outcome::refused(Problem::not_found(message), next)
}

fn call(arguments: &Value) -> String {
    format!("call get_usage_guide with {arguments}")
}

fn index() -> Value {
    let topics = guides::all().iter().map(|guide| {
        let files: Vec<&str> = guide.files.iter().map(|file| file.path).collect();
        json!({"topic": guide.name, "summary": guide.description, "files": files})
    });
    json!({"topics": topics.collect::<Value>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(topic: &str, file: Option<&str>) -> String {
        let outcome = read(topic, file);
        match &outcome.refusal {
            Some((problem, next)) => format!("{problem} Next: {next}"),
            None => outcome.into_result()["content"][0]["text"].as_str().unwrap().to_owned(),
        }
    }

    #[test]
    fn the_index_names_guides_and_files_that_can_be_read() {
        let index = index();
        let topics = index["topics"].as_array().unwrap();
        assert!(topics.len() >= 7, "{index}");
        for topic in topics {
            let name = topic["topic"].as_str().unwrap();
            assert!(said(name, None).starts_with("# "), "{name}");
            for file in topic["files"].as_array().unwrap() {
                assert!(said(name, file.as_str()).starts_with("# "), "{name}: {file}");
            }
        }
    }

    #[test]
    fn guides_name_only_tools_files_and_topics_that_there_are() {
        let tools: Vec<&str> = crate::mcp::tools::TOOLS.iter().map(|tool| tool.name).collect();
        for file in guides::all().iter().flat_map(|guide| guide.files) {
            assert!(file.text.len() < 8_000, "{} is long for an agent", file.path);
            let words = file.text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
            for word in words.filter(|word| {
                [
                    "get_", "list_", "create_", "update_", "delete_", "search_", "query_", "fetch_",
                    "submit_", "browse_",
                ]
                .iter()
                .any(|verb| word.starts_with(verb))
            }) {
                assert!(tools.contains(&word), "{} names {word}", file.path);
            }
        }
    }

    #[test]
    fn a_wrong_topic_is_put_right() {
        assert!(
            said("serching", None).ends_with("Next: call get_usage_guide with {\"topic\":\"searching\"}")
        );
        assert!(said("x", None).contains("browsing, connecting-a-source"), "{}", said("x", None));
        assert!(said("Curating memories", None).starts_with("# "));
        let other = said("browsing", Some("commands.md"));
        assert!(
            other.contains("references/commands.md") && other.contains("Next: call get_usage_guide with {"),
            "{other}"
        );
    }
}

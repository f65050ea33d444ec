//! `completion/complete`: completes arguments that name a memory, a database, a folder, a source or a usage guide,
//! with those visible to the caller.
//!
//! Values are slugs for memories, names for guides, ids for the rest: a completed value must be accepted by a call.
//! Display names are matched as well, and returned beside the values in `_meta`.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::limits::PAGE;
use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::failure::Failure;
use super::resources;
use crate::guides;
use crate::operations::{Context, Paging, databases, folders, memories, sources};

/// The maximum of the protocol.
const MAX_VALUES: usize = 100;
/// Longer lists are truncated.
const MAX_PAGES: usize = 5;
/// Key in `_meta`: the display names by value.
const TITLES: &str = "cairn/titles";

/// What an argument refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Memories,
    Databases,
    Folders,
    Sources,
    Guides,
    /// Nothing that can be completed.
    Nothing,
}

/// A possible value of an argument.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    value: String,
    title: String,
}

/// Completes one argument.
pub(super) async fn complete(context: &Context, request: &Request) -> Result<Map<String, Value>, Failure> {
    let argument = request.params.get("argument");
    let part = |name: &str| argument.and_then(|argument| argument.get(name)).and_then(Value::as_str);
    let (Some(name), Some(value)) = (part("name"), part("value")) else {
        let message = "completion/complete: `argument` must be {\"name\": text, \"value\": text}";
        return Err(Failure::invalid_params(message));
    };
    let subject = subject_of(request, name)?;
    let (known, is_all) = match candidates(context, subject).await {
        Ok(found) => found,
        // A caller without the right to see them has none to choose from.
        Err(problem) if matches!(problem.reason, Reason::Forbidden | Reason::OutOfScope) => {
            (Vec::new(), true)
        }
        Err(problem) => return Err(resources::failure_of(&problem)),
    };
    Ok(answer(matching(known, value), is_all))
}

/// What the argument of the reference refers to.
fn subject_of(request: &Request, argument: &str) -> Result<Subject, Failure> {
    let reference = request.params.get("ref");
    let part = |name: &str| reference.and_then(|reference| reference.get(name)).and_then(Value::as_str);
    match (part("type"), part("name"), part("uri")) {
        // Our prompts take no arguments, but argument names known from tools are completed all the same.
        (Some("ref/prompt"), Some(_), _) => Ok(by_argument(argument)),
        (Some("ref/resource"), _, Some(uri)) => {
            let is_known = resources::TEMPLATES.iter().any(|template| template.uri == uri);
            if !is_known {
                let message = "completion/complete: no such template; resources/templates/list has them";
                return Err(Failure::invalid_params(message).about(uri));
            }
            // The variable must be one of the template's.
            Ok(if uri.contains(&format!("{{{argument}}}")) { by_template(uri) } else { Subject::Nothing })
        }
        _ => Err(Failure::invalid_params(
            "completion/complete: `ref` must be {\"type\": \"ref/prompt\", \"name\": …} or {\"type\": \
             \"ref/resource\", \"uri\": a template of resources/templates/list}",
        )),
    }
}

fn by_argument(name: &str) -> Subject {
    match name {
        "slug" | "memory" | "memoryId" => Subject::Memories,
        "databaseId" | "database" => Subject::Databases,
        "folderId" | "parentId" | "folder" => Subject::Folders,
        "sourceId" | "sourceIds" | "source" => Subject::Sources,
        "topic" => Subject::Guides,
        _ => Subject::Nothing,
    }
}

fn by_template(uri: &str) -> Subject {
    match uri.split(['/', '{']).find(|part| !matches!(*part, "cairn:" | "skill:" | "")) {
        Some("memory") => Subject::Memories,
        Some("database") => Subject::Databases,
        Some("folder") => Subject::Folders,
        Some("source") => Subject::Sources,
        Some("cairn") => Subject::Guides,
        _ => Subject::Nothing,
    }
}

/// All candidates up to [`MAX_PAGES`] pages, and whether that is all of them.
async fn candidates(context: &Context, subject: Subject) -> Result<(Vec<Candidate>, bool), Problem> {
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let paging = Paging { limit: Some(PAGE), cursor: cursor.take() };
        cursor = match subject {
            Subject::Memories => {
                let page = memories::list(context, paging).await?;
                found
                    .extend(page.items.into_iter().map(|one| Candidate { value: one.slug, title: one.name }));
                page.next
            }
            Subject::Databases => {
                let page = databases::list(context, None, paging).await?;
                found.extend(page.items.into_iter().map(|one| Candidate { value: one.id, title: one.name }));
                page.next
            }
            Subject::Folders => {
                let page = folders::list(context, folders::Selection::default(), paging).await?;
                found.extend(page.items.into_iter().map(|one| Candidate { value: one.id, title: one.path }));
                page.next
            }
            Subject::Sources => {
                let page = sources::list(context).await?;
                found.extend(page.items.into_iter().map(|one| Candidate { value: one.id, title: one.name }));
                page.next
            }
            Subject::Guides => {
                let guide = |guide: &guides::Guide| Candidate {
                    value: guide.name.to_owned(),
                    title: guide.name.to_owned(),
                };
                found.extend(guides::all().iter().map(guide));
                None
            }
            Subject::Nothing => None,
        };
        if cursor.is_none() {
            return Ok((found, true));
        }
    }
    Ok((found, false))
}

/// The candidates that contain the typed text, prefix matches first.
fn matching(known: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    let typed = typed.to_lowercase();
    let rank = |candidate: &Candidate| {
        let (value, title) = (candidate.value.to_lowercase(), candidate.title.to_lowercase());
        // The last segment of a path counts as a prefix, too.
        let name = title.rsplit('/').next().unwrap_or_default();
        let begins = value.starts_with(&typed) || title.starts_with(&typed) || name.starts_with(&typed);
        (begins || value.contains(&typed) || title.contains(&typed)).then_some(!begins)
    };
    let mut ranked: Vec<(bool, Candidate)> =
        known.into_iter().filter_map(|candidate| Some((rank(&candidate)?, candidate))).collect();
    // The sort is stable: list order is kept within each half.
    ranked.sort_by_key(|(is_inside, _)| *is_inside);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

fn answer(found: Vec<Candidate>, is_all: bool) -> Map<String, Value> {
    let total = found.len();
    let shown: Vec<Candidate> = found.into_iter().take(MAX_VALUES).collect();
    let titles: Map<String, Value> =
        shown.iter().map(|one| (one.value.clone(), Value::from(one.title.as_str()))).collect();
    let values: Vec<String> = shown.into_iter().map(|one| one.value).collect();
    let mut completion = json!({"hasMore": total > values.len() || !is_all, "values": values});
    // `total` is unknown if the list was truncated.
    if let (true, Some(fields)) = (is_all, completion.as_object_mut()) {
        fields.insert("total".to_owned(), Value::from(total));
    }
    let mut result = Map::new();
    result.insert("completion".to_owned(), completion);
    if !titles.is_empty() {
        result.insert("_meta".to_owned(), json!({TITLES: titles}));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(value: &str, title: &str) -> Candidate {
        Candidate { value: value.to_owned(), title: title.to_owned() }
    }

    #[test]
    fn what_begins_with_it_comes_first_and_what_lacks_it_not_at_all() {
        let known = vec![
            candidate("old-release", "Old"),
            candidate("a", "/ops/Release notes"),
            candidate("release", "Release"),
            candidate("other", "Other"),
        ];
        let found: Vec<String> = matching(known, "REL").into_iter().map(|one| one.value).collect();
        assert_eq!(found, ["a", "release", "old-release"]);
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let many = || (0..MAX_VALUES + 1).map(|number| candidate(&number.to_string(), "x")).collect();
        let cut = answer(many(), true);
        assert_eq!(cut["completion"]["values"].as_array().unwrap().len(), MAX_VALUES);
        assert_eq!((&cut["completion"]["total"], &cut["completion"]["hasMore"]), (&json!(101), &json!(true)));
        let uncounted = answer(vec![candidate("a", "b")], false);
        assert_eq!(uncounted["completion"], json!({"values": ["a"], "hasMore": true}));
        assert_eq!(
            answer(Vec::new(), true),
            *json!({"completion": {"values": [], "total": 0, "hasMore": false}}).as_object().unwrap()
        );
    }

    #[test]
    fn every_template_with_something_to_list_has_a_subject() {
        for template in &resources::TEMPLATES {
            let is_file = template.uri.starts_with("cairn://file/");
            assert_eq!(by_template(template.uri) == Subject::Nothing, is_file, "{}", template.uri);
        }
    }
}

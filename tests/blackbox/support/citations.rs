//! Checks a search result against the document that it cites.

use serde_json::Value;

use super::callers::Caller;
use super::http::{items, text};
use super::workspace::read_file;

/// Checks every result of a response.
pub(crate) async fn check_all(caller: &impl Caller, answer: &Value) {
    for result in items(&answer["results"]) {
        check(caller, result).await;
    }
}

/// Everything that a result claims about its document must match the document as it is stored now.
pub(crate) async fn check(caller: &impl Caller, result: &Value) {
    let citation = &result["citation"];
    assert_eq!(citation["kind"], "file", "{result}");
    let file = read_file(caller, &text(citation, "id")).await;
    assert_eq!(result["fileId"], file["id"], "{result}");
    assert_eq!(result["documentId"], file["id"], "{result}");
    assert_eq!(result["folderId"], file["folderId"], "{result}");
    assert_eq!(citation["path"], file["path"], "{result}");
    assert_eq!(citation["contentHash"], file["contentHash"], "{result}");
    assert_eq!(citation["syncMode"], "indexed", "{result}");
    assert!(text(citation, "url").ends_with(&format!("/file/{}", text(&file, "id"))), "{result}");
    assert!(!text(citation, "label").is_empty() && !text(result, "chunkId").is_empty(), "{result}");
    assert_eq!(result["updatedAt"], file["updatedAt"], "{result}");
    assert!(result["score"].as_f64().is_some_and(|score| score >= 0.0), "{result}");

    let place = &result["chunk"]["location"];
    for part in ["startLine", "endLine"] {
        assert_eq!(citation[part], place[part], "the citation and the chunk disagree about {part}: {result}");
    }
    let highlights = items(&result["highlights"]);
    assert!((1..=3).contains(&highlights.len()), "{result}");
    assert_eq!(
        citation["headingPath"], highlights[0]["headingPath"],
        "a reader is led to what answers: {result}"
    );
    for highlight in highlights {
        let (first, last) = (line_number(highlight, "startLine"), line_number(highlight, "endLine"));
        assert!(line_number(place, "startLine") <= first && first <= last, "{result}");
        assert!(last <= line_number(place, "endLine"), "{result}");
    }
    let (start, end) = (line_number(place, "startLine"), line_number(place, "endLine"));
    let stored = text(&file, "content");
    let lines: Vec<&str> = stored.lines().collect();
    assert!(
        1 <= start && start <= end && end <= lines.len(),
        "lines {start} to {end} of {}: {result}",
        lines.len()
    );
    assert_eq!(text(result, "content"), lines[start - 1..end].join("\n"), "lines {start} to {end} of {file}");
}

fn line_number(place: &Value, name: &str) -> usize {
    let number = place[name].as_u64().unwrap_or_else(|| panic!("no `{name}` in {place}"));
    usize::try_from(number).unwrap()
}

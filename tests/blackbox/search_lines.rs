//! Highlighted lines of a result, and answers that contain only these.

use crate::support::citations;
use crate::support::http::{each, items, text};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![
    the_line_that_answers_is_marked,
    where_no_word_stands_the_meaning_is_marked,
    lines_alone_are_returned_when_asked,
    a_token_budget_is_filled_with_lines,
    each_document_is_one_result_when_asked,
    an_unknown_detail_is_refused,
    rows_of_a_long_table_come_with_its_header,
    rows_of_csv_come_with_their_header,
];

const GUIDE: &str = "# Guide\n\nWhat operators do with this service, day by day.\n\n## Keys\n\n### Rotation\n\n\
    Tokens are rotated every ninety days by whoever is on call.\n\n### Loss\n\n\
    A lost token is revoked at once, and its owner is told.\n\n## Backups\n\n\
    The database is copied every night to another region.\n";

async fn the_line_that_answers_is_marked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let written = workspace.file("guide.md", None, GUIDE).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let body = json!({"query": "who revokes a lost token", "strategy": strategy});
        let answer = workspace.search_after(&written.change(), body).await;
        let best = &items(&answer["results"])[0];
        let marked = &best["highlights"][0];
        assert_eq!(marked["endLine"], 13, "{strategy}: {best}");
        assert_eq!(marked["headingPath"], json!(["Guide", "Keys", "Loss"]), "{strategy}: {best}");
        assert_eq!(best["citation"]["headingPath"], marked["headingPath"], "{strategy}: {best}");
        citations::check_all(&workspace.token, &answer).await;
    }
    let over_mcp =
        mcp::call(&workspace.token, "search_context", json!({"query": "who revokes a lost token"})).await;
    let message = mcp::text_of(&over_mcp);
    assert!(message.contains("\n> 13: A lost token is revoked at once"), "{message}");
    assert!(!message.contains("> 9: "), "{message}");
}

async fn where_no_word_stands_the_meaning_is_marked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let written = workspace.file("guide.md", None, GUIDE).await;
    let body = json!({"query": "replicating storage nightly", "strategy": "semantic"});
    let answer = workspace.search_after(&written.change(), body).await;
    let best = &items(&answer["results"])[0];
    assert_eq!(best["highlights"][0]["headingPath"], json!(["Guide", "Backups"]), "{best}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn lines_alone_are_returned_when_asked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let written = workspace.file("guide.md", None, GUIDE).await;
    let body = json!({"query": "how often is the database copied", "detail": "lines"});
    let answer = workspace.search_after(&written.change(), body).await;
    let best = &items(&answer["results"])[0];
    let content = text(best, "content");
    assert!(content.contains("copied every night") && !content.contains("ninety days"), "{best}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn a_token_budget_is_filled_with_lines(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut change = String::new();
    for number in 0..4 {
        let filler = "Something about taxes and invoices of the year before.\n\n".repeat(12);
        let content =
            format!("# Tapir {number}\n\n{filler}Tapir {number} swims well in the lake.\n\n{filler}");
        change = workspace.file(&format!("{number}.md"), None, &content).await.change();
    }
    let ask = async |detail: &str| {
        let body =
            json!({"query": "tapir swims", "strategy": "keyword", "tokenBudget": 120, "detail": detail});
        workspace.search_after(&change, body).await
    };
    let (whole, lines) = (ask("passages").await, ask("lines").await);
    assert_eq!(items(&whole["results"]).len(), 0, "no passage fits: {whole}");
    assert_eq!(items(&lines["results"]).len(), 4, "{lines}");
    assert!(
        each(&lines["results"], "content").iter().all(|content| content.contains("swims well")),
        "{lines}"
    );
    citations::check_all(&workspace.token, &lines).await;
}

async fn each_document_is_one_result_when_asked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let section =
        |name: &str| format!("## {name}\n\n{}\n\n", format!("The {name} narwhal dives. ").repeat(60));
    let filler = format!("## Between\n\n{}\n\n", "Something about taxes and invoices. ".repeat(60));
    let content = format!("{}{filler}{}", section("first"), section("second"));
    workspace.file("long.md", None, &content).await;
    let short = workspace.file("short.md", None, "# Narwhals\n\nA narwhal dives.\n").await;
    let body = json!({"query": "narwhal dives", "strategy": "keyword", "detail": "documents"});
    let answer = workspace.search_after(&short.change(), body).await;
    let results = items(&answer["results"]);
    assert_eq!(results.len(), 2, "{answer}");
    let long = results.iter().find(|result| result["citation"]["path"] == "/long.md").unwrap();
    assert_eq!(items(&long["alsoAt"]).len(), 1, "{long}");
    assert_ne!(long["alsoAt"][0]["startLine"], long["citation"]["startLine"], "{long}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn an_unknown_detail_is_refused(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"query": "x", "detail": "words"});
    let message =
        workspace.token.post("/api/v1/search_context").json(body).await.expect_error(400, "VALIDATION_ERROR");
    assert!(message.to_string().contains("lines"), "{message}");
}

async fn rows_of_a_long_table_come_with_its_header(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let rows: String =
        (0..400).map(|row| format!("| widget{row} | {row} euros | shelf {row} of the store |\n")).collect();
    let table = format!("# Stock\n\n| Part | Price | Place |\n|------|-------|-------|\n{rows}");
    let written = workspace.file("stock.md", None, &table).await;
    let header = "| Part | Price | Place |\n|------|-------|-------|";
    for detail in ["passages", "lines"] {
        let body = json!({"query": "widget377", "strategy": "keyword", "detail": detail});
        let answer = workspace.search_after(&written.change(), body).await;
        let best = &items(&answer["results"])[0];
        assert_eq!(best["tableHeader"], header, "{detail}: {best}");
        // Content and lines still match the file.
        citations::check_all(&workspace.token, &answer).await;
        let first = json!({"query": "widget1", "strategy": "keyword", "detail": detail});
        let answer = workspace.search_after(&written.change(), first).await;
        let best = &items(&answer["results"])[0];
        let is_cut = !text(best, "content").contains("| Part |");
        assert!(best["tableHeader"].is_null() && (detail == "lines" || !is_cut), "{detail}: {best}");
    }
    // The name of a column finds its rows.
    let body = json!({"query": "price of widget377", "strategy": "keyword"});
    let answer = workspace.search_after(&written.change(), body).await;
    assert!(text(&items(&answer["results"])[0], "content").contains("widget377"), "{answer}");
    let arguments = json!({"query": "widget377", "strategy": "keyword"});
    let message = mcp::text_of(&mcp::call(&workspace.token, "search_context", arguments).await);
    assert!(message.contains(&format!("<hit>\n{header}\n| widget")), "{message}");
}

async fn rows_of_csv_come_with_their_header(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let row = |row: usize| format!("widget{row};\"{row} euros;\n\nor as agreed\";shelf {row} of the store\n");
    let rows: String = (0..300).map(row).collect();
    let table = format!("Part;Price;Place\n{rows}");
    let written = workspace.typed_file("stock.csv", "text", None, &table).await;
    let body = json!({"query": "widget277", "strategy": "keyword"});
    let answer = workspace.search_after(&written.change(), body).await;
    let best = &items(&answer["results"])[0];
    assert_eq!(best["tableHeader"], "Part;Price;Place", "{best}");
    let content = text(best, "content");
    assert!(content.starts_with("widget") && content.ends_with("of the store"), "a row is parted: {content}");
    // Content and lines still match the file.
    citations::check_all(&workspace.token, &answer).await;
    // The name of a column finds its rows.
    let body = json!({"query": "price of widget277", "strategy": "keyword"});
    let answer = workspace.search_after(&written.change(), body).await;
    assert!(text(&items(&answer["results"])[0], "content").contains("widget277"), "{answer}");
}

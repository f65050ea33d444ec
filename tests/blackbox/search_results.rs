//! Post-processing of the chunks that a search finds: duplicates are collapsed, neighbours are merged, and omissions
//! are reported.

use crate::support::citations;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    copies_are_collapsed_and_named,
    versions_that_differ_in_a_number_both_show,
    neighbours_are_one_result_with_exactly_their_lines,
    distant_parts_of_a_file_stay_apart,
    of_equals_the_younger_comes_first,
    a_trace_adds_up_whatever_is_asked,
    exclusions_hold_for_every_strategy_and_sub_query,
    a_phrase_is_a_demand,
    a_token_budget_takes_whole_pieces_and_says_so,
    sources_that_are_not_there_are_said,
    an_answer_is_the_same_each_time,
];

const TEXT: &str = "# Incident review\n\nThe walrus service lost its leader because the lease was never renewed. \
    Two replicas then took writes at once, and the journal of the slower one was thrown away by the operators after they \
    compared both with the backup of the night before.\n";

async fn copies_are_collapsed_and_named(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let archive = workspace.folder("archive", None).await;
    let first = workspace.file_id("review.md", Some(&archive), TEXT).await;
    let other =
        workspace.file_id("walrus.md", None, "# Walrus\n\nThe walrus service has three replicas.\n").await;
    let last = workspace.file("review.md", None, &TEXT.replace("The walrus", "The  walrus")).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let body = json!({"query": "walrus service leader lease", "strategy": strategy});
        let answer = workspace.search_after(&last.change(), body).await;
        let found = each(&answer["results"], "fileId");
        assert_eq!(found.len(), 2, "{strategy}: {answer}");
        assert!(found.contains(&other.as_str()), "{strategy}: {answer}");
        let kept = items(&answer["results"]).iter().find(|result| result["fileId"] != json!(other)).unwrap();
        assert_eq!(kept["collapsed"], 1, "{strategy}: {kept}");
        let mut both = vec![text(kept, "fileId"), text(&kept["alsoIn"][0], "id")];
        let mut expected = vec![first.clone(), id(&last.json())];
        both.sort();
        expected.sort();
        assert_eq!(both, expected, "{strategy}: neither is lost");
        assert_eq!(kept["alsoIn"][0]["startLine"], 1, "{kept}");
        citations::check_all(&workspace.token, &answer).await;
    }
}

async fn versions_that_differ_in_a_number_both_show(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let old = TEXT.replace("Two replicas", "After 30 seconds two replicas");
    let new = TEXT.replace("Two replicas", "After 45 seconds two replicas");
    let one = workspace.file_id("old.md", None, &old).await;
    let two = workspace.file("new.md", None, &new).await;
    let answer = workspace.search_after(&two.change(), json!({"query": "walrus lease"})).await;
    let found = each(&answer["results"], "fileId");
    assert!(found.contains(&one.as_str()) && found.contains(&id(&two.json()).as_str()), "{answer}");
    assert!(items(&answer["results"]).iter().all(|result| result.get("alsoIn").is_none()), "{answer}");
}

/// A section that is a chunk of its own: too long to be merged with its neighbours by the chunker.
fn section(name: &str, gap: &str) -> String {
    format!(
        "## The {name} part\n\n{}\n\nNarwhals end it.{gap}",
        format!("The {name} narwhal dives. ").repeat(30)
    )
}

async fn neighbours_are_one_result_with_exactly_their_lines(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    // The sections are separated by blank lines of all kinds.
    for (name, gaps) in [
        ("a.md", ["\n\n", "\n\n"]),
        ("b.md", ["\n\n \t\n\n", "\n\n\n\n"]),
        ("c.md", ["\r\n\r\n", "\r\n \r\n"]),
    ] {
        let content =
            ["first", "second"].iter().zip(gaps).map(|(part, gap)| section(part, gap)).collect::<String>();
        let content = format!(
            "# Whales\n\n{content}## Unlike\n\n{}",
            "Something about taxes and invoices. ".repeat(60)
        );
        let written = workspace.file(name, None, &content).await;
        let body = json!({"query": "narwhal", "strategy": "keyword"});
        let answer = workspace.search_after(&written.change(), body).await;
        let file = id(&written.json());
        let own: Vec<&Value> =
            items(&answer["results"]).iter().filter(|result| result["fileId"] == json!(file)).collect();
        assert_eq!(own.len(), 1, "{name}: both sections are one result: {answer}");
        let content = text(own[0], "content");
        assert!(content.contains("The first narwhal") && content.contains("The second narwhal"), "{own:?}");
        assert!(!content.contains("taxes"), "{own:?}");
        assert_eq!(own[0]["chunk"]["location"]["headingPath"], json!(["Whales"]), "what both stand under");
        if name != "c.md" {
            citations::check(&workspace.token, own[0]).await;
        }
        let raw = workspace.token.get(&format!("/api/v1/files/{file}/raw")).await.expect(200).text();
        assert!(raw.contains(&content), "{name}: the very bytes of the file");
        workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    }
}

async fn distant_parts_of_a_file_stay_apart(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let filler = format!("## Between\n\n{}\n\n", "Something about taxes and invoices. ".repeat(60));
    let content = format!("{}{filler}{}", section("first", "\n\n"), section("second", "\n\n"));
    let written = workspace.file("apart.md", None, &content).await;
    let body = json!({"query": "narwhal", "strategy": "keyword"});
    let answer = workspace.search_after(&written.change(), body).await;
    assert_eq!(items(&answer["results"]).len(), 2, "{answer}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn of_equals_the_younger_comes_first(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let note = |number: u32| format!("# Axolotl\n\nThe axolotl of tank {number} eats worms.\n");
    let mut files = Vec::new();
    for number in [11, 12, 13] {
        files.push(workspace.file_id(&format!("{number}.md"), None, &note(number)).await);
    }
    // The first is rewritten and so becomes the newest; its term weights stay the same.
    let path = format!("/api/v1/files/{}", files[0]);
    let written = workspace.token.patch(&path).json(json!({"content": note(14)})).await.expect(200);
    let body = json!({"query": "axolotl worms", "strategy": "keyword", "explain": true});
    let answer = workspace.search_after(&written.change(), body).await;
    let scores =
        items(&answer["results"]).iter().filter_map(|result| result["score"].as_f64()).collect::<Vec<_>>();
    assert!(scores.iter().all(|score| (score - scores[0]).abs() < 1e-6), "they are equals: {scores:?}");
    assert_eq!(each(&answer["results"], "fileId"), [&files[0], &files[2], &files[1]], "{answer}");
    for result in items(&answer["results"]) {
        let bonus = result["trace"]["bonuses"].as_f64().unwrap();
        assert!(bonus.abs() < 1e-12, "what was written today loses nothing: {result}");
    }
}

async fn a_trace_adds_up_whatever_is_asked(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("one.md", None, TEXT).await;
    workspace.file("two.md", None, "# Leases\n\nA lease is renewed by its leader every second.\n").await;
    let last = workspace.file("three.md", None, &section("third", "\n")).await;
    let searches = json!([{"type": "lex", "text": "lease -invoice"}, {"type": "vec", "text": "who leads"},
        {"type": "hyde", "text": "The leader renews the lease."}]);
    for body in [
        json!({"query": "leader lease", "explain": true, "strategy": "keyword"}),
        json!({"query": "leader lease", "explain": true, "strategy": "semantic"}),
        json!({"query": "leader lease narwhal", "explain": true}),
        json!({"query": "leader lease narwhal", "explain": true, "searches": searches}),
    ] {
        let answer = workspace.search_after(&last.change(), body.clone()).await;
        assert!(!items(&answer["results"]).is_empty(), "{body}");
        for result in items(&answer["results"]) {
            let trace = &result["trace"];
            let number = |name: &str| trace[name].as_f64().unwrap_or(0.0);
            let contributions: Vec<f64> =
                items(&trace["subqueries"]).iter().filter_map(|part| part["contribution"].as_f64()).collect();
            let sum = contributions.iter().sum::<f64>() + number("bonuses") + number("rerank");
            assert!((sum - number("final")).abs() < 1e-6, "{sum}: {trace}");
            assert!((result["score"].as_f64().unwrap() - number("final")).abs() < 1e-9, "{result}");
            let is_fused = body.get("searches").is_some();
            assert_eq!(number("rrf") > 0.0, is_fused, "{trace}");
            if is_fused {
                let weights: Vec<f64> =
                    items(&trace["subqueries"]).iter().filter_map(|part| part["weight"].as_f64()).collect();
                assert_eq!(weights, [2.0, 1.0, 1.0, 1.0], "the query counts double: {trace}");
            }
        }
    }
}

async fn exclusions_hold_for_every_strategy_and_sub_query(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let kept = workspace.file_id("kept.md", None, "# Otters\n\nOtters sleep afloat and hold hands.\n").await;
    workspace.file("one.md", None, "# Otters\n\nOtters of the zoo sleep afloat and hold hands.\n").await;
    let last = workspace.file("two.md", None, "# Otters\n\nOtters sleep in the old harbour, afloat.\n").await;
    let searches = json!([{"type": "lex", "text": "otters"}, {"type": "vec", "text": "where do otters sleep"},
        {"type": "hyde", "text": "Otters sleep afloat and hold hands."}]);
    for more in [
        json!({"strategy": "keyword"}),
        json!({"strategy": "semantic"}),
        json!({"strategy": "hybrid"}),
        json!({"searches": searches}),
    ] {
        let mut body = json!({"query": "otters sleep afloat -zoo -\"old harbour\""});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = workspace.search_after(&last.change(), body.clone()).await;
        assert_eq!(each(&answer["results"], "fileId"), [kept.as_str()], "{body}: {answer}");
    }
    // A sub-query's own exclusion applies to its results.
    let body = json!({"query": "unrelated", "strategy": "keyword",
        "searches": [{"type": "vec", "text": "otters sleep afloat -zoo -harbour"}]});
    let answer = workspace.search_after(&last.change(), body).await;
    let best = items(&answer["results"]).first().map(|result| text(result, "fileId"));
    assert_eq!(best, Some(kept), "{answer}");
}

async fn a_phrase_is_a_demand(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let together = workspace.file_id("one.md", None, "# Kettles\n\nThe silver kettle whistles.\n").await;
    let apart = workspace.file("two.md", None, "# Kettles\n\nA kettle whistles, and silver shines.\n").await;
    for strategy in ["keyword", "hybrid"] {
        let body = json!({"query": "\"silver kettle\" whistles", "strategy": strategy});
        let answer = workspace.search_after(&apart.change(), body).await;
        assert_eq!(each(&answer["results"], "fileId"), [together.as_str()], "{strategy}: {answer}");
    }
    // A phrase that no document contains is searched by meaning.
    let body = json!({"query": "\"whistling silver pot\""});
    let answer = workspace.search_after(&apart.change(), body).await;
    assert!(!items(&answer["results"]).is_empty(), "{answer}");
}

async fn a_token_budget_takes_whole_pieces_and_says_so(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut change = String::new();
    for number in 0..6 {
        let content = format!("# Tapir {number}\n\n{}\n", format!("Tapir {number} swims well. ").repeat(30));
        change = workspace.file(&format!("{number}.md"), None, &content).await.change();
    }
    let ask = async |budget: u32| {
        let body = json!({"query": "tapir swims", "limit": 50, "tokenBudget": budget});
        workspace.search_after(&change, body).await
    };
    let all = ask(100_000).await;
    assert_eq!(items(&all["results"]).len(), 6, "{all}");
    assert!(
        !each(&all["coverage"], "code").contains(&"token_budget"),
        "nothing was cut: {}",
        all["coverage"]
    );
    let some = ask(500).await;
    let kept = items(&some["results"]);
    let bytes: usize = kept.iter().map(|result| text(result, "content").len()).sum();
    assert!((1..6).contains(&kept.len()) && bytes <= 2_000, "{} results of {bytes} bytes", kept.len());
    let note = items(&some["coverage"]).iter().find(|note| note["code"] == "token_budget").unwrap();
    assert_eq!(note["count"], 6 - kept.len(), "{note}");
    citations::check_all(&workspace.token, &some).await;
    let none = ask(1).await;
    assert_eq!(none["results"], json!([]), "no piece is cut: {none}");
    assert!(each(&none["coverage"], "code").contains(&"token_budget"), "{none}");
}

async fn sources_that_are_not_there_are_said(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let written = workspace.file("one.md", Some(&folder), TEXT).await;
    // A folder is no source, even though its id has the same form.
    let body = json!({"query": "walrus", "sourceIds": [folder, "0199c0de-0000-7000-8000-000000000001"]});
    let answer = workspace.search_after(&written.change(), body.clone()).await;
    assert_eq!(answer["results"], json!([]), "{answer}");
    assert_eq!(each(&answer["coverage"], "code"), ["source_excluded", "source_excluded"], "{answer}");
    assert_eq!(each(&answer["coverage"], "sourceId")[0], folder, "{answer}");
    let scoped = workspace.token_for(&[&folder]).await;
    let answer = scoped.post("/api/v1/search_context").json(body).await.expect(200).json();
    assert_eq!(each(&answer["coverage"], "code"), ["out_of_scope", "out_of_scope"], "{answer}");
}

async fn an_answer_is_the_same_each_time(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut change = String::new();
    for number in 0..15 {
        let content = format!("# Puffin {}\n\nPuffin {number} nests on the cliff.\n", number % 3);
        change = workspace.file(&format!("{number}.md"), None, &content).await.change();
    }
    let body = |limit: usize| json!({"query": "puffin cliff nests", "limit": limit});
    let all = workspace.search_after(&change, body(15)).await;
    let order = each(&all["results"], "chunkId");
    assert_eq!(order.len(), 15, "{all}");
    for limit in [1, 4, 10, 15] {
        let some = workspace.search_after(&change, body(limit)).await;
        assert_eq!(
            each(&some["results"], "chunkId"),
            order[..limit],
            "a shorter answer is the longer one's beginning"
        );
    }
}

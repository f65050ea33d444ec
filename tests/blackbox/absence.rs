//! `POST /api/v1/search_context/absence` and its page: why a search does not return a document.

use crate::support::http::{id, items, text};
use crate::support::oauth::encoded;
use crate::support::prelude::*;

scenarios![
    a_file_that_is_found_has_its_place,
    the_first_check_that_failed_is_the_cause,
    what_is_out_of_reach_is_told_as_what_is_not_there,
    arguments_are_those_of_a_search,
    the_page_names_the_file_and_every_check,
];

const PATH: &str = "/api/v1/search_context/absence";

async fn explain(caller: &impl Caller, change: &str, body: Value) -> Value {
    caller.post(PATH).after(change).json(body).await.expect(200).json()
}

fn check<'a>(answer: &'a Value, code: &str) -> &'a Value {
    let found = items(&answer["checks"]).iter().find(|check| check["code"] == code);
    found.unwrap_or_else(|| panic!("no check {code}: {answer}"))
}

/// The name of the first check that failed.
fn cause(answer: &Value) -> String {
    let failed = items(&answer["checks"]).iter().find(|check| check["verdict"] == "failed");
    failed.map(|check| text(check, "code")).unwrap_or_default()
}

async fn a_file_that_is_found_has_its_place(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let one = workspace.file_id("numbats.md", None, "The numbat eats termites all day.\n").await;
    let two = workspace.file("bilbies.md", None, "The bilby digs. It meets a numbat at times.\n").await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let query = json!({"query": "numbat termites", "strategy": strategy});
        let found = workspace.search_after(&two.change(), query).await;
        for file in [one.clone(), id(&two.json())] {
            let place = items(&found["results"]).iter().position(|result| result["fileId"] == json!(file));
            let body = json!({"query": "numbat termites", "strategy": strategy, "documentId": file});
            let explanation = explain(&workspace.token, &two.change(), body).await;
            let expected = place.map_or(Value::Null, |place| json!(place + 1));
            assert_eq!(explanation["place"], expected, "{strategy}: {explanation}");
            assert_eq!(explanation["document"]["id"], json!(file), "{explanation}");
        }
    }
    let body = json!({"query": "numbat termites", "documentId": id(&two.json())});
    let explanation = explain(&workspace.token, &two.change(), body).await;
    let words = items(&check(&explanation, "words")["words"]);
    let held: Vec<(String, bool)> =
        words.iter().map(|word| (text(word, "word"), word["held"].as_bool().unwrap())).collect();
    assert_eq!(held, [("numbat".to_owned(), true), ("termites".to_owned(), false)], "{explanation}");
    assert_eq!(words[1]["stems"], json!(["termit"]), "{explanation}");
    let rank = &items(&check(&explanation, "rank")["ranks"])[0];
    assert_eq!((rank["list"].as_str(), rank["rank"].as_u64()), (Some("fused"), Some(2)), "{explanation}");
}

async fn the_first_check_that_failed_is_the_cause(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("elsewhere", None).await;
    let weekly = workspace.file_id("weekly.md", None, "The quokka meeting is every Monday.\n").await;
    let last = workspace.file("daily.md", None, "The quokka meeting of the day is short.\n").await;
    let daily = id(&last.json());
    let asked = async |document: &str, more: Value| {
        let mut body = json!({"query": "quokka meeting", "strategy": "keyword", "documentId": document});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        explain(&workspace.token, &last.change(), body).await
    };
    for (document, more, expected) in [
        (&weekly, json!({"query": "meeting -monday"}), "excluded"),
        (&weekly, json!({"query": "\"short meeting\""}), "rank"),
        (&weekly, json!({"query": "wombat"}), "rank"),
        (&weekly, json!({"folderId": folder}), "filters"),
        (&weekly, json!({"kinds": ["memory"]}), "filters"),
        (&weekly, json!({"sourceIds": ["0199c0de-0000-7000-8000-000000000001"]}), "source"),
        (&daily, json!({"tokenBudget": 1}), "token_budget"),
    ] {
        let explanation = asked(document, more.clone()).await;
        assert_eq!(cause(&explanation), expected, "{more}: {explanation}");
        assert!(explanation["place"].is_null(), "{more}: {explanation}");
    }
    let excluded = asked(&weekly, json!({"query": "meeting -monday"})).await;
    assert!(text(check(&excluded, "excluded"), "message").contains("-monday"), "{excluded}");
    let cut = [&weekly, &daily];
    let mut places = Vec::new();
    for document in cut {
        let explanation = asked(document, json!({"limit": 1})).await;
        places.push((cause(&explanation), explanation["place"].clone()));
    }
    places.sort_by_key(|(cause, _)| cause.clone());
    assert_eq!(places, [(String::new(), json!(1)), ("limit".to_owned(), Value::Null)]);

    workspace.token.delete(&format!("/api/v1/files/{weekly}")).await.expect(204);
    let trashed = asked(&weekly, json!({})).await;
    assert_eq!(cause(&trashed), "trash", "{trashed}");
    assert_eq!(trashed["document"]["title"], "weekly.md", "{trashed}");
    workspace.token.delete(&format!("/api/v1/files/{weekly}/permanent")).await.expect(204);
    assert_eq!(cause(&asked(&weekly, json!({})).await), "exists");
}

async fn what_is_out_of_reach_is_told_as_what_is_not_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let secret = workspace.file_id("secret.md", None, "The pangolin code is swordfish.\n").await;
    let gone = workspace.file_id("gone.md", None, "The pangolin is gone.\n").await;
    let last = workspace.file("open.md", Some(&inside), "A pangolin rolls up.\n").await;
    // The last change, so that no answer reports a lagging index.
    let change = workspace.token.delete(&format!("/api/v1/files/{gone}")).await.expect(204).change();
    let scoped = workspace.token_for(&[&inside]).await;
    let stranger = deployment.workspace().await.token;
    let asked = |document: &str| json!({"query": "pangolin -swordfish", "documentId": document});
    let nothing = explain(&scoped, &change, asked("0199c0de-0000-7000-8000-00000000ffff")).await;
    assert_eq!(cause(&nothing), "exists", "{nothing}");
    assert!(nothing["document"].is_null(), "{nothing}");
    for document in [&secret, &gone] {
        assert_eq!(explain(&scoped, &change, asked(document)).await, nothing);
        let elsewhere = stranger.post(PATH).json(asked(document)).await.expect(200).json();
        assert_eq!(elsewhere["checks"], nothing["checks"]);
    }
    let seen = explain(&scoped, &change, asked(&id(&last.json()))).await;
    assert_eq!(seen["place"], json!(1), "{seen}");
}

async fn arguments_are_those_of_a_search(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let wrong = json!({"query": "", "limit": 51, "documentId": "x", "more": 1});
    let refused = workspace.token.post(PATH).json(wrong).await.expect(400).json();
    let paths: Vec<String> = items(&refused["errors"]).iter().map(|error| text(error, "path")).collect();
    for path in ["query", "limit", "documentId", "more"] {
        assert!(paths.iter().any(|given| given == path), "{path}: {refused}");
    }
    workspace.token.post(PATH).json(json!({"query": "x"})).await.expect(400);
}

async fn the_page_names_the_file_and_every_check(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let weekly = workspace.file_id("weekly notes.md", None, "The quokka meeting is every Monday.\n").await;
    let last = workspace.file("gone notes.md", None, "The quokka is gone.\n").await;
    workspace.token.delete(&format!("/api/v1/files/{}", id(&last.json()))).await.expect(204);
    workspace.search_after(&last.change(), json!({"query": "quokka"})).await;
    let base = format!("/w/{}/search", workspace.id);
    let page = async |fields: &[(&str, &str)]| {
        let query = encoded(fields.iter().copied());
        workspace.session.get(&format!("{base}/absence?{query}")).await.expect(200).text()
    };
    let results = workspace.session.get(&format!("{base}?q=quokka")).await.expect(200).text();
    assert!(results.contains("Something missing?"), "{results}");

    let question = ("q", "meeting -monday");
    let offered = page(&[question, ("find", "notes")]).await;
    assert!(offered.contains("/weekly notes.md") && offered.contains("In trash"), "{offered}");
    for field in [("document", weekly.as_str()), ("find", &format!("https://cairn.example/file/{weekly}#L1"))]
    {
        let explanation = page(&[question, field]).await;
        for part in ["weekly notes.md", "Trash", "Index", "-monday", "Rank", "What to do"] {
            assert!(explanation.contains(part), "{part}: {explanation}");
        }
    }
    let trashed = page(&[("q", "quokka"), ("document", &id(&last.json()))]).await;
    assert!(trashed.contains("is in trash"), "{trashed}");
    let nothing = page(&[("q", "quokka"), ("document", "0199c0de-0000-7000-8000-00000000ffff")]).await;
    assert!(nothing.contains("No such file"), "{nothing}");
}

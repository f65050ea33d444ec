//! How words match (docs/SEARCH.md): identifiers, versions, scripts without spaces, accents, prefixes.

use crate::support::http::{id, items, text};
use crate::support::prelude::*;

scenarios![
    names_are_found_in_every_spelling,
    every_script_is_found,
    words_are_found_by_their_stems_in_the_language_of_the_document,
    the_last_word_may_be_begun,
    phrases_and_exclusions_hold_for_every_strategy,
    folders_are_words_too,
    a_renamed_or_moved_folder_is_found_by_its_new_name_alone,
    records_are_found_by_their_databases_name_of_now,
    tags_are_words_too,
];

/// The names of the files that a search finds, best first, without duplicates.
async fn found(workspace: &Workspace, change: &str, query: &str, strategy: &str) -> Vec<String> {
    let answer = workspace.search_after(change, json!({"query": query, "strategy": strategy})).await;
    let mut names: Vec<String> = Vec::new();
    for result in items(&answer["results"]) {
        let path = text(&result["citation"], "path");
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

async fn sorted(workspace: &Workspace, change: &str, query: &str) -> Vec<String> {
    let mut names = found(workspace, change, query, "keyword").await;
    names.sort();
    names
}

async fn names_are_found_in_every_spelling(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("camel.md", None, "Call `getUserName` first.\n").await;
    workspace.file("snake.md", None, "Call `get_user_name` first.\n").await;
    workspace.file("prose.md", None, "Each user has a name.\n").await;
    let change =
        workspace.file("version.md", None, "Built with tantivy v1.2.3 and some C++.\n").await.change();
    for name in ["getUserName", "get_user_name", "getusername"] {
        let best = found(&workspace, &change, name, "keyword").await;
        let mut best: Vec<&str> = best.iter().take(2).map(String::as_str).collect();
        best.sort_unstable();
        assert_eq!(best, ["camel.md", "snake.md"], "{name}");
    }
    assert_eq!(sorted(&workspace, &change, "user name").await, ["camel.md", "prose.md", "snake.md"]);
    assert_eq!(sorted(&workspace, &change, "\"user name\"").await, ["camel.md", "snake.md"]);
    assert_eq!(sorted(&workspace, &change, "user -getUserName").await, ["prose.md"]);
    for version in ["1.2.3", "v1.2.3", "\"1.2.3\"", "C++"] {
        assert_eq!(sorted(&workspace, &change, version).await, ["version.md"], "{version}");
    }
    assert_eq!(sorted(&workspace, &change, "123").await, [""; 0]);
}

async fn every_script_is_found(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("ja.md", None, "検索拡張生成の仕組みを説明する。\n").await;
    workspace.file("ko.md", None, "검색은 문서에서 단어를 찾는다.\n").await;
    let change = workspace.file("th.md", None, "การค้นหาเอกสารในระบบ\n").await.change();
    for (query, name) in
        [("検索", "ja.md"), ("\"仕組み\"", "ja.md"), ("組", "ja.md"), ("문서", "ko.md"), ("เอกสาร", "th.md")]
    {
        assert_eq!(sorted(&workspace, &change, query).await, [name], "{query}");
    }
}

async fn words_are_found_by_their_stems_in_the_language_of_the_document(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let german = "Die Häuser der Stadt wurden im letzten Jahrhundert gebaut und später mit viel Mühe erneuert. \
        Wer heute durch die Straßen geht, sieht davon nicht mehr viel.\n";
    workspace.file("de.md", None, german).await;
    let change = workspace.file("en.md", None, "The résumé of the deployments.\n").await.change();
    for (query, name) in [
        ("Haus", "de.md"),
        ("häuser", "de.md"),
        ("strasse", "de.md"),
        ("resume", "en.md"),
        ("résumé", "en.md"),
        ("deployed", "en.md"),
    ] {
        assert_eq!(sorted(&workspace, &change, query).await, [name], "{query}");
    }
}

async fn the_last_word_may_be_begun(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("one.md", None, "The wallaby crosses the road.\n").await;
    let change = workspace.file("two.md", None, "The road ends at the sea.\n").await.change();
    assert_eq!(sorted(&workspace, &change, "wallab").await, ["one.md"]);
    assert_eq!(found(&workspace, &change, "road wallab", "keyword").await, ["one.md", "two.md"]);
    assert_eq!(sorted(&workspace, &change, "wallab sea").await, ["two.md"]);
    assert_eq!(sorted(&workspace, &change, "road -wallab").await, ["one.md", "two.md"]);
    assert_eq!(sorted(&workspace, &change, "wa").await, [""; 0]);
}

async fn phrases_and_exclusions_hold_for_every_strategy(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    workspace.file("hamlet.md", None, "To be, or not to be: a question about the kettle.\n").await;
    workspace.file("kettle.md", None, "The kettle is not a question of being; read_your_writes.\n").await;
    let change = workspace.file("copper.md", None, "A copper kettle.\n").await.change();
    assert_eq!(sorted(&workspace, &change, "\"to be or not to be\"").await, ["hamlet.md"]);
    for strategy in ["keyword", "semantic", "hybrid"] {
        let names = found(&workspace, &change, "kettle -copper -\"to be\"", strategy).await;
        assert_eq!(names, ["kettle.md"], "{strategy}");
        let names = found(&workspace, &change, "kettle -readYourWrites -copper", strategy).await;
        assert_eq!(names, ["hamlet.md"], "{strategy}");
    }
}

async fn folders_are_words_too(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("numbat-handbook", None).await;
    workspace.file("other.md", None, "Nothing of interest.\n").await;
    let change = workspace.file("intro.md", Some(&folder), "How to begin.\n").await.change();
    assert_eq!(sorted(&workspace, &change, "numbat").await, ["intro.md"]);
    // As an inflection, as a phrase, and with an exclusion.
    for query in ["handbooks", "\"numbat handbook\"", "begin numbat -nothing"] {
        assert_eq!(sorted(&workspace, &change, query).await, ["intro.md"], "{query}");
    }
    assert_eq!(sorted(&workspace, &change, "begin interest -handbook").await, ["other.md"]);
}

async fn a_renamed_or_moved_folder_is_found_by_its_new_name_alone(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let top = workspace.folder("Wombat", None).await;
    let inner = workspace.folder("Burrows", Some(&top)).await;
    let elsewhere = workspace.folder("Elsewhere", None).await;
    workspace.file("above.md", Some(&top), "How to begin.\n").await;
    let body = json!({"name": "Sightings", "folderId": inner});
    let database = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
    let primary = id(&items(&database["properties"])[0]);
    let records = format!("/api/v1/databases/{}/records", id(&database));
    workspace.token.post(&records).json(json!({"values": {primary: "Dusk"}})).await.expect(201);
    let mut change = workspace.file("below.md", Some(&inner), "How to go on.\n").await.change();
    assert_eq!(sorted(&workspace, &change, "wombats").await, ["Dusk", "above.md", "below.md"]);

    for round in 0..10 {
        let (before, now) = (format!("Numbat{round}"), format!("Numbat{}", round + 1));
        let renamed = workspace.token.patch(&format!("/api/v1/folders/{top}")).json(json!({"name": now}));
        change = renamed.await.expect(200).change();
        let found = sorted(&workspace, &change, &now).await;
        assert_eq!(found, ["Dusk", "above.md", "below.md"], "round {round}");
        for gone in [&before, "wombat"] {
            assert_eq!(sorted(&workspace, &change, gone).await, [""; 0], "round {round}: {gone}");
        }
    }

    let body = json!({"parentId": elsewhere});
    let moved = workspace.token.patch(&format!("/api/v1/folders/{inner}")).json(body).await.expect(200);
    assert_eq!(sorted(&workspace, &moved.change(), "elsewhere").await, ["Dusk", "below.md"]);
    assert_eq!(sorted(&workspace, &moved.change(), "Numbat10").await, ["above.md"]);
    assert_eq!(sorted(&workspace, &moved.change(), "burrow").await, ["Dusk", "below.md"]);

    // A folder-scoped token matches by the names of the ancestors, and learns nothing of the siblings.
    let scoped = workspace.token_for(&[&inner]).await;
    let body = json!({"query": "elsewhere numbat10", "strategy": "keyword"});
    let answer = scoped.post("/api/v1/search_context").after(&moved.change()).json(body).await.expect(200);
    assert_eq!(items(&answer.json()["results"]).len(), 2, "{}", answer.json());
}

async fn records_are_found_by_their_databases_name_of_now(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Wombat", None).await;
    let make = async |name: &str, folder: Option<&str>, records: &[&str]| {
        let body = json!({"name": name, "folderId": folder});
        let database = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
        let primary = id(&items(&database["properties"])[0]);
        let path = format!("/api/v1/databases/{}", id(&database));
        for record in records {
            let values = json!({"values": {primary.as_str(): record}});
            workspace.token.post(&format!("{path}/records")).json(values).await.expect(201);
        }
        path
    };
    let sightings = make("Sightings", Some(&folder), &["Dusk", "Dawn"]).await;
    make("Others", None, &["Noon"]).await;
    let mut change = workspace.file("other.md", None, "Nothing of interest.\n").await.change();
    assert_eq!(sorted(&workspace, &change, "sightings").await, ["Dawn", "Dusk"]);
    for name in ["Quoll log", "Numbat log"] {
        let renamed = workspace.token.patch(&sightings).json(json!({"name": name}));
        change = renamed.await.expect(200).change();
        assert_eq!(sorted(&workspace, &change, name).await, ["Dawn", "Dusk"], "{name}");
    }
    for gone in ["sightings", "quoll"] {
        assert_eq!(sorted(&workspace, &change, gone).await, [""; 0], "{gone}");
    }
    // A token scoped to the folder matches by it, too; one scoped to another folder does not.
    let elsewhere = workspace.folder("Elsewhere", None).await;
    for (folder, expected) in [(&folder, 2), (&elsewhere, 0)] {
        let scoped = workspace.token_for(&[folder]).await;
        let body = json!({"query": "numbat", "strategy": "keyword"});
        let answer = scoped.post("/api/v1/search_context").after(&change).json(body).await.expect(200).json();
        assert_eq!(items(&answer["results"]).len(), expected, "{answer}");
    }
}

async fn tags_are_words_too(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "plan.md", "content": "How to begin.\n", "fileType": "markdown", "tags": ["Q3 roadmap", "quoll"]});
    let made = workspace.token.post("/api/v1/files").json(body).await.expect(201);
    workspace.file("other.md", None, "Nothing of interest.\n").await;
    for query in ["roadmaps", "quoll", "\"q3 roadmap\""] {
        assert_eq!(sorted(&workspace, &made.change(), query).await, ["plan.md"], "{query}");
    }
    assert_eq!(sorted(&workspace, &made.change(), "\"roadmap quoll\"").await, [""; 0]);
    let path = format!("/api/v1/files/{}", id(&made.json()));
    let change = workspace.token.patch(&path).json(json!({"tags": ["bilby"]})).await.expect(200).change();
    assert_eq!(sorted(&workspace, &change, "bilby").await, ["plan.md"]);
    assert_eq!(sorted(&workspace, &change, "quoll").await, [""; 0]);
}

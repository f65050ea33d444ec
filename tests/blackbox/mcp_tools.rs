//! What the tools offer agents beyond their function: several files per call, paging, argument aliases, errors that
//! suggest a call.

use std::collections::BTreeSet;

use crate::support::http::{each, id, items, text};
use crate::support::mcp::{self, call, call_error, call_json, text_of};
use crate::support::prelude::*;

scenarios![
    results_keep_to_their_schemas,
    several_files_are_read_at_once,
    a_long_file_is_read_in_parts,
    a_long_line_is_read_to_its_end,
    long_lists_say_how_to_go_on,
    pages_of_records_say_how_to_go_on,
    near_names_and_shapes_are_understood,
    an_error_leads_to_a_call_that_works,
    a_problem_has_the_name_that_the_caller_gave,
    what_is_not_found_is_looked_for_by_name,
    no_source_is_connected_and_the_tools_say_so,
    guides_are_read_by_topic_and_file,
    guides_are_pages_for_people_too,
];

const UNKNOWN: &str = "0199c0de-0000-7000-8000-000000000001";

async fn tools_of(workspace: &Workspace) -> Vec<Value> {
    let list = mcp::result(mcp::legacy(&workspace.token, "tools/list", json!({})).await);
    items(&list["tools"]).to_vec()
}

async fn results_keep_to_their_schemas(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let tools = tools_of(&workspace).await;
    let names: BTreeSet<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((tools.len(), names.len()), (28, 28), "{names:?}");

    let file = workspace.file_id("a.md", None, "# A\n\nThe text.\n").await;
    let database = token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json();
    let database = id(&database);
    let record = json!({"databaseId": database, "values": {"Name": "one"}});
    let record = id(&call_json(token, "create_database_record", record).await);
    for (name, arguments) in [
        ("get_workspace_overview", json!({})),
        ("search_context", json!({"query": "text", "explain": true})),
        ("get_related_files", json!({"id": file})),
        ("search_files", json!({"query": "a"})),
        ("list_files", json!({})),
        ("get_files", json!({"ids": [file, UNKNOWN]})),
        ("create_file", json!({"name": "b", "content": "", "fileType": "text"})),
        ("update_file", json!({"id": file, "content": "new"})),
        ("list_folders", json!({})),
        ("create_folder", json!({"name": "f"})),
        ("create_memory", json!({"name": "M", "members": [{"kind": "file", "fileId": file}]})),
        ("update_memory", json!({"id": "m", "useWhen": "now"})),
        ("list_memories", json!({})),
        ("list_databases", json!({})),
        ("get_database", json!({"databaseId": database})),
        ("query_database", json!({"databaseId": database})),
        (
            "update_database_record",
            json!({"databaseId": database, "recordId": record, "values": {"Name": "two"}}),
        ),
        ("delete_database_record", json!({"databaseId": database, "recordId": record})),
        ("list_source_documents", json!({})),
        ("delete_file", json!({"id": file})),
    ] {
        let result = call(token, name, arguments).await;
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let validator = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&result["structuredContent"]).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {result}");
        assert!(!result["structuredContent"].to_string().contains(":null"), "{name}: {result}");
    }
}

async fn several_files_are_read_at_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("inside", None).await;
    let one = workspace.file_id("one.md", Some(&folder), "one\n").await;
    let empty = workspace.file_id("empty.md", Some(&folder), "").await;
    let long = workspace.file_id("long.md", Some(&folder), &"x".repeat(100)).await;
    let outside = workspace.file_id("outside.md", None, "no\n").await;
    let ids = json!([long, one, UNKNOWN, outside, "no id", one, empty]);
    let token = workspace.token_for(&[&folder]).await;
    let result = call(&token, "get_files", json!({"ids": ids, "maxBytes": 99})).await;
    let files: Value = serde_json::from_str(&text(&result["content"][0], "text")).unwrap();
    assert_eq!(files, result["structuredContent"]["files"], "the text is the array");
    assert_eq!(json!(each(&files, "id")), ids, "in the order of the ids, each once for each time");
    let [skipped, whole, unknown, hidden, odd, again, nothing] = items(&files) else {
        panic!("{files}");
    };
    assert_eq!((skipped.get("content"), &skipped["sizeBytes"]), (None, &json!(100)));
    assert!(
        text(skipped, "skipped").contains("100 bytes") && text(skipped, "skipped").contains(&long),
        "{skipped}"
    );
    assert_eq!((text(whole, "content"), text(whole, "path")), ("one\n".into(), "/inside/one.md".into()));
    assert_eq!((whole, &nothing["content"]), (again, &json!("")));
    assert_eq!(whole["workspaceId"], json!(workspace.id));
    for (entry, cause) in [(unknown, "Not found: "), (odd, "Not found: "), (hidden, "Forbidden: ")] {
        assert!(text(entry, "error").starts_with(cause) && entry.get("content").is_none(), "{entry}");
    }
    for odd in [json!({"ids": []}), json!({"ids": vec![&one; 21]}), json!({})] {
        let message = call_error(&workspace.token, "get_files", odd).await;
        assert!(message.starts_with("Validation error") && message.contains("ids"), "{message}");
    }
    let many = call_json(&workspace.token, "get_files", json!({"ids": vec![&one; 20]})).await;
    assert_eq!(items(&many).len(), 20);
}

async fn a_long_file_is_read_in_parts(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let lines: Vec<String> = (1..=6_000).map(|number| format!("line {number} {}", "x".repeat(60))).collect();
    let file = workspace.file_id("long.txt", None, &lines.join("\n")).await;
    let mut read: Vec<String> = Vec::new();
    let mut arguments = json!({"id": file});
    for _ in 0..10 {
        let result = call(&workspace.token, "get_file", arguments).await;
        let part = text(&result["content"][0], "text");
        let (header, body) = part.split_once('\n').unwrap();
        let first = read.len() + 1;
        read.extend(body.lines().map(ToOwned::to_owned));
        assert_eq!(header, format!("[lines {first}-{} of 6000]", read.len()));
        let Some(note) = items(&result["content"]).get(1) else { break };
        let (_, next) = text(note, "text")
            .split_once("call get_file with ")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        arguments = serde_json::from_str(next.split(" for the next").next().unwrap()).unwrap();
    }
    assert_eq!(read, lines, "every line once");
    let whole = workspace.file_id("short.txt", None, &lines[..2_000].join("\n")).await;
    let message = call(&workspace.token, "get_file", json!({"id": whole})).await;
    assert_eq!(text_of(&message), lines[..2_000].join("\n"), "what fits comes as it is");
}

async fn a_long_line_is_read_to_its_end(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let line: String = (0..60_000).map(|number| format!("é{number:06}")).collect();
    let file = workspace.file_id("line.txt", None, &format!("{line}\nthe end")).await;
    let mut read = String::new();
    let mut arguments = json!({"id": file});
    for _ in 0..10 {
        let result = call(&workspace.token, "get_file", arguments).await;
        let part = text(&result["content"][0], "text");
        read.push_str(part.split_once('\n').unwrap().1);
        let Some(note) = items(&result["content"]).get(1) else { break };
        let note = text(note, "text");
        let (_, next) = note.split_once("call get_file with ").unwrap();
        let mut values = serde_json::Deserializer::from_str(next).into_iter::<Value>();
        arguments = values.next().unwrap().unwrap();
    }
    assert!(read == format!("{line}\nthe end"), "{} bytes of {}", read.len(), line.len() + 8);
}

/// The arguments of the call that a note suggests.
#[track_caller]
fn next_of(result: &Value, tool: &str) -> Option<Value> {
    let note = result["structuredContent"].get("note")?.as_str().unwrap();
    let text = text(&result["content"][0], "text");
    assert!(text.ends_with(note) || result["content"][1]["text"] == note, "the text says the same: {text}");
    let (_, call) = note.split_once(&format!("call {tool} again with ")).unwrap_or_else(|| panic!("{note}"));
    Some(serde_json::from_str(call.split(" for the next").next().unwrap()).unwrap())
}

async fn long_lists_say_how_to_go_on(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("f", None).await;
    let mut made = Vec::new();
    for number in 0..5 {
        made.push(workspace.file_id(&format!("{number}.md"), Some(&folder), "x").await);
    }
    let mut seen = Vec::new();
    let mut arguments = json!({"folderId": folder, "limit": "2"});
    loop {
        let result = call(&workspace.token, "list_files", arguments).await;
        assert_eq!(result["structuredContent"]["total"], json!(5));
        seen.extend(each(&result["structuredContent"]["files"], "id").into_iter().map(ToOwned::to_owned));
        let Some(next) = next_of(&result, "list_files") else { break };
        assert_eq!(next["folderId"], json!(folder), "the rest of the arguments is kept");
        arguments = next;
    }
    assert_eq!(seen, made);
    for number in 0..3 {
        workspace.folder(&format!("g{number}"), Some(&folder)).await;
        workspace
            .token
            .post("/api/v1/memories")
            .json(json!({"name": format!("m{number}")}))
            .await
            .expect(201);
        workspace
            .token
            .post("/api/v1/databases")
            .json(json!({"name": format!("d{number}")}))
            .await
            .expect(201);
    }
    for (tool, name, arguments) in [
        ("list_folders", "folders", json!({"parentId": folder, "limit": 2})),
        ("list_memories", "memories", json!({"limit": 2})),
        ("list_databases", "databases", json!({"limit": 2})),
    ] {
        let first = call(&workspace.token, tool, arguments).await;
        let second = call(&workspace.token, tool, next_of(&first, tool).unwrap()).await;
        let counts = [&first, &second].map(|page| items(&page["structuredContent"][name]).len());
        assert_eq!((counts, next_of(&second, tool)), ([2, 1], None), "{tool}");
    }
}

async fn pages_of_records_say_how_to_go_on(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let database =
        id(&token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json());
    for number in 0..5 {
        let arguments = json!({"databaseId": database, "values": {"Name": format!("t{number}")}});
        call(token, "create_database_record", arguments).await;
    }
    let page = async |offset: u64| {
        let arguments = json!({"databaseId": database, "sortBy": "Name", "limit": 2, "offset": offset});
        call(token, "query_database", arguments).await["structuredContent"].clone()
    };
    let first = page(0).await;
    assert_eq!((each(&first["records"], "title"), &first["total"]), (vec!["t0", "t1"], &json!(5)));
    assert!(
        text(&first, "note").contains("Showing 1-2 of 5") && text(&first, "note").contains("offset 2"),
        "{first}"
    );
    let last = page(4).await;
    assert_eq!((each(&last["records"], "title"), last.get("note")), (vec!["t4"], None));
}

async fn near_names_and_shapes_are_understood(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let arguments = json!({"title": "a.md", "text": "one\ntwo\n", "file_type": "md"});
    let made = call_json(token, "create_file", arguments).await;
    assert_eq!((text(&made, "name"), text(&made, "fileType")), ("a.md".into(), "markdown".into()));
    let file = id(&made);
    let read = call(token, "get_file", json!({"file_id": file, "start_line": "2"})).await;
    assert_eq!(text_of(&read), "[lines 2-2 of 2]\ntwo");
    for ids in [json!(file), json!(format!("[\"{file}\"]"))] {
        assert_eq!(each(&call_json(token, "get_files", json!({"ids": ids})).await, "id"), [file.as_str()]);
    }
    assert_eq!(
        items(&call_json(token, "search_files", json!({"q": "A.M", "max_results": "5"})).await).len(),
        1
    );
    let members = json!({"name": "M", "public": "true", "members": json!([{"kind": "file", "fileId": file}]).to_string()});
    let memory = call_json(token, "create_memory", members).await;
    assert_eq!((items(&memory["members"]).len(), &memory["isPublic"]), (1, &json!(true)));
    let message = call_error(token, "list_files", json!({"recursiv": true, "folder_id": "root"})).await;
    assert!(
        message.starts_with("Validation error: 1 problem") && message.contains("- recursiv: "),
        "{message}"
    );
}

/// The call that an error suggests: the tool and its arguments.
#[track_caller]
fn next_call(message: &str) -> (String, Value) {
    let (_, next) = message.split_once("\nNext: call ").unwrap_or_else(|| panic!("no next call: {message}"));
    let (tool, rest) = next.split_once(" with ").unwrap_or_else(|| panic!("no arguments: {message}"));
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    (tool.to_owned(), values.next().unwrap().unwrap_or_else(|error| panic!("{error}: {message}")))
}

async fn an_error_leads_to_a_call_that_works(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("Onboarding guide.md", None, "x").await;
    for (tool, arguments) in [
        ("search_context", json!({"query": "x", "limit": 51, "strategy": "fuzzy"})),
        ("get_file", json!({"id": "/docs/Onboarding"})),
        ("get_file", json!({"id": UNKNOWN})),
        ("get_file", json!({"id": file, "fromLine": 0})),
        ("list_files", json!({"folderId": UNKNOWN})),
        ("get_usage_guide", json!({"topic": "serching"})),
        ("get_memory", json!({"slug": "nothing"})),
        ("get_database", json!({"databaseId": UNKNOWN})),
        ("list_source_documents", json!({"sourceId": UNKNOWN})),
        ("fetch_source_document", json!({"sourceId": UNKNOWN, "externalId": "a"})),
        ("create_file", json!({"name": "n", "content": "c", "fileType": "word"})),
        ("search_files", json!({"query": "x", "limit": 0, "folder": "x"})),
    ] {
        let message = call_error(&workspace.token, tool, arguments).await;
        let (next, with) = next_call(&message);
        if with.to_string().contains('<') {
            continue;
        }
        call(&workspace.token, &next, with).await;
    }
    let message = call_error(&workspace.token, "get_file", json!({"id": "/docs/Onboarding"})).await;
    let (_, with) = next_call(&message);
    assert_eq!(each(&call_json(&workspace.token, "search_files", with).await, "id"), [file.as_str()]);
    let message = call_error(
        &workspace.token,
        "search_context",
        json!({"query": "x", "limit": 51, "explain": "maybe"}),
    )
    .await;
    assert!(
        message.contains("- limit: may be at most 50; not 51") && message.contains("\"maybe\""),
        "{message}"
    );
}

async fn a_problem_has_the_name_that_the_caller_gave(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let database =
        id(&token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json());
    let sorted = json!({"databaseId": database, "sortFieldId": "nothing"});
    for (tool, arguments, name) in [
        ("list_files", json!({"cursor": "!"}), "cursor"),
        ("list_folders", json!({"cursor": "!"}), "cursor"),
        ("query_database", sorted, "sortFieldId"),
    ] {
        let message = call_error(token, tool, arguments.clone()).await;
        assert!(message.contains(&format!("\n- {name}: ")), "{tool}: {message}");
        let (next, with) = next_call(&message);
        assert!((next.as_str(), &with) != (tool, &arguments), "the call that failed: {message}");
    }
    for (path, name) in [
        ("/api/v1/files?cursor=!".to_owned(), "cursor"),
        (format!("/api/v1/databases/{database}/records?sortFieldId=nothing"), "sortFieldId"),
    ] {
        let answer = token.get(&path).await.expect(400).json();
        assert_eq!(answer["errors"][0]["path"], name, "{answer}");
    }
}

async fn what_is_not_found_is_looked_for_by_name(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let folder = workspace.folder("inside", None).await;
    token.post("/api/v1/memories").json(json!({"name": "Release process"})).await.expect(201);
    let tasks = id(&token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201).json());
    for (tool, arguments) in [
        ("get_memory", json!({"slug": "relese-process"})),
        ("update_memory", json!({"id": "Release proces", "useWhen": "x"})),
    ] {
        let message = call_error(token, tool, arguments).await;
        assert!(message.starts_with("Not found: ") && message.contains("\"release-process\""), "{message}");
    }
    for (tool, more) in [
        ("get_database", json!({})),
        ("query_database", json!({})),
        ("create_database_record", json!({"values": {}})),
        ("update_database_record", json!({"recordId": UNKNOWN, "values": {}})),
        ("delete_database_record", json!({"recordId": UNKNOWN})),
    ] {
        let mut arguments = more;
        arguments["databaseId"] = json!("tasks");
        let message = call_error(token, tool, arguments.clone()).await;
        assert!(message.starts_with("Not found: ") && message.contains(&tasks), "{message}");
        let scoped = workspace.token_for(&[&folder]).await;
        let message = call_error(&scoped, tool, arguments).await;
        assert!(
            message.starts_with("Not found: ") && !message.contains(&tasks),
            "what the caller may not see is not named: {message}"
        );
    }
}

async fn no_source_is_connected_and_the_tools_say_so(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let listed = call(token, "list_source_documents", json!({})).await;
    assert_eq!(text(&listed["content"][0], "text"), "[]");
    assert_eq!(listed["structuredContent"], json!({"documents": [], "total": 0}));
    let sources = token.get("/api/v1/sources").await.expect(200);
    assert_eq!((sources.json(), sources.header("x-total-count")), (json!([]), Some("0")));
    let calls = [
        ("list_source_documents", json!({"sourceId": UNKNOWN})),
        ("query_source", json!({"sourceId": UNKNOWN, "query": "x"})),
        ("fetch_source_document", json!({"sourceId": UNKNOWN, "externalId": "page/1"})),
    ];
    let folder = workspace.folder("f", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    for (tool, arguments) in calls {
        let message = call_error(token, tool, arguments.clone()).await;
        assert!(
            message.starts_with("Not found: ") && message.contains("is connected to this workspace"),
            "{tool}: {message}"
        );
        let message = call_error(&scoped, tool, arguments).await;
        assert!(message.starts_with("Forbidden: "), "{tool}: {message}");
    }
    let message = call_error(&scoped, "list_source_documents", json!({})).await;
    assert!(message.starts_with("Forbidden: "), "{message}");
    let message = call_error(token, "query_source", json!({"sourceId": "wiki", "limit": 21})).await;
    for part in ["- sourceId: ", "- limit: may be at most 20", "- query: is required"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let query = format!("/api/v1/sources/{UNKNOWN}/query");
    token.post(&query).json(json!({"query": "x"})).await.expect_error(404, "NOT_FOUND");
    token.post(&query).json(json!({"query": "", "limit": 21})).await.expect_error(400, "VALIDATION_ERROR");
    token.get(&format!("/api/v1/sources/{UNKNOWN}/documents/a%2Fb")).await.expect_error(404, "NOT_FOUND");
    token.get("/api/v1/sources/wiki/documents/a").await.expect_error(404, "NOT_FOUND");
}

async fn guides_are_read_by_topic_and_file(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let index: Value =
        serde_json::from_str(&text_of(&call(token, "get_usage_guide", json!({})).await)).unwrap();
    let topics = each(&index["topics"], "topic");
    for topic in [
        "searching",
        "browsing",
        "curating-memories",
        "databases",
        "syncing-a-folder",
        "importing",
        "ingesting",
        "connecting-a-source",
    ] {
        assert!(topics.contains(&topic), "{topic}: {index}");
    }
    for topic in items(&index["topics"]) {
        assert!(!text(topic, "summary").is_empty(), "{topic}");
        for file in items(&topic["files"]) {
            let guide = text_of(
                &call(token, "get_usage_guide", json!({"topic": topic["topic"], "file": file})).await,
            );
            assert!(guide.starts_with("# "), "{topic}: {guide}");
        }
    }
    let message =
        call_error(token, "get_usage_guide", json!({"topic": "browsing", "file": "nothing.md"})).await;
    assert!(message.starts_with("Not found: ") && message.contains("references/commands.md"), "{message}");
    call_error(token, "get_usage_guide", json!({"file": "references/commands.md"})).await;
}

async fn guides_are_pages_for_people_too(deployment: &Deployment) {
    let nobody = deployment.anonymous();
    let index = nobody.get("/docs/guides").await.expect(200);
    assert!(index.text().contains("href=\"/docs/guides/browsing\""), "{}", index.text());
    let page = nobody.get("/docs/guides/browsing").await.expect(200);
    assert!(page.text().contains(">Browsing</h1>") && page.text().contains("<table"), "{}", page.text());
    assert!(
        page.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    nobody.get("/docs/guides/browsing/references/commands.md").await.expect(200);
    for missing in ["/docs/guides/nothing", "/docs/guides/browsing/..%2f..%2fx"] {
        nobody.get(missing).await.expect_error(404, "NOT_FOUND");
    }
}

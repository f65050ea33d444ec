//! Folder-scoped tokens and anonymous callers learn nothing of databases and references that they may not see, whatever
//! they query.

use crate::support::http::{each, id, items};
use crate::support::mcp::{call, call_json};
use crate::support::prelude::*;

scenarios![a_hidden_database_of_a_memory_tells_nothing, questions_tell_nothing_of_hidden_references];

const WORD: &str = "merger-with-pangolin";

async fn a_hidden_database_of_a_memory_tells_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("vault", None).await);
    let body = json!({"name": "Secret deals", "folderId": outside});
    let database = token.post("/api/v1/databases").json(body).await.expect(201).json();
    let name = id(&items(&database["properties"])[0]);
    let filter = json!({"fieldId": name, "operator": "contains", "value": WORD});
    let query = json!({"search": WORD, "filter": filter, "sortFieldId": name, "limit": 3});
    let member = json!({"kind": "database", "databaseId": id(&database), "databaseQuery": query});
    let body = json!({"name": "Deals", "isPublic": true, "members": [member]});
    let memory = token.post("/api/v1/memories").json(body).await.expect(201).json();
    let path = format!("/api/v1/memories/{}", id(&memory));
    let whole = token.get(&path).await.expect(200).json();
    assert_eq!(whole["members"][0]["databaseQuery"], query, "{whole}");

    let scoped = workspace.token_for(&[&inside]).await;
    let anonymous = deployment.anonymous();
    let export = format!("{path}/export");
    for (seen, code) in [
        (scoped.get(&path).await, "out_of_scope"),
        (scoped.get(&export).await, "out_of_scope"),
        (anonymous.get(&export).await, "database_excluded"),
    ] {
        let seen = seen.expect(200).json();
        assert_eq!(each(&seen["coverage"], "code"), [code], "{seen}");
        assert_eq!(seen["members"][0]["databaseId"], database["id"], "{seen}");
        tells_nothing(&seen, &name);
    }
    tells_nothing(&scoped.get("/api/v1/memories").await.expect(200).json(), &name);
    tells_nothing(&call(&scoped, "get_memory", json!({"slug": "deals"})).await, &name);
    tells_nothing(&call(&scoped, "list_memories", json!({})).await, &name);
    let renamed = scoped.patch(&path).json(json!({"description": "d"})).await.expect(200).json();
    tells_nothing(&renamed, &name);
    let after = token.get(&path).await.expect(200).json();
    assert_eq!(after["members"][0]["databaseQuery"], query, "what is hidden is not lost: {after}");
}

fn tells_nothing(answer: &Value, property: &str) {
    let text = answer.to_string();
    for hidden in [WORD, "Secret deals", property] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

async fn questions_tell_nothing_of_hidden_references(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let (inside, outside) = (workspace.folder("inside", None).await, workspace.folder("vault", None).await);
    let near = workspace.file_id("near.md", Some(&inside), "x").await;
    let far = workspace.file_id("far.md", Some(&outside), "x").await;
    let body = json!({"name": "Tasks", "folderId": inside});
    let database = token.post("/api/v1/databases").json(body).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&database));
    let name = id(&items(&database["properties"])[0]);
    let field = json!({"name": "File", "type": "file_reference"});
    let file = id(&token.post(&format!("{path}/fields")).json(field).await.expect(201).json());
    let mut made = Vec::new();
    for (title, named) in [("A", Some(&near)), ("B", Some(&far)), ("C", None)] {
        let body = json!({"values": {name.as_str(): title, file.as_str(): named}});
        made.push(id(&token.post(&format!("{path}/records")).json(body).await.expect(201).json()));
    }
    let view = json!({"name": "With", "filters": [{"fieldId": file, "operator": "is_not_empty"}]});
    let view = id(&token.post(&format!("{path}/views")).json(view).await.expect(201).json());

    let scoped = workspace.token_for(&[&inside]).await;
    let equals = |id: &str| format!("filterFieldId={file}&filterOperator=equals&filterValue={id}");
    for (question, whole, part) in [
        (format!("filterFieldId={file}&filterOperator=is_not_empty"), "AB", "A"),
        (format!("filterFieldId={file}&filterOperator=is_empty"), "C", "BC"),
        (equals(&near), "A", "A"),
        (equals(&far), "B", ""),
        (format!("filterFieldId={file}&filterOperator=not_equals&filterValue={far}"), "AC", "ABC"),
        (format!("viewId={view}"), "AB", "A"),
        (format!("search={far}"), "", ""),
    ] {
        for (caller, expected) in [(token, whole), (&scoped, part)] {
            let page = caller.get(&format!("{path}/records?{question}")).await.expect(200).json();
            assert_eq!(each(&page["records"], "title").concat(), expected, "{question}");
            assert_eq!(page["total"], json!(expected.len()), "{question}");
        }
    }
    for _ in 0..3 {
        for (caller, counts) in [(token, json!([1, 1, 1])), (&scoped, json!([1, 2]))] {
            let grouped =
                caller.get(&format!("{path}/records/groups?groupBy={file}")).await.expect(200).json();
            let found: Value = items(&grouped["groups"]).iter().map(|group| group["count"].clone()).collect();
            assert_eq!((found, grouped["total"]["count"].clone()), (counts, json!(3)), "{grouped}");
            let told = grouped.to_string();
            let is_whole = std::ptr::eq(caller, token);
            assert_eq!((told.contains(&far), told.contains("far.md")), (is_whole, is_whole), "{told}");
        }
    }
    for direction in ["asc", "desc"] {
        let sorted = format!("{path}/records?sortFieldId={file}&sortDirection={direction}");
        let page = scoped.get(&sorted).await.expect(200).json();
        assert_eq!(each(&page["records"], "title").concat(), "ABC", "the order of hidden ids");
    }
    let filter = json!({"fieldId": "File", "operator": "is_not_empty"});
    let asked = json!({"databaseId": id(&database), "filter": filter});
    assert_eq!(call_json(&scoped, "query_database", asked).await["total"], json!(1));
    let versions = scoped.get(&format!("{path}/records/{}/versions", made[1])).await.expect(200).json();
    assert!(!versions.to_string().contains(&far), "{versions}");
    let restored = scoped.post(&format!("{path}/records/{}/versions/1/restore", made[1])).await;
    let refused = restored.expect_error(403, "OUT_OF_SCOPE");
    assert!(!refused.to_string().contains(&far), "{refused}");
    token.delete(&format!("{path}/fields/{file}")).await.expect(204);
    let versions = scoped.get(&format!("{path}/records/{}/versions", made[1])).await.expect(200).json();
    assert!(!versions.to_string().contains(&far), "{versions}");
}

//! Scripts of folder-scoped tokens (spec 4.5.6): what is out of scope does not exist, in every command, error and
//! count.

use crate::support::browse::{error_output, exec, output};
use crate::support::callers::ApiToken;
use crate::support::http::{id, items};
use crate::support::prelude::*;

scenarios![
    every_command_sees_its_part,
    complaints_tell_nothing,
    memories_and_databases_are_pruned,
    the_scope_follows_its_folders,
];

struct Halves {
    workspace: Workspace,
    scoped: ApiToken,
    inside: String,
    outside: String,
}

async fn halves(deployment: &Deployment) -> Halves {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let below = workspace.folder("below", Some(&inside)).await;
    let outside = workspace.folder("vault", None).await;
    workspace.file("in.md", Some(&inside), "The pangolin sleeps.\n").await;
    workspace.file("below.md", Some(&below), "The pangolin digs.\n").await;
    workspace.file("secret.md", Some(&outside), "The pangolin roams in secret.\n").await;
    workspace.file("root.md", None, "The pangolin starts in secret.\n").await;
    let scoped = workspace.token_for(&[&inside]).await;
    Halves { workspace, scoped, inside, outside }
}

async fn every_command_sees_its_part(deployment: &Deployment) {
    let tree = halves(deployment).await;
    // Both tokens fill the same caches, in either order.
    assert_eq!(output(&tree.workspace.token, "grep -rl pangolin /files | wc -l").await.trim(), "4");
    let token = &tree.scoped;
    assert_eq!(output(token, "ls /files").await, "inside\n");
    assert_eq!(
        output(token, "find /files -type f").await,
        "/files/inside/below/below.md\n/files/inside/in.md\n"
    );
    assert_eq!(output(token, "find / -name '*.md' -path '/files/*' | wc -l").await.trim(), "2");
    assert_eq!(
        output(token, "grep -rl pangolin / | sort").await,
        "/files/inside/below/below.md\n/files/inside/in.md\n"
    );
    assert_eq!(output(token, "cat /files/*/*.md").await, "The pangolin sleeps.\n");
    assert_eq!(output(token, "echo /files/*").await, "/files/inside\n");
    for script in
        ["tree /", "ls -lR /", "find /", "grep -rn '' /", "cat /README.md", "wc -c /files/*", "stat /files"]
    {
        let answer = exec(token, script).await.to_string();
        for hidden in ["secret", "vault", "root.md"] {
            assert!(!answer.contains(hidden), "{script} shows {hidden}: {answer}");
        }
    }
    let whole = exec(&tree.workspace.token, "find /").await;
    let part = exec(token, "find /").await;
    let visited = |answer: &Value| answer["stats"]["nodesVisited"].as_u64().unwrap();
    assert_eq!(visited(&whole) - visited(&part), 3, "{whole} {part}");
}

async fn complaints_tell_nothing(deployment: &Deployment) {
    let tree = halves(deployment).await;
    for command in ["cat", "ls", "stat", "head", "wc", "grep x", "find", "tree", "cd"] {
        let hidden = error_output(&tree.scoped, &format!("{command} /files/vault/secret.md")).await;
        let absent = error_output(&tree.scoped, &format!("{command} /files/nothing/nowhere.md")).await;
        let same = absent.replace("nothing", "vault").replace("nowhere", "secret");
        assert_eq!(hidden, same, "{command}");
    }
}

async fn memories_and_databases_are_pruned(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let token = &tree.workspace.token;
    for (name, folder) in [("Mine", Some(&tree.inside)), ("Hidden", Some(&tree.outside)), ("Top", None)] {
        let body = json!({"name": name, "folderId": folder});
        let made = token.post("/api/v1/databases").json(body).await.expect(201).json();
        let field = id(&items(&made["properties"])[0]);
        let records = format!("/api/v1/databases/{}/records", id(&made));
        let values = json!({"values": {field: format!("entry of {name}")}});
        token.post(&records).json(values).await.expect(201);
    }
    assert_eq!(output(&tree.scoped, "ls /databases").await, "Mine\n");
    assert_eq!(output(token, "ls /databases").await, "Hidden\nMine\nTop\n");
    let answer = exec(&tree.scoped, "grep -rn 'entry of' /").await.to_string();
    assert!(
        answer.contains("entry of Mine") && !answer.contains("Hidden") && !answer.contains("Top"),
        "{answer}"
    );

    let folders: Vec<Value> = [&tree.inside, &tree.outside]
        .iter()
        .map(|folder| json!({"kind": "folder", "folderId": folder}))
        .collect();
    let body = json!({"name": "Both", "members": folders});
    token.post("/api/v1/memories").json(body).await.expect(201);
    let answer =
        exec(&tree.scoped, "cat /memories/both/README.md; ls -R /memories; grep -rn roams /memories").await;
    assert!(!answer.to_string().contains("secret"), "{answer}");
}

async fn the_scope_follows_its_folders(deployment: &Deployment) {
    let tree = halves(deployment).await;
    let everything = &tree.workspace.token;
    let outside = format!("/api/v1/folders/{}", tree.outside);
    everything.patch(&outside).json(json!({"parentId": tree.inside})).await.expect(200);
    assert_eq!(output(&tree.scoped, "grep -rl secret /files").await, "/files/inside/vault/secret.md\n");
    everything.patch(&outside).json(json!({"parentId": null})).await.expect(200);
    assert_eq!(error_output(&tree.scoped, "grep -rl secret /files").await, "");
    everything.delete(&format!("/api/v1/folders/{}", tree.inside)).await.expect(204);
    assert_eq!(output(&tree.scoped, "find /files -type f | wc -l").await.trim(), "0");
}

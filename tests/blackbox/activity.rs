//! The activity of a workspace, and undoing it (contract, "What agents did").

use crate::support::callers::ApiToken;
use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    what_everybody_did_is_listed,
    the_list_is_narrowed_and_goes_on,
    what_an_agent_did_is_undone_and_edits_of_people_stay,
    only_who_may_delete_undoes,
    the_activity_is_for_members,
    the_console_plans_an_undo_and_carries_it_out,
];

impl Workspace {
    fn activity(&self, rest: &str) -> String {
        format!("/api/workspaces/{}/activity{rest}", self.id)
    }

    async fn entries(&self, query: &str) -> Value {
        self.session.get(&self.activity(query)).await.expect(200).json()
    }

    async fn undo(&self, body: Value) -> Reply {
        self.session.post(&self.activity("/undo")).json(body).await
    }

    async fn file_now(&self, file: &str) -> Reply {
        self.token.get(&format!("/api/v1/files/{file}")).await
    }

    /// The actor id of the token with that name.
    async fn actor(&self, name: &str) -> String {
        let actors = self.entries("/actors").await;
        let found = items(&actors).iter().find(|one| text(one, "name") == name);
        text(found.unwrap_or_else(|| panic!("no {name} in {actors}")), "id")
    }
}

async fn write(token: &ApiToken, file: &str, content: &str) {
    let path = format!("/api/v1/files/{file}");
    token.patch(&path).json(json!({"content": content})).await.expect(200);
}

async fn agent(workspace: &Workspace) -> ApiToken {
    let body = json!({"name": "the agent", "permissions": ["read", "write", "delete"]});
    workspace.token(body).await
}

async fn what_everybody_did_is_listed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = agent(&workspace).await;
    let folder = workspace.folder("plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "one").await;
    write(&agent, &file, "two").await;
    agent.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    let listed = workspace.entries("").await;
    assert_eq!(each(&listed, "action"), ["deleted", "updated", "created", "created"], "{listed}");
    let change = &listed[1];
    assert_eq!((text(change, "itemId"), text(change, "kind")), (file.clone(), "file".into()), "{change}");
    assert_eq!((text(change, "name"), text(change, "path")), ("a.md".into(), "/plans/a.md".into()));
    assert_eq!(text(change, "folderId"), folder);
    assert_eq!((&change["versionBefore"], &change["versionAfter"]), (&json!(1), &json!(2)), "{change}");
    assert_eq!((&change["changed"], text(change, "channel")), (&json!(["content"]), "rest".into()));
    let author = &change["author"];
    assert_eq!((text(author, "kind"), text(author, "name")), ("token".into(), "the agent".into()));
    assert!(text(change, "happenedAt").ends_with('Z'), "{change}");
    // The page shows the same to people, and so does the overview.
    let page = workspace.session.get(&format!("/w/{}/activity", workspace.id)).await.expect(200).text();
    for part in ["the agent (token)", "moved the file to trash", "changed content of the file", "/plans/a.md"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let overview = workspace.session.get(&format!("/w/{}", workspace.id)).await.expect(200).text();
    assert!(overview.contains("moved the file to trash"), "{overview}");
}

async fn the_list_is_narrowed_and_goes_on(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = agent(&workspace).await;
    let folder = workspace.folder("plans", None).await;
    let inside = workspace.file_id("inside.md", Some(&folder), "x").await;
    workspace.file_id("outside.md", None, "x").await;
    write(&agent, &inside, "y").await;
    let of_agent = workspace.entries(&format!("?principal={}", workspace.actor("the agent").await)).await;
    assert_eq!(each(&of_agent, "action"), ["updated"], "{of_agent}");
    let of_folder = workspace.entries(&format!("?folderId={folder}&kind=file")).await;
    assert_eq!(each(&of_folder, "name"), ["inside.md", "inside.md"], "{of_folder}");
    let first = workspace.session.get(&workspace.activity("?limit=3")).await.expect(200);
    assert_eq!(items(&first.json()).len(), 3);
    let link = first.header("link").unwrap().to_owned();
    let next = link.split(['<', '>']).nth(1).unwrap();
    let next = next.find("/api/").map(|at| next[at..].to_owned()).unwrap();
    let second = workspace.session.get(&next).await.expect(200);
    assert_eq!((items(&second.json()).len(), second.header("link")), (1, None));
    let later = workspace.entries("?since=2100-01-01T00:00:00Z").await;
    assert_eq!(later, json!([]));
    for (odd, field) in
        [("since=yesterday", "since"), ("cursor=x", "cursor"), ("kind=nothing", "kind"), ("limit=0", "limit")]
    {
        let error = workspace.session.get(&workspace.activity(&format!("?{odd}"))).await;
        let error = error.expect_error(400, "VALIDATION_ERROR");
        assert!(error.to_string().contains(field), "{odd}: {error}");
    }
}

async fn what_an_agent_did_is_undone_and_edits_of_people_stay(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = agent(&workspace).await;
    let kept = workspace.file_id("kept.md", None, "as it was").await;
    let edited = workspace.file_id("edited.md", None, "as it was").await;
    let gone = workspace.file_id("gone.md", None, "as it was").await;
    write(&agent, &kept, "by the agent").await;
    write(&agent, &edited, "by the agent").await;
    write(&workspace.token, &edited, "by a person").await;
    agent.delete(&format!("/api/v1/files/{gone}")).await.expect(204);
    let made =
        agent.post("/api/v1/files").json(json!({"name": "new.md", "fileType": "markdown", "content": "x"}));
    let made = id(&made.await.expect(201).json());
    let principal = workspace.actor("the agent").await;

    let plan = workspace.undo(json!({"principal": principal, "dryRun": true})).await.expect(200).json();
    let mut steps: Vec<String> = items(&plan["steps"])
        .iter()
        .map(|one| format!("{} {}", text(one, "action"), text(one, "name")))
        .collect();
    steps.sort();
    assert_eq!(steps, ["restore gone.md", "revert kept.md", "trash new.md"], "{plan}");
    assert_eq!(plan["dryRun"], json!(true));
    assert_eq!(workspace.file_now(&kept).await.expect(200).json()["content"], json!("by the agent"));

    let undone = workspace.undo(json!({"principal": principal})).await.expect(200);
    assert!(!undone.change().is_empty());
    let undone = undone.json();
    assert_eq!((items(&undone["steps"]).len(), &undone["hasMore"]), (3, &json!(false)), "{undone}");
    let [left] = items(&undone["leftAlone"]) else { panic!("{undone}") };
    assert_eq!((text(left, "itemId"), text(left, "code")), (edited.clone(), "edited_since".into()), "{left}");
    assert_eq!(text(&left["author"], "name"), "all", "{left}");
    for file in [&kept, &gone] {
        assert_eq!(workspace.file_now(file).await.expect(200).json()["content"], json!("as it was"));
    }
    assert_eq!(workspace.file_now(&edited).await.expect(200).json()["content"], json!("by a person"));
    workspace.file_now(&made).await.expect_error(404, "NOT_FOUND");

    let again = workspace.undo(json!({"principal": principal})).await.expect(200).json();
    assert_eq!(again["steps"], json!([]), "{again}");
    let listed = workspace.entries("?limit=3").await;
    assert!(items(&listed).iter().all(|one| one["undoes"].is_string()), "{listed}");
    let entries: Vec<String> = items(&listed).iter().map(|one| text(one, "id")).collect();
    workspace.undo(json!({"entries": entries})).await.expect(200);
    assert_eq!(workspace.file_now(&kept).await.expect(200).json()["content"], json!("by the agent"));
    workspace.file_now(&made).await.expect(200);
    workspace.file_now(&gone).await.expect_error(404, "NOT_FOUND");
}

async fn only_who_may_delete_undoes(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "as it was").await;
    write(&workspace.token, &file, "changed").await;
    let entry = text(&workspace.entries("").await[0], "id");
    let body = json!({"entries": [entry]});
    let path = format!("/w/{}/activity", workspace.id);
    for role in ["viewer", "contributor"] {
        let seat = people::join(&workspace, role).await.seat(&workspace);
        assert_eq!(items(&seat.entries("").await).len(), 2, "{role}");
        seat.undo(body.clone()).await.expect_error(403, "FORBIDDEN");
        let page = seat.session.get(&path).await.expect(200).text();
        assert!(page.contains("a.md") && !page.contains("Undo…"), "{role}: {page}");
        seat.session.get(&format!("{path}/undo?entry={entry}")).await.expect(403);
    }
    assert_eq!(workspace.file_now(&file).await.expect(200).json()["content"], json!("changed"));
    let editor = people::join(&workspace, "editor").await.seat(&workspace);
    editor.undo(body).await.expect(200);
    assert_eq!(workspace.file_now(&file).await.expect(200).json()["content"], json!("as it was"));
    editor.undo(json!({})).await.expect_error(400, "VALIDATION_ERROR");
    let unknown = editor.undo(json!({"entries": ["1.2.3", "x"]})).await;
    let unknown = unknown.expect_error(400, "VALIDATION_ERROR");
    assert!(unknown.to_string().contains("entries[1]"), "{unknown}");
}

async fn the_activity_is_for_members(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    for rest in ["", "/actors"] {
        let path = workspace.activity(rest);
        stranger.get(&path).await.expect_error(404, "NOT_FOUND");
        workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
        deployment.anonymous().get(&path).await.expect_error(401, "UNAUTHORIZED");
    }
    let undo = workspace.activity("/undo");
    let body = json!({"principal": "x"});
    stranger.post(&undo).json(body.clone()).await.expect_error(404, "NOT_FOUND");
    workspace.token.post(&undo).json(body).await.expect_error(401, "UNAUTHORIZED");
}

async fn the_console_plans_an_undo_and_carries_it_out(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let agent = agent(&workspace).await;
    let kept = workspace.file_id("kept.md", None, "as it was\n").await;
    let edited = workspace.file_id("edited.md", None, "as it was\n").await;
    write(&agent, &kept, "by the agent\n").await;
    write(&agent, &edited, "by the agent\n").await;
    write(&workspace.token, &edited, "by a person\n").await;
    let path = format!("/w/{}/activity", workspace.id);
    let who = workspace.actor("the agent").await;
    let page = workspace.session.get(&format!("{path}?who={who}")).await.expect(200).text();
    assert!(page.contains("Undo… all that") && !page.contains("by a person"), "{page}");
    let entry = text(&workspace.entries(&format!("?principal={who}")).await[1], "id");
    let opened = workspace.session.get(&format!("{path}?open={entry}")).await.expect(200).text();
    assert!(opened.contains("class=\"diff\"") && opened.contains("by the agent"), "{opened}");
    let plan = workspace.session.get(&format!("{path}/undo?who={who}")).await.expect(200).text();
    for part in
        ["kept.md", "is as it was before", "edited.md", "left alone", "changed since", ">Undo</button>"]
    {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    let body = encoded([("who", who.as_str())]);
    let form = "application/x-www-form-urlencoded";
    let send = workspace.session.post(&format!("{path}/undo")).header("sec-fetch-site", "same-origin");
    let done = send.body(form, body).await.expect(303);
    assert_eq!(done.header("location"), Some(path.as_str()));
    assert_eq!(workspace.file_now(&kept).await.expect(200).json()["content"], json!("as it was\n"));
    let page = workspace.session.get(&path).await.expect(200).text();
    assert!(page.contains("undid a change"), "{page}");
    let nothing = workspace.session.get(&format!("{path}/undo?who={who}")).await.expect(200).text();
    assert!(nothing.contains("Nothing is left to be undone"), "{nothing}");
}

//! The question log (contract, "What agents did"): nothing is stored until an owner enables it, and then questions can
//! be replayed.

use crate::support::callers::{ApiToken, Session};
use crate::support::http::{Reply, each, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    nothing_is_kept_until_an_owner_wants_it,
    what_was_asked_is_kept_and_replayed,
    viewers_see_their_own_and_admins_delete,
    switching_it_off_deletes_what_was_kept,
    a_question_is_asked_again,
    a_gap_becomes_a_file_and_closes,
];

const FORM: &str = "application/x-www-form-urlencoded";
const SEARCH: &str = "/api/v1/search_context";

fn log(workspace: &Workspace, below: &str) -> String {
    format!("/api/workspaces/{}/questions{below}", workspace.id)
}

/// Sets the retention in days, or disables the log.
async fn set_retention(workspace: &Workspace, days: Value) {
    let path = format!("/api/workspaces/{}", workspace.id);
    let changed =
        workspace.session.patch(&path).json(json!({"questionLogDays": days})).await.expect(200).json();
    assert_eq!(changed["questionLogDays"], days, "{changed}");
}

async fn ask(token: &ApiToken, query: &str) -> Value {
    token.post(SEARCH).json(json!({"query": query, "limit": 3})).await.expect(200).json()
}

async fn logged_queries(session: &Session, workspace: &Workspace) -> Vec<String> {
    let listed = session.get(&log(workspace, "")).await.expect(200).json();
    each(&listed, "query").into_iter().map(ToOwned::to_owned).collect()
}

/// Asks until the question is in the log: identity tokens issued before the setting changed stay valid for a moment.
/// Returns its entry.
async fn wait_until_logged(session: &Session, workspace: &Workspace, token: &ApiToken, query: &str) -> Value {
    eventually(&format!("'{query}' is kept"), async || {
        ask(token, query).await;
        let listed = session.get(&log(workspace, "")).await.expect(200).json();
        items(&listed).iter().find(|one| one["query"] == query).cloned()
    })
    .await
}

async fn page(session: &Session, path: &str) -> String {
    session.get(path).await.expect(200).text()
}

async fn send(session: &Session, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

async fn nothing_is_kept_until_an_owner_wants_it(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    let read = workspace.session.get(&path).await.expect(200).json();
    assert!(read.get("questionLogDays").is_none(), "{read}");
    let made = workspace.file("aardwolf.md", None, "The aardwolf eats termites.\n").await;
    let before = json!({"query": "what does the aardwolf eat"});
    workspace.search_after(&made.change(), before).await;

    let admin = people::join(&workspace, "admin").await;
    let change = json!({"questionLogDays": 30});
    admin.session.patch(&path).json(change).await.expect_error(403, "FORBIDDEN");
    for odd in [json!(8), json!(0), json!("7"), json!(-7), json!(7.5)] {
        let wrong = workspace.session.patch(&path).json(json!({"questionLogDays": odd})).await;
        wrong.expect_error(400, "VALIDATION_ERROR");
    }
    let shown = page(&admin.session, &format!("/w/{}/questions", workspace.id)).await;
    assert!(shown.contains("The question log is off.") && shown.contains("owner"), "{shown}");
    assert!(!page(&workspace.session, &format!("/w/{}", workspace.id)).await.contains("question log is on"));

    // A question asked once the log is on would follow any that had been stored before.
    set_retention(&workspace, json!(7)).await;
    wait_until_logged(&workspace.session, &workspace, &workspace.token, "aardwolf").await;
    let all = logged_queries(&workspace.session, &workspace).await;
    assert!(!all.contains(&"what does the aardwolf eat".to_owned()), "{all:?}");
}

async fn what_was_asked_is_kept_and_replayed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let text_of_then = "# Diet\n\nThe aardwolf eats termites.\n";
    let made = workspace.file("aardwolf.md", None, text_of_then).await;
    let file = id(&made.json());
    workspace.search_after(&made.change(), json!({"query": "aardwolf"})).await;
    let settings = format!("/w/{}/settings/questions", workspace.id);
    assert_eq!(send(&workspace.session, &settings, &[("days", "30")]).await.status, 303);
    let settings = page(&workspace.session, &format!("/w/{}/settings", workspace.id)).await;
    assert!(settings.contains("value=\"30\" selected"), "{settings}");

    let question =
        wait_until_logged(&workspace.session, &workspace, &workspace.token, "which termites").await;
    assert_eq!(
        (text(&question, "channel"), text(&question["askedBy"], "kind")),
        ("rest".into(), "token".into())
    );
    assert_eq!(text(&question, "operation"), "search_context");
    assert!(question["tookMs"].as_f64().unwrap() > 0.0 && question["results"] == 1, "{question}");
    let path = log(&workspace, &format!("/{}", id(&question)));
    let replay = workspace.session.get(&path).await.expect(200).json();
    assert_eq!(replay["arguments"], json!({"limit": 3}));
    let [passage] = items(&replay["passages"]) else { panic!("{replay}") };
    assert_eq!((text(passage, "id"), text(passage, "path")), (file.clone(), "/aardwolf.md".into()));
    assert!(text(passage, "content").contains("The aardwolf eats termites."), "{passage}");
    assert_eq!(passage["score"], question["bestScore"]);

    // The log shows the text of that time, whatever the file contains now.
    let change = json!({"content": "Gone.\n", "name": "other.md"});
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(change).await.expect(200);
    let replay = workspace.session.get(&path).await.expect(200).json();
    let passage = &items(&replay["passages"])[0];
    assert!(text(passage, "content").contains("termites") && passage["version"] == 1, "{passage}");
    assert_eq!(text(passage, "path"), "/other.md");
    let shown = page(&workspace.session, &format!("/w/{}/questions/{}", workspace.id, id(&question))).await;
    for part in ["which termites", "The aardwolf eats termites.", "/other.md", "<code>limit</code>"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    let shown = page(&workspace.session, &format!("/w/{}/questions/{}", workspace.id, id(&question))).await;
    assert!(shown.contains("a document that is no longer there"), "{shown}");

    // Every member is told, and finds the questions of a token from the token's page.
    let viewer = people::join(&workspace, "viewer").await.session;
    for below in ["", "/search", "/questions"] {
        let shown = page(&viewer, &format!("/w/{}{below}", workspace.id)).await;
        assert!(shown.contains("question log is on") && shown.contains("30 days"), "{below}: {shown}");
    }
    let who = text(&question["askedBy"], "id");
    let token = page(&workspace.session, &format!("/w/{}/tokens/{who}", workspace.id)).await;
    assert!(token.contains(&format!("/questions?who={who}")), "{token}");
    let filtered = |query: &str| log(&workspace, &format!("?{query}"));
    for (query, is_there) in [
        (format!("who={who}"), true),
        ("who=somebody".to_owned(), false),
        ("text=TERMITES&since=2026-01-01".to_owned(), true),
        ("text=terns".to_owned(), false),
        ("since=2999-01-01".to_owned(), false),
    ] {
        let listed = workspace.session.get(&filtered(&query)).await.expect(200).json();
        assert_eq!(!items(&listed).is_empty(), is_there, "{query}: {listed}");
    }
    workspace.session.get(&filtered("since=yesterday")).await.expect_error(400, "VALIDATION_ERROR");
    workspace.session.get(&filtered("cursor=nonsense")).await.expect_error(400, "VALIDATION_ERROR");
    for odd in ["since=yesterday", "text=%00", "from=nonsense", "who=%ff"] {
        let path = format!("/w/{}/questions?{odd}", workspace.id);
        assert!(workspace.session.get(&path).await.status < 500, "{odd}");
    }
}

async fn viewers_see_their_own_and_admins_delete(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_retention(&workspace, json!(90)).await;
    let viewer = people::join(&workspace, "viewer").await;
    let of_viewer = viewer.token(&workspace, &["read"]).await;
    let theirs =
        wait_until_logged(&workspace.session, &workspace, &workspace.token, "asked by the owner's token")
            .await;
    let own = wait_until_logged(&viewer.session, &workspace, &of_viewer, "asked by the viewer's token").await;
    let seen = logged_queries(&viewer.session, &workspace).await;
    assert!(seen.iter().all(|query| query == "asked by the viewer's token"), "{seen:?}");
    let (of_owner, of_own) =
        (log(&workspace, &format!("/{}", id(&theirs))), log(&workspace, &format!("/{}", id(&own))));
    viewer.session.get(&of_owner).await.expect_error(404, "NOT_FOUND");
    viewer.session.get(&of_own).await.expect(200);
    let shown = format!("/w/{}/questions/{}", workspace.id, id(&theirs));
    assert_eq!(viewer.session.get(&shown).await.status, 404);

    let contributor = people::join(&workspace, "contributor").await;
    contributor.session.get(&of_owner).await.expect(200);
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&of_owner).await.expect_error(404, "NOT_FOUND");
    stranger.get(&log(&workspace, "")).await.expect_error(404, "NOT_FOUND");
    assert_eq!(workspace.token.get(&log(&workspace, "")).await.status, 401, "the log is for people");

    let editor = people::join(&workspace, "editor").await;
    for other in [&editor.session, &contributor.session, &viewer.session] {
        other.delete(&of_own).await.expect_error(403, "FORBIDDEN");
    }
    let admin = people::join(&workspace, "admin").await;
    admin.session.delete(&of_own).await.expect(204);
    admin.session.delete(&of_own).await.expect_error(404, "NOT_FOUND");
    workspace.session.get(&of_own).await.expect_error(404, "NOT_FOUND");
    let page = format!("/w/{}/questions/{}/delete", workspace.id, id(&theirs));
    assert_eq!(send(&admin.session, &page, &[]).await.status, 303);
    workspace.session.get(&of_owner).await.expect_error(404, "NOT_FOUND");
}

async fn switching_it_off_deletes_what_was_kept(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_retention(&workspace, json!(30)).await;
    wait_until_logged(&workspace.session, &workspace, &workspace.token, "asked while it was on").await;
    set_retention(&workspace, Value::Null).await;
    let nothing = async || logged_queries(&workspace.session, &workspace).await.is_empty().then_some(());
    eventually("nothing is shown any more", nothing).await;
    let shown = async || {
        let shown = page(&workspace.session, &format!("/w/{}/questions", workspace.id)).await;
        shown.contains("The question log is off.").then_some(())
    };
    eventually("the page says that it is off", shown).await;
    set_retention(&workspace, json!(90)).await;
    wait_until_logged(&workspace.session, &workspace, &workspace.token, "asked when it was on again").await;
}

async fn a_question_is_asked_again(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_retention(&workspace, json!(30)).await;
    let first = workspace.file("first.md", None, "The aardwolf eats termites.\n").await;
    workspace.search_after(&first.change(), json!({"query": "aardwolf"})).await;
    let question =
        wait_until_logged(&workspace.session, &workspace, &workspace.token, "aardwolf termites").await;
    assert_eq!(question["results"], 1, "{question}");
    let second = workspace.file("second.md", None, "# Aardwolf termites\n\nAardwolf termites.\n").await;
    workspace.search_after(&second.change(), json!({"query": "aardwolf"})).await;

    let path = log(&workspace, &format!("/{}", id(&question)));
    let again = workspace.session.post(&format!("{path}/ask")).await.expect(200).json();
    let ranks = items(&again["ranks"]);
    assert_eq!((ranks.len(), items(&again["results"]).len()), (2, 2), "{again}");
    let old = ranks.iter().find(|rank| rank["then"] == 1).unwrap_or_else(|| panic!("{again}"));
    assert!(old["now"].is_number() && ranks.iter().any(|rank| rank.get("then").is_none()), "{again}");
    let shown =
        page(&workspace.session, &format!("/w/{}/questions/{}?again=1", workspace.id, id(&question))).await;
    for part in ["/first.md", "/second.md", "New", "Now and then"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A replay shows what the replaying person may see, and a viewer cannot replay others' questions.
    let viewer = people::join(&workspace, "viewer").await.session;
    viewer.post(&format!("{path}/ask")).await.expect_error(404, "NOT_FOUND");
}

async fn a_gap_becomes_a_file_and_closes(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    set_retention(&workspace, json!(30)).await;
    let query = "how is the flux capacitor calibrated";
    let question = wait_until_logged(&workspace.session, &workspace, &workspace.token, query).await;
    assert_eq!(text(&question, "outcome"), "unanswered", "nothing is there yet: {question}");
    let gaps = format!("/api/workspaces/{}/question-groups?gaps=true", workspace.id);
    let listed = workspace.session.get(&gaps).await.expect(200).json();
    let [gap] = items(&listed) else { panic!("{listed}") };
    assert_eq!(text(&items(&gap["questions"])[0], "query"), query);

    let base = format!("/w/{}/questions", workspace.id);
    let shown = page(&workspace.session, &format!("{base}?view=gaps")).await;
    assert!(shown.contains("Write the file") && shown.contains(query), "{shown}");
    let write = format!("{base}/write?q={}", id(&question));
    let form = page(&workspace.session, &write).await;
    for part in ["how-is-the-flux-capacitor-calibrated.md", "## how is the flux capacitor calibrated"] {
        assert!(form.contains(part), "{part}: {form}");
    }
    assert!(form.contains("Save and ask again"), "{form}");
    let replay = format!("{base}/{}", id(&question));
    let shown = page(&workspace.session, &replay).await;
    assert!(shown.contains(&format!("href=\"{write}\"")) && shown.contains("Write the file"), "{shown}");
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    assert!(items(&files).is_empty(), "nothing is written before it is saved: {files}");
    let viewer = people::join(&workspace, "viewer").await.session;
    assert_eq!(viewer.get(&write).await.status, 403);
    let content =
        "## how is the flux capacitor calibrated\r\n\r\nThe flux capacitor is calibrated with a spanner.\r\n";
    let asked = id(&question);
    let fields = [
        ("name", "flux.md"),
        ("folder", ""),
        ("content", content),
        ("ask", asked.as_str()),
        ("again", "yes"),
    ];
    assert_eq!(send(&viewer, &format!("{base}/write"), &fields).await.status, 403);
    let saved = send(&workspace.session, &format!("{base}/write"), &fields).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    // It is asked again at once, and the answer reflects the file.
    let to = saved.header("location").unwrap().to_owned();
    assert!(to.starts_with(&format!("{replay}?again=1&after=c1-")), "{to}");
    eventually("the file is found", async || {
        page(&workspace.session, &to).await.contains("/flux.md").then_some(())
    })
    .await;
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    let [file] = items(&files) else { panic!("{files}") };
    let read = workspace.token.get(&format!("/api/v1/files/{}", id(file))).await.expect(200).json();
    assert_eq!(text(&read, "content"), content.replace("\r\n", "\n"));

    let ask = log(&workspace, &format!("/{}/ask", id(&question)));
    eventually("the gap is closed", async || {
        workspace.session.post(&ask).await.expect(200);
        let listed = workspace.session.get(&gaps).await.expect(200).json();
        items(&listed).is_empty().then_some(())
    })
    .await;
    assert!(page(&workspace.session, &format!("{base}?view=gaps")).await.contains("found something good"));
}

//! The console's pages about connected sources: connecting one, its runs, failed documents, and disconnecting it.

use crate::support::http::Reply;
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::sources::{SourceFolder, connect};

scenarios![
    a_source_is_tested_connected_and_read,
    a_source_is_paused_changed_and_disconnected,
    what_could_not_be_read_is_told_in_words,
    sources_are_steered_by_those_who_manage,
    addresses_of_no_source_are_pages,
];

const FORM: &str = "application/x-www-form-urlencoded";

async fn send(seat: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    seat.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

async fn page(seat: &Workspace, path: &str) -> String {
    seat.session.get(path).await.expect(200).text()
}

fn location(reply: &Reply) -> String {
    reply.header("location").unwrap_or_default().to_owned()
}

/// The page of a source once none of its runs is in progress.
async fn wait_until_idle(seat: &Workspace, own: &str) -> String {
    eventually("the run of the source is over", async || {
        let shown = page(seat, own).await;
        // The page reads the run and its source one after the other.
        (shown.contains("Last finished run")
            && !shown.contains("Run under way")
            && !shown.contains("A run is under way")
            && !shown.contains("No run has ended"))
        .then_some(shown)
    })
    .await
}

async fn a_source_is_tested_connected_and_read(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("otters.md", "# Otters\n\nThey float.\n");
    let all = format!("/w/{}/sources", workspace.id);
    let new = format!("{all}/new");
    assert!(page(&workspace, &all).await.contains(&format!("href=\"{new}\"")));
    assert!(page(&workspace, &new).await.contains("?provider=folder"));
    let form = page(&workspace, &format!("{new}?provider=folder")).await;
    let at = |part: &str| form.find(part).unwrap_or_else(|| panic!("{part}: {form}"));
    assert!(at("What it costs") < at("Each document counts for the plan"), "{form}");
    assert!(at("Each document counts for the plan") < at("value=\"connect\""), "{form}");

    let path = folder.path().to_str().unwrap();
    let typed = [
        ("provider", "folder"),
        ("settings-path", path),
        ("mode", "indexed"),
        ("settings-include", "*.md\r\n*.txt"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [typed.as_slice(), more].concat();
    let tested = send(&workspace, &new, &with(&[("then", "check")])).await.expect(200).text();
    assert!(tested.contains("It works") && tested.contains("*.md\n*.txt</textarea>"), "{tested}");
    let odd = [("provider", "folder"), ("settings-path", "/nowhere/kept words"), ("then", "check")];
    let odd = send(&workspace, &new, &odd).await;
    assert!(matches!(odd.status, 200 | 400), "{}", odd.text());
    assert!(odd.text().contains("/nowhere/kept words"), "{}", odd.text());
    let nameless = send(&workspace, &new, &with(&[("then", "connect")])).await.expect(400).text();
    assert!(nameless.contains("#f-name") && nameless.contains(path), "{nameless}");
    assert!(page(&workspace, &all).await.contains("system outside"), "nothing is connected yet");

    let name = ("name", "<script>alert(1)</script>");
    let own = location(&send(&workspace, &new, &with(&[name])).await.expect(303));
    assert!(own.starts_with(&format!("{all}/")), "{own}");
    let shown = wait_until_idle(&workspace, &own).await;
    for part in ["Ready", "Completed", "1 document", "*.md, *.txt", "of 500", "&lt;script&gt;"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("<script>alert"), "{shown}");
    let listed = page(&workspace, &all).await;
    assert!(
        listed.contains(&own) && listed.contains("Ready") && !listed.contains("<script>alert"),
        "{listed}"
    );

    folder.put("newts.md", "Newts walk at night.\n");
    let queued = send(&workspace, &format!("{own}/sync"), &[]).await.expect(303);
    assert_eq!(location(&queued), own);
    eventually("the new file is there", async || {
        page(&workspace, &own).await.contains("2 documents").then_some(())
    })
    .await;
    wait_until_idle(&workspace, &own).await;
    let runs = page(&workspace, &format!("{own}/runs")).await;
    assert_eq!(runs.matches(&format!("href=\"{own}/runs/")).count(), 2, "{runs}");
    let run = runs.split(&format!("href=\"{own}/runs/")).nth(1).unwrap().split('"').next().unwrap();
    let run = format!("{own}/runs/{run}");
    assert!(page(&workspace, &run).await.contains("requests"));
    // It has finished: the error is shown where the cancellation was requested.
    let late = send(&workspace, &format!("{run}/cancel"), &[]).await.expect(409).text();
    assert!(late.contains("the run is over") || late.contains("The run is over"), "{late}");
}

async fn a_source_is_paused_changed_and_disconnected(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("otters.md", "They float.\n");
    let source = connect(&workspace, folder.draft("Field notes")).await;
    source.run().await;
    let own = format!("/w/{}/sources/{}", workspace.id, source.id);
    send(&workspace, &format!("{own}/pause"), &[]).await.expect(303);
    let shown = page(&workspace, &own).await;
    assert!(
        shown.contains("Paused") && shown.contains(">Resume<") && !shown.contains(">Sync now<"),
        "{shown}"
    );
    let refused = send(&workspace, &format!("{own}/sync"), &[]).await.expect(409).text();
    assert!(refused.contains("resume it"), "{refused}");
    send(&workspace, &format!("{own}/resume"), &[]).await.expect(303);
    wait_until_idle(&workspace, &own).await;

    let change = format!("{own}/change");
    let form = page(&workspace, &change).await;
    assert!(form.contains("value=\"Field notes\"") && form.contains("value=\"15m\""), "{form}");
    let path = folder.path().to_str().unwrap();
    let wrong = [
        ("name", "kept words"),
        ("settings-path", path),
        ("mode", "indexed"),
        ("every", "1s"),
        ("dailyBudget", "500"),
    ];
    let again = send(&workspace, &change, &wrong).await.expect(400).text();
    assert!(again.contains("kept words") && again.contains("#f-every"), "{again}");
    let right = [
        ("name", "Notes"),
        ("settings-path", path),
        ("mode", "catalog"),
        ("every", "6h"),
        ("dailyBudget", "7"),
    ];
    assert_eq!(location(&send(&workspace, &change, &right).await.expect(303)), own);
    let known = source.get().await;
    assert_eq!(
        (&known["name"], &known["mode"], &known["every"], &known["budget"]["limit"]),
        (&json!("Notes"), &json!("catalog"), &json!("6h"), &json!(7))
    );
    workspace.session.get(&format!("{own}/credentials")).await.expect(404);

    let gone = send(&workspace, &format!("{own}/disconnect"), &[]).await.expect(303);
    assert_eq!(location(&gone), format!("/w/{}/sources", workspace.id));
    workspace.session.get(&own).await.expect(404);
}

async fn what_could_not_be_read_is_told_in_words(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    for number in 0..52 {
        folder.put(&format!("{number:02} <b>broken.pdf"), "%PDF-1.7 and nothing that could be read");
    }
    let source = connect(&workspace, folder.draft("Broken")).await;
    source.run().await;
    let own = format!("/w/{}/sources/{}", workspace.id, source.id);
    let shown = wait_until_idle(&workspace, &own).await;
    assert!(
        shown.contains("Documents that could not be read") && shown.contains("Completed with warnings"),
        "{shown}"
    );
    assert!(shown.contains("&lt;b&gt;broken") && !shown.contains("<b>broken"), "{shown}");
    let list = format!("/w/{}/documents?source={}&status=failed", workspace.id, source.id);
    assert!(shown.contains(&list.replace('&', "&amp;")), "{shown}");
    let first = page(&workspace, &list).await;
    assert!(first.contains("of 52") && first.contains("rel=\"next\""), "{first}");
}

async fn sources_are_steered_by_those_who_manage(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    let source = connect(&workspace, folder.draft("Notes")).await;
    let own = format!("/w/{}/sources/{}", workspace.id, source.id);
    let admin = people::join(&workspace, "admin").await.session;
    assert!(admin.get(&own).await.expect(200).text().contains(">Disconnect"));
    let editor = people::join(&workspace, "editor").await.session;
    let shown = editor.get(&own).await.expect(200).text();
    assert!(!shown.contains(">Disconnect") && shown.contains("Your role here is editor"), "{shown}");
    for path in ["/change", "/credentials"] {
        editor.get(&format!("{own}{path}")).await.expect(403);
    }
    editor.get(&format!("/w/{}/sources/new", workspace.id)).await.expect(403);
    for path in ["/sync", "/pause", "/resume", "/disconnect", "/change", "/credentials"] {
        let reply = editor.post(&format!("{own}{path}")).body(FORM, "name=x").await;
        assert_eq!(reply.status, 403, "{path}: {}", reply.text());
    }
    source.get().await;
    let other = deployment.workspace().await;
    let stranger = people::join(&other, "owner").await.session;
    stranger.get(&own).await.expect(404);
    let elsewhere = format!("/w/{}/sources/{}", other.id, source.id);
    assert!(!stranger.get(&elsewhere).await.expect(404).text().contains("Notes"));
}

async fn addresses_of_no_source_are_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let all = format!("/w/{}/sources", workspace.id);
    for odd in
        ["x", "0199c0de-0000-7000-8000-000000000001", "x/runs", "0199c0de-0000-7000-8000-000000000001/runs/x"]
    {
        let reply = workspace.session.get(&format!("{all}/{odd}")).await;
        assert!(matches!(reply.status, 400 | 404), "{odd}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{odd}");
    }
    for odd in ["provider=pigeon", "provider=%00", "provider=github&provider=x"] {
        let reply = workspace.session.get(&format!("{all}/new?{odd}")).await;
        assert!(matches!(reply.status, 400 | 404), "{odd}: {}", reply.text());
    }
    assert!(page(&workspace, &format!("{all}/new?provider=")).await.contains("?provider=github"));
}

//! What people may say of sources, and what they are answered.

use cairn_chassis::clock::Clock as _;
use cairn_proto::domain::SourceMode;
use cairn_providers::{Changes, Deletions, Listing};

use super::runs::{draft, first_page, listed};
use super::{bound_to_folders, caller};
use crate::Error;
use crate::model::{PageRequest, SOURCE_PAGES};
use crate::sources::{Draft, Patch, Secret};

#[track_caller]
fn paths<T: std::fmt::Debug>(result: Result<T, Error>) -> Vec<String> {
    match result {
        Err(Error::Invalid(violations)) => violations.into_iter().map(|one| one.path).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

#[tokio::test]
async fn every_problem_of_a_draft_is_said_at_once() {
    for stand in listed().await {
        let wrong = Draft {
            name: " ".into(),
            provider: "carrier pigeon".into(),
            settings: b"[]".to_vec(),
            credentials: Secret(b"\"a secret that nobody repeats\"".to_vec()),
            every: Some("1s".into()),
            daily_budget: Some(2_000_000),
            ..Draft::default()
        };
        let refused = stand.sources.connect(&stand.caller, wrong).await;
        assert!(!format!("{refused:?}").contains("nobody repeats"));
        let mut found = paths(refused);
        found.sort();
        assert_eq!(found, ["credentials", "dailyBudget", "every", "name", "provider", "settings"]);
        let inner = Draft { settings: br#"{"url": null}"#.to_vec(), ..draft("x", None) };
        assert_eq!(paths(stand.sources.connect(&stand.caller, inner).await), ["settings.url"]);
        assert!(stand.sources.list(&stand.caller).await.unwrap().is_empty(), "{}", stand.engine());
    }
}

#[tokio::test]
async fn sources_are_of_their_workspace_and_not_for_folders() {
    for stand in listed().await {
        let id = stand.connect("mine").await.to_string();
        let (other, bound) = (caller(2), bound_to_folders(1));
        for result in [
            stand.sources.get(&other, &id).await.map(drop),
            stand.sources.sync(&other, &id, false).await.map(drop),
            stand.sources.update(&other, &id, Patch::default()).await.map(drop),
            stand.sources.disconnect(&other, &id).await.map(drop),
            stand.sources.list_runs(&other, &id, first_page()).await.map(drop),
            stand.sources.fetch(&other, &id, "a").await.map(drop),
            stand.sources.list_documents(&other, Some(&id), None, "", first_page()).await.map(drop),
        ] {
            assert!(matches!(result, Err(Error::NoSource(_))), "{}: {result:?}", stand.engine());
        }
        assert!(stand.sources.list(&other).await.unwrap().is_empty());
        for result in [
            stand.sources.list(&bound).await.map(drop),
            stand.sources.get(&bound, &id).await.map(drop),
            stand.sources.list_documents(&bound, None, None, "", first_page()).await.map(drop),
        ] {
            assert!(matches!(result, Err(Error::BoundToFolders(_))), "{result:?}");
        }
        assert_eq!(paths(stand.sources.get(&stand.caller, "no id").await), ["sourceId"]);
    }
}

#[tokio::test]
async fn names_become_folders_of_their_own() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        for (name, folder) in [
            ("Handbook", "Handbook"),
            ("Handbook", "Handbook 2"),
            ("ingested", "ingested 2"),
            ("a/b", "a b"),
            ("..", "source"),
        ] {
            let id = stand.connect(name).await;
            assert_eq!(stand.shown(id).await.source.folder, folder, "{}", stand.engine());
        }
        let id = stand.connect("before").await;
        stand.work().await;
        let patch = Patch { name: Some("after".into()), ..Patch::default() };
        let renamed = stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        assert_eq!((renamed.source.name.as_str(), renamed.source.folder.as_str()), ("after", "after"));
        let views = super::runs::views(&stand.runner.context.db, stand.caller.workspace).await;
        assert!(views.iter().any(|view| view.path == "/sources/after/a"), "{views:?}");
        stand.assert_sound("renamed").await;
    }
}

#[tokio::test]
async fn other_settings_begin_anew_and_a_source_keeps_its_provider() {
    for stand in super::runs::stands(Listing::Exhaustive, Changes::Exact, Deletions::FromChanges).await {
        stand.shelf.put("a", "a");
        let id = stand.connect("one").await;
        stand.work().await;
        let listed = stand.shelf.requests().listed;
        let patch = Patch { settings: Some(br#"{"path": "/x"}"#.to_vec()), ..Patch::default() };
        stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        stand.work().await;
        assert_eq!(stand.shelf.requests().listed, listed + 1, "{}", stand.engine());
        let other = Patch { provider: Some("git".into()), ..Patch::default() };
        assert_eq!(paths(stand.sources.update(&stand.caller, &id.to_string(), other).await), ["provider"]);
        let same =
            Patch { provider: Some("folder".into()), every: Some(Some("6h".into())), ..Patch::default() };
        let updated = stand.sources.update(&stand.caller, &id.to_string(), same).await.unwrap();
        assert_eq!(updated.source.every.as_secs(), 6 * 3_600);
    }
}

#[tokio::test]
async fn the_next_run_follows_how_often_a_source_is_read() {
    for stand in listed().await {
        let id = stand.connect("often").await;
        stand.work().await;
        let change = async |every: &str| {
            let patch = Patch { every: Some(Some(every.into())), ..Patch::default() };
            stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap().source
        };
        for (every, seconds) in [("15m", 900), ("1d", 86_400), ("6h", 21_600)] {
            let source = change(every).await;
            let pause = source.next_run_at.unwrap().since(source.last_synced_at.unwrap()).as_secs();
            assert!((seconds..=seconds * 105 / 100).contains(&pause), "{}: {every}: {pause}", stand.engine());
        }
        // What is overdue by then is due now.
        stand.clock.advance(std::time::Duration::from_secs(2 * 3_600));
        let source = change("1h").await;
        assert_eq!(source.next_run_at, Some(stand.clock.now()), "{}", stand.engine());
    }
}

#[tokio::test]
async fn credentials_are_sealed_and_in_no_answer() {
    for stand in listed().await {
        let secret = "ghp_a_secret_that_is_nowhere_wxyz";
        let given = format!(r#"{{"token": "{secret}"}}"#);
        let with = Draft { credentials: Secret(given.into_bytes()), ..draft("sealed", None) };
        assert!(!format!("{with:?}").contains(secret));
        let shown = stand.sources.connect(&stand.caller, with).await.unwrap();
        assert_eq!(shown.source.credential_hint.as_deref(), Some("wxyz"));
        assert!(!format!("{shown:?}").contains(secret));
        let opened = stand.runner.opened(&shown.source).await.unwrap().unwrap();
        assert_eq!(opened["token"], secret, "{}", stand.engine());
        let sealed = crate::store::sources::credentials(
            &stand.runner.context.db,
            stand.caller.workspace,
            shown.source.id,
        );
        let sealed = sealed.await.unwrap().unwrap();
        assert!(
            !sealed.envelope.windows(8).any(|part| secret.as_bytes().windows(8).any(|other| part == other))
        );
    }
}

#[tokio::test]
async fn documents_are_listed_in_pages_and_fetched_as_they_are_kept() {
    for stand in listed().await {
        for number in 0..7 {
            stand.shelf.put(&format!("docs/{number}.md"), &format!("text {number}"));
        }
        let id = stand.connect("paged").await.to_string();
        stand.work().await;
        let mut names = Vec::new();
        let mut token = String::new();
        loop {
            let page = stand
                .sources
                .list_documents(
                    &stand.caller,
                    Some(&id),
                    None,
                    "",
                    PageRequest::new(SOURCE_PAGES, 3, &token).unwrap(),
                )
                .await
                .unwrap();
            assert_eq!(page.total, 7);
            names.extend(page.items.into_iter().map(|item| item.external_id));
            if page.next.is_empty() {
                break;
            }
            token = page.next;
        }
        assert_eq!(names.len(), 7, "{}", stand.engine());
        let fetched = stand.sources.fetch(&stand.caller, &id, "docs/3.md").await.unwrap();
        assert_eq!((fetched.content.as_str(), fetched.is_live, fetched.used), ("text 3", false, 0));
        assert_eq!(fetched.url.as_deref(), Some("https://shelf.example/docs/3.md"));
        let none = stand.sources.fetch(&stand.caller, &id, "docs/99.md").await;
        assert!(matches!(none, Err(Error::NoSourceDocument(_))));
        assert_eq!(paths(stand.sources.fetch(&stand.caller, "x", "").await), ["sourceId", "externalId"]);
        let runs = stand.sources.list_runs(&stand.caller, &id, first_page()).await.unwrap();
        assert_eq!((runs.total, runs.items.len()), (1, 1));
    }
}

#[tokio::test]
async fn a_document_is_read_by_its_id_with_what_is_retained_of_it() {
    for stand in listed().await {
        stand.shelf.put("docs/Plan.md", "# Plan");
        stand.shelf.put_failing("docs/bad.md", cairn_providers::Fault::Unavailable);
        let id = stand.connect("shelf").await;
        stand.work().await;
        let list = async |part: &str| {
            let page = stand.sources.list_documents(&stand.caller, None, None, part, first_page()).await;
            page.unwrap().items
        };
        assert_eq!(list("").await.len(), 2, "{}", stand.engine());
        let [plan] = list("pLAN").await.try_into().unwrap();
        let [bad] = list("bad").await.try_into().unwrap();
        let get =
            async |caller: &crate::scope::Caller, id: String| stand.sources.get_document(caller, &id).await;
        let held = get(&stand.caller, plan.id.to_string()).await.unwrap();
        assert_eq!((held.text.as_deref(), held.source.name.as_str()), (Some("# Plan"), "shelf"));
        assert!(held.view.unwrap().path.starts_with("/sources/shelf/"), "{}", stand.engine());
        let unread = get(&stand.caller, bad.id.to_string()).await.unwrap();
        assert!(unread.text.is_none() && unread.view.is_none() && unread.document.error.is_some());
        // Nothing of it is for somebody elsewhere, or bound to folders.
        let elsewhere = get(&caller(2), plan.id.to_string()).await;
        assert!(matches!(elsewhere, Err(Error::NoDocumentHere(_))), "{elsewhere:?}");
        let bound = get(&bound_to_folders(1), plan.id.to_string()).await;
        assert!(matches!(bound, Err(Error::BoundToFolders(_))), "{bound:?}");
        assert!(matches!(get(&stand.caller, "\0".into()).await, Err(Error::NoDocumentHere(_))));
        // A catalog keeps no text; a source that is gone keeps nothing.
        let catalog = Patch { mode: Some(Some(SourceMode::Catalog)), ..Patch::default() };
        stand.sources.update(&stand.caller, &id.to_string(), catalog).await.unwrap();
        let held = get(&stand.caller, plan.id.to_string()).await.unwrap();
        assert!(held.text.is_none() && held.view.is_some(), "{}", stand.engine());
        let located = crate::locations::Locations::new(stand.runner.context.clone());
        let here = vec![stand.caller.workspace.to_string()];
        let found = located.locate(&plan.id.to_string(), &here).await.unwrap();
        assert_eq!(found, (stand.caller.workspace, cairn_chassis::feed::Kind::SourceDocument));
        stand.sources.disconnect(&stand.caller, &id.to_string()).await.unwrap();
        let gone = get(&stand.caller, plan.id.to_string()).await;
        assert!(matches!(gone, Err(Error::NoDocumentHere(_))), "{gone:?}");
        assert!(located.locate(&plan.id.to_string(), &here).await.is_err(), "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_check_stores_nothing_and_answers_also_when_it_is_refused() {
    for stand in listed().await {
        let ok = stand.sources.check(&stand.caller, draft("", Some(SourceMode::Catalog))).await.unwrap();
        assert!(ok.ok && ok.account.as_deref() == Some("reader@shelf.example"), "{ok:?}");
        stand.shelf.fail_next([cairn_providers::Fault::Credentials]);
        let refused = stand.sources.check(&stand.caller, draft("x", None)).await.unwrap();
        assert!(!refused.ok && refused.message.contains("credentials"));
        assert!(stand.sources.list(&stand.caller).await.unwrap().is_empty(), "{}", stand.engine());
    }
}

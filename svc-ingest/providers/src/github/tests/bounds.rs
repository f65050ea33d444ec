//! What must not be lost, and what must not be given, whatever happens while it is read.

use super::*;
use crate::rest::paging;

#[tokio::test]
async fn what_was_not_chosen_is_not_there() {
    let setting = Setting::new().await;
    let fetched = async |repo: Option<&str>, content: &[&str], id: &str| {
        contract::text(&setting.world.call, &*setting.connect_to(repo, content, "live"), id).await
    };
    let issues = ["issues"].as_slice();
    assert_eq!(fetched(Some("app"), issues, "acme/secret#5").await, None, "another repository");
    assert!(fetched(Some("app"), issues, "acme/app#5").await.is_some());
    assert_eq!(fetched(Some("app"), issues, "acme/app#4").await, None, "a pull request");
    assert_eq!(fetched(Some("app"), issues, "README.md").await, None, "a file");
    assert_eq!(fetched(Some("app"), &["files"], "acme/app#5").await, None, "an issue");
    assert!(fetched(Some("app"), &["files"], "README.md").await.is_some());
    assert!(fetched(None, issues, "acme/secret#5").await.is_some(), "all repositories of the owner");
}

#[tokio::test]
async fn a_comment_that_changed_alone_is_read() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    let read = async |id: &str, known: Option<&Version>| {
        let id = ExternalId::new(id).unwrap();
        setting.connect().fetch(&setting.world.call, &id, known).await.unwrap()
    };
    let Fetched::Body(before) = read("acme/app#1", None).await else { panic!("no body") };
    setting.change(1, |issue| issue.comments.push(("Late.".into(), 90)));
    assert!(setting.changes(&from).await.0.present.contains_key("acme/app#1"));
    let Fetched::Body(after) = read("acme/app#1", Some(&before.version)).await else {
        panic!("the old text")
    };
    assert!(String::from_utf8_lossy(&after.bytes).contains("Late."));
    assert_eq!(read("acme/app#1", Some(&after.version)).await, Fetched::Same);
    // A comment that is no later than its issue changes no version.
    let Fetched::Body(second) = read("acme/app#2", None).await else { panic!("no body") };
    assert_eq!(read("acme/app#2", Some(&Version::new(at(2)))).await, Fetched::Same, "{second:?}");
}

#[tokio::test]
async fn an_issue_that_is_written_between_two_pages_hides_no_other() {
    let setting = Setting::new().await;
    let provider = setting.connect_to(Some("app"), &["issues", "pulls"], "indexed");
    let told = paging::read(&setting.world.call, &*provider, None, async |number, page| {
        assert!(number > 1 || paging::ids(page).contains(&"acme/app#1".to_owned()));
        if number == 1 {
            // It goes to the end, and all others one place forward.
            setting.change(1, |issue| issue.minute = 100);
        }
    })
    .await;
    assert_eq!(told.present.len(), 5, "{told:?}");
    // All of one moment: only the link leads on.
    for number in 1..=5 {
        setting.change(number, |issue| issue.minute = 200);
    }
    let told = paging::read(&setting.world.call, &*provider, None, async |_, _| {}).await;
    assert_eq!(told.present.len(), 5, "{told:?}");
}

#[tokio::test]
async fn comments_do_not_say_how_far_issues_were_read() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    setting.change(3, |issue| issue.comments.push(("Late.".into(), 90)));
    let (provider, mut is_done) = (setting.connect(), false);
    let told = paging::read(&setting.world.call, &*provider, Some(&from), async |_, page| {
        // The issues are read, the comments come next.
        if !is_done && matches!(&page.then, Then::More(next) if next.as_str().contains("Comments")) {
            is_done = true;
            setting.change(1, |issue| issue.minute = 50);
        }
    })
    .await;
    assert!(is_done && told.present.contains("acme/app#3"), "{told:?}");
    assert!(!told.present.contains("acme/app#1"), "{told:?}");
    let (seen, _) = setting.changes(&told.next).await;
    assert!(seen.present.contains_key("acme/app#1"), "{seen:?}");
}

#[tokio::test]
async fn a_comment_that_is_written_while_the_first_listing_lasts_is_told_afterwards() {
    let setting = Setting::new().await;
    setting.change(1, |issue| issue.comments.push(("Early.".into(), 1)));
    let told = paging::read(&setting.world.call, &*setting.connect(), None, async |number, _| {
        if number == 1 {
            setting.change(1, |issue| issue.comments[0] = ("Written anew.".into(), 30));
            setting.put(6, "Last", 60);
        }
    })
    .await;
    assert!(told.present.contains("acme/app#6"));
    let (seen, _) = setting.changes(&told.next).await;
    assert!(seen.present.contains_key("acme/app#1"), "{seen:?}");
}

#[tokio::test]
async fn a_repository_of_many_that_cannot_be_read_costs_itself() {
    let setting = Setting::new().await;
    let all = || setting.connect_to(None, &[], "indexed");
    for status in [403, 404, 451] {
        setting.hub.lock().unwrap().closed = Some(status);
        let told = paging::read(&setting.world.call, &*all(), None, async |_, _| {}).await;
        assert!(told.present.contains("acme/app#1") && told.present.contains("app/README.md"));
        let scopes: Vec<Option<&str>> = told.partial.iter().map(|part| part.scope.as_deref()).collect();
        assert_eq!(scopes, [Some("acme/closed#"), Some("closed/")], "{status}");
        setting.put(7, "Newest", 50);
        let changed = paging::read(&setting.world.call, &*all(), Some(&told.next), async |_, _| {}).await;
        assert!(changed.present.contains("acme/app#7"), "{status}");
    }
    // One that was chosen by its name is the whole source.
    let one = setting.connect_to(Some("closed"), &[], "indexed");
    assert_eq!(one.list(&setting.world.call, None).await, Err(Fault::Refused));
}

#[tokio::test]
async fn a_list_of_repositories_that_is_not_whole_proves_nothing() {
    let setting = Setting::new().await;
    let app = json!({"name": "app", "owner": {"login": "acme"}});
    setting.fake.set_mood(Mood::Once(Reply::json(&json!([app, {"name": 7}]))));
    let all = setting.connect_to(None, &[], "indexed");
    let told = paging::read(&setting.world.call, &*all, None, async |_, _| {}).await;
    assert!(told.present.contains("acme/app#1"));
    assert_eq!((told.partial.len(), &told.partial[0].scope), (1, &None));
    // Always another page of repositories.
    let mut place = Place::default();
    place.begin(vec!["app".to_owned()], false);
    assert_eq!((place.partial.len(), &place.partial[0].scope), (1, &None));
}

#[tokio::test]
async fn folders_of_a_cut_tree_that_are_not_remembered_are_spared() {
    let setting = Setting::new().await;
    let names: Vec<String> = (0..200).map(|number| format!("folder-{number:03}/file.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "Text.")).collect();
    setting.commit(&files);
    setting.hub.lock().unwrap().is_truncated = true;
    let provider = setting.connect_to(Some("app"), &["files"], "indexed");
    let told = paging::read(&setting.world.call, &*provider, None, async |_, _| {}).await;
    assert!((1..200).contains(&told.present.len()));
    let is_spared = |name: &String| {
        let mut scopes = told.partial.iter().map(|part| part.scope.as_deref());
        scopes.any(|scope| scope.is_none_or(|scope| name.starts_with(scope)))
    };
    for name in &names {
        assert!(told.present.contains(name) || is_spared(name), "{name} would be removed");
    }
}

#[tokio::test]
async fn a_file_of_a_cut_tree_has_its_own_text() {
    let setting = Setting::new().await;
    setting.commit(&[("src/a.md", "Right."), ("src/src/a.md", "Of another file.")]);
    setting.hub.lock().unwrap().is_truncated = true;
    let provider = setting.connect_to(Some("app"), &["files"], "indexed");
    let told = paging::read(&setting.world.call, &*provider, None, async |_, _| {
        let text = contract::text(&setting.world.call, &*provider, "src/a.md").await;
        assert_eq!(text.as_deref(), Some("Right."));
    })
    .await;
    assert_eq!(told.present.len(), 2);
    for (path, expected) in [("src/a.md", "Right."), ("src/src/a.md", "Of another file.")] {
        assert_eq!(contract::text(&setting.world.call, &*provider, path).await.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_file_by_itself_is_cited_with_its_address_however_large_it_is() {
    let setting = Setting::new().await;
    setting.commit(&[("small.md", "Little."), ("large.md", "Much.")]);
    let provider = setting.connect_to(Some("app"), &["files"], "live");
    for (path, text) in [("small.md", "Little."), ("large.md", "Much.")] {
        let id = ExternalId::new(path).unwrap();
        let Fetched::Body(body) = provider.fetch(&setting.world.call, &id, None).await.unwrap() else {
            panic!("no body")
        };
        assert_eq!(body.bytes, text);
        assert_eq!(body.url, Some(format!("https://github.com/acme/app/blob/feature/x/{path}")));
    }
}

#[tokio::test]
async fn a_tree_that_is_cut_is_read_folder_by_folder() {
    let setting = Setting::new().await;
    setting.hub.lock().unwrap().is_truncated = true;
    let (seen, from) = setting.list().await;
    assert_eq!(
        seen.ids().iter().filter(|id| !id.contains('#')).collect::<Vec<_>>(),
        FILES.iter().collect::<Vec<_>>()
    );
    assert!(seen.partial.is_empty());
    setting.commit(&[("README.md", "Read me.")]);
    let lost = contract::read(&setting.world.call, &|| setting.connect(), Some(&from)).await;
    assert_eq!(lost.unwrap_err(), Fault::PositionLost, "what went is known by a full listing only");
}

#[tokio::test]
async fn a_commit_that_is_no_longer_there_loses_the_place() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    let from = Position::try_from(from.as_str().replace("commit1", "rewritten")).unwrap();
    setting.commit(&[("README.md", "Pushed with force.")]);
    let lost = contract::read(&setting.world.call, &|| setting.connect(), Some(&from)).await;
    assert_eq!(lost.unwrap_err(), Fault::PositionLost);
}

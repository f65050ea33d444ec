use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::blobs::{blob, contents, tree_of};
use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply, WORDS};

mod blobs;
mod bounds;
mod world;

/// A repository `acme/app`, and one without commits, `acme/bare`.
#[derive(Default)]
struct Hub {
    issues: BTreeMap<u64, Thread>,
    commits: Vec<BTreeMap<String, String>>,
    is_truncated: bool,
    /// `/user/repos` has a repository more, which answers with this status.
    closed: Option<u16>,
}

#[derive(Clone)]
struct Thread {
    title: String,
    body: String,
    minute: i64,
    is_pull: bool,
    comments: Vec<(String, i64)>,
}

type Shared = Arc<Mutex<Hub>>;

fn at(minute: i64) -> String {
    Timestamp::from_seconds(1_795_400_000 + 60 * minute).to_rfc3339().replace(".000", "")
}

impl Thread {
    fn json(&self, base: &Url, number: u64) -> Value {
        let mut issue = json!({"id": 9_000 + number, "number": number, "title": self.title, "body": self.body, "state": "open",
            "user": {"login": "alice"}, "labels": [{"name": "bug"}, "old"], "updated_at": at(self.minute),
            "html_url": format!("https://github.com/acme/app/issues/{number}"), "comments": self.comments.len(),
            "repository_url": format!("{base}repos/acme/app")});
        if self.is_pull {
            issue["pull_request"] = json!({});
            issue["comments"] = json!(0);
        }
        issue
    }

    fn comments(&self, number: u64) -> impl Iterator<Item = (i64, Value)> {
        self.comments.iter().map(move |(body, minute)| {
            (*minute, json!({"id": minute, "body": body, "user": {"login": "bob"}, "updated_at": at(*minute), "created_at": at(*minute),
                "issue_url": format!("https://api.github.com/repos/acme/app/issues/{number}")}))
        })
    }
}

fn sha(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..40].to_owned()
}

/// A page of two, with a link to the next one.
fn paged(base: &Url, asked: &Asked, all: &[Value]) -> Reply {
    let page: usize = asked.query("page").map_or(1, |page| page.parse().unwrap());
    let items: Vec<&Value> = all.iter().skip(2 * (page - 1)).take(2).collect();
    let reply = Reply::json(&json!(items));
    if 2 * page >= all.len() {
        return reply;
    }
    let mut next = base.join(&asked.path).unwrap();
    let others = asked.query.iter().filter(|(name, _)| name != "page");
    next.query_pairs_mut().extend_pairs(others).append_pair("page", &(page + 1).to_string());
    reply.header("link", format!("<{base}>; rel=\"first\", <{next}>; rel=\"next\""))
}

fn served(base: &Url, hub: &Shared, asked: &Asked) -> Reply {
    let hub = hub.lock().unwrap();
    if asked.header("authorization") != Some("Bearer ghp_x") {
        return Reply::refusal(401);
    }
    let is_since = |at: &Value| asked.query("since").is_none_or(|since| at.as_str() >= Some(since));
    let parts: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["user"] => Reply::json(&json!({"login": "me"})),
        ["user", "repos"] => {
            let named = |name: &str, owner: &str| json!({"name": name, "owner": {"login": owner}});
            let mut all = vec![named("app", "Acme"), named("bare", "acme"), named("other", "else")];
            all.extend(hub.closed.map(|_| named("closed", "acme")));
            paged(base, asked, &all)
        }
        ["search", "issues"] => {
            let query = asked.query("q").unwrap();
            let is_pull = query.contains("is:pull-request");
            let mut items: Vec<Value> = hub
                .issues
                .iter()
                .filter(|(_, issue)| issue.is_pull == is_pull)
                .map(|(number, issue)| issue.json(base, *number))
                .collect();
            let mut foreign = items[0].clone();
            foreign["repository_url"] = json!(format!("{base}repos/acme/secret"));
            items.insert(0, foreign);
            Reply::json(&json!({"items": items, "incomplete_results": false}))
        }
        ["repos", "acme", "bare"] => {
            Reply::json(&json!({"html_url": "https://github.com/acme/bare", "default_branch": "main"}))
        }
        ["repos", "acme", "closed", ..] => Reply::refusal(hub.closed.unwrap()),
        ["repos", "acme", "secret", "issues", number] => {
            let number = number.parse().unwrap();
            let foreign = json!(format!("{base}repos/acme/secret"));
            Reply::json(&hub.issues[&number].json(base, number)).map_json(|mut issue| {
                issue["repository_url"] = foreign;
                issue
            })
        }
        ["repos", "acme", "bare", "issues"] | ["repos", "acme", "bare", "issues" | "pulls", "comments"] => {
            Reply::json(&json!([]))
        }
        ["repos", "acme", "bare", ..] => Reply::refusal(409),
        ["repos", "acme", "app"] => {
            Reply::json(&json!({"html_url": "https://github.com/acme/app", "default_branch": "feature/x"}))
        }
        ["repos", "acme", "app", "git", "ref", "heads", "feature", "x"] => {
            Reply::json(&json!({"object": {"sha": format!("commit{}", hub.commits.len())}}))
        }
        ["repos", "acme", "app", "git", "trees", tree] => {
            tree_of(&hub, tree, asked.query("recursive").is_some())
        }
        ["repos", "acme", "app", "git", "blobs", wanted] => {
            let found = hub.commits.iter().flat_map(BTreeMap::values).find(|text| sha(text) == *wanted);
            found.map_or(Reply::refusal(404), |text| blob(text))
        }
        ["repos", "acme", "app", "contents", path @ ..] => {
            let path = path.join("/");
            let found = hub.commits.last().and_then(|files| files.get(&path.replace("%20", " ")));
            found.map_or(Reply::refusal(404), |text| contents(&path, text))
        }
        ["repos", "acme", "app", "issues"] => {
            assert_eq!((asked.query("state"), asked.query("direction")), (Some("all"), Some("asc")));
            let mut issues: Vec<(i64, Value)> =
                hub.issues.iter().map(|(number, issue)| (issue.minute, issue.json(base, *number))).collect();
            issues.sort_by_key(|(minute, _)| *minute);
            let issues: Vec<Value> = issues
                .into_iter()
                .map(|(_, issue)| issue)
                .filter(|issue| is_since(&issue["updated_at"]))
                .collect();
            paged(base, asked, &issues)
        }
        ["repos", "acme", "app", kind @ ("issues" | "pulls"), "comments"] => {
            let threads = hub.issues.iter().filter(|(_, issue)| issue.is_pull == (*kind == "pulls"));
            let mut comments: Vec<(i64, Value)> =
                threads.flat_map(|(number, issue)| issue.comments(*number)).collect();
            comments.sort_by_key(|(minute, _)| *minute);
            if asked.query("direction") == Some("desc") {
                comments.reverse();
            }
            let comments: Vec<Value> = comments
                .into_iter()
                .map(|(_, comment)| comment)
                .filter(|comment| is_since(&comment["updated_at"]))
                .collect();
            paged(base, asked, &comments)
        }
        ["repos", "acme", "app", "issues", number] => {
            let number = number.parse().unwrap();
            hub.issues
                .get(&number)
                .map_or(Reply::refusal(410), |issue| Reply::json(&issue.json(base, number)))
        }
        ["repos", "acme", "app", kind, number, "comments"] => {
            let number = number.parse().unwrap();
            let issue = &hub.issues[&number];
            let is_of_kind = issue.is_pull == (*kind == "pulls");
            let comments: Vec<Value> =
                issue.comments(number).map(|(_, comment)| comment).filter(|_| is_of_kind).collect();
            paged(base, asked, &comments)
        }
        _ => Reply::refusal(404),
    }
}

struct Setting {
    world: Caller,
    fake: Fake,
    hub: Shared,
}

impl Setting {
    async fn new() -> Self {
        let hub = Shared::default();
        let behind = Arc::clone(&hub);
        let fake = Fake::start(|base| {
            let base = base.clone();
            move |asked: &Asked| served(&base, &behind, asked)
        })
        .await;
        let setting = Self { world: Caller::new(), fake, hub };
        for number in 1..=5 {
            setting.put(number, &format!("Title {number}"), i64::try_from(number).unwrap());
        }
        setting.change(2, |issue| issue.comments.push(("A remark.".into(), 2)));
        setting.change(4, |issue| issue.is_pull = true);
        setting.commit(&[
            ("README.md", "Read me."),
            ("docs/a b.md", "Deep."),
            ("src/main.rs", "fn main() {}"),
        ]);
        setting
    }

    fn put(&self, number: u64, title: &str, minute: i64) {
        let thread = Thread {
            title: title.into(),
            body: format!("Body of {title}"),
            minute,
            is_pull: false,
            comments: Vec::new(),
        };
        self.hub.lock().unwrap().issues.insert(number, thread);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Thread)) {
        change(self.hub.lock().unwrap().issues.get_mut(&number).unwrap());
    }

    fn commit(&self, files: &[(&str, &str)]) {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        self.hub.lock().unwrap().commits.push(files);
    }

    fn connect_to(&self, repo: Option<&str>, content: &[&str], mode: &str) -> Box<dyn Provider> {
        let settings =
            json!({"owner": "acme", "repo": repo, "content": content, "baseUrl": self.fake.base().as_str()});
        self.world.connect(ProviderKind::Github, &settings, &json!({"token": "ghp_x"}), mode)
    }

    fn connect(&self) -> Box<dyn Provider> {
        self.connect_to(Some("app"), &[], "indexed")
    }

    async fn list(&self) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), None).await.unwrap()
    }

    async fn changes(&self, from: &Position) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), Some(from)).await.unwrap()
    }

    async fn text(&self, id: &str) -> Option<String> {
        contract::text(&self.world.call, &*self.connect(), id).await
    }
}

const FILES: [&str; 3] = ["README.md", "docs/a b.md", "src/main.rs"];

#[tokio::test]
async fn everything_is_listed_page_by_page_by_whichever_process() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    let issues = ["acme/app#1", "acme/app#2", "acme/app#3", "acme/app#4", "acme/app#5"];
    assert_eq!(seen.ids(), [&FILES[..1], &issues, &FILES[1..]].concat());
    assert_eq!(seen.present["acme/app#2"], "#2 Title 2");
    assert_eq!((seen.partial.len(), seen.faults.len(), seen.gone.len()), (0, 0, 0));
    assert!(seen.pages > 3);
    for (content, count) in [(&["issues"][..], 4), (&["pulls"], 1), (&["files"], 3)] {
        let some = || setting.connect_to(Some("app"), content, "indexed");
        assert_eq!(contract::read(&setting.world.call, &some, None).await.unwrap().0.present.len(), count);
    }
}

#[tokio::test]
async fn bodies_hold_the_comments_and_files_their_bytes() {
    let setting = Setting::new().await;
    setting.change(4, |pull| pull.comments.push(("Why this?".into(), 4)));
    let text = setting.text("acme/app#2").await.unwrap();
    let expected =
        "# Title 2\n\nIssue #2 by alice, open. Labels: bug, old.\n\nBody of Title 2\n\n## Comment by bob, ";
    assert!(text.starts_with(expected) && text.ends_with("\n\nA remark.\n"), "{text}");
    assert!(setting.text("acme/app#4").await.unwrap().contains("Why this?"));
    assert_eq!(setting.text("docs/a b.md").await.as_deref(), Some("Deep."));
    for gone in ["acme/app#99", "docs/none.md", "acme/app#x"] {
        assert_eq!(setting.text(gone).await, None, "{gone}");
    }
    let provider = setting.connect();
    provider.list(&setting.world.call, None).await.unwrap();
    let id = ExternalId::new("acme/app#1").unwrap();
    let Fetched::Body(body) = provider.fetch(&setting.world.call, &id, None).await.unwrap() else {
        panic!("no body")
    };
    assert_eq!(provider.fetch(&setting.world.call, &id, Some(&body.version)).await, Ok(Fetched::Same));
}

#[tokio::test]
async fn a_listing_brings_what_needs_no_further_request_unless_nothing_is_kept() {
    let setting = Setting::new().await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let bodies = |page: &Page| -> Vec<bool> {
        let entries = page.items.iter().map(|item| match item {
            Item::Present(entry) => entry.body.is_some(),
            Item::Gone(_) => false,
        });
        entries.collect()
    };
    assert_eq!(bodies(&page), [true, false]);
    let catalog = setting.connect_to(Some("app"), &[], "catalog");
    assert_eq!(bodies(&catalog.list(&setting.world.call, None).await.unwrap()), [false, false]);
    let Item::Present(first) = &page.items[0] else { panic!("gone") };
    let brought = String::from_utf8(first.body.as_ref().unwrap().bytes.to_vec()).unwrap();
    assert_eq!(setting.text("acme/app#1").await.unwrap(), brought);
}

#[tokio::test]
async fn changes_are_what_changed_and_files_that_went() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    let (unchanged, from) = setting.changes(&from).await;
    assert!(unchanged.present.len() <= 3 && unchanged.gone.is_empty(), "the overlap: {unchanged:?}");

    setting.put(6, "New", 100);
    setting.change(1, |issue| issue.minute = 101);
    // A remark that the issue's own time does not tell.
    setting.change(3, |issue| issue.comments.push(("Late.".into(), 102)));
    setting.change(4, |pull| pull.comments.push(("Reviewed.".into(), 103)));
    setting.commit(&[("README.md", "Read me again."), ("src/main.rs", "fn main() {}"), ("new.md", "New.")]);
    let (seen, from) = setting.changes(&from).await;
    for id in ["acme/app#1", "acme/app#3", "acme/app#4", "acme/app#6", "README.md", "new.md"] {
        assert!(seen.present.contains_key(id), "{id}: {seen:?}");
    }
    assert!(!seen.present.contains_key("src/main.rs") && !seen.present.contains_key("acme/app#2"));
    assert_eq!(seen.gone.iter().collect::<Vec<_>>(), ["docs/a b.md"]);

    let (again, _) = setting.changes(&from).await;
    assert!(!again.present.contains_key("acme/app#5") && again.gone.is_empty(), "the overlap: {again:?}");
}

#[tokio::test]
async fn an_issue_that_was_deleted_is_missing_from_a_complete_listing() {
    let setting = Setting::new().await;
    setting.hub.lock().unwrap().issues.remove(&3);
    let (seen, _) = setting.list().await;
    assert!(!seen.present.contains_key("acme/app#3") && seen.partial.is_empty());
}

#[tokio::test]
async fn all_repositories_of_an_owner_are_read_one_after_another() {
    let setting = Setting::new().await;
    let all = || setting.connect_to(None, &[], "indexed");
    let (seen, from) = contract::read(&setting.world.call, &all, None).await.unwrap();
    assert!(
        seen.present.contains_key("acme/app#1") && seen.present.contains_key("app/docs/a b.md"),
        "{seen:?}"
    );
    assert!(seen.ids().iter().all(|id| !id.contains("other")), "another owner's");
    assert_eq!(
        contract::text(&setting.world.call, &*all(), "app/README.md").await.as_deref(),
        Some("Read me.")
    );
    setting.put(7, "Newest", 50);
    let (changed, _) = contract::read(&setting.world.call, &all, Some(&from)).await.unwrap();
    assert!(changed.present.contains_key("acme/app#7"));
}

#[tokio::test]
async fn a_search_stays_in_its_repository() {
    let setting = Setting::new().await;
    let provider = setting.connect_to(Some("app"), &[], "live");
    let found = provider.search(&setting.world.call, "login repo:acme/secret \"x\"", 3).await.unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|entry| entry.id.as_str().starts_with("acme/app#")));
    assert_eq!(found[1].id.as_str(), "acme/app#4", "pull requests take turns");
    let asked = setting.fake.take_asked();
    assert_eq!(asked[0].query("q"), Some("login repo acme/secret x repo:acme/app is:issue"));
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let setting = Setting::new().await;
    let connect = || setting.connect();
    let primary =
        Reply::refusal(403).header("x-ratelimit-remaining", "0").header("x-ratelimit-reset", "1795436000");
    let secondary =
        Reply::with(403, "application/json", r#"{"message": "You have exceeded a secondary rate limit."}"#);
    for limit in [primary, secondary, Reply::refusal(429).header("retry-after", "30")] {
        contract::keeps_limits(&setting.world, &setting.fake, &connect, limit).await;
    }
    contract::tells_wrong_credentials(&setting.world, &setting.fake, &connect, Reply::refusal(401)).await;
    contract::can_be_cancelled(&setting.world, &setting.fake, &connect).await;
    contract::loses_odd_positions(&setting.world, &*connect()).await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "acme/app#1",
        contract::Service::Addresses,
    )
    .await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "README.md",
        contract::Service::Addresses,
    )
    .await;
    setting.fake.set_mood(Mood::Always(Reply::refusal(403)));
    assert_eq!(
        connect().list(&setting.world.call, None).await,
        Err(Fault::Forbidden),
        "no access is no limit"
    );
}

#[tokio::test]
async fn an_issue_that_cannot_be_read_costs_itself_and_a_time_without_zone_is_told() {
    let setting = Setting::new().await;
    let good = setting.hub.lock().unwrap().issues[&1].json(setting.fake.base(), 1);
    let mut zoneless = good.clone();
    (zoneless["updated_at"], zoneless["number"]) = (json!("2026-11-20 12:00:00"), json!(8));
    let odd = json!([good, zoneless, {"id": 5, "title": WORDS}, 7]);
    setting.fake.set_mood(Mood::Once(Reply::json(&odd)));
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 3));
    assert!(page.faults[0].reason.contains("time zone"));
}

#[tokio::test]
async fn a_next_page_elsewhere_gets_no_credentials() {
    let setting = Setting::new().await;
    let elsewhere = Reply::json(&json!([])).header("link", "<https://evil.example/>; rel=\"next\"");
    setting.fake.set_mood(Mood::Once(elsewhere));
    assert!(matches!(setting.connect().list(&setting.world.call, None).await, Err(Fault::Broken(_))));
    let (_, from) = setting.list().await;
    let text = from
        .as_str()
        .replace("\"Begin\"", "{\"Issues\":{\"page\":\"https://evil.example/\"}}")
        .replace("\"queue\":null", "\"queue\":[\"app\"]");
    let forged = Position::try_from(text).unwrap();
    assert_eq!(setting.connect().list(&setting.world.call, Some(&forged)).await, Err(Fault::PositionLost));
}

#[tokio::test]
async fn a_check_tells_whose_token_it_is() {
    let setting = Setting::new().await;
    let account = setting.connect().check(&setting.world.call).await.unwrap();
    assert_eq!(account.name.as_deref(), Some("me"));
    let none = setting.connect_to(Some("none"), &[], "indexed");
    assert_eq!(none.check(&setting.world.call).await, Err(Fault::Gone));
}

#[tokio::test]
async fn settings_are_checked_all_at_once() {
    let world = Caller::new();
    let settings = json!({"owner": "a/b", "content": ["wiki"], "baseUrl": "ftp://x", "repository": "x"});
    let violations = world.violations(ProviderKind::Github, &settings, &json!({}));
    let expected = [
        "settings.content[0] invalid_value",
        "settings.baseUrl invalid_url",
        "settings.owner invalid_value",
        "settings.repository unknown_field",
        "credentials.token required",
    ];
    assert_eq!(violations, expected);
}

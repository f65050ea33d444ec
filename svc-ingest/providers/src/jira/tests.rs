use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};

#[derive(Default)]
struct Site {
    issues: BTreeMap<u32, Ticket>,
}

#[derive(Clone, Default)]
struct Ticket {
    project: &'static str,
    text: String,
    minute: i64,
    comments: Vec<String>,
}

type Shared = Arc<Mutex<Site>>;

const START: i64 = 1_795_400_040;

fn millis(minute: i64) -> i64 {
    (START + 60 * minute) * 1_000
}

fn document(text: &str) -> Value {
    json!({"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]})
}

impl Ticket {
    fn json(&self, id: u32, fields: &[String]) -> Value {
        // Jira writes its offset without a colon.
        let updated = Timestamp::from_micros(millis(self.minute) * 1_000).to_rfc3339().replace('Z', "+0000");
        let comments: Vec<Value> = self.comments(0, 2);
        let all = json!({"summary": format!("Title {id}"), "updated": updated, "description": document(&self.text),
            "status": {"name": "Open"}, "labels": ["bug"], "comment": {"comments": comments, "total": self.comments.len()}});
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|name| (name.clone(), all[name].clone())).collect();
        json!({"id": id.to_string(), "key": format!("{}-{id}", self.project), "fields": fields})
    }

    fn comments(&self, from: usize, most: usize) -> Vec<Value> {
        let some = self.comments.iter().skip(from).take(most);
        some.map(|text| json!({"author": {"displayName": "Ada"}, "body": document(text), "created": "2026-11-20T12:00:00.000+0000"})).collect()
    }
}

fn searched(site: &Site, body: &Value) -> Reply {
    let query = body["jql"].as_str().unwrap();
    let (conditions, order) = query.split_once(" ORDER BY ").unwrap();
    let since = conditions
        .split_once("updated >= ")
        .map_or(0, |(_, millis)| millis.parse::<i64>().expect("milliseconds"));
    let words = conditions.split_once("text ~ \"").map(|(_, words)| words.trim_end_matches('"'));
    let mut found: Vec<(&u32, &Ticket)> = site
        .issues
        .iter()
        .filter(|(_, issue)| millis(issue.minute) >= since)
        .filter(|(_, issue)| {
            !conditions.contains("project in") || conditions.contains(&format!("\"{}\"", issue.project))
        })
        .filter(|(_, issue)| words.is_none_or(|words| issue.text.contains(words)))
        .collect();
    match order {
        "id ASC" => {}
        "updated ASC" => found.sort_by_key(|(_, issue)| issue.minute),
        "updated DESC" => found.sort_by_key(|(_, issue)| -issue.minute),
        other => panic!("{other}"),
    }
    let Ok(from) = body["nextPageToken"].as_str().map_or(Ok(0), str::parse::<usize>) else {
        return Reply::refusal(400);
    };
    let size = usize::try_from(body["maxResults"].as_u64().unwrap()).unwrap().min(2);
    let fields: Vec<String> = serde_json::from_value(body["fields"].clone()).unwrap();
    let next = (from + size < found.len()).then(|| (from + size).to_string());
    let issues: Vec<Value> =
        found.into_iter().skip(from).take(size).map(|(id, issue)| issue.json(*id, &fields)).collect();
    Reply::json(&json!({"issues": issues, "nextPageToken": next, "isLast": next.is_none()}))
}

fn served(site: &Shared, asked: &Asked) -> Reply {
    let site = site.lock().unwrap();
    let is_known = asked.header("authorization") == Some("Basic YWRhQGFjbWUuZXhhbXBsZTp0LXg=");
    let parts: Vec<&str> = asked.path.trim_start_matches("/rest/api/3/").split('/').collect();
    match parts.as_slice() {
        // As the service does it.
        ["search", "jql"] if !is_known => Reply::json(&json!({"issues": [], "isLast": true})),
        _ if !is_known => Reply::refusal(401),
        ["myself"] => Reply::json(&json!({"emailAddress": "ada@acme.example", "displayName": "Ada"})),
        ["search", "jql"] => searched(&site, &asked.json()),
        ["issue", id, rest @ ..] => {
            let Some((id, issue)) = id.parse().ok().and_then(|id: u32| Some((id, site.issues.get(&id)?)))
            else {
                return Reply::refusal(404);
            };
            if rest == ["comment"] {
                let from = asked.query("startAt").unwrap().parse().unwrap();
                return Reply::json(
                    &json!({"comments": issue.comments(from, 2), "total": issue.comments.len()}),
                );
            }
            let fields: Vec<String> = asked.query("fields").unwrap().split(',').map(str::to_owned).collect();
            Reply::json(&issue.json(id, &fields))
        }
        _ => Reply::refusal(404),
    }
}

struct Setting {
    world: Caller,
    fake: Fake,
    site: Shared,
}

impl Setting {
    async fn new() -> Self {
        let site = Shared::default();
        let behind = Arc::clone(&site);
        let fake = Fake::start(|_| move |asked: &Asked| served(&behind, asked)).await;
        let setting = Self { world: Caller::new(), fake, site };
        for (number, id) in (1..).zip(1..=4) {
            setting.put(id, if id == 4 { "OPS" } else { "ENG" }, 10 * number);
        }
        setting
    }

    fn put(&self, id: u32, project: &'static str, minute: i64) {
        let issue = Ticket { project, text: format!("Body of {id}"), minute, comments: Vec::new() };
        self.site.lock().unwrap().issues.insert(id, issue);
    }

    fn change(&self, id: u32, change: impl FnOnce(&mut Ticket)) {
        change(self.site.lock().unwrap().issues.get_mut(&id).unwrap());
    }

    fn connect_as(&self, projects: &[&str], token: &str, mode: &str) -> Box<dyn Provider> {
        let settings = json!({"site": self.fake.base().as_str(), "projects": projects});
        let credentials = json!({"email": "ada@acme.example", "token": token});
        self.world.connect(ProviderKind::Jira, &settings, &credentials, mode)
    }

    fn connect(&self) -> Box<dyn Provider> {
        self.connect_as(&[], "t-x", "indexed")
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

#[async_trait]
impl contract::World for Setting {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect()
    }

    fn names(&self) -> Vec<String> {
        (1..=25).map(|id| id.to_string()).collect()
    }

    async fn put(&self, name: &str, text: &str) {
        let mut site = self.site.lock().unwrap();
        let last = site.issues.values().map(|issue| issue.minute).max().unwrap_or_default();
        let issue = Ticket { project: "ENG", text: text.to_owned(), minute: last + 1, comments: Vec::new() };
        site.issues.insert(name.parse().unwrap(), issue);
    }

    async fn remove(&self, name: &str) {
        self.site.lock().unwrap().issues.remove(&name.parse().unwrap());
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }

    async fn limit(&self) -> bool {
        self.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn refuse(&self) -> bool {
        self.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        "t-x"
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let setting = Setting::new().await;
    *setting.site.lock().unwrap() = Site::default();
    contract::holds(&setting).await;
}

#[tokio::test]
async fn issues_are_listed_and_read_with_all_their_comments() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    assert_eq!(seen.ids(), ["1", "2", "3", "4"]);
    assert_eq!(seen.present["2"], "ENG-2 Title 2");
    let ops = || setting.connect_as(&["OPS"], "t-x", "indexed");
    assert_eq!(contract::read(&setting.world.call, &ops, None).await.unwrap().0.ids(), ["4"]);
    assert_eq!(
        setting.text("1").await.as_deref(),
        Some("# ENG-1 Title 1\n\nStatus: Open. Labels: bug.\n\nBody of 1\n")
    );
    setting.change(1, |issue| issue.comments = ["One.", "Two.", "Three."].map(str::to_owned).to_vec());
    let text = setting.text("1").await.unwrap();
    assert!(
        text.ends_with("## Comment by Ada, 2026-11-20T12:00:00.000+0000\n\nThree.\n")
            && text.contains("One."),
        "{text}"
    );
    assert_eq!(setting.text("99").await, None);
}

#[tokio::test]
async fn a_listing_brings_bodies_unless_nothing_is_kept() {
    let setting = Setting::new().await;
    let brings = async |mode: &str| {
        let page = setting.connect_as(&[], "t-x", mode).list(&setting.world.call, None).await.unwrap();
        let Item::Present(entry) = &page.items[0] else { panic!("gone") };
        entry.clone()
    };
    let entry = brings("indexed").await;
    let body = entry.body.unwrap();
    assert_eq!(String::from_utf8(body.bytes.to_vec()).unwrap(), setting.text("1").await.unwrap());
    assert_eq!(entry.url, Some(setting.fake.base().join("browse/ENG-1").unwrap().into()));
    assert!(brings("catalog").await.body.is_none());
    let same = setting.connect().fetch(&setting.world.call, &entry.id, Some(&entry.version)).await;
    assert_eq!(same, Ok(Fetched::Same));
}

#[tokio::test]
async fn changes_are_what_was_written_since_whatever_the_zone_of_the_account() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    setting.put(5, "ENG", 100);
    setting.change(1, |issue| issue.minute = 101);
    setting.fake.take_asked();
    let (seen, from) = setting.changes(&from).await;
    assert!(
        seen.present.contains_key("5") && seen.present.contains_key("1") && !seen.present.contains_key("2"),
        "{seen:?}"
    );
    let expected = format!("updated >= {} ORDER BY updated ASC", millis(40) - 120_000);
    assert_eq!(setting.fake.take_asked()[0].json()["jql"], expected);
    let (again, _) = setting.changes(&from).await;
    assert_eq!(again.ids(), ["1", "5"], "the overlap");
    setting.site.lock().unwrap().issues.remove(&3);
    let (seen, _) = setting.list().await;
    assert!(!seen.present.contains_key("3") && seen.partial.is_empty());
}

#[tokio::test]
async fn nothing_with_good_credentials_is_nothing_and_with_wrong_ones_is_told() {
    let setting = Setting::new().await;
    let wrong = setting.connect_as(&[], "wrong", "indexed");
    assert_eq!(wrong.list(&setting.world.call, None).await, Err(Fault::Credentials));
    assert_eq!(wrong.check(&setting.world.call).await, Err(Fault::Credentials));
    let (_, from) = setting.list().await;
    assert_eq!(wrong.changes(&setting.world.call, &from).await, Err(Fault::Credentials));
    setting.site.lock().unwrap().issues.clear();
    let (seen, from) = setting.list().await;
    assert!(seen.present.is_empty() && seen.partial.is_empty());
    setting.put(9, "ENG", 1);
    assert_eq!(setting.changes(&from).await.0.ids(), ["9"]);
}

#[tokio::test]
async fn an_issue_of_another_project_is_not_there() {
    let setting = Setting::new().await;
    let text = async |projects: &[&str], id: &str| {
        contract::text(&setting.world.call, &*setting.connect_as(projects, "t-x", "live"), id).await
    };
    assert!(text(&["eng"], "1").await.is_some());
    assert_eq!(text(&["ENG"], "4").await, None);
    assert!(text(&["ENG", "OPS"], "4").await.is_some());
}

#[tokio::test]
async fn credentials_that_end_within_a_listing_are_told() {
    let setting = Setting::new().await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    let revoked = setting.connect_as(&[], "revoked", "indexed");
    assert_eq!(revoked.list(&setting.world.call, Some(&next)).await, Err(Fault::Credentials));
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let setting = Setting::new().await;
    let connect = || setting.connect();
    contract::keeps_limits(
        &setting.world,
        &setting.fake,
        &connect,
        Reply::refusal(429).header("retry-after", "30"),
    )
    .await;
    contract::tells_wrong_credentials(&setting.world, &setting.fake, &connect, Reply::refusal(401)).await;
    contract::can_be_cancelled(&setting.world, &setting.fake, &connect).await;
    contract::loses_odd_positions(&setting.world, &*connect()).await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "1",
        contract::Service::Addresses,
    )
    .await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    setting.fake.set_mood(Mood::Once(Reply::refusal(400)));
    assert_eq!(
        setting.connect().list(&setting.world.call, Some(&next)).await,
        Err(Fault::PositionLost),
        "after seven days"
    );
}

#[tokio::test]
async fn issues_that_cannot_be_read_cost_themselves() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    let fields = BODY_FIELDS.map(str::to_owned);
    let good = Ticket::default().json(1, &fields);
    let mut zoneless = Ticket::default().json(2, &fields);
    zoneless["fields"]["updated"] = json!("2026-11-20T12:00:00.000");
    let mut long = good.clone();
    long["id"] = json!("9".repeat(10_000));
    setting
        .fake
        .set_mood(Mood::Once(Reply::json(&json!({"issues": [good, zoneless, long, 7], "isLast": true}))));
    let page = setting.connect().changes(&setting.world.call, &from).await.unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 3));
}

#[tokio::test]
async fn a_search_quotes_its_words_and_settings_are_checked_all_at_once() {
    let setting = Setting::new().await;
    let found = setting.connect().search(&setting.world.call, "Body of 2", 5).await.unwrap();
    assert_eq!((found.len(), found[0].title.as_str()), (1, "ENG-2 Title 2"));
    setting.fake.take_asked();
    setting.connect().search(&setting.world.call, "a\" OR project = \"SECRET\\", 5).await.unwrap();
    let asked = setting.fake.take_asked();
    assert_eq!(asked[0].json()["jql"], "text ~ \"a OR project SECRET\" ORDER BY updated DESC");
    let account = setting.connect().check(&setting.world.call).await.unwrap();
    assert_eq!(account.name.as_deref(), Some("ada@acme.example"));
    let violations = setting.world.violations(
        ProviderKind::Jira,
        &json!({"projects": ["a\") OR (1=1"]}),
        &json!({"email": "x"}),
    );
    assert_eq!(
        violations,
        ["settings.site required", "settings.projects[0] invalid_value", "credentials.token required"]
    );
}

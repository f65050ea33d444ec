use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};
use crate::rest::paging;

#[derive(Default)]
struct Team {
    issues: BTreeMap<String, Ticket>,
    documents: BTreeMap<String, Ticket>,
}

#[derive(Clone, Default)]
struct Ticket {
    text: String,
    minute: i64,
    is_in_trash: bool,
    comments: Vec<(String, i64)>,
}

type Shared = Arc<Mutex<Team>>;

fn at(minute: i64) -> String {
    Timestamp::from_seconds(1_795_400_000 + 60 * minute).to_rfc3339()
}

impl Ticket {
    fn json(&self, id: &str) -> Value {
        json!({"id": id, "identifier": format!("ENG-{}", id.len()), "title": format!("Title {id}"), "updatedAt": at(self.minute),
            "trashed": self.is_in_trash.then_some(true), "url": format!("https://linear.app/acme/issue/{id}"),
            "description": self.text, "state": {"name": "Todo"}, "labels": {"nodes": [{"name": "bug"}]}, "creator": {"name": "Ada"}})
    }

    fn document(&self, id: &str) -> Value {
        json!({"id": id, "title": format!("Title {id}"), "content": self.text, "updatedAt": at(self.minute),
            "trashed": self.is_in_trash.then_some(true), "url": format!("https://linear.app/acme/document/{id}")})
    }
}

fn refused(status: u16, code: &str, message: &str) -> Reply {
    let errors = json!({"errors": [{"message": message, "extensions": {"code": code}}]});
    Reply::with(status, "application/json", errors.to_string())
}

fn paged(variables: &Value, mut all: Vec<Value>) -> Reply {
    let since = variables["filter"]["updatedAt"]["gte"].as_str().unwrap_or_default();
    all.retain(|node| node["updatedAt"].as_str().unwrap() >= since);
    // They were made in the order of their ids.
    if variables["order"] != "createdAt" {
        all.sort_by_key(|node| std::cmp::Reverse(node["updatedAt"].as_str().unwrap().to_owned()));
    }
    let Ok(from) = variables["after"].as_str().map_or(Ok(0), str::parse::<usize>) else {
        return refused(400, "INVALID_INPUT", "cursor");
    };
    let next = (from + 2 < all.len()).then(|| (from + 2).to_string());
    let nodes: Vec<Value> = all.into_iter().skip(from).take(2).collect();
    Reply::json(&json!({"nodes": nodes, "pageInfo": {"hasNextPage": next.is_some(), "endCursor": next}}))
}

fn under(name: &str, reply: Reply) -> Reply {
    reply.map_json(
        |value| if value.get("errors").is_some() { value } else { json!({ "data": { name: value } }) },
    )
}

fn served(team: &Shared, asked: &Asked) -> Reply {
    let team = team.lock().unwrap();
    assert_eq!(asked.path, "/graphql");
    if asked.header("authorization") != Some("lin_api_x") {
        return refused(400, "AUTHENTICATION_ERROR", crate::rest::fake::WORDS);
    }
    let body = asked.json();
    let (query, variables) = (body["query"].as_str().unwrap(), &body["variables"]);
    let id = variables["id"].as_str().unwrap_or_default();
    let name = query.split_whitespace().nth(1).unwrap().split('(').next().unwrap();
    match name {
        "Viewer" => Reply::json(
            &json!({"data": {"viewer": {"email": "ada@acme.example"}, "organization": {"name": "Acme"}}}),
        ),
        "Latest" => {
            let newest = |minutes: Vec<i64>| {
                let nodes: Vec<Value> = minutes
                    .into_iter()
                    .max()
                    .map(|minute| json!({"updatedAt": at(minute)}))
                    .into_iter()
                    .collect();
                json!({ "nodes": nodes })
            };
            let comments = team.issues.values().flat_map(|issue| &issue.comments);
            Reply::json(&json!({"data": {
                "issues": newest(team.issues.values().map(|issue| issue.minute).collect()),
                "comments": newest(comments.map(|(_, minute)| *minute).collect()),
                "documents": newest(team.documents.values().map(|one| one.minute).collect())}}))
        }
        "Issues" => {
            under("issues", paged(variables, team.issues.iter().map(|(id, issue)| issue.json(id)).collect()))
        }
        "Documents" => under(
            "documents",
            paged(variables, team.documents.iter().map(|(id, one)| one.document(id)).collect()),
        ),
        "Comments" => {
            let all = team.issues.iter().flat_map(|(id, issue)| {
                issue
                    .comments
                    .iter()
                    .map(|(_, minute)| json!({"id": "c", "updatedAt": at(*minute), "issue": issue.json(id)}))
            });
            under("comments", paged(variables, all.collect()))
        }
        "Issue" => match team.issues.get(id) {
            None => refused(200, "INPUT_ERROR", "Entity not found: Issue"),
            Some(issue) => {
                let mut found = issue.json(id);
                let comments = issue.comments.iter().map(|(body, minute)| {
                    json!({"body": body, "createdAt": at(*minute), "updatedAt": at(*minute), "user": {"name": "Bob"}})
                });
                let reply = paged(variables, comments.collect());
                reply.map_json(|comments| {
                    found["comments"] = comments;
                    json!({ "data": { "issue": found } })
                })
            }
        },
        "Document" => match team.documents.get(id) {
            None => refused(200, "INPUT_ERROR", "Entity not found: Document"),
            Some(one) => Reply::json(&json!({"data": {"document": one.document(id)}})),
        },
        "Search" => {
            let term = variables["term"].as_str().unwrap();
            let found = team.issues.iter().filter(|(_, issue)| issue.text.contains(term));
            under("searchIssues", paged(&json!({}), found.map(|(id, issue)| issue.json(id)).collect()))
        }
        other => panic!("{other}"),
    }
}

struct Setting {
    world: Caller,
    fake: Fake,
    team: Shared,
}

impl Setting {
    async fn new() -> Self {
        let team = Shared::default();
        let behind = Arc::clone(&team);
        let fake = Fake::start(|_| move |asked: &Asked| served(&behind, asked)).await;
        let setting = Self { world: Caller::new(), fake, team };
        for (minute, id) in (1..).zip(["i1", "i22", "i333"]) {
            setting.put(id, minute);
        }
        let document = Ticket { text: "Plan of the year".into(), minute: 2, ..Ticket::default() };
        setting.team.lock().unwrap().documents.insert("d1".into(), document);
        setting
    }

    fn put(&self, id: &str, minute: i64) {
        let issue = Ticket { text: format!("Body of {id}"), minute, ..Ticket::default() };
        self.team.lock().unwrap().issues.insert(id.to_owned(), issue);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Ticket)) {
        change(self.team.lock().unwrap().issues.get_mut(id).unwrap());
    }

    fn connect(&self) -> Box<dyn Provider> {
        let settings = json!({"baseUrl": self.fake.base().as_str()});
        self.world.connect(ProviderKind::Linear, &settings, &json!({"token": "lin_api_x"}), "indexed")
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

    async fn put(&self, name: &str, text: &str) {
        let mut team = self.team.lock().unwrap();
        let last = team.issues.values().map(|issue| issue.minute).max().unwrap_or_default();
        let issue = Ticket { text: text.to_owned(), minute: last + 1, ..Ticket::default() };
        team.issues.insert(name.to_owned(), issue);
    }

    async fn remove(&self, name: &str) {
        self.team.lock().unwrap().issues.remove(name);
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
        "lin_api_x"
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let setting = Setting::new().await;
    *setting.team.lock().unwrap() = Team::default();
    contract::holds(&setting).await;
}

#[tokio::test]
async fn issues_and_documents_are_listed_and_read_with_comments() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    assert_eq!(seen.ids(), ["d1", "i1", "i22", "i333"]);
    assert_eq!(seen.present["i22"], "ENG-3 Title i22");
    assert!(seen.partial.is_empty());
    for (number, word) in ["One.", "Two.", "Three."].into_iter().enumerate() {
        setting.change("i1", |issue| issue.comments.push((word.into(), i64::try_from(number).unwrap())));
    }
    let text = setting.text("i1").await.unwrap();
    assert!(
        text.starts_with("# ENG-2 Title i1\n\nIssue by Ada, Todo. Labels: bug.\n\nBody of i1\n"),
        "{text}"
    );
    assert!(
        ["One.", "Two.", "Three."].iter().all(|word| text.contains(word)),
        "all pages of comments: {text}"
    );
    assert_eq!(setting.text("d1").await.as_deref(), Some("# Title d1\n\nPlan of the year\n"));
    assert_eq!(setting.text("none").await, None);
}

#[tokio::test]
async fn changes_are_what_was_written_and_what_went_to_the_trash() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    setting.put("i4444", 100);
    setting.change("i1", |issue| issue.comments.push(("Late.".into(), 101)));
    setting.change("i22", |issue| (issue.minute, issue.is_in_trash) = (102, true));
    setting.team.lock().unwrap().documents.get_mut("d1").unwrap().minute = 103;
    let (seen, from) = setting.changes(&from).await;
    for id in ["i4444", "i1", "d1"] {
        assert!(seen.present.contains_key(id), "{id}: {seen:?}");
    }
    assert_eq!(seen.gone.iter().collect::<Vec<_>>(), ["i22"]);
    let (again, _) = setting.changes(&from).await;
    assert_eq!(again.ids(), ["d1", "i1"], "the overlap");
    setting.team.lock().unwrap().issues.remove("i1");
    let (seen, _) = setting.list().await;
    assert!(!seen.present.contains_key("i1") && seen.partial.is_empty(), "purged");
}

#[tokio::test]
async fn nothing_is_lost_that_is_written_while_it_is_listed() {
    let setting = Setting::new().await;
    let provider = setting.connect();
    let told = paging::read(&setting.world.call, &*provider, None, async |number, page| {
        if number == 1 {
            // It was not reached yet, and is the latest now.
            let mut unread = ["i1", "i22", "i333"].iter();
            let unread = unread.find(|id| !paging::ids(page).contains(&(**id).to_owned())).unwrap();
            setting.change(unread, |issue| issue.minute = 50);
        }
    })
    .await;
    assert_eq!(told.present.len(), 4, "{told:?}");

    let told = paging::read(&setting.world.call, &*provider, None, async |_, page| {
        // The issues are read, the documents come next.
        if matches!(&page.then, Then::More(next) if next.as_str().contains("Documents")) {
            setting.change("i1", |issue| issue.minute = 100);
            setting.team.lock().unwrap().documents.get_mut("d1").unwrap().minute = 110;
        }
    })
    .await;
    let (seen, _) = setting.changes(&told.next).await;
    assert!(seen.present.contains_key("i1"), "{seen:?}");
}

#[tokio::test]
async fn the_version_of_a_body_is_that_of_the_listing() {
    let setting = Setting::new().await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Item::Present(entry) = &page.items[0] else { panic!("gone") };
    let known = setting.connect().fetch(&setting.world.call, &entry.id, Some(&entry.version)).await;
    assert_eq!(known, Ok(Fetched::Same));
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let setting = Setting::new().await;
    let connect = || setting.connect();
    for limit in [refused(400, "RATELIMITED", "x"), Reply::refusal(429).header("retry-after", "30")] {
        contract::keeps_limits(&setting.world, &setting.fake, &connect, limit).await;
    }
    for refusal in [refused(400, "AUTHENTICATION_ERROR", crate::rest::fake::WORDS), Reply::refusal(401)] {
        contract::tells_wrong_credentials(&setting.world, &setting.fake, &connect, refusal).await;
    }
    contract::can_be_cancelled(&setting.world, &setting.fake, &connect).await;
    contract::loses_odd_positions(&setting.world, &*connect()).await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "i1",
        contract::Service::OneAddress,
    )
    .await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    setting.fake.set_mood(Mood::Once(refused(400, "INVALID_INPUT", "cursor")));
    assert_eq!(setting.connect().list(&setting.world.call, Some(&next)).await, Err(Fault::PositionLost));
}

#[tokio::test]
async fn a_limit_lasts_as_long_as_its_headers_say() {
    let setting = Setting::new().await;
    // The moment of the tests, in milliseconds, and 90 s.
    let reset = (contract::NOW.as_micros() / 1_000 + 90_000).to_string();
    let limited = || refused(400, "RATELIMITED", "x");
    let requests = || limited().header("x-ratelimit-requests-remaining", "0");
    for (reply, wait) in [
        (limited(), 60),
        (limited().header("retry-after", "7"), 7),
        (limited().header("retry-after", "600"), 600),
        (requests().header("x-ratelimit-requests-reset", reset.clone()), 90),
        (requests().header("x-ratelimit-requests-reset", reset.clone()).header("retry-after", "7"), 7),
        (
            limited()
                .header("x-ratelimit-requests-remaining", "4")
                .header("x-ratelimit-requests-reset", reset),
            60,
        ),
    ] {
        let world = Caller::new();
        setting.fake.set_mood(Mood::Once(reply.clone()));
        let waiting = setting.connect().list(&world.call, None).await.unwrap_err();
        let until = contract::NOW.plus(Duration::from_secs(wait));
        assert_eq!(waiting, Fault::Waiting { until }, "{reply:?}");
    }
}

#[tokio::test]
async fn nodes_that_cannot_be_read_cost_themselves() {
    let setting = Setting::new().await;
    let good = Ticket::default().json("x");
    let mut zoneless = Ticket::default().json("y");
    zoneless["updatedAt"] = json!("2026-11-20T12:00:00");
    let long = Ticket::default().json(&"z".repeat(10_000));
    let odd =
        json!({"data": {"issues": {"nodes": [good, zoneless, long, 7], "pageInfo": {"hasNextPage": false}}}});
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    setting.fake.set_mood(Mood::Once(Reply::json(&odd)));
    let page = setting.connect().list(&setting.world.call, Some(&next)).await.unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 3));
}

#[tokio::test]
async fn a_search_finds_words_and_a_check_names_the_account() {
    let setting = Setting::new().await;
    let found = setting.connect().search(&setting.world.call, "Body of i22", 5).await.unwrap();
    assert_eq!((found.len(), found[0].id.as_str()), (1, "i22"));
    let account = setting.connect().check(&setting.world.call).await.unwrap();
    assert_eq!(account.name.as_deref(), Some("ada@acme.example"));
    assert_eq!(
        setting.world.violations(ProviderKind::Linear, &json!({}), &json!({})),
        ["credentials.token required"]
    );
}

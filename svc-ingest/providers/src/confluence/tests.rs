use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};
use crate::rest::paging;

mod world;

#[derive(Default)]
struct Wiki {
    pages: BTreeMap<u32, Leaf>,
    /// Answers with bodies are too much for it.
    is_weak: bool,
    /// A space that the account does not see for now.
    away: Option<&'static str>,
}

#[derive(Clone, Default)]
struct Leaf {
    space: u32,
    text: String,
    minute: i64,
    revision: u32,
    is_trashed: bool,
}

type Shared = Arc<Mutex<Wiki>>;

fn at(minute: i64) -> String {
    Timestamp::from_seconds(1_795_400_040 + 60 * minute).to_rfc3339()
}

impl Leaf {
    fn json(&self, id: u32, has_body: bool) -> Value {
        let status = if self.is_trashed { "trashed" } else { "current" };
        let mut page = json!({"id": id.to_string(), "status": status, "title": format!("Title {id}"), "spaceId": self.space.to_string(),
            "version": {"number": self.revision, "createdAt": at(self.minute)}, "_links": {"webui": format!("/spaces/S/pages/{id}/Title")}});
        if has_body {
            page["body"] =
                json!({"storage": {"value": format!("<p>{}</p>", self.text), "representation": "storage"}});
        }
        page
    }
}

fn served(wiki: &Shared, asked: &Asked) -> Reply {
    let wiki = wiki.lock().unwrap();
    if asked.header("authorization") != Some("Basic YWRhQGFjbWUuZXhhbXBsZTp0LXg=") {
        return Reply::refusal(401);
    }
    let has_body = asked.query("body-format") == Some("storage");
    let parts: Vec<&str> = asked.path.trim_start_matches("/wiki/").split('/').collect();
    match parts.as_slice() {
        ["api", "v2", "spaces"] => {
            let keys = asked.query("keys").unwrap_or("ONE,TWO");
            let spaces = [(1, "ONE"), (2, "TWO")]
                .into_iter()
                .filter(|(_, key)| keys.split(',').any(|known| known == *key) && wiki.away != Some(*key));
            let spaces: Vec<Value> =
                spaces.map(|(id, key)| json!({"id": id.to_string(), "key": key})).collect();
            Reply::json(&json!({"results": spaces, "_links": {}}))
        }
        ["api", "v2", "pages"] if wiki.is_weak && has_body => Reply::refusal(500),
        ["api", "v2", "pages"] => {
            let wants_trash = asked.query("status") == Some("trashed");
            let mut found: Vec<(&u32, &Leaf)> = wiki
                .pages
                .iter()
                .filter(|(_, page)| page.is_trashed == wants_trash)
                .filter(|(_, page)| {
                    asked.query("space-id").is_none_or(|space| space == page.space.to_string())
                })
                .collect();
            if asked.query("sort") == Some("-modified-date") {
                found.sort_by_key(|(_, page)| -page.minute);
            }
            let Ok(from) = asked.query("cursor").map_or(Ok(0), str::parse::<usize>) else {
                return Reply::refusal(400);
            };
            let mut links = json!({});
            if from + 2 < found.len() {
                let others = asked.query.iter().filter(|(name, _)| name != "cursor");
                let query = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(others)
                    .append_pair("cursor", &(from + 2).to_string())
                    .finish();
                links["next"] = json!(format!("/wiki/api/v2/pages?{query}"));
            }
            let pages: Vec<Value> =
                found.into_iter().skip(from).take(2).map(|(id, page)| page.json(*id, has_body)).collect();
            Reply::json(&json!({"results": pages, "_links": links}))
        }
        ["api", "v2", "pages", id] => {
            let page = id.parse().ok().and_then(|id| Some((id, wiki.pages.get(&id)?)));
            page.map_or(Reply::refusal(404), |(id, page)| Reply::json(&page.json(id, has_body)))
        }
        ["rest", "api", "search"] => {
            assert_eq!(asked.query("cql"), Some("text ~ \"plan b\" AND type = page AND space in (\"ONE\")"));
            Reply::json(
                &json!({"results": [{"content": {"id": "1", "title": "Title 1", "_links": {"webui": "/spaces/S/pages/1"}},
                "lastModified": "2026-11-20T12:00:00.000Z"}, {"content": {"id": "../2"}}]}),
            )
        }
        _ => Reply::refusal(404),
    }
}

struct Setting {
    world: Caller,
    fake: Fake,
    wiki: Shared,
}

impl Setting {
    async fn new() -> Self {
        let wiki = Shared::default();
        let behind = Arc::clone(&wiki);
        let fake = Fake::start(|_| move |asked: &Asked| served(&behind, asked)).await;
        let setting = Self { world: Caller::new(), fake, wiki };
        for (minute, id) in (1..).zip(1..=5) {
            setting.put(id, if id > 3 { 2 } else { 1 }, minute);
        }
        setting
    }

    fn put(&self, id: u32, space: u32, minute: i64) {
        let page = Leaf { space, text: format!("Body of {id}"), minute, revision: 1, is_trashed: false };
        self.wiki.lock().unwrap().pages.insert(id, page);
    }

    fn change(&self, id: u32, change: impl FnOnce(&mut Leaf)) {
        change(self.wiki.lock().unwrap().pages.get_mut(&id).unwrap());
    }

    fn connect_as(&self, spaces: &[&str], mode: &str) -> Box<dyn Provider> {
        let settings = json!({"site": self.fake.base().as_str(), "spaces": spaces});
        let credentials = json!({"email": "ada@acme.example", "token": "t-x"});
        self.world.connect(ProviderKind::Confluence, &settings, &credentials, mode)
    }

    fn connect(&self) -> Box<dyn Provider> {
        self.connect_as(&[], "indexed")
    }

    async fn list(&self) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), None).await.unwrap()
    }

    async fn changes(&self, from: &Position) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), Some(from)).await.unwrap()
    }
}

#[tokio::test]
async fn pages_are_listed_with_their_bodies_in_all_spaces_or_in_some() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    assert_eq!((seen.ids(), seen.partial.len()), (vec!["1", "2", "3", "4", "5"], 0));
    let two = || setting.connect_as(&["ONE", "TWO"], "indexed");
    assert_eq!(
        contract::read(&setting.world.call, &two, None).await.unwrap().0.ids(),
        ["1", "2", "3", "4", "5"]
    );
    let one = || setting.connect_as(&["TWO"], "indexed");
    assert_eq!(contract::read(&setting.world.call, &one, None).await.unwrap().0.ids(), ["4", "5"]);
    let missing = || setting.connect_as(&["TWO", "NONE"], "indexed");
    assert_eq!(contract::read(&setting.world.call, &missing, None).await.unwrap().0.partial.len(), 1);

    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Item::Present(entry) = &page.items[0] else { panic!("gone") };
    assert_eq!(
        entry.body.as_ref().unwrap().bytes,
        "<html><body><article><p>Body of 1</p></article></body></html>"
    );
    assert_eq!(entry.url, Some(format!("{}wiki/spaces/S/pages/1/Title", setting.fake.base())));
    let catalog = setting.connect_as(&[], "catalog").list(&setting.world.call, None).await.unwrap();
    assert!(matches!(&catalog.items[0], Item::Present(entry) if entry.body.is_none()));
}

#[tokio::test]
async fn bodies_that_are_too_much_at_once_are_left_for_later() {
    let setting = Setting::new().await;
    setting.wiki.lock().unwrap().is_weak = true;
    let (seen, _) = setting.list().await;
    assert_eq!(seen.ids(), ["1", "2", "3", "4", "5"]);
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    assert!(matches!(&page.items[0], Item::Present(entry) if entry.body.is_none()));
}

#[tokio::test]
async fn a_page_is_fetched_unless_it_is_the_same_or_gone() {
    let setting = Setting::new().await;
    let provider = setting.connect();
    let text = contract::text(&setting.world.call, &*provider, "3").await.unwrap();
    assert_eq!(text, "<html><body><article><p>Body of 3</p></article></body></html>");
    let id = ExternalId::new("3").unwrap();
    assert_eq!(provider.fetch(&setting.world.call, &id, Some(&Version::new("1"))).await, Ok(Fetched::Same));
    setting.change(3, |page| page.is_trashed = true);
    assert_eq!(contract::text(&setting.world.call, &*provider, "3").await, None);
    assert_eq!(contract::text(&setting.world.call, &*provider, "99").await, None);
}

#[tokio::test]
async fn changes_are_what_was_written_down_to_what_is_known() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    setting.put(6, 1, 100);
    setting.change(1, |page| (page.minute, page.revision) = (101, 2));
    setting.change(2, |page| (page.minute, page.is_trashed) = (102, true));
    let (seen, from) = setting.changes(&from).await;
    assert!(seen.present.contains_key("6") && seen.present.contains_key("1"), "{seen:?}");
    assert!(!seen.present.contains_key("2") && seen.gone.contains("2"));
    let (again, _) = setting.changes(&from).await;
    assert_eq!(again.ids(), ["1", "6"], "the overlap");
    let (seen, _) = setting.list().await;
    assert!(!seen.present.contains_key("2") && seen.gone.contains("2"));
}

#[tokio::test]
async fn a_page_of_another_space_is_not_there() {
    let setting = Setting::new().await;
    let provider = setting.connect_as(&["ONE"], "live");
    assert!(contract::text(&setting.world.call, &*provider, "1").await.is_some());
    setting.fake.take_asked();
    assert_eq!(contract::text(&setting.world.call, &*provider, "4").await, None);
    assert_eq!(setting.fake.take_asked().len(), 1, "the spaces are asked for once");
    assert!(contract::text(&setting.world.call, &*setting.connect(), "4").await.is_some());
}

#[tokio::test]
async fn one_space_does_not_say_how_far_another_was_read() {
    let setting = Setting::new().await;
    let two = setting.connect_as(&["ONE", "TWO"], "indexed");
    let listed = paging::read(&setting.world.call, &*two, None, async |_, _| {}).await;
    let told = paging::read(&setting.world.call, &*two, Some(&listed.next), async |number, _| {
        // The first space is read.
        if number == 1 {
            setting.put(6, 1, 100);
            setting.put(7, 2, 200);
        }
    })
    .await;
    assert!(told.present.contains("7") && !told.present.contains("6"), "{told:?}");
    let told = paging::read(&setting.world.call, &*two, Some(&told.next), async |_, _| {}).await;
    assert!(told.present.contains("6"), "{told:?}");
}

#[tokio::test]
async fn what_changes_in_a_space_while_it_is_away_is_found_when_it_is_back() {
    let setting = Setting::new().await;
    let two = setting.connect_as(&["ONE", "TWO"], "indexed");
    let read =
        async |from: Option<&Position>| paging::read(&setting.world.call, &*two, from, async |_, _| {}).await;
    let listed = read(None).await;
    setting.wiki.lock().unwrap().away = Some("TWO");
    setting.put(6, 2, 100);
    setting.put(7, 1, 200);
    let told = read(Some(&listed.next)).await;
    assert!(told.present.contains("7") && !told.present.contains("6"), "{told:?}");
    assert_eq!(told.partial.len(), 1, "it is said: {told:?}");
    setting.wiki.lock().unwrap().away = None;
    let told = read(Some(&told.next)).await;
    assert!(told.present.contains("6") && told.partial.is_empty(), "{told:?}");
    let told = read(Some(&told.next)).await;
    assert!(!told.present.contains("6"), "the mark goes on: {told:?}");
}

#[test]
fn a_citation_leads_to_the_site_with_its_path() {
    let paper = || -> WikiPage {
        serde_json::from_value(json!({"id": "1", "_links": {"webui": "/spaces/S/pages/1"}})).unwrap()
    };
    for (site, asked, shown) in [
        ("https://host.example", "/wiki/api/v2/pages", "/wiki/spaces/S/pages/1"),
        ("https://host.example/wiki", "/wiki/api/v2/pages", "/wiki/spaces/S/pages/1"),
        ("https://host.example/wiki/", "/wiki/api/v2/pages", "/wiki/spaces/S/pages/1"),
        (
            "https://host.example/atlassian",
            "/atlassian/wiki/api/v2/pages",
            "/atlassian/wiki/spaces/S/pages/1",
        ),
    ] {
        let api = Api::new(crate::atlassian::without_wiki(Url::parse(site).unwrap()));
        let (mode, chosen) = (SourceMode::Indexed, OnceCell::new());
        let confluence = Confluence { api, spaces: Vec::new(), mode, chosen };
        assert_eq!(confluence.at(&["pages"], &[]).path(), asked, "{site}");
        let address = confluence.address(&paper()).unwrap();
        assert_eq!(address, format!("https://host.example{shown}"), "{site}");
    }
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
    assert_eq!(setting.connect().list(&setting.world.call, Some(&next)).await, Err(Fault::PositionLost));
    let elsewhere = json!({"results": [], "_links": {"next": "https://evil.example/wiki"}});
    setting.fake.set_mood(Mood::Always(Reply::json(&elsewhere)));
    assert!(matches!(setting.connect().list(&setting.world.call, None).await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn pages_that_cannot_be_read_cost_themselves() {
    let setting = Setting::new().await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    let good = Leaf { minute: 500, ..Leaf::default() }.json(1, false);
    let mut zoneless = Leaf::default().json(2, false);
    zoneless["version"]["createdAt"] = json!("2026-11-20T12:00:00.000");
    let mut long = good.clone();
    long["id"] = json!("9".repeat(10_000));
    setting
        .fake
        .set_mood(Mood::Once(Reply::json(&json!({"results": [good, zoneless, long, 7], "_links": {}}))));
    let page = setting.connect().list(&setting.world.call, Some(&next)).await.unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 3));
}

#[tokio::test]
async fn a_search_quotes_its_words_and_settings_are_checked_all_at_once() {
    let setting = Setting::new().await;
    let provider = setting.connect_as(&["ONE"], "live");
    let found = provider.search(&setting.world.call, "plan \"b\"", 5).await.unwrap();
    assert_eq!((found.len(), found[0].id.as_str()), (1, "1"));
    provider.check(&setting.world.call).await.unwrap();
    assert!(setting.connect_as(&["NONE"], "live").check(&setting.world.call).await.is_err());
    let violations = setting.world.violations(
        ProviderKind::Confluence,
        &json!({"spaces": ["a\")"]}),
        &json!({"token": "x"}),
    );
    assert_eq!(
        violations,
        ["settings.site required", "settings.spaces[0] invalid_value", "credentials.email required"]
    );
}

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};
use crate::rest::paging;

mod world;

/// Pages by id; what the search does not know is below others.
#[derive(Default)]
struct Workspace {
    pages: BTreeMap<String, Paper>,
    /// Rows that a query lists before it says that this was the end.
    most_rows: Option<usize>,
    is_search_cut: bool,
}

#[derive(Clone, Default)]
struct Paper {
    text: String,
    minute: i64,
    is_searched: bool,
    is_in_trash: bool,
    parent: Option<String>,
    /// A part that comes only when it is asked for.
    tail: Option<String>,
}

type Shared = Arc<Mutex<Workspace>>;

const SOURCE: &str = "source-1";

fn at(minute: i64) -> String {
    Timestamp::from_seconds(1_795_400_000 / 60 * 60 + 60 * minute).to_rfc3339()
}

fn page_json(id: &str, paper: &Paper) -> Value {
    json!({"object": "page", "id": id, "last_edited_time": at(paper.minute), "in_trash": paper.is_in_trash,
        "url": format!("https://www.notion.so/{id}"),
        "properties": {"Name": {"type": "title", "title": [{"plain_text": format!("Title {id}")}]},
            "Kind": {"type": "select", "select": {"name": "note"}}}})
}

fn paged(asked: &Asked, all: &[Value], is_cut: bool) -> Reply {
    let body = asked.json();
    let cursor = body["start_cursor"].as_str().or(asked.query("start_cursor"));
    let Ok(from) = cursor.map_or(Ok(0), |cursor| cursor.trim_start_matches('c').parse::<usize>()) else {
        return Reply::refusal(400);
    };
    let results: Vec<&Value> = all.iter().skip(from).take(2).collect();
    let next = (from + 2 < all.len()).then(|| format!("c{}", from + 2));
    let mut page =
        json!({"object": "list", "results": results, "has_more": next.is_some(), "next_cursor": next});
    if is_cut && next.is_none() {
        page["request_status"] =
            json!({"type": "incomplete", "incomplete_reason": "query_result_limit_reached"});
    }
    Reply::json(&page)
}

fn served(workspace: &Shared, asked: &Asked) -> Reply {
    let workspace = workspace.lock().unwrap();
    if asked.header("authorization") != Some("Bearer ntn_x") {
        return Reply::refusal(401);
    }
    assert_eq!(asked.header("notion-version"), Some("2026-03-11"));
    let parts: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
    let body = asked.json();
    match parts.as_slice() {
        ["v1", "users", "me"] => Reply::json(&json!({"object": "user", "bot": {"workspace_name": "Acme"}})),
        ["v1", "search"] if body["filter"]["value"] == "data_source" => {
            paged(asked, &[json!({"object": "data_source", "id": SOURCE, "properties": {}})], false)
        }
        ["v1", "search"] => {
            let wants_trash = body["filter"]["in_trash"] == true;
            let query = body["query"].as_str().unwrap_or_default();
            let mut found: Vec<(&String, &Paper)> = workspace
                .pages
                .iter()
                .filter(|(id, page)| {
                    page.is_searched
                        && page.is_in_trash == wants_trash
                        && format!("Title {id}").contains(query)
                })
                .collect();
            found.sort_by_key(|(_, page)| -page.minute);
            let found: Vec<Value> = found.into_iter().map(|(id, page)| page_json(id, page)).collect();
            paged(asked, &found, workspace.is_search_cut)
        }
        ["v1", "databases", _] => {
            Reply::json(&json!({"object": "database", "id": "d", "data_sources": [{"id": SOURCE}]}))
        }
        ["v1", "data_sources", SOURCE, "query"] => {
            let from = body["filter"]["last_edited_time"]["on_or_after"].as_str().unwrap_or_default();
            let mut rows: Vec<(&String, &Paper)> = workspace
                .pages
                .iter()
                .filter(|(_, page)| {
                    page.parent.as_deref() == Some(SOURCE) && at(page.minute).as_str() >= from
                })
                .collect();
            rows.sort_by_key(|(_, page)| page.minute);
            let all = rows.len();
            rows.truncate(workspace.most_rows.unwrap_or(all));
            let is_cut = rows.len() < all;
            let rows: Vec<Value> = rows.into_iter().map(|(id, page)| page_json(id, page)).collect();
            paged(asked, &rows, is_cut)
        }
        ["v1", "blocks", "toggle", "children"] => paged(asked, &children(&workspace, "toggle"), false),
        ["v1", "blocks", id, "children"] => {
            if !workspace.pages.contains_key(*id) {
                return Reply::refusal(404);
            }
            paged(asked, &children(&workspace, id), false)
        }
        ["v1", "pages", id] => {
            workspace.pages.get(*id).map_or(Reply::refusal(404), |page| Reply::json(&page_json(id, page)))
        }
        ["v1", "pages", id, "markdown"] => {
            if let Some(page) = workspace.pages.values().find(|page| page.tail.is_some() && *id == "tail") {
                return Reply::json(
                    &json!({"markdown": page.tail, "truncated": false, "unknown_block_ids": ["unshared"]}),
                );
            }
            workspace.pages.get(*id).map_or(Reply::refusal(404), |page| {
                let unknown: Vec<&str> = page.tail.iter().map(|_| "tail").collect();
                Reply::json(&json!({"markdown": page.text, "truncated": !unknown.is_empty(), "unknown_block_ids": unknown}))
            })
        }
        _ => Reply::refusal(404),
    }
}

fn children(workspace: &Workspace, parent: &str) -> Vec<Value> {
    let mut blocks =
        vec![json!({"object": "block", "id": "text-1", "type": "paragraph", "has_children": false})];
    if parent == "a" {
        blocks.push(json!({"object": "block", "id": "toggle", "type": "toggle", "has_children": true}));
        blocks.push(json!({"object": "block", "id": "db-1", "type": "child_database", "child_database": {"title": "Rows"}}));
    }
    let below = workspace
        .pages
        .iter()
        .filter(|(_, page)| page.parent.as_deref() == Some(parent) && !page.is_in_trash);
    blocks.extend(below.map(|(id, page)| {
        json!({"object": "block", "id": id, "type": "child_page", "has_children": true,
        "last_edited_time": at(page.minute), "child_page": {"title": format!("Title {id}")}})
    }));
    blocks
}

struct Setting {
    world: Caller,
    fake: Fake,
    workspace: Shared,
}

impl Setting {
    /// `a`, `b` and `c` are searched; `d` is below `a`, `e` below `d`, `f` in a toggle of `a`; `r1` to `r3` are rows.
    async fn new() -> Self {
        let workspace = Shared::default();
        let behind = Arc::clone(&workspace);
        let fake = Fake::start(|_| move |asked: &Asked| served(&behind, asked)).await;
        let setting = Self { world: Caller::new(), fake, workspace };
        for (minute, id) in (1..).zip(["a", "b", "c"]) {
            setting.put(id, minute, None);
            setting.change(id, |page| page.is_searched = true);
        }
        for (id, parent) in
            [("d", "a"), ("e", "d"), ("f", "toggle"), ("r1", SOURCE), ("r2", SOURCE), ("r3", SOURCE)]
        {
            setting.put(id, 2, Some(parent));
        }
        setting
    }

    fn put(&self, id: &str, minute: i64, parent: Option<&str>) {
        let paper = Paper {
            text: format!("Body of {id}"),
            minute,
            parent: parent.map(str::to_owned),
            ..Paper::default()
        };
        self.workspace.lock().unwrap().pages.insert(id.to_owned(), paper);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Paper)) {
        change(self.workspace.lock().unwrap().pages.get_mut(id).unwrap());
    }

    fn connect_as(&self, mode: &str) -> Box<dyn Provider> {
        let settings = json!({"baseUrl": self.fake.base().as_str()});
        self.world.connect(ProviderKind::Notion, &settings, &json!({"token": "ntn_x"}), mode)
    }

    fn connect(&self) -> Box<dyn Provider> {
        self.connect_as("indexed")
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

const ALL: [&str; 9] = ["a", "b", "c", "d", "e", "f", "r1", "r2", "r3"];

#[tokio::test]
async fn what_is_shared_is_the_search_with_children_and_rows() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    assert_eq!(seen.ids(), ALL);
    assert_eq!(seen.present["e"], "Title e");
    assert!(seen.partial.is_empty() && seen.faults.is_empty());
}

#[tokio::test]
async fn a_catalog_reads_nothing_but_titles() {
    let setting = Setting::new().await;
    let (seen, _) =
        contract::read(&setting.world.call, &|| setting.connect_as("catalog"), None).await.unwrap();
    assert_eq!(seen.ids(), ["a", "b", "c", "r1", "r2", "r3"]);
    assert!(
        setting
            .fake
            .take_asked()
            .iter()
            .all(|asked| !asked.path.contains("blocks") && !asked.path.contains("markdown"))
    );
}

#[tokio::test]
async fn a_body_is_the_title_the_properties_and_all_parts_of_the_text() {
    let setting = Setting::new().await;
    assert_eq!(setting.text("a").await.as_deref(), Some("# Title a\n\n- Kind: note\n\nBody of a"));
    setting.change("b", |page| page.tail = Some("The rest.".into()));
    assert_eq!(
        setting.text("b").await.as_deref(),
        Some("# Title b\n\n- Kind: note\n\nBody of b\n\nThe rest.")
    );
    assert_eq!(setting.text("none").await, None);
    assert_eq!(setting.text("../users").await, None);
    setting.change("c", |page| page.is_in_trash = true);
    assert_eq!(setting.text("c").await, None, "in the trash");
    let id = ExternalId::new("a").unwrap();
    let Fetched::Body(body) = setting.connect().fetch(&setting.world.call, &id, None).await.unwrap() else {
        panic!("no body")
    };
    setting.fake.take_asked();
    assert_eq!(
        setting.connect().fetch(&setting.world.call, &id, Some(&body.version)).await,
        Ok(Fetched::Same)
    );
    assert_eq!(setting.fake.take_asked().len(), 1);
}

#[tokio::test]
async fn changes_are_what_was_edited_since_and_what_went_to_the_trash() {
    let setting = Setting::new().await;
    let (_, from) = setting.list().await;
    setting.change("b", |page| page.minute = 100);
    setting.put("g", 101, Some("b"));
    setting.change("r3", |page| page.minute = 102);
    setting.change("a", |page| page.is_in_trash = true);
    let (seen, from) = setting.changes(&from).await;
    for id in ["b", "g", "r3"] {
        assert!(seen.present.contains_key(id), "{id}: {seen:?}");
    }
    assert_eq!(seen.gone.iter().collect::<Vec<_>>(), ["a"]);
    let (again, _) = setting.changes(&from).await;
    assert!(!again.present.contains_key("c") && again.present.len() <= 3, "{again:?}");
}

#[tokio::test]
async fn rows_do_not_say_how_far_pages_were_read() {
    let setting = Setting::new().await;
    let mut changed = String::new();
    let told = paging::read(&setting.world.call, &*setting.connect(), None, async |number, page| {
        if number == 1 {
            changed = paging::ids(page).remove(0);
            setting.change(&changed, |page| page.minute = 50);
            setting.change("r3", |row| row.minute = 60);
        }
    })
    .await;
    let (seen, _) = setting.changes(&told.next).await;
    assert!(seen.present.contains_key(&changed), "{changed}: {seen:?}");
}

#[tokio::test]
async fn a_query_that_stops_early_goes_on_by_time_or_says_so() {
    let setting = Setting::new().await;
    for (minute, id) in (10..).zip(["r1", "r2", "r3", "r4", "r5"]) {
        setting.put(id, minute, Some(SOURCE));
    }
    setting.workspace.lock().unwrap().most_rows = Some(2);
    let (seen, _) = setting.list().await;
    assert!(seen.present.contains_key("r5") && seen.partial.is_empty(), "{seen:?}");

    for id in ["r1", "r2", "r3", "r4", "r5"] {
        setting.change(id, |row| row.minute = 50);
    }
    let (seen, _) = setting.list().await;
    assert_eq!(seen.partial.len(), 1, "three rows of one moment cannot be told apart");
    setting.workspace.lock().unwrap().is_search_cut = true;
    assert_eq!(setting.list().await.0.partial.len(), 2);
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let setting = Setting::new().await;
    let connect = || setting.connect();
    for limit in
        [Reply::refusal(429).header("retry-after", "30"), Reply::refusal(529).header("retry-after", "30")]
    {
        contract::keeps_limits(&setting.world, &setting.fake, &connect, limit).await;
    }
    contract::tells_wrong_credentials(&setting.world, &setting.fake, &connect, Reply::refusal(401)).await;
    contract::can_be_cancelled(&setting.world, &setting.fake, &connect).await;
    contract::loses_odd_positions(&setting.world, &*connect()).await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "a",
        contract::Service::Addresses,
    )
    .await;
}

#[tokio::test]
async fn a_cursor_that_is_no_longer_known_loses_the_place() {
    let setting = Setting::new().await;
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(mut next) = page.then else { panic!("one page") };
    // What waits is looked into first.
    while !next.as_str().contains("\"waiting\":[]") {
        let Then::More(then) = setting.connect().list(&setting.world.call, Some(&next)).await.unwrap().then
        else {
            panic!("it ended")
        };
        next = then;
    }
    setting.fake.set_mood(Mood::Once(Reply::refusal(400)));
    assert_eq!(setting.connect().list(&setting.world.call, Some(&next)).await, Err(Fault::PositionLost));
}

#[tokio::test]
async fn pages_that_cannot_be_read_cost_themselves() {
    let setting = Setting::new().await;
    let good = page_json("x", &Paper::default());
    let mut zoneless = page_json("y", &Paper::default());
    zoneless["last_edited_time"] = json!("2026-11-20T12:00:00");
    let long = page_json(&"z".repeat(10_000), &Paper::default());
    let odd =
        json!({"results": [good, zoneless, long, {"id": 7}, null], "has_more": false, "next_cursor": null});
    setting.fake.set_mood(Mood::Once(Reply::json(&odd)));
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 4));
}

#[tokio::test]
async fn a_search_finds_titles_and_a_check_names_the_workspace() {
    let setting = Setting::new().await;
    let provider = setting.connect_as("live");
    let found = provider.search(&setting.world.call, "Title b", 5).await.unwrap();
    assert_eq!((found.len(), found[0].id.as_str()), (1, "b"));
    assert_eq!(found[0].url.as_deref(), Some("https://www.notion.so/b"));
    assert_eq!(provider.check(&setting.world.call).await.unwrap().name.as_deref(), Some("Acme"));
    let violations =
        setting.world.violations(ProviderKind::Notion, &json!({"base": "x"}), &json!({"tokens": "x"}));
    assert_eq!(
        violations,
        ["settings.base unknown_field", "credentials.token required", "credentials.tokens unknown_field"]
    );
}

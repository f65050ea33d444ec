use serde_json::{Value, json};

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller};
use crate::rest::fake::{Asked, Fake, Mood, Reply, WORDS};

fn refused(error: &str) -> Reply {
    Reply::json(&json!({"ok": false, "error": error, "warning": WORDS}))
}

fn served(has_assistant: bool, asked: &Asked) -> Reply {
    if asked.header("authorization") != Some("Bearer xoxp-x") {
        return refused("invalid_auth");
    }
    let form: Vec<(String, String)> = url::form_urlencoded::parse(&asked.body).into_owned().collect();
    let argument = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match asked.path.as_str() {
        "/auth.test" => Reply::json(&json!({"ok": true, "team": "Acme", "user": "ada"})),
        "/assistant.search.context" if !has_assistant => refused("not_allowed_token_type"),
        "/assistant.search.context" => {
            assert_eq!(argument("channel_types"), Some("public_channel"));
            let link = "https://acme.slack.com/archives/C1/p2?thread_ts=1763640000.000100&cid=C1";
            Reply::json(&json!({"ok": true, "results": {"messages": [
                {"channel_id": "C1", "channel_name": "general", "message_ts": "1763640001.000200", "content": "The *plan*", "permalink": link},
                {"channel_id": "C1", "channel_name": "general", "message_ts": "1763640000.000100", "content": "Start", "permalink": "https://acme.slack.com/archives/C1/p1"},
                {"channel_id": "no channel", "message_ts": "1"}, 7]}}))
        }
        "/search.messages" => Reply::json(&json!({"ok": true, "messages": {"matches": [
            {"channel": {"id": "C2", "name": "secret", "is_private": true}, "ts": "1763640009.0", "text": "hidden"},
            {"channel": {"id": "C1", "name": "general"}, "ts": "1763640000.000100", "text": "Start", "permalink": "https://acme.slack.com/archives/C1/p1"}]}})),
        "/conversations.info" => match argument("channel") {
            Some("C1") => Reply::json(&json!({"ok": true, "channel": {"id": "C1", "is_channel": true}})),
            Some("C2") => Reply::json(&json!({"ok": true, "channel": {"id": "C2", "is_private": true}})),
            Some("D1") => Reply::json(&json!({"ok": true, "channel": {"id": "D1", "is_im": true}})),
            _ => refused("channel_not_found"),
        },
        "/chat.getPermalink" if argument("message_ts") == Some("1.0") => refused("message_not_found"),
        "/chat.getPermalink" => {
            let link = format!("https://acme.slack.com/archives/{}/p1", argument("channel").unwrap());
            Reply::json(&json!({"ok": true, "permalink": link}))
        }
        "/conversations.replies" if !matches!(argument("channel"), Some("C1" | "C2" | "D1")) => {
            refused("channel_not_found")
        }
        "/conversations.replies" => {
            let message = |ts: &str, text: &str| json!({"ts": ts, "user": "U1", "text": text});
            let is_second = argument("cursor").is_some();
            let messages: Vec<Value> = if is_second {
                vec![message("1763640002.0", "Third")]
            } else {
                vec![
                    message("1763640000.000100", "Start"),
                    message("1763640001.0", "<https://a.example|Second>"),
                ]
            };
            let next = if is_second { "" } else { "more" };
            Reply::json(
                &json!({"ok": true, "messages": messages, "has_more": !is_second, "response_metadata": {"next_cursor": next}}),
            )
        }
        _ => refused("unknown_method"),
    }
}

async fn setting(has_assistant: bool) -> (Caller, Fake) {
    let fake = Fake::start(|_| move |asked: &Asked| served(has_assistant, asked)).await;
    (Caller::new(), fake)
}

fn connect(world: &Caller, fake: &Fake) -> Box<dyn Provider> {
    connect_to(world, fake, &[])
}

fn connect_to(world: &Caller, fake: &Fake, kinds: &[&str]) -> Box<dyn Provider> {
    let settings = json!({"baseUrl": fake.base().as_str(), "channelTypes": kinds});
    world.connect(ProviderKind::Slack, &settings, &json!({"token": "xoxp-x"}), "live")
}

#[tokio::test]
async fn threads_are_found_by_either_search_and_private_ones_only_when_asked_for() {
    for has_assistant in [true, false] {
        let (world, fake) = setting(has_assistant).await;
        let found = connect(&world, &fake).search(&world.call, "plan", 5).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["C1__1763640000.000100"], "one thread, once");
        assert!(found[0].title.starts_with("#general: "), "{}", found[0].title);
        assert!(found[0].url.as_ref().unwrap().starts_with("https://acme.slack.com/archives/C1/"));
    }
    let (world, fake) = setting(true).await;
    fake.set_mood(Mood::Once(Reply::refusal(404)));
    assert_eq!(connect(&world, &fake).search(&world.call, "plan", 5).await.unwrap().len(), 1, "by the older");
}

#[tokio::test]
async fn a_thread_is_read_with_all_its_replies() {
    let (world, fake) = setting(true).await;
    let provider = connect(&world, &fake);
    let text = contract::text(&world.call, &*provider, "C1__1763640000.000100").await.unwrap();
    let expected = "**U1**, 2025-11-20T12:00:00.000Z:\n\nStart\n\n**U1**, 2025-11-20T12:00:01.000Z:\n\n[Second](https://a.example)\n";
    assert!(text.starts_with(expected) && text.ends_with("\n\nThird\n"), "{text}");
    for gone in ["C9__1.0", "nonsense"] {
        assert_eq!(contract::text(&world.call, &*provider, gone).await, None);
    }
    assert_eq!(provider.list(&world.call, None).await, Err(Fault::Refused), "nothing is copied");
}

#[tokio::test]
async fn a_thread_is_cited_with_its_link() {
    let (world, fake) = setting(true).await;
    let provider = connect(&world, &fake);
    let body = async |id: &str| {
        let id = ExternalId::new(id).unwrap();
        let Fetched::Body(body) = provider.fetch(&world.call, &id, None).await.unwrap() else {
            panic!("gone")
        };
        body
    };
    let asked =
        |fake: &Fake| fake.take_asked().iter().filter(|asked| asked.path == "/chat.getPermalink").count();
    for _ in 0..2 {
        let link = body("C1__2.0").await.url;
        assert_eq!(link.as_deref(), Some("https://acme.slack.com/archives/C1/p1"));
    }
    assert_eq!(asked(&fake), 1, "it is asked for once");
    let without = body("C1__1.0").await;
    assert!(without.url.is_none() && !without.bytes.is_empty(), "a text without a link is a text");
    fake.take_asked();
    let found = provider.search(&world.call, "plan", 5).await.unwrap();
    assert_eq!(body(found[0].id.as_str()).await.url, found[0].url);
    assert_eq!(asked(&fake), 0, "the search told it");
}

#[tokio::test]
async fn a_thread_of_a_channel_that_was_not_chosen_is_not_there() {
    let (world, fake) = setting(true).await;
    let text = async |kinds: &[&str], id: &str| {
        contract::text(&world.call, &*connect_to(&world, &fake, kinds), id).await
    };
    for (id, kind) in [("C1__1.0", "public_channel"), ("C2__1.0", "private_channel"), ("D1__1.0", "im")] {
        for chosen in CHANNEL_TYPES {
            assert_eq!(text(&[chosen], id).await.is_some(), chosen == kind, "{id} {chosen}");
        }
        assert!(text(&CHANNEL_TYPES, id).await.is_some());
    }
    // Each channel is asked about once, and those of hits not at all.
    let provider = connect(&world, &fake);
    provider.search(&world.call, "plan", 5).await.unwrap();
    fake.take_asked();
    for id in ["C1__1763640000.000100", "D1__1.0", "D1__2.0"] {
        contract::text(&world.call, &*provider, id).await;
    }
    let asked = fake.take_asked();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/conversations.info").count(), 1);
}

#[tokio::test]
async fn what_slack_says_becomes_a_fault_of_ours() {
    let (world, fake) = setting(true).await;
    let provider = connect(&world, &fake);
    assert_eq!(provider.check(&world.call).await.unwrap().name.as_deref(), Some("ada at Acme"));
    for (error, fault) in [
        ("token_revoked", Fault::Credentials),
        ("access_denied", Fault::Forbidden),
        ("internal_error", Fault::Unavailable),
        ("something_new", Fault::Refused),
        ("missing_scope", Fault::Forbidden),
    ] {
        fake.set_mood(Mood::Always(refused(error)));
        assert_eq!(provider.search(&world.call, "x", 5).await, Err(fault), "{error}");
    }
    let html = Reply::with(200, "text/html", "<html>");
    for mood in
        [Mood::Always(html), Mood::Endless, Mood::Cut, Mood::Silent, Mood::Always(Reply::json(&json!([[]])))]
    {
        fake.set_mood(mood);
        let call = world.hurried(Duration::from_secs(2));
        assert!(provider.search(&call, "x", 5).await.is_err());
        assert!(provider.fetch(&call, &ExternalId::new("C1__1.0").unwrap(), None).await.is_err());
    }
    for limit in [refused("ratelimited"), Reply::refusal(429).header("retry-after", "30")] {
        fake.set_mood(Mood::Once(limit));
        assert!(matches!(provider.search(&world.call, "x", 5).await, Err(Fault::Waiting { .. })));
        fake.take_asked();
        assert!(matches!(provider.search(&world.call, "x", 5).await, Err(Fault::Waiting { .. })));
        assert!(fake.take_asked().is_empty());
        world.clock.advance(Duration::from_secs(3_600));
    }
}

#[tokio::test]
async fn it_is_live_only_and_settings_are_checked() {
    let world = Caller::new();
    assert_eq!(crate::modes(ProviderKind::Slack), [SourceMode::Live]);
    let violations = world.violations(
        ProviderKind::Slack,
        &json!({"channelTypes": ["secret"], "channels": []}),
        &json!({}),
    );
    assert_eq!(
        violations,
        [
            "settings.channelTypes[0] invalid_value",
            "settings.channels unknown_field",
            "credentials.token required"
        ]
    );
}

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::*;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};
use crate::{ProviderKind, Then};

mod world;

/// A key that opens nothing: it was made for these tests.
const KEY: &str = include_str!("test_key.pem");
const DOC: &str = "application/vnd.google-apps.document";
const SHEET: &str = "application/vnd.google-apps.spreadsheet";

#[derive(Default)]
struct Cabinet {
    files: BTreeMap<String, Value>,
    changes: Vec<String>,
    removed: BTreeSet<String>,
    is_incomplete: bool,
    tokens: u32,
    /// Tokens are granted and not accepted.
    refuses_tokens: bool,
    /// A file that was written between the start token and the first page.
    late: Option<(String, Value)>,
    /// Tokens of changes are no longer known.
    has_lost_changes: bool,
}

type Shared = Arc<Mutex<Cabinet>>;

impl Cabinet {
    fn put(&mut self, id: &str, mut file: Value) {
        file["id"] = json!(id);
        file["version"] = json!((self.changes.len() + 1).to_string());
        file["modifiedTime"] = json!("2026-11-20T12:00:00.000Z");
        file["webViewLink"] = json!(format!("https://drive.google.com/file/d/{id}/view"));
        self.files.insert(id.to_owned(), file);
        self.removed.remove(id);
        self.changes.push(id.to_owned());
    }

    fn remove(&mut self, id: &str) {
        self.files.remove(id);
        self.removed.insert(id.to_owned());
        self.changes.push(id.to_owned());
    }
}

fn refused(status: u16, reason: &str) -> Reply {
    let error = json!({"error": {"code": status, "message": crate::rest::fake::WORDS, "errors": [{"reason": reason}]}});
    Reply::with(status, "application/json", error.to_string())
}

fn granted(cabinet: &mut Cabinet, base: &Url, asked: &Asked) -> Reply {
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(&asked.body).into_owned().collect();
    let (signed, signature) = form["assertion"].rsplit_once('.').unwrap();
    let der = base64::engine::general_purpose::STANDARD
        .decode(KEY.lines().filter(|line| !line.starts_with('-')).collect::<String>())
        .unwrap();
    let key = RsaKeyPair::from_pkcs8(&der).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    key.verify(signed.as_bytes(), &signature).unwrap();
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap()).unwrap();
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/drive.readonly");
    assert_eq!(
        (claims["aud"].as_str(), claims["sub"].as_str()),
        (Some(base.join("token").unwrap().as_str()), Some("me@acme.example"))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3_600);
    cabinet.tokens += 1;
    Reply::json(&json!({"access_token": format!("ya29.{}", cabinet.tokens), "expires_in": 3600}))
}

fn served(base: &Url, cabinet: &Shared, asked: &Asked) -> Reply {
    let mut cabinet = cabinet.lock().unwrap();
    if asked.path == "/token" {
        return granted(&mut cabinet, base, asked);
    }
    let bearer = asked.header("authorization").unwrap_or_default();
    if cabinet.refuses_tokens {
        return Reply::refusal(401);
    }
    if bearer != "Bearer ya29.given" && bearer != format!("Bearer ya29.{}", cabinet.tokens) {
        return Reply::refusal(401);
    }
    let from = |name: &str| asked.query(name).map_or(Ok(0), str::parse::<usize>);
    let parts: Vec<&str> = asked.path.trim_start_matches("/drive/v3/").split('/').collect();
    match parts.as_slice() {
        ["about"] => Reply::json(&json!({"user": {"emailAddress": "reader@acme.example"}})),
        ["changes", "startPageToken"] => {
            let start = cabinet.changes.len();
            if let Some((id, file)) = cabinet.late.take() {
                cabinet.put(&id, file);
            }
            Reply::json(&json!({"startPageToken": start.to_string()}))
        }
        ["changes"] if cabinet.has_lost_changes => Reply::refusal(410),
        ["changes"] => {
            let Ok(from) = from("pageToken") else { return Reply::refusal(400) };
            let some: Vec<Value> = cabinet
                .changes
                .iter()
                .skip(from)
                .take(2)
                .map(|id| match cabinet.files.get(id) {
                    Some(file) => json!({"changeType": "file", "fileId": id, "removed": false, "file": file}),
                    None => json!({"changeType": "file", "fileId": id, "removed": true}),
                })
                .collect();
            let at = (from + 2).min(cabinet.changes.len()).to_string();
            let name = if from + 2 < cabinet.changes.len() { "nextPageToken" } else { "newStartPageToken" };
            let mut page = json!({"changes": some});
            page[name] = json!(at);
            Reply::json(&page)
        }
        ["files"] => {
            let Ok(from) = from("pageToken") else { return Reply::refusal(400) };
            let query = asked.query("q").unwrap();
            let parent = query
                .strip_suffix("' in parents and trashed=false")
                .map(|query| query.trim_start_matches('\''));
            let words = query
                .strip_prefix("fullText contains '")
                .and_then(|query| query.strip_suffix("' and trashed=false"));
            assert!(parent.is_some() || words.is_some() || query == "trashed=false", "{query}");
            let found: Vec<&Value> = cabinet
                .files
                .values()
                .filter(|file| {
                    parent.is_none_or(|parent| {
                        file["parents"].as_array().is_some_and(|all| all.contains(&json!(parent)))
                    })
                })
                .filter(|file| words.is_none_or(|words| file["name"].as_str().unwrap().contains(words)))
                .filter(|file| file["trashed"] != true)
                .collect();
            let next = (from + 2 < found.len()).then(|| (from + 2).to_string());
            let some: Vec<&Value> = found.into_iter().skip(from).take(2).collect();
            Reply::json(
                &json!({"files": some, "nextPageToken": next, "incompleteSearch": cabinet.is_incomplete}),
            )
        }
        ["files", id, rest @ ..] => match (cabinet.files.get(*id), rest, asked.query("alt")) {
            (None, ..) => Reply::refusal(404),
            (Some(file), ["export"], _) => match asked.query("mimeType").unwrap() {
                "text/markdown" if file["mimeType"] == DOC => {
                    Reply::with(200, "text/markdown", format!("# {id}"))
                }
                "text/csv" if file["mimeType"] == SHEET => Reply::with(200, "text/csv", "a,b"),
                _ => Reply::refusal(400),
            },
            (Some(file), [], Some("media")) if file["text"].is_string() => {
                Reply::with(200, "text/markdown", file["text"].as_str().unwrap())
            }
            (Some(_), [], Some("media")) => Reply::with(200, "application/pdf", format!("%PDF {id}")),
            (Some(file), ..) => Reply::json(file),
        },
        _ => Reply::refusal(404),
    }
}

struct Setting {
    world: Caller,
    fake: Fake,
    cabinet: Shared,
}

impl Setting {
    /// `f1` holds `d1` and the folder `f2`, which holds `p1`; the others lie elsewhere.
    async fn new() -> Self {
        let cabinet = Shared::default();
        let behind = Arc::clone(&cabinet);
        let fake = Fake::start(|base| {
            let base = base.clone();
            move |asked: &Asked| served(&base, &behind, asked)
        })
        .await;
        let setting = Self { world: Caller::new(), fake, cabinet };
        for (id, mime, parent) in [
            ("f1", objects::FOLDER, "root"),
            ("f2", objects::FOLDER, "f1"),
            ("d1", DOC, "f1"),
            ("p1", "application/pdf", "f2"),
            ("s1", SHEET, "root"),
            ("i1", "image/png", "root"),
            ("l1", "application/vnd.google-apps.shortcut", "f1"),
        ] {
            setting.put(id, mime, parent);
        }
        setting
    }

    fn put(&self, id: &str, mime: &str, parent: &str) {
        let file = json!({"name": format!("Name of {id}"), "mimeType": mime, "parents": [parent]});
        self.cabinet.lock().unwrap().put(id, file);
    }

    fn connect_with(&self, more: Value, credentials: &Value) -> Box<dyn Provider> {
        let mut settings = more;
        settings["baseUrl"] = json!(self.fake.base().as_str());
        self.world.connect(ProviderKind::GoogleDrive, &settings, credentials, "indexed")
    }

    fn connect(&self) -> Box<dyn Provider> {
        self.connect_with(json!({}), &json!({"accessToken": "ya29.given"}))
    }

    fn in_folder(&self) -> Box<dyn Provider> {
        self.connect_with(json!({"folderId": "f1"}), &json!({"accessToken": "ya29.given"}))
    }

    async fn list(&self) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), None).await.unwrap()
    }

    async fn changes(&self, from: &Position) -> (Read, Position) {
        contract::read(&self.world.call, &|| self.connect(), Some(from)).await.unwrap()
    }

    /// The key file of a service account.
    fn key(&self) -> Value {
        let token_uri = self.fake.base().join("token").unwrap();
        json!({"client_email": "robot@acme.iam.example", "private_key": KEY, "token_uri": token_uri.as_str()})
    }

    async fn text(&self, id: &str) -> Option<String> {
        contract::text(&self.world.call, &*self.connect(), id).await
    }
}

#[tokio::test]
async fn documents_are_listed_and_exported_or_downloaded() {
    let setting = Setting::new().await;
    let (seen, _) = setting.list().await;
    assert_eq!(seen.ids(), ["d1", "i1", "p1", "s1"]);
    assert_eq!((seen.present["d1"].as_str(), seen.partial.len()), ("Name of d1", 0));
    assert_eq!(setting.text("d1").await.as_deref(), Some("# d1"));
    assert_eq!(setting.text("p1").await.as_deref(), Some("%PDF p1"));
    assert_eq!(
        setting.text("s1").await.as_deref(),
        Some("a,b"),
        "the second kind, since this server has not the first"
    );
    assert_eq!(setting.text("none").await, None);
    let image = setting.connect().fetch(&setting.world.call, &ExternalId::new("i1").unwrap(), None).await;
    assert_eq!(image, Ok(Fetched::Unsupported("image/png".to_owned())));
}

#[tokio::test]
async fn a_file_of_a_page_is_fetched_with_one_request() {
    let setting = Setting::new().await;
    let provider = setting.connect();
    provider.list(&setting.world.call, None).await.unwrap();
    setting.fake.take_asked();
    let Fetched::Body(body) =
        provider.fetch(&setting.world.call, &ExternalId::new("d1").unwrap(), None).await.unwrap()
    else {
        panic!("no body")
    };
    assert_eq!(setting.fake.take_asked().len(), 1);
    assert_eq!(body.url.as_deref(), Some("https://drive.google.com/file/d/d1/view"));
    let same =
        provider.fetch(&setting.world.call, &ExternalId::new("d1").unwrap(), Some(&body.version)).await;
    assert_eq!(same, Ok(Fetched::Same));
}

#[tokio::test]
async fn changes_begin_before_the_first_page_and_tell_removals() {
    let setting = Setting::new().await;
    setting.cabinet.lock().unwrap().late =
        Some(("x1".into(), json!({"name": "Late", "mimeType": DOC, "parents": ["root"]})));
    let (_, from) = setting.list().await;
    let (seen, from) = setting.changes(&from).await;
    assert_eq!(seen.ids(), ["x1"], "what was written meanwhile is told");
    setting.put("d1", DOC, "f1");
    setting.put("n1", "text/plain", "root");
    setting.cabinet.lock().unwrap().remove("p1");
    let mut trashed = json!({"name": "s", "mimeType": SHEET, "parents": ["root"], "trashed": true});
    trashed["id"] = json!("s1");
    setting.cabinet.lock().unwrap().put("s1", trashed);
    let (seen, from) = setting.changes(&from).await;
    assert_eq!(seen.ids(), ["d1", "n1"]);
    assert_eq!(seen.gone.iter().collect::<Vec<_>>(), ["p1", "s1"]);
    let (none, _) = setting.changes(&from).await;
    assert_eq!((none.present.len(), none.gone.len()), (0, 0));
}

#[tokio::test]
async fn a_folder_is_read_with_all_below_it_and_nothing_else() {
    let setting = Setting::new().await;
    let (seen, from) = contract::read(&setting.world.call, &|| setting.in_folder(), None).await.unwrap();
    assert_eq!(seen.ids(), ["d1", "p1"]);
    setting.put("d2", DOC, "f2");
    setting.put("d3", DOC, "root");
    setting.put("d1", DOC, "root");
    let (seen, from) =
        contract::read(&setting.world.call, &|| setting.in_folder(), Some(&from)).await.unwrap();
    assert_eq!(seen.ids(), ["d2"]);
    assert_eq!(seen.gone.iter().collect::<Vec<_>>(), ["d1", "d3"], "one was moved out, one was never in");
    setting.put("f2", objects::FOLDER, "root");
    let lost = contract::read(&setting.world.call, &|| setting.in_folder(), Some(&from)).await;
    assert_eq!(lost.unwrap_err(), Fault::PositionLost, "what is below a moved folder is not told");
    let found = setting.in_folder().search(&setting.world.call, "Name", 10).await.unwrap();
    assert!(found.iter().all(|entry| entry.id.as_str() != "s1"));
}

#[tokio::test]
async fn a_file_elsewhere_is_not_there() {
    let setting = Setting::new().await;
    let given = json!({"accessToken": "ya29.given"});
    let text = async |provider: Box<dyn Provider>, id: &str| {
        contract::text(&setting.world.call, &*provider, id).await
    };
    assert!(text(setting.in_folder(), "p1").await.is_some(), "two folders down");
    assert_eq!(text(setting.in_folder(), "s1").await, None, "outside of the folder");
    let shared = json!({"name": "Shared", "mimeType": DOC, "parents": ["t1"], "driveId": "t1"});
    setting.cabinet.lock().unwrap().put("x1", shared);
    let in_drive = |id: &str| setting.connect_with(json!({ "driveId": id }), &given);
    assert!(text(in_drive("t1"), "x1").await.is_some());
    assert_eq!(text(in_drive("t1"), "d1").await, None, "in no shared drive");
    assert_eq!(text(in_drive("t2"), "x1").await, None, "in another one");
}

#[tokio::test]
async fn a_folder_that_is_thrown_away_takes_a_listing() {
    let setting = Setting::new().await;
    for connect in [Setting::connect, Setting::in_folder] {
        let all = || connect(&setting);
        let (_, from) = contract::read(&setting.world.call, &all, None).await.unwrap();
        let folder = |is_trashed: bool| json!({"name": "f2", "mimeType": objects::FOLDER, "parents": ["f1"], "trashed": is_trashed});
        setting.cabinet.lock().unwrap().put("f2", folder(true));
        let lost = contract::read(&setting.world.call, &all, Some(&from)).await;
        assert_eq!(lost.unwrap_err(), Fault::PositionLost, "what is below it has no change of its own");
        setting.cabinet.lock().unwrap().put("f2", folder(false));
    }
}

#[tokio::test]
async fn an_incomplete_search_proves_nothing_and_an_old_token_is_a_lost_place() {
    let setting = Setting::new().await;
    setting.cabinet.lock().unwrap().is_incomplete = true;
    assert_eq!(setting.list().await.0.partial.len(), 1);
    let (_, from) = setting.list().await;
    for status in [400, 404, 410] {
        setting.fake.set_mood(Mood::Once(Reply::refusal(status)));
        assert_eq!(setting.connect().changes(&setting.world.call, &from).await, Err(Fault::PositionLost));
    }
    let page = setting.connect().list(&setting.world.call, None).await.unwrap();
    let Then::More(next) = page.then else { panic!("one page") };
    setting.fake.set_mood(Mood::Once(Reply::refusal(400)));
    assert_eq!(setting.connect().list(&setting.world.call, Some(&next)).await, Err(Fault::PositionLost));
    setting.fake.set_mood(Mood::Once(Reply::refusal(404)));
    assert_eq!(
        setting.connect().list(&setting.world.call, None).await,
        Err(Fault::Forbidden),
        "the drive is out of reach"
    );
}

#[tokio::test]
async fn a_service_account_asks_for_a_token_once_and_again_when_it_ended() {
    let setting = Setting::new().await;
    let key = setting.key();
    for key in [key.clone(), json!(key.to_string())] {
        let credentials = json!({"serviceAccount": key, "subject": "me@acme.example"});
        let provider = setting.connect_with(json!({}), &credentials);
        setting.fake.take_asked();
        provider.list(&setting.world.call, None).await.unwrap();
        provider.list(&setting.world.call, None).await.unwrap();
        let asked = setting.fake.take_asked();
        assert_eq!(asked.iter().filter(|asked| asked.path == "/token").count(), 1);
        // Withdrawn before its time.
        setting.cabinet.lock().unwrap().tokens += 1;
        provider.list(&setting.world.call, None).await.unwrap();
        setting.world.clock.advance(Duration::from_secs(3_700));
        provider.list(&setting.world.call, None).await.unwrap();
        assert_eq!(setting.fake.take_asked().iter().filter(|asked| asked.path == "/token").count(), 2);
        assert!(!format!("{provider:?}").contains("PRIVATE"));
        setting.fake.set_mood(Mood::Always(Reply::refusal(400)));
        setting.world.clock.advance(Duration::from_secs(3_700));
        assert_eq!(provider.list(&setting.world.call, None).await, Err(Fault::Credentials), "invalid_grant");
        setting.fake.set_mood(None);
    }
}

#[tokio::test]
async fn tokens_that_are_granted_and_not_accepted_are_not_asked_for_again_and_again() {
    let setting = Setting::new().await;
    let credentials = json!({"serviceAccount": setting.key(), "subject": "me@acme.example"});
    setting.cabinet.lock().unwrap().refuses_tokens = true;
    let provider = setting.connect_with(json!({}), &credentials);
    setting.fake.take_asked();
    // As a first run asks: whose credentials they are, then the listing.
    assert_eq!(provider.check(&setting.world.call).await, Err(Fault::Credentials));
    assert_eq!(provider.list(&setting.world.call, None).await, Err(Fault::Credentials));
    let asked = setting.fake.take_asked();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/token").count(), 2);
    assert!(asked.len() <= 6, "{} requests", asked.len());
    // A later token may be good.
    setting.cabinet.lock().unwrap().refuses_tokens = false;
    setting.world.clock.advance(Duration::from_secs(3_700));
    provider.list(&setting.world.call, None).await.unwrap();
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let setting = Setting::new().await;
    let connect = || setting.connect();
    for limit in [refused(403, "userRateLimitExceeded"), Reply::refusal(429)] {
        contract::keeps_limits(&setting.world, &setting.fake, &connect, limit).await;
    }
    contract::tells_wrong_credentials(&setting.world, &setting.fake, &connect, Reply::refusal(401)).await;
    contract::can_be_cancelled(&setting.world, &setting.fake, &connect).await;
    contract::loses_odd_positions(&setting.world, &*connect()).await;
    contract::survives_hostile_answers(
        &setting.world,
        &setting.fake,
        &connect,
        "d1",
        contract::Service::Addresses,
    )
    .await;
    setting.fake.set_mood(Mood::Always(refused(403, "insufficientFilePermissions")));
    assert_eq!(
        connect().list(&setting.world.call, None).await,
        Err(Fault::Forbidden),
        "no access is no limit"
    );
    let provider = setting.connect();
    setting.fake.set_mood(None);
    provider.list(&setting.world.call, None).await.unwrap();
    setting.fake.set_mood(Mood::Always(refused(403, "exportSizeLimitExceeded")));
    let large = provider.fetch(&setting.world.call, &ExternalId::new("d1").unwrap(), None).await;
    assert_eq!(large, Ok(Fetched::TooLarge(10 * 1024 * 1024)));
}

#[tokio::test]
async fn a_search_quotes_its_words_and_a_check_names_the_account() {
    let setting = Setting::new().await;
    let provider = setting.connect();
    assert_eq!(provider.search(&setting.world.call, "Name of d", 5).await.unwrap().len(), 1);
    setting.fake.take_asked();
    assert!(provider.search(&setting.world.call, "a' or name contains 'b\\", 5).await.unwrap().is_empty());
    let asked = setting.fake.take_asked();
    assert_eq!(
        asked[0].query("q"),
        Some("fullText contains 'a\\' or name contains \\'b\\\\' and trashed=false")
    );
    assert_eq!(
        provider.check(&setting.world.call).await.unwrap().name.as_deref(),
        Some("reader@acme.example")
    );
}

#[tokio::test]
async fn settings_are_checked_all_at_once() {
    let world = Caller::new();
    let wrong = |settings: Value, credentials: Value| {
        world.violations(ProviderKind::GoogleDrive, &settings, &credentials)
    };
    assert_eq!(
        wrong(json!({"folderId": "a' or 'b", "drive": "x"}), json!({})),
        [
            "settings.folderId invalid_value",
            "settings.drive unknown_field",
            "credentials.serviceAccount required"
        ]
    );
    let key = |uri: &str, key: &str| json!({"serviceAccount": {"client_email": "a", "private_key": key, "token_uri": uri}});
    let refused = ["credentials.serviceAccount invalid_value"];
    assert_eq!(wrong(json!({}), key("https://10.0.0.1/token", KEY)), refused);
    assert_eq!(wrong(json!({}), key("https://oauth2.googleapis.com/token", "no key")), refused);
    assert_eq!(wrong(json!({}), json!({"serviceAccount": "no JSON"})), refused);
    assert_eq!(wrong(json!({}), key("https://oauth2.googleapis.com/token", KEY)), Vec::<String>::new());
    assert_eq!(
        wrong(json!({}), json!({"accessToken": "x", "subject": "y"})),
        ["credentials.subject invalid_value"]
    );
}

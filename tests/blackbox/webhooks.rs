//! Webhooks: changes of a workspace are delivered to a URL, signed, until delivery succeeds or is given up.

use crate::doctor::assert_sound;
use crate::sources::owner_of;
use crate::support::callers::ApiToken;
use crate::support::http::{Http, id, items, text};
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::webhooks::{Receiver, make, make_as};
use crate::support::workspace::make_token;

scenarios![
    changes_are_sent_signed_and_as_the_feed_tells_them,
    what_failed_arrives_later_in_order_with_the_same_id,
    a_dead_letter_is_listed_and_replayed,
    only_wanted_kinds_and_folders_are_told,
    a_rotated_secret_signs_beside_the_one_before,
    a_secret_is_shown_once,
    a_disabled_webhook_is_told_later,
    a_receiver_that_wants_nothing_more_is_disabled,
    a_webhook_ends_with_the_role_of_its_maker,
    a_ping_says_what_came_of_it,
    webhooks_are_for_owners_and_admins,
    bad_requests_name_every_field,
];

async fn changes_are_sent_signed_and_as_the_feed_tells_them(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    workspace.file_id("before.md", None, "x").await;
    let begin = text(&workspace.token.get("/api/v1/changes").await.expect(200).json(), "next");
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let file = workspace.file_id("a <secret-name>.md", None, "secret-text").await;
    let received = receiver.wait_for(&file).await;
    assert!(received.is_signed_with(&webhook.secret), "{received:?}");
    assert_eq!((received.signatures(), &received.body["type"]), (1, &json!("changes")));
    assert!(received.body["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')), "{}", received.body);
    assert!(!received.body.to_string().contains("secret-"), "{}", received.body);
    let feed = workspace.token.get(&format!("/api/v1/changes?after={begin}")).await.expect(200).json();
    let data = &received.body["data"];
    assert_eq!((&data["workspaceId"], &data["changes"]), (&json!(workspace.id), &feed["changes"]));
    assert_eq!(data["next"], feed["next"], "a place that the feed goes on from");
    let edited = json!({"content": "other"});
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(edited).await.expect(200);
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    let ops = eventually("everything was told", async || {
        let taken = receiver.accepted();
        let changes = taken.iter().flat_map(|one| items(&one.body["data"]["changes"]).to_vec());
        let ops: Vec<String> = changes.map(|change| text(&change, "op")).collect();
        (ops.len() >= 3).then_some(ops)
    })
    .await;
    assert_eq!(ops, ["upsert", "upsert", "delete"], "in their order, and nothing from before");
    let shown = webhook.wait_for_status("active").await;
    assert_eq!((&shown["lastStatus"], &shown["deadLetters"]), (&json!(204), &json!(0)), "{shown}");
    let listed = webhook.deliveries("?state=delivered").await;
    assert_eq!(listed[items(&listed).len() - 1]["id"], received.id());
}

async fn what_failed_arrives_later_in_order_with_the_same_id(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    receiver.answer_with(503);
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let first = workspace.file_id("first.md", None, "x").await;
    eventually("it was tried", async || receiver.all().first().cloned()).await;
    let second = workspace.file_id("second.md", None, "x").await;
    receiver.answer_with(200);
    receiver.wait_for(&second).await;
    let all = receiver.all();
    let about_first: Vec<_> =
        all.iter().filter(|one| one.changes().iter().any(|(_, id)| *id == first)).collect();
    assert!(about_first.len() >= 2 && about_first.iter().all(|one| one.id() == about_first[0].id()));
    assert!(about_first.iter().all(|one| one.raw() == about_first[0].raw()), "the same message each time");
    assert!(about_first.iter().all(|one| one.is_signed_with(&webhook.secret)));
    let told: Vec<_> = receiver.accepted().iter().flat_map(|one| one.changes()).map(|(_, id)| id).collect();
    assert_eq!(told, [first, second]);
    let shown = webhook.wait_for_status("active").await;
    assert_eq!(shown["lastError"], Value::Null, "{shown}");
}

async fn a_dead_letter_is_listed_and_replayed(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    receiver.answer_with(302);
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let lost = workspace.file_id("lost.md", None, "x").await;
    let letter = eventually("it was given up", async || {
        let dead = webhook.deliveries("?state=dead").await;
        items(&dead).first().cloned()
    })
    .await;
    assert_eq!(
        (&letter["state"], &letter["tries"], &letter["lastStatus"]),
        (&json!("dead"), &json!(3), &json!(302)),
        "{letter}"
    );
    assert!(text(&letter, "lastError").contains("redirects are not followed"), "{letter}");
    assert!(!letter.to_string().contains("lost.md"));
    assert_eq!(webhook.get().await["deadLetters"], 1);
    // The webhook continues with later changes.
    receiver.answer_with(200);
    let next = workspace.file_id("next.md", None, "x").await;
    receiver.wait_for(&next).await;
    assert!(receiver.accepted().iter().all(|one| one.changes().iter().all(|(_, id)| *id != lost)));

    let replay = webhook.path("/replay");
    let body = json!({"deliveryId": letter["id"]});
    let replayed = webhook.session.post(&replay).json(body.clone()).await.expect(202).json();
    assert_eq!(replayed, json!({"replayed": 1}));
    let received = receiver.wait_for(&lost).await;
    assert_eq!(received.id(), text(&letter, "id"), "the same message as before");
    assert!(received.is_signed_with(&webhook.secret));
    eventually("no letter is dead", async || (webhook.get().await["deadLetters"] == 0).then_some(())).await;
    let again = webhook.session.post(&replay).json(body).await.expect(202).json();
    assert_eq!(again, json!({"replayed": 0}), "what has arrived is not sent once more");
    assert_eq!(webhook.session.post(&replay).await.expect(202).json(), json!({"replayed": 0}));
    let unknown = json!({"deliveryId": webhook.id});
    webhook.session.post(&replay).json(unknown).await.expect_error(404, "NOT_FOUND");
}

async fn only_wanted_kinds_and_folders_are_told(deployment: &Deployment) {
    let (workspace, inside, files) = (deployment.workspace().await, Receiver::start(), Receiver::start());
    let folder = workspace.folder("inside", None).await;
    make(&workspace, &inside.url(), json!({"folderIds": [folder]})).await;
    make(&workspace, &files.url(), json!({"kinds": ["file"]})).await;
    let within = workspace.file_id("within.md", Some(&folder), "x").await;
    let outside = workspace.file_id("outside.md", None, "x").await;
    let other = workspace.folder("other", None).await;
    // It leaves the folders: reported as deleted, without the destination.
    let path = format!("/api/v1/files/{within}");
    workspace.token.patch(&path).json(json!({"folderId": other})).await.expect(200);
    let last = workspace.file_id("last.md", Some(&folder), "x").await;
    inside.wait_for(&last).await;
    files.wait_for(&last).await;
    let told: Vec<_> =
        inside.accepted().iter().flat_map(|one| items(&one.body["data"]["changes"]).to_vec()).collect();
    assert!(
        told.iter().all(|change| change["id"] == json!(within) || change["id"] == json!(last)),
        "{told:?}"
    );
    assert!(told.iter().any(|change| change["id"] == json!(within) && change["op"] == "delete"), "{told:?}");
    let kinds: Vec<_> = files.accepted().iter().flat_map(|one| one.changes()).collect();
    assert!(kinds.iter().all(|(kind, _)| kind == "file"), "{kinds:?}");
    assert!(kinds.iter().any(|(_, id)| *id == outside));
}

async fn a_rotated_secret_signs_beside_the_one_before(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let rotated = webhook.session.post(&webhook.path("/rotate")).await.expect(200).json();
    let secret = text(&rotated, "secret");
    assert!(secret != webhook.secret && rotated["previousSecretUntil"].is_string(), "{rotated}");
    let file = workspace.file_id("a.md", None, "x").await;
    let received = receiver.wait_for(&file).await;
    assert_eq!(received.signatures(), 2);
    assert!(received.is_signed_with(&secret) && received.is_signed_with(&webhook.secret));
}

async fn a_secret_is_shown_once(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let list = format!("/api/workspaces/{}/webhooks", workspace.id);
    for path in [list, webhook.path(""), webhook.path("/deliveries")] {
        let shown = workspace.session.get(&path).await.expect(200).text();
        assert!(!shown.contains("whsec_") && !shown.contains("secret\""), "{shown}");
    }
    let changed = webhook.change(json!({"name": "Other"})).await.expect(200).text();
    assert!(!changed.contains("whsec_") && changed.contains("Other"), "{changed}");
}

async fn a_disabled_webhook_is_told_later(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    let webhook = make(&workspace, &receiver.url(), json!({"enabled": false})).await;
    assert_eq!(webhook.get().await["status"], "disabled");
    let missed = workspace.file_id("missed.md", None, "x").await;
    // Another webhook receives it, so this one would have, too.
    let other = Receiver::start();
    make(&workspace, &other.url(), json!({})).await;
    let after = workspace.file_id("after.md", None, "x").await;
    other.wait_for(&after).await;
    assert_eq!(receiver.all().len(), 0);
    webhook.change(json!({"enabled": true})).await.expect(200);
    receiver.wait_for(&missed).await;
    webhook.session.delete(&webhook.path("")).await.expect(204);
    webhook.session.get(&webhook.path("")).await.expect_error(404, "NOT_FOUND");
}

async fn a_receiver_that_wants_nothing_more_is_disabled(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    receiver.answer_with(410);
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let file = workspace.file_id("a.md", None, "x").await;
    let shown = webhook.wait_for_status("disabled").await;
    assert!(text(&shown, "disabledReason").contains("410"), "{shown}");
    assert_eq!(receiver.all().len(), 1);
    receiver.answer_with(200);
    webhook.change(json!({"enabled": true})).await.expect(200);
    assert_eq!(receiver.wait_for(&file).await.id(), receiver.all()[0].id());
}

async fn a_webhook_ends_with_the_role_of_its_maker(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    let admin = people::join(&workspace, "admin").await;
    let webhook = make(&admin.seat(&workspace), &receiver.url(), json!({})).await;
    let before = workspace.file_id("before.md", None, "x").await;
    receiver.wait_for(&before).await;
    let role = json!({"role": "editor"});
    workspace.session.patch(&admin.path(&workspace)).json(role).await.expect(200);
    admin.session.get(&webhook.path("")).await.expect_error(403, "FORBIDDEN");
    // svc-auth's answer about the role is cached for 2 s.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let secret = workspace.file_id("after.md", None, "x").await;
    let shown = eventually("the webhook is disabled", async || {
        let shown = workspace.session.get(&webhook.path("")).await.expect(200).json();
        (shown["status"] == "disabled").then_some(shown)
    })
    .await;
    assert!(text(&shown, "disabledReason").contains("no longer owner or admin"), "{shown}");
    assert!(receiver.all().iter().all(|one| one.changes().iter().all(|(_, id)| *id != secret)));
    // The person who enables it takes it over.
    let enabled = workspace.session.patch(&webhook.path("")).json(json!({"enabled": true})).await;
    assert_ne!(enabled.expect(200).json()["actsFor"]["id"], json!(admin.id));
    receiver.wait_for(&secret).await;
}

async fn a_ping_says_what_came_of_it(deployment: &Deployment) {
    let (workspace, receiver) = (deployment.workspace().await, Receiver::start());
    let webhook = make(&workspace, &receiver.url(), json!({"enabled": false})).await;
    let test = webhook.path("/test");
    let tested = webhook.session.post(&test).await.expect(200).json();
    assert_eq!((&tested["ok"], &tested["status"]), (&json!(true), &json!(204)), "{tested}");
    let ping = &receiver.all()[0];
    assert!(ping.is_signed_with(&webhook.secret));
    assert_eq!((&ping.body["type"], &ping.body["data"]["webhookId"]), (&json!("ping"), &json!(webhook.id)));
    receiver.answer_with(500);
    let tested = webhook.session.post(&test).await.expect(200).json();
    assert_eq!((&tested["ok"], &tested["status"]), (&json!(false), &json!(500)), "{tested}");
    assert_eq!(webhook.deliveries("").await, json!([]));
}

async fn webhooks_are_for_owners_and_admins(deployment: &Deployment) {
    let (workspace, other) = (deployment.workspace().await, deployment.workspace().await);
    let receiver = Receiver::start();
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let list = format!("/api/workspaces/{}/webhooks", workspace.id);
    let draft = json!({"name": "Theirs", "url": receiver.url()});
    for role in ["viewer", "editor"] {
        let member = people::join(&workspace, role).await.session;
        for path in [list.clone(), webhook.path(""), webhook.path("/deliveries")] {
            member.get(&path).await.expect_error(403, "FORBIDDEN");
        }
        member.post(&list).json(draft.clone()).await.expect_error(403, "FORBIDDEN");
        member.patch(&webhook.path("")).json(json!({"enabled": false})).await.expect_error(403, "FORBIDDEN");
        for deed in ["/rotate", "/test", "/replay"] {
            member.post(&webhook.path(deed)).await.expect_error(403, "FORBIDDEN");
        }
        member.delete(&webhook.path("")).await.expect_error(403, "FORBIDDEN");
    }
    let admin = people::join(&workspace, "admin").await.session;
    admin.get(&webhook.path("")).await.expect(200);
    let stranger = people::join(&other, "admin").await.session;
    stranger.get(&webhook.path("")).await.expect_error(404, "NOT_FOUND");
    let elsewhere = format!("/api/workspaces/{}/webhooks/{}", other.id, webhook.id);
    other.session.get(&elsewhere).await.expect_error(404, "NOT_FOUND");
    other.session.delete(&elsewhere).await.expect_error(404, "NOT_FOUND");
    // A token is no session.
    workspace.token.get(&list).await.expect_error(401, "UNAUTHORIZED");
}

async fn bad_requests_name_every_field(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/api/workspaces/{}/webhooks", workspace.id);
    let refused = |url: &str| json!({"name": "x", "url": url});
    for url in [
        "ftp://example.com/",
        "https://user:secret@example.com/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "http://192.168.0.1/",
        "nonsense",
    ] {
        let problem =
            workspace.session.post(&list).json(refused(url)).await.expect_error(400, "VALIDATION_ERROR");
        assert!(problem.to_string().contains("url"), "{url}: {problem}");
    }
    let unknown = "0199c0de-0000-7000-8000-00000000ffff";
    let receiver = Receiver::start();
    let draft = json!({"name": "x", "url": receiver.url(), "folderIds": [unknown]});
    let problem = workspace.session.post(&list).json(draft).await.expect_error(400, "VALIDATION_ERROR");
    assert!(problem.to_string().contains("folderIds[0]"), "{problem}");
    let draft = json!({"name": "x", "url": receiver.url(), "kinds": ["nothing"]});
    workspace.session.post(&list).json(draft).await.expect_error(400, "VALIDATION_ERROR");
    let webhook = make(&workspace, &receiver.url(), json!({})).await;
    let folder = workspace.folder("f", None).await;
    let problem = webhook.change(json!({"folderIds": [folder]})).await.expect_error(400, "VALIDATION_ERROR");
    assert!(problem.to_string().contains("keeps its folders"), "{problem}");
    for _ in 1..20 {
        make(&workspace, &receiver.url(), json!({})).await;
    }
    let draft = json!({"name": "one too many", "url": receiver.url()});
    workspace.session.post(&list).json(draft).await.expect_error(403, "LIMIT_EXCEEDED");
}

/// Changes made while the process is down, or killed while it delivers, are delivered when it is up again.
#[test]
fn deliveries_survive_kill_nine() {
    run_alone(async {
        let (data, receiver) = (Scratch::new(), Receiver::start());
        let environment =
            [("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32"), ("CAIRN_WEBHOOK_RETRY_SECONDS", "1,1,1,600")];
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let bootstrap: Value =
            serde_json::from_slice(&std::fs::read(data.path().join("bootstrap.json")).unwrap()).unwrap();
        let workspace = text(&bootstrap, "workspaceId");
        let owner = owner_of(&up).await;
        receiver.answer_with(500);
        let webhook = make_as(&owner, &workspace, &receiver.url(), json!({})).await;
        let body = json!({"name": "all", "permissions": ["read", "write"]});
        let token = make_token(&owner, &workspace, body).await;
        let mut files = Vec::new();
        for round in 0..3 {
            let tried = receiver.all().len();
            let token = ApiToken { http: Http::new(up.base_url()), secret: token.secret.clone() };
            for number in 0..5 {
                let file =
                    json!({"name": format!("{round}-{number}.md"), "content": "x", "fileType": "text"});
                files.push(id(&token.post("/api/v1/files").json(file).await.expect(201).json()));
            }
            if round == 0 {
                eventually("it was tried", async || (receiver.all().len() > tried).then_some(())).await;
            }
            up.kill();
            drop(up);
            assert_sound(data.path()).await;
            up = SingleProcess::start_on(data.path(), &environment).await;
        }
        receiver.answer_with(200);
        // An update of the webhook ends its backoff: pending deliveries are retried at once.
        let session = owner_of(&up).await;
        session.patch(&webhook.path("")).json(json!({"name": "Again"})).await.expect(200);
        for file in &files {
            receiver.wait_for(file).await;
        }
        let taken = receiver.accepted();
        assert!(taken.iter().all(|one| one.is_signed_with(&webhook.secret)));
        let mut told: Vec<String> = taken.iter().flat_map(|one| one.changes()).map(|(_, id)| id).collect();
        told.dedup();
        assert_eq!(told, files, "each once and in their order");
        drop(up);
        assert_sound(data.path()).await;
    });
}

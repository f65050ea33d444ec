//! Feedback (spec 2.9, 4.8): mailed to those who maintain the workspace, or stored for them where no mail is
//! configured.

use uuid::Uuid;

use crate::doctor::assert_sound;
use crate::support::callers::{Anonymous, ApiToken, Session};
use crate::support::http::{Http, Reply, id};
use crate::support::mcp;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::smtp::REFUSED;

scenarios![
    feedback_is_mailed_to_the_owner,
    an_agent_reports_over_mcp,
    the_limits_are_exact,
    a_report_needs_read_and_a_token,
    no_text_makes_a_header,
    what_cannot_be_delivered_says_so,
    few_reports_pass_in_an_hour,
];

const FEEDBACK: &str = "/api/v1/feedback";

/// A text that no other mail contains.
fn unique() -> String {
    format!("report {}", Uuid::new_v4())
}

async fn feedback_is_mailed_to_the_owner(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let message = format!("{}: the guide is wrong.\n.\nA line of its own, ä.", unique());
    let body = json!({
        "message": message, "category": "stale_content", "channel": "cli",
        "context": {"fileId": "f-1", "nested": {"list": [1, "zwei"]}},
    });
    let answer = workspace.token.post(FEEDBACK).json(body).await.expect(200).json();
    assert!(answer["message"].as_str().unwrap().contains("sent to the owners and admins"), "{answer}");

    let mails = deployment.mail().mails_with(message.lines().next().unwrap());
    let [mail] = mails.as_slice() else { panic!("one owner, one mail: {mails:?}") };
    assert_eq!(mail.to, [deployment.owner().email.as_str()]);
    assert_eq!(mail.from, "cairn@example.com");
    assert_eq!(mail.header("From").as_deref(), Some("Cairn <cairn@example.com>"));
    let subject = mail.header("Subject").unwrap();
    assert!(subject.contains("A scenario's own") && subject.contains("stale content"), "{subject}");
    let error = mail.body().replace("\r\n", "\n");
    for part in [message.as_str(), "the command line", "stale content", &workspace.id, "\"zwei\""] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

async fn an_agent_reports_over_mcp(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let message = unique();
    let answer = mcp::call(&workspace.token, "submit_feedback", json!({"message": message})).await;
    assert!(mcp::text_of(&answer).contains("Feedback was sent"), "{answer}");
    let mails = deployment.mail().mails_with(&message);
    assert_eq!(mails.len(), 1);
    assert!(mails[0].body().contains("over MCP") && mails[0].body().contains("Category: other"));
    let odd = json!({"message": message, "category": "praise"});
    let refusal = mcp::call_error(&workspace.token, "submit_feedback", odd).await;
    assert!(refusal.contains("category"), "{refusal}");
}

/// A JSON object of exactly that many bytes.
fn object(bytes: usize) -> Value {
    json!({"a": "x".repeat(bytes - 8)})
}

async fn the_limits_are_exact(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let most = json!({"message": "ä".repeat(5_000), "context": object(10_240)});
    token.post(FEEDBACK).json(most).await.expect(200);
    for (body, path, code) in [
        (json!({"message": "ä".repeat(5_001)}), "message", "too_long"),
        (json!({"message": "m", "context": object(10_241)}), "context", "too_long"),
        (json!({"message": ""}), "message", "too_short"),
        (json!({"message": " \n"}), "message", "required"),
        (json!({}), "message", "required"),
        (json!({"message": "m", "category": "praise"}), "category", "invalid_value"),
        (json!({"message": "m", "channel": "mcp"}), "channel", "invalid_value"),
        (json!({"message": "m", "context": "text"}), "context", "wrong_type"),
        (json!({"message": "m", "contxt": {}}), "contxt", "unknown_field"),
    ] {
        let refused = token.post(FEEDBACK).json(&body).await.expect_error(400, "VALIDATION_ERROR");
        let issue = &refused["errors"][0];
        assert_eq!((&issue["path"], &issue["code"]), (&json!(path), &json!(code)), "{refused}");
    }
}

async fn a_report_needs_read_and_a_token(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"message": unique()});
    let anonymous = Anonymous { http: deployment.http() };
    anonymous.post(FEEDBACK).json(&body).await.expect_error(401, "UNAUTHORIZED");
    let writer = workspace.token_with(&["write"]).await;
    writer.post(FEEDBACK).json(&body).await.expect_error(403, "FORBIDDEN");
    let reader = workspace.token_with(&["read"]).await;
    reader.post(FEEDBACK).json(&body).await.expect(200);
}

async fn no_text_makes_a_header(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let message = format!("{}\r\nBcc: thief@example.com\r\n\r\n.\r\nMAIL FROM:<thief@example.com>", unique());
    workspace.token.post(FEEDBACK).json(json!({"message": message})).await.expect(200);
    let mails = deployment.mail().mails_with(message.lines().next().unwrap());
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].header("Bcc"), None);
    assert_eq!(mails[0].to, [deployment.owner().email.as_str()]);
    assert!(mails[0].body().contains("MAIL FROM:<thief@example.com>"), "it is all text: {}", mails[0].body());
    assert!(deployment.mail().mails_with("").iter().all(|mail| mail.from == "cairn@example.com"));
}

async fn what_cannot_be_delivered_says_so(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let body = json!({"message": format!("{} {REFUSED}", unique())});
    let refused = token.post(FEEDBACK).json(&body).await.expect_error(502, "DELIVERY_FAILED");
    let error = refused["message"].as_str().unwrap();
    assert!(error.contains("try again later") && !error.contains("not that one"), "{error}");
    let over_mcp = mcp::call_error(&token, "submit_feedback", body).await;
    assert!(over_mcp.contains("could not be mailed"), "{over_mcp}");
    // The next one succeeds again.
    token.post(FEEDBACK).json(json!({"message": unique()})).await.expect(200);
}

#[test]
fn without_mail_it_is_stored_for_owners_and_admins_and_logged_without_its_text() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let workspace = workspace_of(&up).await;
        let message = unique();
        let body = json!({"message": message, "category": "stale_content", "context": {"secret": message}});
        let answer = workspace.token.post(FEEDBACK).json(body).await.expect(200).json();
        let error = answer["message"].as_str().unwrap();
        assert!(error.contains("stored") && error.contains("not mailed"), "{answer}");
        let second = mcp::call(&workspace.token, "submit_feedback", json!({"message": "the second"})).await;
        assert!(mcp::text_of(&second).contains("stored"), "{second}");

        let path = format!("/api/workspaces/{}/feedback", workspace.id);
        let listed = workspace.session.get(&path).await.expect(200).json();
        let [newest, oldest] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
        assert_eq!((&newest["message"], &newest["channel"]), (&json!("the second"), &json!("mcp")));
        assert_eq!(newest["context"], json!(null));
        assert_eq!((&oldest["message"], &oldest["category"]), (&json!(message), &json!("stale_content")));
        assert_eq!((&oldest["channel"], &oldest["context"]), (&json!("rest"), &json!({"secret": message})));
        assert_eq!(oldest["createdBy"]["kind"], "token", "{oldest}");

        let admin = people::join(&workspace, "admin").await;
        assert_eq!(admin.session.get(&path).await.expect(200).json(), listed);
        let editor = people::join(&workspace, "editor").await;
        let refused = editor.session.get(&path).await.expect_error(403, "FORBIDDEN");
        assert!(refused["message"].as_str().unwrap().contains("reading feedback"), "{refused}");
        workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
        let elsewhere = "/api/workspaces/0199c0de-0000-7000-8000-00000000ffff/feedback";
        workspace.session.get(elsewhere).await.expect_error(404, "NOT_FOUND");

        let logged = eventually("the log names the report", async || {
            let logged = up.process_mut().stderr();
            logged.contains("feedback was received and stored").then_some(logged)
        })
        .await;
        assert!(logged.contains("CAIRN_SMTP_URL") && !logged.contains(&message), "{logged}");
        assert!(up.stop().await.success());
        assert_sound(data.path()).await;
    });
}

/// The first account's workspace.
async fn workspace_of(up: &SingleProcess) -> Workspace {
    let http = Http::new(up.base_url());
    let owner = up.owner();
    let form = json!({"email": owner.email, "password": owner.password});
    let signed_in = Anonymous { http: http.clone() }.post("/api/session").json(form).await.expect(200);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let id = id(&signed_in.json()["workspaces"][0]);
    Workspace { id, session: Session { http, cookie }, token: up.token() }
}

/// Reports until one is refused; returns the number of accepted reports and the refusal.
async fn report_until_refused(token: &ApiToken) -> (usize, Reply) {
    for passed in 0..40 {
        let reply = token.post(FEEDBACK).json(json!({"message": "once more"})).await;
        if reply.status != 200 {
            return (passed, reply);
        }
    }
    panic!("40 reports passed");
}

async fn few_reports_pass_in_an_hour(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (passed, refused) = report_until_refused(&workspace.token).await;
    assert_eq!(passed, 10, "of one token");
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "RATE_LIMITED");
    let over_mcp = mcp::call_error(&workspace.token, "submit_feedback", json!({"message": "m"})).await;
    assert!(over_mcp.contains("10 reports"), "{over_mcp}");
    let mut all = passed;
    let refused = eventually("the workspace has made its reports", async || {
        let (passed, refused) = report_until_refused(&workspace.token_with(&["read"]).await).await;
        all += passed;
        (passed < 10).then_some(refused)
    })
    .await;
    assert_eq!(all, 30, "of one workspace");
    let refused = refused.expect_error(429, "RATE_LIMITED");
    assert!(refused["message"].as_str().unwrap().contains("workspace"), "{refused}");
    let other = deployment.workspace().await;
    other.token.post(FEEDBACK).json(json!({"message": "m"})).await.expect(200);
}

#[test]
fn a_mail_server_that_is_not_there_is_a_failed_delivery() {
    run_alone(async {
        let data = Scratch::new();
        // Bound without listening: the port stays reserved, and connections are refused.
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("smtp://{}", held.local_addr().unwrap());
        let environment = [("CAIRN_SMTP_URL", url.as_str()), ("CAIRN_MAIL_FROM", "cairn@example.com")];
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let body = json!({"message": unique()});
        up.token().post(FEEDBACK).json(body).await.expect_error(502, "DELIVERY_FAILED");
    });
}

#[test]
fn a_wrong_mail_setting_is_told_at_the_start_without_its_password() {
    run_alone(async {
        let data = Scratch::new();
        let wrong =
            [("CAIRN_SMTP_URL", "https://user:s3cretword@mail"), ("CAIRN_MAIL_FROM", "cairn@example.com")];
        let mut failed = SingleProcess::launch(data.path(), &wrong);
        assert!(!failed.exit().await.success());
        let error = format!("{}{}", failed.stdout(), failed.stderr());
        assert!(error.contains("CAIRN_SMTP_URL") && !error.contains("s3cretword"), "{error}");
    });
}

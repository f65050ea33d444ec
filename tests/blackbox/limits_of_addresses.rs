//! Rate limits of source addresses: invalid tokens, exports without a token, sign-ins.

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use crate::support::callers::{Anonymous, ApiToken, Session};
use crate::support::http::{Http, Reply, id};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::windows::{in_one_window, window};

scenarios![
    thirty_invalid_tokens_and_the_address_waits,
    a_guessing_neighbour_locks_nobody_out,
    cookies_that_open_nothing_count_like_tokens,
    exports_without_a_token_are_counted_by_address,
    an_address_that_guesses_passwords_waits,
    many_addresses_that_guess_one_password_wait,
];

const WORKSPACE: &str = "/api/v1/workspace";
const INVALID: u64 = 30;

/// A well-formed token that does not exist.
fn unknown_token(http: &Http) -> ApiToken {
    ApiToken { http: http.clone(), secret: token_format::generate(&OsEntropy) }
}

/// Sends invalid tokens of every kind until the address is limited; returns the statuses of the allowed ones and the
/// refusal, all from one window.
async fn guess(deployment: &Deployment) -> (Http, Vec<u16>, Reply) {
    in_one_window(async || {
        let http = deployment.http();
        let mut replies = Vec::new();
        for number in 0..=INVALID {
            let guess = unknown_token(&http);
            replies.push(match number % 3 {
                0 => guess.get(WORKSPACE).await,
                1 => ApiToken { secret: "cairn_mistyped".to_owned(), ..guess }.get(WORKSPACE).await,
                _ => guess.post("/mcp").json(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await,
            });
        }
        let statuses = replies.iter().map(|reply| reply.status).collect();
        let (first, last) = (window(&replies[0]), replies.pop().unwrap());
        (first, window(&last), (http, statuses, last))
    })
    .await
}

async fn thirty_invalid_tokens_and_the_address_waits(deployment: &Deployment) {
    let (_, statuses, last) = guess(deployment).await;
    let (allowed, refused) = statuses.split_at(30);
    assert!(allowed.iter().all(|status| *status == 401), "{statuses:?}");
    assert_eq!(refused, [429], "{statuses:?}");
    let stands = window(&last);
    assert_eq!((stands.limit, stands.remaining, stands.name.as_str()), (INVALID, 0, "minute"));
    assert_eq!(last.header("retry-after"), Some(stands.reset.to_string().as_str()));
    last.expect_error(429, "RATE_LIMITED");
    unknown_token(&deployment.http()).get(WORKSPACE).await.expect_error(401, "UNAUTHORIZED");
}

async fn a_guessing_neighbour_locks_nobody_out(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let in_use = workspace.token_with(&["read"]).await;
    in_use.get(WORKSPACE).await.expect(200);
    let statuses = in_one_window(async || {
        let never_used = workspace.token_with(&["read"]).await;
        let (http, _, last) = guess(deployment).await;
        let known = ApiToken { http: http.clone(), ..in_use.clone() }.get(WORKSPACE).await;
        let unknown = ApiToken { http, ..never_used }.get(WORKSPACE).await;
        let now = window(&unknown);
        (window(&last), now, (known.status, unknown.status))
    })
    .await;
    assert_eq!(statuses, (200, 429), "a token in use passes; nobody is asked about others");
    workspace.token_with(&["read"]).await.get(WORKSPACE).await.expect(200);
}

/// Cookies of every form, until the address is limited; a valid session still passes.
async fn cookies_that_open_nothing_count_like_tokens(deployment: &Deployment) {
    let own = deployment.session().await;
    own.get("/api/session").await.expect(200);
    let (statuses, last, in_use) = in_one_window(async || {
        let http = deployment.http();
        let guess = async |number: u64| {
            let cookie = match number % 3 {
                0 => "cairn_session=nonsense".to_owned(),
                _ => format!("cairn_session={number:064x}"),
            };
            Session { http: http.clone(), cookie }.get("/api/session").await
        };
        let first = guess(0).await;
        let mut statuses = vec![first.status];
        for number in 1..INVALID {
            statuses.push(guess(number).await.status);
        }
        let last = guess(INVALID + 1).await;
        let in_use = Session { http: http.clone(), cookie: own.cookie.clone() }.get("/api/session").await;
        (window(&first), window(&last), (statuses, last, in_use.status))
    })
    .await;
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    last.expect_error(429, "RATE_LIMITED");
    assert_eq!(in_use, 200);
    let elsewhere = Session { http: deployment.http(), cookie: format!("cairn_session={:064x}", 7) };
    elsewhere.get("/api/workspaces").await.expect_error(401, "UNAUTHORIZED");
}

async fn exports_without_a_token_are_counted_by_address(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"name": "Public", "isPublic": true});
    let memory = id(&workspace.token.post("/api/v1/memories").json(body).await.expect(201).json());
    let path = format!("/api/v1/memories/{memory}/export");
    let anonymous = deployment.anonymous();
    assert_eq!(window(&anonymous.get(&path).await.expect(200)).limit, 60);
    let refused = eventually("the address must wait", async || {
        let reply = anonymous.get(&path).await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "RATE_LIMITED");
    deployment.anonymous().get(&path).await.expect(200);
    ApiToken { http: anonymous.http, ..workspace.token }.get(&path).await.expect(200);
}

async fn sign_in(caller: &Anonymous, email: &str) -> Reply {
    caller.post("/api/session").json(json!({"email": email, "password": "a wrong one"})).await
}

async fn an_address_that_guesses_passwords_waits(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    let mut number = 0;
    let refused = eventually("the address must wait", async || {
        number += 1;
        let reply = sign_in(&anonymous, &format!("nobody-{number}@example.com")).await;
        (reply.status != 401).then_some(reply)
    })
    .await;
    assert!(number > 10, "the first {number} may fail");
    assert_eq!(refused.header("retry-after").map(str::to_owned), Some(window(&refused).reset.to_string()));
    refused.expect_error(429, "RATE_LIMITED");
    // A sign-in from another address succeeds.
    deployment.sign_in().await;
}

async fn many_addresses_that_guess_one_password_wait(deployment: &Deployment) {
    let email = format!("{}@example.com", token_format::generate(&OsEntropy).to_lowercase());
    let mut guesses = 0;
    let refused = eventually("the account must wait", async || {
        guesses += 1;
        let reply = sign_in(&deployment.anonymous(), &email).await;
        (reply.status != 401).then_some(reply)
    })
    .await;
    assert!(guesses > 10, "the first {guesses} may fail");
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "RATE_LIMITED");
}

#[test]
fn an_untrusted_peer_cannot_choose_its_address() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_TRUSTED_PROXIES", "")]).await;
        // Each of these claims another address.
        eventually("the one address that they come from must wait", async || {
            let reply = unknown_token(&Http::new(up.base_url())).get(WORKSPACE).await;
            (reply.status == 429).then_some(())
        })
        .await;
        up.token().get(WORKSPACE).await;
    });
}

#[test]
fn what_is_wrong_with_the_limits_ends_the_start() {
    run_alone(async {
        for (variable, value, part) in [
            ("CAIRN_PLANS", r#"{"fre": {"minute": 5}}"#, "there is no plan 'fre'"),
            ("CAIRN_PLANS", "/no/such/file.json", "neither JSON nor a file"),
            ("CAIRN_TRUSTED_PROXIES", "10.0.0.0/33", "10.0.0.0/33"),
            ("CAIRN_REDIS_URL", "http://u:hunter2@example.com", "CAIRN_REDIS_URL"),
        ] {
            let data = Scratch::new();
            let mut process = SingleProcess::launch(data.path(), &[(variable, value)]);
            assert!(!process.exit().await.success(), "{variable}={value}");
            let message = process.stderr();
            assert!(message.contains(part) && !message.contains("hunter2"), "{variable}={value}: {message}");
        }
    });
}

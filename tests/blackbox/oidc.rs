//! Sign-in with an OpenID Connect provider: who gets in, as which account, and which proofs are rejected.

use reqwest::StatusCode;
use uuid::Uuid;

use crate::support::callers::{Anonymous, Session};
use crate::support::http::{Http, Reply, id, items, text};
use crate::support::oauth::{Agent, encoded};
use crate::support::oidc::{CLIENT_ID, CLIENT_SECRET, Fault, Persona, Provider};
use crate::support::people::{PASSWORD, accept, invite, join, unused_email};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios!(
    an_invited_person_comes_in_and_stays_the_same_person,
    an_account_is_linked_by_its_verified_email_once,
    an_email_that_is_not_verified_opens_nothing,
    a_person_whom_nobody_invited_is_told_what_to_do,
    an_id_token_that_proves_nothing_opens_nothing,
    an_answer_is_for_the_browser_that_asked_and_only_once,
    an_error_of_the_provider_is_a_page_without_its_text,
    nobody_is_sent_elsewhere,
    an_agent_waits_while_its_person_signs_in_there,
    a_new_key_of_the_provider_is_known_at_once,
    the_email_may_be_told_besides_the_id_token,
);

/// A browser in the middle of a sign-in.
struct PendingSignIn {
    http: Http,
    /// `cairn_oidc=…`
    ticket: String,
    /// The authorization URL that it was redirected to.
    authorization_url: String,
}

fn cookies(reply: &Reply) -> Vec<String> {
    let all = reply.headers.get_all("set-cookie").iter();
    all.map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// The session cookie of the response, if it sets one.
fn session_of(reply: &Reply) -> Option<String> {
    let all = cookies(reply);
    let pairs = all.iter().map(|cookie| cookie.split(';').next().unwrap_or_default());
    pairs
        .filter(|pair| pair.len() > "cairn_session=".len())
        .find(|pair| pair.starts_with("cairn_session="))
        .map(str::to_owned)
}

async fn get(http: &Http, path: &str, cookie: &str) -> Reply {
    http.request(reqwest::Method::GET, path).header("cookie", cookie).await
}

async fn start_sign_in(http: Http, return_to: &str) -> PendingSignIn {
    let path = format!("/oauth/oidc/start?{}", encoded([("return_to", return_to)]));
    let started = get(&http, &path, "a=b").await.expect(303);
    let all = cookies(&started);
    let [cookie] = all.as_slice() else { panic!("one cookie: {all:?}") };
    for part in ["Path=/oauth/oidc", "HttpOnly", "SameSite=Lax", "Max-Age=6"] {
        assert!(cookie.contains(part) || part == "Max-Age=6" && cookie.contains("Max-Age=5"), "{cookie}");
    }
    let ticket = cookie.split(';').next().unwrap().to_owned();
    PendingSignIn { http, ticket, authorization_url: started.header("location").unwrap().to_owned() }
}

/// The person signs in at the provider; returns the path that the provider redirects back to.
async fn consent(provider: &Provider, authorization_url: &str, subject: &str) -> String {
    let at_provider = Http::new(&provider.issuer());
    let path = authorization_url
        .strip_prefix(&provider.issuer())
        .unwrap_or_else(|| panic!("elsewhere: {authorization_url}"));
    let back = get(&at_provider, &format!("{path}&as={subject}"), "a=b").await.expect(303);
    let back = reqwest::Url::parse(back.header("location").unwrap()).unwrap();
    format!("{}?{}", back.path(), back.query().unwrap())
}

/// The complete sign-in.
async fn sign_in(http: Http, provider: &Provider, subject: &str) -> Reply {
    let visit = start_sign_in(http, "/somewhere?a=b").await;
    let back = consent(provider, &visit.authorization_url, subject).await;
    get(&visit.http, &back, &visit.ticket).await
}

/// Adds an account with these claims at the provider; returns its subject.
fn add_person(provider: &Provider, claims: Value) -> String {
    let subject = Uuid::new_v4().to_string();
    provider.add_account(&subject, Persona { claims, ..Persona::default() });
    subject
}

async fn profile(http: Http, opened: &Reply) -> Value {
    let cookie = session_of(opened).unwrap_or_else(|| panic!("no session: {}", opened.text()));
    Session { http, cookie }.get("/api/session").await.expect(200).json()
}

#[track_caller]
fn refused(reply: &Reply, status: StatusCode, message: &str) {
    assert_eq!(reply.status, status.as_u16(), "{}", reply.text());
    assert!(reply.text().contains(message), "no '{message}': {}", reply.text());
    assert!(reply.text().contains("role=\"alert\"") && reply.header("location").is_none());
    assert_eq!(session_of(reply), None);
    assert!(
        reply.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'"))
    );
}

async fn an_invited_person_comes_in_and_stays_the_same_person(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let email = unused_email();
    let secret = invite(&workspace, &email, "contributor").await;
    let claims = json!({"email": email.to_uppercase(), "email_verified": true, "name": " Ada\u{7} Byron "});
    let subject = add_person(provider, claims);
    let opened = sign_in(deployment.http(), provider, &subject).await.expect(303);
    assert_eq!(opened.header("location"), Some("/somewhere?a=b"));
    assert_eq!(opened.header("cache-control"), Some("no-store"));
    let gone = cookies(&opened).into_iter().find(|cookie| cookie.starts_with("cairn_oidc=;"));
    assert!(gone.is_some_and(|cookie| cookie.contains("Max-Age=0")));
    let who = profile(deployment.http(), &opened).await;
    assert_eq!((&who["user"]["email"], &who["user"]["name"]), (&json!(email), &json!("Ada Byron")));
    assert_eq!((&who["user"]["emailVerified"], &who["workspaces"]), (&json!(true), &json!([])));
    // Invitations are not accepted automatically.
    let [waits] = items(&who["pendingInvitations"]) else { panic!("one invitation: {who}") };
    assert_eq!(
        (text(waits, "workspaceId"), text(waits, "role")),
        (workspace.id.clone(), "contributor".to_owned())
    );
    let session = Session { http: deployment.http(), cookie: session_of(&opened).unwrap() };
    let path = format!("/api/invitations/{}/accept", id(waits));
    let joined = session.post(&path).await.expect(200).json();
    let [only] = items(&joined["workspaces"]) else { panic!("one workspace: {joined}") };
    assert_eq!((id(only), text(only, "role")), (workspace.id.clone(), "contributor".to_owned()));
    assert_eq!(joined["pendingInvitations"], json!([]));
    session.post(&path).await.expect_error(404, "NOT_FOUND");
    accept(&deployment.anonymous(), &secret).await.expect_error(404, "NOT_FOUND");

    // The subject identifies a person, even when the email changes.
    let changed = json!({"email": unused_email(), "email_verified": false});
    provider.add_account(&subject, Persona { claims: changed, ..Persona::default() });
    let again = sign_in(deployment.http(), provider, &subject).await.expect(303);
    assert_eq!(profile(deployment.http(), &again).await["user"], who["user"]);
    // The account has no password to guess.
    let body = json!({"email": email, "password": PASSWORD});
    deployment.anonymous().post("/api/session").json(body).await.expect_error(401, "UNAUTHORIZED");
}

async fn an_account_is_linked_by_its_verified_email_once(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "editor").await;
    let claims = json!({"email": person.email, "email_verified": true});
    let subject = add_person(provider, claims.clone());
    let opened = sign_in(deployment.http(), provider, &subject).await.expect(303);
    assert_eq!(id(&profile(deployment.http(), &opened).await["user"]), person.id);
    // The email was not verified before, so the password was removed; the verified account has none.
    let body = json!({"email": person.email, "password": PASSWORD});
    deployment.anonymous().post("/api/session").json(body).await.expect_error(401, "UNAUTHORIZED");
    let again = sign_in(deployment.http(), provider, &subject).await.expect(303);
    assert_eq!(id(&profile(deployment.http(), &again).await["user"]), person.id);
    // A later owner of the email is a different identity.
    let heir = sign_in(deployment.http(), provider, &add_person(provider, claims)).await;
    refused(&heir, StatusCode::FORBIDDEN, "belongs to another identity");
}

async fn an_email_that_is_not_verified_opens_nothing(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "viewer").await;
    for claims in [
        json!({"email": person.email, "email_verified": false}),
        json!({"email": person.email}),
        json!({}),
        json!({"email": "no address", "email_verified": true}),
    ] {
        let reply = sign_in(deployment.http(), provider, &add_person(provider, claims)).await;
        refused(&reply, StatusCode::FORBIDDEN, "has not verified your email");
    }
}

async fn a_person_whom_nobody_invited_is_told_what_to_do(deployment: &Deployment) {
    let provider = deployment.provider();
    let subject = add_person(provider, json!({"email": unused_email(), "email_verified": true}));
    let reply = sign_in(deployment.http(), provider, &subject).await;
    refused(&reply, StatusCode::FORBIDDEN, "ask an owner or admin of a workspace to invite");
}

async fn an_id_token_that_proves_nothing_opens_nothing(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "viewer").await;
    let claims = json!({"email": person.email, "email_verified": true});
    for fault in [
        Fault::Nonce,
        Fault::NoNonce,
        Fault::Audience,
        Fault::SecondAudience,
        Fault::Issuer,
        Fault::Expired,
        Fault::Signature,
        Fault::UnknownKey,
        Fault::Unsigned,
        Fault::Symmetric,
        Fault::Missing,
    ] {
        let subject = Uuid::new_v4().to_string();
        let lies = Persona { claims: claims.clone(), fault: Some(fault), ..Persona::default() };
        provider.add_account(&subject, lies);
        let reply = sign_in(deployment.http(), provider, &subject).await;
        assert_eq!(reply.status, 400, "{fault:?}: {}", reply.text());
        refused(&reply, StatusCode::BAD_REQUEST, "proves nothing");
    }
    // Only the tokens were wrong: the same person gets in with a valid one.
    let subject = add_person(provider, claims);
    sign_in(deployment.http(), provider, &subject).await.expect(303);
}

async fn an_answer_is_for_the_browser_that_asked_and_only_once(deployment: &Deployment) {
    const NOT_BEGUN: &str = "was not begun in this browser";
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "viewer").await;
    let subject = add_person(provider, json!({"email": person.email, "email_verified": true}));
    let visit = start_sign_in(deployment.http(), "/").await;
    let back = consent(provider, &visit.authorization_url, &subject).await;
    let other = start_sign_in(deployment.http(), "/").await;
    let (head, state) = back.split_once("&state=").unwrap();
    let elsewhere = visit.ticket.rsplit_once('.').unwrap().0.to_owned() + ".L2V2aWw";
    for (path, cookie) in [
        (back.clone(), "a=b".to_owned()),
        (back.clone(), "cairn_oidc=".to_owned()),
        (back.clone(), other.ticket),
        (back.clone(), elsewhere),
        (head.to_owned(), visit.ticket.clone()),
        (
            format!("{head}&state={}", state.replace(|digit: char| digit.is_ascii_digit(), "f")),
            visit.ticket.clone(),
        ),
    ] {
        let reply = get(&deployment.http(), &path, &cookie).await;
        refused(&reply, StatusCode::BAD_REQUEST, NOT_BEGUN);
    }
    let twice = get(&deployment.http(), &format!("{back}&code=x"), &visit.ticket).await;
    refused(&twice, StatusCode::BAD_REQUEST, "more than once");
    // None of that consumed the sign-in; a replay fails, even with a new code from the provider.
    get(&visit.http, &back, &visit.ticket).await.expect(303);
    let replayed = get(&visit.http, &back, &visit.ticket).await;
    refused(&replayed, StatusCode::BAD_REQUEST, "begin it again");
    let fresh = consent(provider, &visit.authorization_url, &subject).await;
    refused(&get(&visit.http, &fresh, &visit.ticket).await, StatusCode::BAD_REQUEST, NOT_BEGUN);
    // A code that the provider does not know.
    let visit = start_sign_in(deployment.http(), "/").await;
    let back = consent(provider, &visit.authorization_url, &subject).await;
    let (_, state) = back.split_once("&state=").unwrap();
    let made_up =
        get(&visit.http, &format!("/oauth/oidc/callback?code=x&state={state}"), &visit.ticket).await;
    refused(&made_up, StatusCode::BAD_REQUEST, "does not accept this sign-in");
}

async fn an_error_of_the_provider_is_a_page_without_its_text(deployment: &Deployment) {
    let visit = start_sign_in(deployment.http(), "/").await;
    for (error, message) in [
        ("access_denied", "did not allow"),
        ("server_error", "cannot sign anybody in now"),
        ("<script>", "refused this sign-in"),
    ] {
        let query = encoded([("error", error), ("error_description", "zq<b>call +1 555")]);
        let reply = get(&visit.http, &format!("/oauth/oidc/callback?{query}"), &visit.ticket).await;
        refused(&reply, StatusCode::BAD_REQUEST, message);
        assert!(!reply.text().contains("zq") && !reply.text().contains("<script>"), "{}", reply.text());
    }
}

async fn nobody_is_sent_elsewhere(deployment: &Deployment) {
    let http = deployment.http();
    for odd in [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example/",
        "/\t/evil.example",
        "javascript:alert(1)",
    ] {
        let path = format!("/oauth/oidc/start?{}", encoded([("return_to", odd)]));
        let reply = get(&http, &path, "a=b").await;
        refused(&reply, StatusCode::BAD_REQUEST, "must be a path of this server");
    }
    let long =
        format!("/oauth/oidc/start?{}", encoded([("return_to", format!("/{}", "a".repeat(2_800)).as_str())]));
    refused(&get(&http, &long, "a=b").await, StatusCode::BAD_REQUEST, "at most 2800 bytes");
    let twice = "/oauth/oidc/start?return_to=%2F&return_to=%2Fa";
    refused(&get(&http, twice, "a=b").await, StatusCode::BAD_REQUEST, "more than once");
}

async fn an_agent_waits_while_its_person_signs_in_there(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let email = unused_email();
    invite(&workspace, &email, "editor").await;
    let subject = add_person(provider, json!({"email": email, "email_verified": true}));
    let opened = sign_in(deployment.http(), provider, &subject).await.expect(303);
    let person = Session { http: deployment.http(), cookie: session_of(&opened).unwrap() };
    let who = person.get("/api/session").await.expect(200).json();
    let waits = id(&items(&who["pendingInvitations"])[0]);
    person.post(&format!("/api/invitations/{waits}/accept")).await.expect(200);
    let agent = Agent::register(deployment).await;
    let page = deployment.anonymous().get(&agent.address(&[])).await.expect(200).text();
    assert!(page.contains("Sign in with Example &lt;ID&gt;"), "{page}");
    let (_, rest) =
        page.split_once("href=\"/oauth/oidc/start?").unwrap_or_else(|| panic!("no way there: {page}"));
    let way = format!("/oauth/oidc/start?{}", rest.split('"').next().unwrap().replace("&amp;", "&"));
    let http = deployment.http();
    let started = get(&http, &way, "a=b").await.expect(303);
    let ticket = cookies(&started)[0].split(';').next().unwrap().to_owned();
    let back = consent(provider, started.header("location").unwrap(), &subject).await;
    let opened = get(&http, &back, &ticket).await.expect(303);
    let person = Session { http, cookie: session_of(&opened).unwrap() };
    let consent = person.get(opened.header("location").unwrap()).await.expect(200).text();
    assert!(consent.contains("Test &lt;agent&gt;") && consent.contains(&email), "{consent}");
    agent.tokens(&person, &workspace.id, &["read"]).await;
}

async fn a_new_key_of_the_provider_is_known_at_once(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "viewer").await;
    let subject = add_person(provider, json!({"email": person.email, "email_verified": true}));
    sign_in(deployment.http(), provider, &subject).await.expect(303);
    provider.rotate();
    sign_in(deployment.http(), provider, &subject).await.expect(303);
}

async fn the_email_may_be_told_besides_the_id_token(deployment: &Deployment) {
    let (workspace, provider) = (deployment.workspace().await, deployment.provider());
    let person = join(&workspace, "viewer").await;
    let subject = Uuid::new_v4().to_string();
    let userinfo = json!({"email": person.email, "email_verified": true});
    provider.add_account(&subject, Persona { userinfo: userinfo.clone(), ..Persona::default() });
    let opened = sign_in(deployment.http(), provider, &subject).await.expect(303);
    assert_eq!(id(&profile(deployment.http(), &opened).await["user"]), person.id);
    // Claims with another subject are not trusted.
    let other = join(&workspace, "viewer").await;
    let userinfo = json!({"email": other.email, "email_verified": true, "sub": "another"});
    let subject = Uuid::new_v4().to_string();
    provider.add_account(&subject, Persona { userinfo, ..Persona::default() });
    let reply = sign_in(deployment.http(), provider, &subject).await;
    refused(&reply, StatusCode::BAD_REQUEST, "proves nothing");
}

const OUTBOUND: (&str, &str) = ("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32");

#[test]
fn where_sign_up_is_on_everybody_with_a_verified_email_gets_an_account() {
    run_alone(async {
        let (data, provider) = (Scratch::new(), Provider::start());
        let issuer = provider.issuer();
        let environment = [
            ("CAIRN_OIDC_ISSUER", issuer.as_str()),
            ("CAIRN_OIDC_CLIENT_ID", CLIENT_ID),
            ("CAIRN_OIDC_CLIENT_SECRET", CLIENT_SECRET),
            ("CAIRN_OIDC_SIGN_UP", "on"),
            OUTBOUND,
        ];
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let email = unused_email();
        let subject = add_person(&provider, json!({"email": email, "email_verified": true}));
        let opened = sign_in(Http::new(up.base_url()), &provider, &subject).await.expect(303);
        let who = profile(Http::new(up.base_url()), &opened).await;
        assert_eq!((&who["user"]["email"], items(&who["workspaces"]).len()), (&json!(email), 0));
        assert_eq!(who["user"]["name"], email.split('@').next().unwrap());
        let unverified = add_person(&provider, json!({"email": unused_email()}));
        let reply = sign_in(Http::new(up.base_url()), &provider, &unverified).await;
        refused(&reply, StatusCode::FORBIDDEN, "has not verified your email");
        let message = format!("{}{}", up.process_mut().stdout(), up.process_mut().stderr());
        assert!(!message.contains(CLIENT_SECRET), "{message}");
    });
}

#[test]
fn a_provider_that_is_down_leaves_the_password() {
    run_alone(async {
        // Bound without listening: the port stays reserved, and connections are refused.
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let issuer = format!("http://{}", held.local_addr().unwrap());
        let data = Scratch::new();
        let environment =
            [("CAIRN_OIDC_ISSUER", issuer.as_str()), ("CAIRN_OIDC_CLIENT_ID", CLIENT_ID), OUTBOUND];
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let http = Http::new(up.base_url());
        let reply = get(&http, "/oauth/oidc/start", "a=b").await;
        refused(&reply, StatusCode::SERVICE_UNAVAILABLE, "or sign in with your password");
        let owner = up.owner();
        let body = json!({"email": owner.email, "password": owner.password});
        Anonymous { http }.post("/api/session").json(body).await.expect(200);
    });
}

#[test]
fn without_a_provider_the_way_there_says_so() {
    run_alone(async {
        let data = Scratch::new();
        let up =
            SingleProcess::start_on(data.path(), &[("CAIRN_OIDC_ISSUER", ""), ("CAIRN_OIDC_CLIENT_ID", "")])
                .await;
        let http = Http::new(up.base_url());
        for path in ["/oauth/oidc/start", "/oauth/oidc/callback?code=a&state=b"] {
            refused(&get(&http, path, "a=b").await, StatusCode::NOT_FOUND, "is not set up here");
        }
    });
}

#[test]
fn wrong_settings_are_told_at_the_start_without_the_secret() {
    run_alone(async {
        for (issuer, client_id, named) in [
            ("https://accounts.example.com", "", "CAIRN_OIDC_CLIENT_ID"),
            ("", "a-client", "CAIRN_OIDC_ISSUER"),
            ("accounts.example.com", "a-client", "CAIRN_OIDC_ISSUER"),
            ("http://accounts.example.com", "a-client", "CAIRN_OUTBOUND_ALLOW"),
            ("https://10.0.0.1", "a-client", "CAIRN_OUTBOUND_ALLOW"),
            ("https://accounts.example.com?a=b", "a-client", "CAIRN_OIDC_ISSUER"),
        ] {
            let data = Scratch::new();
            let environment = [
                ("CAIRN_OIDC_ISSUER", issuer),
                ("CAIRN_OIDC_CLIENT_ID", client_id),
                ("CAIRN_OIDC_CLIENT_SECRET", CLIENT_SECRET),
            ];
            let mut failed = SingleProcess::launch(data.path(), &environment);
            assert!(!failed.exit().await.success(), "{issuer}");
            let message = format!("{}{}", failed.stdout(), failed.stderr());
            assert!(message.contains(named) && !message.contains(CLIENT_SECRET), "{issuer}: {message}");
        }
    });
}

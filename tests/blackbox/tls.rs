//! TLS and mTLS by configuration: on the public address, on gRPC, and between services.

use std::path::Path;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::testing::certificates::Authority;
use cairn_chassis::tls::Pair;
use cairn_chassis::{outbound, token_format};
use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use reqwest::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;

const ANY_PORT: &str = "127.0.0.1:0";

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The options of a listener with this certificate.
fn listening(pair: &Pair, client_ca: Option<&Path>) -> Vec<String> {
    let mut options =
        vec!["--tls-cert".to_owned(), text(&pair.certificate), "--tls-key".to_owned(), text(&pair.key)];
    options.extend(client_ca.map(|ca| ["--tls-client-ca".to_owned(), text(ca)]).into_iter().flatten());
    options
}

fn start(arguments: &[&str], more: &[String], environment: &[(&str, &str)]) -> Process {
    let all: Vec<String> =
        arguments.iter().map(|text| (*text).to_owned()).chain(more.iter().cloned()).collect();
    Process::start(&format!("cairn {}", arguments[..2].join(" ")), &all, environment)
}

/// An HTTP client that trusts only this authority.
fn browser(authority: &Authority) -> Client {
    outbound::install_crypto();
    let ca = reqwest::Certificate::from_pem(authority.ca_pem().as_bytes()).unwrap();
    Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap()
}

async fn status(client: &Client, url: &str) -> Option<u16> {
    client.get(url).send().await.ok().map(|answer| answer.status().as_u16())
}

/// A gRPC connection that trusts only this authority, with this client certificate.
async fn connect(address: &str, authority: &Authority, pair: Option<&Pair>) -> Result<Channel, String> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.ca_pem()));
    if let Some(pair) = pair {
        let read = |path: &Path| std::fs::read(path).unwrap();
        tls = tls.identity(Identity::from_pem(read(&pair.certificate), read(&pair.key)));
    }
    let endpoint = Endpoint::from_shared(address.replace("http://", "https://")).unwrap();
    endpoint.tls_config(tls).unwrap().connect().await.map_err(|error| format!("{error:?}"))
}

/// Whether a token exchange succeeds; with TLS 1.3 a missing client certificate fails the first call.
async fn exchanges(address: &str, authority: &Authority, pair: Option<&Pair>, token: &str) -> bool {
    let Ok(channel) = connect(address, authority, pair).await else { return false };
    let request = ExchangeRequest { api_token: token.to_owned() };
    TokenServiceClient::new(channel).exchange(request).await.is_ok()
}

#[test]
fn one_process_serves_tls_to_the_public_and_mutual_tls_over_grpc() {
    run_alone(async {
        let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let data = Scratch::new();
        let folder = text(data.path());
        let token = token_format::generate(&OsEntropy);
        let options = listening(&own.issue("server").unwrap(), Some(&own.ca()));
        let arguments = [
            "up",
            "--data",
            &folder,
            "--listen",
            ANY_PORT,
            "--admin-listen",
            ANY_PORT,
            "--grpc-listen",
            ANY_PORT,
        ];
        let mut up = start(&arguments, &options, &[("CAIRN_BOOTSTRAP_TOKEN", &token)]);
        let printed = eventually("cairn up says that it is ready", async || {
            assert!(up.ended().is_none(), "{}", up.output());
            Some(up.stdout()).filter(|printed| printed.contains("Ctrl-C stops it"))
        })
        .await;
        let base_url =
            printed.split_whitespace().find(|word| word.starts_with("https://")).unwrap().to_owned();

        let client = browser(&own);
        let list = client.get(format!("{base_url}/api/v1/files")).bearer_auth(&token).send().await.unwrap();
        assert_eq!(list.status(), 200, "the public needs no certificate");
        assert_eq!(status(&browser(&other), &format!("{base_url}/healthz")).await, None, "another authority");

        // Plain HTTP on the TLS port is logged, and does no harm.
        let address = base_url.trim_start_matches("https://");
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
        eventually("the log says what was wrong", async || {
            up.stderr().contains("did not speak TLS").then_some(())
        })
        .await;
        assert_eq!(status(&client, &format!("{base_url}/healthz")).await, Some(200));

        let grpc = up.printed_address("gRPC ").unwrap();
        let (member, stranger) = (own.issue("member").unwrap(), other.issue("stranger").unwrap());
        assert!(exchanges(&grpc, &own, Some(&member), &token).await);
        for pair in [None, Some(&stranger)] {
            assert!(!exchanges(&grpc, &own, pair, &token).await, "gRPC wants a certificate of its authority");
        }
        eventually("the log says who was turned away", async || {
            up.stderr().contains("showed no client certificate").then_some(())
        })
        .await;

        // An https base URL makes the session cookie Secure.
        let file = std::fs::read_to_string(data.path().join("bootstrap.json")).unwrap();
        let account: Value = serde_json::from_str(&file).unwrap();
        assert_eq!(account["baseUrl"], json!(base_url));
    });
}

/// The address that a service has printed.
async fn address_of(service: &str, process: &mut Process) -> String {
    let start = format!("cairn {service} listening on ");
    eventually(&format!("{service} says where it listens"), async || {
        assert!(process.ended().is_none(), "{}", process.output());
        let printed = process.stdout();
        let line = printed.lines().find_map(|line| line.strip_prefix(&start))?;
        line.split(' ').next().map(|address| format!("https://{address}"))
    })
    .await
}

#[test]
fn services_know_each_other_by_mutual_tls() {
    run_alone(async {
        let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let data = Scratch::new();
        let folder = text(data.path());
        let token = token_format::generate(&OsEntropy);
        let ca = text(&own.ca());
        let environment = [
            ("CAIRN_MESH_SECRET", "a mesh secret for tests"),
            ("CAIRN_TLS_CA", ca.as_str()),
            ("CAIRN_BOOTSTRAP_EMAIL", "owner@example.com"),
            ("CAIRN_BOOTSTRAP_PASSWORD", "a password of several words"),
            ("CAIRN_BOOTSTRAP_TOKEN", token.as_str()),
            ("CAIRN_DATA", folder.as_str()),
        ];
        let mutual = |name: &str| listening(&own.issue(name).unwrap(), Some(&own.ca()));
        let mut auth = start(&["serve", "auth", "--listen", ANY_PORT], &mutual("auth"), &environment);
        let auth_url = address_of("auth", &mut auth).await;
        let content = ["serve", "content", "--listen", ANY_PORT, "--auth-url", &auth_url];
        let mut content = start(&content, &mutual("content"), &environment);
        let content_url = address_of("content", &mut content).await;

        let gateway = [
            "serve",
            "gateway",
            "--listen",
            ANY_PORT,
            "--auth-url",
            &auth_url,
            "--content-url",
            &content_url,
        ];
        let public = listening(&own.issue("gateway").unwrap(), None);
        let mut known = start(&gateway, &public, &environment);
        let known_url = address_of("gateway", &mut known).await;
        let client = browser(&own);
        let files = |base: &str| client.get(format!("{base}/api/v1/files")).bearer_auth(&token).send();
        eventually("files are listed through three processes over TLS", async || {
            let answer = files(&known_url).await.ok()?;
            (answer.status() == 200).then_some(())
        })
        .await;

        // The services reject a gateway with a certificate of another authority.
        let stranger = other.issue("stranger").unwrap();
        let shown = [
            ("CAIRN_TLS_CLIENT_CERT", text(&stranger.certificate)),
            ("CAIRN_TLS_CLIENT_KEY", text(&stranger.key)),
        ];
        let mut changed = environment.to_vec();
        changed.extend(shown.iter().map(|(name, value)| (*name, value.as_str())));
        let mut unknown = start(&gateway, &public, &changed);
        let unknown_url = address_of("gateway", &mut unknown).await;
        assert_eq!(files(&unknown_url).await.unwrap().status(), 503);

        // A gateway that trusts another authority does not connect to them.
        let wrong_ca = text(&other.ca());
        let mut changed = environment.to_vec();
        changed.push(("CAIRN_TLS_CA", wrong_ca.as_str()));
        let mut distrustful = start(&gateway, &public, &changed);
        let distrustful_url = address_of("gateway", &mut distrustful).await;
        assert_eq!(files(&distrustful_url).await.unwrap().status(), 503);
        eventually("the log says why", async || {
            distrustful.stderr().contains("cannot be reached over TLS").then_some(())
        })
        .await;
    });
}

#[test]
fn wrong_files_are_told_at_the_start() {
    run_alone(async {
        let own = Authority::new().unwrap();
        let (one, other) = (own.issue("one").unwrap(), own.issue("other").unwrap());
        let missing = Pair { certificate: "/no/such.crt".into(), key: one.key.clone() };
        let mixed = Pair { certificate: one.certificate.clone(), key: other.key };
        for (pair, expected) in
            [(missing, "/no/such.crt cannot be read"), (mixed, "cannot be used with the key")]
        {
            let data = Scratch::new();
            let folder = text(data.path());
            let mut up =
                start(&["up", "--data", &folder, "--listen", ANY_PORT], &listening(&pair, None), &[]);
            assert!(!up.exit().await.success());
            let output = format!("{}{}", up.stdout(), up.stderr());
            assert!(output.contains(expected), "{output}");
        }
        let secret = [("CAIRN_MESH_SECRET", "a mesh secret for tests")];
        let gateway = ["serve", "gateway", "--listen", ANY_PORT, "--auth-url", "https://127.0.0.1:1"];
        let mut untrusting = start(&gateway, &[], &secret);
        assert!(!untrusting.exit().await.success());
        assert!(untrusting.stderr().contains("CAIRN_TLS_CA"), "{}", untrusting.output());
        let half = ["--tls-cert".to_owned(), text(&one.certificate)];
        let mut half = start(&["serve", "gateway", "--listen", ANY_PORT], &half, &secret);
        assert!(!half.exit().await.success());
        assert!(half.stderr().contains("--tls-key"), "{}", half.output());
    });
}

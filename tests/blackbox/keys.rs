//! Key rotation: signing keys are replaced under load, the secret key by a command.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::sealing::Keyring;
use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::content::v1::ListFilesRequest;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use crate::doctor::assert_sound;
use crate::support::callers::ApiToken;
use crate::support::http::Http;
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Tests need not wait as long as verifiers may cache keys.
const LEAD: (&str, &str) = ("CAIRN_SIGNING_KEY_LEAD_SECONDS", "2");

/// Runs a command to completion: whether it succeeded, and its output.
async fn cairn(arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String) {
    let all: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    let mut process = Process::start(&format!("cairn {}", arguments[..2].join(" ")), &all, environment);
    let status = process.exit().await;
    (status.success(), format!("{}{}", process.stdout(), process.stderr()))
}

/// A load of typical calls: over REST, and over gRPC with a fresh identity token each time.
struct Load {
    token: ApiToken,
    auth: Channel,
    content: Channel,
}

impl Load {
    async fn connect(token: ApiToken, auth: &str, content: &str) -> Self {
        let connect =
            async |url: &str| Endpoint::from_shared(url.to_owned()).unwrap().connect().await.unwrap();
        Self { token, auth: connect(auth).await, content: connect(content).await }
    }

    async fn exchange(&self) -> String {
        let request = ExchangeRequest { api_token: self.token.secret.clone() };
        TokenServiceClient::new(self.auth.clone()).exchange(request).await.unwrap().into_inner().identity
    }

    /// The id of the active signing key.
    async fn signing_key(&self) -> String {
        let identity = self.exchange().await;
        let head = URL_SAFE_NO_PAD.decode(identity.split('.').next().unwrap()).unwrap();
        serde_json::from_slice::<Value>(&head).unwrap()["kid"].as_str().unwrap().to_owned()
    }

    async fn ask(&self) {
        let mut request = Request::new(ListFilesRequest::default());
        let identity = self.exchange().await;
        request.metadata_mut().insert("authorization", format!("Bearer {identity}").parse().unwrap());
        FileServiceClient::new(self.content.clone()).list_files(request).await.unwrap();
        self.token.get("/api/v1/files").await.expect(200);
    }

    /// Sends requests until the signing key has changed, and a while longer; every single response must be a success.
    async fn ask_until_replaced(self: Arc<Self>, storage: &[&str]) {
        let before = self.signing_key().await;
        let (is_over, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let asking = tokio::spawn({
            let (load, is_over, answers) = (Arc::clone(&self), Arc::clone(&is_over), Arc::clone(&answers));
            async move {
                while !is_over.load(Ordering::SeqCst) {
                    load.ask().await;
                    answers.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let (is_done, output) = cairn(&[&["keys", "rotate"], storage].concat(), &[]).await;
        assert!(is_done && output.contains("will be replaced"), "{output}");
        let after = eventually("another key signs", async || {
            assert!(!asking.is_finished(), "a request failed while the key was replaced");
            Some(self.signing_key().await).filter(|key| *key != before)
        })
        .await;
        let at_change = answers.load(Ordering::SeqCst);
        eventually("requests go on under the new key", async || {
            assert!(!asking.is_finished(), "a request failed after the key was replaced");
            (answers.load(Ordering::SeqCst) > at_change + 5).then_some(())
        })
        .await;
        is_over.store(true, Ordering::SeqCst);
        asking.await.unwrap();

        let (is_done, output) = cairn(&[&["keys", "list"], storage].concat(), &[]).await;
        let state_of = |key: &str| {
            let line = output.lines().find(|line| line.starts_with(key)).unwrap_or_default();
            line.split_whitespace().nth(1).unwrap_or_default().to_owned()
        };
        assert!(is_done, "{output}");
        assert_eq!(
            (state_of(&before), state_of(&after)),
            ("retired".to_owned(), "active".to_owned()),
            "{output}"
        );
    }
}

#[test]
fn the_signing_key_of_one_process_is_replaced_under_load() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[LEAD]).await;
        let load = Load::connect(up.token(), &up.grpc_url(), &up.grpc_url()).await;
        Arc::new(load).ask_until_replaced(&["--data", &data.path().display().to_string()]).await;
        assert_sound(data.path()).await;
    });
}

#[test]
fn the_signing_key_of_a_mesh_is_replaced_under_load() {
    run_alone(async {
        let mesh = match Mesh::start_with(&[LEAD]).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let token = ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() };
        eventually("the mesh is ready", async || (token.get("/readyz").await.status == 200).then_some(()))
            .await;
        let load = Load::connect(token, &mesh.grpc_url("auth"), &mesh.grpc_url("content")).await;
        Arc::new(load).ask_until_replaced(&["--database", mesh.database("auth")]).await;
    });
}

fn secret_key(data: &Path) -> String {
    std::fs::read_to_string(data.join("secret.key")).unwrap()
}

#[test]
fn the_secret_key_of_one_process_is_renewed_while_it_rests() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let rotate = ["secrets", "rotate", "--data", &folder];
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let before = secret_key(data.path());
        let (is_done, output) = cairn(&rotate, &[]).await;
        assert!(!is_done && output.contains("another cairn process uses"), "{output}");
        assert_eq!(secret_key(data.path()), before);
        assert!(up.stop().await.success());

        let (is_done, output) = cairn(&rotate, &[]).await;
        assert!(is_done && output.contains("new key: 1 secret; sealed under it already: 0"), "{output}");
        let after = secret_key(data.path());
        assert_eq!(after.lines().count(), 1, "the old key is gone");
        assert_ne!(after, before);
        for key in [&before, &after] {
            assert!(!output.contains(key.trim()), "{output}");
        }
        assert_sound(data.path()).await;

        // With the wrong key the doctor reports it, and nothing starts.
        std::fs::write(data.path().join("secret.key"), &before).unwrap();
        let (is_sound, output) = cairn(&["doctor", "--quiet", "--data", &folder], &[]).await;
        assert!(!is_sound && output.contains("every sealed secret opens"), "{output}");
        let mut refused = SingleProcess::launch(data.path(), &[]);
        assert!(!refused.exit().await.success());
        assert!(refused.output().contains("does not open"), "{}", refused.output());
        std::fs::write(data.path().join("secret.key"), &after).unwrap();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        up.token().get("/api/v1/files").await.expect(200);
    });
}

#[test]
fn the_secret_key_of_a_mesh_is_renewed_while_it_works() {
    run_alone(async {
        let key = || Keyring::generate(&OsEntropy).to_text().trim().to_owned();
        let (old, new) = (key(), key());
        // The harness borrows its environment for the life of the test process.
        let both: &str = format!("{new},{old}").leak();
        let mesh = match Mesh::start_with(&[("CAIRN_SECRET_KEY", old.clone().leak())]).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let auth = mesh.database("auth");
        let rotate = ["secrets", "rotate", "--database", auth];
        let (is_done, output) = cairn(&rotate, &[]).await;
        assert!(!is_done && output.contains("set CAIRN_SECRET_KEY to <new>,<old>"), "{output}");
        let (is_done, output) = cairn(&rotate, &[("CAIRN_SECRET_KEY", new.as_str())]).await;
        assert!(!is_done && output.contains("not among those given"), "{output}");
        let (is_done, output) = cairn(&rotate, &[("CAIRN_SECRET_KEY", both)]).await;
        assert!(is_done && output.contains("new key: 1 secret; sealed under it already: 0"), "{output}");
        let (is_done, output) = cairn(&rotate, &[("CAIRN_SECRET_KEY", both)]).await;
        assert!(is_done && output.contains("new key: 0 secrets; sealed under it already: 1"), "{output}");
        for key in [&old, &new] {
            assert!(!output.contains(key.as_str()), "{output}");
        }
        for (key, is_right) in [(&new, true), (&old, false)] {
            let environment = [("CAIRN_SECRET_KEY", key.as_str())];
            let (is_sound, output) = cairn(&["doctor", "--quiet", "--database", auth], &environment).await;
            assert_eq!(is_sound, is_right, "{output}");
        }
    });
}

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::Router;
use axum::body::Body as Sent;
use axum::extract::{Request as Asked, State};
use http::Response;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;
use crate::contract::{self, SECRET, World, changed, counted, guard, listed};
use crate::{ProviderKind, Reach, connect};

/// A repository that git's own server program serves.
struct Repository {
    folder: TempDir,
    base: String,
    /// What is answered instead: 0 for nothing, 429 once, 401 for ever.
    status: Arc<AtomicU16>,
}

#[derive(Clone)]
struct Served {
    root: std::path::PathBuf,
    status: Arc<AtomicU16>,
}

impl Repository {
    /// `None`, aloud, where git or its server program is missing.
    async fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let backend = Command::new("git").args(["http-backend"]).stdin(Stdio::null()).output();
        if !backend.is_ok_and(|output| {
            output.stdout.starts_with(b"Status:") || output.stdout.starts_with(b"Expires")
        }) {
            eprintln!("skipped: git http-backend is not installed");
            return None;
        }
        let status = Arc::new(AtomicU16::new(0));
        let served = Served { root: folder.path().to_owned(), status: Arc::clone(&status) };
        let router = Router::new().fallback(serve).with_state(served);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let repository = Self { folder, base, status };
        std::fs::create_dir(repository.work()).unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        Some(repository)
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("repo")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = command(self.folder.path());
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "gc.auto=0"];
        let output = command.current_dir(self.work()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self.git(&["add", "-A"]);
    }

    fn commit(&self) -> String {
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn connect(&self, more: &serde_json::Value) -> Box<dyn Provider> {
        let mut settings = more.clone();
        settings["url"] = format!("{}/repo", self.base).into();
        let credentials = json!({ "token": SECRET });
        let reach = Reach::new(guard(), &[]);
        connect(ProviderKind::Git, &settings, Some(&credentials), None, &reach).unwrap()
    }

    async fn paths(&self, more: &serde_json::Value) -> Vec<String> {
        let read = listed(self.connect(more).as_ref(), &counted(100).call).await;
        read.entries.keys().map(ToString::to_string).collect()
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", home);
    command
}

/// The common gateway interface to `git http-backend`.
async fn serve(State(served): State<Served>, asked: Asked) -> Response<Sent> {
    let instead = served.status.load(Ordering::SeqCst);
    if instead != 0 {
        if instead == 429 {
            served.status.store(0, Ordering::SeqCst);
        }
        return Response::builder().status(instead).header("retry-after", "7").body(Sent::empty()).unwrap();
    }
    let (head, body) = asked.into_parts();
    let body = axum::body::to_bytes(body, 1_000_000).await.unwrap();
    let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let mut backend: tokio::process::Command = command(&served.root).into();
    backend.arg("http-backend").env("GIT_HTTP_EXPORT_ALL", "1").env("GIT_PROJECT_ROOT", &served.root);
    backend.env("PATH_INFO", head.uri.path()).env("QUERY_STRING", head.uri.query().unwrap_or_default());
    backend.env("REQUEST_METHOD", head.method.as_str()).env("CONTENT_TYPE", header("content-type"));
    backend.env("GIT_PROTOCOL", header("git-protocol")).env("CONTENT_LENGTH", body.len().to_string());
    let mut child = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&body).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let mut response = Response::builder();
    for line in std::str::from_utf8(&output[..end]).unwrap().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        match name {
            "Status" => response = response.status(value[..3].parse::<u16>().unwrap()),
            name => response = response.header(name, value),
        }
    }
    response.body(Sent::from(output[end + 4..].to_vec())).unwrap()
}

#[async_trait]
impl World for Repository {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect(&json!({}))
    }

    async fn put(&self, name: &str, text: &str) {
        self.write(name, text);
        self.commit();
    }

    async fn remove(&self, name: &str) {
        self.git(&["rm", "-q", name]);
        self.commit();
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }

    async fn limit(&self) -> bool {
        self.status.store(429, Ordering::SeqCst);
        true
    }

    async fn lose_positions(&self) -> bool {
        // History is written anew, and the old one forgotten.
        self.git(&["checkout", "-q", "--orphan", "other"]);
        self.commit();
        self.git(&["branch", "-q", "-M", "other", "main"]);
        self.git(&["reflog", "expire", "--expire=now", "--all"]);
        self.git(&["gc", "-q", "--prune=now"]);
        true
    }

    async fn refuse(&self) -> bool {
        self.status.store(401, Ordering::SeqCst);
        true
    }
}

#[tokio::test]
async fn a_repository_keeps_the_contract() {
    if let Some(repository) = Repository::new().await {
        contract::holds(&repository).await;
    }
}

#[tokio::test]
async fn a_run_costs_three_requests_and_one_without_changes_two() {
    let Some(repository) = Repository::new().await else { return };
    for number in 0..1_200 {
        std::fs::write(repository.work().join(format!("{number}.md")), format!("text {number}")).unwrap();
    }
    repository.git(&["add", "-A"]);
    let commit = repository.commit();
    let (provider, first) = (repository.provider(), counted(100));
    let read = listed(provider.as_ref(), &first.call).await;
    assert_eq!((read.entries.len(), read.pages), (1_200, 2));
    let id = ExternalId::new("7.md").unwrap();
    assert_eq!(contract::text(&first.call, provider.as_ref(), id.as_str()).await.unwrap(), "text 7");
    assert_eq!(first.call.sent(), 3, "what it can do, what the reference is, the pack");
    let url = read.entries[&id].url.clone().unwrap();
    assert_eq!(url, format!("{}/repo/blob/{commit}/7.md", repository.base));
    let next = read.next.unwrap();
    let again = counted(100);
    let nothing = changed(repository.provider().as_ref(), &again.call, &next).await;
    assert_eq!((nothing.entries.len(), nothing.gone.len(), again.call.sent()), (0, 0, 2));
}

#[tokio::test]
async fn only_files_of_the_chosen_part_are_documents() {
    let Some(repository) = Repository::new().await else { return };
    for name in ["a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt", "docs2/e.md"] {
        repository.write(name, "x");
    }
    std::os::unix::fs::symlink("/etc/passwd", repository.work().join("docs/link.md")).unwrap();
    repository.git(&["add", "-A"]);
    let commit = repository.commit();
    repository.git(&["tag", "-a", "v1", "-m", "a tag"]);
    repository.write("later.md", "x");
    repository.commit();
    let path = json!({ "path": "/docs/", "include": ["*.md"] });
    assert_eq!(repository.paths(&path).await, ["docs/b.md", "docs/deep/c.md"]);
    let before = ["a.md", "docs/b.md", "docs/d.txt", "docs/deep/c.md", "docs2/e.md"];
    for reference in ["v1", "refs/tags/v1", commit.as_str()] {
        assert_eq!(repository.paths(&json!({ "ref": reference })).await, before, "{reference}");
    }
    assert_eq!(repository.paths(&json!({ "ref": "main" })).await.len(), 6);
    let missing = repository.connect(&json!({ "ref": "nowhere" }));
    assert!(matches!(missing.check(&counted(9).call).await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn what_is_kept_elsewhere_is_told() {
    let Some(repository) = Repository::new().await else { return };
    repository.write("big.bin", [LFS, b"\noid sha256:0\nsize 9\n"].concat());
    repository.commit();
    let (provider, call) = (repository.provider(), counted(9).call);
    let fetched = provider.fetch(&call, &ExternalId::new("big.bin").unwrap(), None).await;
    assert_eq!(fetched, Ok(Fetched::Unsupported("application/vnd.git-lfs".to_owned())));
}

#[tokio::test]
async fn a_repository_without_a_commit_is_not_taken_for_an_empty_one() {
    let Some(repository) = Repository::new().await else { return };
    let read = listed(repository.provider().as_ref(), &counted(9).call).await;
    assert_eq!((read.entries.len(), read.partial.len()), (0, 1));
    assert!(repository.provider().check(&counted(9).call).await.is_ok());
}

#[tokio::test]
async fn a_page_for_people_is_no_repository() {
    let router = Router::new().fallback(async || ([("content-type", "text/html")], "<html>sign in"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/x.git", listener.local_addr().unwrap().port());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let reach = Reach::new(guard(), &[]);
    let provider = connect(ProviderKind::Git, &json!({ "url": url }), None, None, &reach).unwrap();
    assert!(matches!(provider.check(&counted(9).call).await, Err(Fault::Broken(_))));
}

#[test]
fn settings_are_checked() {
    let reach = Reach::new(guard(), &[]);
    let problems = |settings: serde_json::Value| {
        let made = connect(ProviderKind::Git, &settings, Some(&json!({ "username": "me" })), None, &reach);
        made.unwrap_err().into_iter().map(|one| one.path).collect::<Vec<_>>()
    };
    let url = "https://example.com/a.git";
    assert_eq!(problems(json!({ "url": url })), ["credentials.token"]);
    for odd in [
        "ext::sh -c id",
        "file:///etc",
        "ssh://git@example.com/a",
        "git://example.com/a",
        "https://u:p@example.com/",
    ] {
        assert_eq!(problems(json!({ "url": odd })), ["settings.url", "credentials.token"], "{odd}");
    }
    for odd in ["--upload-pack=id", "a b", "a..b", "-x", "a~1", "@{u}", "a/", "x\\y"] {
        assert_eq!(
            problems(json!({ "url": url, "ref": odd })),
            ["settings.ref", "credentials.token"],
            "{odd}"
        );
    }
    assert_eq!(problems(json!({ "url": url, "path": "a/../b" })), ["settings.path", "credentials.token"]);
    assert!(["main", "feature/x", "v1.0", "HEAD", "refs/heads/main"].iter().all(|name| is_reference(name)));
}

//! `cairn login`, `cairn profiles`, `cairn logout`: a person authorizes the commands on a machine to use a workspace.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::callers::Session;
use crate::support::http::{Http, Reply, each, text};
use crate::support::oauth::{FORM, encoded, input};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::scratch::Scratch;

scenarios![
    a_person_logs_in_and_commands_need_no_token,
    an_answer_may_be_pasted_where_no_browser_comes_back,
    who_allows_nothing_is_not_logged_in,
    a_token_may_be_kept_and_goes_nowhere_else,
];

/// A machine with a configuration of its own.
struct Machine {
    settings: Scratch,
}

impl Machine {
    fn new() -> Self {
        Self { settings: Scratch::new() }
    }

    fn profiles(&self) -> PathBuf {
        self.settings.path().join("cairn/profiles.json")
    }

    fn start(&self, arguments: &[&str]) -> Process {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let settings = self.settings.path().display().to_string();
        Process::start_with_input("cairn", &arguments, &[("XDG_CONFIG_HOME", &settings)])
    }

    /// The exit status, stdout and stderr.
    async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        finish(self.start(arguments)).await
    }
}

async fn finish(mut process: Process) -> (Option<i32>, String, String) {
    let status = process.exit().await;
    (status.code(), process.stdout(), process.stderr())
}

/// Starts a login; returns the path and query that the person is to open.
async fn login(machine: &Machine, url: &str) -> (Process, String) {
    let mut process = machine.start(&["login", "--url", url, "--no-browser", "--json"]);
    let address = eventually("the login shows an address", async || {
        let output = process.stderr();
        let found = output.lines().map(str::trim).find(|line| line.starts_with("http"));
        found.and_then(|line| line.strip_prefix(url)).map(str::to_owned)
    })
    .await;
    (process, address)
}

/// The person decides on the page; returns the redirect of the browser.
async fn decide(person: &Session, address: &str, workspace: &str, decision: &str) -> String {
    let page = person.get(address).await.expect(200).text();
    let (request, csrf) = (input(&page, "request"), input(&page, "csrf"));
    let fields =
        [("request", request.as_str()), ("csrf", &csrf), ("workspace", workspace), ("decision", decision)];
    let ticked = [("permission", "read"), ("permission", "write")];
    let answered: Reply = person
        .post("/oauth/authorize")
        .body(FORM, encoded(fields.into_iter().chain(ticked)))
        .await
        .expect(303);
    answered.header("location").unwrap().to_owned()
}

/// A browser on this machine follows the redirect.
async fn browse(location: &str) {
    let (origin, path) = location.split_at(location.find("/callback").unwrap());
    Http::new(origin).request(reqwest::Method::GET, path).await.expect(200);
}

async fn a_person_logs_in_and_commands_need_no_token(deployment: &Deployment) {
    let (workspace, machine, url) = (deployment.workspace().await, Machine::new(), deployment.base_url());
    workspace.file("lamps.md", None, "lamps").await;
    let (process, address) = login(&machine, &url).await;
    assert!(address.contains("code_challenge_method=S256"), "{address}");
    let location = decide(&workspace.session, &address, &workspace.id, "allow").await;
    browse(&location).await;
    let (code, output, log) = finish(process).await;
    assert_eq!(code, Some(0), "{output}{log}");
    let told: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (&told["workspaceId"], &told["permissions"]),
        (&json!(workspace.id), &json!(["read", "write"]))
    );
    assert!(!format!("{output}{log}").contains("cairn_o"), "a secret was shown: {output}{log}");
    let mode = std::fs::metadata(machine.profiles()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let (code, output, log) = machine.run(&["exec", "ls /files"]).await;
    assert!(code == Some(0) && output.contains("lamps.md"), "{output}{log}");
    let (code, _, log) = machine.run(&["exec", "ls /files", "--url", "http://[::1]:1"]).await;
    assert!(
        code == Some(4) && log.contains("cairn login --url"),
        "the token goes to no other address: {log}"
    );
    let (_, output, _) = machine.run(&["profiles", "--json"]).await;
    let listed: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(each(&listed["profiles"], "url"), [url.as_str()]);
    assert!(!output.contains("cairn_o"), "{output}");

    let golden = machine.settings.path().join("golden.jsonl");
    std::fs::write(&golden, "{\"question\": \"lamps\", \"expect\": [\"/lamps.md\"]}\n").unwrap();
    let (name, golden) = (text(&told, "profile"), golden.display().to_string());
    let asked = ["eval", &golden, "--profile", &name, "--strategies", "keyword", "--json"];
    let (code, output, log) = machine.run(&asked).await;
    assert!(code == Some(0) && output.contains("recall@10"), "{output}{log}");

    // The access token has expired: of two concurrent commands one refreshes it, and the other uses the refreshed
    // token.
    let kept = || -> Value { serde_json::from_slice(&std::fs::read(machine.profiles()).unwrap()).unwrap() };
    let mut before = kept();
    before["profiles"][&name]["credential"]["expiresAt"] = json!(0);
    std::fs::write(machine.profiles(), before.to_string()).unwrap();
    let both = [machine.start(&["exec", "ls /files"]), machine.start(&["exec", "ls /files"])];
    for process in both {
        let (code, output, log) = finish(process).await;
        assert!(code == Some(0) && output.contains("lamps.md"), "{output}{log}");
    }
    let renewed = kept();
    let token = |profiles: &Value| profiles["profiles"][&name]["credential"]["refreshToken"].clone();
    assert_ne!(token(&renewed), token(&before));
    assert_eq!(machine.run(&["exec", "ls /files"]).await.0, Some(0));

    let grants = format!("/api/workspaces/{}/grants", workspace.id);
    assert_eq!(workspace.session.get(&grants).await.expect(200).json().as_array().unwrap().len(), 1);
    let (code, output, log) = machine.run(&["logout"]).await;
    assert!(code == Some(0) && output.contains("Logged out"), "{output}{log}");
    assert_eq!(workspace.session.get(&grants).await.expect(200).json(), json!([]));
    assert_eq!(machine.run(&["exec", "ls /files"]).await.0, Some(4));
}

async fn an_answer_may_be_pasted_where_no_browser_comes_back(deployment: &Deployment) {
    let (workspace, machine) = (deployment.workspace().await, Machine::new());
    let (mut process, address) = login(&machine, &deployment.base_url()).await;
    let location = decide(&workspace.session, &address, &workspace.id, "allow").await;
    process.enter("http://127.0.0.1/callback?code=cairn_oc_other&state=of-another-login");
    process.enter(&location);
    let (code, output, log) = finish(process).await;
    assert!(code == Some(0) && log.contains("no answer to this login"), "{output}{log}");
    // The MCP bridge uses the profile, too.
    let mut bridge = machine.start(&["mcp"]);
    bridge.enter(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
    eventually("the bridge answers", async || bridge.stdout().contains("search_context").then_some(())).await;
    bridge.kill();
    // What was not granted is refused, and no command needs a person's session.
    let (code, _, log) = machine.run(&["feedback", "works"]).await;
    assert_eq!(code, Some(0), "{log}");
}

async fn who_allows_nothing_is_not_logged_in(deployment: &Deployment) {
    let (workspace, machine) = (deployment.workspace().await, Machine::new());
    let (process, address) = login(&machine, &deployment.base_url()).await;
    let location = decide(&workspace.session, &address, &workspace.id, "deny").await;
    browse(&location).await;
    let (code, _, log) = finish(process).await;
    assert!(code == Some(4) && log.contains("allowed nothing"), "{log}");
    assert!(!machine.profiles().exists());
}

async fn a_token_may_be_kept_and_goes_nowhere_else(deployment: &Deployment) {
    let (workspace, machine, url) = (deployment.workspace().await, Machine::new(), deployment.base_url());
    let mut process = machine.start(&["login", "--url", &url, "--profile", "ci", "--with-token"]);
    process.enter(&workspace.token.secret);
    let (code, output, log) = finish(process).await;
    assert!(code == Some(0) && !output.contains("cairn_"), "{output}{log}");
    assert_eq!(machine.run(&["exec", "pwd", "--profile", "ci"]).await.0, Some(0));
    let mut process = machine.start(&["login", "--url", &url, "--profile", "wrong", "--with-token"]);
    process.enter("cairn_no-such-token");
    let (code, _, log) = finish(process).await;
    assert!(code == Some(4) && !log.contains("no-such-token"), "{log}");
    let (code, output, _) = machine.run(&["logout", "--profile", "ci", "--json"]).await;
    assert!(code == Some(0) && output.contains("\"isRevoked\": false"), "{output}");
    workspace.token.get("/api/v1/files").await.expect(200);
}

//! `cairn login` and `cairn logout`.

mod answer;
mod callback;
pub(super) mod oauth;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use self::answer::Answer;
use self::callback::Callback;
use super::Ended;
use super::connection::{Connection, http_client};
use super::output::{note, print, print_json, visible};
use super::profiles::choice::{self, plain};
use super::profiles::model::{Credential, Grant, Profile, Profiles};
use super::profiles::renewal::now;
use super::profiles::store::Store;

pub(super) const LOGIN_EXAMPLES: &str = "Examples:
  cairn login --url https://cairn.example            in a browser; then `cairn search …` needs no token
  cairn login --url https://cairn.example --no-browser
  cairn login --url https://cairn.example --profile work
  pass show cairn | cairn login --url https://cairn.example --with-token

You sign in at the Cairn itself, and choose there the workspace and what commands may do in it. What opens it is kept in
$XDG_CONFIG_HOME/cairn/profiles.json (~/.config/cairn/profiles.json), readable by you alone. Where no browser can be opened,
open the address in any browser; when it cannot come back to this machine by itself, paste the address that it ends at.";

pub(super) const LOGOUT_EXAMPLES: &str = "Examples:
  cairn logout                                       of the default profile
  cairn logout --profile work";

const NO_STDIN: &str = "stdin cannot be read";
/// How long to wait for the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(crate) struct LoginOptions {
    /// The address of the Cairn. Default: that of the profile, else http://127.0.0.1:8700.
    #[arg(long, env = "CAIRN_URL", value_name = "URL")]
    url: Option<String>,
    /// What it is kept as. Default: the name of the host; it becomes the default profile then.
    #[arg(long, env = "CAIRN_PROFILE", value_name = "NAME")]
    profile: Option<String>,
    /// Open no browser, only print the address.
    #[arg(long)]
    no_browser: bool,
    /// Read an API token from stdin, and keep that.
    #[arg(long, conflicts_with = "no_browser")]
    with_token: bool,
    /// Print the profile as JSON, without what opens it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutOptions {
    /// Which one. Default: the default one.
    #[arg(long, env = "CAIRN_PROFILE", value_name = "NAME")]
    profile: Option<String>,
    /// Print the profile as JSON.
    #[arg(long)]
    json: bool,
}

/// The part of `GET /api/v1/workspace` that is used here.
#[derive(Deserialize)]
struct Opened {
    id: String,
    name: String,
    #[serde(default)]
    permissions: Vec<String>,
}

pub(super) async fn run(options: LoginOptions) -> anyhow::Result<()> {
    let store = Store::open()?;
    let profiles = store.read()?;
    let known = options.profile.as_ref().and_then(|name| profiles.profiles.get(name));
    let url = match (&options.url, known) {
        (Some(url), _) => plain(url.trim()),
        (None, Some(profile)) => profile.url.clone(),
        (None, None) => choice::address(None, &profiles)?,
    };
    let host = host_of(&url)?;
    let (credential, token) = if options.with_token {
        let token = line().await?.context("stdin holds no token")?;
        (Credential::Token { token: token.clone() }, token)
    } else {
        let grant = granted(&url, options.no_browser).await?;
        let token = grant.access_token.clone();
        (Credential::Grant(grant), token)
    };
    let connection = Connection::at(&url, Some(&token))?;
    let opened = connection.json(connection.request(Method::GET, "/api/v1/workspace")).await?;
    let opened: Opened = serde_json::from_value(opened).context("the answer is not as expected")?;
    let name = options.profile.clone().unwrap_or(host);
    let profile = Profile { url, workspace_id: opened.id, workspace_name: opened.name.clone(), credential };
    let told = json!({
        "profile": name, "url": profile.url, "workspaceId": profile.workspace_id,
        "workspaceName": profile.workspace_name, "permissions": opened.permissions,
    });
    let text = format!(
        "Logged in to {} at {} as profile {name}; it may {}.",
        opened.name,
        profile.url,
        opened.permissions.join(", ")
    );
    keep(&store, &name, profile, options.profile.is_none()).await?;
    if options.json { print_json(&told) } else { print(&visible(&text)) }
}

/// The default name of a profile.
fn host_of(url: &str) -> anyhow::Result<String> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(host) = parsed.as_ref().and_then(Url::host_str) else {
        bail!("`{url}` is no address: give one such as https://cairn.example with --url")
    };
    Ok(match parsed.as_ref().and_then(Url::port) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

async fn keep(store: &Store, name: &str, profile: Profile, becomes_default: bool) -> anyhow::Result<()> {
    let locked = store.lock().await?;
    let mut profiles = locked.read()?;
    profiles.profiles.insert(name.to_owned(), profile);
    if becomes_default || profiles.default.is_none() {
        profiles.default = Some(name.to_owned());
    }
    locked.write(&profiles)
}

/// Runs the authorization flow in a browser.
async fn granted(url: &str, no_browser: bool) -> anyhow::Result<Grant> {
    let client = http_client()?;
    let server = oauth::discover(&client, url).await?;
    let callback = Callback::listen().await?;
    let pending = oauth::begin(&client, server, callback.redirect_uri()).await?;
    let is_open = !no_browser && open::that_detached(pending.address()).is_ok();
    let what = if is_open { "If no browser opens, open" } else { "Open" };
    note(&format!(
        "{what} this address, sign in, and choose what commands may do:\n\n  {}\n",
        pending.address()
    ));
    let by_hand = no_browser || std::io::stdin().is_terminal();
    if by_hand {
        note("When the browser ends at an address that it cannot open, paste that address here:");
    }
    let answered = tokio::time::timeout(LOGIN_TIMEOUT, answered(&pending, callback, by_hand)).await;
    let code = answered.context("nobody answered within 15 minutes: start again")??;
    pending.redeem(&client, code, now()).await
}

/// The code, from the redirect of the browser or pasted on the terminal.
async fn answered(pending: &oauth::Pending, mut callback: Callback, by_hand: bool) -> anyhow::Result<String> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut may_paste = by_hand;
    loop {
        let answer = tokio::select! {
            answer = callback.next() => answer?,
            pasted = lines.next_line(), if may_paste => match pasted.context(NO_STDIN)? {
                Some(text) => Answer::pasted(text.trim()),
                None => {
                    // stdin is closed; the browser may still redirect.
                    may_paste = false;
                    continue;
                }
            },
        };
        match pending.code_of(answer) {
            // The answer to another login, or a forged one: keep waiting.
            None => note("That is no answer to this login; waiting for the one that is."),
            Some(code) => return Ok(code?),
        }
    }
}

/// The first line of stdin; `None` at its end.
async fn line() -> anyhow::Result<Option<String>> {
    let read = BufReader::new(tokio::io::stdin()).lines().next_line().await.context(NO_STDIN)?;
    Ok(read.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

pub(super) async fn log_out(options: LogoutOptions) -> anyhow::Result<()> {
    let store = Store::open()?;
    let locked = store.lock().await?;
    let mut profiles = locked.read()?;
    let Some(name) = options.profile.or_else(|| profiles.default.clone()) else {
        return Err(Ended::failed("nobody is logged in".to_owned()).into());
    };
    let Some(profile) = profiles.profiles.remove(&name) else {
        return Err(Ended::failed(profiles.no_such(&name)).into());
    };
    forget_default(&mut profiles, &name);
    locked.write(&profiles)?;
    drop(locked);
    let ended = match &profile.credential {
        Credential::Grant(grant) => Some(oauth::revoke(&http_client()?, grant).await),
        Credential::Token { .. } => None,
    };
    let text = match &ended {
        Some(Ok(())) => format!("Logged out of {}.", profile.url),
        Some(Err(_)) => format!(
            "Removed the profile {name}. {} did not answer: end the grant there, or it ends in 30 days.",
            profile.url
        ),
        None => {
            format!("Removed the profile {name}. Its token holds on until it is deleted at {}.", profile.url)
        }
    };
    if options.json {
        let is_revoked = ended.is_some_and(|ended| ended.is_ok());
        let told: Value = json!({"profile": name, "url": profile.url, "isRevoked": is_revoked});
        return print_json(&told);
    }
    print(&visible(&text))
}

fn forget_default(profiles: &mut Profiles, name: &str) {
    if profiles.default.as_deref() == Some(name) {
        // Only a single remaining profile becomes the default.
        let mut left = profiles.profiles.keys();
        profiles.default = left.next().filter(|_| left.next().is_none()).cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_named_after_its_host() {
        assert_eq!(host_of("https://cairn.example/team").unwrap(), "cairn.example");
        assert_eq!(host_of("http://127.0.0.1:8700").unwrap(), "127.0.0.1:8700");
        for odd in ["cairn.example", "ftp://cairn.example", "", "https://"] {
            assert!(host_of(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_last_profile_that_is_left_is_the_default_one() {
        let left = |names: &[&str]| {
            let mut profiles = Profiles { default: Some("gone".to_owned()), ..Profiles::default() };
            for name in names {
                let credential = Credential::Token { token: String::new() };
                let profile = Profile {
                    url: String::new(),
                    workspace_id: String::new(),
                    workspace_name: String::new(),
                    credential,
                };
                profiles.profiles.insert((*name).to_owned(), profile);
            }
            forget_default(&mut profiles, "gone");
            profiles.default
        };
        assert_eq!(left(&["a"]), Some("a".to_owned()));
        assert_eq!(left(&["a", "b"]), None);
        assert_eq!(left(&[]), None);
    }
}

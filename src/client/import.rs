//! `cairn import`: previews, applies and rolls back the import of a vault or an export.

mod archive;
mod report;
mod session;

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde_json::Value;

use self::session::Session;
use super::Ended;
use super::connection::ServerOptions;
use super::output::{confirmed, note, print, print_json};

pub(super) const EXAMPLES: &str = "Examples:
  cairn import vault.zip --dry-run            what would become what, every unresolved link, what would be left out
  cairn import vault.zip --yes
  cairn import export.zip --provider notion_zip --workspace 0199c0de-… --policy skip --yes --json
  cairn import --rollback 0199c0de-…          takes an import back, within 7 days

The archive is an Obsidian vault, or an export of Notion (Markdown & CSV, or HTML). People import: sign in with your email and
password, which the command asks for, or give them as CAIRN_EMAIL and CAIRN_PASSWORD. They are kept nowhere, and the session
ends with the command. It ends with 0 when all is done, 1 when it failed, 3 when something was left as it is, and 4 when nobody
could be signed in.";

/// The polling interval of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Args)]
pub(crate) struct ImportOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// The archive.
    #[arg(value_name = "ZIP", required_unless_present = "rollback")]
    archive: Option<PathBuf>,
    /// The id of the workspace. Default: the person's only one.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// What the archive is of. Default: what its names look like.
    #[arg(long, value_parser = ["obsidian_zip", "notion_zip"])]
    provider: Option<String>,
    /// The id of the folder that the import's own folder goes into. Default: the workspace's root.
    #[arg(long, value_name = "ID")]
    folder: Option<String>,
    /// What becomes of objects that changed since the last import: updated, left as they are, or put beside the old ones.
    #[arg(long, value_parser = ["update", "skip", "duplicate"], default_value = "update")]
    policy: String,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before anything is written.
    #[arg(long, short)]
    yes: bool,
    /// Take this run back: what nobody has touched since.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["archive", "dry_run", "provider", "folder"])]
    rollback: Option<String>,
    /// Who imports.
    #[arg(long, env = "CAIRN_EMAIL", value_name = "EMAIL")]
    email: Option<String>,
    /// Better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    password: Option<String>,
    /// Print the run as JSON; with --dry-run its report.
    #[arg(long)]
    json: bool,
}

cairn_chassis::debug_fields!(ImportOptions { server, archive, email });

pub(super) async fn run(options: ImportOptions) -> anyhow::Result<()> {
    let (email, password) = credentials(&options)?;
    let session = Session::open(&options.server, &email, &password).await?;
    let done = match &options.rollback {
        Some(run) => roll_back(&session, &options, run).await,
        None => import(&session, &options).await,
    };
    // The session belongs to this command only.
    session.close().await;
    done
}

async fn import(session: &Session, options: &ImportOptions) -> anyhow::Result<()> {
    let path = options.archive.as_deref().context("which archive? give its path")?;
    let workspace = session.workspace(options.workspace.as_deref())?;
    let provider = match &options.provider {
        Some(provider) => provider.clone(),
        None => archive::provider(path)?.to_owned(),
    };
    let previewed = preview(session, options, path, &workspace, &provider).await?;
    let run = session::text(&previewed, "id").to_owned();
    let report = session.json(Method::GET, &format!("/api/import/{run}/report")).await?;
    if !options.json {
        print(&report::told(&previewed, &report))?;
    }
    if options.dry_run {
        if options.json {
            print_json(&report)?;
        }
        return discard(session, &run).await;
    }
    if !(options.yes || confirmed()?) {
        discard(session, &run).await?;
        bail!("nothing was imported");
    }
    let path = format!("/api/import/{run}");
    let started = session.json(Method::POST, &format!("{path}/start")).await?;
    let ended = wait_for_end(session, &path, started, "importing").await?;
    finish(options, &ended, &["completed"])
}

async fn roll_back(session: &Session, options: &ImportOptions, run: &str) -> anyhow::Result<()> {
    if !run.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-') {
        bail!("`{run}` is no id of a run");
    }
    let path = format!("/api/import/{run}");
    if !options.yes {
        let found = session.json(Method::GET, &path).await?;
        note(&report::rollback_question(&found));
        if !confirmed()? {
            bail!("nothing was taken back");
        }
    }
    let started = session.json(Method::POST, &format!("{path}/rollback")).await?;
    let ended = wait_for_end(session, &path, started, "taking back").await?;
    finish(options, &ended, &["rolled_back"])
}

async fn preview(
    session: &Session,
    options: &ImportOptions,
    path: &Path,
    workspace: &str,
    provider: &str,
) -> anyhow::Result<Value> {
    let fields = [
        ("workspaceId", Some(workspace)),
        ("provider", Some(provider)),
        ("conflictPolicy", Some(options.policy.as_str())),
        ("folderId", options.folder.as_deref()),
    ];
    let form = archive::form(path, &fields).await?;
    let request = session.request(Method::POST, "/api/import/preview");
    let request = request
        .header("content-type", form.content_type)
        .header("content-length", form.length)
        .body(form.body);
    session.answer(request).await
}

/// Deletes a run that will not be applied.
async fn discard(session: &Session, run: &str) -> anyhow::Result<()> {
    session.json(Method::POST, &format!("/api/import/{run}/cancel")).await.map(drop)
}

/// Polls a run until it has ended.
async fn wait_for_end(session: &Session, path: &str, mut run: Value, what: &str) -> anyhow::Result<Value> {
    let number = |run: &Value, field: &str| run.get(field).and_then(Value::as_u64).unwrap_or_default();
    let template = format!("{what} {{pos}} of {{len}} {{wide_bar}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    while matches!(session::text(&run, "status"), "queued" | "running") {
        bar.set_length(number(&run, "total"));
        bar.set_position(number(&run, "processed"));
        tokio::time::sleep(POLL_INTERVAL).await;
        run = session.json(Method::GET, path).await?;
    }
    bar.finish_and_clear();
    Ok(run)
}

/// Reports how a run ended; `good` are the complete ends.
fn finish(options: &ImportOptions, run: &Value, good: &[&str]) -> anyhow::Result<()> {
    if options.json {
        print_json(run)?;
    } else {
        print(&report::ended(run))?;
    }
    let status = session::text(run, "status");
    let has_warnings =
        run.get("warnings").and_then(Value::as_array).is_some_and(|warnings| !warnings.is_empty());
    match status {
        "completed_with_warnings" => Err(Ended::left_alone().into()),
        "rolled_back" if good.contains(&status) && has_warnings => Err(Ended::left_alone().into()),
        _ if good.contains(&status) => Ok(()),
        _ => Err(anyhow!("the run is {status}")),
    }
}

/// The given value, else the input on the terminal.
fn credentials(options: &ImportOptions) -> anyhow::Result<(String, String)> {
    let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    let is_there = std::io::stdin().is_terminal();
    let told = || Ended::not_let_in("who imports? set CAIRN_EMAIL and CAIRN_PASSWORD".to_owned());
    let email = match given(&options.email) {
        Some(email) => email,
        None if is_there => {
            note("Email:");
            let mut text = String::new();
            std::io::stdin().lock().read_line(&mut text)?;
            text.trim().to_owned()
        }
        None => return Err(told().into()),
    };
    let password = match given(&options.password) {
        Some(password) => password,
        None if is_there => rpassword::prompt_password("Password: ").context("no password can be read")?,
        None => return Err(told().into()),
    };
    Ok((email, password))
}

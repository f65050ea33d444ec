//! `cairn doctor`: asks each service what is wrong with its stored data.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use cairn_chassis::doctor::Finding;
use cairn_chassis::sql::Config;

use crate::cli::{DoctorOptions, Role};

/// Looks, says what was found, and fails when something is wrong.
pub(crate) async fn run(options: DoctorOptions) -> anyhow::Result<()> {
    let mut examined = Vec::new();
    let mut findings = Vec::new();
    for role in [Role::Auth, Role::Content] {
        for storage in storages(&options, role)? {
            if let Some(found) = examine(role, &storage, options.quiet).await? {
                examined.push(role.name());
                findings.extend(found.into_iter().map(|finding| (role.name(), finding)));
            }
        }
    }
    if examined.is_empty() {
        bail!("no Cairn data here; name its folder with --data or its database with --database");
    }
    let mut out = std::io::stdout().lock();
    for (service, finding) in &findings {
        writeln!(out, "{service}: {finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "OK: {}", examined.join(", "))?;
        return Ok(());
    }
    bail!("{} things are wrong; restore a backup, or ask for help with the lines above", findings.len())
}

async fn examine(role: Role, storage: &Config, quiet: bool) -> anyhow::Result<Option<Vec<Finding>>> {
    let progress = |rule: &str| {
        if !quiet {
            say(role, rule);
        }
    };
    let found = match role {
        Role::Auth => cairn_auth::examine(storage, &progress).await?,
        Role::Content => cairn_content::examine(storage, &progress).await?,
        Role::Gateway | Role::Ingest | Role::Retrieval | Role::Sync => None,
    };
    Ok(found)
}

#[expect(clippy::print_stderr, reason = "progress is for whoever started the command")]
fn say(role: Role, rule: &str) {
    eprintln!("{}: {rule}", role.name());
}

/// Where the service may have its tables: the database, or a file of `cairn up` or of `cairn serve`.
fn storages(options: &DoctorOptions, role: Role) -> anyhow::Result<Vec<Config>> {
    if let Some(url) = &options.database {
        return Ok(vec![
            Config::from_url(url).context("the database cannot be used; see --database in --help")?,
        ]);
    }
    let file = format!("{}.db", role.name());
    let places = [options.data.join(&file), options.data.join(role.name()).join(&file)];
    Ok(places.into_iter().filter(|path| Path::exists(path)).map(Config::sqlite).collect())
}

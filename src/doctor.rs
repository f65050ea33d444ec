//! `cairn doctor`: asks each service what is wrong with its stored data.

use std::io::Write as _;

use anyhow::bail;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::doctor::Finding;
use cairn_chassis::sql::Config;
use cairn_chassis::wording::{self, Unit};
use cairn_content::AssetLocation;

use crate::cli::{ASSETS_FOLDER, DoctorOptions, Role};
use crate::{secret_keys, storages};

/// Looks, says what was found, and fails when something is wrong.
pub(crate) async fn run(options: DoctorOptions) -> anyhow::Result<()> {
    let mut examined = Vec::new();
    let mut findings = Vec::new();
    for role in [Role::Auth, Role::Content, Role::Ingest, Role::Retrieval, Role::Sync] {
        for storage in storages::of(role, &options.stored.data, options.stored.database.as_deref())? {
            if let Some(found) = examine(role, &storage, &options).await? {
                examined.push(role.name());
                findings.extend(found.into_iter().map(|finding| (role.name(), finding)));
            }
        }
    }
    if examined.is_empty() {
        bail!(storages::NONE_HERE);
    }
    let mut out = std::io::stdout().lock();
    for (service, finding) in &findings {
        writeln!(out, "{service}: {finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "OK: {}", examined.join(", "))?;
        return Ok(());
    }
    let found = wording::count(findings.len() as u64, Unit::Faults);
    bail!("{found} found; restore a backup, or ask for help with the lines above")
}

async fn examine(
    role: Role,
    storage: &Config,
    options: &DoctorOptions,
) -> anyhow::Result<Option<Vec<Finding>>> {
    let progress = |rule: &str| {
        if !options.quiet {
            say(role, rule);
        }
    };
    let found = match role {
        Role::Auth => {
            let ring = secret_keys::find(&options.secret_key, &options.stored.data)?;
            cairn_auth::examine(storage, ring.as_ref(), &progress).await?
        }
        Role::Content => cairn_content::examine(storage, &assets(options), &SystemClock, &progress).await?,
        Role::Retrieval => cairn_retrieval::examine(storage, &progress).await?,
        Role::Ingest => {
            let ring = secret_keys::find(&options.secret_key, &options.stored.data)?;
            cairn_ingest::examine(storage, ring.as_ref(), &progress).await?
        }
        Role::Sync => cairn_sync::examine(storage, &progress).await?,
        Role::Gateway => None,
    };
    Ok(found)
}

#[expect(clippy::print_stderr, reason = "progress is for whoever started the command")]
fn say(role: Role, rule: &str) {
    eprintln!("{}: {rule}", role.name());
}

/// Where the bytes of assets may be: as it is said, or in the data folder of `cairn up` or of `cairn serve`.
fn assets(options: &DoctorOptions) -> AssetLocation {
    if let Some(assets) = &options.assets {
        return assets.clone();
    }
    let of_serve = options.stored.data.join(Role::Content.name()).join(ASSETS_FOLDER);
    let of_up = options.stored.data.join(ASSETS_FOLDER);
    AssetLocation::Folder(if of_serve.exists() && !of_up.exists() { of_serve } else { of_up })
}

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
    let examined = examine(&options).await?;
    examined.tell()?;
    examined.result()
}

/// What was looked at, and what was found.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Services, or other parts of the data.
    pub(crate) parts: Vec<&'static str>,
    /// In which part, and what.
    pub(crate) findings: Vec<(&'static str, Finding)>,
}

impl Examined {
    /// Adds what was found in a part; none when it is not there.
    pub(crate) fn add(&mut self, part: &'static str, found: Option<Vec<Finding>>) {
        let Some(found) = found else { return };
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
        self.findings.extend(found.into_iter().map(|finding| (part, finding)));
    }

    /// Says what was found, or that all is well.
    pub(crate) fn tell(&self) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        for (part, finding) in &self.findings {
            writeln!(out, "{part}: {finding}")?;
        }
        if self.findings.is_empty() {
            writeln!(out, "OK: {}", self.parts.join(", "))?;
        }
        Ok(out.flush()?)
    }

    /// Fails when something is wrong.
    pub(crate) fn result(&self) -> anyhow::Result<()> {
        if self.findings.is_empty() {
            return Ok(());
        }
        let found = wording::count(self.findings.len() as u64, Unit::Faults);
        bail!("{found} found; restore a backup, or ask for help with the lines above")
    }
}

/// Looks over what every service has in the places that the options name.
pub(crate) async fn examine(options: &DoctorOptions) -> anyhow::Result<Examined> {
    let mut examined = Examined::default();
    for role in [Role::Auth, Role::Content, Role::Ingest, Role::Retrieval, Role::Sync] {
        for storage in storages::of(role, &options.stored.data, options.stored.database.as_deref())? {
            examined.add(role.name(), examine_one(role, &storage, options).await?);
        }
    }
    if examined.parts.is_empty() {
        bail!(storages::NONE_HERE);
    }
    Ok(examined)
}

async fn examine_one(
    role: Role,
    storage: &Config,
    options: &DoctorOptions,
) -> anyhow::Result<Option<Vec<Finding>>> {
    let progress = |rule: &str| {
        if !options.quiet {
            say(role.name(), rule);
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
pub(crate) fn say(part: &str, rule: &str) {
    eprintln!("{part}: {rule}");
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

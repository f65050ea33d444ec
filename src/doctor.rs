//! `cairn doctor`: checks that the files of a deployment are readable, that every invariant of every service holds, and
//! that the index matches its owners. Each check has its repair beside it, which [`crate::mend`] runs (docs/adr/0102).

pub(crate) mod files;
pub(crate) mod index;
pub(crate) mod leftovers;

use std::io::Write as _;

use anyhow::bail;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::doctor::Finding;
use cairn_chassis::sql::Config;
use cairn_chassis::wording::{self, Unit};
use cairn_content::AssetLocation;
use serde_json::{Value, json};

use crate::cli::{ASSETS_FOLDER, DoctorOptions, Role};
use crate::{secret_keys, storages};

/// The services that store data.
pub(crate) const ROLES: [Role; 5] = [Role::Auth, Role::Content, Role::Ingest, Role::Retrieval, Role::Sync];

/// Checks, prints the findings, and fails if there are any.
pub(crate) async fn run(options: DoctorOptions) -> anyhow::Result<()> {
    let examined = examine(&options).await?;
    if options.json {
        let mut out = std::io::stdout().lock();
        let said = json!({
            "isSound": examined.findings.is_empty(),
            "examined": examined.parts,
            "findings": examined.in_json(),
        });
        writeln!(out, "{said:#}")?;
        out.flush()?;
    } else {
        examined.tell()?;
    }
    examined.result()
}

/// The checked parts and their findings.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Services, or other parts of the data.
    pub(crate) parts: Vec<&'static str>,
    /// Each finding with its part.
    pub(crate) findings: Vec<(&'static str, Finding)>,
    /// Services whose files are unreadable, so that no invariant was checked.
    unread: Vec<Role>,
}

impl Examined {
    /// Adds the findings of a part; `None` if the part does not exist.
    pub(crate) fn add(&mut self, part: &'static str, found: Option<Vec<Finding>>) {
        let Some(found) = found else { return };
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
        self.findings.extend(found.into_iter().map(|finding| (part, finding)));
    }

    /// Prints the findings, or that all is well.
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

    /// The findings as JSON.
    pub(crate) fn in_json(&self) -> Vec<Value> {
        let one = |(part, finding): &(&'static str, Finding)| json!({"part": part, "rule": finding.rule, "subject": finding.subject});
        self.findings.iter().map(one).collect()
    }

    /// Fails if there are findings.
    pub(crate) fn result(&self) -> anyhow::Result<()> {
        if self.findings.is_empty() {
            return Ok(());
        }
        let found = wording::count(self.findings.len() as u64, Unit::Faults);
        bail!("{found} found; `cairn doctor --mend` mends what can be, and a backup has the rest")
    }
}

/// Checks the data of every service in the places that the options name.
pub(crate) async fn examine(options: &DoctorOptions) -> anyhow::Result<Examined> {
    let mut examined = Examined::default();
    for role in ROLES {
        for storage in storages::of(role, &options.stored.data, options.stored.database.as_deref())? {
            let progress = progress_of(role, options);
            let damage = files::examine(&storage, &progress).await?;
            if damage.is_empty() {
                examined.add(role.name(), examine_one(role, &storage, options).await?);
            } else {
                examined.add(role.name(), Some(damage));
                examined.unread.push(role);
            }
        }
    }
    if examined.parts.is_empty() {
        bail!(storages::NONE_HERE);
    }
    if options.stored.database.is_none() {
        index::examine(options, &mut examined).await?;
        let left = leftovers::examine(&options.stored.data)?;
        if !left.is_empty() {
            examined.add(leftovers::PART, Some(left));
        }
    }
    Ok(examined)
}

/// Reports progress on stderr, unless quiet.
pub(crate) fn progress_of(role: Role, options: &DoctorOptions) -> impl Fn(&str) + Send + Sync + use<> {
    let is_quiet = options.quiet || options.json;
    move |rule: &str| {
        if !is_quiet {
            say(role.name(), rule);
        }
    }
}

async fn examine_one(
    role: Role,
    storage: &Config,
    options: &DoctorOptions,
) -> anyhow::Result<Option<Vec<Finding>>> {
    let progress = progress_of(role, options);
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
fn say(part: &str, rule: &str) {
    eprintln!("{part}: {rule}");
}

/// The location of asset bytes: as configured, else in the data folder of `cairn up` or of `cairn serve`.
pub(crate) fn assets(options: &DoctorOptions) -> AssetLocation {
    if let Some(assets) = &options.assets {
        return assets.clone();
    }
    let of_serve = options.stored.data.join(Role::Content.name()).join(ASSETS_FOLDER);
    let of_up = options.stored.data.join(ASSETS_FOLDER);
    AssetLocation::Folder(if of_serve.exists() && !of_up.exists() { of_serve } else { of_up })
}

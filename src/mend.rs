//! `cairn doctor --mend`: repairs files first, since everything else is read from them, then rows, the index last. Each
//! repair and each loss is printed on its own line.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::bail;
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::doctor::{Repair, Report};
use cairn_chassis::sql::{Config, Tables};
use cairn_content::{AssetLocation, Copies, IfUnmounted};
use serde_json::{Value, json};

use crate::cli::{ASSETS_FOLDER, DoctorOptions, Role};
use crate::data_folder::{DataFolder, UNFINISHED};
use crate::doctor::{Examined, ROLES, assets, examine, files, index, leftovers, progress_of};
use crate::{backup, storages};

const INDEX_RULE: &str = "the index is that of its owners";

/// Repairs, each with its part.
type AllRepairs = Vec<(&'static str, Repair)>;

/// Repairs the findings, after confirmation; fails if problems remain.
pub(crate) async fn run(options: &DoctorOptions) -> anyhow::Result<()> {
    let _claims = claim(options)?;
    if let (Some(_), None) = (&options.stored.database, &options.assets) {
        know_assets(options).await?;
    }
    let found = examine(options).await?;
    let mut mended = AllRepairs::new();
    if !found.findings.is_empty() {
        if !options.json {
            found.tell()?;
        }
        if !(options.yes || agreed()?) {
            return found.result();
        }
        if let Err(error) = mend(options, &found, &mut mended).await {
            // Losses that have already happened are reported only here.
            if options.json {
                tell_in_json(&mended, &found)?;
            } else {
                tell(&mended)?;
            }
            return Err(error);
        }
    }
    let left = if mended.is_empty() { found } else { examine(options).await? };
    if options.json {
        tell_in_json(&mended, &left)?;
    } else {
        tell(&mended)?;
        if left.findings.is_empty() || !mended.is_empty() {
            left.tell()?;
        }
    }
    left.result()
}

/// Claims every folder that is written to, as a service would; fails while a service runs there.
fn claim(options: &DoctorOptions) -> anyhow::Result<Vec<DataFolder>> {
    let mut folders: Vec<PathBuf> = Vec::new();
    if options.stored.database.is_none() && options.stored.data.is_dir() {
        folders.push(options.stored.data.clone());
    }
    for role in ROLES {
        for storage in storages::of(role, &options.stored.data, options.stored.database.as_deref())? {
            let folder = storage.file().and_then(|file| file.parent()).map(ToOwned::to_owned);
            folders.extend(folder.filter(|folder| folder.is_dir() && !folders.contains(folder)));
        }
    }
    let mut claims = Vec::new();
    for folder in folders {
        claims.push(DataFolder::claim_for_restore(&folder)?);
        if folder.join(UNFINISHED).exists() {
            bail!("a restore into {} was cut: run the same `cairn restore` again first", folder.display());
        }
    }
    Ok(claims)
}

/// An asset that is missing from the searched location would be given up, so the location must be explicit unless it
/// follows from that of the database.
async fn know_assets(options: &DoctorOptions) -> anyhow::Result<()> {
    for storage in storages::of(Role::Content, &options.stored.data, options.stored.database.as_deref())? {
        if cairn_content::TABLES.migration_status(&storage).await?.is_some() {
            bail!("this database has content: say with --assets where the bytes of its assets are");
        }
    }
    Ok(())
}

/// Asks for confirmation on the terminal.
fn agreed() -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("nobody is there to ask: add --yes to have it mended, or leave out --mend to look only");
    }
    let mut out = std::io::stderr().lock();
    write!(out, "Mend this? Make a copy of the data first, if there is room. [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn mend(options: &DoctorOptions, found: &Examined, all: &mut AllRepairs) -> anyhow::Result<()> {
    let data = &options.stored.data;
    let is_quiet = options.quiet || options.json;
    let mut folder = Report::default();
    if options.stored.database.is_none() {
        let ended = leftovers::mend(data, &mut folder);
        add(all, leftovers::PART, folder);
        ended?;
    }
    let copy = match &options.chosen.from {
        Some(_) => Some(backup::unpacked(&options.chosen, options.scratch.as_deref(), is_quiet).await?),
        None => None,
    };
    let copy = copy.as_ref().map(tempfile::TempDir::path);
    let mut is_index_of_old = found.findings.iter().any(|(part, _)| *part == index::PART);
    for role in ROLES {
        for storage in storages::of(role, data, options.stored.database.as_deref())? {
            let mut report = Report::default();
            let copied = copy.and_then(|folder| storages::of_up(role, folder));
            let ended = mend_storage(role, &storage, copied.as_ref(), options, &mut report).await;
            is_index_of_old |= !report.is_empty() && matches!(role, Role::Content | Role::Ingest);
            add(all, role.name(), report);
            ended?;
        }
    }
    if is_index_of_old && options.stored.database.is_none() {
        let mut report = Report::default();
        tell_of_lost_writes(found, &mut report);
        let ended = index::remove(data, INDEX_RULE, &mut report);
        add(all, index::PART, report);
        ended?;
    }
    Ok(())
}

/// Repairs the file of a storage, then its rows.
async fn mend_storage(
    role: Role,
    storage: &Config,
    copy: Option<&Config>,
    options: &DoctorOptions,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Some(tables) = tables_of(role) else { return Ok(()) };
    files::mend(storage, tables, SystemClock.now(), report, &progress_of(role, options)).await?;
    // A file that is still unreadable is reported by the check that follows.
    if files::examine(storage, &|_| {}).await?.is_empty() {
        mend_rows(role, storage, copy, options, report).await?;
    }
    Ok(())
}

/// Reports writes that the index has seen and its owner has lost.
fn tell_of_lost_writes(found: &Examined, report: &mut Report) {
    for (_, finding) in found.findings.iter().filter(|(part, _)| *part == index::PART) {
        if finding.subject.contains("is lost") || finding.subject.contains("there is no such document") {
            report.add(Repair {
                rule: finding.rule.into(),
                subject: finding.subject.clone(),
                does: "only a backup may have it".into(),
                is_loss: true,
            });
        }
    }
}

fn add(all: &mut AllRepairs, part: &'static str, report: Report) {
    all.extend(report.into_items().into_iter().map(|mended| (part, mended)));
}

const fn tables_of(role: Role) -> Option<Tables> {
    match role {
        Role::Auth => Some(cairn_auth::TABLES),
        Role::Content => Some(cairn_content::TABLES),
        Role::Ingest => Some(cairn_ingest::TABLES),
        Role::Retrieval => Some(cairn_retrieval::TABLES),
        Role::Sync => Some(cairn_sync::TABLES),
        Role::Gateway => None,
    }
}

async fn mend_rows(
    role: Role,
    storage: &Config,
    copy: Option<&Config>,
    options: &DoctorOptions,
    report: &mut Report,
) -> anyhow::Result<()> {
    let progress = progress_of(role, options);
    let rows = match role {
        Role::Auth => cairn_auth::mend(storage, &progress).await?,
        Role::Content => {
            // The backup's assets are beside its databases.
            let copied = copy.and_then(Config::file).and_then(|file| file.parent());
            let copied = copied.map(|folder| AssetLocation::Folder(folder.join(ASSETS_FOLDER)));
            let copies = copy.zip(copied.as_ref()).map(|(database, assets)| Copies { database, assets });
            let if_unmounted = if options.give_up_assets { IfUnmounted::GiveUp } else { IfUnmounted::Refuse };
            let assets = assets(options);
            cairn_content::mend(storage, &assets, copies, if_unmounted, &SystemClock, report, &progress)
                .await?;
            None
        }
        Role::Ingest => cairn_ingest::mend(storage, copy, &progress).await?,
        Role::Retrieval => cairn_retrieval::mend(storage, &progress).await?,
        Role::Sync => cairn_sync::mend(storage, &progress).await?,
        Role::Gateway => None,
    };
    if let Some(rows) = rows {
        report.merge(rows);
    }
    Ok(())
}

/// Prints one line for each repair and each loss.
fn tell(mended: &[(&'static str, Repair)]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for (part, Repair { rule, subject, does, is_loss }) in mended {
        let word = if *is_loss { "lost" } else { "mended" };
        writeln!(out, "{part}: {word}: {rule}: {subject}: {does}")?;
    }
    Ok(out.flush()?)
}

fn tell_in_json(mended: &[(&'static str, Repair)], left: &Examined) -> anyhow::Result<()> {
    let one = |(part, mended): &(&'static str, Repair)| -> Value {
        json!({
            "part": part,
            "rule": mended.rule,
            "subject": mended.subject,
            "does": mended.does,
            "isLoss": mended.is_loss,
        })
    };
    let said = json!({
        "isSound": left.findings.is_empty(),
        "examined": left.parts,
        "mended": mended.iter().map(one).collect::<Vec<_>>(),
        "findings": left.in_json(),
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{said:#}")?;
    Ok(out.flush()?)
}

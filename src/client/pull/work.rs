//! A pull: lists the workspace, assigns a path to every item, and writes what differs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufWriter, Write as _};

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::database::{Document, Table};
use super::decide::{Action, decide};
use super::memory::{self, MemberLink};
use super::names::{Paths, Rules};
use super::place::{Local, Place, hash_of};
use super::remote::{Asset, Database, File, Folder, Member, Memory, Remote, by_id, names};
use super::report::{Renamed, Report, Skipped};
use super::state::{PulledFile, State};
use crate::client::output::note;

const FILES: &str = "files";
const DATABASES: &str = "databases";
const MEMORIES: &str = "memories";
const ASSETS: &str = "assets";
/// Concurrent downloads.
const CONCURRENCY: usize = 8;
const EDITED: &str =
    "it was edited here, and the workspace has something else: --overwrite takes the workspace's";
const IN_THE_WAY: &str = "another file is here: --overwrite takes the workspace's";
const BLOCKED: &str = "a link or a folder is here, or a link or a file is on the way to it";

/// An item of the workspace that becomes a file.
#[derive(Debug, Clone)]
struct Item {
    /// The item: its kind and its id.
    key: String,
    path: String,
    /// The hash in the workspace.
    remote: String,
    /// The API path of its bytes.
    source: String,
}

/// One pull.
pub(super) struct Work {
    remote: Remote,
    place: Place,
    /// The record of earlier pulls.
    before: State,
    /// The record after this one.
    after: BTreeMap<String, PulledFile>,
    rules: Rules,
    paths: Paths,
    overwrite: bool,
    report: Report,
}

impl Work {
    pub(super) fn new(remote: Remote, place: Place, before: State, rules: Rules, overwrite: bool) -> Self {
        let (paths, report) = (Paths::new(rules), Report::default());
        Self { remote, place, before, after: BTreeMap::new(), rules, paths, overwrite, report }
    }

    pub(super) const fn report(&self) -> &Report {
        &self.report
    }

    /// Writes the record for the next pull.
    pub(super) fn note(&self) -> anyhow::Result<()> {
        let mut items = self.before.items.clone();
        items.retain(|path, _| !self.deleted_locally(path));
        items.extend(self.after.clone());
        State { workspace_id: self.before.workspace_id.clone(), items }.write(&self.place)
    }

    /// Whether a file that an earlier pull wrote has been deleted locally.
    fn deleted_locally(&self, path: &str) -> bool {
        self.place.look(path).is_ok_and(|local| local == Local::Missing)
    }

    /// Writes what differs; with `prune`, removes what the workspace no longer has.
    pub(super) async fn run(&mut self, prune: bool) -> anyhow::Result<()> {
        let folders: Vec<Folder> = self.remote.list("/api/v1/folders").await?;
        let mut files: Vec<File> = self.remote.list("/api/v1/files").await?;
        let databases: Vec<Database> = self.remote.list("/api/v1/databases").await?;
        let memories: Vec<Value> = self.remote.list("/api/v1/memories").await?;
        // Assets belong to no folder: a token that is restricted to folders cannot list them.
        let mut assets: Vec<Asset> =
            self.remote.list_if_allowed("/api/v1/assets").await?.unwrap_or_else(|| {
                note("assets are left out: the token is of some folders only");
                Vec::new()
            });
        // Oldest first, so that a new file of the same name does not take over the path of an old one.
        files.sort_by(|one, other| one.id.cmp(&other.id));
        assets.sort_by(|one, other| one.id.cmp(&other.id));

        for folder in &folders {
            let path = self.paths.folder([FILES].into_iter().chain(names(&folder.path)));
            if !self.place.make_folder(&path)? {
                self.report.conflicts.push(Skipped { path, why: BLOCKED });
            }
        }
        let items: Vec<Item> = files.iter().map(|file| self.item_of(file)).collect();
        let paths: HashMap<String, String> =
            files.iter().zip(&items).map(|(file, item)| (file.id.clone(), item.path.clone())).collect();
        self.download("files", items).await?;
        let items: Vec<Item> = assets.iter().map(|asset| self.item_of_asset(asset)).collect();
        self.download("assets", items).await?;
        let folders = by_id(&folders);
        let mut tables = HashMap::new();
        for database in &databases {
            let path = self.pull_database(database, &folders, &paths).await?;
            tables.insert(database.id.as_str(), path);
        }
        let known = MemberTargets {
            paths: &paths,
            files: &files,
            folders: &folders,
            tables: &tables,
            rules: self.rules,
        };
        for whole in memories {
            let read: Memory =
                serde_json::from_value(whole.clone()).context("the answer is not as expected")?;
            self.pull_memory(&Memory { whole, ..read }, &known).await?;
        }
        self.clear(prune)
    }

    fn item_of(&mut self, file: &File) -> Item {
        let mut parts: Vec<&str> = [FILES].into_iter().chain(names(&file.path)).collect();
        let name = parts.pop().unwrap_or_default();
        let folder = self.paths.folder(parts);
        let path = self.path_of(&folder, name, format!("{FILES}{}", file.path));
        let source = format!("/api/v1/files/{}/raw", file.id);
        Item { key: format!("file:{}", file.id), path, remote: file.content_hash.clone(), source }
    }

    fn item_of_asset(&mut self, asset: &Asset) -> Item {
        let folder = self.paths.folder([ASSETS]);
        let path = self.path_of(&folder, &asset.name, format!("{ASSETS}/{}", asset.name));
        let source = format!("/api/v1/assets/{}/content", asset.id);
        Item { key: format!("asset:{}", asset.id), path, remote: asset.content_hash.clone(), source }
    }

    /// The path for a file of that name; a changed name is reported.
    fn path_of(&mut self, folder: &str, name: &str, original: String) -> String {
        let path = self.paths.file(folder, name);
        if path != original {
            self.report.renamed.push(Renamed { from: original, to: path.clone() });
        }
        path
    }

    /// Downloads the items that differ, concurrently, and writes each once it is complete.
    async fn download(&mut self, what: &'static str, items: Vec<Item>) -> anyhow::Result<()> {
        let bar = progress(what, items.len());
        let mut wanted = Vec::new();
        for item in items {
            let action = self.judge(&item.path, &item.remote)?;
            if action == Action::Write {
                wanted.push(item);
            } else {
                bar.inc(1);
                self.leave(action, &item.key, &item.path, &item.remote)?;
            }
        }
        let (remote, place) = (self.remote.clone(), self.place.clone());
        let mut coming = stream::iter(wanted)
            .map(|item| {
                let (remote, place) = (&remote, &place);
                async move { fetch(remote, place, &item).await.map(|file| (item, file)) }
            })
            .buffer_unordered(CONCURRENCY);
        while let Some(fetched) = coming.next().await {
            let (item, file) = fetched?;
            bar.inc(1);
            // An item that was deleted meanwhile is absent from the next listing.
            if let Some(file) = file {
                self.write(file, &item.key, &item.path, &item.remote)?;
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn judge(&self, path: &str, remote: &str) -> anyhow::Result<Action> {
        let local = self.place.look(path)?;
        Ok(decide(&local, self.before.items.get(path), remote, self.overwrite))
    }

    /// Reports an item that is not written, and carries over its record.
    fn leave(&mut self, action: Action, key: &str, path: &str, remote: &str) -> anyhow::Result<()> {
        let before = self.before.items.get(path).cloned();
        match (action, self.place.look(path)?) {
            (Action::Unchanged, Local::File(local)) => {
                self.report.unchanged += 1;
                let kept = PulledFile { key: key.to_owned(), remote: remote.to_owned(), local };
                self.after.insert(path.to_owned(), kept);
                return Ok(());
            }
            (Action::KeepEdited, _) => self.report.edited.push(path.to_owned()),
            (_, local) => {
                let why = match (&local, &before) {
                    (Local::Blocked, _) => BLOCKED,
                    (_, Some(_)) => EDITED,
                    (_, None) => IN_THE_WAY,
                };
                self.report.conflicts.push(Skipped { path: path.to_owned(), why });
            }
        }
        // The record keeps the earlier hash, so that the next pull detects the edit again.
        if let Some(before) = before {
            self.after.insert(path.to_owned(), PulledFile { key: key.to_owned(), ..before });
        }
        Ok(())
    }

    fn write(&mut self, file: NamedTempFile, key: &str, path: &str, remote: &str) -> anyhow::Result<()> {
        let local = hash_of(file.path())?;
        if !self.place.put(file, path)? {
            self.report.conflicts.push(Skipped { path: path.to_owned(), why: BLOCKED });
            return Ok(());
        }
        self.report.written += 1;
        let kept = PulledFile { key: key.to_owned(), remote: remote.to_owned(), local };
        self.after.insert(path.to_owned(), kept);
        Ok(())
    }

    /// Writes a file that was generated locally, if it differs.
    fn settle(&mut self, file: NamedTempFile, key: &str, path: &str) -> anyhow::Result<()> {
        let remote = hash_of(file.path())?;
        match self.judge(path, &remote)? {
            Action::Write => self.write(file, key, path, &remote),
            action @ (Action::Unchanged | Action::KeepEdited | Action::Conflict) => {
                self.leave(action, key, path, &remote)
            }
        }
    }

    /// The path of its CSV.
    async fn pull_database(
        &mut self,
        database: &Database,
        folders: &HashMap<&str, &str>,
        paths: &HashMap<String, String>,
    ) -> anyhow::Result<String> {
        let place = database.folder_id.as_deref().and_then(|id| folders.get(id)).copied().unwrap_or_default();
        let folder = self.paths.folder([DATABASES].into_iter().chain(names(place)));
        let mut path = |ending: &str| {
            let name = format!("{}.{ending}", database.name);
            self.path_of(&folder, &name, format!("{DATABASES}{place}/{name}"))
        };
        let (csv, json) = (path("csv"), path("json"));
        let (mut table_file, mut document_file) = (self.place.scratch()?, self.place.scratch()?);
        let mut table = Table::begin(BufWriter::new(&mut table_file), &database.properties)?;
        let mut document = Document::begin(BufWriter::new(&mut document_file), database)?;
        let mut offset = 0;
        loop {
            let records: Vec<Value> = self.remote.records(&database.id, offset).await?;
            if records.is_empty() {
                break;
            }
            offset += records.len();
            for record in records {
                table.row(&record)?;
                document.record(record, paths)?;
            }
        }
        table.end()?;
        document.end()?;
        self.settle(table_file, &format!("csv:{}", database.id), &csv)?;
        self.settle(document_file, &format!("database:{}", database.id), &json)?;
        Ok(csv)
    }

    /// Writes a folder with a page, the memory as JSON, and its attachments.
    async fn pull_memory(&mut self, memory: &Memory, known: &MemberTargets<'_>) -> anyhow::Result<()> {
        let folder = self.paths.folder([MEMORIES, memory.slug.as_str()]);
        let (page, definition) =
            (self.paths.file(&folder, "README.md"), self.paths.file(&folder, "memory.json"));
        let mut shown = Vec::with_capacity(memory.members.len());
        let mut copies = Vec::new();
        for member in &memory.members {
            let file = member.file_id.as_deref().and_then(|id| known.files.iter().find(|file| file.id == id));
            let Some(file) = file else {
                shown.push(known.shown(member));
                continue;
            };
            let name = names(&file.path).last().unwrap_or_default();
            let path = self.paths.file(&folder, name);
            let target = path.strip_prefix(&format!("{folder}/")).unwrap_or(&path).to_owned();
            shown.push(MemberLink { kind: "file", name: name.to_owned(), target: Some(target) });
            copies.push(Item {
                key: format!("member:{}:{}", memory.id, file.id),
                path,
                remote: file.content_hash.clone(),
                source: format!("/api/v1/files/{}/raw", file.id),
            });
        }
        let mut file = self.place.scratch()?;
        file.write_all(memory::page(memory, &shown).as_bytes())?;
        self.settle(file, &format!("memory:{}", memory.id), &page)?;
        let mut file = self.place.scratch()?;
        serde_json::to_writer_pretty(&mut file, &memory.whole)?;
        self.settle(file, &format!("definition:{}", memory.id), &definition)?;
        self.download("members of memories", copies).await
    }

    /// Handles files of earlier pulls that this one did not write. A moved item's old file is removed; one that was
    /// deleted in the workspace only with `prune`; a locally edited one stays.
    fn clear(&mut self, prune: bool) -> anyhow::Result<()> {
        let here: HashSet<&str> = self.after.values().map(|kept| kept.key.as_str()).collect();
        let gone: Vec<(String, PulledFile, bool)> = self
            .before
            .items
            .iter()
            .filter(|(path, _)| !self.after.contains_key(*path))
            .map(|(path, kept)| (path.clone(), kept.clone(), here.contains(kept.key.as_str())))
            .collect();
        for (path, kept, has_moved) in gone {
            match self.place.look(&path)? {
                Local::Missing => {}
                Local::File(local) if local == kept.local && (prune || has_moved) => {
                    self.place.remove(&path)?;
                    self.report.removed += 1;
                }
                Local::File(_) | Local::Blocked => self.report.gone.push(path),
            }
        }
        Ok(())
    }
}

/// The items that members of memories may refer to.
struct MemberTargets<'a> {
    paths: &'a HashMap<String, String>,
    files: &'a [File],
    folders: &'a HashMap<&'a str, &'a str>,
    tables: &'a HashMap<&'a str, String>,
    rules: Rules,
}

impl MemberTargets<'_> {
    /// A member that is linked, not copied.
    fn shown(&self, member: &Member) -> MemberLink {
        let up = |path: &str| Some(format!("../../{path}"));
        let folder = member.folder_id.as_deref().and_then(|id| self.folders.get(id));
        if let Some(folder) = folder {
            // The same path as that of the pulled folder: folder paths depend on nothing else.
            let path = Paths::new(self.rules).folder([FILES].into_iter().chain(names(folder)));
            return MemberLink { kind: "folder", name: (*folder).to_owned(), target: up(&path) };
        }
        if let Some(path) = member.database_id.as_deref().and_then(|id| self.tables.get(id)) {
            return MemberLink { kind: "database", name: path.clone(), target: up(path) };
        }
        let kind = match member.kind.as_str() {
            "file" => "file",
            "folder" => "folder",
            "database" => "database",
            _ => "source document",
        };
        let ids = [&member.file_id, &member.folder_id, &member.database_id, &member.source_document_id];
        let id = ids.into_iter().flatten().next().cloned().unwrap_or_default();
        let target = self.paths.get(&id).and_then(|path| up(path));
        MemberLink { kind, name: id, target }
    }
}

/// Downloads an item into a temporary file; `None` if it was deleted meanwhile.
async fn fetch(remote: &Remote, place: &Place, item: &Item) -> anyhow::Result<Option<NamedTempFile>> {
    let Some(mut response) = remote.bytes(&item.source).await? else { return Ok(None) };
    let mut file = place.scratch()?;
    while let Some(chunk) =
        response.chunk().await.map_err(reqwest::Error::without_url).context("an answer broke off")?
    {
        file.write_all(&chunk)?;
    }
    Ok(Some(file))
}

/// Shown on a terminal only.
fn progress(what: &str, items: usize) -> ProgressBar {
    let template = format!("{what} {{pos}} of {{len}} {{wide_bar}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(items as u64).with_style(style)
}

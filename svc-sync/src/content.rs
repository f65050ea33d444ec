//! The client of svc-content, which owns what a sync writes: all access goes through its API, with this service's identity and on behalf
//! of the run's requester.

mod assets;
mod history;
mod tables;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::Permission;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1::batch_item::Write as Sent;
use cairn_proto::content::v1::batch_service_client::BatchServiceClient;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::usage_service_client::UsageServiceClient;
use cairn_proto::content::v1::{self as proto, BatchItem, BatchWriteRequest, ReadStatesRequest};
use cairn_proto::domain::PropertyType;
use cairn_proto::feed::v1::Kind as TrashedKind;
use cairn_proto::ids::{FolderId, WorkspaceId};
use prost_types::FieldMask;
use tonic::Status;
use uuid::Uuid;

pub(crate) use self::assets::Attachment;
use crate::delegation::Delegates;
use crate::model::{Kind, Requester, Step, Write};
use crate::plan::{State, States};

/// Deadline of one call: enough for a batch of 8 MiB on a slow disk.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Items of one request for states.
const STATES_PER_CALL: usize = 10_000;

/// The usage of a resource, and its limit if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) used: u64,
    pub(crate) limit: Option<u64>,
}

/// Opens sessions with svc-content; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) channel: ServiceChannel,
    pub(crate) delegates: Arc<dyn Delegates>,
}

/// The content that a step writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Payload {
    /// None: a folder, or a removal.
    #[default]
    None,
    /// The text of a file, whose tags stay.
    Text(String),
    /// The text of a file, and its tags.
    Note { text: String, tags: Vec<String> },
    /// Properties of a database: missing ones are added.
    Schema(Vec<Property>),
    /// Values of a record, as a JSON object keyed by the names of properties, and its body.
    Record { values: String, body: Option<Uuid> },
}

impl Payload {
    /// Bytes of text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Schema(_) => 0,
            Self::Text(text) | Self::Note { text, .. } => text.len(),
            Self::Record { values, .. } => values.len(),
        }
    }
}

/// A property that a database is to have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) kind: PropertyType,
    /// Names of options.
    pub(crate) options: Vec<String>,
    /// The database of a relation.
    pub(crate) relation: Option<Uuid>,
}

/// A step, and what it writes.
pub(crate) type Work = (Step, Payload);

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchOutcome {
    /// All steps are done.
    Done,
    /// These steps were refused: place, code and message. A transaction was rolled back as a whole; of steps that are calls of their own,
    /// the others are done.
    Refused(Vec<(usize, String, String)>),
}

impl Content {
    /// Opens a session on behalf of a requester, who must still have the needed permission.
    pub(crate) async fn open(
        &self,
        workspace: WorkspaceId,
        requester: &Requester,
        needed: Permission,
    ) -> Result<ContentSession, Problem> {
        let delegated = self.delegates.delegate(workspace, requester).await?;
        if !delegated.permissions.contains(needed) {
            return Err(Problem::forbidden(format!(
                "whoever asked for this no longer has the permission '{}' in the workspace",
                needed.as_str()
            )));
        }
        Ok(ContentSession { channel: self.channel.clone(), identity: delegated.identity })
    }
}

/// Access to one workspace, until its delegated identity expires after some minutes.
pub(crate) struct ContentSession {
    channel: ServiceChannel,
    identity: String,
}

cairn_chassis::debug_fields!(ContentSession);

impl ContentSession {
    fn request<T>(&self, message: T) -> tonic::Request<T> {
        Call::within(CALL_TIMEOUT).with_identity(&self.identity).request(message)
    }

    fn batches(&self) -> BatchServiceClient<ServiceChannel> {
        BatchServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn folders(&self) -> FolderServiceClient<ServiceChannel> {
        FolderServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The states of those of these items that exist, in trash or not.
    pub(crate) async fn states(
        &self,
        items: impl IntoIterator<Item = (Kind, Uuid)>,
    ) -> Result<States, Problem> {
        let items: Vec<_> = items.into_iter().collect();
        let mut states = States::with_capacity(items.len());
        for some in items.chunks(STATES_PER_CALL) {
            let ids = |kind| {
                some.iter().filter(move |item| item.0 == kind).map(|item| item.1.to_string()).collect()
            };
            let request = self.request(ReadStatesRequest {
                file_ids: ids(Kind::File),
                folder_ids: ids(Kind::Folder),
                database_ids: ids(Kind::Database),
                record_ids: ids(Kind::Record),
                asset_ids: ids(Kind::Asset),
            });
            let told = self.batches().read_states(request).await.map_err(problem)?.into_inner();
            states.extend(told.files.into_iter().filter_map(file));
            states.extend(told.folders.into_iter().filter_map(folder));
            states.extend(told.databases.into_iter().filter_map(database));
            states.extend(told.records.into_iter().filter_map(record));
            states.extend(told.asset_ids.iter().filter_map(|id| Some((id.parse().ok()?, State::default()))));
        }
        Ok(states)
    }

    /// The depth of a folder: 1 in the root.
    pub(crate) async fn depth(&self, id: FolderId) -> Result<usize, Problem> {
        let request = self.request(proto::GetFolderRequest { folder_id: id.to_string() });
        let found = self.folders().get_folder(request).await.map_err(problem)?.into_inner();
        Ok(found.folder.map_or(1, |folder| folder.path.split('/').skip(1).count()))
    }

    /// The live folder of that name directly in a folder, or in the root; the oldest of several.
    pub(crate) async fn child(&self, parent: Option<Uuid>, name: &str) -> Result<Option<Uuid>, Problem> {
        let mut page_token = String::new();
        let mut found: Option<Uuid> = None;
        loop {
            let parent_id = parent.map(|id| id.to_string());
            let request = self.request(proto::ListFoldersRequest {
                parent: Some(proto::ParentFilter { parent_id }),
                page_size: 0,
                page_token,
            });
            let page = self.folders().list_folders(request).await.map_err(problem)?.into_inner();
            let named = page.folders.iter().filter(|folder| folder.name == name);
            // Ids sort by creation time.
            found = found.into_iter().chain(named.filter_map(|folder| folder.id.parse().ok())).min();
            let is_past = page.folders.last().is_some_and(|last| last.name.as_str() > name);
            if page.next_page_token.is_empty() || is_past {
                return Ok(found);
            }
            page_token = page.next_page_token;
        }
    }

    /// The names of the files directly in a folder, or in the root.
    pub(crate) async fn names(&self, folder: Option<Uuid>) -> Result<HashSet<String>, Problem> {
        let mut names = HashSet::new();
        let mut page_token = String::new();
        let mut files =
            FileServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        loop {
            let folder_id = folder.map(|id| id.to_string());
            let request = self.request(proto::ListFilesRequest {
                folder: Some(proto::FolderFilter { folder_id, recursive: false }),
                page_size: 0,
                page_token,
                tags: Vec::new(),
            });
            let page = files.list_files(request).await.map_err(problem)?.into_inner();
            names.extend(page.files.into_iter().map(|file| file.name));
            if page.next_page_token.is_empty() {
                return Ok(names);
            }
            page_token = page.next_page_token;
        }
    }

    /// The quotas of files and of storage bytes.
    pub(crate) async fn quotas(&self) -> Result<(Quota, Quota), Problem> {
        let mut usage = UsageServiceClient::new(self.channel.clone());
        let told =
            usage.get_usage(self.request(proto::GetUsageRequest {})).await.map_err(problem)?.into_inner();
        let quota = |measure: Option<proto::Measure>| {
            measure.map(|measure| Quota { used: measure.used, limit: measure.limit }).unwrap_or_default()
        };
        Ok((quota(told.files), quota(told.storage_bytes)))
    }

    /// Executes steps: files, folders and records in one transaction, the others by a call each. The versions that the workspace assigns
    /// are stored in the steps.
    pub(crate) async fn write(&self, work: &mut [Work]) -> Result<BatchOutcome, Problem> {
        if work.iter().all(|(step, _)| step.kind.is_in_batches()) {
            self.write_batch(work).await
        } else {
            self.write_tables(work).await
        }
    }

    async fn write_batch(&self, work: &mut [Work]) -> Result<BatchOutcome, Problem> {
        let changed =
            |(step, _): &&Work| step.kind == Kind::Record && !matches!(step.write, Write::Create { .. });
        let records: Vec<_> = work.iter().filter(changed).map(|(step, _)| (step.kind, step.id)).collect();
        let there = if records.is_empty() { States::new() } else { self.states(records).await? };
        let (mut writes, mut places, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (step, payload)) in work.iter().enumerate() {
            if step.kind != Kind::Record {
                writes.push(item(step, payload.clone()));
            } else if let Some(write) = record_item(step, payload, there.get(&step.id)) {
                writes.push(write);
            } else {
                // A record that no longer exists needs no removal.
                if step.write != Write::Trash {
                    let message = "the record is not there any more".to_owned();
                    missing.push((place, "not_found".to_owned(), message));
                }
                continue;
            }
            places.push(place);
        }
        if !missing.is_empty() {
            return Ok(BatchOutcome::Refused(missing));
        }
        if writes.is_empty() {
            return Ok(BatchOutcome::Done);
        }
        match self.batches().batch_write(self.request(BatchWriteRequest { writes })).await {
            Ok(done) => {
                for (place, result) in places.into_iter().zip(done.into_inner().results) {
                    if let Some((step, _)) = work.get_mut(place) {
                        step.after = version_of(&result).or(step.after);
                    }
                }
                Ok(BatchOutcome::Done)
            }
            Err(status) => {
                let problem = problem(status);
                let named = |violation: &Violation| {
                    let (write, code, message) = refusal(violation)?;
                    Some((*places.get(write)?, code, message))
                };
                let refused: Vec<_> = problem.violations.iter().filter_map(named).collect();
                if refused.is_empty() { Err(problem) } else { Ok(BatchOutcome::Refused(refused)) }
            }
        }
    }
}

/// The version after a write.
fn version_of(result: &proto::BatchResult) -> Option<u64> {
    match &result.item {
        Some(proto::batch_result::Item::File(file)) => Some(file.version),
        Some(proto::batch_result::Item::Folder(_)) => None,
        None => Some(result.record_version).filter(|version| *version > 0),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn problem(status: Status) -> Problem {
    Problem::from_status(&status)
}

fn file(state: proto::FileState) -> Option<(Uuid, State)> {
    let parent = state.folder_id.and_then(|id| id.parse().ok());
    Some((
        state.id.parse().ok()?,
        State {
            in_trash: state.in_trash,
            parent,
            name: state.name,
            version: state.version,
            hash: state.content_hash,
            tags: state.tags,
            ..State::default()
        },
    ))
}

fn folder(state: proto::FolderState) -> Option<(Uuid, State)> {
    let parent = state.parent_id.and_then(|id| id.parse().ok());
    Some((
        state.id.parse().ok()?,
        State {
            in_trash: state.in_trash,
            parent,
            name: state.name,
            children: state.children,
            ..State::default()
        },
    ))
}

fn database(state: proto::DatabaseState) -> Option<(Uuid, State)> {
    let parent = state.folder_id.and_then(|id| id.parse().ok());
    Some((
        state.id.parse().ok()?,
        State {
            in_trash: state.in_trash,
            parent,
            name: state.name,
            version: state.version,
            children: state.records,
            ..State::default()
        },
    ))
}

fn record(state: proto::RecordState) -> Option<(Uuid, State)> {
    let (in_trash, version) = (state.in_trash, state.version);
    let parent = state.database_id.parse().ok();
    Some((state.id.parse().ok()?, State { in_trash, parent, version, ..State::default() }))
}

/// Which step a violation is about: its path begins with `writes[3]`.
fn refusal(violation: &Violation) -> Option<(usize, String, String)> {
    let rest = violation.path.strip_prefix("writes[")?;
    let place = rest.split_once(']')?.0.parse().ok()?;
    Some((place, violation.code.clone(), violation.message.clone()))
}

fn item(step: &Step, payload: Payload) -> BatchItem {
    let (text, tags) = match payload {
        Payload::Text(text) => (text, None),
        Payload::Note { text, tags } => (text, Some(tags)),
        Payload::None | Payload::Schema(_) | Payload::Record { .. } => (String::new(), None),
    };
    let id = step.id.to_string();
    let (mut new_id, mut if_version, mut if_empty, mut tags_too) = (None, None, false, None);
    let write = match (&step.write, step.kind) {
        (Write::Create { name, folder, file_type }, kind) => {
            new_id = Some(id);
            let (name, folder_id) = (name.clone(), folder.map(|id| id.to_string()));
            match kind {
                Kind::File => Sent::CreateFile(proto::CreateFileRequest {
                    name,
                    content: text,
                    file_type: file_type.map_or(0, Into::into),
                    folder_id,
                    tags: tags.unwrap_or_default(),
                    ..Default::default()
                }),
                Kind::Folder | Kind::Asset | Kind::Database | Kind::Record => {
                    Sent::CreateFolder(proto::CreateFolderRequest { name, parent_id: folder_id })
                }
            }
        }
        (Write::Update | Write::Relate, _) => {
            if_version = Some(step.version);
            let mut paths = vec!["content".to_owned()];
            paths.extend(tags.is_some().then(|| "tags".to_owned()));
            Sent::UpdateFile(proto::UpdateFileRequest {
                file_id: id,
                content: text,
                tags: tags.unwrap_or_default(),
                update_mask: Some(FieldMask { paths }),
                ..Default::default()
            })
        }
        (Write::Trash, Kind::File) => {
            if_version = Some(step.version);
            Sent::DeleteFile(proto::DeleteFileRequest { file_id: id })
        }
        (Write::Trash, _) => {
            if_empty = true;
            Sent::DeleteFolder(proto::DeleteFolderRequest { folder_id: id })
        }
        (Write::Revert { to }, _) => {
            if_version = Some(step.version);
            tags_too = step.tags.clone().map(|tags| proto::Tags { tags });
            Sent::RestoreFileVersion(proto::RestoreFileVersionRequest {
                file_id: id,
                version: *to,
                if_content_hash: Vec::new(),
            })
        }
        (Write::Restore, kind) => {
            let kind = if kind == Kind::File { TrashedKind::File } else { TrashedKind::Folder };
            Sent::RestoreItem(proto::RestoreItemRequest { kind: kind.into(), item_id: id })
        }
    };
    BatchItem { write: Some(write), new_id, if_version, if_empty, tags: tags_too }
}

/// The write of a record; `None` when the record does not exist.
fn record_item(step: &Step, payload: &Payload, state: Option<&State>) -> Option<BatchItem> {
    let (values_json, body) = match payload {
        Payload::Record { values, body } => (values.clone(), body.map(|id| id.to_string())),
        Payload::None | Payload::Text(_) | Payload::Note { .. } | Payload::Schema(_) => (String::new(), None),
    };
    let record_id = step.id.to_string();
    if let Write::Create { folder: Some(database), .. } = &step.write {
        let create = Sent::CreateRecord(proto::CreateRecordRequest {
            database_id: database.to_string(),
            values_json,
            content_file_id: body,
            allow_names: true,
            new_id: None,
        });
        return Some(BatchItem { write: Some(create), new_id: Some(record_id), ..BatchItem::default() });
    }
    let database_id = state?.parent?.to_string();
    let write = match step.write {
        Write::Update | Write::Relate => {
            let mut paths = vec!["values".to_owned()];
            paths.extend(body.is_some().then(|| "content_file_id".to_owned()));
            Sent::UpdateRecord(proto::UpdateRecordRequest {
                database_id,
                record_id,
                values_json,
                content_file_id: body,
                update_mask: Some(FieldMask { paths }),
                if_version: Vec::new(),
                allow_names: true,
            })
        }
        Write::Revert { to } => Sent::RestoreRecordVersion(proto::RestoreRecordVersionRequest {
            database_id,
            record_id,
            version: to,
        }),
        Write::Trash => Sent::DeleteRecord(proto::DeleteRecordRequest { database_id, record_id }),
        Write::Create { .. } | Write::Restore => return None,
    };
    Some(BatchItem { write: Some(write), if_version: Some(step.version), ..BatchItem::default() })
}

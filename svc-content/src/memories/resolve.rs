//! Memories with the current contents of their members, and a note for whatever is left out.

use std::collections::HashMap;

use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DocumentId, MemberId, MemoryId, WorkspaceId};

use super::outside::DocumentsOf;
use super::{FieldsOf, Memories, RecordEntry, parse};
use crate::Error;
use crate::model::{Body, File, Member, MemberTarget, Memory};
use crate::scope::Caller;
use crate::store;
use crate::store::memories::Contents;

/// The maximum number of files of a folder member (spec 2.3).
pub(super) const MAX_FILES: u64 = 50;
/// The size limit of the contents of one response: it has to fit into a message and into the memory of the reader.
pub(super) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A note on content that a resolved memory leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoverageNote {
    /// As spelled in the contract.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) member: MemberId,
    pub(crate) target: DocumentId,
}

/// A memory with current contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) memory: Memory,
    /// The files of each member, in the order of the members.
    pub(crate) entries: Vec<Vec<(File, String)>>,
    /// The records of database members.
    pub(crate) records: HashMap<MemberId, Vec<RecordEntry>>,
    /// The fields of their databases.
    pub(crate) fields: FieldsOf,
    /// The documents of connected sources.
    pub(crate) documents: DocumentsOf,
    pub(crate) coverage: Vec<CoverageNote>,
}

impl Memories {
    /// A memory with the current contents in the scope of the caller.
    pub(crate) async fn resolve(&self, caller: &Caller, named: &str) -> Result<Resolved, Error> {
        let mut resolved = self.resolve_files(caller, named).await?;
        let left = self.add_records(caller, &mut resolved).await?;
        self.add_documents(caller, &mut resolved, left).await;
        Ok(resolved)
    }

    /// Two statements: the second one for folder members. Each reads its own snapshot, so a reader may see one member
    /// before and another after a change, as with two calls.
    async fn resolve_files(&self, caller: &Caller, named: &str) -> Result<Resolved, Error> {
        let named = parse(named)?;
        let (db, workspace, scope) = (&self.context.db, caller.workspace, caller.listed());
        let found = store::memories::read(db, workspace, &named, scope, MAX_BYTES).await?;
        let Some((memory, mut contents)) = found else { return Err(Error::no_memory(named)) };
        let is_folder = |member: &Member| member.is_live && matches!(member.target, MemberTarget::Folder(_));
        if memory.members.iter().any(is_folder) {
            let limits = (MAX_BYTES, MAX_FILES);
            contents.extend(store::memories::read_folders(db, workspace, memory.id, scope, limits).await?);
        }
        assemble(memory, contents)
    }

    /// A public memory for an anonymous caller; one that is not public is not found.
    pub(crate) async fn resolve_public(
        &self,
        named: &str,
        workspace: Option<&str>,
    ) -> Result<Resolved, Error> {
        let home = match (workspace, named.parse::<MemoryId>()) {
            (Some(workspace), _) => workspace.parse().ok(),
            (None, Ok(id)) => store::memories::public_home(&self.context.db, id).await?,
            (None, Err(_)) => None,
        };
        let workspace: WorkspaceId = home.ok_or_else(|| Error::no_memory(named))?;
        // A deleted workspace has no public memories.
        if self.context.suspensions.is_suspended_now(workspace).await? {
            return Err(Error::no_memory(named));
        }
        let anybody = Caller::anybody(workspace);
        let mut resolved = self.resolve_files(&anybody, named).await?;
        if !resolved.memory.is_public {
            return Err(Error::no_memory(named));
        }
        self.add_documents(&anybody, &mut resolved, 0).await;
        for member in databases(&resolved.memory) {
            let message = "databases are shown to callers with a token only".to_owned();
            resolved.coverage.push(note(&member, "database_excluded", message));
        }
        let is_database = |member: &&mut Member| matches!(member.target, MemberTarget::Database(_));
        for member in resolved.memory.members.iter_mut().filter(is_database) {
            member.title = None;
            member.query = None;
        }
        Ok(resolved)
    }

    /// Adds the documents of connected sources among the members, up to a byte limit.
    async fn add_documents(&self, caller: &Caller, resolved: &mut Resolved, max_bytes: u64) {
        let found = self.documents_of(caller, &mut resolved.memory, max_bytes).await;
        resolved.documents = found.documents;
        let left_out = found.left_out.iter();
        let notes = left_out.map(|(member, code, message)| note(member, code, (*message).to_owned()));
        resolved.coverage.extend(notes);
    }

    /// Adds the records of the database members in the scope of the caller, by the rules of records, up to the bytes
    /// that the files left. Returns the bytes that remain.
    async fn add_records(&self, caller: &Caller, resolved: &mut Resolved) -> Result<u64, Error> {
        let files = resolved.entries.iter().flatten().map(|(file, _)| file.size_bytes);
        let mut left = MAX_BYTES.saturating_sub(files.sum());
        for member in databases(&resolved.memory) {
            let MemberTarget::Database(id) = member.target else { continue };
            let Some(answer) = self.records(caller, id, member.query.as_ref(), MAX_BYTES).await? else {
                let message = "what the query of this member names is no longer in the database".to_owned();
                resolved.coverage.push(note(&member, "target_deleted", message));
                continue;
            };
            let mut kept = Vec::new();
            for entry in answer.entries {
                let Some(rest) = left.checked_sub(entry.content.len() as u64) else { break };
                left = rest;
                kept.push(entry);
            }
            if (kept.len() as u64) < answer.total {
                let message =
                    format!("{} of the {} records that this member finds are here", kept.len(), answer.total);
                resolved.coverage.push(note(&member, "budget_exhausted", message));
            }
            resolved.records.insert(member.id, kept);
            resolved.fields.insert(member.id, answer.fields);
        }
        Ok(left)
    }
}

fn assemble(memory: Memory, mut contents: HashMap<MemberId, Contents>) -> Result<Resolved, Error> {
    let mut entries = Vec::with_capacity(memory.members.len());
    let mut coverage = Vec::new();
    let mut bytes = 0_u64;
    for member in &memory.members {
        let mut found = contents.remove(&member.id).unwrap_or_default();
        for (file, body) in &mut found.files {
            bytes = bytes.saturating_add(file.size_bytes);
            body.take_if(|_| bytes > MAX_BYTES);
        }
        coverage.extend(notes(member, &found));
        let whole = found.files.into_iter().filter_map(|(file, body)| Some((file, body?)));
        let texts = whole.map(|(file, body)| Ok((file, Body::into_text(body)?)));
        entries.push(texts.collect::<Result<Vec<_>, Error>>()?);
    }
    let (records, fields, documents) = (HashMap::new(), FieldsOf::new(), DocumentsOf::new());
    Ok(Resolved { memory, entries, records, fields, documents, coverage })
}

/// The database members whose targets are live and in scope.
fn databases(memory: &Memory) -> Vec<Member> {
    let is_database =
        |member: &&Member| member.is_covered && matches!(member.target, MemberTarget::Database(_));
    memory.members.iter().filter(is_database).cloned().collect()
}

pub(super) fn note(member: &Member, code: &'static str, message: String) -> CoverageNote {
    CoverageNote { code, message, member: member.id, target: member.target.id() }
}

/// The notes for a member. They must not name anything outside of the scope.
fn notes(member: &Member, found: &Contents) -> Vec<CoverageNote> {
    let note = |code, message: String| note(member, code, message);
    let noun = member.target.kind();
    if matches!(member.target, MemberTarget::SourceDocument(_)) {
        // Notes for it come from its owner.
        return Vec::new();
    }
    if !member.is_live {
        return vec![note("target_deleted", format!("the {noun} of this member is in trash or deleted"))];
    }
    let mut notes = Vec::new();
    if !member.is_covered && found.files.is_empty() {
        let message = format!("the {noun} of this member is outside the folders of this token");
        notes.push(note("out_of_scope", message));
    } else if !member.is_covered || found.has_uncovered {
        let message = format!("parts of the {noun} of this member are outside the folders of this token");
        notes.push(note("out_of_scope", message));
    }
    if found.total > MAX_FILES && matches!(member.target, MemberTarget::Folder(_)) {
        let message =
            format!("the folder holds {} files; the first {MAX_FILES} by path are here", found.total);
        notes.push(note("folder_truncated", message));
    }
    let unread = found.files.iter().filter(|(_, body)| body.is_none()).count();
    if unread > 0 {
        let message = format!(
            "left out of this member: {}, since a resolved memory holds at most {MAX_BYTES} bytes of content",
            wording::count(unread as u64, Unit::Files)
        );
        notes.push(note("budget_exhausted", message));
    }
    notes
}

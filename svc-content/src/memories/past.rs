//! Past states of memories (ADR 96): the version of that time, with its files as of that time.
//!
//! Whatever is no longer known has a note: files that have left a folder since, records, and documents of sources
//! have no history here.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::FolderId;

use super::resolve::{MAX_BYTES, MAX_FILES, note};
use super::{CoverageNote, FieldsOf, Memories, Resolved};
use crate::model::{File, Member, MemberTarget, Memory, MemoryVersion};
use crate::past::{Moment, Past};
use crate::scope::Caller;
use crate::store::page::ListScope;
use crate::{Error, store};

/// Above the number of versions kept.
const ALL_VERSIONS: i64 = 1_000;

/// The content of one member.
#[derive(Debug, Default)]
struct Found {
    files: Vec<(File, String)>,
    notes: Vec<CoverageNote>,
}

impl Memories {
    /// A memory as of a time, with the contents of that time in the scope of the caller.
    pub(crate) async fn resolve_past(
        &self,
        caller: &Caller,
        named: &str,
        moment: Moment,
    ) -> Result<Resolved, Error> {
        let past = Past::new(self.context.clone());
        let time = past.check(caller, moment).await?;
        let memory = self.readable(caller, named).await?;
        let version = self.version_at(&memory, time).await?;
        let (version, state) = self.kept(&memory, version.version).await?;
        let mut was = self.shown(caller, &memory, &version, state).await?;
        self.named(caller, std::iter::once(&mut was)).await;
        let (mut entries, mut coverage, mut left) = (Vec::new(), Vec::new(), MAX_BYTES);
        for member in &was.members {
            let mut found = self.contents_then(&past, caller, member, moment).await?;
            let whole = found.files.len();
            found.files.retain(|(file, _)| match left.checked_sub(file.size_bytes) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            });
            if found.files.len() < whole {
                let message = format!("a resolved memory holds at most {MAX_BYTES} bytes of content");
                found.notes.push(note(member, "budget_exhausted", message));
            }
            entries.push(found.files);
            coverage.extend(found.notes);
        }
        let (records, fields, documents) = (HashMap::new(), FieldsOf::new(), HashMap::new());
        Ok(Resolved { memory: was, entries, records, fields, documents, coverage })
    }

    /// The version of a memory as of a time.
    async fn version_at(&self, memory: &Memory, time: Timestamp) -> Result<MemoryVersion, Error> {
        let (db, workspace) = (&self.context.db, memory.workspace_id);
        if memory.created_at > time {
            return Err(Error::NotThen(format!("the memory {} did not exist yet at that time", memory.id)));
        }
        let versions = store::memory_versions::list(db, workspace, memory.id, u64::MAX, ALL_VERSIONS).await?;
        let found = versions.into_iter().find(|version| version.created_at <= time);
        found.ok_or_else(|| Error::Gone(format!("what the memory {} held then is not kept", memory.id)))
    }

    async fn contents_then(
        &self,
        past: &Past,
        caller: &Caller,
        member: &Member,
        moment: Moment,
    ) -> Result<Found, Error> {
        let only = |code, message: &str| Found {
            files: Vec::new(),
            notes: vec![note(member, code, message.to_owned())],
        };
        match &member.target {
            MemberTarget::Database(_) => {
                Ok(only("not_kept", "records are shown as they are now only: this member is left out"))
            }
            MemberTarget::SourceDocument(_) => Ok(only(
                "not_kept",
                "documents of sources are shown as they are now only: this one is left out",
            )),
            MemberTarget::File(_) | MemberTarget::Folder(_) if !member.is_live => {
                let message =
                    "what this member refers to is in trash or deleted by now, and not shown as it was";
                Ok(only("target_deleted", message))
            }
            MemberTarget::File(_) | MemberTarget::Folder(_) if !member.is_covered => {
                Ok(only("out_of_scope", "what this member refers to is outside the folders of this token"))
            }
            MemberTarget::File(id) => {
                let stood = past.file(caller, &id.to_string(), moment).await;
                match unknown(stood)? {
                    Ok(file) => Ok(Found { files: vec![file], notes: Vec::new() }),
                    Err((code, message)) => Ok(only(code, &message)),
                }
            }
            MemberTarget::Folder(id) => self.folder_as_of(past, caller, (member, *id), moment).await,
        }
    }

    /// The files that are in a folder now and were in it then, as of that time.
    async fn folder_as_of(
        &self,
        past: &Past,
        caller: &Caller,
        (member, folder): (&Member, FolderId),
        moment: Moment,
    ) -> Result<Found, Error> {
        let (db, scope) = (&self.context.db, ListScope::Below(vec![folder]));
        let limit = i64::try_from(MAX_FILES).unwrap_or(i64::MAX);
        let files = store::files::list(db, caller.workspace, &scope, &[], None, limit).await?;
        let total = store::files::count(db, caller.workspace, &scope, &[]).await?;
        let mut found = Found::default();
        for file in files {
            // A file that was elsewhere, or did not exist, was no part of the folder.
            if let Ok(stood) = unknown(past.file(caller, &file.id.to_string(), moment).await)?
                && stood.0.folders.contains(&folder)
            {
                found.files.push(stood);
            }
        }
        if total > MAX_FILES {
            let message = format!("the folder holds {total} files; {MAX_FILES} by name were looked at");
            found.notes.push(note(member, "folder_truncated", message));
        }
        let message = "files that have left this folder since then are not looked for".to_owned();
        found.notes.push(note(member, "not_kept", message));
        Ok(found)
    }
}

/// A missing file becomes a note; other errors fail the call.
fn unknown<T>(stood: Result<T, Error>) -> Result<Result<T, (&'static str, String)>, Error> {
    match stood {
        Ok(stood) => Ok(Ok(stood)),
        Err(Error::Gone(message)) => Ok(Err(("not_kept", message))),
        Err(error @ (Error::NotThen(_) | Error::NotFound { .. })) => {
            Ok(Err(("target_deleted", error.to_string())))
        }
        Err(Error::OutOfScope(_)) => {
            Ok(Err(("out_of_scope", "it stood outside the folders of this token then".to_owned())))
        }
        Err(other) => Err(other),
    }
}

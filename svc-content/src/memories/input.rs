//! The validation of memory requests: every violation at once, with its path.

use std::collections::HashMap;

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::{GUIDANCE_CHARS, MEMBERS_A_CALL, NAME_CHARS, SLUG_CHARS};
use cairn_proto::ids::{DocumentId, FileId, FolderId, MemberId};

use super::outside::{self, SourceDocuments};
use super::{Memories, slug};
use crate::Error;
use crate::checks::Checks;
use crate::model::{DatabaseQuery, Member, MemberKind, MemberTarget, Memory};
use crate::scope::Caller;
use crate::{databases, store};

/// The maximum number of members: an agent loads a memory whole.
const MAX_MEMBERS: usize = 1_000;

/// The fields of a new member.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemberDraft {
    /// Absent when the caller gave no valid kind.
    pub(crate) kind: Option<MemberKind>,
    pub(crate) file_id: Option<String>,
    pub(crate) folder_id: Option<String>,
    pub(crate) source_document_id: Option<String>,
    pub(crate) database_id: Option<String>,
    pub(crate) query: Option<DatabaseQuery>,
}

/// The fields of a new memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryDraft {
    pub(crate) name: String,
    /// Absent: derived from the name.
    pub(crate) slug: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) use_when: Option<String>,
    pub(crate) is_public: bool,
    pub(crate) members: Vec<MemberDraft>,
}

/// An update of a memory: absent fields stay as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryPatch {
    pub(crate) name: Option<String>,
    pub(crate) slug: Option<String>,
    /// `Some(None)` clears it.
    pub(crate) description: Option<Option<String>>,
    /// `Some(None)` clears it.
    pub(crate) use_when: Option<Option<String>>,
    pub(crate) is_public: Option<bool>,
    pub(crate) is_listed: Option<bool>,
    pub(crate) add: Vec<MemberDraft>,
    pub(crate) remove: Vec<String>,
    /// Names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
}

/// A validated draft.
pub(super) struct CheckedMemoryDraft {
    pub(super) name: String,
    pub(super) slug: Option<String>,
    pub(super) description: Option<String>,
    pub(super) use_when: Option<String>,
    pub(super) is_public: bool,
    pub(super) members: Vec<ParsedMember>,
}

/// A validated patch.
pub(super) struct CheckedMemoryPatch {
    pub(super) name: Option<String>,
    pub(super) slug: Option<String>,
    pub(super) description: Option<Option<String>>,
    pub(super) use_when: Option<Option<String>>,
    pub(super) is_public: Option<bool>,
    pub(super) is_listed: Option<bool>,
    pub(super) add: Vec<ParsedMember>,
    pub(super) remove: Vec<String>,
}

/// A well-formed reference, and the field that it is from.
#[derive(Debug)]
pub(super) struct ParsedMember {
    path: String,
    target: MemberTarget,
    query: Option<DatabaseQuery>,
}

/// A live target in the scope of the caller.
#[derive(Debug)]
pub(super) struct ResolvedTarget {
    pub(super) target: MemberTarget,
    pub(super) query: Option<DatabaseQuery>,
    pub(super) title: String,
}

pub(super) fn check_draft(draft: MemoryDraft) -> Result<CheckedMemoryDraft, Error> {
    let mut checks = Checks::default();
    check_name(&mut checks, &draft.name);
    check_slug(&mut checks, draft.slug.as_deref());
    check_guidance(&mut checks, "description", draft.description.as_deref());
    check_guidance(&mut checks, "useWhen", draft.use_when.as_deref());
    let members = check_members(&mut checks, "members", draft.members);
    checks.finish()?;
    Ok(CheckedMemoryDraft {
        name: draft.name,
        slug: draft.slug,
        description: draft.description,
        use_when: draft.use_when,
        is_public: draft.is_public,
        members,
    })
}

pub(super) fn check_patch(patch: MemoryPatch) -> Result<CheckedMemoryPatch, Error> {
    let mut checks = Checks::default();
    checks.mask(&patch.unknown_fields);
    if let Some(name) = &patch.name {
        check_name(&mut checks, name);
    }
    check_slug(&mut checks, patch.slug.as_deref());
    check_guidance(&mut checks, "description", patch.description.as_ref().and_then(Option::as_deref));
    check_guidance(&mut checks, "useWhen", patch.use_when.as_ref().and_then(Option::as_deref));
    let add = check_members(&mut checks, "addMembers", patch.add);
    if patch.remove.len() > MEMBERS_A_CALL {
        checks.violation("removeMemberIds", "too_many", wording::at_most(MEMBERS_A_CALL, Unit::Members));
    }
    checks.finish()?;
    let (name, slug) = (patch.name, patch.slug);
    let (is_public, is_listed) = (patch.is_public, patch.is_listed);
    let (description, use_when, remove) = (patch.description, patch.use_when, patch.remove);
    Ok(CheckedMemoryPatch { name, slug, description, use_when, is_public, is_listed, add, remove })
}

/// Whether the memory is listed after the change: only a public memory can be.
pub(super) fn listed(memory: &Memory, wanted: Option<bool>) -> Result<bool, Error> {
    match wanted {
        Some(true) if !memory.is_public => {
            Err(Error::invalid("isListed", "invalid", "must be false while the memory is not public"))
        }
        Some(wanted) => Ok(wanted),
        None => Ok(memory.is_listed && memory.is_public),
    }
}

pub(super) fn check_added(members: Vec<MemberDraft>) -> Result<Vec<ParsedMember>, Error> {
    let mut checks = Checks::default();
    if members.is_empty() {
        checks.violation("members", "too_few", wording::EMPTY);
    }
    let wanted = check_members(&mut checks, "members", members);
    checks.finish()?;
    Ok(wanted)
}

pub(super) fn check_total(members: usize) -> Result<(), Error> {
    if members <= MAX_MEMBERS {
        return Ok(());
    }
    Err(Error::invalid("members", "too_many", wording::at_most(MAX_MEMBERS, Unit::Members)))
}

/// The members with these ids, each once.
pub(super) fn removed(memory: &Memory, ids: &[String]) -> Result<Vec<Member>, Error> {
    let mut found: Vec<Member> = Vec::with_capacity(ids.len());
    let mut missing = Vec::new();
    for (place, text) in ids.iter().enumerate() {
        let id: Option<MemberId> = text.parse().ok();
        match memory.members.iter().find(|member| Some(member.id) == id) {
            Some(member) if found.contains(member) => {}
            Some(member) => found.push(member.clone()),
            None => missing.push(Violation::new(
                format!("removeMemberIds[{place}]"),
                "not_found",
                "the memory has no member with that id",
            )),
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(Error::NoTargets(missing)) }
}

impl Memories {
    /// The targets of references; all missing ones are reported at once, before any that is out of scope.
    pub(super) async fn targets(
        &self,
        caller: &Caller,
        wanted: Vec<ParsedMember>,
    ) -> Result<Vec<ResolvedTarget>, Error> {
        let all: Vec<MemberTarget> = wanted.iter().map(|one| one.target).collect();
        let live = self.live(caller, &all).await?;
        let mut found = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        let mut outside = Vec::new();
        let mut broken = Vec::new();
        let is_hidden = |target| {
            // Sources belong to the whole workspace: a scoped caller must not learn which documents exist.
            caller.listed().is_some() && matches!(target, MemberTarget::SourceDocument(_))
        };
        for one in wanted {
            match live.get(&one.target).map(|found| (one.target, found)) {
                None if is_hidden(one.target) => outside.push(one.path),
                None => missing.push(Violation::new(
                    one.path,
                    "not_found",
                    "there is nothing with that id in this workspace",
                )),
                Some((_, (_, folders))) if !caller.covers(folders) => outside.push(one.path),
                Some((target, (title, _))) => {
                    if let (MemberTarget::Database(id), Some(query)) = (target, &one.query) {
                        let path = one.path.replace(".databaseId", ".databaseQuery");
                        broken.extend(self.check_query(caller, id, query, &path).await?);
                    }
                    found.push(ResolvedTarget { target, query: one.query, title: title.clone() });
                }
            }
        }
        if !missing.is_empty() {
            return Err(Error::NoTargets(missing));
        }
        if !outside.is_empty() {
            let paths = outside.join(", ");
            return Err(Error::OutOfScope(format!("outside the folders of this token: {paths}")));
        }
        if !broken.is_empty() {
            return Err(Error::Invalid(broken));
        }
        Ok(found)
    }

    /// The names of the live ones, and their folders.
    pub(super) async fn live(
        &self,
        caller: &Caller,
        wanted: &[MemberTarget],
    ) -> Result<HashMap<MemberTarget, (String, Vec<FolderId>)>, Error> {
        let (mut files, mut folders): (Vec<FileId>, Vec<FolderId>) = (Vec::new(), Vec::new());
        for target in wanted {
            match *target {
                MemberTarget::File(id) => files.push(id),
                MemberTarget::Folder(id) => folders.push(id),
                MemberTarget::Database(_) | MemberTarget::SourceDocument(_) => {}
            }
        }
        let (db, workspace) = (&self.context.db, caller.workspace);
        let mut live = HashMap::with_capacity(wanted.len());
        if !files.is_empty() {
            let found = store::files::get_many(db, workspace, &files).await?;
            live.extend(
                found.into_iter().map(|file| (MemberTarget::File(file.id), (file.name, file.folders))),
            );
        }
        if !folders.is_empty() {
            let found = store::folders::get_many(db, workspace, &folders).await?;
            let entry = |folder: crate::model::Folder| {
                (MemberTarget::Folder(folder.id), (folder.name.clone(), folder.path_ids()))
            };
            live.extend(found.into_iter().map(entry));
        }
        let documents = outside::documents(wanted.iter());
        if !documents.is_empty() {
            match self.source_documents(caller, &documents).await {
                SourceDocuments::Hidden => {}
                SourceDocuments::Unanswered => return Err(Error::Unanswered),
                SourceDocuments::Live(found) => live.extend(found.into_values().map(|document| {
                    (MemberTarget::SourceDocument(document.id), (document.title, Vec::new()))
                })),
            }
        }
        for target in wanted.iter().copied() {
            let MemberTarget::Database(id) = target else { continue };
            if live.contains_key(&target) {
                continue;
            }
            let anybody = Caller::anybody(workspace);
            match databases::readable(&self.context.db, &anybody, &id.to_string()).await {
                Ok(database) => drop(live.insert(target, (database.name, database.folders))),
                Err(Error::NotFound { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(live)
    }
}

fn check_name(checks: &mut Checks, name: &str) {
    if name.trim().is_empty() {
        return checks.violation("name", "required", "give a name");
    }
    if name.chars().count() > NAME_CHARS {
        checks.violation("name", "too_long", wording::at_most(NAME_CHARS, Unit::Characters));
    }
    if name.contains(char::is_control) {
        checks.violation("name", "invalid", wording::NO_CONTROL_CHARACTERS);
    }
}

fn check_slug(checks: &mut Checks, slug: Option<&str>) {
    if slug.is_some_and(|slug| !slug::is_valid(slug)) {
        let message = format!(
            "a slug is 1 to {} small letters and digits with single hyphens between, such as release-process, and \
             not spelled like an id",
            SLUG_CHARS
        );
        checks.violation("slug", "invalid", message);
    }
}

fn check_guidance(checks: &mut Checks, path: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    if text.chars().count() > GUIDANCE_CHARS {
        checks.violation(path, "too_long", wording::at_most(GUIDANCE_CHARS, Unit::Characters));
    }
    if text.contains('\0') {
        checks.violation(path, "invalid", wording::NO_NUL);
    }
}

fn check_members(checks: &mut Checks, field: &str, members: Vec<MemberDraft>) -> Vec<ParsedMember> {
    if members.len() > MEMBERS_A_CALL {
        checks.violation(field, "too_many", wording::at_most(MEMBERS_A_CALL, Unit::Members));
        return Vec::new();
    }
    let check = |(place, member)| check_member(checks, &format!("{field}[{place}]"), &member);
    members.into_iter().enumerate().filter_map(check).collect()
}

fn check_member(checks: &mut Checks, at: &str, member: &MemberDraft) -> Option<ParsedMember> {
    let references = [
        (MemberKind::File, "fileId", &member.file_id),
        (MemberKind::Folder, "folderId", &member.folder_id),
        (MemberKind::SourceDocument, "sourceDocumentId", &member.source_document_id),
        (MemberKind::Database, "databaseId", &member.database_id),
    ];
    let Some(kind) = member.kind else {
        let message = "give a kind: file, folder, source_document or database";
        checks.violation(&format!("{at}.kind"), "required", message);
        return None;
    };
    if member.query.is_some() && kind != MemberKind::Database {
        let message = "only a member of kind database has a query";
        checks.violation(&format!("{at}.databaseQuery"), "invalid", message);
    }
    let mut wanted = None;
    for (of, field, reference) in references {
        let path = format!("{at}.{field}");
        match reference {
            Some(text) if of == kind => wanted = reference_of(checks, kind, path, text, member.query.clone()),
            Some(_) => checks.violation(&path, "invalid", "this is the reference of another kind of member"),
            None if of == kind => checks.violation(&path, "required", "a member of this kind refers by this"),
            None => {}
        }
    }
    wanted
}

fn reference_of(
    checks: &mut Checks,
    kind: MemberKind,
    path: String,
    text: &str,
    query: Option<DatabaseQuery>,
) -> Option<ParsedMember> {
    let id: DocumentId = checks.id(&path, text)?;
    Some(ParsedMember { path, target: MemberTarget::of(kind, id), query })
}

//! The terms of imports, in words for people.

use cairn_proto::domain::{ConflictPolicy, ImportProvider};

/// The tool that the archive is from.
pub(super) const fn provider(provider: ImportProvider) -> &'static str {
    match provider {
        ImportProvider::ObsidianZip => "Obsidian vault",
        ImportProvider::NotionZip => "Notion export",
    }
}

/// The conflict policy.
pub(super) const fn policy(policy: ConflictPolicy) -> &'static str {
    match policy {
        ConflictPolicy::Update => "Update it, unless it was edited here",
        ConflictPolicy::Skip => "Leave it as it is",
        ConflictPolicy::Duplicate => "Put the new version beside it",
    }
}

/// The actual or planned action on an object.
pub(super) fn action(action: &str, is_planned: bool) -> &str {
    match (action, is_planned) {
        ("created", true) => "Will be created",
        ("created", false) => "Created",
        ("updated", true) => "Will be updated",
        ("updated", false) => "Updated",
        ("skipped", true) => "Stays as it is",
        ("skipped", false) => "Left as it was",
        ("conflict", _) => "In conflict",
        ("removed", _) => "Removed",
        ("kept", _) => "Kept",
        ("failed", _) => "Failed",
        (other, _) => other,
    }
}

/// The kind of an object.
pub(super) fn kind(kind: &str) -> &str {
    match kind {
        "file" => "File",
        "folder" => "Folder",
        "asset" => "Attachment",
        "database" => "Database",
        "record" => "Record",
        other => other,
    }
}

/// Why a link is unresolved, or an entry ignored.
pub(super) fn reason(code: &str) -> &str {
    match code {
        "not_found" => "Leads to nothing in the archive; it stays as it was written",
        "ambiguous" => "Could lead to several; the nearest was taken, if it was a path",
        "hidden" => "Its name begins with a dot: settings or trash of the tool",
        "system_file" => "An operating system put it there",
        "linked_view" => "A view of a database that is imported",
        "index" => "The table of contents of the export",
        other => other,
    }
}

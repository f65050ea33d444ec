//! Records as documents for search: their fields, then the text of their body.

use std::collections::HashMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, FileId, FolderId, RecordId, WorkspaceId};

use super::values;
use crate::context::Context;
use crate::model::{Body, Database, Document, File, FileType, Record, content_hash};
use crate::scope::Caller;
use crate::{Error, store};

const UNTITLED: &str = "Untitled";

/// A record as a document.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) document: Document,
    pub(crate) content: String,
    /// The folders of its body file.
    pub(crate) quoted: Option<Vec<FolderId>>,
}

/// The records among these ids that are live, as documents.
pub(crate) async fn documents(
    context: &Context,
    workspace: WorkspaceId,
    ids: &[RecordId],
) -> Result<Vec<Rendered>, Error> {
    let db = &context.db;
    let records = store::records::get_many(db, workspace, ids).await?;
    let held: Vec<_> = records.iter().map(|record| record.database_id).collect();
    let databases = store::databases::get_many(db.engine(), workspace, &held).await?;
    let bodies: Vec<FileId> = records.iter().filter_map(|record| record.content_file_id).collect();
    let texts = body_texts(context, workspace, &bodies).await?;
    let mut rendered = Vec::with_capacity(records.len());
    for record in records {
        let Some(database) = databases.iter().find(|one| one.id == record.database_id) else { continue };
        let body = record.content_file_id.and_then(|id| texts.get(&id));
        rendered.push(render(database, &record, body));
    }
    Ok(rendered)
}

/// Records of a database in this order, with the bodies that are in the caller's scope. Stops before the first record whose body
/// would exceed `max_bytes` in total.
pub(crate) async fn readable(
    context: &Context,
    caller: &Caller,
    database: &Database,
    ids: &[RecordId],
    max_bytes: u64,
) -> Result<Vec<Rendered>, Error> {
    let mut records = store::records::get_in_order(context.db.engine(), caller.workspace, ids).await?;
    let bodies: Vec<FileId> = records.iter().filter_map(|record| record.content_file_id).collect();
    let mut files = match bodies.is_empty() {
        true => Vec::new(),
        false => store::files::get_many(&context.db, caller.workspace, &bodies).await?,
    };
    files.retain(|file| caller.covers(&file.folders));
    let size_of = |record: &Record| {
        let file = files.iter().find(|file| Some(file.id) == record.content_file_id);
        file.map_or(0, |file| file.size_bytes)
    };
    let mut left = max_bytes;
    let fitting = records.iter().take_while(|record| match left.checked_sub(size_of(record)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    let fitting = fitting.count();
    records.truncate(fitting);
    files.retain(|file| records.iter().any(|record| record.content_file_id == Some(file.id)));
    let texts = texts_of(context, caller.workspace, files).await?;
    let render =
        |record: &Record| render(database, record, record.content_file_id.and_then(|id| texts.get(&id)));
    Ok(records.iter().map(render).collect())
}

/// A record, which may have unsaved values, as a document, with its body if it is in the caller's scope.
pub(crate) async fn rendered(
    context: &Context,
    caller: &Caller,
    database: &Database,
    record: &Record,
) -> Result<Rendered, Error> {
    let bodies: Vec<FileId> = record.content_file_id.into_iter().collect();
    let mut texts = body_texts(context, caller.workspace, &bodies).await?;
    texts.retain(|_, (file, _)| caller.covers(&file.folders));
    Ok(render(database, record, record.content_file_id.and_then(|id| texts.get(&id))))
}

async fn body_texts(
    context: &Context,
    workspace: WorkspaceId,
    ids: &[FileId],
) -> Result<HashMap<FileId, (File, String)>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let files = store::files::get_many(&context.db, workspace, ids).await?;
    texts_of(context, workspace, files).await
}

async fn texts_of(
    context: &Context,
    workspace: WorkspaceId,
    files: Vec<File>,
) -> Result<HashMap<FileId, (File, String)>, Error> {
    let hashes: Vec<&str> = files.iter().map(|file| file.content_hash.as_str()).collect();
    let mut texts = HashMap::with_capacity(hashes.len());
    for body in store::bodies::get_many(&context.db, workspace, &hashes).await? {
        texts.insert(body.hash.clone(), Body::into_text(body)?);
    }
    let with_text = |file: File| {
        let text = texts.get(&file.content_hash).cloned()?;
        Some((file.id, (file, text)))
    };
    Ok(files.into_iter().filter_map(with_text).collect())
}

fn render(database: &Database, record: &Record, body: Option<&(File, String)>) -> Rendered {
    let content = values::rendered(database, &record.values, body.map(|(_, text)| text.as_str()));
    let title = database.title_of(&record.values);
    let title = if title.trim().is_empty() { UNTITLED.to_owned() } else { title };
    let document = Document {
        kind: Kind::Record,
        id: DocumentId(record.id.0),
        folders: database.folders.clone(),
        path: format!("{}/{title}", database.path),
        title,
        tags: Vec::new(),
        format: FileType::Markdown,
        content_hash: content_hash(&content),
        updated_at: record.updated_at,
        database_id: Some(database.id),
    };
    Rendered { document, content, quoted: body.map(|(file, _)| file.folders.clone()) }
}

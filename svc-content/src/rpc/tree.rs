//! `cairn.content.v1.TreeService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::Verifier;
use cairn_proto::content::v1::read_past_tree_request::When;
use cairn_proto::content::v1::text_ref::Text as NamedText;
use cairn_proto::content::v1::tree_service_server::{TreeService, TreeServiceServer};
use cairn_proto::content::v1::{
    self as proto, ListTreeRequest, ListTreeResponse, ReadFoldersRequest, ReadFoldersResponse,
    ReadPastTreeRequest, ReadPastTreeResponse, ReadTextsRequest, ReadTextsResponse, ReadTreeChangesRequest,
    ReadTreeChangesResponse, TreeItems,
};
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::ids::{DocumentId, FileId};
use tonic::{Request, Response, Status};

use crate::Error;
use crate::model::{
    NamedDatabase, TreeDatabase, TreeFile, TreeFolder, TreeMember, TreeMemory, TreeRecord, TreeText,
};
use crate::past::Moment;
use crate::tree::{self, TextRef, Trees};

pub(crate) fn server(trees: Trees, verifier: Verifier) -> TreeServiceServer<Rpc> {
    TreeServiceServer::new(Rpc { trees, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    trees: Trees,
    verifier: Verifier,
}

#[tonic::async_trait]
impl TreeService for Rpc {
    async fn list_tree(
        &self,
        request: Request<ListTreeRequest>,
    ) -> Result<Response<ListTreeResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let page = self.trees.list(&asked.workspace_id, &asked.page_token).await?;
        Ok(Response::new(ListTreeResponse {
            items: Some(items(page.items)),
            next_page_token: page.next,
            position: page.position,
        }))
    }

    async fn read_tree_changes(
        &self,
        request: Request<ReadTreeChangesRequest>,
    ) -> Result<Response<ReadTreeChangesResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let changes = self.trees.changes(&asked.workspace_id, asked.after).await?;
        Ok(Response::new(ReadTreeChangesResponse {
            position: changes.position,
            head: changes.head,
            items: Some(items(changes.items)),
            gone: references(changes.gone),
        }))
    }

    async fn read_past_tree(
        &self,
        request: Request<ReadPastTreeRequest>,
    ) -> Result<Response<ReadPastTreeResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let moment = match asked.when {
            Some(When::AsOf(time)) => Moment::at(Timestamp::from_proto(&time)),
            Some(When::AfterChange(position)) => Moment::After(position),
            None => return Err(Error::invalid("asOf", "required", "say when").into()),
        };
        let past = self.trees.past(&asked.workspace_id, moment).await?;
        Ok(Response::new(ReadPastTreeResponse {
            at: Some(past.at.to_proto()),
            items: Some(items(past.items)),
            gone: references(past.gone),
            untold: references(past.untold),
            unknown: u32::try_from(past.unknown).unwrap_or(u32::MAX),
            tags: past.tags.into_iter().map(file_tags).collect(),
        }))
    }

    async fn read_folders(
        &self,
        request: Request<ReadFoldersRequest>,
    ) -> Result<Response<ReadFoldersResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let page = self.trees.names(&asked.workspace_id, asked.after, &asked.page_token).await?;
        let unchanged = page.names.is_none();
        let names = page.names.unwrap_or_default();
        Ok(Response::new(ReadFoldersResponse {
            unchanged,
            folders: names.folders.into_iter().map(folder).collect(),
            databases: names.databases.into_iter().map(named_database).collect(),
            next_page_token: page.next,
            position: page.position,
        }))
    }

    async fn read_texts(
        &self,
        request: Request<ReadTextsRequest>,
    ) -> Result<Response<ReadTextsResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let refs: Vec<Option<TextRef>> = asked.refs.into_iter().map(decode).collect();
        let read = self.trees.texts(&asked.workspace_id, &refs).await?;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let text = |(place, content, hash): (usize, String, String)| proto::Text {
            place: count(place),
            content: content.into(),
            hash,
        };
        let texts = read.texts.into_iter().map(text).collect();
        Ok(Response::new(ReadTextsResponse { texts, read: count(read.read) }))
    }
}

fn references(items: Vec<(Kind, DocumentId)>) -> Vec<DocumentRef> {
    items.into_iter().map(|(kind, id)| DocumentRef { kind: kind.into(), id: id.to_string() }).collect()
}

/// Invalid ids are ignored.
fn decode(reference: proto::TextRef) -> Option<TextRef> {
    Some(match reference.text? {
        NamedText::BodyHash(hash) => TextRef::Body(hash),
        NamedText::RecordId(id) => TextRef::FrontMatter { record: id.parse().ok()?, has_references: true },
        NamedText::RecordIdWithoutReferences(id) => {
            TextRef::FrontMatter { record: id.parse().ok()?, has_references: false }
        }
        NamedText::DatabaseId(id) => TextRef::Schema(id.parse().ok()?),
    })
}

fn items(items: tree::TreeItems) -> TreeItems {
    TreeItems {
        folders: items.folders.into_iter().map(folder).collect(),
        files: items.files.into_iter().map(file).collect(),
        databases: items.databases.into_iter().map(database).collect(),
        records: items.records.into_iter().map(record).collect(),
        memories: items.memories.into_iter().map(memory).collect(),
    }
}

fn folder(folder: TreeFolder) -> proto::TreeFolder {
    proto::TreeFolder {
        id: folder.id.to_string(),
        parent_id: folder.parent_id.map(|id| id.to_string()),
        name: folder.name,
        updated_at: Some(folder.updated_at.to_proto()),
    }
}

fn file(file: TreeFile) -> proto::TreeFile {
    proto::TreeFile {
        id: file.id.to_string(),
        folder_id: file.folder_id.map(|id| id.to_string()),
        name: file.name,
        file_type: file.file_type.into(),
        size_bytes: file.size_bytes,
        content_hash: file.content_hash,
        updated_at: Some(file.updated_at.to_proto()),
    }
}

fn file_tags((id, tags): (FileId, Vec<String>)) -> proto::FileTags {
    proto::FileTags { file_id: id.to_string(), tags }
}

fn text(text: TreeText) -> proto::TreeText {
    proto::TreeText { hash: text.hash, size_bytes: text.size_bytes }
}

fn database(database: TreeDatabase) -> proto::TreeDatabase {
    proto::TreeDatabase {
        id: database.id.to_string(),
        folder_id: database.folder_id.map(|id| id.to_string()),
        name: database.name,
        description: database.description,
        schema: Some(text(database.schema)),
        updated_at: Some(database.updated_at.to_proto()),
    }
}

fn named_database(database: NamedDatabase) -> proto::NamedDatabase {
    proto::NamedDatabase {
        id: database.id.to_string(),
        folder_id: database.folder_id.map(|id| id.to_string()),
        name: database.name,
    }
}

fn record(record: TreeRecord) -> proto::TreeRecord {
    proto::TreeRecord {
        id: record.id.to_string(),
        database_id: record.database_id.to_string(),
        title: record.title,
        content_file_id: record.content_file_id.map(|id| id.to_string()),
        front_matter: Some(text(record.front_matter)),
        front_matter_without_references: record.without_references.map(text),
        updated_at: Some(record.updated_at.to_proto()),
    }
}

fn memory(memory: TreeMemory) -> proto::TreeMemory {
    proto::TreeMemory {
        id: memory.id.to_string(),
        slug: memory.slug,
        name: memory.name,
        description: memory.description,
        use_when: memory.use_when,
        members: memory.members.into_iter().map(member).collect(),
        updated_at: Some(memory.updated_at.to_proto()),
    }
}

fn member(member: TreeMember) -> proto::TreeMember {
    proto::TreeMember {
        kind: member.target.kind().into(),
        target_id: member.target.id().to_string(),
        // A tree only shows that there is a query, which may be long.
        query: member.is_query.then(proto::DatabaseQuery::default),
    }
}

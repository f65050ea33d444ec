//! Members that are documents of connected sources, with a fake owner.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
};
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmDocumentsResponse, ConfirmedDocument, Document, DocumentRef,
    ReadDocumentsRequest, ReadDocumentsResponse, SelectDocumentsRequest, SelectDocumentsResponse,
};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::DocumentId;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use super::memory_rules::codes;
use super::*;
use crate::memories::{MemberDraft, MemoryDraft, MemoryPatch};
use crate::model::MemberKind;

const RETAINED: u128 = 1;
const ENTRY: u128 = 2;

/// The fake owner: its documents with their texts; `None` for a document with its name only.
#[derive(Debug, Clone)]
struct Owner {
    issuer: Arc<Issuer>,
    documents: Arc<Mutex<BTreeMap<String, Option<String>>>>,
    is_down: Arc<Mutex<bool>>,
    /// The ids whose texts were read.
    read: Arc<Mutex<Vec<String>>>,
}

fn id(number: u128) -> String {
    Uuid::from_u128(number).hyphenated().to_string()
}

impl Owner {
    fn live(&self, refs: Vec<DocumentRef>) -> Result<Vec<(DocumentRef, Option<String>)>, Status> {
        if *self.is_down.lock().unwrap() {
            return Err(Status::unavailable("it is down"));
        }
        let documents = self.documents.lock().unwrap();
        let found = |reference: DocumentRef| {
            let is_document = reference.kind() == Kind::SourceDocument;
            let text = documents.get(&reference.id).filter(|_| is_document)?.clone();
            Some((reference, text))
        };
        Ok(refs.into_iter().filter_map(found).collect())
    }
}

#[tonic::async_trait]
impl DocumentService for Owner {
    /// One at a time.
    async fn read_documents(
        &self,
        request: Request<ReadDocumentsRequest>,
    ) -> Result<Response<ReadDocumentsResponse>, Status> {
        let refs: Vec<DocumentRef> = request.into_inner().refs.into_iter().take(1).collect();
        self.read.lock().unwrap().extend(refs.iter().map(|reference| reference.id.clone()));
        let document = |(reference, text): (DocumentRef, Option<String>)| Document {
            r#ref: Some(reference),
            content_hash: format!("hash of {}", text.clone().unwrap_or_default()),
            content: text.unwrap_or_default(),
            ..Document::default()
        };
        let documents = self.live(refs)?.into_iter().map(document).collect();
        Ok(Response::new(ReadDocumentsResponse { documents, read: 1 }))
    }

    async fn confirm_documents(
        &self,
        request: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        let document = |(reference, text): (DocumentRef, Option<String>)| ConfirmedDocument {
            title: format!("document {}", &reference.id[35..]),
            path: format!("/sources/Wiki/{}.md", &reference.id[35..]),
            r#ref: Some(reference),
            source_id: Some(id(900)),
            url: Some("https://wiki.example/1".to_owned()),
            catalog_only: text.is_none(),
            ..ConfirmedDocument::default()
        };
        let documents = self.live(request.into_inner().refs)?.into_iter().map(document).collect();
        Ok(Response::new(ConfirmDocumentsResponse { documents }))
    }

    async fn select_documents(
        &self,
        _: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }
}

#[tonic::async_trait]
impl KeyService for Owner {
    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn issue_service_identity(
        &self,
        _: Request<IssueServiceIdentityRequest>,
    ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
        let identity = self.issuer.sign(&self.issuer.service("content")).unwrap();
        Ok(Response::new(IssueServiceIdentityResponse { identity, expires_at: None }))
    }
}

/// The fake owner, connected to a bench, and a caller with a call.
async fn beside(bench: &Bench) -> (Owner, Caller) {
    let owner = Owner {
        issuer: Arc::new(Issuer::new().unwrap()),
        documents: Arc::default(),
        is_down: Arc::default(),
        read: Arc::default(),
    };
    {
        let mut documents = owner.documents.lock().unwrap();
        documents.insert(id(RETAINED), Some("What the wiki says.\n".to_owned()));
        documents.insert(id(ENTRY), None);
    }
    let routes = Routes::new(DocumentServiceServer::new(owner.clone()))
        .add_service(KeyServiceServer::new(owner.clone()));
    let names = ["cairn.document.v1.DocumentService", "cairn.auth.v1.KeyService"];
    let channel = ServiceChannel::local(double::compose(routes, &names).await.unwrap().routes);
    let identity =
        ServiceIdentitySource::new("content", "secret".into(), channel.clone(), Arc::new(SystemClock));
    bench.context.outside.connect(channel, identity);
    let call = Some(Call::within(Duration::from_secs(30)));
    (owner, Caller { call, ..bench.caller.clone() })
}

fn of_document(number: u128) -> MemberDraft {
    MemberDraft {
        kind: Some(MemberKind::SourceDocument),
        source_document_id: Some(id(number)),
        ..MemberDraft::default()
    }
}

#[tokio::test]
async fn a_memory_holds_what_is_retained_of_documents_and_says_what_is_not() {
    for bench in benches().await {
        let (owner, caller) = beside(&bench).await;
        let memories = bench.memories();
        let members = vec![of_document(RETAINED), of_document(ENTRY)];
        let draft = MemoryDraft { name: "m".to_owned(), members, ..MemoryDraft::default() };
        let memory = memories.create(&caller, draft).await.unwrap().item;
        let titles: Vec<_> = memory.members.iter().map(|member| member.title.as_deref()).collect();
        assert_eq!(titles, [Some("document 1"), Some("document 2")], "{}", bench.engine());
        let listed = memories.list(&caller, first_page()).await.unwrap();
        assert_eq!(listed.items, std::slice::from_ref(&memory));

        let resolved = memories.resolve(&caller, "m").await.unwrap();
        assert_eq!(codes(&resolved), ["catalog_only"]);
        let entry = &resolved.documents[&memory.members[0].id];
        assert_eq!(entry.content, "What the wiki says.\n");
        assert_eq!(entry.document.content_hash, "hash of What the wiki says.\n");
        assert_eq!(entry.document.address.as_deref(), Some("https://wiki.example/1"));
        assert_eq!((resolved.documents.len(), resolved.memory.members[0].is_covered), (1, true));

        // Disconnected.
        owner.documents.lock().unwrap().remove(&id(RETAINED));
        let resolved = memories.resolve(&caller, "m").await.unwrap();
        assert_eq!(codes(&resolved), ["target_deleted", "catalog_only"]);
        assert_eq!(resolved.memory.members[0].title, None);

        *owner.is_down.lock().unwrap() = true;
        let resolved = memories.resolve(&caller, "m").await.unwrap();
        assert_eq!(codes(&resolved), ["source_excluded", "source_excluded"]);
        let patch = MemoryPatch { add: vec![of_document(ENTRY)], ..MemoryPatch::default() };
        let refused = memories.update(&caller, "m", patch).await.unwrap_err();
        assert!(matches!(refused, Error::Unanswered), "{refused}");
    }
}

/// The limit is on what is retained, so it stops the reads, and does not truncate what was read.
#[tokio::test]
async fn documents_are_read_until_there_is_enough() {
    for bench in benches().await {
        let (owner, caller) = beside(&bench).await;
        let numbers = || (1_000..1_250).map(id);
        owner.documents.lock().unwrap().extend(numbers().map(|id| (id, Some("ten bytes.".to_owned()))));
        let ids: Vec<DocumentId> = numbers().map(|id| id.parse().unwrap()).collect();
        for (most_bytes, read) in [(0, 1), (9, 1), (10, 2), (1_205, 121), (2_490, 250), (u64::MAX, 250)] {
            owner.read.lock().unwrap().clear();
            let found = bench.context.outside.read(caller.workspace, &ids, most_bytes).await.unwrap();
            assert_eq!(*owner.read.lock().unwrap(), numbers().take(read).collect::<Vec<_>>(), "{most_bytes}");
            assert_eq!(found.texts.len(), read, "{most_bytes}");
            assert_eq!(found.unread, ids.iter().skip(read).copied().collect(), "{most_bytes}");
        }
    }
}

#[tokio::test]
async fn what_is_beyond_the_bytes_of_a_memory_is_not_read() {
    let large = "x".repeat(9 * 1024 * 1024);
    for bench in benches().await {
        let (owner, caller) = beside(&bench).await;
        let numbers = 1_000..1_005;
        owner.documents.lock().unwrap().extend(numbers.clone().map(|one| (id(one), Some(large.clone()))));
        let members = numbers.map(of_document).collect();
        let draft = MemoryDraft { name: "m".to_owned(), members, ..MemoryDraft::default() };
        bench.memories().create(&caller, draft).await.unwrap();
        let resolved = bench.memories().resolve(&caller, "m").await.unwrap();
        assert_eq!(codes(&resolved), ["budget_exhausted"; 4], "{}", bench.engine());
        assert_eq!(resolved.documents.len(), 1);
        assert_eq!(
            *owner.read.lock().unwrap(),
            [id(1_000), id(1_001)],
            "three of 9 MiB would be held otherwise"
        );
    }
}

#[tokio::test]
async fn who_may_not_see_documents_of_sources_neither_names_nor_reads_them() {
    for bench in benches().await {
        let (_owner, caller) = beside(&bench).await;
        let memories = bench.memories();
        let folder = bench.folder("f", None).await;
        let members = vec![of_document(RETAINED)];
        let draft = MemoryDraft { name: "m".to_owned(), members, is_public: true, ..MemoryDraft::default() };
        memories.create(&caller, draft).await.unwrap();
        let unknown = memories.add_members(&caller, "m", vec![of_document(77)]).await.unwrap_err();
        assert!(
            matches!(&unknown, Error::NoTargets(found) if found[0].path == "members[0].sourceDocumentId")
        );

        let scoped = Caller { scope: Scope::Folders([folder.id].into()), ..caller.clone() };
        let resolved = memories.resolve(&scoped, "m").await.unwrap();
        assert_eq!((codes(&resolved), resolved.documents.len()), (vec!["out_of_scope"], 0));
        assert_eq!(resolved.memory.members[0].title, None);
        for number in [RETAINED, 77] {
            let draft = MemoryDraft {
                name: "other".to_owned(),
                members: vec![of_document(number)],
                ..MemoryDraft::default()
            };
            let refused = memories.create(&scoped, draft).await.unwrap_err();
            assert!(matches!(refused, Error::OutOfScope(_)), "{refused}: it tells whether there is one");
        }

        let workspace = caller.workspace.to_string();
        let public = memories.resolve_public("m", Some(&workspace)).await.unwrap();
        assert_eq!((codes(&public), public.documents.len()), (vec!["source_excluded"], 0));
        assert_eq!(public.memory.members[0].title, None);
    }
}

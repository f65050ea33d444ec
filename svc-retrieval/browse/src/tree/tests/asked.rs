//! Trees that ask a content service of the tests.

mod beside;
mod past;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::identity::{Identity, Permission, Scope, ServiceIdentitySource};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::server as double;
use cairn_proto::auth::v1::key_service_server::{KeyService, KeyServiceServer};
use cairn_proto::auth::v1::{
    IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest, ListKeysResponse,
};
use cairn_proto::content::v1::text_ref::Text as Named;
use cairn_proto::content::v1::tree_service_server::{TreeService, TreeServiceServer};
use cairn_proto::content::v1::{self as proto, TreeItems};
use cairn_proto::document::v1::DocumentRef;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::{FolderId, WorkspaceId};
use cairn_proto::ingest::v1::TreeDocument;
use cairn_proto::ingest::v1::tree_service_server::TreeServiceServer as OutsideTreeServer;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use super::*;
use crate::bodies::BodyRef;
use crate::tree::view::View;
use crate::tree::{Trees, remote};

/// What the content service of the tests holds, and how often it was asked.
#[derive(Debug, Default)]
struct State {
    /// With the position of its last change; none when it is gone.
    items: BTreeMap<(i32, String), (u64, Option<TreeItems>)>,
    head: u64,
    /// Changes in one answer; all of them when it is 0.
    part: usize,
    texts: BTreeMap<String, String>,
    lists: u32,
    changes: u32,
    /// Without a permit, changes are read and not answered.
    answering: Option<Arc<Semaphore>>,
    outside: Outside,
    /// What has changed since the moment that is asked for.
    past: Option<proto::ReadPastTreeResponse>,
}

/// The owner of documents from outside.
#[derive(Debug, Default)]
struct Outside {
    /// With the position of its last change; none when it is gone.
    documents: BTreeMap<String, (u64, Option<TreeDocument>)>,
    head: u64,
    is_down: bool,
    asked: u32,
}

#[derive(Debug, Clone)]
struct Content {
    issuer: Arc<Issuer>,
    state: Arc<Mutex<State>>,
}

impl State {
    fn tell(&mut self, kind: Kind, number: u128, items: Option<TreeItems>) {
        self.head += 1;
        self.items.insert((kind.into(), id(number).to_string()), (self.head, items));
    }

    fn folder(&mut self, number: u128, parent: Option<u128>, name: &str) {
        let folder = proto::TreeFolder {
            id: id(number).to_string(),
            parent_id: parent.map(|parent| id(parent).to_string()),
            name: name.into(),
            updated_at: None,
        };
        self.tell(Kind::Folder, number, Some(TreeItems { folders: vec![folder], ..TreeItems::default() }));
    }

    fn file(&mut self, number: u128, folder: Option<u128>, name: &str, content: &str) {
        let file = proto::TreeFile {
            id: id(number).to_string(),
            folder_id: folder.map(|folder| id(folder).to_string()),
            name: name.into(),
            file_type: proto::FileType::Markdown.into(),
            size_bytes: content.len() as u64,
            content_hash: self.text(content).hash,
            updated_at: None,
        };
        self.tell(Kind::File, number, Some(TreeItems { files: vec![file], ..TreeItems::default() }));
    }

    fn text(&mut self, text: &str) -> proto::TreeText {
        let hash = format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex());
        self.texts.insert(hash.clone(), text.to_owned());
        proto::TreeText { hash, size_bytes: text.len() as u64 }
    }

    /// A database with a record whose fields are told in two ways.
    fn table(&mut self, number: u128, folder: u128, body: u128) {
        let schema = self.text("the schema");
        let database = proto::TreeDatabase {
            id: id(number).to_string(),
            folder_id: Some(id(folder).to_string()),
            name: "d".into(),
            schema: Some(schema),
            ..proto::TreeDatabase::default()
        };
        self.tell(
            Kind::Database,
            number,
            Some(TreeItems { databases: vec![database], ..TreeItems::default() }),
        );
        let record = proto::TreeRecord {
            id: id(number + 1).to_string(),
            database_id: id(number).to_string(),
            title: "a/b".into(),
            content_file_id: Some(id(body).to_string()),
            front_matter: Some(self.text("---\nall: 1\n---\n")),
            front_matter_without_references: Some(self.text("---\n---\n")),
            updated_at: None,
        };
        self.tell(
            Kind::Record,
            number + 1,
            Some(TreeItems { records: vec![record], ..TreeItems::default() }),
        );
    }

    fn changes_after(&self, after: u64) -> proto::ReadTreeChangesResponse {
        let (mut items, mut gone, mut position) = (TreeItems::default(), Vec::new(), self.head);
        let mut told: Vec<_> = self.items.iter().filter(|(_, (at, _))| *at > after).collect();
        told.sort_by_key(|(_, (at, _))| *at);
        for (number, ((kind, id), (at, item))) in told.into_iter().enumerate() {
            if self.part > 0 && number == self.part {
                break;
            }
            position = if self.part > 0 { *at } else { position };
            match item {
                Some(item) => merge(&mut items, item),
                None => gone.push(DocumentRef { kind: *kind, id: id.clone() }),
            }
        }
        proto::ReadTreeChangesResponse { position, head: self.head, items: Some(items), gone }
    }
}

fn merge(into: &mut TreeItems, items: &TreeItems) {
    into.folders.extend(items.folders.clone());
    into.files.extend(items.files.clone());
    into.databases.extend(items.databases.clone());
    into.records.extend(items.records.clone());
    into.memories.extend(items.memories.clone());
}

#[tonic::async_trait]
impl TreeService for Content {
    async fn list_tree(
        &self,
        request: Request<proto::ListTreeRequest>,
    ) -> Result<Response<proto::ListTreeResponse>, Status> {
        let from: usize = request.into_inner().page_token.parse().unwrap_or(0);
        let mut state = self.state.lock().unwrap();
        state.lists += u32::from(from == 0);
        let mut items = TreeItems::default();
        let live: Vec<&TreeItems> = state.items.values().filter_map(|(_, item)| item.as_ref()).collect();
        live.iter().skip(from).take(2).for_each(|item| merge(&mut items, item));
        let next_page_token = if from + 2 < live.len() { (from + 2).to_string() } else { String::new() };
        Ok(Response::new(proto::ListTreeResponse {
            items: Some(items),
            next_page_token,
            position: state.head,
        }))
    }

    async fn read_tree_changes(
        &self,
        request: Request<proto::ReadTreeChangesRequest>,
    ) -> Result<Response<proto::ReadTreeChangesResponse>, Status> {
        let (told, answering) = {
            let mut state = self.state.lock().unwrap();
            state.changes += 1;
            (state.changes_after(request.into_inner().after), state.answering.clone())
        };
        if let Some(answering) = answering {
            answering.acquire().await.unwrap().forget();
        }
        Ok(Response::new(told))
    }

    async fn read_past_tree(
        &self,
        _: Request<proto::ReadPastTreeRequest>,
    ) -> Result<Response<proto::ReadPastTreeResponse>, Status> {
        let state = self.state.lock().unwrap();
        state.past.clone().map(Response::new).ok_or_else(|| Status::unimplemented("no past was set"))
    }

    async fn read_folders(
        &self,
        _: Request<proto::ReadFoldersRequest>,
    ) -> Result<Response<proto::ReadFoldersResponse>, Status> {
        Err(Status::unimplemented("a tree has its folders already"))
    }

    /// At most two at once.
    async fn read_texts(
        &self,
        request: Request<proto::ReadTextsRequest>,
    ) -> Result<Response<proto::ReadTextsResponse>, Status> {
        let refs = request.into_inner().refs;
        let state = self.state.lock().unwrap();
        let mut texts = Vec::new();
        for (place, reference) in refs.iter().enumerate().take(2) {
            let of_record = |items: &TreeItems, is_bare: bool| {
                let record = items.records.first()?.clone();
                if is_bare { record.front_matter_without_references } else { record.front_matter }
            };
            let item = |kind: Kind, id: &String| state.items.get(&(kind.into(), id.clone()))?.1.as_ref();
            let hash = match reference.text.as_ref().unwrap() {
                Named::BodyHash(hash) => Some(hash.clone()),
                Named::RecordId(id) => {
                    item(Kind::Record, id).and_then(|item| of_record(item, false)).map(|text| text.hash)
                }
                Named::RecordIdWithoutReferences(id) => {
                    item(Kind::Record, id).and_then(|item| of_record(item, true)).map(|text| text.hash)
                }
                Named::DatabaseId(id) => item(Kind::Database, id)
                    .and_then(|item| item.databases.first()?.schema.clone())
                    .map(|text| text.hash),
            };
            let found = hash.and_then(|hash| Some((state.texts.get(&hash)?.clone(), hash)));
            texts.extend(found.map(|(text, hash)| proto::Text {
                place: u32::try_from(place).unwrap(),
                content: text.into(),
                hash,
            }));
        }
        Ok(Response::new(proto::ReadTextsResponse { texts, read: u32::try_from(refs.len().min(2)).unwrap() }))
    }
}

#[tonic::async_trait]
impl KeyService for Content {
    async fn list_keys(&self, _: Request<ListKeysRequest>) -> Result<Response<ListKeysResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn issue_service_identity(
        &self,
        _: Request<IssueServiceIdentityRequest>,
    ) -> Result<Response<IssueServiceIdentityResponse>, Status> {
        let identity = self.issuer.sign(&self.issuer.service("retrieval")).unwrap();
        Ok(Response::new(IssueServiceIdentityResponse { identity, expires_at: None }))
    }
}

struct World {
    content: Content,
    trees: Trees,
}

impl World {
    async fn new(most_bytes: usize) -> Self {
        let content = Content { issuer: Arc::new(Issuer::new().unwrap()), state: Arc::default() };
        let routes = Routes::new(TreeServiceServer::new(content.clone()))
            .add_service(KeyServiceServer::new(content.clone()));
        let routes = routes.add_service(OutsideTreeServer::new(content.clone()));
        let names =
            ["cairn.content.v1.TreeService", "cairn.auth.v1.KeyService", "cairn.ingest.v1.TreeService"];
        let channel = ServiceChannel::local(double::compose(routes, &names).await.unwrap().routes);
        let identity =
            ServiceIdentitySource::new("retrieval", "secret".into(), channel.clone(), Arc::new(SystemClock));
        let owner = remote::Content::new(channel.clone(), identity.clone());
        let outside = remote::Outside::new(channel, identity, Arc::new(SystemClock));
        Self { content, trees: Trees::new(owner, outside, most_bytes) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.content.state.lock().unwrap()
    }

    /// How often everything was listed, and changes were asked for.
    fn asked(&self) -> (u32, u32) {
        let state = self.state();
        (state.lists, state.changes)
    }

    fn identity(&self, workspace: u128, scope: Scope) -> Identity {
        self.content.issuer.token(WorkspaceId(id(workspace)), &[Permission::Read], scope)
    }

    async fn view(&self) -> Arc<View> {
        self.trees.view(&self.identity(1, Scope::All)).await.unwrap()
    }

    async fn files(&self) -> Vec<String> {
        paths(&self.view().await.base, "/files")
    }
}

const PLENTY: usize = 1 << 30;

#[tokio::test]
async fn every_look_shows_what_was_written_before() {
    let world = World::new(PLENTY).await;
    world.state().folder(1, None, "a");
    (2..9).for_each(|number| world.state().file(number, Some(1), &format!("{number}.md"), "x"));
    assert_eq!(world.files().await.len(), 8);
    assert_eq!(world.asked(), (1, 1));
    let (first, second) = (world.view().await, world.view().await);
    assert!(Arc::ptr_eq(&first.base, &second.base) && Arc::ptr_eq(&first.lens, &second.lens));
    assert_eq!(world.asked(), (1, 3));

    world.state().file(2, Some(1), "2.md", "edited");
    let edited = world.view().await;
    assert!(Arc::ptr_eq(&first.lens, &edited.lens), "a text changes no shape");
    assert_eq!(
        (first.size(first.base.node(id(2)).unwrap()), edited.size(edited.base.node(id(2)).unwrap())),
        (1, 6)
    );
    world.state().tell(Kind::File, 3, None);
    world.state().folder(1, None, "b");
    world.state().part = 1;
    let files = world.files().await;
    assert_eq!((files.len(), files[1].as_str()), (7, "/files/b/2.md"));
    assert_eq!(world.asked().0, 1);
}

#[tokio::test]
async fn a_tree_that_cannot_follow_is_drawn_up_anew() {
    let world = World::new(PLENTY).await;
    world.state().folder(1, None, "a");
    world.state().file(2, Some(1), "f", "x");
    world.view().await;
    // The feed is another one.
    {
        let mut state = world.state();
        *state = State::default();
        state.file(5, None, "other", "x");
    }
    assert_eq!(world.files().await, ["/files/other"]);
    assert_eq!(world.asked().0, 1);
    // Too far behind.
    world.state().head += 1_000_000;
    world.state().file(6, None, "late", "x");
    assert_eq!(world.files().await, ["/files/late", "/files/other"]);
    assert_eq!(world.asked().0, 2);
    // What is told does not fit: the folder is in no answer.
    world.state().file(7, Some(70), "lost", "x");
    let lost = world.trees.view(&world.identity(1, Scope::All)).await.unwrap_err();
    assert!(lost.to_string().contains("do not fit together"), "{lost}");
    world.state().folder(70, None, "found");
    assert_eq!(world.files().await.len(), 4);
}

#[tokio::test]
async fn trees_that_were_not_looked_at_go_first() {
    let world = World::new(10_000).await;
    (1..30).for_each(|number| world.state().file(number, None, "f", "x"));
    let look = |workspace| world.identity(workspace, Scope::All);
    for workspace in [1, 2, 1, 1] {
        world.trees.view(&look(workspace)).await.unwrap();
    }
    assert_eq!(world.asked().0, 3, "one fits");
    world.trees.view(&look(1)).await.unwrap();
    assert_eq!(world.asked().0, 3);
}

#[tokio::test]
async fn many_who_look_at_once_ask_for_everything_once() {
    let world = Arc::new(World::new(PLENTY).await);
    (1..20).for_each(|number| world.state().file(number, None, &format!("{number}"), "x"));
    for round in 1..4_usize {
        let mut looking = JoinSet::new();
        for _ in 0..20 {
            let world = Arc::clone(&world);
            looking.spawn(async move { world.files().await.len() });
        }
        let seen = looking.join_all().await;
        assert_eq!(seen, [18 + round; 20]);
        world.state().file(100 + round as u128, None, &format!("late {round}"), "x");
    }
    assert_eq!(world.asked().0, 1);
}

#[tokio::test]
async fn who_waits_for_a_tree_that_another_draws_up_sees_what_was_written_meanwhile() {
    let world = Arc::new(World::new(PLENTY).await);
    let look = || {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.files().await })
    };
    world.state().file(1, None, "before", "x");
    let answering = Arc::new(Semaphore::new(0));
    world.state().answering = Some(Arc::clone(&answering));
    let first = look();
    while world.asked().1 == 0 {
        tokio::task::yield_now().await;
    }
    // Too late for the first, which was told already.
    world.state().answering = None;
    world.state().file(2, None, "meanwhile", "x");
    let second = look();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    answering.add_permits(1);
    assert_eq!(first.await.unwrap(), ["/files/before"]);
    assert_eq!(second.await.unwrap(), ["/files/before", "/files/meanwhile"]);
}

#[tokio::test]
async fn texts_are_those_that_the_view_shows() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "in");
        state.folder(2, None, "out");
        state.file(3, Some(2), "page.md", "the page");
        state.file(4, Some(1), "f.md", "before");
        state.table(10, 1, 3);
    }
    let whole = world.view().await;
    let scope = Scope::Folders([FolderId(id(1))].into());
    let narrow = world.trees.view(&world.identity(1, scope)).await.unwrap();
    world.state().file(4, Some(1), "f.md", "after");

    let held = |view: &View| -> Vec<BodyRef> {
        let nodes = [4, 11].map(|number| view.base.node(id(number)).unwrap());
        let schema = view.base.children(view.base.node(id(10)).unwrap())[0];
        let found = nodes.into_iter().chain([schema]);
        found.map(|node| view.held(node).unwrap()).collect()
    };
    let call = Call::within(Duration::from_secs(10));
    for (view, page) in [(&whole, "---\nall: 1\n---\n\nthe page"), (&narrow, "---\n---\n")] {
        let wanted = held(view);
        let fetched = world.trees.holder(view).fetch(&call, &wanted).await.unwrap();
        let expected = ["before", page, "the schema"];
        for ((wanted, (key, text)), expected) in wanted.iter().zip(&fetched).zip(expected) {
            assert_eq!(
                (key, &**text, wanted.size),
                (&wanted.key, expected.as_bytes(), expected.len() as u64)
            );
        }
    }

    // Rendered anew it is another text, which nobody may take for the one that the view shows.
    world.state().text("another schema");
    let before = held(&whole);
    {
        let mut state = world.state();
        let schema = state.text("another schema");
        let mut told = state.items[&(Kind::Database.into(), id(10).to_string())].1.clone().unwrap();
        told.databases[0].schema = Some(schema);
        state.tell(Kind::Database, 10, Some(told));
    }
    let fetched = world.trees.holder(&whole).fetch(&call, &before).await.unwrap();
    assert_eq!((fetched.len(), world.asked().0), (2, 1));
    let told = world.view().await;
    assert_ne!(held(&told)[2].key, before[2].key);
    assert_eq!(world.asked().0, 1, "the change was told");

    // Nobody tells of it when another version of content renders otherwise.
    {
        let mut state = world.state();
        let schema = state.text("a schema in other words");
        let database = state.items.get_mut(&(Kind::Database.into(), id(10).to_string())).unwrap();
        database.1.as_mut().unwrap().databases[0].schema = Some(schema);
    }
    assert_eq!(world.trees.holder(&told).fetch(&call, &held(&told)).await.unwrap().len(), 2);
    let anew = world.view().await;
    assert_eq!(world.trees.holder(&anew).fetch(&call, &held(&anew)).await.unwrap().len(), 3);
    assert_eq!(world.asked().0, 2);
}

//! The owner of documents from outside beside content, and what trees show of it.

use cairn_proto::ingest::v1 as ingest;
use cairn_proto::ingest::v1::tree_service_server::TreeService as OutsideTree;

use super::*;

#[tonic::async_trait]
impl OutsideTree for Content {
    /// One at a time.
    async fn list_tree(
        &self,
        request: Request<ingest::ListTreeRequest>,
    ) -> Result<Response<ingest::ListTreeResponse>, Status> {
        let outside = &mut self.state.lock().unwrap().outside;
        outside.answer()?;
        let from: usize = request.into_inner().page_token.parse().unwrap_or(0);
        let live: Vec<_> = outside.documents.values().filter_map(|(_, document)| document.clone()).collect();
        let next_page_token = if from + 1 < live.len() { (from + 1).to_string() } else { String::new() };
        let documents = live.into_iter().skip(from).take(1).collect();
        Ok(Response::new(ingest::ListTreeResponse { documents, next_page_token, position: outside.head }))
    }

    async fn read_tree_changes(
        &self,
        request: Request<ingest::ReadTreeChangesRequest>,
    ) -> Result<Response<ingest::ReadTreeChangesResponse>, Status> {
        let outside = &mut self.state.lock().unwrap().outside;
        outside.answer()?;
        let after = request.into_inner().after;
        let mut answer = ingest::ReadTreeChangesResponse {
            position: outside.head,
            head: outside.head,
            ..ingest::ReadTreeChangesResponse::default()
        };
        for (id, (_, document)) in outside.documents.iter().filter(|(_, (at, _))| *at > after) {
            match document {
                Some(document) => answer.documents.push(document.clone()),
                None => answer.gone.push(DocumentRef { kind: Kind::Ingested.into(), id: id.clone() }),
            }
        }
        Ok(Response::new(answer))
    }

    async fn read_texts(
        &self,
        request: Request<ingest::ReadTextsRequest>,
    ) -> Result<Response<ingest::ReadTextsResponse>, Status> {
        let hashes = request.into_inner().content_hashes;
        let mut state = self.state.lock().unwrap();
        state.outside.answer()?;
        let hash = hashes.first().unwrap();
        let text = state.texts.get(hash).map(|text| ingest::Text { place: 0, content: text.clone().into() });
        Ok(Response::new(ingest::ReadTextsResponse { texts: text.into_iter().collect(), read: 1 }))
    }
}

impl Outside {
    fn answer(&mut self) -> Result<(), Status> {
        self.asked += 1;
        if self.is_down { Err(Status::unavailable("it is down")) } else { Ok(()) }
    }
}

impl State {
    fn outside(&mut self, number: u128, path: &str, text: Option<&str>) {
        let hash = text.map(|text| self.text(text).hash);
        self.outside.head += 1;
        let kind = if path.starts_with("/sources/ingested/") { Kind::Ingested } else { Kind::SourceDocument };
        let document = TreeDocument {
            r#ref: Some(DocumentRef { kind: kind.into(), id: id(number).to_string() }),
            path: path.to_owned(),
            title: format!("document {number}"),
            size_bytes: text.map_or(0, |text| text.len() as u64),
            content_hash: hash.unwrap_or_default(),
            catalog_only: text.is_none(),
            url: Some(format!("https://outside.example/{number}")),
            source_id: (kind == Kind::SourceDocument).then(|| id(900).to_string()),
            provider: (kind == Kind::SourceDocument).then(|| "notion".to_owned()),
            ..TreeDocument::default()
        };
        let told = (self.outside.head, Some(document));
        self.outside.documents.insert(id(number).to_string(), told);
    }

    fn forget_outside(&mut self, number: u128) {
        self.outside.head += 1;
        let told = (self.outside.head, None);
        self.outside.documents.insert(id(number).to_string(), told);
    }
}

fn sources(view: &View) -> Vec<String> {
    paths(&view.base, "/sources")
}

#[tokio::test]
async fn what_comes_from_outside_stands_in_folders_of_its_own() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.file(1, None, "f.md", "x");
        state.outside(50, "/sources/ingested/Note.md", Some("the note"));
        state.outside(51, "/sources/Wiki/docs/deep/a.md", Some("deep"));
        state.outside(52, "/sources/Wiki/docs/b.md", None);
        // An object store may have both.
        state.outside(53, "/sources/Wiki/docs/b.md/c", Some("below"));
    }
    let view = world.view().await;
    let seen = sources(&view);
    assert_eq!(seen.iter().filter(|path| !view.is_folder(node_at(&view, path))).count(), 5, "{seen:?}");
    for (number, path) in [(50, "/sources/ingested/Note.md"), (51, "/sources/Wiki/docs/deep/a.md")] {
        assert_eq!(view.base.path(view.base.node(id(number)).unwrap()), path);
    }
    let (entry, below) = (view.base.node(id(52)).unwrap(), view.base.node(id(53)).unwrap());
    let folder = view.parent(below).unwrap();
    assert_ne!(view.base.name(entry), view.base.name(folder), "siblings have different names");

    let cited = view.document(view.base.node(id(50)).unwrap()).unwrap();
    assert_eq!((cited.title.as_str(), cited.path.as_str()), ("document 50", "/sources/ingested/Note.md"));
    assert_eq!((cited.url.unwrap().as_str(), cited.source_id), ("https://outside.example/50", None));
    let deep = view.document(view.base.node(id(51)).unwrap()).unwrap();
    assert_eq!((deep.source_name.as_deref(), deep.provider.as_deref()), (Some("Wiki"), Some("notion")));
    assert_eq!((view.size(entry), view.document(entry)), (0, None), "nothing of it is here");

    let call = Call::within(Duration::from_secs(10));
    let wanted = [1, 50, 51].map(|number| view.held(view.base.node(id(number)).unwrap()).unwrap());
    let mut texts = world.trees.holder(&view).fetch(&call, &wanted).await.unwrap();
    texts.sort_by_key(|(_, text)| text.clone());
    assert_eq!(
        texts.iter().map(|(_, text)| text.as_ref()).collect::<Vec<_>>(),
        [&b"deep"[..], b"the note", b"x"]
    );

    // What goes takes its folders along, and what comes brings them.
    world.state().forget_outside(51);
    world.state().forget_outside(50);
    world.state().outside(52, "/sources/Wiki/b.md", Some("moved"));
    world.state().forget_outside(53);
    let after = world.view().await;
    assert_eq!(sources(&after), ["/sources/README.md", "/sources/Wiki", "/sources/Wiki/b.md"]);
    assert_eq!(world.asked().0, 1, "nothing was listed anew");
}

fn node_at(view: &View, path: &str) -> Node {
    let mut node = Fixed::Root.node();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        node = *view.base.children(node).iter().find(|child| view.base.name(**child) == name).unwrap();
    }
    node
}

#[tokio::test]
async fn a_caller_of_some_folders_sees_nothing_from_outside_and_asks_for_nothing() {
    let world = World::new(PLENTY).await;
    world.state().folder(1, None, "a");
    world.state().outside(50, "/sources/ingested/Note.md", Some("the note"));
    let whole = world.view().await;
    let readme = |view: &View| {
        let text = view.text(Fixed::SourcesReadme.node()).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    };
    assert!(readme(&whole).contains("- ingested/ (1 document): sent by programs"), "{}", readme(&whole));
    let asked = world.state().outside.asked;
    let scope = Scope::Folders([FolderId(id(1))].into());
    let narrow = world.trees.view(&world.identity(1, scope)).await.unwrap();
    assert_eq!(narrow.children(Fixed::Sources.node()), [Fixed::SourcesReadme.node()]);
    assert!(!readme(&narrow).contains("ingested/"), "{}", readme(&narrow));
    assert_eq!(world.state().outside.asked, asked);
}

#[tokio::test]
async fn there_is_a_tree_without_the_owner_of_documents_from_outside() {
    let world = World::new(PLENTY).await;
    world.state().file(1, None, "f.md", "x");
    world.state().outside(50, "/sources/ingested/Note.md", Some("the note"));
    world.state().outside.is_down = true;
    let view = world.view().await;
    assert_eq!(paths(&view.base, "/files"), ["/files/f.md"]);
    assert_eq!(sources(&view), ["/sources/README.md"]);
    let again = world.view().await;
    assert!(Arc::ptr_eq(&view.base, &again.base), "it is not drawn up anew each time");
    assert!(world.state().outside.asked <= 2, "it is left alone");
    world.state().file(2, None, "g.md", "x");
    assert_eq!(paths(&world.view().await.base, "/files").len(), 2);
}

use cairn_chassis::feed::Kind;

use super::*;
use crate::documents::DocumentRef;
use crate::model::Document;

fn file_ref(id: impl ToString) -> DocumentRef {
    DocumentRef { kind: Some(Kind::File), id: id.to_string() }
}

#[tokio::test]
async fn live_documents_are_read_in_order() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let one = bench.file("1", Some(folder.id)).await;
        let two = bench.file("2", None).await;
        let gone = bench.file("gone", None).await;
        bench.files.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        let other_kind = DocumentRef { kind: Some(Kind::Memory), id: one.id.to_string() };
        let unknown = DocumentRef { kind: None, id: one.id.to_string() };
        let refs = [
            file_ref(two.id),
            file_ref(gone.id),
            other_kind,
            file_ref("odd"),
            unknown,
            file_ref(one.id),
            file_ref(two.id),
        ];
        let workspace = bench.caller.workspace.to_string();
        let read = bench.documents.read(&workspace, &refs).await.unwrap();
        assert_eq!(read.read, 7);
        let expected = [(two.into(), "content of 2".to_owned()), (one.into(), "content of 1".to_owned())];
        assert_eq!(read.documents, expected, "{}", bench.engine());

        assert!(
            bench.documents.read(&caller(2).workspace.to_string(), &refs).await.unwrap().documents.is_empty()
        );
        assert_eq!(violations(bench.documents.read("x", &[]).await), pairs(&[("workspaceId", "invalid")]));
        let many = vec![file_ref("x"); 101];
        assert_eq!(
            violations(bench.documents.read(&workspace, &many).await),
            pairs(&[("refs", "out_of_range")])
        );
    }
}

#[tokio::test]
async fn a_large_answer_stops_and_says_where() {
    for bench in benches().await {
        let mut refs = Vec::new();
        for number in 0..5 {
            let content = number.to_string().repeat(5_000_000);
            let asked = files::FileDraft { content, ..draft("big", None) };
            refs.push(file_ref(bench.files.create(&bench.caller, asked).await.unwrap().item.id));
        }
        let workspace = bench.caller.workspace.to_string();
        let read = bench.documents.read(&workspace, &refs).await.unwrap();
        assert_eq!((read.documents.len(), read.read), (4, 4), "{}", bench.engine());
        let rest = bench.documents.read(&workspace, &refs[read.read..]).await.unwrap();
        assert_eq!((rest.documents.len(), rest.read), (1, 1));
    }
}

#[tokio::test]
async fn only_live_documents_in_scope_are_confirmed() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let inside = bench.file("inside", Some(folder.id)).await;
        let outside = bench.file("outside", None).await;
        let gone = bench.file("gone", Some(folder.id)).await;
        bench.files.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        let renamed = folders::FolderPatch { name: Some("F".into()), ..Default::default() };
        bench.folders.update(&bench.caller, &folder.id.to_string(), renamed).await.unwrap();
        let refs = [file_ref(outside.id), file_ref(inside.id), file_ref(gone.id), file_ref("odd")];

        let paths = |found: Vec<Document>| found.into_iter().map(|one| one.path).collect::<Vec<_>>();
        let all = bench.documents.confirm(&bench.caller, &refs).await.unwrap();
        assert_eq!(paths(all), ["/outside", "/F/inside"], "{}", bench.engine());
        let scoped = bench.documents.confirm(&bench.scoped(&[folder.id]), &refs).await.unwrap();
        assert_eq!(paths(scoped), ["/F/inside"]);
        assert!(bench.documents.confirm(&caller(2), &refs).await.unwrap().is_empty());
        let many = vec![file_ref("x"); 1_001];
        let found = violations(bench.documents.confirm(&bench.caller, &many).await);
        assert_eq!(found, pairs(&[("refs", "out_of_range")]));
    }
}

use std::collections::HashMap;

use cairn_chassis::doctor::index::Indexed;

use super::*;
use crate::doctor::index::examine_open;
use crate::files::FilePatch;

/// The contents of an index that has followed the feed to its end.
async fn followed(bench: &Bench, files: &[&File]) -> Indexed {
    let workspace = bench.caller.workspace;
    let position = bench.context.feed.head(workspace).await.unwrap();
    let documents = files.iter().map(|file| ((workspace, file.id.0), file.content_hash.clone()));
    Indexed { positions: HashMap::from([(workspace, position)]), documents: documents.collect() }
}

async fn wrong(bench: &Bench, indexed: &Indexed) -> Vec<String> {
    let found = examine_open(&bench.context.db, indexed, &|_| {}).await.unwrap();
    found.into_iter().map(|finding| finding.subject).collect()
}

#[tokio::test]
async fn an_index_is_compared_where_it_has_followed_the_feed_to() {
    for bench in benches().await {
        let (first, gone) = (bench.file("1", None).await, bench.file("2", None).await);
        bench.files.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        let blank = bench.file("3", None).await;
        let patch = FilePatch { content: Some(" \n\u{feff}\n".to_owned()), ..FilePatch::default() };
        bench.files.update(&bench.caller, &blank.id.to_string(), patch).await.unwrap();

        let mut indexed = followed(&bench, &[&first]).await;
        assert_eq!(wrong(&bench, &indexed).await, [] as [&str; 0], "{}", bench.engine());

        // A later write is not missing yet.
        let later = bench.file("4", None).await;
        let patch = FilePatch { content: Some("of another kind".to_owned()), ..FilePatch::default() };
        bench.files.update(&bench.caller, &first.id.to_string(), patch).await.unwrap();
        assert_eq!(wrong(&bench, &indexed).await, [] as [&str; 0]);

        indexed = followed(&bench, &[&first, &gone]).await;
        let mut found = wrong(&bench, &indexed).await;
        found.sort();
        let mut expected = [
            (first.id, "the index has another content of it"),
            (gone.id, "the index holds it, and there is no such document"),
            (later.id, "it is not in the index"),
        ]
        .map(|(id, why)| format!("workspace {} document {id}: {why}", bench.caller.workspace));
        expected.sort();
        assert_eq!(found, expected, "{}", bench.engine());

        // As if the end of the feed were lost.
        let mut beyond = followed(&bench, &[]).await;
        beyond.positions.values_mut().for_each(|position| *position += 1);
        let found = wrong(&bench, &beyond).await;
        assert!(found.iter().any(|subject| subject.contains("is lost")), "{found:?}");
    }
}

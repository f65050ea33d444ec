//! What the plan has room for.

use super::*;

#[tokio::test]
async fn documents_and_bytes_have_limits() {
    for bench in benches().await {
        let small = Caller::of_test(workspace(1), Scope::All, "small");
        let take = |key: &'static str, content: String| {
            let (ingests, small) = (bench.ingests.clone(), small.clone());
            async move { ingests.text(&small, text(key, key, &content)).await }
        };
        take("a", "x".repeat(600_000)).await.unwrap();
        let refused = take("b", "y".repeat(600_000)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::LimitExceeded(said) if said[0].path == "storageBytes"),
            "{refused}"
        );
        let kept = take("b", "x".repeat(600_000)).await.unwrap();
        let refused = take("c", "z".to_owned()).await.unwrap_err();
        assert!(matches!(&refused, Error::LimitExceeded(said) if said[0].path == "documents"), "{refused}");
        assert!(take("b", "x".repeat(600_000)).await.unwrap().is_replay, "what is there needs no room");
        bench.ingests.delete(&small, &kept.document.id.to_string()).await.unwrap();
        take("c", "z".to_owned()).await.unwrap();
        let account = bench.accounts.get(&small).await.unwrap();
        assert_eq!((account.documents, account.documents_limit, account.bytes), (2, Some(2), 600_001));
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn what_another_service_keeps_takes_room_too() {
    for bench in benches().await {
        let small = Caller::of_test(workspace(1), Scope::All, "small");
        let take =
            async |key: &'static str| bench.ingests.text(&small, text(key, key, &"x".repeat(600_000))).await;
        bench.context.storage.set_cached(workspace(1), 600_000);
        let refused = take("a").await.unwrap_err();
        assert!(
            matches!(&refused, Error::LimitExceeded(said) if said[0].message.starts_with("600000 of 1048576")),
            "{}: {refused}",
            bench.test.engine
        );
        bench.context.storage.set_cached(workspace(1), 1_000);
        take("a").await.unwrap();
    }
}

//! Many at once.

use super::*;

const AT_ONCE: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_posts_with_one_key_one_is_new() {
    for bench in benches().await {
        let mut posts = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let (ingests, caller) = (bench.ingests.clone(), bench.caller.clone());
            posts.spawn(async move { ingests.text(&caller, text("k", "A", "same")).await.unwrap() });
        }
        let taken = posts.join_all().await;
        assert_eq!(taken.iter().filter(|taken| !taken.is_replay).count(), 1, "{}", bench.test.engine);
        let id = taken[0].document.id;
        assert!(taken.iter().all(|taken| taken.document.id == id));
        assert_eq!(bench.told(0).await.len(), 1);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_contents_with_one_key_one_is_kept() {
    for bench in benches().await {
        let mut posts = tokio::task::JoinSet::new();
        for number in 0..AT_ONCE {
            let (ingests, caller) = (bench.ingests.clone(), bench.caller.clone());
            posts
                .spawn(async move { ingests.text(&caller, text("k", "A", &format!("text {number}"))).await });
        }
        let answers = posts.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{}", bench.test.engine);
        assert!(answers.iter().all(|answer| matches!(answer, Ok(_) | Err(Error::KeyTaken { .. }))));
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_texts_come_and_go_at_once() {
    for bench in benches().await {
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (ingests, caller) = (bench.ingests.clone(), bench.caller.clone());
            callers.spawn(async move {
                for round in 0..5 {
                    let sent = text(&format!("{number}-{round}"), "Same title", "the same text");
                    let taken = ingests.text(&caller, sent).await.unwrap();
                    ingests.delete(&caller, &taken.document.id.to_string()).await.unwrap();
                }
            });
        }
        callers.join_all().await;
        let account = bench.accounts.get(&bench.caller).await.unwrap();
        assert_eq!((account.documents, account.bytes), (0, 0), "{}", bench.test.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

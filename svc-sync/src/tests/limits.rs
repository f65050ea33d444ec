//! Plans and rights.

use super::*;

#[tokio::test]
async fn a_plan_without_room_leaves_the_run_ready() {
    for bench in benches().await {
        *bench.rights.plan.lock().unwrap() = "small".into();
        let small = Caller { plan: Some("small".into()), ..bench.caller.clone() };
        let three = bench.syncs.preview(&small, draft(&[("a", "1"), ("b", "2"), ("c", "3")])).await.unwrap();
        let id = three.run.id.to_string();
        assert_eq!(reason(bench.syncs.start(&small, &id).await), Reason::LimitExceeded, "{}", bench.engine);
        assert_eq!(bench.get(&three).await.run.state, RunStatus::Ready);
        let large = "x".repeat(1024 * 1024 + 1);
        let heavy = bench.syncs.preview(&small, draft(&[("a", &large)])).await.unwrap();
        let refused = bench.syncs.start(&small, &heavy.run.id.to_string()).await;
        assert!(matches!(refused, Err(Error::LimitExceeded(of)) if of[0].path == "storageBytes"));
        let many: Vec<_> = (0..1_001).map(|number| number.to_string()).collect();
        let documents: Vec<_> = many.iter().map(|path| (path.as_str(), "")).collect();
        let many = bench.syncs.preview(&small, draft(&documents)).await.unwrap();
        let free = Caller { plan: Some("free".into()), ..bench.caller.clone() };
        let refused = bench.syncs.start(&free, &many.run.id.to_string()).await;
        assert!(matches!(refused, Err(Error::LimitExceeded(of)) if of[0].path == "documents"));
        let two = bench.syncs.preview(&small, draft(&[("a", "1"), ("b", "2")])).await.unwrap();
        bench.syncs.start(&small, &two.run.id.to_string()).await.unwrap();
        bench.work().await;
        assert_eq!(bench.get(&two).await.run.state, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_run_ends_when_whoever_asked_may_no_longer_ask() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        *bench.rights.held.lock().unwrap() = [Permission::Read].into_iter().collect();
        bench.work().await;
        let failed = bench.get(&previewed).await;
        assert_eq!(failed.run.state, RunStatus::Failed, "{}", bench.engine);
        assert!(failed.run.error.unwrap().contains("'write'"));
        assert_eq!(bench.tree().await, tree(&[]));
        assert_eq!(reason(bench.start(&previewed).await), Reason::Forbidden);
        *bench.rights.held.lock().unwrap() = [Permission::Read, Permission::Write].into_iter().collect();
        bench.start(&previewed).await.unwrap();
        bench.work().await;
        let done = bench.sync(pruning(&[])).await;
        assert_eq!(counted(done.run.counters), [0, 0, 0, 0, 1], "pruning what it wrote takes write alone");
        let refused = bench.syncs.roll_back(&bench.caller, &done.run.id.to_string()).await;
        assert_eq!(reason(refused), Reason::Forbidden);
    }
}

#[tokio::test]
async fn a_workspace_that_fills_up_meanwhile_fails_the_run_and_room_lets_it_go_on() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1"), ("b", "2")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        bench.create("c", "3", None).await;
        *bench.rights.plan.lock().unwrap() = "small".into();
        bench.work().await;
        let failed = bench.get(&previewed).await;
        assert_eq!(failed.run.state, RunStatus::Failed, "{}", bench.engine);
        *bench.rights.plan.lock().unwrap() = "selfhosted".into();
        bench.start(&previewed).await.unwrap();
        bench.work().await;
        let done = bench.get(&previewed).await;
        assert_eq!((done.run.state, counted(done.run.counters)), (RunStatus::Completed, [2, 0, 0, 0, 0]));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

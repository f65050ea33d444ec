//! Checks on the HTML of the sync pages.

use cairn_proto::sync::v1::RunStatus;

use crate::pages::checks::{cookie, faults, filled, get, send};
use crate::testing::bench;
use crate::testing::syncs::run_id;

fn states() -> impl Iterator<Item = RunStatus> {
    (1..=8).map(|number| RunStatus::try_from(number).unwrap())
}

#[tokio::test]
async fn every_state_has_its_words_and_its_buttons() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for state in states() {
        for query in [
            "",
            "?show=created",
            "?show=conflict&from=10",
            "?show=prune",
            "?show=warnings",
            "?show=odd&from=odd",
        ] {
            let path = filled(&format!("/w/{{w}}/sync/{}{query}", run_id(state)));
            let page = get(&bench, &path, &cookie).await;
            assert_eq!(
                (page.status.as_u16(), faults(&page.text)),
                (200, Vec::new()),
                "{path}: {}",
                page.text
            );
            let busy = matches!(state, RunStatus::Queued | RunStatus::Running);
            assert_eq!(page.text.contains("data-poll"), busy, "{state:?}");
            assert_eq!(page.text.contains("<progress"), state == RunStatus::Running, "{state:?}");
            let resumes = matches!(state, RunStatus::Failed | RunStatus::Cancelled);
            let reverts = matches!(state, RunStatus::Completed | RunStatus::CompletedWithWarnings);
            for (name, expected) in [
                ("Start", state == RunStatus::Ready),
                ("Resume", resumes),
                ("Roll back", reverts),
                ("Delete", !busy),
            ] {
                let found = page.text.contains(&format!(">{name}</button>"));
                assert_eq!(found, expected, "{name} {state:?}: {}", page.text);
            }
        }
    }
    let first = get(&bench, &filled("/w/{w}/sync/{u}"), &cookie).await.text;
    assert!(first.contains("1–50 of 60") && first.contains("?from=50"), "{first}");
    let second = get(&bench, &filled("/w/{w}/sync/{u}?from=50"), &cookie).await.text;
    assert!(second.contains("51–60 of 60") && !second.contains(">Next<"), "{second}");
}

#[tokio::test]
async fn runs_are_listed_by_the_name_of_their_sync() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let list = get(&bench, &filled("/w/{w}/sync"), &cookie).await.text;
    assert!(list.contains("1–8 of 70") && list.contains("/sync?name=%3Cscript%3E"), "{list}");
    let none = get(&bench, &filled("/w/{w}/sync?name=nothing"), &cookie).await.text;
    assert!(none.contains("There are no such runs.") && faults(&none).is_empty(), "{none}");
}

#[tokio::test]
async fn what_a_state_or_the_plan_does_not_allow_is_told_on_the_runs_page() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (state, verb, status, told) in [
        (RunStatus::Ready, "start", 303, ""),
        (RunStatus::Failed, "start", 403, "Files: 1 of 1 are used, and this would add 1."),
        (RunStatus::Completed, "start", 409, "Its state does not allow it."),
        (RunStatus::Queued, "cancel", 303, ""),
        (RunStatus::Failed, "cancel", 409, "Its state does not allow it."),
        (RunStatus::Completed, "rollback", 303, ""),
        (RunStatus::RolledBack, "rollback", 409, "Its state does not allow it."),
        (RunStatus::Completed, "delete", 303, ""),
        (RunStatus::Running, "delete", 409, "Its state does not allow it."),
    ] {
        let path = format!("/w/{{w}}/sync/{}/{verb}", run_id(state));
        let answer = send(&bench, &path, "", &cookie).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        if status != 303 {
            assert!(answer.text.contains(told), "{told}: {}", answer.text);
            assert_eq!(faults(&answer.text), Vec::<String>::new(), "{path}: {}", answer.text);
        }
    }
}

//! Checks on the HTML of the import pages.

use axum::body::Body;
use cairn_proto::sync::v1::RunStatus;
use http::Request;

use crate::pages::checks::{cookie, faults, filled, get, send};
use crate::testing::console::HOSTILE;
use crate::testing::syncs::run_id;
use crate::testing::{Answer, Bench, bench};

fn states() -> impl Iterator<Item = RunStatus> {
    (1..=8).map(|number| RunStatus::try_from(number).unwrap())
}

/// Which of these buttons and links a page has.
fn has(page: &str, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| page.contains(&format!(">{name}</button>"))).collect()
}

async fn upload(bench: &Bench, cookie: &str, name: &str) -> Answer {
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"provider\"\r\n\r\nnotion_zip\r\n\
         --b\r\nContent-Disposition: form-data; name=\"folderId\"\r\n\r\n\r\n\
         --b\r\nContent-Disposition: form-data; name=\"conflictPolicy\"\r\n\r\nduplicate\r\n\
         --b\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"{name}\"\r\n\r\nPK\r\n--b--\r\n"
    );
    let request = Request::post(filled("/w/{w}/import"))
        .header("cookie", cookie)
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "multipart/form-data; boundary=b");
    bench.send_as_is(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn every_state_has_its_words_and_its_buttons() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for state in states() {
        for query in
            ["", "?part=warnings", "?part=links&from=50", "?part=ignored", "?action=created", "?part=odd"]
        {
            let page =
                get(&bench, &filled(&format!("/w/{{w}}/import/{}{query}", run_id(state))), &cookie).await;
            assert_eq!(
                (page.status.as_u16(), faults(&page.text)),
                (200, Vec::new()),
                "{state:?}{query}: {}",
                page.text
            );
            assert!(!page.text.contains("<script>"), "{}", page.text);
            let busy = matches!(state, RunStatus::Queued | RunStatus::Running);
            assert_eq!(page.text.contains("data-poll"), busy, "{state:?}");
            let over = matches!(
                state,
                RunStatus::Completed
                    | RunStatus::CompletedWithWarnings
                    | RunStatus::Failed
                    | RunStatus::Cancelled
            );
            let resumes = matches!(state, RunStatus::Failed | RunStatus::Cancelled);
            let expected = [state == RunStatus::Ready, resumes, over];
            assert_eq!(
                has(&page.text, &["Start", "Resume", "Roll back"]),
                expected,
                "{state:?}: {}",
                page.text
            );
            let cancels = page.text.contains("/cancel\"");
            assert_eq!(cancels, busy || state == RunStatus::Ready, "{state:?}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_list_that_is_not_there_leads_to_the_first() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let path = filled("/w/{w}/import/{u}");
    for query in ["?action=odd", "?from=odd"] {
        let moved = get(&bench, &format!("{path}{query}"), &cookie).await;
        assert_eq!(
            (moved.status.as_u16(), moved.headers["location"].to_str().unwrap()),
            (303, path.as_str())
        );
    }
}

#[tokio::test]
async fn archives_are_taken_or_refused_in_words() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let taken = upload(&bench, &cookie, "fine.zip").await;
    let to = filled("/w/{w}/import/{u}");
    assert_eq!(
        (taken.status.as_u16(), taken.headers["location"].to_str().unwrap()),
        (303, to.as_str()),
        "{}",
        taken.text
    );
    for (name, status, told) in
        [("odd.zip", 400, "Archive is no ZIP file."), ("large.zip", 413, "It is too large.")]
    {
        let refused = upload(&bench, &cookie, name).await;
        assert_eq!(
            (refused.status.as_u16(), faults(&refused.text)),
            (status, Vec::new()),
            "{}",
            refused.text
        );
        assert!(refused.text.contains(told), "{told}: {}", refused.text);
        for kept in ["value=\"notion_zip\" selected", "value=\"duplicate\" selected"] {
            assert!(refused.text.contains(kept), "{kept}: {}", refused.text);
        }
    }
    let no_form = send(&bench, "/w/{w}/import", "provider=notion_zip", &cookie).await;
    assert_eq!((no_form.status.as_u16(), faults(&no_form.text)), (400, Vec::new()), "{}", no_form.text);
}

#[tokio::test]
async fn what_a_state_does_not_allow_is_told_on_the_runs_page() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (state, verb, status) in [
        (RunStatus::Ready, "start", 303),
        (RunStatus::Completed, "start", 409),
        (RunStatus::Running, "cancel", 303),
        (RunStatus::Completed, "cancel", 409),
        (RunStatus::Completed, "rollback", 303),
        (RunStatus::Running, "rollback", 409),
    ] {
        let path = format!("/w/{{w}}/import/{}/{verb}", run_id(state));
        let answer = send(&bench, &path, "", &cookie).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        if status == 409 {
            assert!(answer.text.contains("Its state does not allow it."), "{}", answer.text);
            assert_eq!(faults(&answer.text), Vec::<String>::new(), "{path}: {}", answer.text);
        }
    }
    let list = get(&bench, &filled("/w/{w}/import"), &cookie).await;
    assert!(!list.text.contains(HOSTILE) && list.text.contains("1–8 of 70"), "{}", list.text);
}

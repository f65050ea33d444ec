//! Checks on the HTML of the question log's pages, over a log whose texts are hostile.

use cairn_chassis::identity::Role;
use cairn_proto::retrieval::v1::question_service_server::QuestionServiceServer;
use cairn_proto::retrieval::v1::search_service_server::SearchServiceServer;
use tonic::service::Routes;

use crate::pages::checks::{cookie, faults, get, send};
use crate::testing::questions::{ANSWERED, ASKER, Questions, Searches, UNANSWERED};
use crate::testing::{Bench, FILE, WORKSPACE, bench, bench_of_questions};

async fn log(role: Role) -> (Bench, String) {
    let retrieval = Routes::new(QuestionServiceServer::new(Questions));
    let bench = bench_of_questions(role, retrieval.add_service(SearchServiceServer::new(Searches))).await;
    let cookie = cookie(&bench).await;
    (bench, cookie)
}

/// A page without faults.
async fn page(bench: &Bench, cookie: &str, below: &str) -> String {
    let path = format!("/w/{WORKSPACE}{below}");
    let page = get(bench, &path, cookie).await;
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
    assert!(!page.text.contains("<script>alert"), "{path}: {}", page.text);
    page.text
}

#[tokio::test]
async fn a_log_that_is_off_says_so_and_who_may_switch_it_on() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let text = page(&bench, &cookie, "/questions").await;
    assert!(text.contains("The question log is off.") && text.contains("owner"), "{text}");
    let settings = page(&bench, &cookie, "/settings").await;
    assert!(settings.contains("Question log") && settings.contains("value=\"off\" selected"), "{settings}");
    for below in ["", "/search", "/tokens/0199c0de-0000-7000-8000-0000000000c1"] {
        let text = page(&bench, &cookie, below).await;
        assert!(!text.contains("question log is on") && !text.contains("/questions?who="), "{below}: {text}");
    }
}

#[tokio::test]
async fn every_member_is_told_that_it_is_on() {
    let (bench, cookie) = log(Role::Viewer).await;
    for below in ["/search", "/questions"] {
        let text = page(&bench, &cookie, below).await;
        assert!(text.contains("question log is on") && text.contains("30 days"), "{below}: {text}");
    }
    let token = page(&bench, &cookie, "/tokens/0199c0de-0000-7000-8000-0000000000c1").await;
    assert!(token.contains("/questions?who=0199c0de-0000-7000-8000-0000000000c1"), "{token}");
}

#[tokio::test]
async fn the_list_leads_to_each_question_and_is_its_address() {
    let (bench, cookie) = log(Role::Owner).await;
    let text = page(&bench, &cookie, "/questions").await;
    for part in [ANSWERED, UNANSWERED, "Nothing found", "0.930", "6.2 ms", "rel=\"next\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("/questions?who={ASKER}")), "{text}");
    let below = format!("/questions?unanswered=yes&since=2026-01-31&text=how&who={ASKER}");
    let text = page(&bench, &cookie, &below).await;
    assert!(text.contains(UNANSWERED) && !text.contains(ANSWERED), "{text}");
    for part in ["value=\"2026-01-31\"", "value=\"how\"", "value=\"yes\" selected", "from=next"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let wrong = get(&bench, &format!("/w/{WORKSPACE}/questions?since=yesterday"), &cookie).await;
    assert_eq!((wrong.status.as_u16(), faults(&wrong.text)), (400, Vec::new()), "{}", wrong.text);
    assert!(wrong.text.contains("Asked since must be a time"), "{}", wrong.text);
}

#[tokio::test]
async fn a_replay_has_the_passages_in_their_order() {
    let (bench, cookie) = log(Role::Owner).await;
    let text = page(&bench, &cookie, &format!("/questions/{ANSWERED}")).await;
    for part in [
        "<code>limit</code>",
        "<code>tags</code>",
        "lex: ",
        "hash=blake3:0001&amp;ask=",
        "version 1",
        "Delete",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("The text of then is not kept any more") < at("Its text cannot be shown"), "{text}");
    assert!(!text.contains("Write the file"), "{text}");
    let text = page(&bench, &cookie, &format!("/questions/{UNANSWERED}")).await;
    let write = format!("/questions/write?q={UNANSWERED}\"");
    assert!(text.contains("Nothing was found.") && text.contains(&write), "{text}");
    let viewer = log(Role::Viewer).await;
    let text = page(&viewer.0, &viewer.1, &format!("/questions/{ANSWERED}")).await;
    assert!(!text.contains("Delete"), "{text}");
    for odd in ["not-an-id", "0199c0de-0000-7000-8000-00000000ffff"] {
        let page = get(&bench, &format!("/w/{WORKSPACE}/questions/{odd}"), &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (404, Vec::new()), "{odd}: {}", page.text);
    }
}

#[tokio::test]
async fn a_question_is_deleted_from_its_page() {
    let (bench, cookie) = log(Role::Owner).await;
    let gone = send(&bench, &format!("/w/{{w}}/questions/{ANSWERED}/delete"), "", &cookie).await;
    assert_eq!(gone.status, 303, "{}", gone.text);
    assert_eq!(gone.headers["location"].to_str().unwrap(), format!("/w/{WORKSPACE}/questions"));
    let none =
        send(&bench, "/w/{w}/questions/0199c0de-0000-7000-8000-00000000ffff/delete", "", &cookie).await;
    assert_eq!((none.status.as_u16(), faults(&none.text)), (404, Vec::new()), "{}", none.text);
}

#[tokio::test]
async fn a_question_is_asked_again_beside_the_answer_of_then() {
    let (bench, cookie) = log(Role::Viewer).await;
    let below = format!("/questions/{ANSWERED}");
    let text = page(&bench, &cookie, &below).await;
    assert!(text.contains("Ask again now") && !text.contains("Now and then"), "{text}");
    let text = page(&bench, &cookie, &format!("{below}?again=1")).await;
    // The expected ranks: a new first; the former first and second are at the second place, and gone; so is the
    // third.
    for part in ["Now and then", "New", "Down 1", "Gone", "4 passages of 4 moved"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Whoever edits a cited passage returns to the question, and its answer waits for the write.
    assert!(text.contains(&format!("&amp;ask={ANSWERED}#L1")) && !text.contains("Asked again"), "{text}");
    let after = page(&bench, &cookie, &format!("{below}?again=1&after=c1-1")).await;
    assert!(after.contains("Asked again"), "{after}");
    // No results are kept of this one.
    let text = page(&bench, &cookie, &format!("/questions/{UNANSWERED}?again=1")).await;
    assert!(text.contains("is not kept"), "{text}");
}

#[tokio::test]
async fn gaps_become_files() {
    let (bench, cookie) = log(Role::Contributor).await;
    let groups = page(&bench, &cookie, "/questions?view=groups").await;
    assert!(groups.contains("Also asked like this") && !groups.contains("Write the file"), "{groups}");
    let gaps = page(&bench, &cookie, "/questions?view=gaps").await;
    let write = format!("/questions/write?q={UNANSWERED}&amp;q={ANSWERED}");
    assert!(gaps.contains(&write) && gaps.contains(">5<"), "{gaps}");
    let form = page(&bench, &cookie, &write.replace("&amp;", "&")).await;
    assert!(
        form.contains("## how &lt;script") && form.contains("how-script-alert-1-script-onclick.md"),
        "{form}"
    );
    let empty =
        page(&bench, &cookie, "/questions/write?q=nonsense&q=0199c0de-0000-7000-8000-00000000ffff").await;
    assert!(empty.contains("value=\"answers.md\""), "{empty}");

    assert!(form.contains(&format!("name=\"ask\" value=\"{UNANSWERED}\"")), "{form}");
    let made = format!("name=a.md&folder=&content=x&ask={UNANSWERED}");
    for (again, to) in [
        ("", format!("/file/{FILE}?ask={UNANSWERED}")),
        ("&again=yes", format!("/w/{WORKSPACE}/questions/{UNANSWERED}?again=1&after=c1-7")),
    ] {
        let saved = send(&bench, "/w/{w}/questions/write", &format!("{made}{again}"), &cookie).await;
        assert_eq!(saved.status, 303, "{}", saved.text);
        assert_eq!(saved.headers["location"].to_str().unwrap(), to);
    }

    let typed = "name=&folder=&content=%23+kept%0D%0Awords";
    let wrong = send(&bench, "/w/{w}/questions/write", typed, &cookie).await;
    assert_eq!((wrong.status.as_u16(), faults(&wrong.text)), (400, Vec::new()), "{}", wrong.text);
    assert!(wrong.text.contains("# kept\nwords"), "{}", wrong.text);

    let viewer = log(Role::Viewer).await;
    let gaps = page(&viewer.0, &viewer.1, "/questions?view=gaps").await;
    assert!(!gaps.contains("Write the file"), "{gaps}");
    let refused = get(&viewer.0, &format!("/w/{WORKSPACE}/questions/write"), &viewer.1).await;
    assert_eq!((refused.status.as_u16(), faults(&refused.text)), (403, Vec::new()), "{}", refused.text);
}

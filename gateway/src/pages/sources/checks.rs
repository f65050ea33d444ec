//! Checks on the pages of sources.

use super::super::checks::{cookie, faults, get, send};
use crate::testing::outside::{CATALOGUED, ENDED, LIVE, PAST, RUN, SOURCE, UNREAD};
use crate::testing::{WORKSPACE, bench};

#[tokio::test]
async fn a_source_tells_how_it_stands() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (id, told, untold) in [
        (SOURCE, ["Run under way", "Last finished run", "asked to wait until"], ">Sync now"),
        (ENDED, ["Needs credentials", ">Resume", "Why: "], ">Pause"),
        (LIVE, ["Nothing is kept here", "450 of 500", ">Disconnect"], ">Sync now"),
    ] {
        let page = get(&bench, &format!("/w/{WORKSPACE}/sources/{id}"), &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{id}: {}", page.text);
        for part in told {
            assert!(page.text.contains(part), "{id}: {part}: {}", page.text);
        }
        assert!(!page.text.contains(untold), "{id}: {untold}: {}", page.text);
        assert!(!page.text.contains("<script>alert"), "{id}: {}", page.text);
    }
    let own = format!("/w/{WORKSPACE}/sources/{SOURCE}");
    let failing = get(&bench, &own, &cookie).await.text;
    assert!(failing.contains(&format!("action=\"{own}/retry\"")), "{failing}");
    for (document, status) in [(UNREAD, 303), (CATALOGUED, 409)] {
        let tried = send(&bench, &format!("{own}/retry"), &format!("document={document}"), &cookie).await;
        assert_eq!(tried.status, status, "{}", tried.text);
    }
    assert!(
        failing.contains("Documents that could not be read") && failing.contains("status=failed"),
        "{failing}"
    );
}

#[tokio::test]
async fn runs_are_told_with_their_counters_and_warnings() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let base = format!("/w/{WORKSPACE}/sources/{SOURCE}/runs");
    for (path, told) in [
        (base.clone(), "rel=\"next\""),
        (format!("{base}?from=a"), "Previous"),
        (format!("{base}/{RUN}"), "Cancel this run"),
        (format!("{base}/{PAST}"), "Warnings"),
    ] {
        let page = get(&bench, &path, &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{path}: {}", page.text);
        assert!(page.text.contains(told) && !page.text.contains("<script>alert"), "{path}: {}", page.text);
    }
    for odd in ["not-an-id", "0199c0de-0000-7000-8000-00000000ffff"] {
        let page = get(&bench, &format!("{base}/{odd}"), &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (404, Vec::new()), "{odd}: {}", page.text);
    }
}

#[tokio::test]
async fn deeds_are_answered_where_they_were_done() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let base = format!("/w/{WORKSPACE}/sources");
    for (path, status, told) in [
        // A run in progress is reported on the page.
        (format!("{SOURCE}/sync"), 409, "A run of this source is under way."),
        (format!("{ENDED}/sync"), 303, ""),
        (format!("{SOURCE}/retry"), 404, ""),
        (format!("{SOURCE}/pause"), 303, ""),
        (format!("{ENDED}/resume"), 303, ""),
        (format!("{SOURCE}/runs/{RUN}/cancel"), 303, ""),
        (format!("{SOURCE}/disconnect"), 303, ""),
    ] {
        let page = send(&bench, &format!("{base}/{path}"), "", &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {}", page.text);
        if status != 303 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn each_provider_has_a_form_that_tells_what_it_costs_before_the_mode() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let base = format!("/w/{WORKSPACE}/sources/new");
    let choice = get(&bench, &base, &cookie).await.text;
    for provider in super::providers::ALL {
        let path = format!("{base}?provider={}", provider.name);
        assert!(choice.contains(&format!("href=\"{path}\"")), "{choice}");
        let page = get(&bench, &path, &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{path}: {}", page.text);
        let at = |part: &str| page.text.find(part).unwrap_or_else(|| panic!("{path}: {part}: {}", page.text));
        assert!(at("What it costs") < at("name=\"mode\""), "{path}");
        assert!(at("9 of 10") < at("name=\"mode\""), "{path}");
        assert!(page.text.contains(">Test<") && page.text.contains("value=\"connect\">Connect<"), "{path}");
    }
    let none = get(&bench, &format!("{base}?provider=pigeon"), &cookie).await;
    assert_eq!((none.status.as_u16(), faults(&none.text)), (404, Vec::new()), "{}", none.text);
}

#[tokio::test]
async fn a_form_keeps_every_word_but_secrets() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let base = format!("/w/{WORKSPACE}/sources");
    let typed = "provider=github&settings-repo=kept+words&credentials-token=hush-hush&mode=catalog&every=7h";
    for (path, more, status, told) in [
        ("new", "", 400, "#f-name"),
        ("new", "&name=x", 400, "#f-settings-owner"),
        ("new", "&name=x&settings-owner=a&dailyBudget=many", 400, "#f-dailyBudget"),
        ("new", "&then=check", 200, "#f-settings-owner"),
        ("new", "&then=check&settings-owner=a", 200, "It works"),
        ("new", "&name=x&settings-owner=a", 303, ""),
    ] {
        let page = send(&bench, &format!("{base}/{path}"), &format!("{typed}{more}"), &cookie).await;
        assert_eq!(page.status, status, "{more}: {}", page.text);
        assert!(!page.text.contains("hush-hush"), "{more}: {}", page.text);
        if status != 303 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{more}: {}", page.text);
            for part in [told, "kept words", "value=\"catalog\" checked", "value=\"7h\""] {
                assert!(page.text.contains(part), "{more}: {part}: {}", page.text);
            }
        }
    }
    let refused = format!("{base}/new");
    let refused = send(&bench, &refused, "provider=github&settings-owner=a&then=check", &cookie).await;
    assert!(
        refused.text.contains("It does not work") && !refused.text.contains("<script>alert"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_source_is_changed_and_its_credentials_replaced() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let own = format!("/w/{WORKSPACE}/sources/{SOURCE}");
    for (path, body, status) in [
        ("change", "name=&settings-owner=kept+words&mode=indexed&every=15m&dailyBudget=500", 400),
        ("change", "name=x&settings-owner=a&mode=catalog&every=&dailyBudget=", 303),
        ("credentials", "credentials-token=hush-hush", 303),
    ] {
        let page = send(&bench, &format!("{own}/{path}"), body, &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        if status == 400 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
            assert!(page.text.contains("kept words"), "{path}: {}", page.text);
        }
    }
    let shown = get(&bench, &format!("{own}/change"), &cookie).await.text;
    assert!(
        shown.contains("id=\"f-settings-content-issues\" type=\"checkbox\"")
            && shown.contains("value=\"15m\""),
        "{shown}"
    );
    assert!(shown.contains("value=\"issues\" checked"), "{shown}");
}

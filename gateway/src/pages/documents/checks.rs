//! Checks on the pages of ingested and source documents.

use super::super::checks::{cookie, faults, get, send};
use crate::testing::outside::{CATALOGUED, HASH, RETAINED, SENT, UNREAD, UNREADABLE};
use crate::testing::{WORKSPACE, bench};

#[tokio::test]
async fn a_document_tells_how_it_stands_and_where_it_comes_from() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for (id, told, untold) in [
        (SENT, ["Searchable", "rel=\"noopener noreferrer\"", "Delete for good"], "Read it now"),
        (UNREADABLE, ["Why: ", "send it again", "Delete for good"], "href=\"javascript"),
        (RETAINED, ["Searchable", "https://github.example/x", "Where it comes from"], "Delete for good"),
        (CATALOGUED, ["Catalog only", "Read it now", "s3://bucket/x"], "href=\"s3:"),
        (UNREAD, ["A later run", "Last seen there", "Try again"], "Read it now"),
    ] {
        let page = get(&bench, &format!("/documents/{id}"), &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{id}: {}", page.text);
        for part in told {
            assert!(page.text.contains(part), "{id}: {part}: {}", page.text);
        }
        assert!(!page.text.contains(untold), "{id}: {untold}: {}", page.text);
        assert!(!page.text.contains("<script>alert"), "{id}: {}", page.text);
    }
}

#[tokio::test]
async fn cited_lines_are_marked_and_a_stale_citation_is_told() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    for id in [SENT, RETAINED] {
        let page = get(&bench, &format!("/documents/{id}?view=source&lines=3&hash={HASH}"), &cookie).await;
        assert!(page.text.contains("id=\"L3\" data-n=\"3\" data-cited"), "{}", page.text);
        assert!(!page.text.contains("has changed since"), "{}", page.text);
        // The URL of an agent's citation may have no lines.
        for query in ["lines=3&hash=blake3:ffff", "hash=blake3:ffff"] {
            let page = get(&bench, &format!("/documents/{id}?{query}"), &cookie).await;
            assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{}", page.text);
            assert!(page.text.contains("has changed since it was cited"), "{}", page.text);
            assert!(!page.text.contains("data-cited"), "what stands there now was not cited: {}", page.text);
            assert!(page.text.contains("Words that were quoted"), "it is no dead end: {}", page.text);
        }
        for (quote, told) in [
            ("one", "The quoted words still stand in it, in <a href=\"/documents/"),
            ("Plan+one+two", "<ins># Plan</ins>"),
            ("otters+float", "Nothing like it stands in the text as it is."),
        ] {
            let path = format!("/documents/{id}?view=source&lines=9&hash=blake3:ffff&quote={quote}");
            let page = get(&bench, &path, &cookie).await;
            assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{}", page.text);
            assert!(page.text.contains(told), "{quote}: {}", page.text);
            assert_eq!(page.text.contains("data-cited"), !quote.starts_with("otters"), "{quote}");
        }
    }
}

#[tokio::test]
async fn forms_about_a_document_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let page = send(&bench, &format!("/documents/{CATALOGUED}/read"), "", &cookie).await;
    assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{}", page.text);
    assert!(page.text.contains("kept nowhere") && page.text.contains("49 are left"), "{}", page.text);
    for (id, deed, status) in [
        (SENT, "read", 404),
        (RETAINED, "delete", 403),
        (SENT, "delete", 303),
        (SENT, "retry", 403),
        (UNREAD, "retry", 303),
        (CATALOGUED, "retry", 409),
    ] {
        let answer = send(&bench, &format!("/documents/{id}/{deed}"), "", &cookie).await;
        assert_eq!(answer.status, status, "{id}/{deed}: {}", answer.text);
        if status != 303 {
            assert_eq!(faults(&answer.text), Vec::<String>::new(), "{id}/{deed}: {}", answer.text);
        }
    }
    let file = get(&bench, &format!("/documents/{SENT}/download"), &cookie).await;
    assert!(file.text.starts_with("# Plan\n"), "{}", file.text);
    assert_eq!(file.headers["content-disposition"], "attachment; filename*=UTF-8''Plan.md");
    let none = get(&bench, &format!("/documents/{CATALOGUED}/download"), &cookie).await;
    assert_eq!((none.status.as_u16(), faults(&none.text)), (404, Vec::new()), "{}", none.text);
}

#[tokio::test]
async fn lists_of_documents_are_narrowed_and_have_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let list = async |query: &str| {
        let page = get(&bench, &format!("/w/{WORKSPACE}/documents?{query}"), &cookie).await;
        assert_eq!((page.status.as_u16(), faults(&page.text)), (200, Vec::new()), "{query}: {}", page.text);
        page.text
    };
    let both = list("").await;
    assert!(both.contains("source=ingested\"") && both.contains("source=all\""), "{both}");
    let sent = list("source=ingested&q=x").await;
    assert!(sent.contains("from=next") && !sent.contains("From sources"), "{sent}");
    assert!(sent.contains("source=ingested&amp;q=x&amp;from=next"), "{sent}");
    assert!(list("source=all&from=a&from=b").await.contains("Previous"));
    let failed = list("status=failed").await;
    assert!(failed.contains("onclick=x {{&amp;amp;."), "the reason stands beside the name: {failed}");
    let catalog = list("status=catalog").await;
    assert!(catalog.contains("From sources") && !catalog.contains(SENT), "{catalog}");
    assert!(list("q=zqnothing").await.contains("No document is like that."));
}

#[tokio::test]
async fn a_text_is_put_in_and_kept_in_the_form_when_it_is_refused() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let new = format!("/w/{WORKSPACE}/documents/new");
    for (body, status, told) in [
        ("title=&content=kept+words&url=", 400, "#f-title"),
        ("title=x&content=kept+words&contentType=nothing", 400, "#f-contentType"),
        ("title=kept+words&content=&url=", 400, "#f-content"),
        ("title=x&content=kept+words&contentType=text&url=", 303, ""),
    ] {
        let page = send(&bench, &new, body, &cookie).await;
        assert_eq!(page.status, status, "{body}: {}", page.text);
        if status == 303 {
            assert_eq!(page.headers["location"].to_str().unwrap(), format!("/documents/{SENT}"));
            continue;
        }
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{body}: {}", page.text);
        assert!(page.text.contains(told) && page.text.contains("kept words"), "{body}: {}", page.text);
    }
}

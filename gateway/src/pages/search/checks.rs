//! Checks on the HTML of the search pages.

use crate::pages::checks::{cookie, faults, filled, get, send};
use crate::testing::{FILE, bench_with_retrieval};

#[tokio::test]
async fn results_and_checks_are_sound_pages() {
    let bench = bench_with_retrieval().await;
    let cookie = cookie(&bench).await;
    let unknown = "0199c0de-0000-7000-8000-00000000ffff";
    for (path, told) in [
        ("/w/{w}/search?q=x".to_owned(), "Something missing?"),
        ("/w/{w}/search?q=nothing".to_owned(), "<details open>"),
        ("/w/{w}/search/absence?q=x&document={f}".to_owned(), "What to do"),
        ("/w/{w}/search/absence?q=x&find=https://c.example/file/{f}%23L2".to_owned(), "What to do"),
        (format!("/w/{{w}}/search/absence?q=x&document={unknown}"), "No such file"),
        ("/w/{w}/search/absence?q=x&document=nonsense".to_owned(), "Put this right"),
        ("/w/{w}/search/absence?document={f}".to_owned(), "Type the question"),
        ("/w/{w}/search?q=x".to_owned(), "Pin as golden question"),
        ("/w/{w}/golden".to_owned(), "1 of 1 golden question finds"),
        ("/file/{f}/edit".to_owned(), "Check golden questions"),
        ("/file/{f}/index".to_owned(), "Not searchable yet"),
        ("/w/{w}/files".to_owned(), "Not searchable yet"),
        ("/w/{w}/search?q=x".to_owned(), "Bearer $CAIRN_TOKEN"),
        ("/w/{w}/search?q=x&strategy=keyword".to_owned(), "&amp;ask=q%3Dx%26strategy%3Dkeyword#L2"),
        ("/w/{w}/search?q=x&after=c1-1".to_owned(), "Asked again"),
        ("/file/{f}".to_owned(), "Is it searchable?"),
        ("/w/{w}/search/absence?q=x&find=script".to_owned(), "Which file?"),
    ] {
        let page = get(&bench, &filled(&path), &cookie).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        assert!(!page.text.contains("<script>alert"), "{path}: {}", page.text);
    }
}

#[tokio::test]
async fn golden_questions_are_pinned_and_asked_before_a_save() {
    let bench = bench_with_retrieval().await;
    let cookie = cookie(&bench).await;
    let pin = "/w/{w}/golden/pin";
    let check = format!("/file/{FILE}/check");
    let unpin = "/w/{w}/golden/0199c0de-0000-7000-8000-0000000000d1/unpin";
    let pinned = format!("q=x&kind=file&document={FILE}&start=1&end=2&hash=blake3:0001&quote=a%0D%0Ab");
    let gone = "q=x&kind=file&document=0199c0de-0000-7000-8000-00000000ffff".to_owned();
    for (path, body, status, told) in [
        (pin, pinned, 303, ""),
        (pin, "q=&kind=file&document=x".to_owned(), 400, "Put this right"),
        (pin, gone, 404, "There is nothing here"),
        (unpin, String::new(), 303, ""),
        (
            check.as_str(),
            "content=kept+breaks&hash=blake3:0001".to_owned(),
            200,
            "1 of 1 golden question loses",
        ),
        (check.as_str(), "content=kept&hash=blake3:0001".to_owned(), 200, "None of 1 golden question"),
    ] {
        let page = send(&bench, path, &body, &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        if status != 303 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        }
        if path == check {
            assert!(page.text.contains("kept"), "the text is kept: {}", page.text);
        }
    }
}

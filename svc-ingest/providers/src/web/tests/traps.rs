//! What sites do, and what is made of it.

use std::time::Instant;

use super::*;
use crate::contract::{counted, text};
use crate::{Body, Call};

/// Pages of a site that are fetched.
async fn setting() -> (Site, Box<dyn Provider>, Call) {
    let site = Site::new("sitemap").await;
    let provider = site.with(&json!({}));
    (site, provider, counted(10_000).call)
}

async fn body(provider: &dyn Provider, call: &Call, id: &ExternalId) -> Body {
    match provider.fetch(call, id, None).await {
        Ok(Fetched::Body(body)) => body,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_page_is_sent_only_when_it_changed() {
    let (site, provider, call) = setting().await;
    site.write("a", "text");
    let id = site.id("docs/a");
    let known = body(&*provider, &call, &id).await.version;
    site.fake.take_asked();
    assert_eq!(provider.fetch(&call, &id, Some(&known)).await, Ok(Fetched::Same));
    let asked = site.fake.take_asked();
    assert!(asked[0].header("if-none-match").is_some() && asked.len() == 1, "the rules are known already");
    site.write("a", "another text");
    assert!(matches!(provider.fetch(&call, &id, Some(&known)).await, Ok(Fetched::Body(_))));

    let old = "Fri, 20 Nov 2026 12:00:00 GMT";
    site.instead("/docs/b", page("text").header("last-modified", old));
    let id = site.id("docs/b");
    let known = body(&*provider, &call, &id).await.version;
    site.fake.take_asked();
    // The host sends it all the same, with another time: the bytes decide.
    site.instead("/docs/b", page("text").header("last-modified", "Sat, 21 Nov 2026 12:00:00 GMT"));
    assert_eq!(provider.fetch(&call, &id, Some(&known)).await, Ok(Fetched::Same));
    assert_eq!(site.fake.take_asked()[0].header("if-modified-since"), Some(old));
    site.instead("/docs/b", Reply::with(304, "text/html", ""));
    assert!(matches!(provider.fetch(&call, &id, None).await, Err(Fault::Broken(_))), "nobody asked for that");
}

#[tokio::test]
async fn what_a_site_keeps_to_itself_is_not_asked_for() {
    let (site, provider, call) = setting().await;
    let rules = "User-agent: *\nDisallow: /docs/\nAllow: /docs/open\n";
    site.instead("/robots.txt", Reply::with(200, "text/plain", rules));
    site.write("a", "text");
    site.write("open", "text");
    site.instead("/docs/open/moved", Reply::with(302, "text/html", "").header("location", "/docs/a"));
    for path in ["docs/a", "docs/open/moved"] {
        let fetched = provider.fetch(&call, &site.id(path), None).await;
        assert_eq!(fetched, Ok(Fetched::Unreadable(robots::DISALLOWED.into())), "{path}");
    }
    assert!(text(&call, &*provider, &site.url("docs/open")).await.unwrap().contains("text"));
    assert_eq!(site.asked(), ["/docs/open/moved", "/docs/open"]);
}

#[tokio::test]
async fn a_site_that_cannot_say_what_it_allows_is_left_alone() {
    for (status, is_allowed) in [(500, false), (503, false), (404, true), (403, true), (401, true)] {
        let (site, provider, call) = setting().await;
        site.write("a", "text");
        site.instead("/robots.txt", Reply::with(status, "text/plain", "nothing to say"));
        let fetched = provider.fetch(&call, &site.id("docs/a"), None).await;
        assert_eq!(fetched.is_ok(), is_allowed, "{status}: {fetched:?}");
        assert_eq!(provider.list(&call, None).await.is_ok(), is_allowed);
        assert_eq!(site.asked().is_empty(), !is_allowed, "{status}");
    }
    let (site, provider, call) = setting().await;
    site.write("a", "text");
    site.instead("/robots.txt", Reply::with(302, "text/plain", "").header("location", "/robots.txt"));
    assert!(
        provider.fetch(&call, &site.id("docs/a"), None).await.is_ok(),
        "rules that lead nowhere are none"
    );
}

#[tokio::test]
async fn a_site_gets_the_time_between_requests_that_it_asks_for() {
    let (site, provider, call) = setting().await;
    site.instead("/robots.txt", Reply::with(200, "text/plain", "User-agent: cairn\nCrawl-delay: 1\n"));
    site.write("a", "text");
    let begun = Instant::now();
    for _ in 0..2 {
        body(&*provider, &call, &site.id("docs/a")).await;
    }
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let hurried = call.with_deadline(tokio::time::Instant::now() + Duration::from_millis(200));
    assert_eq!(provider.fetch(&hurried, &site.id("docs/a"), None).await, Err(Fault::Unavailable));
}

#[tokio::test]
async fn only_a_page_that_is_not_there_is_gone() {
    let (site, provider, call) = setting().await;
    assert_eq!(provider.traits().gone_after, Some(GONE_AFTER), "and only when it is missing again");
    let id = site.id("docs/a");
    for (status, gone) in [(404, true), (410, true), (401, false), (403, false), (451, false), (400, false)] {
        site.instead("/docs/a", Reply::refusal(status));
        let fetched = provider.fetch(&call, &id, None).await;
        assert_eq!(fetched == Ok(Fetched::Gone), gone, "{status}");
        // Nothing of it is about the source, or hides what is known.
        assert!(gone || matches!(fetched, Err(Fault::Broken(_) | Fault::Refused)), "{status}: {fetched:?}");
    }
    site.instead("/docs/a", Reply::refusal(502));
    assert_eq!(provider.fetch(&call, &id, None).await, Err(Fault::Unavailable));
    for location in ["/login?next=/docs/a", "/user/sign-in.php"] {
        site.instead("/docs/a", Reply::with(302, "text/html", "").header("location", location));
        for path in ["/login", "/user/sign-in.php"] {
            site.instead(path, page("<form>Sign in</form>"));
        }
        assert!(matches!(provider.fetch(&call, &id, None).await, Err(Fault::Broken(_))), "{location}");
    }
}

#[tokio::test]
async fn redirects_are_followed_to_public_places_and_not_in_circles() {
    let (site, provider, call) = setting().await;
    site.write("a", "text");
    let redirect = |to: &str| Reply::with(301, "text/html", "").header("location", to);
    site.instead("/docs/old", redirect("/docs/a#part"));
    let moved = body(&*provider, &call, &site.id("docs/old")).await;
    assert_eq!(moved.url, Some(site.url("docs/a")), "links in it are relative to where it is");
    site.instead("/docs/one", redirect("/docs/two"));
    site.instead("/docs/two", redirect("/docs/one"));
    for number in 0..9 {
        site.instead(&format!("/docs/{number}"), redirect(&format!("/docs/{}", number + 1)));
    }
    for path in ["docs/one", "docs/0"] {
        site.fake.take_asked();
        assert!(matches!(provider.fetch(&call, &site.id(path), None).await, Err(Fault::Broken(_))), "{path}");
        assert!(site.asked().len() <= 6);
    }
    site.instead("/docs/inside", redirect("http://10.0.0.1/"));
    assert_eq!(provider.fetch(&call, &site.id("docs/inside"), None).await, Err(Fault::Address));
}

#[tokio::test]
async fn what_is_not_to_be_kept_or_has_no_text_says_so() {
    let (site, provider, call) = setting().await;
    let id = site.id("docs/a");
    let unreadable = Ok(Fetched::Unreadable(NO_INDEX.into()));
    for reply in [
        page("<meta name='robots' content='noindex, follow'>text"),
        page("text").header("x-robots-tag", "noindex"),
        Reply::with(200, "application/pdf", "%PDF").header("x-robots-tag", "none"),
    ] {
        site.instead("/docs/a", reply);
        assert_eq!(provider.fetch(&call, &id, None).await, unreadable);
    }
    for kind in ["image/png", "video/mp4", "text/css; charset=utf-8"] {
        site.instead("/docs/a", Reply::with(200, kind, "data"));
        assert_eq!(provider.fetch(&call, &id, None).await, Ok(Fetched::Unsupported(kind.to_owned())));
    }
    site.instead("/docs/a.md", Reply::with(200, "application/octet-stream", "# text"));
    assert_eq!(body(&*provider, &call, &site.id("docs/a.md")).await.mime, "text/markdown");
}

#[tokio::test]
async fn a_page_of_another_site_is_none_of_this_source() {
    let (site, provider, call) = setting().await;
    site.write("a", "text");
    for other in ["https://other.example/a", "http://localhost/docs/a", "ftp://127.0.0.1/docs/a"] {
        let id = ExternalId::new(other).unwrap();
        assert_eq!(provider.fetch(&call, &id, None).await, Ok(Fetched::Gone), "{other}");
    }
    let crawl = Site { kind: "crawl", ..site.clone() }.with(&json!({}));
    assert_eq!(crawl.fetch(&call, &site.id("other"), None).await, Ok(Fetched::Gone));
    let single = Site { kind: "page", ..site.clone() }.with(&json!({}));
    assert_eq!(single.fetch(&call, &site.id("docs/a"), None).await, Ok(Fetched::Gone));
    assert!(site.asked().is_empty());
}

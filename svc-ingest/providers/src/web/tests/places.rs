//! Where pages come from.

use super::*;
use crate::contract::{Read, counted, listed, text};

fn titles(read: &Read) -> Vec<String> {
    read.entries.values().map(|entry| entry.title.clone()).collect()
}

fn paths(read: &Read) -> Vec<String> {
    read.entries.keys().map(|id| Url::parse(id.as_str()).unwrap().path().to_owned()).collect()
}

#[tokio::test]
async fn a_feed_names_its_pages_and_a_sitemap_does_not() {
    for (kind, title) in [("feed", None), ("sitemap", Some("a")), ("page", Some("docs"))] {
        let site = Site::new(kind).await;
        site.write("a", "text");
        let read = listed(site.with(&json!({})).as_ref(), &counted(100).call).await;
        let wanted = title.map_or_else(|| format!("About {}", site.url("docs/a")), str::to_owned);
        assert_eq!(titles(&read), [wanted], "{kind}");
        let catalog =
            listed(site.in_mode(&json!({}), SourceMode::Catalog).as_ref(), &counted(100).call).await;
        let (id, entry) = catalog.entries.first_key_value().unwrap();
        assert_eq!(entry.url.as_deref(), Some(id.as_str()), "nothing else tells it where no page is read");
        let asked = site.asked();
        assert!(!asked.iter().any(|path| path.starts_with("/docs")), "{kind}: {asked:?}");
    }
}

#[tokio::test]
async fn a_sitemap_is_partial_when_a_file_of_it_cannot_be_read() {
    let site = Site::new("sitemap").await;
    for name in ["a", "b", "c", "d"] {
        site.write(name, name);
    }
    for odd in [
        Reply::with(500, "text/plain", ""),
        Reply::with(404, "text/plain", ""),
        Reply::with(200, "text/html", "<!DOCTYPE html><html><body><p>Sorry"),
        Reply::with(200, "application/xml", "<urlset><url><loc>https://exa"),
        Reply::with(200, "application/xml", "<sitemapindex></sitemapindex>"),
    ] {
        site.instead("/1.xml", odd);
        let read = listed(site.with(&json!({})).as_ref(), &counted(100).call).await;
        assert_eq!(paths(&read), ["/docs/b", "/docs/d"]);
        assert_eq!(read.partial[0].reason, "files of the sitemap that could not be read: 1");
        assert_eq!(read.partial[0].scope, None, "nothing is concluded from absence");
    }
    for odd in [Reply::with(500, "text/plain", ""), page("<p>Sorry"), Reply::with(403, "text/html", "")] {
        site.instead("/sitemap.xml", odd);
        assert!(site.with(&json!({})).list(&counted(100).call, None).await.is_err());
    }
}

#[tokio::test]
async fn a_large_sitemap_is_read_in_pages_and_to_its_bound() {
    let site = Site::new("sitemap").await;
    let urls: Vec<String> = (0..2_500).map(|number| site.url(&format!("docs/{number}"))).collect();
    site.instead("/sitemap.xml", Reply::with(200, "application/xml", urlset(urls.iter())));
    let counted = counted(100);
    let read = listed(site.with(&json!({ "maxPages": 50_000 })).as_ref(), &counted.call).await;
    assert_eq!((read.entries.len(), read.partial.len(), counted.call.sent()), (2_500, 0, 2));
    let exact = listed(site.with(&json!({ "maxPages": 2_500 })).as_ref(), &counted.call).await;
    assert_eq!((exact.entries.len(), exact.partial.len()), (2_500, 0));
    let bounded = listed(site.with(&json!({ "maxPages": 1_200 })).as_ref(), &counted.call).await;
    assert_eq!((bounded.entries.len(), bounded.partial.len()), (1_200, 1));
    // A process that goes on finds another sitemap: what was read of the first one proves nothing.
    let page = site.with(&json!({})).list(&counted.call, None).await.unwrap();
    let Then::More(position) = page.then else { panic!("{:?}", page.then) };
    site.instead("/sitemap.xml", Reply::with(200, "application/xml", "<sitemapindex></sitemapindex>"));
    let lost = site.with(&json!({})).list(&counted.call, Some(&position)).await;
    assert_eq!(lost, Err(Fault::PositionLost));
}

#[tokio::test]
async fn an_address_that_is_too_long_is_a_fault_of_its_own() {
    let site = Site::new("sitemap").await;
    let urls = [site.url("docs/a"), site.url(&format!("docs/{}", "x".repeat(10_000)))];
    site.instead("/sitemap.xml", Reply::with(200, "application/xml", urlset(urls.iter())));
    let read = listed(site.with(&json!({})).as_ref(), &counted(100).call).await;
    assert_eq!((paths(&read), read.faults.len()), (vec!["/docs/a".to_owned()], 1));
    assert!(read.faults[0].id.is_none() && read.faults[0].title.len() <= 500);
}

#[tokio::test]
async fn a_crawl_stays_where_it_may_and_visits_each_page_once() {
    let site = Site::new("crawl").await;
    site.instead("/robots.txt", Reply::with(200, "text/plain", "User-agent: *\nDisallow: /docs/hidden\n"));
    site.instead("/docs/", page(
        "<p>start</p><a href='a'>a</a><a href='a#part'>a</a><a href='a?utm_source=x'>a</a><a href='/other'>o</a>\
         <a href='https://other.example/docs/'>x</a><a href=hidden/1>h</a><a href=picture.png>p</a><a href=no rel=nofollow>n</a>\
         <a href=moved>m</a><a href=missing>m</a><a href=paper>p</a><a href='javascript:alert(1)'>j</a>",
    ));
    site.instead(
        "/docs/a",
        page("<p>a</p><a href='/docs/b?view=print'>b</a><a href='/docs/b'>b</a><a href='/docs/'>up</a>"),
    );
    site.instead("/docs/b", page("<link rel=canonical href='/docs/b'><p>b</p>"));
    site.instead("/docs/moved", Reply::with(302, "text/html", "").header("location", "/docs/a"));
    site.instead("/docs/paper", Reply::with(200, "application/pdf", "%PDF-1.4"));
    let provider = site.with(&json!({}));
    provider.check(&counted(10).call).await.unwrap();
    let read = listed(provider.as_ref(), &counted(100).call).await;
    let ids: Vec<&str> = read.entries.keys().map(ExternalId::as_str).collect();
    // Whether the print view or the page came first, it is one document.
    assert_eq!(ids, [site.url("docs/"), site.url("docs/a"), site.url("docs/b"), site.url("docs/paper")]);
    assert_eq!((read.faults.len(), read.partial.len()), (0, 0));
    assert!(
        !site.asked().iter().any(|path| path.contains("hidden") || path == "/other" || path.ends_with("png"))
    );
}

#[tokio::test]
async fn a_crawl_is_bounded_in_pages_and_depth() {
    let site = Site::new("crawl").await;
    for number in 0..40 {
        // A calendar that never ends.
        let next = page(&format!("<p>{number}</p><a href='/docs/{}'>next</a>", number + 1));
        site.instead(&format!("/docs/{number}"), next);
    }
    site.instead("/docs/", page("<a href=0>first</a>"));
    let bounded =
        listed(site.with(&json!({ "maxPages": 12, "maxDepth": 100 })).as_ref(), &counted(100).call).await;
    assert_eq!((bounded.entries.len(), bounded.partial.len()), (12, 1));
    let shallow = listed(site.with(&json!({ "maxDepth": 2 })).as_ref(), &counted(100).call).await;
    assert_eq!((shallow.entries.len(), shallow.partial.len()), (3, 0));
    let alone = listed(site.with(&json!({ "maxDepth": 0 })).as_ref(), &counted(100).call).await;
    assert_eq!(alone.entries.len(), 1);
}

#[tokio::test]
async fn a_crawl_goes_on_behind_a_page_that_fails_but_not_without_its_first() {
    let site = Site::new("crawl").await;
    site.write("a", "text");
    site.write("b", "text");
    site.instead("/docs/a", Reply::with(500, "text/plain", ""));
    let read = listed(site.with(&json!({})).as_ref(), &counted(100).call).await;
    assert_eq!(paths(&read), ["/docs/b"]);
    assert_eq!((read.faults.len(), read.partial.len()), (1, 1));
    for (status, fault) in [(500, Fault::Unavailable), (404, Fault::Gone)] {
        site.instead("/docs/", Reply::with(status, "text/plain", ""));
        assert_eq!(site.with(&json!({})).list(&counted(100).call, None).await, Err(fault.clone()));
        assert_eq!(site.with(&json!({})).check(&counted(100).call).await, Err(fault));
    }
    let other = Site::new("crawl").await;
    other.write("a", "text");
    site.instead("/docs/", Reply::with(301, "text/html", "").header("location", other.url("docs/")));
    assert!(matches!(site.with(&json!({})).list(&counted(100).call, None).await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn a_live_source_is_looked_through_and_its_pages_are_fetched() {
    let site = Site::new("feed").await;
    site.write("lamp-oil", "about oil");
    site.write("lamp-wick", "about wicks");
    let provider = site.in_mode(&json!({}), SourceMode::Live);
    assert_eq!(provider.traits().search, Search::Titles);
    let call = counted(100).call;
    let found = provider.search(&call, "Which OIL for a lamp?", 5).await.unwrap();
    let found: Vec<&str> = found.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(found, [site.url("docs/lamp-oil"), site.url("docs/lamp-wick")]);
    assert!(provider.search(&call, "something else", 5).await.unwrap().is_empty());
    assert!(text(&call, provider.as_ref(), &site.url("docs/lamp-oil")).await.unwrap().contains("about oil"));
    // Nobody is to make this server fetch whatever they name.
    let elsewhere = ExternalId::new("https://other.example/").unwrap();
    assert_eq!(provider.fetch(&call, &elsewhere, None).await, Ok(Fetched::Gone));
    let indexed = site.with(&json!({}));
    assert_eq!(indexed.search(&call, "oil", 5).await, Err(Fault::Refused));
    let chosen = Site::new("page").await.in_mode(&json!({}), SourceMode::Live);
    assert_eq!(chosen.search(&call, "anything", 5).await.unwrap().len(), 1);
}

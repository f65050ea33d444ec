//! Resolves links: to absolute URLs if the page's URL is known; drops executable ones such as `javascript:`.

use dom_query::Document;
use url::Url;

/// Resolves links against the page's URL or its `<base>`.
pub(super) fn make_absolute(document: &Document, base_url: Option<&str>) {
    let page = base_url.and_then(|url| Url::parse(url).ok());
    let base = document.select_single("base[href]").attr("href");
    let base = match (&page, base.as_deref()) {
        (Some(page), Some(base)) => page.join(base).ok().filter(is_web),
        (None, Some(base)) => Url::parse(base).ok().filter(is_web),
        (_, None) => None,
    };
    let base = base.or(page);
    for node in document.select("a[href]").nodes() {
        let href = node.attr("href").unwrap_or_default();
        match address(href.trim(), base.as_ref()) {
            Some(address) => node.set_attr("href", &address),
            None => node.remove_attr("href"),
        }
    }
}

/// The URL of a link; `None` if it does not lead to another page.
fn address(href: &str, base: Option<&Url>) -> Option<String> {
    const FOLLOWED: [&str; 5] = ["http", "https", "mailto", "tel", "ftp"];
    match Url::parse(href) {
        Ok(url) if FOLLOWED.contains(&url.scheme()) => Some(url.into()),
        Ok(_) => None,
        Err(_) if href.is_empty() => None,
        Err(_) => match base {
            Some(base) => base.join(href).ok().filter(is_web).map(String::from),
            None => Some(href.to_owned()),
        },
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

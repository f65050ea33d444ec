//! The next page in the header `Link` (RFC 8288).

use http::{HeaderMap, header};
use url::Url;

use crate::Fault;

/// Bytes of a URL in a position.
const MAX_BYTES: usize = 4_096;

/// The absolute URL of the next page.
///
/// # Errors
/// [`Fault::Broken`] if it has another origin, to which credentials must not be sent.
pub(crate) fn next_page(headers: &HeaderMap, page: &Url) -> Result<Option<Url>, Fault> {
    let links = headers.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok());
    let Some(target) = links.flat_map(targets).find(|(_, is_next)| *is_next).map(|(target, _)| target) else {
        return Ok(None);
    };
    follow(page, target).map(Some)
}

/// Resolves a link relative to its page.
///
/// # Errors
/// [`Fault::Broken`] as [`next_page`].
pub(crate) fn follow(page: &Url, target: &str) -> Result<Url, Fault> {
    let odd = || Fault::broken("the provider's link to the next page is no address");
    if target.len() > MAX_BYTES {
        return Err(odd());
    }
    let next = page.join(target).map_err(|_| odd())?;
    if next.origin() != page.origin() {
        return Err(Fault::broken(
            "the provider's next page is at another host, which its credentials are not for",
        ));
    }
    Ok(next)
}

/// The targets of the links in a header, and whether each is the next page.
fn targets(header: &str) -> impl Iterator<Item = (&str, bool)> {
    // Targets may contain commas, so links are split at `<`.
    header.split('<').skip(1).filter_map(|link| {
        let (target, parameters) = link.split_once('>')?;
        Some((target.trim(), parameters.split([';', ',']).any(is_next)))
    })
}

fn is_next(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
    name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(link: &str) -> Result<Option<String>, Fault> {
        let page = Url::parse("https://api.example/a/b?page=1").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::LINK, link.parse().unwrap());
        next_page(&headers, &page).map(|url| url.map(String::from))
    }

    #[test]
    fn the_next_page_is_found_among_links() {
        let github =
            r#"<https://api.example/a?page=1>; rel="prev", <https://api.example/a?after=x,y>; rel="next""#;
        assert_eq!(next(github).unwrap().unwrap(), "https://api.example/a?after=x,y");
        assert_eq!(
            next("</wiki/pages?cursor=c>; REL=next").unwrap().unwrap(),
            "https://api.example/wiki/pages?cursor=c"
        );
        assert_eq!(
            next(r#"<?page=2>; title="a"; rel="last next""#).unwrap().unwrap(),
            "https://api.example/a/b?page=2"
        );
        for none in [
            "",
            "<https://api.example/a>",
            r#"<https://api.example/a>; rel="prev""#,
            "<",
            "next",
            "<a; rel=next",
        ] {
            assert_eq!(next(none).unwrap(), None, "{none}");
        }
    }

    #[test]
    fn a_next_page_elsewhere_is_not_gone_to() {
        for elsewhere in
            ["https://evil.example/a", "http://api.example/a", "//evil.example/", "https://api.example:8443/"]
        {
            assert!(next(&format!("<{elsewhere}>; rel=next")).is_err(), "{elsewhere}");
        }
        assert!(next(&format!("</{}>; rel=next", "a".repeat(5_000))).is_err());
        assert!(next("<https://[>; rel=next").is_err());
    }
}

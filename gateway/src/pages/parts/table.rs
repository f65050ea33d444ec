//! Tables and pagination.

use maud::{Markup, html};

use crate::operations::Page;
use crate::pages::words;

/// A table in a scrollable frame. A column without a name holds buttons.
pub(crate) fn table(caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.frame role="region" tabindex="0" aria-label=(caption) {
            table {
                caption.sr { (caption) }
                thead {
                    tr {
                        @for column in columns {
                            @if column.is_empty() { td {} } @else { th scope="col" { (column) } }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// The position in a paginated list. The services return only the next page token; the previous ones are carried in
/// the URL, so that there is a way back.
#[derive(Debug, Default)]
pub(crate) struct Pages<'a> {
    /// The page's path, and its query without page tokens.
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// The page tokens up to this page, without the first page's.
    pub(crate) trail: Vec<String>,
    /// The next page token.
    pub(crate) next: Option<String>,
    /// The total, and the page size.
    pub(crate) total: u64,
    pub(crate) page_size: u64,
    /// The number of entries on this page.
    pub(crate) shown: usize,
}

/// The query parameter of page tokens, repeated once per page.
pub(crate) const MARK: &str = "from";

impl<'a> Pages<'a> {
    /// The position of a page of a list.
    pub(crate) fn of<T>(
        path: &'a str,
        query: &'a [(&'a str, &'a str)],
        trail: Vec<String>,
        page_size: u32,
        listed: &Page<T>,
    ) -> Self {
        Self {
            path,
            query,
            trail,
            next: listed.next.clone(),
            total: listed.total,
            page_size: u64::from(page_size),
            shown: listed.items.len(),
        }
    }

    /// The URL of this page with an additional parameter.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let address = self.address(&self.trail);
        let mark = if address.contains('?') { '&' } else { '?' };
        let more = form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        format!("{address}{mark}{more}")
    }

    fn address(&self, trail: &[String]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.query);
        query.extend_pairs(trail.iter().map(|mark| (MARK, mark)));
        let query = query.finish();
        if query.is_empty() { self.path.to_owned() } else { format!("{}?{query}", self.path) }
    }
}

/// The pagination links with the position and total; empty for a single page.
pub(crate) fn pages(list: &Pages<'_>) -> Markup {
    let first = list.page_size * list.trail.len() as u64;
    let (before, _) = list.trail.split_at(list.trail.len().saturating_sub(1));
    let after = list.next.as_ref().map(|next| [list.trail.as_slice(), std::slice::from_ref(next)].concat());
    html! {
        @if !list.trail.is_empty() || list.next.is_some() {
            nav.pages aria-label="Pages" {
                @if !list.trail.is_empty() { a.button rel="prev" href=(list.address(before)) { "Previous" } }
                span {
                    (words::grouped(first + 1)) "–" (words::grouped(first + list.shown as u64))
                    @if list.total > 0 { " of " (words::grouped(list.total)) }
                }
                @if let Some(after) = &after { a.button rel="next" href=(list.address(after)) { "Next" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trail: &[&str], next: Option<&str>) -> String {
        let list = Pages {
            path: "/w/1/trash",
            query: &[("kind", "file")],
            trail: trail.iter().map(ToString::to_string).collect(),
            next: next.map(ToOwned::to_owned),
            total: 120,
            page_size: 50,
            shown: 50,
        };
        pages(&list).into_string()
    }

    #[test]
    fn a_list_has_a_way_on_and_a_way_back() {
        assert_eq!(of(&[], None), "");
        let first = of(&[], Some("m1"));
        assert!(first.contains("1–50 of 120") && !first.contains("Previous"), "{first}");
        assert!(first.contains("href=\"/w/1/trash?kind=file&amp;from=m1\""), "{first}");
        let second = of(&["m1"], Some("m2"));
        assert!(second.contains("51–100 of 120"), "{second}");
        assert!(second.contains("href=\"/w/1/trash?kind=file\""), "{second}");
        assert!(second.contains("from=m1&amp;from=m2"), "{second}");
        assert!(!of(&["m1", "m2"], None).contains("Next"));
    }

    #[test]
    fn a_table_is_told_and_scrolls_by_keys() {
        let html = table("Tokens", &["Name", ""], &html! {}).into_string();
        for part in ["role=\"region\"", "tabindex=\"0\"", "<caption", "scope=\"col\"", "<td></td>"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}

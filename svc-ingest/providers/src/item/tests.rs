use super::*;

fn entry(id: &str, title: &str) -> Entry {
    Entry::new(ExternalId::new(id).unwrap(), Version::new("1"), title)
}

#[test]
fn an_id_fits_into_a_key() {
    assert!(ExternalId::new("x".repeat(2_048)).is_ok());
    for odd in [String::new(), "x".repeat(2_049), "a\0b".to_owned(), "x".repeat(10_000)] {
        assert_eq!(ExternalId::new(odd), Err(InvalidExternalId));
    }
}

#[test]
fn a_version_is_short_and_differs_when_it_differed() {
    assert_eq!(Version::new("\"abc\"").as_str(), "\"abc\"");
    let (one, other) = (Version::new("x".repeat(129)), Version::new("x".repeat(130)));
    assert_ne!(one, other);
    assert!(one.as_str().len() <= 128);
    assert_eq!(one, Version::new("x".repeat(129)));
    assert_eq!(Version::new(one.as_str()), one, "what was kept is read again");
}

#[test]
fn a_title_is_one_line_of_bounded_length_and_never_empty() {
    assert_eq!(entry("a", " two\n\twords\u{7} ").title, "two words");
    assert_eq!(entry("docs/guide.md", "").title, "guide.md");
    assert_eq!(entry("docs/", "\u{1}").title, "docs");
    assert_eq!(entry("/", " ").title, "/");
    assert_eq!(entry("\u{1}", "").title, "untitled");
    assert_eq!(entry("a", &"x".repeat(1_000_000)).title.chars().count(), 500);
    assert_eq!(entry("a", &"é ".repeat(1_000_000)).title.chars().count(), 499);
}

#[test]
fn a_page_is_bounded() {
    let then = || Then::End { next: Position::new(1, &()).unwrap(), partial: Vec::new() };
    let items = |count: usize| vec![Item::from(entry("a", "")); count];
    assert!(Page::new(items(10_000), Vec::new(), then()).is_ok());
    assert!(matches!(Page::new(items(10_001), Vec::new(), then()), Err(Fault::Broken(_))));
    let one_fault = vec![ItemFault::unusable_id("x")];
    assert!(Page::new(items(10_000), one_fault, then()).is_err());
}

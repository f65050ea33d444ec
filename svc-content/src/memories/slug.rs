//! Slugs: names of memories for URLs and paths.

use cairn_proto::domain::limits::SLUG_CHARS;
use cairn_proto::ids::MemoryId;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Leaves room for a numeric suffix.
const MAX_DERIVED: usize = 80;
/// For a name without any character that a slug can contain.
const FALLBACK: &str = "memory";

/// Lowercase letters and digits, in groups separated by single hyphens. Text in the form of an id is rejected as
/// ambiguous.
pub(super) fn is_valid(slug: &str) -> bool {
    let is_group = |group: &str| {
        !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    slug.len() <= SLUG_CHARS && slug.split('-').all(is_group) && slug.parse::<MemoryId>().is_err()
}

/// The slug derived from a name.
pub(super) fn derive(name: &str) -> String {
    let plain = name.nfkd().filter(|letter| !is_combining_mark(*letter)).flat_map(char::to_lowercase);
    let mut slug = String::new();
    for letter in plain {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= MAX_DERIVED {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { FALLBACK.to_owned() } else { slug.to_owned() }
}

/// The slug itself, or with the first free numeric suffix from 2 on.
pub(super) fn first_free(base: &str, taken: &[String]) -> String {
    let is_free = |slug: &str| is_valid(slug) && !taken.iter().any(|one| one == slug);
    if is_free(base) {
        return base.to_owned();
    }
    // One candidate more than there are taken slugs always includes a free one.
    let numbered = (2..).take(taken.len() + 1).map(|number| format!("{base}-{number}"));
    let mut free = numbered.filter(|slug| is_free(slug));
    free.next().unwrap_or_else(|| base.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_suggests_its_slug() {
        for (name, slug) in [
            ("Release process", "release-process"),
            ("  CI/CD -- how & why!  ", "ci-cd-how-why"),
            ("Übersicht für Köche", "ubersicht-fur-koche"),
            ("ﬁne ２", "fine-2"),
            ("日本", "memory"),
            ("---", "memory"),
        ] {
            assert_eq!(derive(name), slug);
            assert!(is_valid(slug));
        }
        assert_eq!(derive(&"abc ".repeat(100)).len(), 79, "no hyphen at the end");
        assert!(derive(&"a".repeat(500)).len() <= MAX_DERIVED);
    }

    #[test]
    fn a_number_makes_it_free() {
        let taken = |slugs: &[&str]| slugs.iter().map(|slug| (*slug).to_owned()).collect::<Vec<_>>();
        assert_eq!(first_free("a", &[]), "a");
        assert_eq!(first_free("a", &taken(&["a-2"])), "a");
        assert_eq!(first_free("a", &taken(&["a", "a-3", "a-b"])), "a-2");
        assert_eq!(first_free("a", &taken(&["a", "a-2", "a-3"])), "a-4");
        let id = "0199c0de-0000-7000-8000-000000000001";
        assert_eq!(first_free(id, &[]), format!("{id}-2"));
    }

    #[test]
    fn a_slug_has_one_form() {
        for good in ["a", "a-1", "2024-plan", &"a".repeat(100)] {
            assert!(is_valid(good), "{good}");
        }
        let id = "0199c0de-0000-7000-8000-000000000001";
        for odd in ["", "-", "a-", "-a", "a--b", "A", "ä", "a b", "a_b", "a\0", id, &"a".repeat(101)] {
            assert!(!is_valid(odd), "{odd}");
        }
    }
}

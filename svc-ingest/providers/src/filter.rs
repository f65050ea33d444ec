//! Filters the paths of a source.

use std::path::Path;

#[cfg(test)]
use cairn_chassis::status::Violation;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::settings::Fields;

/// The patterns `include` and `exclude`, in the syntax of `.gitignore`: `*.md`, `docs/`, `/drafts/**`.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// Without patterns, everything matches.
    include: Gitignore,
    exclude: Gitignore,
}

impl Filter {
    /// Parses `include` and `exclude`. `None` after a violation.
    pub(crate) fn of(settings: &mut Fields<'_>) -> Option<Self> {
        let include = patterns(settings, "include");
        let exclude = patterns(settings, "exclude");
        Some(Self { include: include?, exclude: exclude? })
    }

    /// Whether the file at that path is included.
    pub(crate) fn takes(&self, path: &str) -> bool {
        let is_included = self.include.is_empty() || matches(&self.include, path, false);
        is_included && !matches(&self.exclude, path, false)
    }

    /// Whether nothing below that folder is included.
    pub(crate) fn leaves_out_folder(&self, path: &str) -> bool {
        matches(&self.exclude, path, true)
    }
}

fn matches(patterns: &Gitignore, path: &str, is_folder: bool) -> bool {
    // Object keys may begin with a slash; the matcher requires relative paths.
    let path = Path::new(path.trim_start_matches('/'));
    !path.as_os_str().is_empty() && patterns.matched_path_or_any_parents(path, is_folder).is_ignore()
}

fn patterns(settings: &mut Fields<'_>, name: &'static str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    let mut problems = Vec::new();
    for (index, pattern) in settings.texts(name).iter().enumerate() {
        let is_plain = !pattern.starts_with(['!', '#']);
        if !is_plain || builder.add_line(None, pattern).is_err() {
            problems.push(index);
        }
    }
    let built = builder.build();
    let is_good = problems.is_empty() && built.is_ok();
    for index in problems {
        settings.refuse(
            &format!("{name}[{index}]"),
            "invalid_value",
            "must be a pattern such as *.md or docs/**",
        );
    }
    if built.is_err() {
        settings.refuse(name, "too_complex", "these patterns are too many or too complex together");
    }
    built.ok().filter(|_| is_good)
}

/// A filter for tests; the violations otherwise.
#[cfg(test)]
pub(crate) fn filter(settings: &serde_json::Value) -> Result<Filter, Vec<Violation>> {
    let mut fields = Fields::new("settings", Some(settings));
    match Filter::of(&mut fields) {
        Some(filter) => Ok(filter),
        None => Err(fields.finish()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_read_as_those_of_a_gitignore() {
        let filter =
            filter(&json!({ "include": ["*.md", "/docs/"], "exclude": ["drafts/", "*.secret.md"] })).unwrap();
        for taken in ["a.md", "deep/er/a.md", "docs/a.txt", "docs/b/c.bin", "/a.md", "//a.md"] {
            assert!(filter.takes(taken), "{taken}");
        }
        for left in
            ["a.txt", "deep/docs/a.txt", "drafts/a.md", "docs/drafts/a.txt", "a.secret.md", "", "/", ".."]
        {
            assert!(!filter.takes(left), "{left}");
        }
        assert!(filter.leaves_out_folder("docs/drafts") && !filter.leaves_out_folder("docs"));
    }

    #[test]
    fn without_patterns_everything_is_taken() {
        let filter = filter(&json!({})).unwrap();
        assert!(filter.takes("a") && filter.takes("b/c") && !filter.leaves_out_folder("b"));
    }

    #[test]
    fn a_pattern_that_is_none_is_named() {
        let paths =
            |settings| filter(&settings).unwrap_err().into_iter().map(|one| one.path).collect::<Vec<_>>();
        assert_eq!(
            paths(json!({ "include": ["a", "[z-a]"], "exclude": ["!b"] })),
            ["settings.include[1]", "settings.exclude[0]"]
        );
    }
}

//! File names in an export: a title and an id.

/// A parsed name: `Title 0123…def`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportName {
    pub(super) title: String,
    /// 32 hexadecimal digits, in lower case.
    pub(super) id: Option<String>,
}

impl ExportName {
    /// Parses a name without its extension.
    pub(super) fn of(stem: &str) -> Self {
        let split =
            stem.len().checked_sub(32).and_then(|place| Some((stem.get(..place)?, stem.get(place..)?)));
        match split {
            Some((title, id)) if is_id(id) && (title.is_empty() || title.ends_with(' ')) => {
                Self { title: or_untitled(title.trim()), id: Some(id.to_ascii_lowercase()) }
            }
            _ => Self { title: or_untitled(stem.trim()), id: None },
        }
    }
}

fn or_untitled(title: &str) -> String {
    if title.is_empty() { "Untitled".to_owned() } else { title.to_owned() }
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The id at the end of the last segment of a link's path.
pub(super) fn id_of_link(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let stem =
        ["_all.csv", ".md", ".csv", ".html"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let id = stem.get(stem.len().checked_sub(32)?..)?;
    is_id(id).then(|| id.to_ascii_lowercase())
}

/// Whether a name is meaningless to people: an id, or the default name of an export.
pub(super) fn is_technical(name: &str) -> bool {
    let bare: String = name.chars().filter(|char| *char != '-').collect();
    let has_id = bare.split(|char: char| !char.is_ascii_hexdigit()).any(|digits| digits.len() >= 32);
    has_id || name.starts_with("Export")
}

/// Case-folded letters and digits: the part of a title that survives in a file name.
pub(super) fn bare(title: &str) -> String {
    crate::text::fold(title).chars().filter(|char| char.is_alphanumeric()).collect()
}

/// The title of a page: its heading, if the file name is truncated.
pub(super) fn title(named: &str, heading: Option<&str>) -> String {
    let Some(heading) = heading.filter(|heading| bare(heading).len() > bare(named).len()) else {
        return named.to_owned();
    };
    // Notion truncates names, and drops characters that are not allowed in file names.
    if named != "Untitled" && !bare(heading).starts_with(&bare(named)) {
        return named.to_owned();
    }
    heading
        .chars()
        .map(|char| if char == '/' || char.is_control() { '-' } else { char })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// The heading of a page, and the offset of the text after it.
pub(super) fn heading(text: &str) -> (Option<&str>, usize) {
    let line = text.split_inclusive('\n').next().unwrap_or_default();
    match line.strip_prefix("# ").map(str::trim) {
        Some(heading) => (Some(heading).filter(|heading| !heading.is_empty()), line.len()),
        None if line.trim_end() == "#" => (None, line.len()),
        None => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn names_end_in_ids() {
        assert_eq!(
            ExportName::of(&format!("My page {ID}")),
            ExportName { title: "My page".into(), id: Some(ID.into()) }
        );
        assert_eq!(ExportName::of(ID), ExportName { title: "Untitled".into(), id: Some(ID.into()) });
        assert_eq!(ExportName::of("photo"), ExportName { title: "photo".into(), id: None });
        assert_eq!(ExportName::of(&format!("x{ID}")).id, None);
        assert_eq!(ExportName::of("ä".repeat(40).as_str()).id, None);
    }

    #[test]
    fn links_are_known_by_the_id_that_ends_them() {
        for link in [
            format!("a/Tasks {ID}.md"),
            format!("Tasks {ID}_all.csv"),
            format!("https://www.notion.so/My-page-{ID}"),
        ] {
            assert_eq!(id_of_link(&link).as_deref(), Some(ID), "{link}");
        }
        assert_eq!(id_of_link("a/b.md"), None);
    }

    #[test]
    fn a_heading_is_the_title_where_the_name_is_cut() {
        assert_eq!(title("A long", Some("A long: title/name")), "A long: title-name");
        assert_eq!(title("Other", Some("A long title")), "Other");
        assert_eq!(title("Same", Some("Same")), "Same");
        assert_eq!(title("Same", None), "Same");
        assert_eq!(heading("# One\n\ntext"), (Some("One"), 6));
        assert_eq!(heading("text"), (None, 0));
    }

    #[test]
    fn technical_names_name_no_folder() {
        for name in
            [ID, "Export-3b0d1f6e", "5f2b1c1e-8a5b-4e0c-9c8e-2f9d3a7b6c5d_ExportBlock", "ExportBlock-1"]
        {
            assert!(is_technical(name), "{name}");
        }
        for name in ["My notes", "project&task", "facade"] {
            assert!(!is_technical(name), "{name}");
        }
    }
}

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::archive::testing::{Raw, archive, texts};

const LIMITS: Limits = Limits { folders: 99, asset_bytes: 1_000 };

/// A vault that was planned.
struct Vault {
    archive: Archive<Cursor<Vec<u8>>>,
    plan: Plan,
}

impl Vault {
    fn of_bytes(bytes: Vec<u8>) -> Result<Self, ArchiveError> {
        let mut archive = Archive::open(Cursor::new(bytes))?;
        let plan = obsidian(&mut archive, "My vault.zip", &LIMITS)?;
        Ok(Self { archive, plan })
    }

    fn of(files: &[(&str, &str)]) -> Self {
        Self::of_bytes(texts(files)).unwrap()
    }

    fn content(&mut self, path: &str) -> Content {
        let item = (0..self.plan.items.len()).find(|item| self.plan.path(*item) == path).unwrap();
        self.plan.content(&mut self.archive, item).unwrap().unwrap()
    }

    /// The text of a file in which the id of an item is its name.
    fn filled(&mut self, path: &str) -> String {
        let content = self.content(path);
        let plan = &self.plan;
        content.fill(|item| plan.address(item, &plan.items[item].name))
    }

    fn paths(&self) -> Vec<String> {
        (0..self.plan.items.len()).map(|item| self.plan.path(item)).collect()
    }

    fn warned(&self) -> Vec<(&str, &str)> {
        self.plan.warnings.iter().map(|warning| (warning.path.as_str(), warning.code.as_str())).collect()
    }
}

/// A note that links, as it is written to the workspace, beside `Note.md`, `dir/Deep.md` and `img.png`.
fn rewritten(text: &str) -> String {
    let files =
        [("a.md", text), ("Note.md", ""), ("dir/Deep.md", ""), ("dir/img.png", "p"), ("dir/b c.md", "")];
    Vault::of(&files).filled("a.md")
}

#[test]
fn files_become_what_their_extension_says_and_folders_come_before_them() {
    let vault =
        Vault::of(&[("n/a.md", ""), ("n/c.canvas", "{}"), ("b.base", ""), ("t.csv", ""), ("n/d/p.png", "p")]);
    assert_eq!(vault.paths(), ["b.base", "n", "n/a.md", "n/c.canvas", "n/d/p.png", "t.csv"]);
    let counts = vault.plan.counts;
    assert_eq!((counts.files, counts.folders, counts.assets), (4, 1, 1));
    assert_eq!(vault.plan.items[2].parent, Some(1));
    assert!(matches!(vault.plan.items[4].kind, ItemKind::Asset { media_type: "image/png", .. }));
    assert_eq!(vault.plan.identity(2), "n/a.md");
}

#[test]
fn the_import_is_named_after_the_top_folder_else_after_the_file() {
    let root = |names: &[&str]| {
        let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        let vault = Vault::of(&files);
        (vault.plan.root.clone(), vault.paths())
    };
    assert_eq!(root(&["Top/a.md", "Top/b.md"]), ("Top".into(), vec!["a.md".into(), "b.md".into()]));
    assert_eq!(root(&["a.md", "b/c.md"]).0, "My vault");
    assert_eq!(
        root(&[".obsidian/app.json", "Notes/a.md"]),
        ("My vault".into(), vec!["Notes".into(), "Notes/a.md".into()])
    );
    assert_eq!(
        root(&["Top/Vault/.obsidian/app.json", "Top/Vault/a.md"]),
        ("Top".into(), vec!["a.md".into()])
    );
    assert_eq!(root(&["Top/V/.obsidian/x", "Top/V/a.md", "Top/b.md"]).1, ["V", "V/a.md", "b.md"]);
}

#[test]
fn wikilinks_to_notes_become_links_to_files() {
    for (written, expected) in [
        ("[[Note]]", "[Note](/file/Note.md)"),
        ("[[note|an alias]]", "[an alias](/file/Note.md)"),
        ("[[dir/Deep]]", "[dir/Deep](/file/Deep.md)"),
        ("[[Note#A heading]]", "[Note > A heading](/file/Note.md#A%20heading)"),
        ("[[Note#One#Two]]", "[Note > One > Two](/file/Note.md#Two)"),
        ("[[Note#^block-1]]", "[Note > ^block-1](/file/Note.md#^block-1)"),
        ("[[Note#One|x]]", "[x](/file/Note.md#One)"),
        ("[[#Heading here]]", "[Heading here](#Heading%20here)"),
        ("[[img.png]]", "[img.png](/api/assets/img.png/content)"),
        ("[[Note|a [b] c]]", "[a [b] c](/file/Note.md)"),
        ("[[Note|a) ](b]]", "[a) \\](b](/file/Note.md)"),
    ] {
        assert_eq!(rewritten(written), expected, "{written}");
    }
}

#[test]
fn embeds_keep_their_mark() {
    for (written, expected) in [
        ("![[img.png]]", "![img.png](/api/assets/img.png/content)"),
        ("![[dir/img.png]]", "![img.png](/api/assets/img.png/content)"),
        ("![[img.png|300]]", "![300](/api/assets/img.png/content)"),
        ("![[img.png|an alias]]", "![an alias](/api/assets/img.png/content)"),
        ("![[img.png#page=3]]", "![img.png](/api/assets/img.png/content#page=3)"),
        ("![[Note]]", "![Note](/file/Note.md)"),
        ("![[Note#H 1]]", "![Note > H 1](/file/Note.md#H%201)"),
    ] {
        assert_eq!(rewritten(written), expected, "{written}");
    }
}

#[test]
fn markdown_links_with_a_relative_target_are_treated_alike() {
    for (written, expected) in [
        ("[x](dir/b%20c.md#H)", "[x](/file/b c.md#H)"),
        ("[x](<dir/b c.md> \"t\")", "[x](</file/b c.md> \"t\")"),
        ("![alt](dir/img.png)", "![alt](/api/assets/img.png/content)"),
        ("[![alt](img.png)](Note.md)", "[![alt](/api/assets/img.png/content)](/file/Note.md)"),
        ("[x][r]\n\n[r]: Note.md \"t\"", "[x][r]\n\n[r]: /file/Note.md \"t\""),
        (
            "[x](https://a.b/Note.md) [y](#H) [z](mailto:a@b.c)",
            "[x](https://a.b/Note.md) [y](#H) [z](mailto:a@b.c)",
        ),
    ] {
        assert_eq!(rewritten(written), expected, "{written}");
    }
}

#[test]
fn nothing_is_replaced_in_code_or_front_matter() {
    let text = "---\nup: \"[[Note]]\"\n---\n`[[Note]]` ``[x](Note.md)``\n\n```md\n[[Note]]\n```\n~~~\n[x](Note.md)\n~~~\n\n    [[Note]]\n";
    assert_eq!(rewritten(text), text);
    assert_eq!(
        rewritten("```\n[[Note]]\n```\r\n[[Note]]\r\n"),
        "```\n[[Note]]\n```\r\n[Note](/file/Note.md)\r\n"
    );
}

#[test]
fn bars_of_new_links_are_escaped_in_tables() {
    let table = |cell: &str| format!("| a | b |\n|---|---|\n| {cell} | c |\n");
    assert_eq!(rewritten(&table("[[Note\\|x]]")), table("[x](/file/Note.md)"));
    assert_eq!(
        rewritten(&table("![[img.png\\|alt\\|100]]")),
        table("![alt\\|100](/api/assets/img.png/content)")
    );
    assert_eq!(rewritten("![[img.png|alt|100]]"), "![alt|100](/api/assets/img.png/content)");
}

#[test]
fn links_that_lead_nowhere_stay_and_are_listed_with_their_line() {
    let text = "---\na: 1\n---\n[[Missing#H|x]]\n\n[y](gone%20away.md) [[Note]]";
    let vault = Vault::of(&[("a.md", text), ("Note.md", "")]);
    let listed: Vec<_> = vault
        .plan
        .unresolved
        .iter()
        .map(|l| (l.item, l.line, l.target.as_str(), l.reason.as_str()))
        .collect();
    let a = vault.paths().iter().position(|path| path == "a.md").unwrap();
    assert_eq!(listed, [(a, 4, "Missing#H", "not_found"), (a, 6, "gone%20away.md", "not_found")]);
    let counts = vault.plan.counts;
    assert_eq!((counts.links, counts.links_resolved, counts.links_unresolved), (3, 1, 2));
    assert!(vault.plan.warnings.is_empty());
    assert!(rewritten(text).contains("[[Missing#H|x]]\n\n[y](gone%20away.md) [Note](/file/Note.md)"));
}

#[test]
fn a_link_to_several_is_replaced_and_listed() {
    let mut vault = Vault::of(&[("a.md", "[[N]]"), ("x/N.md", ""), ("y/N.md", "")]);
    assert_eq!(vault.filled("a.md"), "[N](/file/N.md)");
    assert_eq!(vault.plan.unresolved[0].reason, UnresolvedReason::Ambiguous);
    assert_eq!((vault.plan.counts.links_resolved, vault.plan.counts.links_unresolved), (1, 0));
}

#[test]
fn aliases_lead_to_their_note() {
    let mut vault = Vault::of(&[
        ("a.md", "[[Nick]] [[Shared]]"),
        ("b.md", "---\naliases: [Nick, Shared]\n---\n"),
        ("c.md", "---\nalias: shared\n---\n"),
    ]);
    assert_eq!(vault.filled("a.md"), "[Nick](/file/b.md) [[Shared]]");
    assert_eq!(vault.plan.unresolved[0].reason, UnresolvedReason::Ambiguous);
}

#[test]
fn tags_come_from_front_matter_and_text() {
    let text = "---\ntags: [One, '#two/x', 2024]\n---\n#three and #one `#code` [[Note#four]] https://a.b/#five\n# Heading\n";
    let mut vault = Vault::of(&[("a.md", text), ("t.txt", "#none")]);
    assert_eq!(vault.content("a.md").tags, ["One", "two/x", "three"]);
    assert_eq!(vault.content("t.txt").tags, [""; 0]);
    let many: String = (0..51).map(|number| format!("#t{number} ")).collect();
    assert_eq!(Vault::of(&[("a.md", &many)]).warned(), [("a.md", "tags_truncated")]);
}

#[test]
fn broken_front_matter_stays_with_a_warning() {
    let text = "---\na: [\n---\n[[Note]]";
    let mut vault = Vault::of(&[("a.md", text), ("Note.md", "")]);
    assert_eq!(vault.filled("a.md"), "---\na: [\n---\n[Note](/file/Note.md)");
    assert_eq!(vault.warned(), [("a.md", "front_matter_invalid")]);
}

#[test]
fn what_cannot_be_imported_is_left_out_alone() {
    let entries = [
        Raw { crc: Some(1), ..Raw::new("corrupt.md", "x") },
        Raw { crc: Some(1), ..Raw::new("corrupt.png", "x") },
        Raw::new("large.md", vec![b'a'; crate::MAX_TEXT_BYTES + 1]),
        Raw::new("large.png", vec![b'a'; 1_001]),
        Raw::new("latin.md", b"caf\xE9"),
        Raw::new("good.md", "[[corrupt]]"),
    ];
    let mut vault = Vault::of_bytes(archive(&entries)).unwrap();
    assert_eq!(vault.paths(), ["good.md", "latin.md"]);
    assert_eq!(
        vault.warned(),
        [
            ("corrupt.md", "entry_corrupt"),
            ("corrupt.png", "entry_corrupt"),
            ("large.md", "too_large"),
            ("large.png", "too_large"),
            ("latin.md", "text_encoding"),
        ]
    );
    assert_eq!(vault.filled("good.md"), "[[corrupt]]");
    assert_eq!(vault.content("latin.md").text, "caf\u{FFFD}");
}

#[test]
fn an_archive_without_content_is_refused() {
    for files in [&[][..], &[(".obsidian/app.json", "{}")], &[("../a.md", "x")], &[("folder/", "")]] {
        let error = Vault::of_bytes(texts(files)).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), Some("nothing_to_import"));
    }
}

#[test]
fn a_link_to_an_item_that_was_not_made_stays() {
    let mut vault = Vault::of(&[("a.md", "[[Note]] ![[p.png]]"), ("Note.md", ""), ("p.png", "p")]);
    let content = vault.content("a.md");
    let plan = &vault.plan;
    let filled = content.fill(|item| plan.address(item, "1").filter(|address| address.starts_with("/file/")));
    assert_eq!(filled, "[Note](/file/1) ![[p.png]]");
}

#[test]
fn a_note_of_nothing_but_links_is_bounded() {
    let vault = Vault::of(&[("a.md", &"[[a]]".repeat(60_000)), ("b.md", &"[[a]]".repeat(300_000))]);
    assert_eq!(vault.warned(), [("a.md", "links_truncated"), ("b.md", "links_truncated")]);
    assert_eq!(vault.plan.counts.links_resolved, MAX_LINKS);
}

/// Texts that are full of what links are made of.
fn any_note() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[[",
        "]]",
        "![[",
        "|",
        "#",
        "Note",
        "Gone",
        "[x](",
        ")",
        "`",
        "```\n",
        "\n",
        "\r\n",
        "---\n",
        "| a |\n|---|\n",
        "é",
        "\\",
        " ",
        "    ",
        "<",
        ">",
        "tags: a",
        "[r]: ",
        "!",
        "^",
        "(",
        "%20",
        "\u{0}",
        "😀",
        "#tag",
        "&amp;",
        "> ",
        "- ",
        "$",
        "%%",
        "<!--",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn everything_but_links_stays_byte_for_byte(text in any_note()) {
        let clean = text.replace('\0', "");
        let mut vault = Vault::of(&[("a.md", &text), ("Note.md", "")]);
        let content = vault.content("a.md");
        prop_assert_eq!(&content.text, &clean);
        // Without ids, only places in the same text are replaced.
        let own: Vec<_> = content.links.iter().filter(|link| link.target.is_none()).cloned().collect();
        let expected = Content { links: own, ..content.clone() }.fill(|_| None);
        prop_assert_eq!(content.fill(|_| None), expected);
        let filled = content.fill(|_| Some("/file/id".to_owned()));
        let mut rest = filled.as_str();
        let mut done = 0;
        for link in &content.links {
            let kept = &clean[done..link.range.start];
            rest = rest.strip_prefix(kept).unwrap();
            let new = format!("{}{}{}", link.before, link.target.map_or("", |_| "/file/id"), link.after);
            rest = rest.strip_prefix(new.as_str()).unwrap();
            done = link.range.end;
        }
        prop_assert_eq!(rest, &clean[done..]);
        let begin = front_matter::read(&clean).end;
        prop_assert!(content.links.iter().all(|link| link.range.start >= begin));
    }

    #[test]
    fn any_bytes_are_planned_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), name in ".{0,20}") {
        let entries = [Raw::new(name.as_bytes(), &bytes), Raw::new("a.md", &bytes)];
        if let Ok(mut vault) = Vault::of_bytes(archive(&entries)) {
            for item in 0..vault.plan.items.len() {
                let _ = vault.plan.content(&mut vault.archive, item);
            }
        }
    }
}

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::archive::testing::{Raw, archive, texts};
use crate::plan::{PropertyKind, Value};

const LIMITS: Limits = Limits { folders: 99, asset_bytes: 1_000 };

/// An id that ends in this digit.
fn id(digit: char) -> String {
    format!("0123456789abcdef0123456789abcde{digit}")
}

/// An export that was planned.
struct Export {
    archive: Archive<Cursor<Vec<u8>>>,
    plan: Plan,
}

impl Export {
    fn of_bytes(bytes: Vec<u8>, name: &str) -> Result<Self, ArchiveError> {
        let mut archive = Archive::open(Cursor::new(bytes))?;
        let parts = archive.parts();
        for part in &parts {
            let bytes = archive.read(*part, u64::MAX).unwrap();
            archive.add_part(Cursor::new(bytes))?;
        }
        let plan = notion(&mut archive, &parts, name, &LIMITS)?;
        Ok(Self { archive, plan })
    }

    /// Of these files; `{a}` stands for an id.
    fn of(files: &[(&str, &str)]) -> Self {
        let files: Vec<(String, String)> =
            files.iter().map(|(name, text)| (with_ids(name), with_ids(text))).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Self::of_bytes(texts(&files), "Export-1.zip").unwrap()
    }

    fn item(&self, path: &str) -> usize {
        (0..self.plan.items.len())
            .find(|item| self.plan.path(*item) == path && self.plan.items[*item].kind != ItemKind::Folder)
            .unwrap_or_else(|| panic!("no {path} in {:?}", self.paths()))
    }

    fn filled(&mut self, path: &str) -> String {
        let item = self.item(path);
        let content = self.plan.content(&mut self.archive, item).unwrap().unwrap();
        let plan = &self.plan;
        content.fill(|item| plan.address(item, &plan.items[item].name))
    }

    fn paths(&self) -> Vec<String> {
        let shown = |item: &usize| !matches!(self.plan.items[*item].kind, ItemKind::Record { .. });
        (0..self.plan.items.len()).filter(shown).map(|item| self.plan.path(item)).collect()
    }

    fn properties(&self, path: &str) -> Vec<(String, PropertyKind)> {
        let ItemKind::Database { properties, .. } = &self.plan.items[self.item(path)].kind else {
            panic!("{path} is no database");
        };
        properties.iter().map(|property| (property.name.clone(), property.kind.clone())).collect()
    }

    fn records(&mut self, path: &str) -> Vec<(usize, Vec<(usize, Value)>)> {
        let item = self.item(path);
        let mut records = Vec::new();
        self.plan
            .records(&mut self.archive, item, &mut |record, values| records.push((record, values)))
            .unwrap();
        records
    }

    fn warned(&self) -> Vec<&str> {
        self.plan.warnings.iter().map(|warning| warning.code.as_str()).collect()
    }
}

fn with_ids(text: &str) -> String {
    "abcdef".chars().fold(text.to_owned(), |text, digit| text.replace(&format!("{{{digit}}}"), &id(digit)))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn a_page_goes_into_the_folder_of_its_parent_under_its_title() {
    let export = Export::of(&[
        ("Home {a}.md", "# Home\n"),
        ("Home {a}/Child {b}.md", "# Child\n"),
        ("Home {a}/Child {b}/A very long title that {c}.md", "# A very long title that was cut: here/now\n"),
        ("Home/Later {d}.md", "# Later\n"),
    ]);
    assert_eq!(
        export.paths(),
        [
            "Home.md",
            "Home",
            "Home/Child.md",
            "Home/Child",
            "Home/Child/A very long title that was cut: here-now.md",
            "Home/Later.md"
        ]
    );
    assert_eq!(export.plan.identity(export.item("Home/Child.md")), id('b'));
    assert_eq!(export.plan.source(export.item("Home/Child.md")), with_ids("Home {a}/Child {b}.md"));
}

#[test]
fn pages_of_one_path_get_a_number_and_so_do_their_folders() {
    let export = Export::of(&[("P {a}.md", ""), ("P {b}.md", ""), ("P {b}/X {c}.md", "")]);
    assert_eq!(export.paths(), ["P.md", "P (2).md", "P (2)", "P (2)/X.md"]);
}

#[test]
fn folders_that_only_the_export_made_are_none_and_name_nothing() {
    let root = |names: &[&str], file: &str| {
        let names: Vec<String> = names.iter().map(|name| with_ids(name)).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let export = Export::of_bytes(texts(&files), file).unwrap();
        (export.plan.root.clone(), export.paths())
    };
    let a = || vec!["A.md".to_owned()];
    assert_eq!(root(&["Export-1b2c/A {a}.md"], "9f_Export-1b2c.zip"), ("9f_Export-1b2c".into(), a()));
    assert_eq!(
        root(&["Export-1b2c/Privat & Geteilt/A {a}.md"], &format!("{}_Export.zip", id('a'))),
        ("Notion".into(), a())
    );
    assert_eq!(root(&["My space/A {a}.md", "__MACOSX/x"], "Export.zip"), ("My space".into(), a()));
    assert_eq!(root(&["A {a}.md"], "Team.zip"), ("Team".into(), a()));
    assert_eq!(root(&["Home {a}.md", "Home {a}/A {b}.md"], "x.zip").1, ["Home.md", "Home", "Home/A.md"]);
}

#[test]
fn parts_are_one_export_and_archives_deeper_inside_are_attachments() {
    let part = |name: &str| texts(&[(with_ids(name).as_str(), "x")]);
    let outer = archive(&[
        Raw::new("ExportBlock-1-Part-1.zip", part("Private & Shared/A {a}.md")),
        Raw::new("ExportBlock-1-Part-2.zip", part("Private & Shared/A {a}/deep-Part-1.zip")),
    ]);
    let export = Export::of_bytes(outer, &format!("{}_ExportBlock.zip", id('b'))).unwrap();
    assert_eq!(
        (export.plan.root.as_str(), export.paths()),
        ("Notion", vec!["A.md".into(), with_ids("A {a}/deep-Part-1.zip")])
    );
    assert_eq!(export.plan.counts.assets, 1);
}

#[test]
fn a_table_of_all_rows_is_a_database_and_its_view_is_not() {
    let export = Export::of(&[
        (
            "Home {a}.md",
            "[Tasks](Home%20{a}/Tasks%20{b}.csv) [Tasks](Home%20{a}/Tasks%20{b}.md) [view](Home%20{a}/Tasks%20{d}.csv)",
        ),
        ("Home {a}/Tasks {b}.csv", "Name,Done\nOne,Yes\n"),
        ("Home {a}/Tasks {b}_all.csv", "\u{feff}Name,Done,Due\nOne,Yes,\nTwo,No,\n"),
        ("Home {a}/Tasks {d}.csv", "Name,Due\nOne,\n"),
        ("Home {a}/Other {e}.csv", "Name\nOne\n"),
        ("Home {a}/Tasks {c}.csv", "Name,Elsewhere\nOne,\n"),
    ]);
    assert_eq!(export.paths(), ["Home.md", "Home", "Home/Other", "Home/Tasks", "Home/Tasks"]);
    assert_eq!((export.plan.counts.databases, export.plan.counts.records), (3, 4));
    let ignored: Vec<_> =
        export.plan.ignored.iter().map(|ignored| (ignored.path.clone(), ignored.reason.as_str())).collect();
    assert_eq!(ignored.len(), 2);
    assert!(ignored.contains(&(with_ids("Home {a}/Tasks {b}.csv"), "linked_view")));
    assert!(ignored.contains(&(with_ids("Home {a}/Tasks {d}.csv"), "linked_view")));
    let mut export = export;
    assert_eq!(
        export.filled("Home.md"),
        "[Tasks](/databases/Tasks) [Tasks](/databases/Tasks) [view](/databases/Tasks)"
    );
}

#[test]
fn rows_have_values_pages_and_relations() {
    let mut export = Export::of(&[
        (
            "Tasks {a}_all.csv",
            "Task,Done,Blocked by,Files,When\nOne,Yes,Two (Tasks%20{a}/Two%20{c}.md),p.png,\"May 2, 2023 → May 3, 2023\"\nTwo,No,,,\n",
        ),
        (
            "Tasks {a}/One {b}.md",
            "# One\n\nDone: Yes\nWhen: May 2, 2023 → May 3, 2023\n\nThe text of [two](Two%20{c}.md).\n",
        ),
        ("Tasks {a}/Two {c}.md", "# Two\n\nDone: No"),
        ("Tasks {a}/Template {d}.md", "# Template\n\nDone: No\n"),
        ("p.png", "p"),
    ]);
    let database = export.item("Tasks");
    assert_eq!(
        export.properties("Tasks"),
        [
            ("Task".into(), PropertyKind::Text),
            ("Done".into(), PropertyKind::Boolean),
            ("Blocked by".into(), PropertyKind::Relation(database)),
            ("Files".into(), PropertyKind::Assets),
            ("When".into(), PropertyKind::Date),
            ("When (end)".into(), PropertyKind::Date),
        ]
    );
    let (one, two) = (export.item("Tasks/One.md"), export.item("Tasks/Two.md"));
    let records = export.records("Tasks");
    let [(first, values), (second, others)] = records.as_slice() else { panic!("{records:?}") };
    let png = export.item("p.png");
    assert_eq!(
        values.as_slice(),
        [
            (0, text("One")),
            (1, Value::Boolean(true)),
            (2, Value::Items(vec![*second])),
            (3, Value::Items(vec![png])),
            (4, Value::Date("2023-05-02".into())),
            (5, Value::Date("2023-05-03".into())),
        ]
    );
    assert_eq!(others.as_slice(), [(0, text("Two")), (1, Value::Boolean(false))]);
    assert_eq!(export.plan.items[*first].kind, ItemKind::Record { database, body: Some(one) });
    assert_eq!(export.plan.items[*second].kind, ItemKind::Record { database, body: Some(two) });
    assert_eq!(export.plan.identity(*first), id('b'));
    assert_eq!(export.filled("Tasks/One.md"), "# One\n\nThe text of [two](/file/Two.md).\n");
    assert_eq!(export.filled("Tasks/Two.md"), "# Two\n\n");
    assert_eq!(export.filled("Tasks/Template.md"), "# Template\n\nDone: No\n");
    assert_eq!(export.warned(), ["row_page_without_row"]);
    assert_eq!((export.plan.counts.properties, export.plan.counts.records), (6, 2));
}

#[test]
fn rows_without_a_page_are_known_by_title_and_number() {
    let mut export = Export::of(&[("T {a}.csv", "Name\nx\nx\n")]);
    let records = export.records("T");
    let ids: Vec<String> = records.iter().map(|(record, _)| export.plan.identity(*record)).collect();
    assert_eq!(ids, [with_ids("{a}/x/1"), with_ids("{a}/x/2")]);
}

#[test]
fn links_are_followed_by_path_then_by_id() {
    let mut export = Export::of(&[
        (
            "A {a}.md",
            "[b](A%20{a}/B%20{b}.md#h%201) ![i](A%20{a}/i%20(1).png) [n](https://www.notion.so/B-{b}?v=1)\n[moved](gone/B%20{b}.md) [x](gone.md) [w](https://a.b/c) [d](%25D0%2590.png)",
        ),
        ("A {a}/B {b}.md", "[up](../A%20{a}.md)"),
        ("A {a}/i (1).png", "i"),
        ("%D0%90.png", "p"),
    ]);
    assert_eq!(
        export.filled("A.md"),
        "[b](/file/B.md#h%201) ![i](/api/assets/i (1).png/content) [n](/file/B.md)\n[moved](/file/B.md) [x](gone.md) [w](https://a.b/c) [d](/api/assets/%D0%90.png/content)"
    );
    assert_eq!(export.filled("A/B.md"), "[up](/file/A.md)");
    let unresolved = &export.plan.unresolved;
    assert_eq!(unresolved.len(), 1);
    assert_eq!((unresolved[0].line, unresolved[0].target.as_str()), (2, "gone.md"));
    assert_eq!(export.plan.counts.links_resolved, 6);
}

#[test]
fn a_table_that_is_no_database_is_a_file() {
    let wide = format!("{}\n1\n", "a,".repeat(250));
    let export = Export::of(&[("Wide {a}.csv", &wide), ("attached.csv", "a,b\n")]);
    assert_eq!(export.paths(), ["Wide.csv", "attached.csv"]);
    assert_eq!((export.plan.counts.files, export.plan.counts.assets), (1, 1));
    assert_eq!(export.warned(), ["table_invalid"]);
}

#[test]
fn what_cannot_be_read_is_left_out_alone() {
    let name = |title: &str, digit| format!("{title} {}", id(digit));
    let entries = [
        Raw { crc: Some(1), ..Raw::new(name("A", 'a') + ".md", "x") },
        Raw { crc: Some(1), ..Raw::new(name("T", 'b') + "_all.csv", "x") },
        Raw::new("large.png", vec![b'a'; 1_001]),
        Raw::new(name("C", 'c') + ".md", "x"),
    ];
    let export = Export::of_bytes(archive(&entries), "x.zip").unwrap();
    assert_eq!(export.paths(), ["C.md"]);
    assert_eq!(export.warned(), ["entry_corrupt", "entry_corrupt", "too_large"]);
}

#[test]
fn pages_of_an_html_export_become_the_same_markdown() {
    let row = "<h1 class=page-title>One</h1><table class=properties><tr class='property-row property-row-select'><th>Status</th>\
        <td><span class=selected-value>Open</span></td></tr></table><div class=page-body><p>See <a href='../A%20{a}.html'>A</a></p></div>";
    let mut export = Export::of(&[
        ("index.html", "<h1>Our space</h1>"),
        (
            "A {a}.html",
            "<h1 class=page-title>A</h1><div class=page-body><p><a href='T%20{b}/One%20{c}.html'>One</a></p></div>",
        ),
        ("T {b}.csv", "Name,Status\nOne,Open\n"),
        ("T {b}/One {c}.html", row),
        ("attached.html", "<p>not a page</p>"),
    ]);
    assert_eq!(export.paths(), ["A.md", "T", "T/One.md", "attached.html", "T"]);
    assert_eq!(export.filled("A.md").trim_end(), "# A\n\n[One](/file/One.md)");
    assert_eq!(export.filled("T/One.md").trim_end(), "# One\n\nSee [A](/file/A.md)");
    assert_eq!(export.properties("T")[1], ("Status".into(), PropertyKind::Select(vec!["Open".into()])));
    assert_eq!(
        (export.plan.root.as_str(), export.plan.ignored[0].reason),
        ("Our space", IgnoredReason::Index)
    );
}

#[test]
fn an_export_without_content_is_refused() {
    let error = Export::of_bytes(texts(&[("index.html", "<html></html>"), ("__MACOSX/x", "")]), "x.zip")
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code(), Some("nothing_to_import"));
}

proptest! {
    #[test]
    fn any_tables_and_pages_are_planned_without_a_panic(
        table in "[a-cYes,\"\n ()→%0-9.]{0,80}",
        page in "(# a\n|\n|a: b\n|[x\\]\\(()T%20.md#]{0,5}){0,12}",
        title in "[a-cT ]{0,4}",
    ) {
        let files = [
            (format!("T {}_all.csv", id('a')), format!("a,b,c\n{table}")),
            (format!("T {}/{title} {}.md", id('a'), id('b')), page.clone()),
            (format!("T {}.csv", id('c')), table),
            (format!("{title} {}.md", id('d')), page),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        if let Ok(mut export) = Export::of_bytes(texts(&files), "x.zip") {
            for item in 0..export.plan.items.len() {
                if let Ok(Some(content)) = export.plan.content(&mut export.archive, item) {
                    content.fill(|item| Some(item.to_string()));
                }
                let mut records = 0;
                export.plan.records(&mut export.archive, item, &mut |_, _| records += 1).unwrap();
                if matches!(export.plan.items[item].kind, ItemKind::Database { .. }) {
                    let of = |other: &&crate::plan::Item| matches!(other.kind, ItemKind::Record { database, .. } if database == item);
                    prop_assert_eq!(records, export.plan.items.iter().filter(of).count());
                }
            }
        }
    }
}

#[test]
fn a_part_that_is_missing_is_told() {
    let part = texts(&[("A 0123456789abcdef0123456789abcde1.md", "# A")]);
    let of = |names: &[&str], file: &str| {
        let parts: Vec<Raw> = names.iter().map(|name| Raw::new(name, &part)).collect();
        let export = Export::of_bytes(archive(&parts), file).unwrap();
        let warnings = export.plan.warnings.iter().filter(|one| one.code == WarningCode::PartMissing);
        warnings.map(|one| one.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&["X-Part-1.zip", "X-Part-2.zip"], "X.zip"), Vec::<String>::new());
    assert_eq!(of(&["X-Part-1.zip", "X-Part-4.zip"], "X.zip"), ["X-Part-2.zip", "X-Part-3.zip"]);
    assert_eq!(of(&["X/é-PART-3.ZIP"], "X.zip"), ["é-PART-1.zip", "é-PART-2.zip"]);
    assert_eq!(of(&["X-Part-4294967295.zip"], "X.zip").len(), 20);
    let alone = |file: &str| {
        let export = Export::of_bytes(part.clone(), file).unwrap();
        export.plan.warnings.iter().filter(|one| one.code == WarningCode::PartMissing).count()
    };
    assert_eq!((alone("X-Part-1.zip"), alone("X-Part-3.zip"), alone("X.zip")), (0, 2, 0));
}

use proptest::prelude::*;

use super::*;

fn sent(path: &str, content: &str) -> Sent {
    Sent { path: path.into(), content: content.into(), ..Sent::default() }
}

fn refused(name: &str, documents: Vec<Sent>) -> Vec<(String, String)> {
    match check(name, documents) {
        Err(Error::Invalid(wrong)) => wrong.into_iter().map(|one| (one.path, one.code)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn paths_that_lead_elsewhere_or_nowhere_are_refused() {
    let long = "x".repeat(256);
    let deep = format!("{}x", "a/".repeat(101));
    let odd = [
        ("", "required"),
        ("/a", "invalid"),
        ("\\a", "invalid"),
        ("\\\\host\\share\\a", "invalid"),
        ("C:\\a", "invalid"),
        ("c:/a", "invalid"),
        ("..", "invalid"),
        ("a/../b", "invalid"),
        ("a\\..\\b", "invalid"),
        ("a//b", "invalid"),
        ("a/", "invalid"),
        ("./a", "invalid"),
        (" /a", "invalid"),
        ("a\n", "invalid"),
        ("a\u{0}", "invalid"),
        ("\u{7f}", "invalid"),
        (long.as_str(), "too_long"),
        (deep.as_str(), "too_deep"),
    ];
    for (path, code) in odd {
        let expected = vec![("documents[1].path".to_owned(), code.to_owned())];
        assert_eq!(refused("s", vec![sent("fine", ""), sent(path, "")]), expected, "{path:?}");
    }
    let fine = ["a", "a b/c.md", "c:x", "a\\b", "…/é", "..a/b..", &"x".repeat(255), &deep[2..]];
    for path in fine {
        assert_eq!(check("s", vec![sent(path, "")]).unwrap().documents.len(), 1, "{path:?}");
    }
}

#[test]
fn both_normal_forms_are_one_path() {
    let twice = vec![sent("caf\u{e9}.md", ""), sent("cafe\u{301}.md", "")];
    assert_eq!(refused("s", twice), [("documents[1].path".to_owned(), "duplicate".to_owned())]);
    let checked = check("s", vec![sent("cafe\u{301}.md", "")]).unwrap();
    assert_eq!(checked.documents[0].path, "caf\u{e9}.md");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let large = "x".repeat(MAX_CONTENT_BYTES + 1);
    let documents = vec![sent("/a", "\0"), sent("b", &large), sent("b", "")];
    let expected = [
        ("name", "required"),
        ("documents[0].path", "invalid"),
        ("documents[0].content", "invalid"),
        ("documents[1].content", "too_long"),
        ("documents[2].path", "duplicate"),
    ];
    let expected: Vec<_> = expected.map(|(path, code)| (path.to_owned(), code.to_owned())).into();
    assert_eq!(refused(" ", documents), expected);
    assert_eq!(refused(&"n".repeat(101), vec![]), [("name".to_owned(), "too_long".to_owned())]);
    assert_eq!(refused("a\tb", vec![]), [("name".to_owned(), "invalid".to_owned())]);
    let many = (0..=MAX_DOCUMENTS).map(|number| sent(&number.to_string(), "")).collect();
    assert_eq!(refused("s", many), [("documents".to_owned(), "too_long".to_owned())]);
    let part = "x".repeat(MAX_CONTENT_BYTES);
    let heavy = (0..5).map(|number| sent(&number.to_string(), &part)).collect();
    assert_eq!(refused("s", heavy), [("documents".to_owned(), "too_long".to_owned())]);
}

#[test]
fn types_follow_extensions_and_what_does_not_parse_is_kept_with_a_warning() {
    let documents = vec![
        sent("a.MD", "# A"),
        sent("b.mdx", ""),
        sent("c.json", "{"),
        sent("d.yml", "a: ["),
        sent("e.yaml", "---\na: 1\n---\nb: 2\n"),
        sent("f", "x"),
        Sent { file_type: Some(FileType::Text), ..sent("g.json", "{") },
        sent("A.md", ""),
    ];
    let checked = check("s", documents).unwrap();
    let types: Vec<_> =
        checked.documents.iter().map(|document| (document.path.as_str(), document.file_type)).collect();
    let expected = [
        ("A.md", FileType::Markdown),
        ("a.MD", FileType::Markdown),
        ("b.mdx", FileType::Markdown),
        ("c.json", FileType::Json),
        ("d.yml", FileType::Yaml),
        ("e.yaml", FileType::Yaml),
        ("f", FileType::Text),
        ("g.json", FileType::Text),
    ];
    assert_eq!(types, expected);
    let notes: Vec<_> = checked.notes.iter().map(|note| (note.path.as_str(), note.code.as_str())).collect();
    assert_eq!(notes, [("a.MD", "case_clash"), ("c.json", "invalid_json"), ("d.yml", "invalid_yaml")]);
}

proptest! {
    #[test]
    fn no_manifest_panics_and_every_text_is_found_in_its_piece(
        paths in prop::collection::vec("[a-c]{1,2}(/[a-c]{1,2}){0,2}|.{0,6}", 0..8),
        text in ".{0,40}",
    ) {
        let documents = paths.iter().map(|path| sent(path, &format!("{path}{text}"))).collect();
        if let Ok(mut checked) = check("s", documents) {
            let (pieces, _) = piece_up(&mut checked.documents, &checked.texts, |_| true);
            for (document, text) in checked.documents.iter().zip(&checked.texts) {
                let place = document.text.unwrap();
                let from = place.offset as usize;
                let found = &pieces[place.piece as usize][from..from + document.bytes as usize];
                prop_assert_eq!(found, text.as_bytes());
            }
        }
    }
}

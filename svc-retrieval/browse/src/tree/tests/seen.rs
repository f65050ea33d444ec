//! What scopes see, and what memories hold.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::{FolderId, WorkspaceId};

use proptest::prelude::*;

use super::grown::{Model, step};
use super::*;
use crate::Indexed;
use crate::tree::lens::Lens;
use crate::tree::view::View;

/// Indexed so far, of what content has.
fn up_to(position: u64) -> Indexed {
    Indexed { content: Some(position), outside: None }
}

fn view(base: &Arc<Base>, scope: Option<&[u128]>) -> View {
    let listed: Option<Vec<FolderId>> =
        scope.map(|numbers| numbers.iter().map(|number| FolderId(id(*number))).collect());
    let lens = Arc::new(Lens::new(base, listed.as_deref()));
    View { workspace: WorkspaceId(id(99)), base: Arc::clone(base), lens, past: None }
}

/// Every path that the view shows, in the order of a walk.
fn shown(view: &View) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(Fixed::Root.node(), String::new())];
    while let Some((node, path)) = open.pop() {
        let mut names = Vec::new();
        for child in view.children(node).iter().rev() {
            assert_eq!(view.parent(*child), Some(node), "{path}");
            open.push((*child, format!("{path}/{}", view.name(*child))));
            names.push(view.name(*child).to_owned());
        }
        assert!(names.is_sorted_by(|one, other| one > other), "{names:?}");
        assert!(names.is_empty() || view.is_folder(node), "{path}");
        found.push(path);
    }
    found
}

fn find(view: &View, path: &str) -> Node {
    let steps = path.split('/').filter(|name| !name.is_empty());
    steps.fold(Fixed::Root.node(), |folder, name| {
        let found = view.children(folder).iter().find(|child| view.name(**child) == name);
        *found.unwrap_or_else(|| panic!("no {name} of {path}"))
    })
}

fn read(view: &View, path: &str) -> String {
    let text = view.text(find(view, path)).unwrap();
    assert_eq!(view.size(find(view, path)), text.len() as u64);
    String::from_utf8(text.to_vec()).unwrap()
}

/// Two teams with folders of the same name, their databases, and a memory of parts of both.
fn workspace() -> Arc<Base> {
    Arc::new(tree([
        folder(1, None, "Team"),
        folder(2, None, "Team"),
        folder(3, Some(1), "Inner"),
        folder(4, Some(2), "Secret"),
        file(10, Some(1), "plan.md", 11),
        file(11, Some(3), "deep.md", 12),
        file(12, Some(4), "hidden.md", 13),
        file(13, None, "root.md", 14),
        database(20, Some(3), "Tasks"),
        database(21, Some(4), "Tasks"),
        database(22, None, "Everybody"),
        record(30, 20, "Ship it", Some(11)),
        record(31, 20, "Paged elsewhere", Some(12)),
        record(32, 21, "Unseen", None),
        memory(
            40,
            "onboarding",
            &[
                (MemberKind::File, 11),
                (MemberKind::File, 12),
                (MemberKind::Folder, 1),
                (MemberKind::File, 11),
                (MemberKind::Database, 20),
                (MemberKind::Database, 21),
                (MemberKind::File, 77),
            ],
        ),
    ]))
}

#[test]
fn a_workspace_is_shown_whole() {
    let base = workspace();
    let whole = view(&base, None);
    let expected = [
        "",
        "/README.md",
        "/databases",
        "/databases/Everybody",
        "/databases/Everybody/_schema.md",
        "/databases/Tasks",
        "/databases/Tasks/Paged elsewhere.md",
        "/databases/Tasks/Ship it.md",
        "/databases/Tasks/_schema.md",
        "/databases/Tasks~00000005",
        "/databases/Tasks~00000005/Unseen.md",
        "/databases/Tasks~00000005/_schema.md",
        "/files",
        "/files/Team",
        "/files/Team/Inner",
        "/files/Team/Inner/deep.md",
        "/files/Team/plan.md",
        "/files/Team~00000002",
        "/files/Team~00000002/Secret",
        "/files/Team~00000002/Secret/hidden.md",
        "/files/root.md",
        "/memories",
        "/memories/onboarding",
        "/memories/onboarding/README.md",
        "/memories/onboarding/Team",
        "/memories/onboarding/Team/Inner",
        "/memories/onboarding/Team/Inner/deep.md",
        "/memories/onboarding/Team/plan.md",
        "/memories/onboarding/deep.md",
        "/memories/onboarding/hidden.md",
        "/sources",
        "/sources/README.md",
    ];
    assert_eq!(shown(&whole), expected);
    let readme = read(&whole, "/README.md");
    for line in [
        "| /files | files in their folders | 4 files, 4 folders |",
        "| 3 databases, 3 records |",
        "- /files/Team/ (2 files)",
        "- /memories/onboarding/: The onboarding. Use when: for onboarding",
        "- /databases/Tasks~00000005/ (1 record): about Tasks",
    ] {
        assert!(readme.contains(line), "{line} in {readme}");
    }
    let guide = read(&whole, "/memories/onboarding/README.md");
    for line in [
        "- Team/: the folder /files/Team/ (2 files)",
        "- hidden.md: the file /files/Team~00000002/Secret/hidden.md",
        "- the database /databases/Tasks/ (2 records)",
        "- a file that is in trash or deleted",
    ] {
        assert!(guide.contains(line), "{line} in {guide}");
    }
}

#[test]
fn a_memory_of_then_tells_what_is_not_shown_of_then() {
    let base = workspace();
    let lens = Arc::new(Lens::of_past(&base, None));
    let then = View { workspace: WorkspaceId(id(99)), base: Arc::clone(&base), lens, past: None };
    let guide = read(&then, "/memories/onboarding/README.md");
    for line in
        ["- a database, which is known as it is now only", "- a file that was not there then, or is not now"]
    {
        assert!(guide.contains(line), "{line} in {guide}");
    }
    assert!(!guide.contains("in trash") && !guide.contains("/databases/"), "{guide}");
    assert!(!read(&then, "/README.md").contains("/databases/"));
}

#[test]
fn a_scope_sees_its_folders_and_the_way_to_them() {
    let base = workspace();
    let narrow = view(&base, Some(&[3]));
    let expected = [
        "",
        "/README.md",
        "/databases",
        "/databases/Tasks",
        "/databases/Tasks/Paged elsewhere.md",
        "/databases/Tasks/Ship it.md",
        "/databases/Tasks/_schema.md",
        "/files",
        "/files/Team",
        "/files/Team/Inner",
        "/files/Team/Inner/deep.md",
        "/memories",
        "/memories/onboarding",
        "/memories/onboarding/README.md",
        "/memories/onboarding/Team",
        "/memories/onboarding/Team/Inner",
        "/memories/onboarding/Team/Inner/deep.md",
        "/memories/onboarding/deep.md",
        "/sources",
        "/sources/README.md",
    ];
    assert_eq!(shown(&narrow), expected);
    assert!(narrow.details(find(&narrow, "/files/Team"), Indexed::default(), "").is_empty());
    assert!(read(&narrow, "/README.md").contains("| 1 file, 2 folders |"));
    for path in ["/README.md", "/memories/onboarding/README.md"] {
        let text = read(&narrow, path);
        for outside in ["Secret", "hidden", "plan", "root.md", "Everybody", "~0000", "trash"] {
            assert!(!text.contains(outside), "{outside} in {path}: {text}");
        }
    }

    // Seen alone, nothing tells that another one has the name, and an older one.
    let other = view(&base, Some(&[4, 2]));
    let seen = shown(&other);
    let under = |root: &str| -> Vec<&str> {
        seen.iter().map(String::as_str).filter(|path| path.starts_with(root)).collect()
    };
    assert_eq!(under("/files/"), ["/files/Team", "/files/Team/Secret", "/files/Team/Secret/hidden.md"]);
    assert_eq!(
        under("/databases/"),
        ["/databases/Tasks", "/databases/Tasks/Unseen.md", "/databases/Tasks/_schema.md"]
    );
    assert_eq!(
        under("/memories/onboarding/"),
        ["/memories/onboarding/README.md", "/memories/onboarding/hidden.md"]
    );
    assert!(!other.details(find(&other, "/files/Team"), Indexed::default(), "").is_empty());

    for nothing in [view(&base, Some(&[])), view(&base, Some(&[88, 10, 20]))] {
        let roots = ["", "/README.md", "/databases", "/files", "/memories", "/memories/onboarding"];
        let rest = ["/memories/onboarding/README.md", "/sources", "/sources/README.md"];
        assert_eq!(shown(&nothing), [&roots[..], &rest[..]].concat());
    }
}

#[test]
fn a_record_is_its_fields_and_the_body_that_is_seen() {
    let base = workspace();
    let (whole, narrow) = (view(&base, None), view(&base, Some(&[3])));
    let held = |view: &View, path: &str| view.held(find(view, path)).unwrap();
    let (shipped, elsewhere) = ("/databases/Tasks/Ship it.md", "/databases/Tasks/Paged elsewhere.md");
    let sizes = |view: &View| [held(view, shipped).size, held(view, elsewhere).size];
    assert_eq!(sizes(&whole), [20 + 1 + 12, 20 + 1 + 13]);
    assert_eq!(sizes(&narrow), [10 + 1 + 12, 10]);
    assert_eq!(held(&narrow, elsewhere).key.0, [10; 32]);
    let keys = [held(&whole, shipped).key, held(&whole, elsewhere).key, held(&narrow, shipped).key];
    assert!(keys[0] != keys[1] && keys[0] != keys[2]);
    assert_eq!(held(&whole, "/databases/Tasks/_schema.md").key.0, [9; 32]);
    let deep = held(&whole, "/memories/onboarding/Team/Inner/deep.md");
    assert_eq!((deep.key.0, deep.size, deep.kind, deep.id), ([12; 32], 12, Kind::File, id(11)));
    assert_eq!(whole.modified(find(&whole, shipped)), 3_000);
}

#[test]
fn what_is_cited_is_what_other_answers_cite() {
    let base = workspace();
    let whole = view(&base, None);
    let cited = |path: &str| {
        let document = whole.document(find(&whole, path))?;
        let kind = document.r#ref.as_ref().unwrap().kind();
        Some((kind, document.title, document.path, document.database_id.is_some()))
    };
    let file = |title: &str, path: &str| Some((Kind::File, title.to_owned(), path.to_owned(), false));
    assert_eq!(cited("/files/Team~00000002/Secret/hidden.md"), file("hidden.md", "/Team/Secret/hidden.md"));
    assert_eq!(cited("/memories/onboarding/deep.md"), file("deep.md", "/Team/Inner/deep.md"));
    assert_eq!(cited("/files/root.md"), file("root.md", "/root.md"));
    let record = Some((Kind::Record, "Ship it".to_owned(), "/Team/Inner/Tasks/Ship it".to_owned(), true));
    assert_eq!(cited("/databases/Tasks/Ship it.md"), record);
    let memory = Some((Kind::Memory, "The onboarding".to_owned(), "/memories/onboarding".to_owned(), false));
    assert_eq!(cited("/memories/onboarding/README.md"), memory);
    for path in ["/README.md", "/databases/Tasks/_schema.md", "/files/Team", "/sources/README.md"] {
        assert_eq!(cited(path), None, "{path}");
    }
}

#[test]
fn stat_tells_ids_links_and_guidance() {
    let base = workspace();
    let whole = view(&base, None);
    let base_url = "https://cairn.example";
    let told = |path: &str, indexed| whole.details(find(&whole, path), indexed, base_url);
    let value = |path: &str, name: &str| {
        told(path, up_to(1)).into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    assert_eq!(value("/files/root.md", "id"), Some(id(13).to_string()));
    assert_eq!(value("/files/root.md", "link"), Some(format!("https://cairn.example/file/{}", id(13))));
    let record = format!("https://cairn.example/databases/{}?record={}", id(20), id(30));
    assert_eq!(value("/databases/Tasks/Ship it.md", "link"), Some(record));
    assert_eq!(value("/databases/Tasks/Ship it.md", "citation").as_deref(), Some("Ship it"));
    for path in
        ["/memories/onboarding", "/memories/onboarding/README.md", "/memories/onboarding/Team/plan.md"]
    {
        assert_eq!(value(path, "useWhen").as_deref(), Some("for onboarding"), "{path}");
    }
    assert_eq!(value("/files/Team/plan.md", "useWhen"), None);
    let freshness = |indexed| told("/files/root.md", indexed)[3].1.clone();
    assert_eq!(freshness(Indexed::default()), "updated 1970-01-01T00:00:00.002Z");
    assert_eq!(freshness(up_to(1)), "updated 1970-01-01T00:00:00.002Z, indexed");
    assert_eq!(freshness(up_to(0)), "updated 1970-01-01T00:00:00.002Z, not indexed yet");
    for path in ["/", "/README.md", "/files"] {
        assert_eq!(told(path, Indexed::default()), Vec::new(), "{path}");
    }
}

#[test]
fn a_folder_of_a_memory_shows_its_first_files() {
    let inner = (0..10).map(|number| folder(500 + number, Some(1), &format!("b{number}")));
    let files = (0..120).map(|number| file(100 + number, Some(1), &format!("c{number:03}"), 1));
    let below = (0..10).map(|number| file(300 + number, Some(503), &format!("{number}"), 1));
    let holders = [folder(1, None, "f"), memory(2, "m", &[(MemberKind::Folder, 1)])];
    let base = Arc::new(tree(holders.into_iter().chain(inner).chain(files).chain(below)));
    let whole = view(&base, None);
    let seen = shown(&whole);
    let held: Vec<&String> = seen.iter().filter(|path| path.starts_with("/memories/m/f/")).collect();
    assert_eq!(held.len(), 1 + 50, "{held:?}");
    assert_eq!((held[0].as_str(), held[50].as_str()), ("/memories/m/f/b3", "/memories/m/f/c039"));
    let guide = read(&whole, "/memories/m/README.md");
    assert!(guide.contains("- f/: the folder /files/f/ (130 files, the first 50 are here)"), "{guide}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_scope_sees_what_it_covers_and_nothing_else(
        steps in prop::collection::vec(step(), 0..80),
        listed in prop::collection::vec(0..12_usize, 0..4),
    ) {
        let mut model = Model::default();
        steps.iter().for_each(|step| model.carry_out(step));
        let base = Arc::new(tree(model.live.values().cloned()));
        let folders = model.all(|what| matches!(what, What::Folder));
        let listed: Vec<Uuid> = listed.iter().filter_map(|at| folders.get(*at).copied()).collect();
        let scope: Vec<FolderId> = listed.iter().map(|id| FolderId(*id)).collect();
        let lens = Arc::new(Lens::new(&base, Some(&scope)));
        let narrow = View { workspace: WorkspaceId(id(99)), base: Arc::clone(&base), lens, past: None };

        let covers = |place: Option<Uuid>| listed.iter().any(|listed| model.is_below(place, *listed));
        let is_covered = |row: &Row| match (&row.what, row.place) {
            (What::Folder, _) => covers(Some(row.id)),
            (What::File(_), Place::Folder(place)) => covers(place),
            (What::Database { folder, .. }, _) => covers(*folder),
            (What::Record { .. }, Place::Database(database)) => match &model.live[&database].what {
                What::Database { folder, .. } => covers(*folder),
                What::Folder
                | What::File(_)
                | What::Record { .. }
                | What::Memory(_)
                | What::SourceFolder(_)
                | What::Document(_) => false,
            },
            (What::Memory(_), _) => true,
            _ => false,
        };
        let expected: HashSet<Uuid> =
            model.live.values().filter(|row| is_covered(row)).map(|row| row.id).collect();

        let (mut found, mut ways) = (HashSet::new(), HashSet::new());
        let mut open = vec![Fixed::Root.node()];
        while let Some(node) = open.pop() {
            let names: Vec<&str> = narrow.children(node).iter().map(|child| narrow.name(*child)).collect();
            prop_assert!(names.is_sorted_by(|one, other| one < other), "{:?}", names);
            open.extend(narrow.children(node));
            let is_own = crate::tree::memories::member_of(node).is_none();
            if let Some(slot) = base.slot(node).filter(|slot| is_own && slot.what().is_some()) {
                let seen = if narrow.lens.is_way(node) { &mut ways } else { &mut found };
                prop_assert!(seen.insert(slot.id));
            }
        }
        prop_assert_eq!(found, expected);
        for way in ways {
            prop_assert!(listed.iter().any(|listed| model.is_below(Some(*listed), way)));
        }
    }
}

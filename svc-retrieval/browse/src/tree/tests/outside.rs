//! Documents from outside as they come, move and go.

use cairn_proto::document::v1::DocumentRef;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ingest::v1::TreeDocument;
use proptest::prelude::*;

use super::*;

const PATHS: [&str; 7] = [
    "/sources/ingested/a.md",
    "/sources/Wiki/a.md",
    "/sources/Wiki/a.md/b.md",
    "/sources/Wiki/docs/a.md",
    "/sources/Wiki/docs/deep/a.md",
    "/sources/README.md/a.md",
    "/sources/wiki/docs/a.md",
];

fn document(number: u128, path: &str) -> TreeDocument {
    TreeDocument {
        r#ref: Some(DocumentRef { kind: Kind::SourceDocument.into(), id: id(number).to_string() }),
        path: path.to_owned(),
        content_hash: format!("blake3:{}", "0".repeat(64)),
        ..TreeDocument::default()
    }
}

fn grown(base: &mut Base, live: Vec<TreeDocument>, gone: &[u128], position: u64) {
    let gone = gone.iter().map(|number| DocumentRef { kind: 0, id: id(*number).to_string() });
    let mut rows = Rows::default();
    rows.take_outside(live, gone.collect()).unwrap();
    base.apply_outside(&rows, position).unwrap();
}

proptest! {
    #[test]
    fn what_grew_is_what_would_be_drawn_up_anew(
        steps in prop::collection::vec(
            prop::collection::vec((0_u128..5, prop::option::of(0..PATHS.len())), 1..4), 1..20,
        ),
    ) {
        let mut base = tree([folder(90, None, "f"), file(91, Some(90), "x.md", 1)]);
        let mut live = std::collections::BTreeMap::new();
        for (position, step) in (1..).zip(steps) {
            let touched: std::collections::BTreeMap<_, _> = step.into_iter().collect();
            let of = |(number, path): (&u128, &Option<usize>)| Some(document(*number, PATHS[(*path)?]));
            let gone: Vec<u128> = touched.iter().filter(|(_, path)| path.is_none()).map(|(number, _)| *number).collect();
            grown(&mut base, touched.iter().filter_map(of).collect(), &gone, position);
            live.extend(touched);

            let mut anew = tree([folder(90, None, "f"), file(91, Some(90), "x.md", 1)]);
            grown(&mut anew, live.iter().filter_map(of).collect(), &[], position);
            prop_assert_eq!(walk(&base), walk(&anew));
            prop_assert_eq!(base.counts, anew.counts);
        }
    }
}

#[test]
fn what_has_no_place_is_refused() {
    for path in ["/sources/a.md", "/files/x/a.md", "a.md", ""] {
        let mut rows = Rows::default();
        assert!(rows.take_outside(vec![document(1, path)], Vec::new()).is_err(), "{path}");
    }
}

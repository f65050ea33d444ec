use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

fn run(number: u128) -> SourceRunId {
    SourceRunId(Uuid::from_u128(number))
}

fn occasion(number: u128) -> Occasion {
    Occasion { now: NOW, listing: Some(run(number)), new_id: DocumentId(Uuid::from_u128(99)) }
}

fn id() -> ExternalId {
    ExternalId::new("docs/a.md").unwrap()
}

fn entry(version: &str) -> Entry {
    let mut entry = Entry::new(id(), Version::new(version), "a");
    entry.path = Some("docs/a.md".to_owned());
    entry
}

fn text(of: &str, version: &str) -> Finding {
    let retained = RetainedText { content_hash: of.to_owned(), format: Default::default(), size_bytes: 1 };
    Finding::Text { version: Version::new(version), metadata: metadata(&entry(version), None), retained }
}

fn known(version: &str) -> StoredDocument {
    step(None, &id(), text("blake3:one", version), occasion(1)).unwrap().document.unwrap()
}

fn unreadable(version: &str, is_lasting: bool) -> Finding {
    Finding::Unreadable {
        version: Some(Version::new(version)),
        metadata: metadata(&entry(version), None),
        message: "it cannot be read".to_owned(),
        is_lasting,
    }
}

#[test]
fn what_a_listing_says_is_judged_by_version_and_mode() {
    let known = known("1");
    let judged = |version: &str, mode, listing| judge(Some(&known), &entry(version), mode, run(listing));
    assert_eq!(judge(None, &entry("1"), SourceMode::Indexed, run(1)), Verdict::Fetch);
    assert_eq!(judge(None, &entry("1"), SourceMode::Catalog, run(1)), Verdict::Describe);
    assert_eq!(judged("1", SourceMode::Indexed, 1), Verdict::Counted);
    assert_eq!(judged("1", SourceMode::Indexed, 2), Verdict::Unchanged);
    assert_eq!(judged("2", SourceMode::Indexed, 2), Verdict::Fetch);
    assert_eq!(judged("1", SourceMode::Catalog, 2), Verdict::Describe);
    let mut moved = entry("1");
    moved.path = Some("docs/b.md".to_owned());
    assert_eq!(judge(Some(&known), &moved, SourceMode::Indexed, run(2)), Verdict::Moved);
}

#[test]
fn what_a_listing_knows_no_version_of_is_read_once_in_each_run() {
    let known = known("1");
    let listed = Entry { version: Version::unknown(), ..entry("1") };
    assert_eq!(judge(Some(&known), &listed, SourceMode::Indexed, run(1)), Verdict::Counted);
    assert_eq!(judge(Some(&known), &listed, SourceMode::Indexed, run(2)), Verdict::Fetch);
    let same = Finding::Same { version: None, metadata: None };
    let after = step(Some(&known), &id(), same, occasion(2)).unwrap().document.unwrap();
    assert_eq!(after.version, known.version, "it can be compared with the next time, too");
}

#[test]
fn a_title_that_is_only_the_end_of_the_id_replaces_none() {
    let mut known = known("1");
    known.metadata.title = "The handbook".to_owned();
    let nameless = Entry::new(id(), Version::unknown(), "");
    assert_eq!(metadata(&nameless, Some(&known)).title, "The handbook");
    assert_eq!(metadata(&nameless, Some(&known)).path, "The handbook.md");
    assert_eq!(metadata(&nameless, None).title, "a.md");
    let named = Entry::new(id(), Version::unknown(), "A better one");
    assert_eq!(metadata(&named, Some(&known)).title, "A better one");
}

#[test]
fn the_same_text_under_another_version_is_no_news() {
    let known = known("1");
    let same = step(Some(&known), &id(), text("blake3:one", "2"), occasion(2)).unwrap();
    assert_eq!((same.counted, same.feed_op, same.reindex), (Counted::Unchanged, None, false));
    assert_eq!(same.document.unwrap().version, Some(Version::new("2")));
    let other = step(Some(&known), &id(), text("blake3:two", "2"), occasion(2)).unwrap();
    assert_eq!((other.counted, other.feed_op, other.reindex), (Counted::Updated, Some(Op::Upsert), true));
}

#[test]
fn a_failure_for_now_keeps_the_text_and_a_lasting_one_does_not() {
    let known = known("1");
    let passing = step(Some(&known), &id(), unreadable("2", false), occasion(2)).unwrap();
    let kept = passing.document.unwrap();
    assert_eq!((kept.kept, passing.feed_op), (Retention::Text, None));
    assert_eq!(kept.fault.as_ref().unwrap().next_try, Some(NOW.plus(RETRY_DELAYS[0])));
    assert_eq!(version_of_text(&kept), None, "a text that may be old is not compared by version");
    // In its own time, and not at every listing.
    assert_eq!(judge(Some(&kept), &entry("2"), SourceMode::Indexed, run(3)), Verdict::Unchanged);
    let lasting = step(Some(&known), &id(), unreadable("2", true), occasion(2)).unwrap();
    let left = lasting.document.unwrap();
    assert_eq!((left.kept, left.retained, lasting.feed_op), (Retention::Nothing, None, Some(Op::Delete)));
    assert_eq!(left.fault.unwrap().next_try, None);
}

#[test]
fn pauses_between_tries_grow_to_a_day() {
    let mut document = step(None, &id(), unreadable("1", false), occasion(1)).unwrap().document.unwrap();
    let mut pauses = vec![document.fault.as_ref().unwrap().next_try.unwrap().since(NOW)];
    for _ in 0..6 {
        let next = step(Some(&document), &id(), unreadable("1", false), occasion(1)).unwrap();
        document = next.document.unwrap();
        pauses.push(document.fault.as_ref().unwrap().next_try.unwrap().since(NOW));
    }
    assert_eq!(pauses[..5], RETRY_DELAYS);
    assert_eq!(pauses[5..], [RETRY_DELAYS[4], RETRY_DELAYS[4]]);
}

#[test]
fn what_is_forbidden_is_hidden_and_comes_back_as_it_was() {
    let known = known("1");
    let metadata = known.metadata.clone();
    let hidden = step(Some(&known), &id(), Finding::Forbidden { metadata }, occasion(2)).unwrap();
    assert_eq!(hidden.feed_op, Some(Op::Delete));
    let hidden = hidden.document.unwrap();
    assert_eq!((hidden.kept, hidden.hidden_at), (Retention::Hidden, Some(NOW)));
    let same = Finding::Same { version: None, metadata: None };
    let back = step(Some(&hidden), &id(), same, occasion(3)).unwrap();
    assert_eq!((back.feed_op, back.reindex), (Some(Op::Upsert), true));
    assert_eq!(back.document.unwrap().kept, Retention::Text);
}

#[test]
fn gone_may_have_to_be_found_twice() {
    let known = known("1");
    let hour = Duration::from_secs(3_600);
    let gone = || Finding::Gone { after: Some(hour) };
    let marked = step(Some(&known), &id(), gone(), occasion(2)).unwrap().document.unwrap();
    assert_eq!((marked.missing_since, marked.seen), (Some(NOW), Some(run(2))));
    let early = step(Some(&marked), &id(), gone(), occasion(3)).unwrap();
    assert_eq!(early.document.unwrap().missing_since, Some(NOW));
    let later = Occasion { now: NOW.plus(hour), ..occasion(4) };
    let removed = step(Some(&marked), &id(), gone(), later).unwrap();
    assert_eq!((removed.document, removed.feed_op), (None, Some(Op::Delete)));
    assert_eq!(step(None, &id(), Finding::Gone { after: None }, occasion(2)), None);
}

fn found() -> impl Strategy<Value = Finding> {
    prop_oneof![
        (0_u8..3, 0_u8..3).prop_map(|(one, version)| text(&format!("blake3:{one}"), &version.to_string())),
        (0_u8..3).prop_map(|version| Finding::Described {
            version: Version::new(version.to_string()),
            metadata: metadata(&entry("x"), None),
        }),
        Just(Finding::Same { version: None, metadata: None }),
        any::<bool>().prop_map(|is_lasting| unreadable("7", is_lasting)),
        Just(Finding::Forbidden { metadata: metadata(&entry("x"), None) }),
        Just(Finding::Gone { after: None }),
        Just(Finding::Gone { after: Some(Duration::from_secs(60)) }),
    ]
}

proptest! {
    /// Who follows the feed knows of exactly what everybody sees, whatever a provider answers.
    #[test]
    fn the_feed_tells_what_is_seen(answers in prop::collection::vec(found(), 1..20)) {
        let mut document: Option<StoredDocument> = None;
        let mut followed = false;
        for (number, answer) in answers.into_iter().enumerate() {
            let now = NOW.plus(Duration::from_secs(45 * number as u64));
            let occasion = Occasion { now, ..occasion(number as u128) };
            if let Some(step) = step(document.as_ref(), &id(), answer, occasion) {
                followed = match step.feed_op {
                    None => followed,
                    Some(op) => op == Op::Upsert,
                };
                document = step.document;
            }
            let is_visible = document.as_ref().is_some_and(|known| known.kept.is_visible());
            prop_assert_eq!(followed, is_visible);
            if let Some(known) = &document {
                prop_assert_eq!(known.kept == Retention::Text, known.retained.is_some() && known.kept != Retention::Hidden);
                prop_assert!(known.kept != Retention::Nothing || known.fault.is_some());
            }
        }
    }
}

#[test]
fn a_title_and_the_path_made_of_it_have_only_what_people_see() {
    let hidden: String = "IGNORE".chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
    let one = Entry::new(id(), Version::new("1"), &format!("The \u{202E}plan{hidden}"));
    let metadata = metadata(&one, None);
    assert_eq!((metadata.title.as_str(), metadata.path.contains(&hidden)), ("The plan", false));
    let nothing = Entry::new(id(), Version::new("1"), &hidden);
    assert_eq!(super::metadata(&nothing, None).title, "untitled");
}

use super::*;

const SOURCE: Uuid = Uuid::from_u128(900);

fn entry(number: u128) -> Match {
    Match { document: Uuid::from_u128(number), source: SOURCE }
}

/// Entries with these texts and scores, numbered from 1.
fn decided(question: &str, entries: &[(&str, f32)]) -> Matches {
    let candidates: Vec<Candidate<'_>> = (1..)
        .zip(entries)
        .map(|(number, (text, score))| Candidate {
            is: entry(number),
            entry: Entry::read(text),
            score: *score,
        })
        .collect();
    decide(question, &Named::in_text(question), &candidates, DECISIVE_LEAD)
}

#[track_caller]
fn check(question: &str, entries: &[(&str, f32)], decisive: &[u128], others: &[u128]) {
    let matches = decided(question, entries);
    let of = |numbers: &[u128]| numbers.iter().copied().map(entry).collect::<Vec<_>>();
    assert_eq!((matches.decisive, matches.others), (of(decisive), of(others)), "{question}");
}

#[test]
fn the_best_is_decisive_when_it_says_everything_and_leads() {
    let rollout = ("Zanzibar rollout\nWiki/Plans", 6.0);
    check("rollout plans of zanzibar", &[rollout, ("Mobile rollout", 3.9)], &[1], &[]);
    check("rollout plans of zanzibar", &[rollout, ("Mobile rollout plans", 4.1)], &[], &[1, 2]);
    check("zanzibar budget of the rollout", &[rollout, ("Mobile rollout", 1.0)], &[], &[1]);
    check("zanzibar rollout plans", &[rollout], &[1], &[]);
    check("the", &[rollout], &[], &[]);
    check("zanzibar", &[], &[], &[]);
}

#[test]
fn what_is_named_is_decisive_whatever_it_scores() {
    let issues = [("ENG-12 Login fails", 2.0), ("ENG-123 Logout fails", 2.0), ("On ENG-123", 1.9)];
    check("what became of eng-123", &issues, &[2], &[3]);
    check("is login fails about the same", &issues, &[1], &[2]);
    check(
        "open the zanzibar rollout please",
        &[("Zanzibar rollout.md", 2.0), ("Open rollout", 1.9)],
        &[1],
        &[2],
    );
    let address = crate::entry::address_word("https://wiki.example/p/1");
    let page = format!("Home\nWiki\n{address}");
    check("see https://wiki.example/p/1.", &[("Wiki example", 3.0), (&page, 0.0)], &[2], &[]);
}

#[test]
fn a_name_that_many_have_names_none() {
    let notes = [("Weekly sync", 2.0); 4];
    check("notes of the weekly sync", &notes, &[], &[1, 2, 3, 4]);
    check("notes of the weekly sync", &notes[..3], &[1, 2, 3], &[]);
}

#[test]
fn the_best_of_a_catalog_are_at_most_three() {
    let matches = decided("weekly sync", &[("Weekly sync notes", 2.0); 5]).best();
    assert_eq!((matches.decisive.len(), matches.others.len()), (MAX_BODIES, 2));
    assert_eq!(Matches::default().best(), Matches::default());
}

use std::collections::HashMap;
use std::sync::LazyLock;

use cairn_index::QuestionWords;
use cairn_index::vectors::UnitVector;
use cairn_index::words::Languages;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

static ROWS: LazyLock<StaticRows> = LazyLock::new(|| StaticRows::open().unwrap());

fn id(number: usize) -> ChunkId {
    ChunkId { document: Uuid::from_u128(number as u128 + 1), ordinal: 0 }
}

/// The features of some texts, with or without the pieces of their vectors.
fn inspection(question: &str, texts: &[&str], keeps_pieces: bool) -> Inspection {
    let mut inspection = Inspection {
        words: QuestionWords::uncounted(question, Languages::default()),
        ..Inspection::default()
    };
    for (number, text) in texts.iter().enumerate() {
        let (title, body) = text.split_once(": ").unwrap_or(("", text));
        let (vector, pieces) = ROWS.embed_with_pieces(&text_under(title, &[], "", body));
        let pieces = if keeps_pieces { pieces.into_boxed_slice() } else { Box::default() };
        inspection
            .composed
            .extend(UnitVector::new(&vector).map(|vector| (id(number), Composed { vector, pieces })));
        inspection.chunks.push(StoredChunk {
            id: id(number),
            container: None,
            kind: String::new(),
            title: title.to_owned(),
            heading_path: Vec::new(),
            table_header: String::new(),
            text: body.to_owned(),
            start_line: 1,
            end_line: 1,
            content_hash: String::new(),
            updated_at: 0,
        });
    }
    inspection
}

/// Hits in the given order.
fn found(many: usize) -> Vec<Hit> {
    (0..many).map(|number| Hit { chunk: id(number), score: 1.0 - number as f32 * 0.01 }).collect()
}

fn looked(question: &str, texts: &[&str]) -> Second {
    let hits = found(texts.len());
    Question::new(&ROWS, question, 0.5).look(&hits, &hits, &inspection(question, texts, true))
}

fn part<'a>(second: &'a Second, kind: &str) -> &'a Part {
    second.parts.iter().find(|part| part.kind == kind).unwrap()
}

const TEXTS: [&str; 4] = [
    "The telescope observes distant galaxies at night",
    "Overdue payment of a bill is charged with interest",
    "Invoices: they are sent every month",
    "A recipe for apple pie with cinnamon",
];

#[test]
fn what_means_the_same_comes_before_what_stood_first() {
    let second = looked("invoice was paid late", &TEXTS);
    let order: Vec<ChunkId> = second.hits.iter().map(|hit| hit.chunk).collect();
    assert!(order[..2].contains(&id(1)) && order[..2].contains(&id(2)), "{second:?}");
    assert_eq!(part(&second, "headings").hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(part(&second, "pieces").hits.len(), 4);
}

#[test]
fn an_engine_that_keeps_no_pieces_gives_the_same() {
    let question = Question::new(&ROWS, "invoice was paid late", 0.5);
    let hits = found(TEXTS.len());
    let [kept, cut] = [true, false]
        .map(|keeps| question.look(&hits, &hits, &inspection("invoice was paid late", &TEXTS, keeps)));
    assert_eq!(kept, cut);
}

#[test]
fn a_question_without_rows_is_answered_by_words() {
    let texts = ["рыбы плавают", "птицы летают", "the birds fly"];
    let question = Question::new(&ROWS, "птицы летают", 0.5);
    assert_eq!(question.first_word_weight(), 1.0);
    let words = [Hit { chunk: id(1), score: 8.0 }, Hit { chunk: id(0), score: 2.0 }];
    let second = question.look(&found(3), &words, &inspection("птицы летают", &texts, true));
    let scores: Vec<(ChunkId, f32)> = second.hits.iter().map(|hit| (hit.chunk, hit.score)).collect();
    assert_eq!(scores, [(id(1), 1.0), (id(0), 0.25), (id(2), 0.0)]);
}

#[test]
fn rare_pieces_count_more_where_they_are_counted() {
    let question = Question::new(&ROWS, "apple telescope", 0.5);
    let pieces = question.distinct_pieces();
    let rare = |piece: &str| {
        let rare = ROWS.pieces(piece)[0];
        let counts = pieces.iter().map(|piece| if *piece == rare { 1 } else { 90 }).collect();
        let piece_counts = Some(PieceCounts { chunks: 100, counts });
        let inspection = Inspection { piece_counts, ..inspection("apple telescope", &TEXTS, true) };
        // Without hits by words, so that only the pieces decide.
        question.look(&found(4), &[], &inspection)
    };
    let best = |second: &Second| part(second, "pieces").hits[0].chunk;
    assert_eq!((best(&rare("apple")), best(&rare("telescope"))), (id(3), id(0)));
}

#[test]
fn the_operators_share_of_words_holds() {
    let weights = |share: f32| {
        let second = Question::new(&ROWS, "apple", share).look(
            &found(4),
            &found(4),
            &inspection("apple", &TEXTS, true),
        );
        (part(&second, "keyword").weight, part(&second, "semantic").weight)
    };
    let near = |(one, other): (f32, f32), expected: (f32, f32)| {
        (one - expected.0).abs() < 1e-5 && (other - expected.1).abs() < 1e-5
    };
    assert!(near(weights(0.5), (0.24, 0.24)));
    assert!(near(weights(1.0), (0.48, 0.0)) && near(weights(0.25), (0.12, 0.36)));
}

proptest! {
    #[test]
    fn scores_are_the_sum_of_their_parts(
        question in "(invoice |paid |galaxies |apple |the |xyzzy ){0,6}",
        many in 0_usize..4,
        has_vectors in any::<bool>(),
    ) {
        let texts = &TEXTS[..many];
        let mut inspection = inspection(&question, texts, true);
        if !has_vectors {
            inspection.composed.clear();
        }
        let second = Question::new(&ROWS, &question, 0.5).look(&found(many), &found(many), &inspection);
        prop_assert_eq!(second.hits.len(), many);
        let mut sums: HashMap<ChunkId, f32> = HashMap::new();
        for part in second.parts.iter().filter(|part| part.greatest > 0.0) {
            for hit in &part.hits {
                *sums.entry(hit.chunk).or_default() += part.weight * hit.score / part.greatest;
            }
        }
        for hit in &second.hits {
            prop_assert!((0.0..=1.0).contains(&hit.score));
            prop_assert!((sums.get(&hit.chunk).copied().unwrap_or_default() - hit.score).abs() < 1e-5);
        }
    }

    #[test]
    fn what_is_behind_stays_behind(last in 0.0_f32..=1.0, before in 0.01_f32..=1.0, behind in 0.0_f32..=1.0) {
        prop_assume!(behind <= before);
        let hit = |number, score| Hit { chunk: id(number), score };
        let scale = scale_behind(&[hit(0, before), hit(1, behind)], &[hit(0, last)]);
        prop_assert!(behind * scale <= last + 1e-6);
    }
}

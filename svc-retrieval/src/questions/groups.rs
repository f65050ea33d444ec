//! Groups of similar questions, and which of them are not answered well yet.

use cairn_chassis::identity::Identity;
use cairn_embed::{ImmediateEmbedder as _, StaticRows};
use cairn_proto::domain::QuestionOutcome;

use super::{Filter, Question, Questions};
use crate::error::Error;
use crate::store;

/// The latest questions that are grouped: comparing more takes longer than a page can wait.
const MAX_GROUPED: i64 = 500;
/// The minimal cosine of similar questions. Two ways to ask one thing measure .75 to .95 with the built-in model, questions about one
/// subject .4 to .7.
const MIN_COSINE: f32 = 0.75;
/// Questions of a group that are returned.
const MAX_QUESTIONS_PER_GROUP: usize = 20;
/// A question is compared by its beginning, in bytes.
const COMPARED_BYTES: usize = 1_000;

/// Questions that ask nearly the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// The latest of them first; at most twenty.
    pub(crate) questions: Vec<Question>,
    /// How many there are.
    pub(crate) count: u64,
    /// How many of them were not answered well since one last was.
    pub(crate) open: u64,
}

impl Group {
    /// Whether the latest of them was not answered well.
    pub(crate) const fn is_gap(&self) -> bool {
        self.open > 0
    }
}

/// A group in the making, with the vector of its latest question.
struct GroupBuilder {
    vector: Vec<f32>,
    folded: String,
    group: Group,
    was_answered: bool,
}

impl Questions {
    /// The latest questions that the caller may see, in groups of like meaning, those asked last first; none while the log is
    /// off.
    pub(crate) async fn groups(&self, identity: &Identity) -> Result<Vec<Group>, Error> {
        let Some(reader) = self.reader(identity)? else { return Ok(Vec::new()) };
        let filter = Filter {
            since: reader.since,
            principal: String::new(),
            person: reader.person,
            is_unanswered: false,
            text: String::new(),
        };
        let mut tx = self.db.begin_read().await?;
        let questions = store::questions::list(&mut tx, reader.workspace, &filter, "", MAX_GROUPED).await?;
        tx.commit().await?;
        // Takes tens of milliseconds of CPU.
        let model = std::sync::Arc::clone(&self.model);
        Ok(tokio::task::spawn_blocking(move || gather(questions, &model)).await?)
    }
}

/// Groups questions, which come latest first: each joins the first group whose latest question is like it.
fn gather(questions: Vec<Question>, model: &StaticRows) -> Vec<Group> {
    let mut gathered: Vec<GroupBuilder> = Vec::new();
    for question in questions {
        let folded = folded(&question.query);
        let vector = model.embed_now(&[folded.as_str()]).pop().unwrap_or_default();
        let like =
            |one: &&mut GroupBuilder| one.folded == folded || cosine(&one.vector, &vector) >= MIN_COSINE;
        match gathered.iter_mut().find(like) {
            Some(one) => one.add(question),
            None => {
                let group = Group { questions: Vec::new(), count: 0, open: 0 };
                let mut one = GroupBuilder { vector, folded, group, was_answered: false };
                one.add(question);
                gathered.push(one);
            }
        }
    }
    gathered.into_iter().map(|one| one.group).collect()
}

impl GroupBuilder {
    fn add(&mut self, question: Question) {
        self.group.count += 1;
        self.was_answered |= question.outcome == QuestionOutcome::Answered;
        if !self.was_answered {
            self.group.open += 1;
        }
        if self.group.questions.len() < MAX_QUESTIONS_PER_GROUP {
            self.group.questions.push(question);
        }
    }
}

/// The beginning of a question, in one case and with single spaces.
fn folded(query: &str) -> String {
    let beginning = query.get(..query.floor_char_boundary(COMPARED_BYTES)).unwrap_or(query);
    beginning.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of vectors of length 1, or of zeros.
fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::Timestamp;
    use cairn_proto::ids::QuestionId;
    use uuid::Uuid;

    use super::super::Asker;
    use super::*;

    fn question(number: u128, query: &str, outcome: QuestionOutcome) -> Question {
        Question {
            id: QuestionId(Uuid::from_u128(number)),
            asked_at: Timestamp::from_seconds(1_800_000_000),
            operation: "search_context".to_owned(),
            asker: Asker {
                kind: "token".to_owned(),
                id: "t".to_owned(),
                name: "t".to_owned(),
                channel: "mcp".to_owned(),
                client: String::new(),
            },
            query: query.to_owned(),
            outcome,
            results: 0,
            best_score: None,
            took_micros: 1,
        }
    }

    /// Groups of questions that are given latest first: their first questions, counts, and what is open.
    fn grouped(asked: &[(&str, QuestionOutcome)]) -> Vec<(String, u64, u64)> {
        let model = StaticRows::open().unwrap();
        let questions = (1..).zip(asked).map(|(number, (query, outcome))| question(number, query, *outcome));
        let groups = gather(questions.collect(), &model);
        groups.into_iter().map(|group| (group.questions[0].query.clone(), group.count, group.open)).collect()
    }

    #[test]
    fn like_questions_are_one_group() {
        use QuestionOutcome::{Answered, Unanswered, Weak};
        let found = grouped(&[
            ("How do we roll back a release?", Unanswered),
            ("who pays for lunch", Answered),
            ("how do we  ROLL back a release?", Weak),
            ("how can we roll back the release", Unanswered),
        ]);
        let expected = [("How do we roll back a release?", 3, 3), ("who pays for lunch", 1, 0)];
        assert_eq!(found, expected.map(|(query, count, open)| (query.to_owned(), count, open)));
    }

    #[test]
    fn a_gap_is_closed_by_a_good_answer_and_opened_by_a_later_bad_one() {
        use QuestionOutcome::{Answered, Unanswered, Weak};
        let open = |outcomes: &[QuestionOutcome]| {
            let asked: Vec<_> = outcomes.iter().map(|outcome| ("where is the backup", *outcome)).collect();
            grouped(&asked)[0].2
        };
        assert_eq!(open(&[Unanswered, Weak]), 2);
        assert_eq!(open(&[Answered, Unanswered, Weak]), 0, "the latest was answered");
        assert_eq!(open(&[Weak, Answered, Unanswered]), 1, "it was not found again");
    }

    #[test]
    fn texts_that_the_model_does_not_know_are_compared_as_they_are() {
        let found = grouped(&[
            ("где резервная копия", QuestionOutcome::Unanswered),
            ("где обед", QuestionOutcome::Unanswered),
            ("Где резервная копия", QuestionOutcome::Unanswered),
        ]);
        assert_eq!(found.iter().map(|group| group.1).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_group_tells_its_latest_questions_and_counts_all() {
        let model = StaticRows::open().unwrap();
        let many = (0..50).map(|number| question(number, "the same", QuestionOutcome::Unanswered)).collect();
        let groups = gather(many, &model);
        assert_eq!(
            (groups.len(), groups[0].questions.len(), groups[0].count),
            (1, MAX_QUESTIONS_PER_GROUP, 50)
        );
        assert!(groups[0].is_gap());
        assert_eq!(gather(Vec::new(), &model), []);
    }
}

//! The rank of the document in the lists of the search, and its fate on the page.

use cairn_proto::retrieval::v1::{Citation, ListRank, Location};
use uuid::Uuid;

use super::Case;
use super::existence::Missed;
use super::report::{Code, Finding, Report};
use crate::error::Error;
use crate::search::evidence::Evidence;
use crate::search::fetched::Fetched;
use crate::search::page::{Page, Passage};
use crate::search::pool::Site;
use crate::search::rank::Within;
use crate::search::request::SearchRequest;
use crate::search::tuning::CANDIDATES_PER_LIST;
use crate::search::{Searcher, citation};

/// The depth to which lists are searched for the document.
const DEPTH: usize = 1_000;

/// How lists are called that are made by words, and by meaning.
const BY_WORDS: [&str; 2] = ["keyword", "lex"];
const BY_MEANING: [&str; 3] = ["semantic", "vec", "hyde"];
/// All lists together, and the question's own among those of its sub-queries.
const TOGETHER: [&str; 2] = ["fused", "original"];

impl Searcher {
    /// Ranks like the search, and follows the document to the page.
    pub(super) async fn ranked_place(
        &self,
        case: Case<'_>,
        missed: &Missed,
        report: &mut Report,
    ) -> Result<(), Error> {
        let Case { generation, identity, call, search, plan } = case;
        let workspace = identity.workspace_id()?;
        let (within, _) = self.within(generation, identity, call, plan, search).await?;
        let mut ranked = self.ranked(generation, workspace, within.clone(), search).await?;
        report.coverage.extend(ranked.notes);
        let places = ranked.ranking.places(missed.id);
        let mut deep = places.clone();
        if places.iter().any(|place| place.rank == 0) {
            let within = Within { depth: DEPTH, ..within };
            deep = self.ranked(generation, workspace, within, search).await?.ranking.places(missed.id);
        }
        report.tell(by_list(Code::RankWords, &BY_WORDS, "words", &places, &deep));
        report.tell(by_list(Code::RankMeaning, &BY_MEANING, "meaning", &places, &deep));
        let is_found = tell_rank(&places, report);
        if !is_found {
            return Ok(());
        }
        let fetched = Fetched::default();
        let site = Site { generation, workspace, call, fetched: &fetched, now: self.clock.now(), past: None };
        let read = std::mem::take(&mut ranked.ranking.inspection.chunks);
        let (mut pool, notes) = self.gathered(site, search, (&ranked.ranking, read)).await?;
        report.coverage.extend(notes);
        // Without limits of the page every candidate has a rank.
        pool.fill(site, usize::MAX).await?;
        let unbounded =
            SearchRequest { limit: usize::MAX, min_score: 0.0, token_budget: None, ..search.clone() };
        let all = Page::of(pool.evidence(), &unbounded);
        let page = Page::of(pool.evidence(), search);
        tell_page(missed.id, search, (&all, &page), pool.evidence(), report);
        Ok(())
    }
}

/// Where the document stands in the lists of one sort.
fn by_list(code: Code, lists: &[&str], sort: &str, places: &[ListRank], deep: &[ListRank]) -> Finding {
    let of = |ranks: &[ListRank]| -> Vec<ListRank> {
        ranks.iter().filter(|rank| lists.contains(&rank.list.as_str())).cloned().collect()
    };
    let (near, far) = (of(places), of(deep));
    if near.is_empty() {
        return Finding::skipped(code, format!("The search does not look for {sort}."));
    }
    let best = |ranks: &[ListRank]| {
        ranks
            .iter()
            .filter(|rank| rank.rank > 0)
            .min_by_key(|rank| rank.rank)
            .map(|rank| (rank.rank, rank.of))
    };
    if let Some((rank, of)) = best(&near) {
        let message = format!("By {sort}, its best passage is number {rank} of the {of} that go on.");
        return Finding::passed(code, message).with_ranks(near);
    }
    let advice = match code == Code::RankWords {
        true => "Ask with words of it that few other documents have.",
        false => "Ask in a sentence that says what it says.",
    };
    let message = match best(&far) {
        Some((rank, _)) => format!(
            "By {sort}, its best passage is number {rank}: only the best {CANDIDATES_PER_LIST} of each list go on."
        ),
        None => format!("By {sort}, none of its passages is among the best {DEPTH}."),
    };
    Finding::weak(code, message, advice).with_ranks(far)
}

/// Where it stands when all lists are brought together; whether it does.
fn tell_rank(places: &[ListRank], report: &mut Report) -> bool {
    let together: Vec<ListRank> =
        places.iter().filter(|rank| TOGETHER.contains(&rank.list.as_str())).cloned().collect();
    let fused = together.iter().find(|rank| rank.list == "fused").filter(|rank| rank.rank > 0);
    let Some((rank, of)) = fused.map(|fused| (fused.rank, fused.of)) else {
        let message = "No passage of it is among those that the search considers, so it has no rank.";
        let advice = "Ask with more of its own words, or change the document so that it says what is asked.";
        report.tell(Finding::failed(Code::Rank, message, advice).with_ranks(together));
        return false;
    };
    let message = format!("By words and meaning together, its best passage has rank {rank} of {of}.");
    report.tell(Finding::passed(Code::Rank, message).with_ranks(together));
    true
}

/// Its fate on the page; `all` is the page without limits.
fn tell_page(
    document: Uuid,
    search: &SearchRequest,
    (all, page): (&Page<'_>, &Page<'_>),
    evidence: &[Evidence],
    report: &mut Report,
) {
    let own = all.passages.iter().position(|passage| is_of(passage, document));
    let elsewhere = all.passages.iter().enumerate().find(|(_, passage)| is_copied(passage, document));
    let Some(best) = evidence.iter().find(|one| one.chunk.id.document == document) else {
        let message = "It changed while this was looked at: ask again in a moment.";
        report.tell(Finding::failed(Code::Copies, message, "Ask again in a moment."));
        return;
    };
    match (own, elsewhere) {
        (None, Some((place, copy))) => {
            report.tell(collapsed(place, copy));
            return;
        }
        (Some(_), Some((_, copy))) => {
            let path = &copy.best.document.path;
            let message =
                format!("One of its passages says the same as one of {path} and is shown with that.");
            report.tell(Finding::weak(Code::Copies, message, "").with_copy(cited(copy)));
        }
        (_, None) => {
            report.tell(Finding::passed(Code::Copies, "No better result says the same."));
        }
    }
    report.place = page
        .passages
        .iter()
        .position(|passage| is_of(passage, document))
        .and_then(|place| u32::try_from(place + 1).ok());
    let is_scored = best.score() >= search.min_score;
    report.tell(least_score(best.score(), search.min_score));
    if !is_scored {
        return;
    }
    let place = own.map_or(0, |place| place + 1);
    // What does not fit into the budget takes its place among the results all the same.
    let is_beyond = report.place.is_none() && place > search.limit;
    if is_beyond {
        let message = format!("It would be result {place}, and the search asks for {}.", search.limit);
        report.tell(Finding::failed(Code::Limit, message, "Ask for more results: limit may be 50."));
        return;
    }
    report.tell(Finding::passed(Code::Limit, within_limit(report.place, place, search.limit)));
    report.tell(budget(report.place.is_some(), search.token_budget));
}

fn within_limit(shown: Option<u32>, place: usize, limit: usize) -> String {
    match shown {
        Some(shown) => format!("It is found: it is result {shown} of at most {limit}."),
        None => format!("It would be result {place}, and the search asks for {limit}."),
    }
}

fn least_score(score: f64, least: f64) -> Finding {
    if least <= 0.0 {
        return Finding::passed(
            Code::MinScore,
            format!("Its score is {score:.3}, and no least score is asked for."),
        );
    }
    if score >= least {
        let message = format!("Its score is {score:.3}; the search asks for at least {least:.3}.");
        return Finding::passed(Code::MinScore, message);
    }
    let message = format!("Its score is {score:.3}, and the search asks for at least {least:.3}.");
    Finding::failed(Code::MinScore, message, "Ask for a lower least score (minScore), or for none.")
}

fn budget(is_shown: bool, tokens: Option<usize>) -> Finding {
    match (is_shown, tokens) {
        (_, None) => Finding::passed(Code::TokenBudget, "The search has no token budget."),
        (true, Some(tokens)) => {
            Finding::passed(Code::TokenBudget, format!("It fits into the token budget of {tokens}."))
        }
        (false, Some(tokens)) => {
            let message =
                format!("What comes before it leaves no room for it in the token budget of {tokens}.");
            Finding::failed(Code::TokenBudget, message, "Give the search a larger token budget, or none.")
        }
    }
}

fn collapsed(place: usize, copy: &Passage<'_>) -> Finding {
    let path = &copy.best.document.path;
    let message = format!(
        "It says the same as {path}, which is result {} and names it as a copy instead of showing it again.",
        place + 1
    );
    let advice = "Nothing is lost: the text is found there. Keep one of the copies if both are not needed.";
    Finding::failed(Code::Copies, message, advice).with_copy(cited(copy))
}

fn cited(passage: &Passage<'_>) -> Citation {
    let location = Location {
        start_line: passage.start_line(),
        end_line: passage.end_line(),
        heading_path: passage.heading_path(),
    };
    citation::of_evidence(location, passage.best)
}

fn is_of(passage: &Passage<'_>, document: Uuid) -> bool {
    passage.best.chunk.id.document == document
}

fn is_copied(passage: &Passage<'_>, document: Uuid) -> bool {
    !is_of(passage, document) && passage.copies.iter().any(|copy| copy.chunk.id.document == document)
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1::{AbsenceCheck, Verdict};

    use super::*;

    fn told(finding: Finding) -> AbsenceCheck {
        let mut report = Report::new(Vec::new());
        report.tell(finding);
        report.finished().checks.into_iter().find(|check| !check.message.starts_with("This was not")).unwrap()
    }

    fn rank(list: &str, rank: u32) -> ListRank {
        ListRank { list: list.to_owned(), rank, of: 100, ..ListRank::default() }
    }

    #[test]
    fn a_list_tells_how_far_down_it_is() {
        let of = |near: u32, far: u32| {
            told(by_list(
                Code::RankWords,
                &BY_WORDS,
                "words",
                &[rank("keyword", near)],
                &[rank("keyword", far)],
            ))
        };
        assert_eq!(of(7, 7).message, "By words, its best passage is number 7 of the 100 that go on.");
        assert_eq!(
            (of(0, 214).verdict(), of(0, 214).message.as_str()),
            (
                Verdict::Weak,
                "By words, its best passage is number 214: only the best 100 of each list go on."
            )
        );
        assert_eq!(of(0, 0).message, "By words, none of its passages is among the best 1000.");
        let meaning = told(by_list(Code::RankMeaning, &BY_MEANING, "meaning", &[rank("keyword", 1)], &[]));
        assert_eq!(meaning.verdict(), Verdict::Skipped);
    }

    #[test]
    fn scores_and_budgets_are_told_with_their_numbers() {
        assert_eq!(told(least_score(0.5, 0.0)).verdict(), Verdict::Passed);
        let low = told(least_score(0.25, 0.5));
        assert_eq!(low.message, "Its score is 0.250, and the search asks for at least 0.500.");
        assert_eq!(told(budget(false, Some(100))).verdict(), Verdict::Failed);
        assert_eq!(told(budget(true, Some(100))).verdict(), Verdict::Passed);
    }
}

//! The checks in their order, with their verdicts.

use std::collections::BTreeMap;

use cairn_proto::retrieval::v1::{
    AbsenceCheck, Citation, CoverageNote, ExplainAbsenceResponse, ListRank, MissedDocument, SoughtWord,
    Verdict,
};

/// The checks, in the order of the steps of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Code {
    Exists,
    Trash,
    Reach,
    Source,
    Filters,
    Indexed,
    Words,
    Excluded,
    Phrases,
    RankWords,
    RankMeaning,
    Rank,
    Copies,
    MinScore,
    Limit,
    TokenBudget,
}

impl Code {
    const ALL: [Self; 16] = [
        Self::Exists,
        Self::Trash,
        Self::Reach,
        Self::Source,
        Self::Filters,
        Self::Indexed,
        Self::Words,
        Self::Excluded,
        Self::Phrases,
        Self::RankWords,
        Self::RankMeaning,
        Self::Rank,
        Self::Copies,
        Self::MinScore,
        Self::Limit,
        Self::TokenBudget,
    ];

    /// Its name in the contract.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Trash => "trash",
            Self::Reach => "reach",
            Self::Source => "source",
            Self::Filters => "filters",
            Self::Indexed => "indexed",
            Self::Words => "words",
            Self::Excluded => "excluded",
            Self::Phrases => "phrases",
            Self::RankWords => "rank_words",
            Self::RankMeaning => "rank_meaning",
            Self::Rank => "rank",
            Self::Copies => "copies",
            Self::MinScore => "min_score",
            Self::Limit => "limit",
            Self::TokenBudget => "token_budget",
        }
    }
}

/// The verdict of one check.
#[derive(Debug)]
pub(super) struct Finding {
    code: Code,
    check: AbsenceCheck,
}

impl Finding {
    /// Passed.
    pub(super) fn passed(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Verdict::Passed, message, "")
    }

    /// Lowers the document's chances without excluding it.
    pub(super) fn weak(code: Code, message: impl Into<String>, advice: &str) -> Self {
        Self::new(code, Verdict::Weak, message, advice)
    }

    /// Excludes the document.
    pub(super) fn failed(code: Code, message: impl Into<String>, advice: &str) -> Self {
        Self::new(code, Verdict::Failed, message, advice)
    }

    /// It does not apply.
    pub(super) fn skipped(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Verdict::Skipped, message, "")
    }

    fn new(code: Code, verdict: Verdict, message: impl Into<String>, advice: &str) -> Self {
        let check = AbsenceCheck {
            code: code.as_str().to_owned(),
            verdict: verdict.into(),
            message: message.into(),
            advice: advice.to_owned(),
            ..AbsenceCheck::default()
        };
        Self { code, check }
    }

    pub(super) fn with_words(mut self, words: Vec<SoughtWord>) -> Self {
        self.check.words = words;
        self
    }

    pub(super) fn with_ranks(mut self, ranks: Vec<ListRank>) -> Self {
        self.check.ranks = ranks;
        self
    }

    /// Where the same text stands that is shown instead.
    pub(super) fn with_copy(mut self, citation: Citation) -> Self {
        self.check.copy_of = Some(citation);
        self
    }
}

/// The findings so far.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) document: Option<MissedDocument>,
    /// Among the results, from 1.
    pub(super) place: Option<u32>,
    pub(super) coverage: Vec<CoverageNote>,
    checks: BTreeMap<Code, AbsenceCheck>,
}

impl Report {
    pub(super) const fn new(coverage: Vec<CoverageNote>) -> Self {
        Self { document: None, place: None, coverage, checks: BTreeMap::new() }
    }

    /// Records the verdict of a check.
    pub(super) fn tell(&mut self, finding: Finding) {
        self.checks.insert(finding.code, finding.check);
    }

    /// Skips all checks from the exclusions on, for that reason.
    pub(super) fn skip_ranking(&mut self, reason: &str) {
        for code in Code::ALL.into_iter().filter(|code| *code >= Code::Excluded) {
            self.tell(Finding::skipped(code, reason));
        }
    }

    /// All checks; skipped ones are marked as such.
    pub(super) fn finished(mut self) -> ExplainAbsenceResponse {
        let not_reached = "This was not looked at: something before it keeps the document out.";
        let told = |code| match self.checks.remove(&code) {
            Some(check) => check,
            None => Finding::skipped(code, not_reached).check,
        };
        let checks = Code::ALL.map(told).to_vec();
        ExplainAbsenceResponse { document: self.document, place: self.place, checks, coverage: self.coverage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_in_their_order_and_all_of_them() {
        let mut report = Report::new(Vec::new());
        report.tell(Finding::failed(Code::Trash, "It is in trash.", "Restore it."));
        report.tell(Finding::passed(Code::Exists, "It is there."));
        let told = report.finished().checks;
        let codes: Vec<&str> = told.iter().map(|check| check.code.as_str()).collect();
        assert_eq!(codes, Code::ALL.map(Code::as_str));
        let verdicts: Vec<Verdict> = told.iter().map(AbsenceCheck::verdict).take(3).collect();
        assert_eq!(verdicts, [Verdict::Passed, Verdict::Failed, Verdict::Skipped]);
    }
}

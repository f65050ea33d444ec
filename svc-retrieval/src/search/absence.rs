//! Explains why a search does not return a document: follows the document through each step of the search.
//!
//! There are no rules of its own: the document is confirmed, filtered, ranked and paged by the code of the search.
//! No provider is called, and nothing is counted as a retrieval.

mod existence;
mod place;
mod report;
mod text;

use cairn_chassis::call::Call;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::Violation;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::{ExplainAbsenceRequest, ExplainAbsenceResponse};
use uuid::Uuid;

pub(crate) use self::existence::Missed;
use self::report::Report;
use super::plan::Plan;
use super::request::{SearchRequest, unsupported_moment};
use super::{Searcher, catch_up};
use crate::error::Error;
use crate::generations::Generation;

/// A checked request for an explanation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AbsenceRequest {
    search: SearchRequest,
    document: Uuid,
}

impl TryFrom<ExplainAbsenceRequest> for AbsenceRequest {
    type Error = Error;

    /// Checks a request; all violations at once.
    fn try_from(request: ExplainAbsenceRequest) -> Result<Self, Error> {
        let document = Uuid::try_parse(&request.document_id)
            .map_err(|_| Violation::new("documentId", "invalid_id", "must be the id of a document: a UUID"));
        let search = request.search.unwrap_or_default();
        if let Some(violation) = unsupported_moment(&search) {
            return Err(Error::Invalid(vec![violation]));
        }
        match (SearchRequest::try_from(search), document) {
            (Ok(search), Ok(document)) => Ok(Self { search, document }),
            (Err(Error::Invalid(mut violations)), document) => {
                violations.extend(document.err());
                Err(Error::Invalid(violations))
            }
            (Err(error), _) => Err(error),
            (Ok(_), Err(violation)) => Err(Error::Invalid(vec![violation])),
        }
    }
}

/// The document under examination, and the caller.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    generation: &'a Generation,
    identity: &'a Identity,
    call: &'a Call,
    search: &'a SearchRequest,
    plan: &'a Plan,
}

impl Searcher {
    /// Follows a document through the steps of a search, in order. The checks end with the first that excludes the document.
    ///
    /// # Errors
    /// FORBIDDEN for an identity without a workspace; UNAVAILABLE when an owner cannot confirm; NOT_FOUND or OUT_OF_SCOPE
    /// for the folder that the search is narrowed to, as the search itself answers.
    pub(crate) async fn explain_absence(
        &self,
        identity: &Identity,
        call: &Call,
        request: AbsenceRequest,
    ) -> Result<ExplainAbsenceResponse, Error> {
        let workspace = identity.workspace_id()?;
        let generation = self.generations.current();
        let AbsenceRequest { search, document } = &request;
        let (notes, plan) = tokio::join!(
            catch_up(&generation, workspace, &search.after, search.max_wait),
            self.plan(&generation, identity, call, search),
        );
        let mut report = Report::new(notes);
        report.coverage.extend(plan.notes.iter().cloned());
        let case = Case { generation: &generation, identity, call, search, plan: &plan };
        self.examine(case, *document, &mut report).await?;
        Ok(report.finished())
    }

    async fn examine(&self, case: Case<'_>, document: Uuid, report: &mut Report) -> Result<(), Error> {
        let Some(missed) = self.existing(case, document, report).await? else { return Ok(()) };
        if !existence::check_source(case, &missed, report)
            || !existence::check_filters(case, &missed, report).await?
        {
            return Ok(());
        }
        let Some(held) = self.indexed(case, &missed, report).await? else { return Ok(()) };
        let passages = text::Passages::read(case, &missed, &held).await?;
        text::check_words(case, &missed, &passages, report);
        if missed.document.catalog_only {
            report.skip_ranking(
                "Only the title of this document is kept here, so it is matched by its title, apart from texts.",
            );
            return Ok(());
        }
        if !text::check_exclusions(case, &missed, &held, report).await? {
            return Ok(());
        }
        self.ranked_place(case, &missed, report).await
    }
}

/// The noun for a document of a kind.
const fn called(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Record => "record",
        Kind::Memory => "memory",
        Kind::SourceDocument => "document of a source",
        Kind::Ingested => "ingested document",
        Kind::Folder | Kind::Database | Kind::Unspecified => "document",
    }
}

/// A number with what it counts.
fn counted(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1::SearchContextRequest;

    use super::*;

    #[test]
    fn all_violations_come_at_once() {
        let search = SearchContextRequest { limit: 51, ..SearchContextRequest::default() };
        let request = ExplainAbsenceRequest { search: Some(search), document_id: "x".to_owned() };
        let Err(Error::Invalid(violations)) = AbsenceRequest::try_from(request) else {
            panic!("it was accepted")
        };
        let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["query", "limit", "documentId"]);
        let nothing = AbsenceRequest::try_from(ExplainAbsenceRequest::default());
        assert!(matches!(nothing, Err(Error::Invalid(_))));
    }
}

//! One retrieval, from its beginning to its end.

use std::time::Duration;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Identity;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{self as proto, GetRelatedFilesResponse, QuerySourceResponse};
use uuid::Uuid;

use super::Analytics;
use super::rollup::Event;
use crate::error::Error;
use crate::search::{self, SearchRequest, Searched};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// The spelling in tables and answers.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

words! {
    /// What was asked for.
    Operation {
        /// A search over everything.
        SearchContext = "search_context",
        /// The neighbours of a file.
        RelatedFiles = "related_files",
        /// A search in one connected source.
        QuerySource = "query_source",
    }
}

words! {
    /// How it was answered.
    Strategy {
        /// By words.
        Keyword = "keyword",
        /// By meaning.
        Semantic = "semantic",
        /// By both.
        Hybrid = "hybrid",
        /// By sub-queries of the caller.
        Searches = "searches",
        /// In a way that has no strategies.
        None = "none",
    }
}

impl Strategy {
    /// How a search is answered.
    pub fn of(request: &SearchRequest) -> Self {
        if !request.searches.is_empty() {
            return Self::Searches;
        }
        match request.strategy {
            search::Strategy::Keyword => Self::Keyword,
            search::Strategy::Semantic => Self::Semantic,
            search::Strategy::Hybrid => Self::Hybrid,
        }
    }
}

/// The outcome of a retrieval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The documents in the answer, the best first; one may stand there more than once.
    pub documents: Vec<(Kind, Uuid)>,
    /// Pieces of evidence.
    pub results: u64,
    /// Their text, in bytes.
    pub content_bytes: u64,
    /// Whether it was a cache hit.
    pub cached: bool,
    /// Operations of providers.
    pub provider_operations: u64,
}

impl Found {
    /// What a search answered.
    pub fn by_search(searched: &Searched) -> Self {
        let provider_operations = searched.provider_operations;
        Self {
            cached: searched.is_cached,
            provider_operations,
            ..Self::by_results(&searched.response.results)
        }
    }

    /// What a search in one source answered.
    pub fn by_source_query(answer: &QuerySourceResponse) -> Self {
        let used = answer.provider_operations.as_ref().map_or(0, |operations| operations.used);
        Self { provider_operations: u64::from(used), ..Self::by_results(&answer.results) }
    }

    fn by_results(results: &[proto::Result]) -> Self {
        let documents = results.iter().filter_map(|result| {
            let citation = result.citation.as_ref()?;
            Some((citation.kind(), Uuid::try_parse(&citation.id).ok()?))
        });
        let bytes = results.iter().map(|result| result.content.len()).sum::<usize>();
        Self {
            documents: documents.collect(),
            results: to_count(results.len()),
            content_bytes: to_count(bytes),
            ..Self::default()
        }
    }

    /// What the search for neighbours of a file answered.
    pub fn by_neighbours(answer: &GetRelatedFilesResponse) -> Self {
        let documents = answer.files.iter().filter_map(|file| Uuid::try_parse(&file.id).ok());
        let bytes = answer.files.iter().map(|file| file.content.len()).sum::<usize>();
        Self {
            documents: documents.map(|id| (Kind::File, id)).collect(),
            results: to_count(answer.files.len()),
            content_bytes: to_count(bytes),
            ..Self::default()
        }
    }
}

fn to_count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A retrieval that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Retrieval {
    pub(crate) workspace: WorkspaceId,
    pub(crate) began_at: Timestamp,
    pub(crate) operation: Operation,
    pub(crate) strategy: Strategy,
    pub(crate) channel: Channel,
    pub(crate) plan: String,
    pub(crate) principal_kind: &'static str,
    pub(crate) principal_id: String,
    pub(crate) took: Duration,
    /// `None` when it could not be answered.
    pub(crate) found: Option<Found>,
}

/// A retrieval that goes on. Dropped without [`Measured::end`], as when its time runs out or the caller hangs up, it
/// counts as failed.
#[derive(Debug)]
pub struct Measured {
    analytics: Analytics,
    /// `None` when the caller is bound to no workspace: there is nowhere to count it.
    retrieval: Option<Retrieval>,
}

impl Measured {
    pub(super) fn begin(
        analytics: Analytics,
        identity: &Identity,
        channel: Channel,
        operation: Operation,
        strategy: Strategy,
    ) -> Self {
        let began_at = analytics.clock.now();
        let retrieval = identity.workspace.map(|workspace| Retrieval {
            workspace,
            began_at,
            operation,
            strategy,
            channel,
            plan: identity.plan.clone().unwrap_or_default(),
            principal_kind: identity.principal.kind.as_str(),
            principal_id: identity.principal.id.clone(),
            took: Duration::ZERO,
            found: None,
        });
        Self { analytics, retrieval }
    }

    /// It has been answered, or has failed. What was refused, since the caller asked for what cannot be had, is no
    /// retrieval.
    pub fn end<T>(mut self, answer: &Result<T, Error>, found: impl FnOnce(&T) -> Found) {
        match (answer, self.retrieval.as_mut()) {
            (Ok(answer), Some(retrieval)) => retrieval.found = Some(found(answer)),
            (Err(error), _) if error.is_refusal() => self.retrieval = None,
            (Ok(_), None) | (Err(_), _) => {}
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let Some(mut retrieval) = self.retrieval.take() else { return };
        retrieval.took = self.analytics.clock.now().since(retrieval.began_at);
        self.analytics.tell(Event::Retrieval(Box::new(retrieval)));
    }
}

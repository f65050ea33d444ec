//! The operations, shared by REST, MCP and the console: each takes a validated input, calls the owning service and
//! returns a record.

pub(crate) mod absence;
pub(crate) mod activity;
pub(crate) mod analytics;
pub(crate) mod assets;
pub(crate) mod browse;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod databases;
pub(crate) mod document_status;
pub(crate) mod feedback;
pub(crate) mod file_versions;
pub(crate) mod files;
pub(crate) mod folders;
pub(crate) mod golden;
pub(crate) mod grants;
pub(crate) mod health;
pub(crate) mod imports;
pub(crate) mod ingest;
pub(crate) mod invitations;
#[cfg(test)]
mod limits;
pub(crate) mod locations;
pub(crate) mod members;
pub(crate) mod memories;
pub(crate) mod memory_versions;
pub(crate) mod names;
pub(crate) mod overview;
pub(crate) mod past_moment;
pub(crate) mod person;
pub(crate) mod questions;
pub(crate) mod records;
pub(crate) mod related;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod sources;
pub(crate) mod syncs;
pub(crate) mod tables;
pub(crate) mod tokens;
pub(crate) mod trash;
pub(crate) mod views;
pub(crate) mod webhooks;
pub(crate) mod workspace;
pub(crate) mod workspaces;

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use cairn_chassis::call::Call;
use cairn_chassis::feed::ChangeToken;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::ids::FolderId;
use cairn_proto::retrieval::v1::FeedPosition;
use http::request::Parts;
use prost_types::FieldMask;
use serde::{Deserialize, Deserializer};
use tonic::{Response, Status};

use crate::answers::Links;
use crate::app::App;
use crate::auth::{Caller, CallerIdentity};
use crate::error::{self, Error};
use crate::events::Events;
use crate::own_writes::{OwnWrites, Writer};
use crate::seen_contents::{EarlierContent, SeenContents};
use crate::upstreams::Upstreams;

/// The name of the root folder in query parameters.
pub(crate) const ROOT: &str = "root";

/// The caller and the dependencies of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) links: Arc<Links>,
    pub(crate) own_writes: Arc<OwnWrites>,
    pub(crate) call: Call,
    pub(crate) identity: Arc<CallerIdentity>,
    /// The challenge with which a client can request more scope from its user, if the user could grant it.
    pub(crate) step_up: Option<String>,
    /// Enables read-your-writes for this writer; `None` for callers that carry the consistency token themselves.
    pub(crate) writer: Option<Writer>,
    /// Records the contents served to an agent; `None` for other callers, who know what they have read.
    pub(crate) seen_contents: Option<Arc<SeenContents>>,
    /// Publishes agent calls to the live view; `None` if they are published elsewhere, or the caller is a person.
    pub(crate) events: Option<Arc<Events>>,
}

impl Context {
    /// The writes that the caller's searches must see in addition to those of the request.
    pub(crate) fn own_writes(&self) -> Vec<FeedPosition> {
        self.writer.as_ref().map(|writer| self.own_writes.of(writer)).unwrap_or_default()
    }
}

impl Context {
    /// Records the documents (id and content hash) served to the agent; returns for each the earlier content it
    /// received, if that differs.
    pub(crate) fn show(&self, documents: &[(&str, &str)]) -> Vec<Option<EarlierContent>> {
        match (&self.seen_contents, &self.writer) {
            (Some(seen_contents), Some(agent)) => seen_contents.note(agent, documents),
            _ => Vec::new(),
        }
    }

    /// Drops the record of a document that the agent has written itself.
    pub(crate) fn wrote(&self, document: &str) {
        if let (Some(seen_contents), Some(agent)) = (&self.seen_contents, &self.writer) {
            seen_contents.forget(agent, document);
        }
    }
}

impl FromRequestParts<App> for Context {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let caller = Caller::from_request_parts(parts, app).await?;
        Ok(Self {
            upstreams: FromRef::from_ref(app),
            links: FromRef::from_ref(app),
            own_writes: FromRef::from_ref(app),
            call: caller.call,
            identity: caller.identity,
            step_up: None,
            writer: None,
            seen_contents: None,
            events: None,
        })
    }
}

/// The result of a write, with its consistency token.
#[derive(Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) change: ChangeToken,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; `None` after the last.
    pub(crate) next: Option<String>,
    /// The total number of items.
    pub(crate) total: u64,
}

impl<T> Page<T> {
    pub(crate) fn read<P: Into<T>>(items: Vec<P>, next: String, total: u64) -> Self {
        let next = Some(next).filter(|token| !token.is_empty());
        Self { items: items.into_iter().map(Into::into).collect(), next, total }
    }

    /// The same for fallible conversions.
    pub(crate) fn try_read<P: TryInto<T, Error = Problem>>(
        items: Vec<P>,
        next: String,
        total: u64,
    ) -> Result<Self, Problem> {
        let next = Some(next).filter(|token| !token.is_empty());
        Ok(Self { items: items.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?, next, total })
    }
}

/// The requested page of a list.
#[derive(Debug, Default)]
pub(crate) struct Paging {
    pub(crate) limit: Option<u32>,
    pub(crate) cursor: Option<String>,
}

/// Unwraps a response, or converts its status into a problem.
fn answered<T>(answer: Result<Response<T>, Status>) -> Result<T, Problem> {
    answer.map(Response::into_inner).map_err(|status| error::from_upstream(&status))
}

/// The record that a response must contain.
fn present<T>(record: Option<T>) -> Result<T, Problem> {
    record.ok_or_else(|| Problem::internal("a response lacks its record"))
}

/// Parses a filter that is absent, `root`, or a folder id; the outer `None` means everywhere.
fn folder_choice(text: Option<String>, path: &str) -> Result<Option<Option<String>>, Problem> {
    match text {
        None => Ok(None),
        Some(text) if text == ROOT => Ok(Some(None)),
        Some(text) if text.parse::<FolderId>().is_ok() => Ok(Some(Some(text))),
        Some(_) => {
            let message = "must be the id of a folder, or `root`; leave it out for the whole workspace";
            Err(Problem::validation(vec![Violation::new(path, "invalid_id", message)]))
        }
    }
}

/// The field mask of an update, from the names of its fields and whether each is given. An empty update, unless the
/// request has something else (`is_more`), is likely a mistake, and services take an empty mask for all fields.
fn changes(fields: &[(&str, bool)], is_more: bool) -> Result<FieldMask, Problem> {
    let paths: Vec<String> =
        fields.iter().filter(|(_, is_given)| *is_given).map(|(field, _)| (*field).to_owned()).collect();
    if paths.is_empty() && !is_more {
        let known: Vec<String> = fields.iter().map(|(field, _)| camel(field)).collect();
        let message = format!("needs at least one of: {}", known.join(", "));
        return Err(Problem::validation(vec![Violation::new("body", "empty", message)]));
    }
    Ok(FieldMask { paths })
}

/// The JSON name of a field.
fn camel(field: &str) -> String {
    let mut parts = field.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// Builds the request of an update: the fields that have the same name in input and message, and the mask of those
/// that are given.
macro_rules! update {
    ($input:ident => $request:ident { $($field:ident),+ $(,)? }) => {
        $crate::operations::update!($input => $request { $($field),+ } or false)
    };
    ($input:ident => $request:ident { $($field:ident),+ } or $is_more:expr) => {{
        let given = [$((stringify!($field), $input.$field.is_some())),+];
        let update_mask = $crate::operations::changes(&given, $is_more)?;
        proto::$request {
            $($field: $input.$field.unwrap_or_default(),)+
            update_mask: Some(update_mask),
            ..Default::default()
        }
    }};
}
use update;

/// Distinguishes null from absent.
pub(crate) fn null_or_value<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_filter_is_everywhere_the_root_or_a_folder() {
        let id = "0199c0de-0000-7000-8000-000000000001".to_owned();
        assert_eq!(folder_choice(None, "folderId"), Ok(None));
        assert_eq!(folder_choice(Some("root".to_owned()), "folderId"), Ok(Some(None)));
        assert_eq!(folder_choice(Some(id.clone()), "folderId"), Ok(Some(Some(id))));
        assert!(folder_choice(Some(String::new()), "folderId").is_err());
    }
}

//! Database members: their queries and the current results of these, by the rules of records.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::json;
use cairn_chassis::status::Violation;
use cairn_proto::domain::{Filter, Misread};
use cairn_proto::ids::{DatabaseId, MemberId, RecordId};

use super::Memories;
use crate::Error;
use crate::databases;
use crate::databases::views::SortDraft;
use crate::model::{Database, DatabaseQuery, Property};
use crate::records::{RecordListRequest, Records, Rendered, readable};
use crate::scope::Caller;

/// A record as an agent reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordEntry {
    pub(crate) database_id: DatabaseId,
    pub(crate) id: RecordId,
    pub(crate) title: String,
    pub(crate) path: String,
    /// A line for each field, then the text of its body.
    pub(crate) content: String,
    pub(crate) content_hash: String,
    pub(crate) updated_at: Timestamp,
}

/// The fields of each database member, in their order.
pub(crate) type FieldsOf = HashMap<MemberId, Vec<Property>>;

/// The current contents of a database member.
#[derive(Debug, Default)]
pub(super) struct MemberRecords {
    pub(super) entries: Vec<RecordEntry>,
    /// The number of records that match the query.
    pub(super) total: u64,
    /// The fields of the database, so that an empty result still describes it.
    pub(super) fields: Vec<Property>,
}

impl DatabaseQuery {
    /// The query as a request for a list of records.
    fn list_request(&self) -> Result<RecordListRequest, Error> {
        let order = self.sort_direction.unwrap_or_default();
        let sort = SortDraft { field_id: self.sort_field_id.clone(), order };
        Ok(RecordListRequest {
            search: self.search.clone(),
            filters: self.tree()?.into_iter().collect(),
            sorts: if self.sort_field_id.is_empty() { Vec::new() } else { vec![sort] },
            limit: self.limit,
            ..RecordListRequest::default()
        })
    }

    fn tree(&self) -> Result<Option<Filter>, Error> {
        if self.filter.is_empty() {
            return Ok(None);
        }
        let tree = json::read(self.filter.as_bytes()).map_err(|unreadable| {
            Error::Invalid(vec![Violation::new("filter", "invalid_json", unreadable.to_string())])
        })?;
        let violation = |one: Misread| Violation::new(one.path, one.code, one.message);
        let read = Filter::read(&tree, "filter");
        read.map(Some).map_err(|misread| Error::Invalid(misread.into_iter().map(violation).collect()))
    }
}

impl Memories {
    /// The violations of the query at `path` against the current database.
    pub(super) async fn check_query(
        &self,
        caller: &Caller,
        database: DatabaseId,
        query: &DatabaseQuery,
        path: &str,
    ) -> Result<Vec<Violation>, Error> {
        let records = Records::new(self.context.clone());
        let request = query.list_request();
        let listed = match request {
            Ok(request) => records.list(caller, &database.to_string(), request).await.map(drop),
            Err(unreadable) => Err(unreadable),
        };
        match listed {
            Ok(()) => Ok(Vec::new()),
            Err(Error::Invalid(found)) => {
                Ok(found.into_iter().map(|violation| at_query(violation, path)).collect())
            }
            Err(other) => Err(other),
        }
    }

    /// The records of a member, with a byte limit for their bodies; an answer without records when the query no
    /// longer fits the database.
    pub(super) async fn records(
        &self,
        caller: &Caller,
        id: DatabaseId,
        query: Option<&DatabaseQuery>,
        max_bytes: u64,
    ) -> Result<Option<MemberRecords>, Error> {
        let database = match databases::readable(&self.context.db, caller, &id.to_string()).await {
            Ok(database) => database,
            // Deleted or moved since the memory was read.
            Err(Error::NotFound { .. } | Error::OutOfScope(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        let Ok(request) = query.map(DatabaseQuery::list_request).transpose() else { return Ok(None) };
        let request = request.unwrap_or_default();
        let records = Records::new(self.context.clone());
        let listed = match records.list(caller, &id.to_string(), request).await {
            Ok(listed) => listed,
            Err(Error::Invalid(_) | Error::NotFound { .. } | Error::OutOfScope(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        let ids: Vec<RecordId> = listed.records.iter().map(|record| record.id).collect();
        let rendered = readable(&self.context, caller, &database, &ids, max_bytes).await?;
        let entries = rendered.into_iter().map(|rendered| entry(&database, rendered)).collect();
        Ok(Some(MemberRecords { entries, total: listed.total, fields: database.properties }))
    }
}

/// Titled as in the search index, so that citations name the same document.
fn entry(database: &Database, rendered: Rendered) -> RecordEntry {
    let document = rendered.document;
    RecordEntry {
        database_id: database.id,
        id: RecordId(document.id.0),
        title: document.title,
        path: document.path,
        content: rendered.content,
        content_hash: document.content_hash,
        updated_at: document.updated_at,
    }
}

/// Maps the parameter names of a list of records to those of a member query.
fn at_query(violation: Violation, path: &str) -> Violation {
    let field = match violation.path.as_str() {
        sort if sort.starts_with("sorts") => "sortFieldId".to_owned(),
        other => other.replacen("filters[0]", "filter", 1),
    };
    Violation { path: format!("{path}.{field}"), ..violation }
}

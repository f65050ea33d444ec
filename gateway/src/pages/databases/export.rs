//! `GET /databases/{id}/csv`: exports the grid's records, from all pages, as CSV.

use std::io;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{PropertyType, limits};
use cairn_proto::ids::DatabaseId;
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{HeaderValue, header};

use super::at::{Found, LocatedDatabase};
use super::model::{as_text, kind_of, value_of};
use super::rows::columns;
use super::view_state::ViewState;
use crate::answers::{Database, Property, Record, RecordPage};
use crate::operations::Context;
use crate::operations::records::{self, Selection};
use crate::pages::Answer;

/// The state of an export in progress.
struct Rest {
    context: Context,
    database: DatabaseId,
    view_state: ViewState,
    /// The database at the start: a concurrent change of its fields must not mix tables.
    read: Box<Database>,
    offset: u64,
}

pub(super) async fn csv(at: LocatedDatabase, parts: Parts) -> Answer {
    let read = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let view_state = ViewState::read(parts.uri.query().unwrap_or_default()).anew();
    let name: String = form_urlencoded::byte_serialize(read.name.as_bytes()).collect();
    let mut rest = Rest { context: at.visitor.context()?, database: at.id, view_state, read, offset: 0 };
    // The first page is read before the response starts, so that an invalid query is reported as a page.
    let page = match rest.page().await {
        Ok(page) => page,
        Err(problem) => return Err(rest.view_state.named(problem, &rest.read).into()),
    };
    let head: Vec<String> =
        columns(&rest.read, &rest.view_state).iter().map(|property| cell_of(&property.name)).collect();
    let first = written([head].into_iter().chain(rest.rows(&page)))?;
    let more = stream::try_unfold(rest, next);
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(more));
    Ok(attached(body, &name))
}

/// The next chunk. A failure aborts the response, which the client notices: a truncated table would look complete.
async fn next(mut rest: Rest) -> Result<Option<(Bytes, Rest)>, io::Error> {
    if rest.offset == 0 {
        return Ok(None);
    }
    let page = rest.page().await.map_err(failed)?;
    let part = written(rest.rows(&page)).map_err(failed)?;
    Ok(Some((part, rest)))
}

fn failed(problem: Problem) -> io::Error {
    io::Error::other(problem.message)
}

fn attached(body: Body, name: &str) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present"));
    let disposition = format!("attachment; filename*=UTF-8''{}.csv", name.replace('+', "%20"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

impl Rest {
    /// The next records. The offset is 0 after the last.
    async fn page(&mut self) -> Result<RecordPage, Problem> {
        let selection = Selection {
            limit: Some(limits::RECORDS_PAGE),
            offset: Some(self.offset),
            ..self.view_state.selection(&self.read)
        };
        let page = records::list(&self.context, self.database, selection).await?;
        let end = self.offset + page.records.len() as u64;
        self.offset = if page.records.is_empty() || end >= page.total { 0 } else { end };
        Ok(page)
    }

    fn rows(&self, page: &RecordPage) -> Vec<Vec<String>> {
        let columns = columns(&self.read, &self.view_state);
        let row = |record: &Record| {
            columns.iter().map(|property| cell(property, value_of(record, property))).collect()
        };
        page.records.iter().map(row).collect()
    }
}

/// A value for spreadsheets. Some evaluate texts that look like formulas, and anybody with write access could have
/// injected one: a leading apostrophe keeps it a text (CSV injection).
fn cell(property: &Property, value: Option<&serde_json::Value>) -> String {
    let text = as_text(value);
    if kind_of(property) == PropertyType::Number { text } else { cell_of(&text) }
}

fn cell_of(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

fn written(rows: impl IntoIterator<Item = Vec<String>>) -> Result<Bytes, Problem> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(Problem::internal)?;
    }
    writer.into_inner().map(Bytes::from).map_err(|error| Problem::internal(error.error()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_keep_their_shape_and_run_nothing() {
        let of = |kind: PropertyType, value: serde_json::Value| {
            cell(&Property { r#type: kind.number(), ..Property::default() }, Some(&value))
        };
        assert_eq!(of(PropertyType::Number, json!(-1)), "-1");
        assert_eq!(of(PropertyType::Text, json!("=1+1")), "'=1+1");
        assert_eq!(of(PropertyType::MultiSelect, json!(["a", "b"])), "a, b");
        let bytes =
            written([vec!["a,b".to_owned(), "\"x\"\ny".to_owned()], vec!["é".to_owned(), String::new()]]);
        assert_eq!(&bytes.unwrap()[..], "\"a,b\",\"\"\"x\"\"\ny\"\r\né,\r\n".as_bytes());
    }
}

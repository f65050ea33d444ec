//! Explains why a search does not return a document.

use cairn_chassis::status::Problem;
use cairn_proto::retrieval::v1 as proto;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::search::{self, Freshness, SearchContext};
use super::{Context, answered};
use crate::answers::Absence;
use crate::schema::inputs;

inputs!(ExplainAbsence);

/// The field that names the missing document, beside the fields of the search.
const DOCUMENT: &str = "documentId";

/// A search, and the document missing from its results.
#[derive(Debug)]
pub(crate) struct ExplainAbsence {
    search: SearchContext,
    document_id: String,
}

// Flattened by hand: serde's `flatten` does not work with `deny_unknown_fields`.
impl<'de> Deserialize<'de> for ExplainAbsence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let Some(Value::String(document_id)) = fields.remove(DOCUMENT) else {
            return Err(D::Error::missing_field(DOCUMENT));
        };
        let search = SearchContext::deserialize(Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Self { search, document_id })
    }
}

impl PartialSchema for ExplainAbsence {
    fn schema() -> RefOr<Schema> {
        let mut schema = SearchContext::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            let document = ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::Custom("uuid".to_owned())))
                .description(Some(
                    "The document that is missing: the id of a file, record, memory or document.",
                ))
                .build();
            object.properties.insert(DOCUMENT.to_owned(), RefOr::T(Schema::Object(document)));
            object.required.push(DOCUMENT.to_owned());
            object.description =
                Some("A search as it was asked, and the document that is missing.".to_owned());
        }
        schema
    }
}

impl ToSchema for ExplainAbsence {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SearchContext::schemas(schemas);
    }
}

pub(crate) async fn explain(
    context: &Context,
    input: ExplainAbsence,
    freshness: Freshness,
) -> Result<Absence, Problem> {
    let ExplainAbsence { search, document_id } = input;
    let search = Some(search::asked(context, search, freshness)?);
    let request = context.call.request(proto::ExplainAbsenceRequest { search, document_id });
    let answer = answered(context.upstreams.search().explain_absence(request).await)?;
    Ok(Absence::read(answer, &context.links))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validate;

    #[test]
    fn the_document_stands_among_the_fields_of_the_search() {
        let id = "0199c0de-0000-7000-8000-000000000001";
        let read = |fields: Value| validate::read::<ExplainAbsence>(fields, "body");
        let asked = read(json!({"query": "x", "limit": 3, "documentId": id})).unwrap();
        assert_eq!(asked.document_id, id);
        let wrong = read(json!({"query": "x", "limit": 51, "documentId": "x", "more": 1})).unwrap_err();
        let paths: Vec<&str> = wrong.violations.iter().map(|one| one.path.as_str()).collect();
        for path in ["limit", "documentId", "more"] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
        assert!(read(json!({"query": "x"})).is_err());
    }
}

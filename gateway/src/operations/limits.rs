//! Checks that the limits in input schemas match those that the services enforce. The derive macro only takes
//! literals, so they are compared here.

use cairn_proto::domain::limits;
use serde_json::Value;

use super::{
    bulk, databases, feedback, files, folders, members, memories, search, sources, tokens, workspaces,
};
use crate::schema::{Contract, Input};

/// The limit under that keyword, anywhere in the field's schema: nullable fields have alternatives.
fn limit(schema: &Value, keyword: &str) -> Option<u64> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get(keyword).and_then(Value::as_u64);
            own.or_else(|| fields.values().find_map(|inner| limit(inner, keyword)))
        }
        Value::Array(elements) => elements.iter().find_map(|inner| limit(inner, keyword)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn assert_limits<T: Input>(expected: &[(&str, &str, usize)]) {
    let contract: &Contract = T::contract();
    for (field, keyword, number) in expected {
        let found = contract.field(field).and_then(|schema| limit(schema, keyword));
        assert_eq!(found, Some(*number as u64), "{} {field} {keyword}", T::name());
    }
}

#[test]
fn inputs_promise_the_limits_of_the_services() {
    let name = ("name", "maxLength", limits::NAME_CHARS);
    let label = ("name", "maxLength", limits::LABEL_CHARS);
    assert_limits::<files::CreateFile>(&[name, ("description", "maxLength", limits::FILE_DESCRIPTION_CHARS)]);
    assert_limits::<files::UpdateFile>(&[name, ("description", "maxLength", limits::FILE_DESCRIPTION_CHARS)]);
    assert_limits::<files::SearchFiles>(&[("limit", "maximum", limits::PAGE as usize)]);
    assert_limits::<folders::CreateFolder>(&[name]);
    assert_limits::<folders::UpdateFolder>(&[name]);
    assert_limits::<databases::CreateDatabase>(&[name]);
    assert_limits::<databases::UpdateDatabase>(&[name]);
    assert_limits::<databases::CreateField>(&[name]);
    assert_limits::<databases::UpdateField>(&[name]);
    assert_limits::<databases::CreateView>(&[name]);
    assert_limits::<databases::UpdateView>(&[name]);
    let guidance = [
        name,
        ("slug", "maxLength", limits::SLUG_CHARS),
        ("description", "maxLength", limits::GUIDANCE_CHARS),
        ("useWhen", "maxLength", limits::GUIDANCE_CHARS),
    ];
    assert_limits::<memories::CreateMemory>(&guidance);
    assert_limits::<memories::UpdateMemory>(&guidance);
    assert_limits::<memories::AddMembers>(&[("members", "maxItems", limits::MEMBERS_A_CALL)]);
    assert_limits::<search::SearchContext>(&[
        ("query", "maxLength", limits::QUERY_CHARS),
        ("searches", "maxItems", limits::SUBQUERIES),
        ("sourceIds", "maxItems", limits::SOURCES),
        ("tags", "maxItems", limits::TAGS),
        ("kinds", "maxItems", limits::KINDS),
        ("limit", "maximum", limits::RESULTS),
    ]);
    let items = ("items", "maxItems", limits::ITEMS_AT_ONCE);
    assert_limits::<bulk::MoveItems>(&[items]);
    assert_limits::<bulk::TagItems>(&[items]);
    assert_limits::<bulk::TrashItems>(&[items]);
    assert_limits::<bulk::RestoreItems>(&[items]);
    assert_limits::<sources::SourceQuery>(&[("query", "maxLength", limits::QUERY_CHARS)]);
    assert_limits::<feedback::SubmitFeedback>(&[("message", "maxLength", limits::FEEDBACK_CHARS)]);
    assert_limits::<workspaces::CreateWorkspace>(&[label]);
    assert_limits::<workspaces::UpdateWorkspace>(&[label]);
    assert_limits::<members::AddMember>(&[("email", "maxLength", limits::EMAIL_BYTES)]);
    assert_limits::<tokens::CreateToken>(&[label, ("scope", "maxItems", limits::SCOPE_FOLDERS)]);
}

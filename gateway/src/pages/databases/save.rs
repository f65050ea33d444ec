//! Saves the form of a record or a cell: only changed values are sent, with the version they are based on
//! (optimistic locking), so that nobody overwrites a concurrent change.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use cairn_proto::ids::RecordId;
use serde_json::{Map, Value, json};

use super::at::{Found, LocatedDatabase, LocatedPart};
use super::conflict;
use super::form_outcome::FormOutcome;
use super::grid;
use super::model::value_of;
use super::values::{changed, named};
use super::view_state::{NEW, ViewState};
use crate::answers::{Database, Record};
use crate::operations::records::{self, CreateRecord, UpdateRecord};
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::popover::is_of_a_form;
use crate::pages::{Answer, golden};

/// `POST /databases/{id}/records`.
pub(super) async fn create(at: LocatedDatabase, form: Form) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let view_state = ViewState::read(form.text("back"));
    let input = form::input::<CreateRecord>(json!({"values": values(&database, None, &form)}));
    let made = match input {
        Ok(input) => records::create(&at.visitor.context()?, at.id, input, false).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            // Opens the page with the new record.
            let beside = ViewState { page: None, ..view_state.beside(&made.value.id) };
            Ok(at.visitor.done(&beside.address(&database.id), &Notice::Created))
        }
        Err(problem) if !is_of_a_form(&problem) => Err(problem.into()),
        Err(problem) => {
            let problem = named(problem);
            grid::show_again(&at, &view_state.beside(NEW), FormOutcome::of_record(Some(&problem), &form))
                .await
        }
    }
}

/// `POST /databases/{id}/records/{record}`.
pub(super) async fn save(LocatedPart { at, id }: LocatedPart<RecordId>, form: Form) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let context = at.visitor.context()?;
    let now = records::get(&context, at.id, id).await?;
    let view_state = ViewState::read(form.text("back"));
    let is_cell = form.has("cell");
    if form.text("then") == "merge" {
        // The form again with its input and the current version.
        return grid::show_again(&at, &view_state.beside(&now.id), FormOutcome::of_record(None, &form)).await;
    }
    let values = values(&database, Some(&now), &form);
    let saved = if values.is_empty() {
        Ok(())
    } else if form.text("version").parse() == Ok(now.version) {
        let input = form::input::<UpdateRecord>(json!({"values": values}))?;
        records::update(&context, at.id, id, input, vec![now.version], false).await.map(drop)
    } else {
        Err(Problem::version_conflict("somebody else changed the record meanwhile"))
    };
    match saved {
        Ok(()) => Ok(at.visitor.done(&view_state.address(&database.id), &Notice::Saved)),
        Err(problem) if problem.violations.is_empty() && problem.reason != Reason::VersionConflict => {
            Err(problem.into())
        }
        Err(problem) if is_cell => {
            let problem = named(problem);
            let cell = Some((now.id.clone(), form.text("cell").to_owned()));
            grid::show_again(&at, &ViewState { cell, ..view_state }, FormOutcome::of_cell(&problem, &form))
                .await
        }
        Err(problem) if problem.reason == Reason::VersionConflict => {
            // It may have changed since it was read above.
            let now = records::get(&context, at.id, id).await?;
            conflict::show(&at, &database, &view_state, &now, &form).await
        }
        Err(problem) => {
            let problem = named(problem);
            let view_state = ViewState { record: Some(now.id.clone()), ..view_state };
            grid::show_again(&at, &view_state, FormOutcome::of_record(Some(&problem), &form)).await
        }
    }
}

/// `POST /databases/{id}/records/{record}/check`: the form with the golden questions' results for its values.
pub(super) async fn check(LocatedPart { at, id }: LocatedPart<RecordId>, form: Form) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    if !at.visitor.may(Permission::Write) {
        return Err(Problem::forbidden("changing records takes a role that may write: ask an owner").into());
    }
    let context = at.visitor.context()?;
    let now = records::get(&context, at.id, id).await?;
    let view_state = ViewState::read(form.text("back"));
    if form.text("version").parse() != Ok(now.version) {
        return conflict::show(&at, &database, &view_state, &now, &form).await;
    }
    let values = values(&database, Some(&now), &form);
    let checked = golden::effects_of_record(&at.visitor, (at.id, id), values).await;
    let outcome = FormOutcome { checked: Some(&checked), ..FormOutcome::of_record(None, &form) };
    grid::show_again(&at, &view_state.beside(&now.id), outcome).await
}

/// The changed values by property. Properties without a field in the form are kept.
fn values(database: &Database, before: Option<&Record>, form: &Form) -> Map<String, Value> {
    let held = database.properties.iter().filter(|property| form.all("field").any(|id| id == property.id));
    held.filter_map(|property| {
        let value = changed(property, form, before.and_then(|record| value_of(record, property)))?;
        Some((property.id.clone(), value))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;
    use cairn_proto::domain::PropertyType;

    use super::*;

    #[test]
    fn only_fields_that_were_there_and_changed_are_sent() {
        let property = |id: &str, kind: PropertyType| proto::Property {
            id: id.into(),
            r#type: kind.number(),
            ..proto::Property::default()
        };
        let database = proto::Database {
            properties: vec![
                property("a", PropertyType::Text),
                property("b", PropertyType::Text),
                property("c", PropertyType::Boolean),
                property("d", PropertyType::Boolean),
            ],
            ..proto::Database::default()
        };
        let record = proto::Record {
            values_json: json!({"a": "x", "b": "y", "c": true, "d": true}).to_string(),
            ..proto::Record::default()
        };
        let (database, record) = (Database::from(database), Record::try_from(record).unwrap());
        let form = Form::read(b"field=a&v-a=x&field=b&v-b=z&field=c&v-d=yes");
        let sent = Value::Object(values(&database, Some(&record), &form));
        assert_eq!(sent, json!({"b": "z", "c": false}));
        let new = Value::Object(values(&database, None, &form));
        assert_eq!(new, json!({"a": "x", "b": "z"}));
    }
}

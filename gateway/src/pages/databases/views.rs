//! Saving, changing and deleting views.

use cairn_chassis::status::Problem;
use cairn_proto::ids::ViewId;
use serde_json::{Value, json};

use super::at::{Found, LocatedDatabase, LocatedPart};
use super::form_outcome::FormOutcome;
use super::grid;
use super::tabs;
use super::view_state::{ViewState, sorts_as_json};
use crate::answers::{Database, View};
use crate::operations::databases::{self, CreateView, UpdateView};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::popover::{Refused, is_of_a_form};

/// `POST /databases/{id}/views`: saves the current filters and sorts under a name.
pub(super) async fn create(at: LocatedDatabase, form: Form) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let view_state = ViewState::read(form.text("back"));
    let hidden = view_state.view_of(&database).map(|view| view.hidden_field_ids.clone()).unwrap_or_default();
    let fields = json!({
        "name": form.trimmed("name"),
        "filters": filters(&database, &view_state),
        "sorts": sorts_as_json(&view_state.orders_of(&database)),
        "hiddenFieldIds": hidden,
    });
    let made = match form::input::<CreateView>(fields) {
        Ok(input) => databases::create_view(&at.visitor.context()?, at.id, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => Ok(at
            .visitor
            .done(&ViewState::default().in_view(&made.value).address(&database.id), &Notice::Created)),
        Err(problem) => refused(&at, &view_state, Some((tabs::SAVE, &form)), problem).await,
    }
}

/// `POST /databases/{id}/views/{view}`: changes its name and columns, or updates its filters and sorts to the
/// current ones.
pub(super) async fn update(LocatedPart { at, id }: LocatedPart<ViewId>, form: Form) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let view_state = ViewState::read(form.text("back"));
    let is_of_filters = form.text("what") == "filters";
    let fields = if is_of_filters {
        json!({"filters": filters(&database, &view_state), "sorts": sorts_as_json(&view_state.orders_of(&database))})
    } else {
        let hidden: Vec<&str> = form.all("hide").collect();
        json!({"name": form.trimmed("name"), "hiddenFieldIds": hidden})
    };
    let changed = match form::input::<UpdateView>(fields) {
        Ok(input) => databases::update_view(&at.visitor.context()?, at.id, id, input).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(changed) => Ok(at
            .visitor
            .done(&ViewState::default().in_view(&changed.value).address(&database.id), &Notice::Saved)),
        Err(problem) => {
            let sent = (!is_of_filters).then_some((tabs::CHANGE, &form));
            refused(&at, &view_state, sent, problem).await
        }
    }
}

/// `POST /databases/{id}/views/{view}/delete`.
pub(super) async fn delete(LocatedPart { at, id }: LocatedPart<ViewId>) -> Answer {
    match databases::delete_view(&at.visitor.context()?, at.id, id).await {
        Ok(_) => Ok(at.visitor.done(&super::address(at.id), &Notice::Deleted)),
        Err(problem) => refused(&at, &ViewState::default(), None, problem).await,
    }
}

/// All effective conditions: the view's own and those of the URL.
fn filters(database: &Database, view_state: &ViewState) -> Vec<Value> {
    let of_view = view_state.view_of(database).map(of_view).unwrap_or_default();
    of_view
        .into_iter()
        .chain(view_state.filters.iter().map(|condition| condition.as_json(&database.properties)))
        .collect()
}

fn of_view(view: &View) -> Vec<Value> {
    // A newer service may have operators unknown here.
    view.filters
        .iter()
        .filter(|filter| filter.operator.is_some())
        .filter_map(|filter| serde_json::to_value(filter).ok())
        .collect()
}

/// The page again, with the rejected form: its id and fields.
async fn refused(
    at: &LocatedDatabase,
    view_state: &ViewState,
    sent: Option<(&str, &Form)>,
    problem: Problem,
) -> Answer {
    if !is_of_a_form(&problem) {
        return Err(problem.into());
    }
    let outcome = match sent {
        Some((of, form)) => FormOutcome::of_button(Refused { of, form, problem: &problem }),
        None => FormOutcome::of_page(&problem),
    };
    grid::show_again(at, view_state, outcome).await
}

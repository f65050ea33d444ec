//! `/databases/{id}/fields`: the properties of a database and their order.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{Permission, PropertyType};
use cairn_proto::ids::PropertyId;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::at::{Found, LocatedDatabase, LocatedPart};
use super::model::{kind_of, options};
use super::values::kind_name;
use super::{address, list};
use crate::answers::{Database, Property};
use crate::operations::databases::{self, CreateField, UpdateField};
use crate::operations::{Context, Paging};
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::popover::is_of_a_form;
use crate::pages::{Answer, parts as part, words};

/// Options shown in a property's row; its form has all of them.
const MAX_OPTIONS: usize = 12;

/// A failed form of the page.
#[derive(Debug, Clone, Copy)]
struct FailedForm<'a> {
    problem: &'a Problem,
    /// The input, and its form.
    sent: Option<SubmittedForm<'a>>,
}

/// A submitted form of the page.
#[derive(Debug, Clone, Copy)]
struct SubmittedForm<'a> {
    /// The property that it changes; `None`: it creates one.
    of: Option<PropertyId>,
    form: &'a Form,
}

impl<'a> FailedForm<'a> {
    /// The input of the form of a new property.
    fn of_new(self) -> Option<&'a Form> {
        self.sent.filter(|sent| sent.of.is_none()).map(|sent| sent.form)
    }

    /// The input of the form that changes that property.
    fn of_field(self, property: &Property) -> Option<&'a Form> {
        let sent = self.sent.filter(|sent| sent.of.is_some_and(|of| of.to_string() == property.id));
        sent.map(|sent| sent.form)
    }
}

/// `GET /databases/{id}/fields`.
pub(super) async fn show(at: LocatedDatabase) -> Answer {
    show_page(&at, None).await
}

/// `POST /databases/{id}/fields`.
pub(super) async fn create(at: LocatedDatabase, form: Form) -> Answer {
    let made = match create_input(&form).and_then(form::input::<CreateField>) {
        Ok(input) => databases::create_field(&at.visitor.context()?, at.id, input).await.map(drop),
        Err(problem) => Err(problem),
    };
    answer(&at, made, &Notice::Created, Some(SubmittedForm { of: None, form: &form })).await
}

/// `POST /databases/{id}/fields/{field}`: its name and type configuration.
pub(super) async fn update(LocatedPart { at, id }: LocatedPart<PropertyId>, form: Form) -> Answer {
    let mut fields = Map::from_iter([("name".to_owned(), json!(form.trimmed("name")))]);
    let mut config = Map::new();
    if form.has("has-options") {
        config.insert("options".to_owned(), Value::Array(known_options(&form)));
    }
    if form.has("multiple") {
        config.insert("multiple".to_owned(), json!(true));
    }
    if !config.is_empty() {
        fields.insert("config".to_owned(), Value::Object(config));
    }
    let changed = match form::input::<UpdateField>(Value::Object(fields)) {
        Ok(input) => databases::update_field(&at.visitor.context()?, at.id, id, input).await.map(drop),
        Err(problem) => Err(problem),
    };
    answer(&at, changed, &Notice::Saved, Some(SubmittedForm { of: Some(id), form: &form })).await
}

/// `POST /databases/{id}/fields/{field}/move`: to another position.
pub(super) async fn move_to(LocatedPart { at, id }: LocatedPart<PropertyId>, form: Form) -> Answer {
    let position: Option<u32> = form.text("position").parse().ok();
    let moved = match form::input::<UpdateField>(json!({"position": position.unwrap_or_default()})) {
        Ok(input) if position.is_some() => {
            databases::update_field(&at.visitor.context()?, at.id, id, input).await.map(drop)
        }
        Ok(_) => Err(wrong("position", "must be a whole number")),
        Err(problem) => Err(problem),
    };
    answer(&at, moved, &Notice::Saved, None).await
}

/// `POST /databases/{id}/fields/{field}/delete`.
pub(super) async fn delete(LocatedPart { at, id }: LocatedPart<PropertyId>) -> Answer {
    let deleted = databases::delete_field(&at.visitor.context()?, at.id, id).await.map(drop);
    answer(&at, deleted, &Notice::Saved, None).await
}

async fn answer(
    at: &LocatedDatabase,
    done: Result<(), Problem>,
    notice: &Notice,
    sent: Option<SubmittedForm<'_>>,
) -> Answer {
    match done {
        Ok(()) => Ok(at.visitor.done(&fields_address(at.id), notice)),
        Err(problem) if is_of_a_form(&problem) => {
            show_page(at, Some(FailedForm { problem: &problem, sent })).await
        }
        Err(problem) => Err(problem.into()),
    }
}

fn fields_address(id: impl std::fmt::Display) -> String {
    format!("{}/fields", address(id))
}

fn wrong(path: &str, message: &str) -> Problem {
    Problem::validation(vec![Violation::new(path, "invalid", message)])
}

/// A new property with the configuration of its type; that of other types is dropped.
fn create_input(form: &Form) -> Result<Value, Problem> {
    let kind: PropertyType = form
        .trimmed("type")
        .parse()
        .map_err(|_| wrong("type", "must be one of the types that are offered"))?;
    let mut config = Map::new();
    if kind.has_options() {
        let options: Vec<Value> = lines(form.text("options")).map(|name| json!({"name": name})).collect();
        config.insert("options".to_owned(), Value::Array(options));
    }
    if kind.is_reference() {
        config.insert("multiple".to_owned(), json!(form.has("multiple")));
    }
    if kind == PropertyType::Relation {
        let database = Some(form.trimmed("database")).filter(|id| !id.is_empty());
        let database = database.ok_or_else(|| wrong("database", "has to be chosen for a relation"))?;
        config.insert("relationDatabaseId".to_owned(), json!(database));
    }
    Ok(json!({"name": form.trimmed("name"), "type": kind.as_str(), "config": config}))
}

/// The existing options by id with their new names, followed by new ones. An option with an empty name is removed.
fn known_options(form: &Form) -> Vec<Value> {
    let known = form.all("option-id").zip(form.all("option"));
    let known = known.filter(|(_, name)| !name.trim().is_empty());
    let known = known.map(|(id, name)| json!({"id": id, "name": name.trim()}));
    known.chain(lines(form.text("options")).map(|name| json!({"name": name}))).collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

async fn show_page(at: &LocatedDatabase, failed: Option<FailedForm<'_>>) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let may_write = at.visitor.may(Permission::Write);
    let context = at.visitor.context()?;
    let others = if may_write { databases_of(&context).await? } else { Vec::new() };
    // The form of a new property comes first: only its errors can link to fields.
    let labels = [("name", "Name"), ("type", "Type"), ("database", "Database")];
    let of_new = failed.is_some_and(|failed| failed.of_new().is_some()) && may_write;
    let labels: &[_] = if of_new { &labels } else { &[] };
    let body = html! {
        (part::summary(failed.map(|failed| failed.problem), labels))
        (table(&database, &others, may_write, failed))
        @if may_write {
            h2 { "New field" }
            (creation(&database, &others, failed))
        } @else if let Some(here) = at.visitor.here_if_any().filter(|_| at.visitor.seen_as().is_none()) {
            (part::not_in_role(here))
        }
    };
    let above = vec![
        ("Databases".to_owned(), list::address(at.visitor.here()?.id)),
        (database.name.clone(), address(&database.id)),
    ];
    let page = Page::new("Fields").crumbs(above);
    let page = if failed.is_some() { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

/// Ids and names of databases that a relation can target: the first thousand by name.
async fn databases_of(context: &Context) -> Result<Vec<(String, String)>, Problem> {
    let listed = databases::list(context, None, Paging::default()).await?;
    Ok(listed.items.into_iter().map(|database| (database.id, database.name)).collect())
}

fn table(
    database: &Database,
    others: &[(String, String)],
    may_write: bool,
    failed: Option<FailedForm<'_>>,
) -> Markup {
    let last = database.properties.len().saturating_sub(1);
    let rows = html! {
        @for (place, property) in database.properties.iter().enumerate() {
            tr {
                th scope="row" {
                    bdi { (property.name) }
                    @if property.is_primary { " " (part::badge(part::Tone::Plain, "Title")) }
                }
                td { (kind_name(kind_of(property))) }
                td { (configuration(property, others)) }
                @if may_write { td { (changes(database, property, (place, last), failed)) } }
            }
        }
    };
    let columns = ["Name", "Type", "What it takes", ""];
    part::table("Fields", if may_write { &columns } else { columns.get(..3).unwrap_or_default() }, &rows)
}

/// The configuration of a property's type.
fn configuration(property: &Property, others: &[(String, String)]) -> Markup {
    let config = property.config.as_ref();
    let count = options(property).count();
    html! {
        @for name in options(property).take(MAX_OPTIONS) { span.badge { bdi { (name) } } " " }
        @if count > MAX_OPTIONS { span.quiet { "and " (words::count((count - MAX_OPTIONS) as u64, "other", "others")) } }
        @if let Some(id) = config.and_then(|config| config.relation_database_id.as_deref()) {
            @let name = others.iter().find(|(other, _)| other == id).map_or("a database", |(_, name)| name.as_str());
            "Records of " a href=(address(id)) { bdi { (name) } }
        }
        @if kind_of(property).is_reference() && config.is_some_and(|config| config.multiple) { " " span.quiet { "several" } }
    }
}

/// The actions on a property; `last` is the highest position.
fn changes(
    database: &Database,
    property: &Property,
    (place, last): (usize, usize),
    failed: Option<FailedForm<'_>>,
) -> Markup {
    let typed = failed.and_then(|failed| failed.of_field(property));
    let problem = failed.filter(|_| typed.is_some()).map(|failed| failed.problem);
    let base = format!("{}/{}", fields_address(&database.id), property.id);
    let shift = |label: &str, position: usize| {
        part::action(&format!("{base}/move"), label, &property.name, &[("position", &position.to_string())])
    };
    let dialog = format!("delete-{}", property.id);
    html! {
        div.buttons {
            @if place > 0 { (shift("Move up", place - 1)) }
            @if place < last { (shift("Move down", place + 1)) }
            details open[typed.is_some()] {
                summary { "Rename or change" span.sr { " " bdi { (property.name) } } }
                (change(&base, property, typed, problem))
            }
            @if !property.is_primary {
                (part::opens(&dialog, "Delete", &property.name))
                (part::dialog(&dialog, "Delete the field?", &html! {
                    p { "The field " bdi { (property.name) } " goes from every record, with its values. The versions before keep them." }
                }, &format!("{base}/delete"), "Delete field", &html! {}))
            }
        }
    }
}

fn change(base: &str, property: &Property, typed: Option<&Form>, problem: Option<&Problem>) -> Markup {
    let id = |of: &str| format!("{of}-{}", property.id);
    let kind = kind_of(property);
    let is_multiple = property.config.as_ref().is_some_and(|config| config.multiple);
    let text = |name: &str| typed.map(|form| form.text(name)).unwrap_or_default();
    let name = typed.map_or(property.name.as_str(), |form| form.text("name"));
    let options = property.config.iter().flat_map(|config| &config.options);
    // They are submitted in rendering order.
    let names: Vec<&str> = typed.map(|form| form.all("option").collect()).unwrap_or_default();
    html! {
        form.fields method="post" action=(base) {
            (part::Field::text("name", "Name").id(&id("name")).value(name).problem(problem).render())
            @if kind.has_options() {
                input type="hidden" name="has-options" value="yes";
                fieldset {
                    legend { "Options" }
                    p.hint { "An option whose name is taken out goes from every record that has it." }
                    @for (at, option) in options.enumerate() {
                        input type="hidden" name="option-id" value=(option.id);
                        input type="text" name="option" value=(names.get(at).copied().unwrap_or(&option.name)) aria-label={ "Option " (option.name) } autocomplete="off" dir="auto";
                    }
                }
                (more_options(&id("options"), "More options", text("options")))
            }
            @if kind.is_reference() && kind != PropertyType::Relation && !is_multiple {
                div.option {
                    input id=(id("multiple")) type="checkbox" name="multiple" value="yes" checked[!text("multiple").is_empty()];
                    label for=(id("multiple")) { "May name several" }
                }
            }
            p.hint { "The type stays what it is: add another field instead." }
            button type="submit" { "Save field" }
        }
    }
}

fn more_options(id: &str, label: &str, typed: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { (label) }
            span.hint id={ (id) "-hint" } { "One a line." }
            textarea id=(id) name="options" rows="3" dir="auto" autocomplete="off" aria-describedby={ (id) "-hint" } { "\n" (typed) }
        }
    }
}

fn creation(database: &Database, others: &[(String, String)], failed: Option<FailedForm<'_>>) -> Markup {
    let form = failed.and_then(FailedForm::of_new);
    let problem = failed.filter(|_| form.is_some()).map(|failed| failed.problem);
    let typed = |name: &str| form.map(|form| form.text(name)).unwrap_or_default();
    let chosen = |name: &str, value: &str| typed(name) == value;
    html! {
        form.fields method="post" action=(fields_address(&database.id)) {
            (part::Field::text("name", "Name").value(typed("name")).problem(problem).render())
            (part::choices("type", "Type", PropertyType::ALL.into_iter().map(|kind| part::Choice {
                value: kind.as_str(),
                label: kind_name(kind),
                is_chosen: chosen("type", kind.as_str()),
            })))
            (more_options("f-options", "Options of a select", typed("options")))
            (part::choices("database", "Database of a relation", [("", "–")].into_iter().chain(
                others.iter().map(|(id, name)| (id.as_str(), name.as_str()))
            ).map(|(value, label)| part::Choice { value, label, is_chosen: chosen("database", value) })))
            div.option {
                input #f-multiple type="checkbox" name="multiple" value="yes" checked[form.is_some_and(|form| form.has("multiple"))];
                label for="f-multiple" { "A file, asset or relation may name several" }
            }
            p.hint { "The type cannot be changed later." }
            button.primary type="submit" { "Add field" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(body: &str) -> Form {
        Form::read(body.as_bytes())
    }

    #[test]
    fn a_new_field_takes_what_its_type_knows() {
        let made =
            create_input(&sent("name=+A+&type=select&options=x%0D%0A%0D%0A+y+&database=d&multiple=yes"));
        assert_eq!(
            made.unwrap(),
            json!({"name": "A", "type": "select", "config": {"options": [{"name": "x"}, {"name": "y"}]}})
        );
        let made = create_input(&sent("name=A&type=relation&options=x&database=d&multiple=yes")).unwrap();
        assert_eq!(made["config"], json!({"multiple": true, "relationDatabaseId": "d"}));
        assert_eq!(create_input(&sent("name=A&type=text&multiple=yes")).unwrap()["config"], json!({}));
        for wrong in ["name=A", "name=A&type=texts", "name=A&type=relation&database="] {
            assert_eq!(create_input(&sent(wrong)).unwrap_err().violations.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn an_option_keeps_its_id_under_another_name() {
        let form = sent("option-id=1&option=one&option-id=2&option=+&option-id=3&option=drei&options=four");
        let expected = json!([{"id": "1", "name": "one"}, {"id": "3", "name": "drei"}, {"name": "four"}]);
        assert_eq!(Value::Array(known_options(&form)), expected);
    }
}

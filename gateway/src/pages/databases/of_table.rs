//! `/w/{id}/databases/import`: creates a database from a table. The inferred columns can be changed before anything
//! is written; the table and all input are carried in the page.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::TableField;
use cairn_proto::domain::{Permission, PropertyType};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::submitted_form::{CSV, SubmittedForm};
use super::values::kind_name;
use super::{address as address_of, import, list};
use crate::answers::DatabaseOfTable;
use crate::error::Error;
use crate::operations::tables::{self, CreateDatabaseOfTable};
use crate::pages::form;
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{Choice, Field};
use crate::pages::popover::is_of_a_form;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, parts as part, words};

/// The fallback name of a database.
const FALLBACK_NAME: &str = "Table";

/// The URL of the page.
pub(super) fn address(visitor: &Visitor) -> Result<String, Error> {
    Ok(format!("{}/import", list::address(visitor.here()?.id)))
}

pub(super) async fn show(visitor: Visitor) -> Answer {
    page(&visitor, None, &[], &choosing(&visitor)?)
}

/// Previews the table, or creates the database.
pub(super) async fn send(visitor: Visitor, sent: SubmittedForm) -> Answer {
    let makes = sent.text("then") == "make";
    let mut refused = None;
    if makes {
        match read(&visitor, input(&sent, false)).await {
            Ok(made) => {
                let made = made.database.ok_or_else(|| Problem::internal("nothing was made of a table"))?;
                return Ok(visitor.done(&address_of(&made.id), &Notice::RecordsImported));
            }
            Err(problem) if is_of_a_form(&problem) => refused = Some(problem),
            Err(problem) => return Err(problem.into()),
        }
    }
    let (looked, problem) = match read(&visitor, input(&sent, true)).await {
        // Row errors are listed below.
        Ok(looked) => {
            let wrong = makes.then(|| import::wrong_rows(looked.wrong_rows)).flatten();
            (looked, wrong.or(refused))
        }
        Err(problem) if is_of_a_form(&problem) => {
            // The choices can be corrected if the table itself can be parsed.
            match read(&visitor, table_only(&sent)).await {
                Ok(looked) => (looked, Some(problem)),
                Err(problem) if is_of_a_form(&problem) => {
                    return page(&visitor, Some(&problem), &[], &choosing(&visitor)?);
                }
                Err(problem) => return Err(problem.into()),
            }
        }
        Err(problem) => return Err(problem.into()),
    };
    let problem = problem.map(by_field);
    let labels = labels(&looked);
    let draft = Draft { sent: &sent, looked: &looked, problem: problem.as_ref() };
    let tree = folders::Tree::of(&visitor.context()?).await?;
    page(&visitor, draft.problem, &labels, &draft.form(&address(&visitor)?, &tree))
}

async fn read(visitor: &Visitor, fields: Value) -> Result<DatabaseOfTable, Problem> {
    let input = form::input::<CreateDatabaseOfTable>(fields)?;
    let context = visitor.context().map_err(|_| Problem::not_found("there is no such workspace"))?;
    Ok(tables::create_database(&context, input).await?.value)
}

/// The form as input. The first step only has the table and its name.
fn input(sent: &SubmittedForm, dry_run: bool) -> Value {
    let filled = |name: &str| Some(sent.text(name).trim().to_owned()).filter(|text| !text.is_empty());
    let primary: Option<u32> = sent.text("primary").parse().ok();
    let field = |(index, kind): (u32, &str)| {
        if kind.is_empty() {
            return json!({"index": index, "isLeftOut": true, "isPrimary": primary == Some(index)});
        }
        let name = sent.get(&format!("name-{index}")).map(str::trim);
        json!({"index": index, "name": name, "type": kind, "isPrimary": primary == Some(index)})
    };
    json!({
        "name": name(sent).trim(),
        "description": filled("description"),
        "folderId": filled("folder"),
        "csv": sent.table(),
        "fields": sent.numbered("type").map(field).collect::<Vec<_>>(),
        "dryRun": dry_run,
    })
}

/// The table without choices.
fn table_only(sent: &SubmittedForm) -> Value {
    json!({"name": FALLBACK_NAME, "csv": sent.table(), "dryRun": true})
}

/// The typed name, else the file's.
fn name(sent: &SubmittedForm) -> &str {
    sent.get("name").or_else(|| sent.file_stem()).unwrap_or(FALLBACK_NAME)
}

/// Maps a violation to its form field: `type-3` for `fields[3].type`, since the form has a row for every column.
fn by_field(mut problem: Problem) -> Problem {
    for broken in &mut problem.violations {
        let column = broken.path.strip_prefix("fields[").and_then(|rest| rest.split_once("]."));
        let place = column.and_then(|(place, of)| Some((place.parse::<u32>().ok()?, of)));
        broken.path = match place {
            Some((place, "name")) => format!("name-{place}"),
            Some((_, "isPrimary")) => "primary".to_owned(),
            Some((place, _)) => format!("type-{place}"),
            None if broken.path == "fields" => "primary".to_owned(),
            None if broken.path == "folderId" => "folder".to_owned(),
            None => continue,
        };
    }
    problem
}

/// The labels of the form's fields, for error messages.
fn labels(looked: &DatabaseOfTable) -> Vec<(String, String)> {
    let mut labels = vec![
        ("name".to_owned(), "Name".to_owned()),
        ("description".to_owned(), "Description".to_owned()),
        ("folder".to_owned(), "Folder".to_owned()),
        ("primary".to_owned(), "What titles the records".to_owned()),
    ];
    for place in 0..looked.fields.len() {
        let column = column_name(looked, place);
        labels.push((format!("name-{place}"), format!("Name of {column}")));
        labels.push((format!("type-{place}"), format!("Type of {column}")));
    }
    labels
}

/// A unique label for a column.
fn column_name(looked: &DatabaseOfTable, place: usize) -> String {
    let column = looked.fields.get(place).map(|field| field.column.as_str()).unwrap_or_default();
    let alike = looked.fields.iter().filter(|field| field.column == column).count();
    match (column, alike) {
        ("", _) => format!("column {}", place + 1),
        (_, 1) => column.to_owned(),
        _ => format!("{column} (column {})", place + 1),
    }
}

fn page(visitor: &Visitor, problem: Option<&Problem>, labels: &[(String, String)], body: &Markup) -> Answer {
    let here = visitor.here()?;
    let mut known: Vec<(&str, &str)> = vec![(CSV, "Table")];
    known.extend(labels.iter().map(|(name, label)| (name.as_str(), label.as_str())));
    let body = html! {
        (part::summary(problem, &known))
        @if !visitor.may(Permission::Write) { (part::not_in_role(here)) }
        (body)
    };
    let crumbs = vec![("Databases".to_owned(), list::address(here.id))];
    let page = Page::new("New database from CSV").crumbs(crumbs);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

/// The upload form.
fn choosing(visitor: &Visitor) -> Result<Markup, Error> {
    if !visitor.may(Permission::Write) {
        return Ok(html! {});
    }
    Ok(html! {
        p { "Each column of the table becomes a field, and each row a record. You see what the columns look like, and can change it, before anything is written." }
        form.fields.card data-upload method="post" action=(address(visitor)?) enctype="multipart/form-data" {
            (import::file_field())
            p.hint { "Or drop it on this page." }
            div.buttons { button.primary type="submit" { "Upload" } }
        }
    })
}

/// The second step: the user's choices over the inferred ones.
struct Draft<'a> {
    sent: &'a SubmittedForm,
    looked: &'a DatabaseOfTable,
    problem: Option<&'a Problem>,
}

impl Draft<'_> {
    fn form(&self, action: &str, tree: &folders::Tree) -> Markup {
        let looked = self.looked;
        let folder = Some(self.sent.text("folder")).filter(|id| !id.is_empty());
        // With invalid choices or rows, the button previews again.
        let is_about_room = |problem: &Problem| problem.reason == Reason::LimitExceeded;
        let is_sound = looked.rows > 0 && looked.wrong_rows == 0 && self.problem.is_none_or(is_about_room);
        let names: Vec<&str> = looked.fields.iter().map(|field| field.column.as_str()).collect();
        html! {
            form method="post" action=(action) enctype="multipart/form-data" {
                textarea name=(CSV) aria-label="Table" hidden readonly { "\n" (self.sent.table()) }
                div.fields {
                    (Field::text("name", "Name").value(name(self.sent)).problem(self.problem).render())
                    (Field::text("description", "Description").optional().value(self.sent.text("description")).hint("What agents are told that it holds.").problem(self.problem).render())
                    (tree.choice("folder", folder, None))
                }
                h2 { "What the columns become" }
                div.fields {
                    @for (place, field) in looked.fields.iter().enumerate() { (self.column(place, field)) }
                    (self.primary())
                }
                div.buttons.deeds {
                    button type="submit" name="then" value="check" { "Check again" }
                    @if is_sound {
                        button.primary type="submit" name="then" value="make" {
                            "Create database with " (words::count(looked.rows, "record", "records"))
                        }
                    }
                }
            }
            (import::problems(looked.rows, looked.wrong_rows, &looked.problems))
            h2 { "The first rows" }
            (import::first_rows(&names, &looked.first_rows))
            p { a href=(action) { "Choose another table" } }
        }
    }

    fn column(&self, place: usize, field: &TableField) -> Markup {
        let (name, kind) = (format!("name-{place}"), format!("type-{place}"));
        let guess = PropertyType::from_number(field.r#type).unwrap_or_default();
        let looks = if field.is_left_out { "" } else { guess.as_str() };
        let chosen = self.sent.get(&kind).unwrap_or(looks);
        let typed = self.sent.get(&name).unwrap_or(&field.name);
        let offered = PropertyType::ALL.into_iter().filter(|one| !one.is_reference());
        let kinds = offered.map(|one| Choice {
            value: one.as_str(),
            label: kind_name(one),
            is_chosen: one.as_str() == chosen,
        });
        let left_out = Choice { value: "", label: "Left out", is_chosen: chosen.is_empty() };
        let column = column_name(self.looked, place);
        let (name_label, kind_label) = (format!("Name of {column}"), format!("Type of {column}"));
        html! {
            (Field::text(&name, &name_label).optional().value(typed).problem(self.problem).render())
            (part::choices(&kind, &kind_label, kinds.chain([left_out])))
            @if field.options > 0 { p.hint { (words::count(u64::from(field.options), "option", "options")) } }
        }
    }

    fn primary(&self) -> Markup {
        let looks = self.looked.fields.iter().position(|field| field.is_primary);
        let chosen = self.sent.get("primary").and_then(|place| place.parse().ok()).or(looks);
        let places: Vec<String> = (0..self.looked.fields.len()).map(|place| place.to_string()).collect();
        let columns: Vec<String> = (0..places.len()).map(|place| column_name(self.looked, place)).collect();
        let choices = places.iter().zip(&columns).enumerate().map(|(place, (value, column))| Choice {
            value: value.as_str(),
            label: column.as_str(),
            is_chosen: chosen == Some(place),
        });
        part::choices("primary", "What titles the records", choices)
    }
}

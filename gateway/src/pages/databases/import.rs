//! `/databases/{id}/import`: imports a table as records. The column mapping and row errors are shown before anything
//! is written; the table is carried in the page, so nothing is stored meanwhile.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::{RowProblem, TableColumn, TableRow};
use cairn_proto::domain::Permission;
use http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::at::{Found, LocatedDatabase};
use super::submitted_form::{CSV, SubmittedForm};
use super::{address, list};
use crate::answers::{Database, ImportedTable};
use crate::error::Error;
use crate::operations::records::{self, ImportTable};
use crate::pages::form;
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::{Answer, parts as part, words};

pub(super) async fn show(at: LocatedDatabase) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    page(&at, &database, None, &choosing(&at, &database))
}

/// Previews the table, or imports it.
pub(super) async fn send(at: LocatedDatabase, sent: SubmittedForm) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let table = sent.table();
    let imports = sent.text("then") == "import";
    if imports {
        match read(&at, &table, columns(&sent), false).await {
            Ok(_) => return Ok(at.visitor.done(&address(at.id), &Notice::RecordsImported)),
            Err(error) if error.status != StatusCode::BAD_REQUEST => return Err(error),
            // Row errors are listed below.
            Err(_) => {}
        }
    }
    match read(&at, &table, columns(&sent), true).await {
        Ok(looked) => {
            let wrong = imports.then(|| wrong_rows(looked.wrong_rows)).flatten();
            page(&at, &database, wrong.as_ref(), &mapping(&database, &table, &looked))
        }
        Err(error) if error.status != StatusCode::BAD_REQUEST => Err(error),
        Err(error) => {
            let problem = Problem::validation(error.violations);
            // The mapping can be corrected if the table itself can be parsed.
            match read(&at, &table, Vec::new(), true).await {
                Ok(looked) => page(&at, &database, Some(&problem), &mapping(&database, &table, &looked)),
                Err(_) => page(&at, &database, Some(&problem), &choosing(&at, &database)),
            }
        }
    }
}

async fn read(
    at: &LocatedDatabase,
    table: &str,
    columns: Vec<Value>,
    dry_run: bool,
) -> Result<ImportedTable, Error> {
    let fields = json!({"csv": table, "columns": columns, "dryRun": dry_run});
    let input = form::input::<ImportTable>(fields)?;
    Ok(records::import(&at.visitor.context()?, at.id, input).await?.value)
}

/// The column mapping of the form, by position.
fn columns(sent: &SubmittedForm) -> Vec<Value> {
    let column = |(index, field): (u32, &str)| {
        let field = Some(field.trim()).filter(|field| !field.is_empty());
        json!({"index": index, "fieldId": field})
    };
    sent.numbered("column").map(column).collect()
}

/// The problem of a table with invalid rows.
pub(super) fn wrong_rows(count: u64) -> Option<Problem> {
    let message = format!(
        "{} cannot be taken, so nothing was written: put them right in the table, or leave their columns out",
        words::count(count, "row", "rows")
    );
    (count > 0).then(|| Problem::new(Reason::ValidationError, message))
}

fn page(at: &LocatedDatabase, database: &Database, problem: Option<&Problem>, body: &Markup) -> Answer {
    let here = at.visitor.here()?.id;
    let body = html! {
        (part::summary(problem, &[(CSV, "Table")]))
        @if !at.visitor.may(Permission::Write) { (part::not_in_role(at.visitor.here()?)) }
        (body)
    };
    let crumbs =
        vec![("Databases".to_owned(), list::address(here)), (database.name.clone(), address(&database.id))];
    let page = Page::new("Import CSV").crumbs(crumbs);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

/// The upload form.
fn choosing(at: &LocatedDatabase, database: &Database) -> Markup {
    if !at.visitor.may(Permission::Write) {
        return html! {};
    }
    html! {
        p { "Each row of the table becomes a record of " bdi { (database.name) } ". You see which column goes to which field, and what cannot be taken, before anything is written." }
        form.fields.card method="post" action={ (address(&database.id)) "/import" } enctype="multipart/form-data" {
            (file_field())
            div.buttons { button.primary type="submit" { "Upload" } }
        }
    }
}

/// The column mapping, the first rows, and the errors.
fn mapping(database: &Database, table: &str, looked: &ImportedTable) -> Markup {
    let goes = looked.columns.iter().any(|column| column.property_id.is_some());
    html! {
        form method="post" action={ (address(&database.id)) "/import" } enctype="multipart/form-data" {
            textarea name=(CSV) aria-label="Table" hidden readonly { "\n" (table) }
            h2 { "Where the columns go" }
            div.fields {
                @for (place, column) in looked.columns.iter().enumerate() { (choice(database, place, column)) }
            }
            div.buttons.deeds {
                button type="submit" name="then" value="check" { "Check again" }
                @if goes && looked.rows > 0 && looked.wrong_rows == 0 {
                    button.primary type="submit" name="then" value="import" {
                        "Import " (words::count(looked.rows, "record", "records"))
                    }
                }
            }
        }
        (problems(looked.rows, looked.wrong_rows, &looked.problems))
        h2 { "The first rows" }
        (first_rows(&looked.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), &looked.first_rows))
        p { a href={ (address(&database.id)) "/import" } { "Choose another table" } }
    }
}

fn choice(database: &Database, place: usize, column: &TableColumn) -> Markup {
    let name = format!("column-{place}");
    let label = if column.name.is_empty() { format!("Column {}", place + 1) } else { column.name.clone() };
    html! {
        div.field {
            label for={ "f-" (name) } { bdi { (label) } }
            select id={ "f-" (name) } name=(name) {
                option value="" selected[column.property_id.is_none()] { "Left out" }
                @for property in &database.properties {
                    option value=(property.id) selected[column.property_id.as_ref() == Some(&property.id)] { (property.name) }
                }
            }
        }
    }
}

/// The file field of an upload form.
pub(super) fn file_field() -> Markup {
    html! {
        div.field {
            label for="f-csv" { "Table" }
            span.hint #csv-hint { "A CSV file in UTF-8 whose first row names its columns: at most 1 000 rows and 2 MB." }
            input #f-csv type="file" name=(CSV) accept=".csv,text/csv" required aria-describedby="csv-hint";
        }
    }
}

/// The errors of rows.
pub(super) fn problems(rows: u64, wrong_rows: u64, problems: &[RowProblem]) -> Markup {
    if wrong_rows == 0 {
        return html! { p.quiet { (words::count(rows, "row", "rows")) " can be taken." } };
    }
    let row = |problem: &RowProblem| {
        html! {
            tr {
                th scope="row" { "Row " (words::grouped(problem.row)) }
                td { bdi { (problem.column) } }
                td { (words::sentence(&problem.message)) }
            }
        }
    };
    let told = html! { @for problem in problems { (row(problem)) } };
    html! {
        h2 { "What cannot be taken" }
        p { (words::count(wrong_rows, "row", "rows")) " of " (words::grouped(rows)) ". Row 1 is the one with the names of the columns." }
        (part::table("What cannot be taken", &["Row", "Column", "Why"], &told))
    }
}

/// The first rows with column names.
pub(super) fn first_rows(columns: &[&str], first: &[TableRow]) -> Markup {
    let rows = html! {
        @for row in first {
            tr { @for place in 0..columns.len() { td { bdi { (row.cells.get(place).map(|cell| shortened(cell)).unwrap_or_default()) } } } }
        }
    };
    html! {
        div.frame role="region" tabindex="0" aria-label="The first rows" {
            table {
                caption.sr { "The first rows" }
                thead { tr { @for column in columns { th scope="col" { bdi { (column) } } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Truncates a cell for the page.
fn shortened(cell: &str) -> String {
    const MAX_CHARS: usize = 80;
    if cell.chars().count() <= MAX_CHARS {
        return cell.to_owned();
    }
    cell.chars().take(MAX_CHARS).chain(['…']).collect()
}

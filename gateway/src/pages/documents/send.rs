//! `/w/{id}/documents/new`: ingests a text entered by a person.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ContentType, Permission};
use http::StatusCode;
use maud::html;
use serde_json::{Map, Value, json};

use super::address;
use crate::error::Error;
use crate::operations::ingest::{self, IngestDocument};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Choice, Field};
use crate::pages::visitor::Visitor;

/// `GET /w/{id}/documents/new`.
pub(super) async fn ask(visitor: Visitor) -> Answer {
    require_write(&visitor)?;
    show(&visitor, &Form::default(), None)
}

/// `POST /w/{id}/documents/new`.
pub(super) async fn send(visitor: Visitor, form: Form) -> Answer {
    require_write(&visitor)?;
    let taken = match form::input::<IngestDocument>(Value::Object(fields(&form))) {
        Ok(input) => ingest::text(&visitor.context()?, input).await,
        Err(problem) => Err(problem),
    };
    match taken {
        Ok((taken, _)) => Ok(visitor.done(&address(&taken.value.id), &Notice::Created)),
        Err(problem) => {
            let error = Error::from(problem.clone());
            if !error.status.is_client_error() || error.status == StatusCode::FORBIDDEN {
                return Err(error);
            }
            show(&visitor, &form, Some(&problem))
        }
    }
}

fn require_write(visitor: &Visitor) -> Result<(), Error> {
    if visitor.may(Permission::Write) {
        return Ok(());
    }
    let role = visitor.here()?.role;
    let message =
        format!("this takes a role that may write, and yours here is {}: ask an owner", role.as_str());
    Err(Problem::forbidden(message).into())
}

fn fields(form: &Form) -> Map<String, Value> {
    // Forms submit CR LF line endings.
    let content = form.text("content").replace("\r\n", "\n");
    let title = form.trimmed("title");
    // The idempotency key: resubmitting the form creates no second document.
    let key = blake3::hash(format!("{title}\n{content}").as_bytes()).to_hex();
    let mut fields = Map::from_iter([
        ("idempotencyKey".to_owned(), json!(format!("console:{key}"))),
        ("title".to_owned(), json!(title)),
        ("content".to_owned(), json!(content)),
    ]);
    for name in ["contentType", "url"] {
        if !form.trimmed(name).is_empty() {
            fields.insert(name.to_owned(), json!(form.trimmed(name)));
        }
    }
    fields
}

fn show(visitor: &Visitor, form: &Form, problem: Option<&Problem>) -> Answer {
    let all = format!("/w/{}/documents", visitor.here()?.id);
    let labels = [
        ("title", "Title"),
        ("content", "Text"),
        ("contentType", "Written in"),
        ("url", "Where people read it"),
    ];
    let kinds = ContentType::ALL.map(|kind| (kind.as_str(), word(kind)));
    let chosen = form.trimmed("contentType");
    let body = html! {
        (part::summary(problem, &labels))
        p { "A document from outside is read and searched here, and never changes. What you want to go on writing is a file." }
        form.connecting method="post" action={ (all) "/new" } {
            div.fields {
                (Field::text("title", "Title").value(form.trimmed("title")).problem(problem).render())
                (Field::text("url", "Where people read it").optional().value(form.trimmed("url")).hint("An address, which citations then lead to.").problem(problem).render())
                (part::choices("contentType", "Written in", kinds.into_iter().map(|(value, label)| Choice { value, label, is_chosen: value == chosen })))
            }
            (Field::text("content", "Text").value(form.text("content")).problem(problem).area(14))
            div.buttons { button.primary type="submit" { "Add document" } a.button href=(all) { "Cancel" } }
        }
    };
    let page = Page::new("Add a document").crumbs(vec![("Documents".to_owned(), all)]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

const fn word(kind: ContentType) -> &'static str {
    match kind {
        ContentType::Markdown => "Markdown",
        ContentType::Text => "Plain text",
        ContentType::Json => "JSON",
        ContentType::Yaml => "YAML",
        ContentType::Html => "HTML",
    }
}

//! `/w/{id}/questions/write`: a new file with questions as its outline. Nothing is written before it is saved.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use cairn_proto::ids::QuestionId;
use http::request::Parts;
use maud::{Markup, html};
use serde_json::json;

use super::address;
use crate::answers::Question;
use crate::operations::files::{self, CreateFile};
use crate::operations::questions;
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Field};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, places};

/// Limit of questions in an outline.
const MAX_QUESTIONS: usize = 20;
/// Words of a question in a suggested name.
const NAME_WORDS: usize = 6;
/// Limit of a suggested name, in characters.
const MAX_NAME_CHARS: usize = 60;

/// The values of the form.
struct Draft {
    name: String,
    folder: Option<String>,
    content: String,
    /// The first question, which can be asked again once the file exists.
    ask: Option<AskAgain>,
}

/// The form, with the questions in the URL (`q`, repeated).
pub(super) async fn ask(visitor: Visitor, parts: Parts) -> Answer {
    let asked = questions_of(&visitor, &parts).await?;
    let ask = asked.first().and_then(|question| AskAgain::parse(&question.id));
    let draft = Draft { name: name(&asked), folder: None, content: outline(&asked), ask };
    show(&visitor, &draft, None).await
}

/// Creates the file; on failure the form keeps its input.
pub(super) async fn save(visitor: Visitor, form: Form) -> Answer {
    let folder = Some(form.trimmed("folder")).filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    let content = form.text("content").replace("\r\n", "\n");
    let ask = AskAgain::parse(form.text(ask_again::NAME));
    let draft = Draft { name: form.trimmed("name").to_owned(), folder, content, ask };
    let fields = json!({
        "name": draft.name, "content": draft.content, "fileType": "markdown", "folderId": draft.folder,
    });
    let context = visitor.context()?;
    let made = match form::input::<CreateFile>(fields) {
        Ok(input) => files::create(&context, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            let to = match draft.ask.as_ref().filter(|_| ask_again::is_wanted(&form)) {
                Some(ask) => ask.address(visitor.here()?.id, made.change),
                None => ask_again::carried(&places::file(&made.value.id), draft.ask.as_ref()),
            };
            Ok(visitor.done(&to, &Notice::Created))
        }
        Err(problem) if problem.reason == Reason::Forbidden => Err(problem.into()),
        Err(problem) => show(&visitor, &draft, Some(&problem)).await,
    }
}

/// The existing questions among the given ids.
async fn questions_of(visitor: &Visitor, parts: &Parts) -> Result<Vec<Question>, Problem> {
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let named = query.filter(|(name, _)| name == "q").filter_map(|(_, id)| id.parse::<QuestionId>().ok());
    let named: Vec<_> = named.take(MAX_QUESTIONS).collect();
    let mut found: Vec<Question> = Vec::new();
    for id in named {
        match questions::question(&visitor.person, id).await {
            Ok(question) if found.iter().all(|known| known.query != question.query) => found.push(question),
            Ok(_) => {}
            Err(problem) if problem.reason == Reason::NotFound => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(found)
}

async fn show(visitor: &Visitor, draft: &Draft, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?;
    if !visitor.may(Permission::Write) {
        let needed =
            "writing a file needs the role 'owner', 'admin', 'editor' or 'contributor' in the workspace";
        return Err(Problem::forbidden(format!("{needed}; yours is '{}'", here.role.as_str())).into());
    }
    let tree = folders::Tree::of(&visitor.context()?).await?;
    let base = address(here.id);
    let labels = [("name", "Name"), ("content", "Text")];
    let body = html! {
        (part::summary(problem, &labels))
        p { "The questions are the outline: put the answers below them. Nothing is kept before you save it." }
        form.fields method="post" action={ (base) "/write" } {
            @if let Some(ask) = &draft.ask { (ask.field()) }
            (Field::text("name", "Name").value(&draft.name).problem(problem).render())
            (tree.choice("folder", draft.folder.as_deref(), None))
            (Field::text("content", "Text").value(&draft.content).problem(problem).area(20))
            div.buttons {
                button.primary type="submit" { "Save" }
                @if draft.ask.is_some() { (AskAgain::button()) }
                a.button href={ (base) "?view=gaps" } { "Cancel" }
            }
        }
        (after())
    };
    let page = Page::new("Write the file").crumbs(vec![("Questions".to_owned(), base)]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn after() -> Markup {
    html! { p.hint { "Then ask the question again, from its page: the gap closes when it finds what you wrote." } }
}

/// A name derived from the first question.
fn name(asked: &[Question]) -> String {
    let first = asked.first().map(|question| question.query.to_lowercase()).unwrap_or_default();
    let words = first.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.take(NAME_WORDS).collect::<Vec<_>>().join("-");
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    if name.is_empty() { "answers.md".to_owned() } else { format!("{name}.md") }
}

/// A one-line heading per question.
fn outline(asked: &[Question]) -> String {
    let mut text = String::new();
    for question in asked {
        let heading = question.query.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str("## ");
        text.push_str(&heading);
        text.push_str("\n\n\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1 as proto;

    use super::*;

    fn questions_of(queries: &[&str]) -> Vec<Question> {
        let question =
            |query: &&str| proto::Question { query: (*query).to_owned(), ..proto::Question::default() };
        queries.iter().map(|query| question(query).into()).collect()
    }

    #[test]
    fn questions_become_a_name_and_an_outline() {
        let questions = questions_of(&["How do we\nroll back a release, and who may?", "Who decides?"]);
        assert_eq!(name(&questions), "how-do-we-roll-back-a.md");
        assert_eq!(
            outline(&questions),
            "## How do we roll back a release, and who may?\n\n\n\n## Who decides?\n\n\n\n"
        );
        assert_eq!((name(&[]), outline(&[])), ("answers.md".to_owned(), String::new()));
        assert_eq!(name(&questions_of(&["../../??"])), "answers.md");
        let long = "é".repeat(300);
        assert_eq!(name(&questions_of(&[&long])).chars().count(), MAX_NAME_CHARS + 3);
    }
}

//! Creating a memory, and editing its name and descriptions.

use cairn_chassis::status::Problem;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::at::{Found, LocatedMemory};
use super::{address, require_write};
use crate::answers::ResolvedMemory;
use crate::operations::memories::{self, CreateMemory, Membership, UpdateMemory};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Field};
use crate::pages::popover::is_of_a_form;
use crate::pages::visitor::Visitor;

const LABELS: [(&str, &str); 4] =
    [("name", "Name"), ("useWhen", "When to use it"), ("description", "Description"), ("slug", "Short name")];

/// The values of the form.
#[derive(Debug, Default)]
struct FormInput {
    name: String,
    use_when: String,
    description: String,
    slug: String,
}

impl FormInput {
    fn of(form: &Form) -> Self {
        let lines = |name: &str| form.trimmed(name).replace("\r\n", "\n");
        Self {
            name: form.trimmed("name").to_owned(),
            use_when: lines("useWhen"),
            description: lines("description"),
            slug: form.trimmed("slug").to_owned(),
        }
    }

    fn known(memory: &ResolvedMemory) -> Self {
        Self {
            name: memory.name.clone(),
            use_when: memory.use_when.clone().unwrap_or_default(),
            description: memory.description.clone().unwrap_or_default(),
            slug: memory.slug.clone(),
        }
    }

    /// The fields of the input; empty ones are null.
    fn fields(&self) -> Map<String, Value> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("useWhen".to_owned(), json!(given(&self.use_when))),
            ("description".to_owned(), json!(given(&self.description))),
        ])
    }
}

/// `GET /w/{id}/memories/new`.
pub(super) async fn ask_for_new(visitor: Visitor) -> Answer {
    require_write(&visitor)?;
    new_page(&visitor, &FormInput::default(), None)
}

/// `POST /w/{id}/memories/new`.
pub(super) async fn create(visitor: Visitor, form: Form) -> Answer {
    let typed = FormInput::of(&form);
    let mut fields = typed.fields();
    if !typed.slug.is_empty() {
        fields.insert("slug".to_owned(), json!(typed.slug));
    }
    let context = visitor.context()?;
    let made = match form::input::<CreateMemory>(Value::Object(fields)) {
        Ok(input) => memories::create(&context, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => Ok(visitor.done(&address(&made.value.id), &Notice::Created)),
        Err(problem) if is_of_a_form(&problem) => new_page(&visitor, &typed, Some(&problem)),
        Err(problem) => Err(problem.into()),
    }
}

/// `GET /memories/{id}/edit`.
pub(super) async fn ask(at: LocatedMemory) -> Answer {
    match at.memory().await? {
        Found::Live(memory) => {
            require_write(&at.visitor)?;
            edit_page(&at, &FormInput::known(&memory), None)
        }
        Found::Elsewhere(response) => Ok(response),
    }
}

/// `POST /memories/{id}/edit`.
pub(super) async fn save(at: LocatedMemory, form: Form) -> Answer {
    let typed = FormInput::of(&form);
    let mut fields = typed.fields();
    fields.insert("slug".to_owned(), json!(typed.slug));
    let context = at.visitor.context()?;
    let saved = match form::input::<UpdateMemory>(Value::Object(fields)) {
        Ok(input) => memories::update(&context, at.id.to_string(), input, Membership::default()).await,
        Err(problem) => Err(problem),
    };
    match saved {
        Ok(_) => Ok(at.visitor.done(&address(at.id), &Notice::Saved)),
        Err(problem) if is_of_a_form(&problem) => edit_page(&at, &typed, Some(&problem)),
        Err(problem) => Err(problem.into()),
    }
}

fn new_page(visitor: &Visitor, typed: &FormInput, problem: Option<&Problem>) -> Answer {
    let list = format!("/w/{}/memories", visitor.here()?.id);
    let body = html! {
        (fields(&format!("{list}/new"), typed, problem, "Create memory", &list))
        p.hint { "Its members are added next." }
    };
    let page = Page::new("New memory").crumbs(vec![("Memories".to_owned(), list)]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn edit_page(at: &LocatedMemory, typed: &FormInput, problem: Option<&Problem>) -> Answer {
    let list = format!("/w/{}/memories", at.visitor.here()?.id);
    let name = if typed.name.is_empty() { "The memory" } else { typed.name.as_str() };
    let own = address(at.id);
    let body = fields(&format!("{own}/edit"), typed, problem, "Save", &own);
    let crumbs = vec![("Memories".to_owned(), list), (name.to_owned(), own)];
    let page = Page::new("Edit memory").crumbs(crumbs);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

fn fields(action: &str, typed: &FormInput, problem: Option<&Problem>, deed: &str, back: &str) -> Markup {
    let when = Field::text("useWhen", "When to use it").optional().value(&typed.use_when);
    let when = when.hint("Agents decide by it: say the tasks, such as: before a release is made.");
    let slug = Field::text("slug", "Short name").value(&typed.slug);
    let slug = slug.hint("For addresses and for agents: small letters, digits and hyphens. Left empty, a new memory gets one from its name.");
    html! {
        (part::summary(problem, &LABELS))
        form.fields method="post" action=(action) {
            (Field::text("name", "Name").value(&typed.name).problem(problem).render())
            (when.problem(problem).area(3))
            (Field::text("description", "Description").optional().value(&typed.description).problem(problem).area(3))
            (slug.optional().problem(problem).render())
            div.buttons {
                button.primary type="submit" { (deed) }
                a.button href=(back) { "Cancel" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_empty_is_null_and_lines_end_as_ours_do() {
        let form = Form::read(b"name=+A+&useWhen=x%0D%0Ay&description=+&slug=a");
        let fields = FormInput::of(&form).fields();
        assert_eq!(Value::Object(fields), json!({"name": "A", "useWhen": "x\ny", "description": null}));
    }
}

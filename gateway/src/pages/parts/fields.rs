//! Form fields with their errors.

use cairn_chassis::status::{Problem, Reason};
use maud::{Markup, html};

use crate::pages::words;

/// A one-line field. Its name is that of the input's field, so that violations find it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    name: &'a str,
    label: &'a str,
    kind: &'a str,
    value: &'a str,
    hint: &'a str,
    autocomplete: &'a str,
    is_required: bool,
    problem: Option<&'a Problem>,
    /// Needed if a page has several fields of the name.
    id: Option<&'a str>,
    /// The form that makes the id unique.
    form: Option<&'a str>,
}

impl<'a> Field<'a> {
    pub(crate) const fn text(name: &'a str, label: &'a str) -> Self {
        Self {
            name,
            label,
            kind: "text",
            value: "",
            hint: "",
            autocomplete: "off",
            is_required: true,
            problem: None,
            id: None,
            form: None,
        }
    }

    pub(crate) const fn email(name: &'a str, label: &'a str) -> Self {
        Self { kind: "email", ..Self::text(name, label) }
    }

    /// `autocomplete` is `current-password` or `new-password`. The value is never rendered back.
    pub(crate) const fn password(name: &'a str, label: &'a str, autocomplete: &'a str) -> Self {
        Self { kind: "password", autocomplete, ..Self::text(name, label) }
    }

    pub(crate) const fn date(name: &'a str, label: &'a str) -> Self {
        Self { kind: "date", ..Self::text(name, label) }
    }

    pub(crate) const fn id(self, id: &'a str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Prefixes the id with that of its form.
    pub(crate) const fn within(self, form: &'a str) -> Self {
        Self { form: Some(form), ..self }
    }

    pub(crate) const fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) const fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    pub(crate) const fn value(self, value: &'a str) -> Self {
        Self { value, ..self }
    }

    pub(crate) const fn hint(self, hint: &'a str) -> Self {
        Self { hint, ..self }
    }

    /// The problem of the form, of which the field shows its part.
    pub(crate) const fn problem(self, problem: Option<&'a Problem>) -> Self {
        Self { problem, ..self }
    }

    pub(crate) fn render(&self) -> Markup {
        self.around(|id, invalid, about| {
            html! {
                input id=(id) type=(self.kind) name=(self.name) value=[(!self.value.is_empty()).then_some(self.value)]
                    autocomplete=(self.autocomplete) required[self.is_required] dir=[(self.kind == "text").then_some("auto")]
                    aria-invalid=[invalid] aria-describedby=[about];
            }
        })
    }

    /// The same as a text area.
    pub(crate) fn area(&self, rows: u32) -> Markup {
        self.around(|id, invalid, about| {
            html! {
                textarea id=(id) name=(self.name) rows=(rows) autocomplete=(self.autocomplete) required[self.is_required] dir="auto"
                    aria-invalid=[invalid] aria-describedby=[about] { "\n" (self.value) }
            }
        })
    }

    /// Label, hint and error around a control, which gets its id, `aria-describedby` and value.
    fn around(&self, typed_in: impl Fn(&str, Option<&str>, Option<&str>) -> Markup) -> Markup {
        let said = of_field(self.problem, self.name);
        let id = match (self.id, self.form) {
            (Some(own), _) => own.to_owned(),
            (None, Some(form)) => format!("{form}-{}", self.name),
            (None, None) => id(self.name),
        };
        let about = [
            (!self.hint.is_empty()).then(|| format!("{id}-hint")),
            said.as_ref().map(|_| format!("{id}-said")),
        ];
        let about = about.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let invalid = said.as_ref().map(|_| "true");
        html! {
            div.field {
                label for=(id) { (self.label) }
                @if !self.hint.is_empty() { span.hint id={ (id) "-hint" } { (self.hint) } }
                @if let Some(said) = &said { span.said id={ (id) "-said" } { (said) } }
                (typed_in(&id, invalid, Some(about.as_str()).filter(|about| !about.is_empty())))
            }
        }
    }
}

/// An option of a select.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) value: &'a str,
    pub(crate) label: &'a str,
    pub(crate) is_chosen: bool,
}

/// A select.
pub(crate) fn choices<'a>(name: &str, label: &str, choices: impl IntoIterator<Item = Choice<'a>>) -> Markup {
    html! {
        div.field {
            label for=(id(name)) { (label) }
            select id=(id(name)) name=(name) {
                @for choice in choices {
                    option value=(choice.value) selected[choice.is_chosen] dir="auto" { (choice.label) }
                }
            }
        }
    }
}

/// The error summary of a form, with a link to each field. Fields are named by their labels.
pub(crate) fn summary(problem: Option<&Problem>, labels: &[(&str, &str)]) -> Markup {
    let Some(problem) = problem else { return html! {} };
    html! {
        div #problem .problem role="alert" tabindex="-1" autofocus {
            @if problem.violations.is_empty() {
                p { (words::sentence(&problem.message)) }
                @if problem.reason == Reason::LimitExceeded { p { (words::ROOM) } }
            } @else {
                h2 { "Put this right:" }
                ul {
                    @for broken in &problem.violations {
                        @let field = field_of(&broken.path);
                        @match labels.iter().find(|(name, _)| *name == field) {
                            Some((name, label)) => {
                                li { a href={ "#" (id(name)) } { (label) " " (broken.message) "." } }
                            }
                            None => { li { (words::capital(&broken.path)) " " (broken.message) "." } }
                        }
                    }
                }
            }
        }
    }
}

/// The first segment of a path: `members[3].fileId` belongs to `members`.
fn field_of(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

fn of_field(problem: Option<&Problem>, name: &str) -> Option<String> {
    let broken = problem?.violations.iter().find(|broken| field_of(&broken.path) == name)?;
    Some(words::sentence(&broken.message))
}

fn id(name: &str) -> String {
    format!("f-{name}")
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    #[test]
    fn a_wrong_field_keeps_its_value_and_is_told_with_its_label() {
        let problem = Problem::validation(vec![
            Violation::new("name", "too_long", "may have at most 100 characters"),
            Violation::new("body", "empty", "needs a field"),
        ]);
        let field =
            Field::text("name", "Name").value("a \"long\" one").hint("For people.").problem(Some(&problem));
        let html = field.render().into_string();
        assert!(
            html.contains("value=\"a &quot;long&quot; one\"") && html.contains("aria-invalid=\"true\""),
            "{html}"
        );
        assert!(html.contains("aria-describedby=\"f-name-hint f-name-said\""), "{html}");
        let area = Field::text("name", "Name").value("<b>\nx").area(4).into_string();
        assert!(
            area.contains("rows=\"4\"") && area.contains("required dir=\"auto\">\n&lt;b&gt;\nx</textarea>"),
            "{area}"
        );
        let told = summary(Some(&problem), &[("name", "Name")]).into_string();
        assert!(told.contains("<a href=\"#f-name\">Name may have at most 100 characters.</a>"), "{told}");
        assert!(told.contains("<li>Body needs a field.</li>"), "{told}");
    }
}

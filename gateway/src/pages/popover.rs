//! Forms in popovers, without scripts. A rejected form is rendered open in the page, with its input and errors, so
//! that nobody has to retype anything.

use cairn_chassis::status::{Problem, Reason};
use maud::{Markup, html};

use super::form::Form;
use super::parts::Field;

/// A rejected form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused<'a> {
    /// The id of its popover.
    pub(super) of: &'a str,
    pub(super) form: &'a Form,
    pub(super) problem: &'a Problem,
}

/// Whether a problem is shown at its form; others are pages of their own.
pub(super) fn is_of_a_form(problem: &Problem) -> bool {
    let by_itself = matches!(
        problem.reason,
        Reason::LimitExceeded | Reason::AlreadyExists | Reason::SlugTaken | Reason::PayloadTooLarge
    );
    by_itself || !problem.violations.is_empty()
}

/// The values of a form's fields: the rejected input, else the current values.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormValues<'a> {
    id: &'a str,
    refused: Option<Refused<'a>>,
}

impl<'a> FormValues<'a> {
    /// For the form with that id.
    pub(super) fn new(id: &'a str, refused: Option<Refused<'a>>) -> Self {
        Self { id, refused: refused.filter(|refused| refused.of == id) }
    }

    /// The input, if it was rejected.
    pub(super) fn form(self) -> Option<&'a Form> {
        self.refused.map(|refused| refused.form)
    }

    pub(super) fn text<'b>(self, name: &str, otherwise: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.refused.map_or(otherwise, |refused| refused.form.text(name))
    }

    /// The same for optional values, such as the folder of an item in the root.
    pub(super) fn choice<'b>(self, name: &str, otherwise: Option<&'b str>) -> Option<&'b str>
    where
        'a: 'b,
    {
        let typed = self.refused.map(|refused| Some(refused.form.text(name)).filter(|text| !text.is_empty()));
        typed.unwrap_or(otherwise)
    }

    /// A field with its value. The page's error summary links to the fields of the rejected form; those of other
    /// forms have ids of their own.
    pub(super) fn field<'b>(self, field: Field<'b>, otherwise: &'b str) -> Field<'b>
    where
        'a: 'b,
    {
        let field = field.value(self.text(field.name(), otherwise));
        match self.refused {
            Some(refused) => field.problem(Some(refused.problem)),
            None => field.within(self.id),
        }
    }
}

/// The popovers of a page and their buttons.
#[derive(Debug)]
pub(super) struct Popovers<'a> {
    refused: Option<Refused<'a>>,
    buttons: Vec<Markup>,
    open: Markup,
}

impl<'a> Popovers<'a> {
    pub(super) fn new(refused: Option<Refused<'a>>) -> Self {
        Self { refused, buttons: Vec::new(), open: html! {} }
    }

    /// Adds a popover; `key` is its keyboard shortcut.
    pub(super) fn add(
        &mut self,
        id: &'a str,
        label: &str,
        key: Option<&str>,
        form: impl FnOnce(FormValues<'a>) -> Markup,
    ) {
        let filled = FormValues::new(id, self.refused);
        let form = form(filled);
        if filled.form().is_some() {
            self.open = html! { section.card.again aria-label=(label) { h2 { (label) } (form) } };
        } else {
            self.buttons.push(super::folders::popover(id, label, key, &form));
        }
    }

    pub(super) fn buttons(&self) -> Markup {
        html! { @for button in &self.buttons { (button) } }
    }

    /// The rejected form, open.
    pub(super) fn open(&self) -> &Markup {
        &self.open
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    fn drawn(refused: Option<Refused<'_>>) -> (String, String) {
        let mut all = Popovers::new(refused);
        for (id, label) in [("rename", "Rename"), ("copy", "Copy to")] {
            all.add(id, label, None, |filled| filled.field(Field::text("name", "Name"), "before").render());
        }
        (all.buttons().into_string(), all.open().clone().into_string())
    }

    #[test]
    fn a_form_that_was_refused_stands_open_with_what_was_typed() {
        let (buttons, open) = drawn(None);
        assert!(buttons.contains("id=\"rename-name\"") && buttons.contains("id=\"copy-name\""), "{buttons}");
        assert_eq!((buttons.matches("value=\"before\"").count(), open.as_str()), (2, ""), "{buttons}");
        let problem = Problem::validation(vec![Violation::new("name", "required", "is required")]);
        let form = Form::read(b"name=%3Ctyped%3E");
        let (buttons, open) = drawn(Some(Refused { of: "rename", form: &form, problem: &problem }));
        assert!(!buttons.contains("rename-name") && buttons.contains("id=\"copy-name\""), "{buttons}");
        for part in ["id=\"f-name\"", "value=\"&lt;typed&gt;\"", "Is required.", "<h2>Rename</h2>"] {
            assert!(open.contains(part), "{part}: {open}");
        }
    }

    #[test]
    fn what_can_be_put_right_is_told_at_the_form() {
        assert!(is_of_a_form(&Problem::new(Reason::LimitExceeded, "at most 2000 files")));
        assert!(is_of_a_form(&Problem::validation(vec![Violation::new("name", "required", "is required")])));
        assert!(
            !is_of_a_form(&Problem::forbidden("not yours")) && !is_of_a_form(&Problem::not_found("gone"))
        );
    }
}

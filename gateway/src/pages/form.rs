//! Submitted forms, and their conversion to inputs of operations.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, Request};
use cairn_chassis::status::Problem;
use serde_json::Value;

use crate::app::App;
use crate::class::{Class, Who};
use crate::error::Error;
use crate::intake::Intake;
use crate::rate_limit::Limits;
use crate::schema::Input;
use crate::validate;

/// The fields of a form, as typed.
#[derive(Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

// Fields may hold passwords.
cairn_chassis::debug_fields!(Form);

impl FromRequest<App> for Form {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let (intake, limits): (Arc<Intake>, Arc<Limits>) = (FromRef::from_ref(app), FromRef::from_ref(app));
        if Class::of(&parts.extensions).who == Who::Anyone {
            limits.open_body(&parts).await?;
        }
        let limit = Class::of(&parts.extensions).max_bytes;
        let bytes = intake.receive(body, limit, &parts.extensions, None).await?;
        intake.read(bytes, Self::read).await
    }
}

impl Form {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The last value of a field; empty without one.
    pub(crate) fn text(&self, name: &str) -> &str {
        let of_name = self.0.iter().rev().find(|(given, _)| given == name);
        of_name.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The same, trimmed.
    pub(crate) fn trimmed(&self, name: &str) -> &str {
        self.text(name).trim()
    }

    /// All values of a field, such as check boxes.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Whether the field is present, such as a checked check box.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// The input of an operation, validated against the same schema as in the API.
pub(crate) fn input<T: Input>(fields: Value) -> Result<T, Problem> {
    validate::read(fields, "form")
}

/// Renames violation paths to the form's field names.
pub(crate) fn renamed(mut problem: Problem, names: &[(&str, &str)]) -> Problem {
    for broken in &mut problem.violations {
        if let Some((_, field)) = names.iter().find(|(path, _)| *path == broken.path) {
            (*field).clone_into(&mut broken.path);
        }
    }
    problem
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    #[test]
    fn a_form_has_its_fields() {
        let form = Form::read(b"a=1&b=&c=x+y%26z&c=2&d&%ff=%ff");
        assert_eq!((form.text("a"), form.text("b"), form.text("nothing")), ("1", "", ""));
        assert_eq!(form.all("c").collect::<Vec<_>>(), ["x y&z", "2"]);
        assert!(form.has("d") && !form.has("e"));
        assert!(!format!("{form:?}").contains("x y"));
    }

    #[test]
    fn what_is_wrong_is_told_by_the_fields_of_the_form() {
        let broken = |path: &str| Violation::new(path, "required", "is required");
        let problem =
            renamed(Problem::validation(vec![broken("parentId"), broken("name")]), &[("parentId", "parent")]);
        let paths: Vec<&str> = problem.violations.iter().map(|broken| broken.path.as_str()).collect();
        assert_eq!(paths, ["parent", "name"]);
    }
}

//! The outcome of a form, as shown on the page that follows.

use cairn_chassis::status::Problem;
use maud::Markup;

use crate::pages::form::Form;
use crate::pages::popover::Refused;

/// The outcome of a form, and where it is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FormOutcome<'a> {
    pub(super) problem: Option<&'a Problem>,
    /// The rejected input.
    pub(super) form: Option<&'a Form>,
    pub(super) place: FormLocation,
    /// The popover form, if it is one.
    pub(super) refused: Option<Refused<'a>>,
    /// The golden questions' results for a record form.
    pub(super) checked: Option<&'a Markup>,
}

/// The location on the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FormLocation {
    #[default]
    Page,
    Record,
    Cell,
}

impl<'a> FormOutcome<'a> {
    pub(super) const fn of_page(problem: &'a Problem) -> Self {
        Self { problem: Some(problem), form: None, place: FormLocation::Page, refused: None, checked: None }
    }

    pub(super) const fn of_button(refused: Refused<'a>) -> Self {
        Self { refused: Some(refused), ..Self::of_page(refused.problem) }
    }

    pub(super) const fn of_record(problem: Option<&'a Problem>, form: &'a Form) -> Self {
        Self { problem, form: Some(form), place: FormLocation::Record, refused: None, checked: None }
    }

    pub(super) const fn of_cell(problem: &'a Problem, form: &'a Form) -> Self {
        Self {
            problem: Some(problem),
            form: Some(form),
            place: FormLocation::Cell,
            refused: None,
            checked: None,
        }
    }

    pub(super) fn at(self, place: FormLocation) -> Option<Self> {
        (self.place == place).then_some(self)
    }
}

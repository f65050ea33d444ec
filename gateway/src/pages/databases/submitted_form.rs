//! A form with a table, uploaded as a file or carried from an earlier page.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, Request};
use cairn_chassis::status::Problem;

use crate::app::App;
use crate::error::Error;
use crate::intake::Intake;
use crate::multipart::{self, Incomplete};

/// The field with the table.
pub(super) const CSV: &str = "csv";

/// The fields of the form in order; the file is a field, too.
#[derive(Debug, Default)]
pub(super) struct SubmittedForm {
    fields: Vec<(String, String)>,
    /// The uploaded file's name, if any.
    file_name: Option<String>,
}

impl FromRequest<App> for SubmittedForm {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let intake = Arc::<Intake>::from_ref(app);
        let mut form = multipart::Form::in_memory(request, &intake, Incomplete::of_file(CSV)).await?;
        let mut sent = Self::default();
        while let Some(part) = form.next_part().await? {
            let name = part.name().to_owned();
            let file_name = Some(part.file_name().to_owned()).filter(|name| !name.is_empty());
            let text = String::from_utf8(part.bytes().await?.to_vec()).map_err(|_| no_text())?;
            // An uploaded file wins over the carried table.
            if name != CSV || !text.is_empty() {
                sent.fields.push((name, text));
                sent.file_name = file_name.or(sent.file_name);
            }
        }
        Ok(sent)
    }
}

fn no_text() -> Problem {
    multipart::refusal(CSV, "invalid", "must be UTF-8: save the table as 'CSV UTF-8'")
}

impl SubmittedForm {
    /// The last value of a field; `None` if absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(of, _)| of == name).map(|(_, text)| text.as_str())
    }

    /// The same; empty if absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The table, with normalized line endings.
    pub(super) fn table(&self) -> String {
        self.text(CSV).replace("\r\n", "\n")
    }

    /// The values of numbered fields such as `column-3`.
    pub(super) fn numbered<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u32, &'a str)> {
        self.fields.iter().filter_map(move |(of, text)| {
            let number = of.strip_prefix(name)?.strip_prefix('-')?.parse().ok()?;
            Some((number, text.as_str()))
        })
    }

    /// The file's name without extension.
    pub(super) fn file_stem(&self) -> Option<&str> {
        let name = self.file_name.as_deref()?.rsplit(['/', '\\']).next()?.trim();
        let stem = match name.rsplit_once('.') {
            Some((stem, end)) if end.eq_ignore_ascii_case("csv") => stem.trim(),
            _ => name,
        };
        Some(stem).filter(|stem| !stem.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_called_as_its_file() {
        let named = |name: &str| {
            let sent = SubmittedForm { file_name: Some(name.to_owned()), ..SubmittedForm::default() };
            sent.file_stem().map(ToOwned::to_owned)
        };
        assert_eq!(named("Tasks of May.csv").as_deref(), Some("Tasks of May"));
        assert_eq!(named("C:\\tables\\a.b.CSV").as_deref(), Some("a.b"));
        assert_eq!(named("notes.txt").as_deref(), Some("notes.txt"));
        assert_eq!((named(".csv"), named(" ")), (None, None));
        assert_eq!(SubmittedForm::default().file_stem(), None);
    }

    #[test]
    fn fields_are_numbered() {
        let fields = [("name", "x"), ("name-2", "b"), ("name-x", "c"), ("name-0", "a")];
        let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let sent = SubmittedForm { fields, file_name: None };
        assert_eq!(sent.numbered("name").collect::<Vec<_>>(), [(2, "b"), (0, "a")]);
        assert_eq!((sent.text("name"), sent.get("nothing")), ("x", None));
    }
}

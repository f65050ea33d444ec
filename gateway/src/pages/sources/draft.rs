//! The form fields of a source, as its provider defines them, and their conversion to the API's input.

use cairn_chassis::status::{Problem, Violation};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::providers::{Input, Kind, Provider};
use super::{cost, mode_word};
use crate::pages::form::Form;
use crate::pages::parts::{self as part, Choice, Field};
use crate::pages::words;

pub(super) const SETTINGS: &str = "settings";
pub(super) const CREDENTIALS: &str = "credentials";

/// The form name of a provider's field.
fn name_of(group: &str, input: &Input) -> String {
    format!("{group}-{}", input.name)
}

/// The values of the fields: the input, else the current values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FieldValues<'a> {
    pub(super) form: Option<&'a Form>,
    pub(super) settings: Option<&'a Value>,
}

impl FieldValues<'_> {
    fn of_settings(&self, input: &Input) -> Option<&Value> {
        self.settings?.get(input.name)
    }

    fn text(&self, group: &str, input: &Input) -> String {
        if let Some(form) = self.form {
            // Forms submit CR LF line endings.
            return form.text(&name_of(group, input)).replace("\r\n", "\n");
        }
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        match self.of_settings(input) {
            None => String::new(),
            Some(Value::Array(all)) => all.iter().map(plain).collect::<Vec<_>>().join("\n"),
            Some(value) => plain(value),
        }
    }

    fn has(&self, group: &str, input: &Input, option: &str) -> bool {
        if let Some(form) = self.form {
            return form.all(&name_of(group, input)).any(|chosen| chosen == option);
        }
        let chosen = self.of_settings(input).and_then(Value::as_array);
        chosen.is_some_and(|chosen| chosen.iter().any(|one| one == option))
    }
}

/// The fields of a group. Secrets are never rendered back.
pub(super) fn fields(
    group: &str,
    inputs: &[Input],
    typed: FieldValues<'_>,
    problem: Option<&Problem>,
) -> Markup {
    html! { @for input in inputs { (field(group, input, typed, problem)) } }
}

fn field(group: &str, input: &Input, typed: FieldValues<'_>, problem: Option<&Problem>) -> Markup {
    let name = name_of(group, input);
    let value = if input.kind == Kind::Secret { String::new() } else { typed.text(group, input) };
    let plain = if input.kind == Kind::Secret {
        Field::password(&name, input.label, "off")
    } else {
        Field::text(&name, input.label).value(&value)
    };
    let plain = plain.hint(input.hint).problem(problem);
    let plain = if input.is_required { plain } else { plain.optional() };
    match input.kind {
        Kind::Line | Kind::Number | Kind::Secret => plain.render(),
        Kind::Lines => plain.area(3),
        Kind::One(options) => part::choices(
            &name,
            input.label,
            options.iter().map(|option| Choice { value: option, label: option, is_chosen: value == *option }),
        ),
        Kind::Some(options) => html! {
            fieldset id={ "f-" (name) } {
                legend { (input.label) }
                @if !input.hint.is_empty() { span.hint { (input.hint) } }
                @for option in options {
                    @let id = format!("f-{name}-{option}");
                    div.option {
                        input id=(id) type="checkbox" name=(name) value=(option) checked[typed.has(group, input, option)];
                        label for=(id) { (words::capital(&option.replace('_', " "))) }
                    }
                }
            }
        },
    }
}

/// The group as the API's input, without empty fields.
pub(super) fn read(group: &str, inputs: &[Input], form: &Form) -> Map<String, Value> {
    let mut read = Map::new();
    for input in inputs {
        let name = name_of(group, input);
        let value = match input.kind {
            Kind::Some(options) => {
                let chosen: Vec<&str> = form.all(&name).filter(|one| options.contains(one)).collect();
                if chosen.is_empty() { continue } else { json!(chosen) }
            }
            Kind::Lines => {
                let lines = form.text(&name).lines().map(str::trim).filter(|line| !line.is_empty());
                let lines: Vec<&str> = lines.collect();
                if lines.is_empty() { continue } else { json!(lines) }
            }
            // A non-numeric input is passed on as text, for the service to reject.
            Kind::Number if !form.trimmed(&name).is_empty() => number(form.trimmed(&name)),
            Kind::Line | Kind::Number | Kind::One(_) | Kind::Secret => match form.trimmed(&name) {
                "" => continue,
                text => json!(text),
            },
        };
        read.insert(input.name.to_owned(), value);
    }
    read
}

/// A number, or the input if it is none.
pub(super) fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

/// Renames violation paths to the form's field names: `settings.url` is `settings-url`.
pub(super) fn of_form(problem: Problem) -> Problem {
    let rename = |violation: Violation| {
        let groups = [SETTINGS, CREDENTIALS];
        let path = groups.iter().find_map(|group| {
            let rest = violation.path.strip_prefix(group)?.strip_prefix('.')?;
            Some(format!("{group}-{rest}"))
        });
        Violation { path: path.unwrap_or_else(|| violation.path.clone()), ..violation }
    };
    Problem { violations: problem.violations.into_iter().map(rename).collect(), ..problem }
}

/// The modes of the provider, with their costs.
pub(super) fn modes(provider: &Provider, chosen: &str) -> Markup {
    html! {
        fieldset #f-mode {
            legend { "Mode" }
            @for mode in provider.modes {
                @let id = format!("f-mode-{}", mode.as_str());
                div.option {
                    input id=(id) type="radio" name="mode" value=(mode.as_str()) checked[mode.as_str() == chosen];
                    label for=(id) { (mode_word(*mode)) span.hint { (cost::of_mode(*mode)) } }
                }
            }
        }
    }
}

/// The error summary with links to the fields.
pub(super) fn summary(provider: &Provider, problem: Option<&Problem>) -> Markup {
    let groups = [(SETTINGS, provider.settings), (CREDENTIALS, provider.credentials)];
    let fields = groups
        .into_iter()
        .flat_map(|(group, inputs)| inputs.iter().map(move |input| (name_of(group, input), input.label)));
    let fields: Vec<(String, &str)> = fields.collect();
    let own =
        [("name", "Name"), ("mode", "Mode"), ("every", "Read every"), ("dailyBudget", "Requests a day")];
    let labels: Vec<(&str, &str)> =
        own.into_iter().chain(fields.iter().map(|(name, label)| (name.as_str(), *label))).collect();
    part::summary(problem, &labels)
}

#[cfg(test)]
mod tests {
    use super::super::providers;
    use super::*;

    #[test]
    fn what_is_typed_becomes_the_fields_of_the_provider() {
        let github = providers::named("github").unwrap();
        let form = Form::read(
            b"settings-owner=+acme+&settings-repo=&settings-content=issues&settings-content=nothing&credentials-token=s",
        );
        let read = super::read(SETTINGS, github.settings, &form);
        assert_eq!(Value::Object(read), json!({"owner": "acme", "content": ["issues"]}));
        assert_eq!(Value::Object(super::read(CREDENTIALS, github.credentials, &form)), json!({"token": "s"}));
        let web = providers::named("web").unwrap();
        let form = Form::read(
            b"settings-kind=page&settings-urls=a%0D%0A%0D%0Ab&settings-maxPages=7&settings-maxDepth=x",
        );
        let read = super::read(SETTINGS, web.settings, &form);
        assert_eq!(
            Value::Object(read),
            json!({"kind": "page", "urls": ["a", "b"], "maxPages": 7, "maxDepth": "x"})
        );
    }

    #[test]
    fn what_is_so_already_stands_in_the_fields_and_secrets_never_do() {
        let web = providers::named("web").unwrap();
        let settings = json!({"kind": "feed", "url": "https://a.example", "urls": ["x", "y"], "maxPages": 7});
        let typed = FieldValues { settings: Some(&settings), form: None };
        let html = fields(SETTINGS, web.settings, typed, None).into_string();
        for part in
            ["value=\"feed\" selected", "value=\"https://a.example\"", "\nx\ny</textarea>", "value=\"7\""]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        let s3 = providers::named("s3").unwrap();
        let form = Form::read(b"credentials-accessKeyId=AKIA&credentials-secretAccessKey=hush");
        let typed = FieldValues { form: Some(&form), settings: None };
        let html = fields(CREDENTIALS, s3.credentials, typed, None).into_string();
        assert!(!html.contains("AKIA") && !html.contains("hush"), "{html}");
    }

    #[test]
    fn violations_find_their_fields() {
        let github = providers::named("github").unwrap();
        let broken = ["settings.owner", "settings.content[0]", "credentials.token", "name"];
        let broken = broken.map(|path| Violation::new(path, "x", "is odd")).to_vec();
        let html = summary(github, Some(&of_form(Problem::validation(broken)))).into_string();
        for field in ["settings-owner", "settings-content", "credentials-token", "name"] {
            assert!(html.contains(&format!("href=\"#f-{field}\"")), "{field}: {html}");
        }
    }
}

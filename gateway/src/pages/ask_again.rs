//! The search or question that led to a text by its citation. It is carried in the URL as `ask`, so that whoever
//! edits the text can save it and ask the same again.

use cairn_chassis::feed::ChangeToken;
use cairn_proto::ids::{QuestionId, WorkspaceId};
use cairn_proto::retrieval::v1::FeedPosition;
use form_urlencoded::Serializer;
use maud::{Markup, html};

use super::parts::{self, Tone};
use crate::change;

/// The name of the query parameter and form field.
pub(crate) const NAME: &str = "ask";
/// The query parameter of the change token that the repeated search waits for.
const AFTER: &str = "after";
/// Longer searches are not carried: each link would contain them.
const MAX_BYTES: usize = 600;
/// The parameters of a search that are carried.
const CHOICES: [&str; 6] = ["q", "strategy", "mode", "folder", "source", "as"];

/// What to ask again. It contains no URL, so it cannot redirect elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskAgain {
    /// A question of the log.
    Question(QuestionId),
    /// A search, as its page's query string.
    Search(String),
}

impl AskAgain {
    /// Parses the parameter; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(question) => Some(Self::Question(question)),
            Err(_) => Self::search(form_urlencoded::parse(text.as_bytes())),
        }
    }

    /// A search with these parameters; `None` without a query, or if it is too long.
    pub(crate) fn search<N: AsRef<str>, V: AsRef<str>>(
        choices: impl IntoIterator<Item = (N, V)>,
    ) -> Option<Self> {
        let (mut query, mut is_asked) = (Serializer::new(String::new()), false);
        for (name, value) in choices {
            let (name, value) = (name.as_ref(), value.as_ref());
            if CHOICES.contains(&name) && !value.is_empty() {
                query.append_pair(name, value);
                is_asked = is_asked || name == "q";
            }
        }
        let query = query.finish();
        (is_asked && query.len() <= MAX_BYTES).then_some(Self::Search(query))
    }

    /// As a query parameter.
    pub(crate) fn query(&self) -> String {
        Serializer::new(String::new()).append_pair(NAME, &self.text()).finish()
    }

    /// As a hidden form field.
    pub(crate) fn field(&self) -> Markup {
        html! { input type="hidden" name=(NAME) value=(self.text()); }
    }

    /// The button that saves and then asks again; see [`is_wanted`].
    pub(crate) fn button() -> Markup {
        html! { button type="submit" name="again" value="yes" { "Save and ask again" } }
    }

    /// The URL that asks again and waits for the write.
    pub(crate) fn address(&self, workspace: WorkspaceId, change: ChangeToken) -> String {
        match self {
            Self::Question(id) => format!("/w/{workspace}/questions/{id}?again=1&{AFTER}={change}"),
            Self::Search(query) => format!("/w/{workspace}/search?{query}&{AFTER}={change}"),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Question(id) => id.to_string(),
            Self::Search(query) => query.clone(),
        }
    }
}

/// Whether the form was submitted with that button.
pub(crate) fn is_wanted(form: &super::form::Form) -> bool {
    form.text("again") == "yes"
}

/// A URL with the parameter appended.
pub(crate) fn carried(address: &str, ask: Option<&AskAgain>) -> String {
    match ask {
        None => address.to_owned(),
        Some(ask) => {
            let mark = if address.contains('?') { '&' } else { '?' };
            format!("{address}{mark}{}", ask.query())
        }
    }
}

/// The write to wait for; an invalid token waits for nothing.
pub(crate) fn after(token: Option<&str>) -> Vec<FeedPosition> {
    token.and_then(|token| change::parse(token, AFTER).ok()).unwrap_or_default()
}

/// The note that the search waited for a write.
pub(crate) fn note(after: &[FeedPosition]) -> Markup {
    html! { @if !after.is_empty() { p { (parts::badge(Tone::Ok, "Asked again")) " With the text that you have just saved, unless a note below says otherwise." } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199c0de-0000-7000-8000-0000000000a1";

    #[test]
    fn what_is_asked_comes_back_as_it_went() {
        let search = AskAgain::search([("q", "a & b?"), ("strategy", ""), ("as", "t")]).unwrap();
        assert_eq!(search, AskAgain::Search("q=a+%26+b%3F&as=t".to_owned()));
        let question = AskAgain::Question(ID.parse().unwrap());
        for ask in [search, question] {
            let query = ask.query();
            let (name, text) = form_urlencoded::parse(query.as_bytes()).next().unwrap();
            assert_eq!((name.as_ref(), AskAgain::parse(&text)), (NAME, Some(ask.clone())), "{query}");
        }
    }

    #[test]
    fn it_leads_to_nothing_but_searches_and_questions() {
        let workspace: WorkspaceId = ID.parse().unwrap();
        for odd in
            ["", "x", "https://evil.example", "//evil.example", "strategy=keyword", "q=", "view=script"]
        {
            assert_eq!(AskAgain::parse(odd), None, "{odd}");
        }
        assert_eq!(AskAgain::parse(&format!("q={}", "x".repeat(MAX_BYTES))), None);
        let odd = AskAgain::parse("q=x&view=script&script=rm&after=c1-1&q=%0d%0a//evil").unwrap();
        let address = odd.address(workspace, change::of_content(1));
        assert_eq!(address, format!("/w/{ID}/search?q=x&q=%0D%0A%2F%2Fevil&after=c1-1"));
        let question = AskAgain::parse(ID).unwrap().address(workspace, change::of_content(1));
        assert_eq!(question, format!("/w/{ID}/questions/{ID}?again=1&after=c1-1"));
        assert_eq!(
            carried("/file/1?lines=2", AskAgain::parse(ID).as_ref()),
            format!("/file/1?lines=2&ask={ID}")
        );
        assert_eq!(carried("/file/1", None), "/file/1");
        assert_eq!(
            (after(Some("c1-1")).len(), after(Some("nonsense")), after(None)),
            (1, Vec::new(), Vec::new())
        );
    }
}

//! Viewing a page as one of the visitor's tokens: the field that selects it, and the note about it.

use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;
use form_urlencoded::{Serializer, parse};
use http::request::Parts;
use maud::{Markup, html};

use super::parts::{self, Choice};
use super::visitor::{Visitor, VisitorSlot};
use crate::answers::Token;
use crate::error::Error;
use crate::operations::tokens;

/// The query parameter of the token.
const AS: &str = "as";

/// The viewer of a list: the visitor, or the visitor as a token.
pub(super) struct Viewer {
    /// Whose rights the page uses.
    pub(super) visitor: Visitor,
    tokens: Vec<Token>,
}

impl Viewer {
    /// The visitor as that token, or as themselves.
    pub(super) async fn of(visitor: &Visitor, token: Option<&str>) -> Result<Self, Error> {
        let tokens = tokens::list(&visitor.person, visitor.here()?.id).await?;
        let visitor = match named(token) {
            Some(id) => visitor.looking_as(among(&tokens, id)?).await?,
            None => visitor.clone(),
        };
        Ok(Self { visitor, tokens })
    }

    /// The same, from the page's query.
    pub(super) async fn by(visitor: &Visitor, parts: &Parts) -> Result<Self, Error> {
        Self::of(visitor, token_param(parts).as_deref()).await
    }

    /// The id of the token.
    pub(super) fn token(&self) -> Option<&str> {
        self.visitor.seen_as().map(|seen| seen.id.as_str())
    }

    /// The token selector; empty if there are no tokens.
    pub(super) fn field(&self) -> Markup {
        if self.tokens.is_empty() {
            return html! {};
        }
        let own = Choice { value: "", label: "You", is_chosen: self.token().is_none() };
        let each = self.tokens.iter().map(|token| Choice {
            value: &token.id,
            label: &token.name,
            is_chosen: self.token() == Some(token.id.as_str()),
        });
        parts::choices(AS, "As", [own].into_iter().chain(each))
    }

    /// A form with only the token selector.
    pub(super) fn form(&self, address: &str) -> Markup {
        html! {
            @if !self.tokens.is_empty() {
                form.filter method="get" action=(address) aria-label="See as" {
                    (self.field())
                    button type="submit" { "See" }
                }
            }
        }
    }
}

/// The visitor as the token of the query, for pages about one item.
pub(super) async fn through(visitor: Visitor, parts: &Parts) -> Result<Visitor, Error> {
    let asked = token_param(parts);
    let Some(id) = named(asked.as_deref()).filter(|_| parts.method.is_safe()) else { return Ok(visitor) };
    let workspace: WorkspaceId = visitor.here()?.id;
    let tokens = tokens::list(&visitor.person, workspace).await?;
    let as_token = visitor.looking_as(among(&tokens, id)?).await?;
    // Refusals to the token mention its name.
    if let Some(seen) = parts.extensions.get::<VisitorSlot>() {
        seen.note(&as_token);
    }
    Ok(as_token)
}

/// The note on every page that is viewed as a token.
pub(super) fn note(visitor: &Visitor) -> Markup {
    html! {
        @if let Some(seen) = visitor.seen_as() {
            p.notice {
                "You see what " bdi { (seen.name) } " sees, and can change nothing here. "
                a href=(as_oneself(&visitor.address)) { "See as yourself" }
            }
        }
    }
}

fn token_param(parts: &Parts) -> Option<String> {
    let query = parse(parts.uri.query().unwrap_or_default().as_bytes());
    query.filter(|(name, _)| name == AS).last().map(|(_, token)| token.into_owned())
}

fn named(token: Option<&str>) -> Option<&str> {
    token.map(str::trim).filter(|id| !id.is_empty())
}

fn among<'a>(tokens: &'a [Token], id: &str) -> Result<&'a Token, Problem> {
    tokens.iter().find(|token| token.id == id).ok_or_else(|| Problem::not_found("there is no such token"))
}

/// The same page without the token.
fn as_oneself(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let mut own = Serializer::new(String::new());
    own.extend_pairs(parse(query.as_bytes()).filter(|(name, _)| name != AS));
    let query = own.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_page_is_the_same_without_the_token() {
        assert_eq!(as_oneself("/w/1/files?folder=a&as=t"), "/w/1/files?folder=a");
        assert_eq!(as_oneself("/file/1?as=t&as=u"), "/file/1");
        assert_eq!(as_oneself("/file/1"), "/file/1");
        assert_eq!(as_oneself("/w/1/search?as=t&q=a+b%26"), "/w/1/search?q=a+b%26");
    }
}

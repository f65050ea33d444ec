//! Looking at a page as one of the visitor's tokens would: the field that chooses it, and what the page says then.

use cairn_chassis::status::Problem;
use maud::{Markup, html};

use super::parts::{self, Choice};
use super::visitor::Visitor;
use crate::answers::Token;
use crate::error::Error;
use crate::operations::tokens;

/// Who looks: the visitor, or the visitor as a token.
pub(super) struct Seeing {
    /// With whose rights the page reads.
    pub(super) visitor: Visitor,
    tokens: Vec<Token>,
    token: Option<String>,
}

impl Seeing {
    /// The visitor as that token; without one as themselves.
    pub(super) async fn of(visitor: &Visitor, token: Option<&str>) -> Result<Self, Error> {
        let token = token.map(str::trim).filter(|id| !id.is_empty());
        let tokens = tokens::list(&visitor.person, visitor.here()?.id).await?;
        let Some(id) = token else {
            return Ok(Self { visitor: visitor.clone(), tokens, token: None });
        };
        if !tokens.iter().any(|token| token.id == id) {
            return Err(Problem::not_found("there is no such token").into());
        }
        Ok(Self { visitor: visitor.looking_as(id).await?, tokens, token: Some(id.to_owned()) })
    }

    /// The id of the token.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The field that chooses a token; nothing where there is none.
    pub(super) fn field(&self) -> Markup {
        if self.tokens.is_empty() {
            return html! {};
        }
        let own = Choice { value: "", label: "You", is_chosen: self.token.is_none() };
        let each = self.tokens.iter().map(|token| Choice {
            value: &token.id,
            label: &token.name,
            is_chosen: self.token.as_deref() == Some(&token.id),
        });
        parts::choices("as", "As", [own].into_iter().chain(each))
    }

    /// What the page says while it is looked at as a token; `base` is the same page as oneself.
    pub(super) fn note(&self, base: &str) -> Markup {
        let token = self.token.as_ref().and_then(|id| self.tokens.iter().find(|token| token.id == *id));
        html! {
            @if let Some(token) = token {
                p.notice { "You see what " bdi { (token.name) } " sees, and can change nothing here. " a href=(base) { "See as yourself" } }
            }
        }
    }
}

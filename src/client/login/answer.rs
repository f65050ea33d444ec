//! The authorization response (RFC 6749, section 4.1.2; RFC 9207).

use reqwest::Url;

/// The parameters of the redirect.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Option<String>,
    /// Absent if only the code was pasted.
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
    /// Whether it was pasted on the terminal.
    pub(super) is_pasted: bool,
}

// A code is a credential for about a minute.
cairn_chassis::debug_fields!(Answer { error, is_pasted });

impl Answer {
    /// Parses the query of the redirect.
    pub(super) fn of_query(query: &str) -> Self {
        // A dummy address, to reuse its query parser.
        Url::parse(&format!("http://localhost/?{query}"))
            .map(|url| Self::of_address(&url))
            .unwrap_or_default()
    }

    /// Parses pasted text: the address of the redirect, or the code alone.
    pub(super) fn pasted(text: &str) -> Self {
        let answer = match Url::parse(text) {
            Ok(address) => Self::of_address(&address),
            Err(_) => Self { code: Some(text.to_owned()), ..Self::default() },
        };
        Self { is_pasted: true, ..answer }
    }

    fn of_address(address: &Url) -> Self {
        let mut answer = Self::default();
        for (name, value) in address.query_pairs() {
            let place = match name.as_ref() {
                "code" => &mut answer.code,
                "state" => &mut answer.state,
                "iss" => &mut answer.issuer,
                "error" => &mut answer.error,
                _ => continue,
            };
            *place = Some(value.into_owned());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_from_an_address_or_is_the_code() {
        let expected = Answer {
            code: Some("a code".to_owned()),
            state: Some("s".to_owned()),
            issuer: Some("https://cairn.example".to_owned()),
            error: None,
            is_pasted: false,
        };
        let query = "code=a+code&state=s&iss=https%3A%2F%2Fcairn.example&more=x";
        assert_eq!(Answer::of_query(query), expected);
        let pasted = Answer::pasted(&format!("http://127.0.0.1:4000/callback?{query}"));
        assert_eq!(pasted, Answer { is_pasted: true, ..expected });
        let code = Answer { code: Some("cairn_oc_x".to_owned()), is_pasted: true, ..Answer::default() };
        assert_eq!(Answer::pasted("cairn_oc_x"), code);
        assert_eq!(Answer::of_query(""), Answer::default());
        assert!(!format!("{pasted:?}").contains("a code"));
    }
}

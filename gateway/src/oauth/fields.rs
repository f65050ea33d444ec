//! The parameters of a query or a form.

use super::refusal::Refusal;

/// Names and values as they came.
#[derive(Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn read(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// All values of a name. An empty one counts as omitted (RFC 6749, section 3.1).
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let of_name = self.0.iter().filter(move |(given, value)| given == name && !value.is_empty());
        of_name.map(|(_, value)| value.as_str())
    }

    /// The first value of a name.
    pub(super) fn first(&self, name: &str) -> Option<String> {
        self.all(name).next().map(ToOwned::to_owned)
    }

    /// The same, with an empty text for a missing one.
    pub(super) fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default()
    }

    /// A name that was repeated although it must not be (RFC 6749, section 3.1).
    pub(super) fn repeated(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.0.iter().filter(|(given, _)| given == name).count() > 1)
    }

    /// Rejects repeated parameters: two parsers could pick different values.
    pub(super) fn require_single(&self, names: &[&'static str]) -> Result<(), Refusal> {
        match self.repeated(names) {
            None => Ok(()),
            Some(name) => Err(Refusal::invalid_request(format!("{name} was sent more than once"))),
        }
    }

    /// The first of these names that was sent.
    pub(super) fn any_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.0.iter().any(|(given, _)| given == name))
    }

    /// The given fields as a query string in canonical form.
    pub(super) fn encoded(&self, names: &[&str]) -> String {
        let kept = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish()
    }
}

/// The storage rejects NUL, and no parameter has a use for it.
pub(super) fn without_nul(fields: &Fields) -> Result<(), Refusal> {
    if fields.0.iter().any(|(_, value)| value.contains('\0')) {
        return Err(Refusal::invalid_request("no parameter may hold a NUL character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_parameter_is_none_and_a_repeated_one_is_noticed() {
        let fields = Fields::read(b"a=1&b=&c=x+y%26z&c=2&d&%ff=%ff");
        assert_eq!(fields.first("a").as_deref(), Some("1"));
        assert_eq!((fields.first("b"), fields.first("d"), fields.first("e")), (None, None, None));
        assert_eq!(fields.all("c").collect::<Vec<_>>(), ["x y&z", "2"]);
        assert!(fields.require_single(&["a", "b", "d"]).is_ok());
        assert!(fields.require_single(&["a", "c"]).unwrap_err().description.starts_with('c'));
        assert_eq!(fields.any_of(&["z", "b"]), Some("b"));
        assert_eq!(fields.encoded(&["c", "a"]), "a=1&c=x+y%26z&c=2");
    }

    #[test]
    fn a_nul_is_refused() {
        assert!(without_nul(&Fields::read(b"a=%00")).is_err());
        assert!(without_nul(&Fields::read(b"a=b")).is_ok());
    }
}

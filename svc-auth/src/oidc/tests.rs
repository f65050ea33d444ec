use super::*;

fn person(name: Option<&str>) -> Person {
    Person { subject: "s".to_owned(), verified_email: None, name: name.map(ToOwned::to_owned) }
}

#[test]
fn an_address_of_another_alphabet_is_nobody_elses() {
    assert_eq!(fold(" Ada@Example.com").as_deref(), Some("ada@example.com"));
    assert_eq!(fold("\u{e4}da@example.com").as_deref(), Some("\u{e4}da@example.com"));
    // The Kelvin sign folds to a plain k.
    assert_eq!(fold("\u{212a}ate@example.com"), None);
    assert_eq!(fold("\u{e4}\u{212a}ate@example.com"), None);
}

#[test]
fn a_person_has_a_name_that_can_be_shown() {
    let named = |name: Option<&str>| person_name(&person(name), "ada@example.com");
    assert_eq!(named(Some(" Ada\tByron\0 ")), "Ada Byron");
    assert_eq!(named(Some(&"\u{e4}".repeat(300))).chars().count(), MAX_NAME_CHARS);
    assert_eq!((named(None), named(Some(" \n"))), ("ada".to_owned(), "ada".to_owned()));
}

#[test]
fn the_secret_is_in_no_debug_text() {
    let config = Config {
        issuer: "https://accounts.example.com".to_owned(),
        client_id: "cairn".to_owned(),
        client_secret: Some("s3cretword".to_owned()),
        name: "Example".to_owned(),
        scopes: Vec::new(),
        sign_up: false,
    };
    assert!(!format!("{config:?}").contains("s3cretword"));
}

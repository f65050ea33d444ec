use serde_json::json;

use super::*;

fn guard() -> Guard {
    Guard::new(&["127.0.0.1/32".parse().unwrap()]).unwrap()
}

fn read<T>(value: &Value, read: impl Fn(&mut Fields<'_>) -> T) -> (T, Vec<(String, String)>) {
    let mut fields = Fields::new("settings", Some(value));
    let got = read(&mut fields);
    (got, fields.finish().into_iter().map(|one| (one.path, one.code)).collect())
}

fn problems<T>(value: &Value, of: impl Fn(&mut Fields<'_>) -> T) -> Vec<(String, String)> {
    read(value, of).1
}

fn one(path: &str, code: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), code.to_owned())]
}

#[test]
fn every_problem_is_said_at_once() {
    let given = json!({ "pth": "x", "tags": ["a", 7, ""], "kinds": ["pages"] });
    let found = problems(&given, |fields| {
        fields.required_text("path", "give a path");
        fields.texts("tags");
        fields.choices::<String>("kinds", &["page", "feed"]);
    });
    let said: Vec<(&str, &str)> = found.iter().map(|(path, code)| (path.as_str(), code.as_str())).collect();
    let wanted = [
        ("settings.path", "required"),
        ("settings.tags[1]", "invalid_type"),
        ("settings.tags[2]", "required"),
        ("settings.kinds[0]", "invalid_value"),
        ("settings.pth", "unknown_field"),
    ];
    assert_eq!(said, wanted);
}

#[test]
fn an_unknown_field_names_the_nearest_known_one() {
    let given = json!({ "max_page": 1, "zzz": 1 });
    let mut fields = Fields::new("settings", Some(&given));
    fields.text("maxPages");
    fields.text("path");
    let messages: Vec<String> = fields.finish().into_iter().map(|one| one.message).collect();
    let wanted = [
        "is not a known field; did you mean `maxPages`?",
        "is not a known field; the fields are: maxPages, path",
    ];
    assert_eq!(messages, wanted);
}

#[test]
fn null_and_empty_are_absent() {
    for given in [json!({}), json!({ "path": null }), json!({ "path": " " }), Value::Null] {
        assert_eq!(read(&given, |fields| fields.text("path")), (None, Vec::new()));
        assert_eq!(
            problems(&given, |fields| fields.required_text("path", "")),
            one("settings.path", "required")
        );
        assert_eq!(
            problems(&given, |fields| fields.required_secret("path", "")),
            one("settings.path", "required")
        );
    }
    assert_eq!(problems(&json!([]), |fields| fields.text("path")), one("settings", "invalid_type"));
}

#[test]
fn texts_are_bounded_and_hold_no_control_characters() {
    let text = |value: Value| problems(&json!({ "path": value }), |fields| fields.text("path"));
    assert_eq!(text(json!(7)), one("settings.path", "invalid_type"));
    assert_eq!(text(json!("a\nb")), one("settings.path", "invalid_value"));
    assert_eq!(text(json!("x".repeat(2_001))), one("settings.path", "too_long"));
    let many = json!({ "tags": vec!["x"; 101] });
    assert_eq!(problems(&many, |fields| fields.texts("tags")), one("settings.tags", "too_long"));
}

#[test]
fn an_address_is_one_that_we_go_to() {
    let code = |address: &str| {
        let given = json!({ "url": address });
        let found = problems(&given, |fields| fields.address("url", &guard()));
        found.into_iter().map(|(_, code)| code).collect::<Vec<_>>()
    };
    assert!(code("https://example.com/a").is_empty());
    assert!(code("http://127.0.0.1:80/a").is_empty());
    assert_eq!(code("https://me:secret@example.com/"), ["credentials_in_url"]);
    assert_eq!(code("http://10.0.0.1/"), ["not_public"]);
    assert_eq!(code("ext::sh -c id"), ["invalid_url"]);
    assert_eq!(code("file:///etc/passwd"), ["invalid_url"]);
    assert_eq!(code("example.com"), ["invalid_url"]);
}

#[test]
fn what_is_wrong_never_holds_the_value() {
    let secret = "hunter2\u{7}";
    let given =
        json!({ "token": secret, "url": format!("https://me:{secret}@x.example/"), "kind": [secret] });
    let mut fields = Fields::new("credentials", Some(&given));
    fields.secret("token");
    fields.address("url", &guard());
    fields.choices::<String>("kind", &["a"]);
    let said = format!("{:?}", fields.finish());
    assert!(!said.contains("hunter2"), "{said}");
}

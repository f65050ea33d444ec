//! Finds faults in the HTML of a page.

use std::collections::{BTreeMap, BTreeSet};

use html5gum::{Token, Tokenizer};

/// Void elements.
const VOID: [&str; 8] = ["meta", "link", "input", "hr", "br", "img", "path", "wbr"];

/// An element as written.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
}

impl Element {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// Every element, and the syntax faults.
fn elements(html: &str) -> (Vec<Element>, Vec<String>) {
    let (mut elements, mut wrong, mut open) = (Vec::new(), Vec::new(), Vec::<String>::new());
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let attributes = tag.attributes.iter().map(|(name, value)| {
                    (String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(value).into_owned())
                });
                elements.push(Element { attributes: attributes.collect(), name: name.clone() });
                if !tag.self_closing && !VOID.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if VOID.contains(&name.as_str()) {
                    continue;
                }
                match open.pop() {
                    Some(opened) if opened == name => {}
                    opened => wrong.push(format!("{opened:?} is closed by {name}")),
                }
            }
            Token::Error(error) => wrong.push(format!("{:?}", *error)),
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    wrong.extend(open.into_iter().map(|name| format!("{name} is left open")));
    (elements, wrong)
}

/// All faults of a page.
pub(in crate::pages) fn faults(html: &str) -> Vec<String> {
    let (elements, mut wrong) = elements(html);
    let mut ids = BTreeSet::new();
    for element in &elements {
        if let Some(id) = element.get("id")
            && !ids.insert(id)
        {
            wrong.push(format!("the id {id} stands twice"));
        }
    }
    for element in &elements {
        wrong.extend(faults_of(element, &ids));
    }
    wrong.extend(faults_of_fields(&elements));
    wrong.extend(faults_of_headings(&elements));
    for (name, count) in [("main", 1), ("h1", 1), ("title", 1)] {
        let found = elements.iter().filter(|element| element.name == name).count();
        if found != count {
            wrong.push(format!("{found} × {name}"));
        }
    }
    if elements.iter().find(|element| element.name == "html").and_then(|html| html.get("lang")).is_none() {
        wrong.push("the page has no language".to_owned());
    }
    wrong
}

fn faults_of(element: &Element, ids: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = &element.name;
    for (attribute, value) in &element.attributes {
        if attribute == "style" || attribute.starts_with("on") {
            wrong.push(format!("{name} has {attribute}"));
        }
        let refers = ["for", "aria-labelledby", "aria-describedby", "commandfor", "popovertarget", "form"];
        if refers.contains(&attribute.as_str()) {
            for id in value.split_whitespace().filter(|id| !ids.contains(id)) {
                wrong.push(format!("{attribute} of {name} names {id}, which is not there"));
            }
        }
        if ["href", "src", "action"].contains(&attribute.as_str()) {
            let is_own = value.starts_with('/') && !value.starts_with("//");
            let is_here = value.strip_prefix('#').is_some_and(|id| ids.contains(id));
            let is_clients = value.starts_with("cursor://") || value.starts_with("vscode:");
            let installs = is_clients && element.get("rel").is_some();
            // User content may link elsewhere, but must send no referrer.
            let is_web = value.starts_with("https://") || value.starts_with("http://");
            let leaves = name == "a" && is_web && element.get("rel") == Some("noopener noreferrer");
            if !(is_own || is_here || installs || leaves) {
                wrong.push(format!("{attribute} of {name} leads to {value}"));
            }
        }
    }
    let is_dialogs = element.get("method") == Some("dialog");
    if name == "form" && element.get("action").is_none() && !is_dialogs {
        wrong.push("a form without an action".to_owned());
    }
    if name == "script" && element.get("src").is_none() {
        wrong.push("a script in the page".to_owned());
    }
    if name == "style" {
        wrong.push("a style in the page".to_owned());
    }
    wrong
}

/// Every field has an accessible name, and every password field an autocomplete hint.
fn faults_of_fields(elements: &[Element]) -> Vec<String> {
    let labelled: BTreeSet<_> =
        elements.iter().filter(|one| one.name == "label").filter_map(|one| one.get("for")).collect();
    let fields =
        elements.iter().filter(|one| ["input", "select", "textarea", "meter"].contains(&one.name.as_str()));
    let mut wrong = Vec::new();
    for field in fields.filter(|field| field.get("type") != Some("hidden")) {
        let has_label =
            field.get("id").is_some_and(|id| labelled.contains(id)) || field.get("aria-label").is_some();
        if !has_label {
            wrong.push(format!("a field without a label: {field:?}"));
        }
        let told = ["current-password", "new-password", "off"];
        if field.get("type") == Some("password")
            && !field.get("autocomplete").is_some_and(|word| told.contains(&word))
        {
            wrong.push(format!("a password that a browser must guess about: {field:?}"));
        }
    }
    wrong
}

/// The first heading is the `h1`, and no level is skipped.
fn faults_of_headings(elements: &[Element]) -> Vec<String> {
    let level = |name: &str| name.strip_prefix('h').and_then(|level| level.parse::<u8>().ok());
    let mut wrong = Vec::new();
    let mut last = 0;
    for level in elements.iter().filter_map(|element| level(&element.name)) {
        if level > last + 1 {
            wrong.push(format!("h{level} after h{last}"));
        }
        last = level;
    }
    wrong
}

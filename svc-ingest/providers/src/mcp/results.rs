//! Converts the results of search tools to documents, and those of fetch tools and resources to bodies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::tools::Output;
use crate::rest::{Items, MAX_BODY_BYTES};
use crate::{Body, Entry, ExternalId, Fault, Fetched, Version};

/// The media type of texts without one.
const MARKDOWN: &str = "text/markdown";

/// The documents in the result of a search tool: `results` in the conventional form, else resource links, embedded resources and texts.
pub(super) fn found(output: &Output, tool: &str, limit: usize, has_fetch: bool) -> Vec<Entry> {
    if let Some(results) = output.value().as_ref().and_then(|value| value.get("results")?.as_array()) {
        return results.iter().filter_map(|result| by_convention(result, has_fetch)).take(limit).collect();
    }
    output.content.iter().filter_map(|block| by_block(block, tool)).take(limit).collect()
}

fn by_convention(result: &Value, has_fetch: bool) -> Option<Entry> {
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let id = match result.get("id")? {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let address = text("url").filter(|url| is_address(url)).or(Some(id.as_str()).filter(|id| is_address(id)));
    let address = address.map(str::to_owned);
    let body = text("text").filter(|text| !text.is_empty() && !has_fetch);
    let version = Version::of_bytes(body.unwrap_or_default().as_bytes());
    let mut entry = Entry::new(ExternalId::new(id).ok()?, version, text("title").unwrap_or_default());
    entry.url = address;
    entry.body = body.map(|body| text_body(body, MARKDOWN));
    Some(entry)
}

fn by_block(block: &Value, tool: &str) -> Option<Entry> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    match block.get("type")?.as_str()? {
        "resource_link" => {
            let uri = text(block, "uri")?;
            let title = text(block, "title").or_else(|| text(block, "name")).unwrap_or_default();
            let url = Some(uri.clone());
            let mut entry = Entry::new(ExternalId::new(uri).ok()?, Version::of_bytes(&[]), &title);
            entry.mime = text(block, "mimeType");
            entry.url = url;
            Some(entry)
        }
        "resource" => {
            let resource = block.get("resource")?;
            let (uri, said) = (text(resource, "uri")?, text(resource, "text")?);
            let mime = text(resource, "mimeType");
            let body = text_body(&said, mime.as_deref().unwrap_or(MARKDOWN));
            let url = Some(uri.clone());
            let mut entry = Entry::new(ExternalId::new(uri).ok()?, body.version.clone(), "");
            (entry.mime, entry.url, entry.body) = (mime, url, Some(body));
            Some(entry)
        }
        "text" => {
            let body = text_body(&text(block, "text").filter(|said| !said.trim().is_empty())?, MARKDOWN);
            let id = format!("{tool}:{}", body.version.as_str());
            let first_line = text(block, "text")?.lines().find(|line| !line.trim().is_empty())?.to_owned();
            let mut entry = Entry::new(
                ExternalId::new(id).ok()?,
                body.version.clone(),
                first_line.trim_start_matches('#'),
            );
            entry.body = Some(body);
            Some(entry)
        }
        _ => None,
    }
}

/// The body in the result of a fetch tool.
pub(super) fn fetched(output: &Output) -> Fetched {
    let value = output.value();
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name)).and_then(Value::as_str);
    let text = field("text").map_or_else(|| output.texts().collect::<Vec<_>>().join("\n\n"), str::to_owned);
    let mut body = text_body(&text, MARKDOWN);
    body.title = field("title").map(str::to_owned);
    body.url = field("url").filter(|url| is_address(url)).map(str::to_owned);
    Fetched::Body(body)
}

/// A body with the URL that the server returned, else with its id if that is a URL.
pub(super) fn cited(fetched: Fetched, id: &str) -> Fetched {
    let Fetched::Body(mut body) = fetched else { return fetched };
    body.url = body.url.or_else(|| is_address(id).then(|| id.to_owned()));
    Fetched::Body(body)
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "mimeType", default)]
    mime: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
}

/// The contents of a resource: its texts concatenated, or its only blob.
pub(super) fn contents(contents: &Items<'_>) -> Result<Fetched, Fault> {
    let odd = |_| Fault::broken("the contents of the resource cannot be read");
    let contents = contents.each::<Content>().collect::<Result<Vec<_>, _>>().map_err(odd)?;
    let mime = contents.iter().find_map(|content| content.mime.clone());
    let texts: Vec<&str> = contents.iter().filter_map(|content| content.text.as_deref()).collect();
    if !texts.is_empty() {
        return Ok(Fetched::Body(text_body(&texts.join("\n\n"), mime.as_deref().unwrap_or("text/plain"))));
    }
    let mime = mime.unwrap_or_else(|| "application/octet-stream".to_owned());
    match contents.iter().filter_map(|content| content.blob.as_deref()).collect::<Vec<_>>().as_slice() {
        [] => Ok(Fetched::Body(text_body("", "text/plain"))),
        [blob] => {
            let bytes = STANDARD.decode(blob.as_bytes());
            let bytes = bytes.map_err(|_| Fault::broken("the contents of the resource are no base64"))?;
            if bytes.len() > MAX_BODY_BYTES {
                return Ok(Fetched::TooLarge(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
            }
            let version = Version::of_bytes(&bytes);
            Ok(Fetched::Body(Body::new(bytes, mime, version)))
        }
        [_, _, ..] => Ok(Fetched::Unsupported(mime)),
    }
}

fn text_body(text: &str, mime: &str) -> Body {
    Body::new(text.to_owned(), mime, Version::of_bytes(text.as_bytes()))
}

/// Whether a text is a web URL or a resource URI.
fn is_address(text: &str) -> bool {
    url::Url::parse(text).is_ok()
}

/// A resource in a listing.
#[derive(Deserialize)]
pub(super) struct Resource {
    uri: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(rename = "mimeType", default)]
    mime: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "lastModified", default)]
    last_modified: Option<String>,
}

impl Resource {
    /// The entry. Without a modification time, changes are detected by hash.
    pub(super) fn entry(self) -> Result<Entry, crate::ItemFault> {
        let title = self.title.or(self.name).unwrap_or_default();
        let written = self.annotations.and_then(|annotations| annotations.last_modified);
        let version = written.clone().map_or_else(Version::unknown, Version::new);
        let url = self.uri.clone();
        let id = ExternalId::new(self.uri).map_err(|_| crate::ItemFault::unusable_id(&title))?;
        let mut entry = Entry::new(id, version, &title);
        entry.updated_at = written.and_then(|written| crate::rest::moment(&written));
        (entry.mime, entry.size, entry.url) = (self.mime, self.size, Some(url));
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(value: Value) -> Output {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_convention_is_read_as_text_and_as_structure() {
        let results = json!({"results": [
            {"id": "d-1", "title": "One", "url": "https://docs.example/1"},
            {"id": 2, "title": "Two", "text": "Words."},
            {"title": "without id"}, 7, {"id": "x".repeat(5_000)},
        ]});
        let as_text = output(json!({"content": [{"type": "text", "text": results.to_string()}]}));
        let as_structure = output(json!({"structuredContent": results, "content": []}));
        for output in [as_text, as_structure] {
            let entries = found(&output, "search", 10, false);
            let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
            assert_eq!(ids, ["d-1", "2"]);
            assert_eq!(entries[0].url.as_deref(), Some("https://docs.example/1"));
            assert!(entries[0].body.is_none());
            assert_eq!(entries[1].body.as_ref().unwrap().bytes, "Words.");
            assert_eq!(found(&output, "search", 1, false).len(), 1);
            assert!(found(&output, "search", 10, true)[1].body.is_none(), "the fetch tool has all of it");
        }
    }

    #[test]
    fn other_tools_give_links_resources_and_texts() {
        let output = output(json!({"content": [
            {"type": "resource_link", "uri": "docs://a", "name": "A", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "docs://b", "text": "Body of b", "mimeType": "text/plain"}},
            {"type": "text", "text": "\n# Heading\nsomething"},
            {"type": "image", "data": "AAAA"},
            {"type": "text", "text": " "},
        ]}));
        let entries = found(&output, "find", 10, false);
        let titles: Vec<&str> = entries.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles, ["A", "b", "Heading"]);
        assert_eq!(entries[0].id.as_str(), "docs://a");
        assert_eq!(entries[1].body.as_ref().unwrap().bytes, "Body of b");
        assert!(entries[2].id.as_str().starts_with("find:"));
    }

    #[test]
    fn a_body_is_cited_with_the_address_that_was_told_or_with_its_id() {
        let told =
            json!({"content": [], "structuredContent": {"text": "a", "url": "https://docs.example/1"}});
        let untold = json!({"content": [{"type": "text", "text": "a"}]});
        let url = |said: &Value, id: &str| {
            let Fetched::Body(body) = cited(fetched(&output(said.clone())), id) else { panic!("no body") };
            body.url
        };
        assert_eq!(url(&told, "docs://a").as_deref(), Some("https://docs.example/1"));
        assert_eq!(url(&untold, "docs://a").as_deref(), Some("docs://a"));
        assert_eq!(url(&untold, "d-1"), None);
        assert_eq!(cited(Fetched::Gone, "docs://a"), Fetched::Gone);
    }

    #[test]
    fn contents_are_texts_or_bytes() {
        let read = |text: &str| contents(&serde_json::from_str(text).unwrap());
        let Ok(Fetched::Body(body)) =
            read(r#"[{"uri":"a","text":"one","mimeType":"text/markdown"},{"uri":"b","text":"two"}]"#)
        else {
            panic!("no body")
        };
        assert_eq!((body.bytes, body.mime.as_str()), ("one\n\ntwo".into(), "text/markdown"));
        let Ok(Fetched::Body(body)) = read(r#"[{"uri":"a","blob":"JVBERi0=","mimeType":"application/pdf"}]"#)
        else {
            panic!("no body")
        };
        assert_eq!((body.bytes, body.mime.as_str()), ("%PDF-".into(), "application/pdf"));
        assert!(read(r#"[{"uri":"a","blob":"!"}]"#).is_err());
        assert!(read(r#"[{"uri":"a","text":7}]"#).is_err());
        assert!(matches!(read(r#"[{"blob":"AA=="},{"blob":"AA=="}]"#), Ok(Fetched::Unsupported(_))));
    }
}

//! Converts Atlassian Document Format to Markdown.

use std::borrow::Cow;

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// A node; the JSON parser bounds the nesting.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Node {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    attrs: Option<Value>,
    #[serde(default)]
    content: Vec<Self>,
    #[serde(default)]
    marks: Vec<Mark>,
}

#[derive(Debug, Deserialize)]
struct Mark {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    attrs: Option<Value>,
}

impl Node {
    /// The Markdown of a document.
    pub(super) fn markdown(&self) -> String {
        self.blocks().trim().to_owned()
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        text_of(self.attrs.as_ref(), name)
    }

    /// The children as blocks, separated by empty lines.
    fn blocks(&self) -> String {
        let blocks = self.content.iter().map(Self::block).filter(|block| !block.trim().is_empty());
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    fn block(&self) -> String {
        match self.kind.as_str() {
            "heading" => {
                let level = self.attrs.as_ref().and_then(|attrs| attrs.get("level")).and_then(Value::as_u64);
                let level = usize::try_from(level.unwrap_or(1)).unwrap_or(1).clamp(1, 6);
                format!("{} {}", "#".repeat(level), one_line(&self.inline()))
            }
            "bulletList" | "taskList" | "decisionList" => self.list(|_| "- ".to_owned()),
            "orderedList" => self.list(|number| format!("{number}. ")),
            "codeBlock" => {
                let language = self.attribute("language").unwrap_or_default();
                let code: String = self.content.iter().filter_map(|node| node.text.as_deref()).collect();
                let fence = "`".repeat(longest_ticks(&code).max(2) + 1);
                format!("{fence}{}\n{code}\n{fence}", one_line(language))
            }
            "blockquote" | "panel" => prefixed(&self.blocks(), "> ", "> "),
            "expand" | "nestedExpand" => {
                match self.attribute("title").map(one_line).filter(|title| !title.is_empty()) {
                    Some(title) => format!("**{title}**\n\n{}", self.blocks()),
                    None => self.blocks(),
                }
            }
            "rule" => "---".to_owned(),
            "table" => self.table(),
            // Pictures are not fetched.
            "mediaSingle" | "mediaGroup" | "media" => String::new(),
            "paragraph" | "text" | "hardBreak" | "mention" | "emoji" | "date" | "status" | "inlineCard"
            | "blockCard" | "embedCard" => self.inline(),
            _ => self.blocks(),
        }
    }

    fn list(&self, mark: impl Fn(usize) -> String) -> String {
        let items = self.content.iter().enumerate().map(|(index, item)| {
            let mark = mark(index + 1);
            let indent = " ".repeat(mark.len());
            let is_inline = item.content.first().is_some_and(|first| first.kind == "text");
            let text = if is_inline { item.inline() } else { item.item_blocks() };
            format!("{mark}{}", prefixed(&text, "", &indent))
        });
        items.collect::<Vec<_>>().join("\n")
    }

    /// The blocks of a list item, without empty lines.
    fn item_blocks(&self) -> String {
        let blocks = self.content.iter().map(Self::block).filter(|block| !block.trim().is_empty());
        blocks.collect::<Vec<_>>().join("\n")
    }

    fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self.content.iter().map(Self::cells).collect();
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut lines = Vec::new();
        for (index, mut row) in rows.into_iter().enumerate() {
            row.resize(width, String::new());
            lines.push(format!("| {} |", row.join(" | ")));
            if index == 0 {
                lines.push(format!("|{}", " --- |".repeat(width)));
            }
        }
        lines.join("\n")
    }

    fn cells(&self) -> Vec<String> {
        self.content.iter().map(|cell| one_line(&cell.blocks()).replace('|', "\\|")).collect()
    }

    fn inline(&self) -> String {
        if self.content.is_empty() {
            return self.atom();
        }
        self.content.iter().map(Self::inline).collect()
    }

    fn atom(&self) -> String {
        match self.kind.as_str() {
            "text" => {
                let text = self.text.as_deref().unwrap_or_default();
                self.marks.iter().fold(text.to_owned(), |text, mark| mark.around(text))
            }
            "hardBreak" => "\n".to_owned(),
            "mention" | "status" | "placeholder" => self.attribute("text").unwrap_or_default().to_owned(),
            "emoji" => self.attribute("text").or(self.attribute("shortName")).unwrap_or_default().to_owned(),
            "inlineCard" | "blockCard" | "embedCard" => self.attribute("url").unwrap_or_default().to_owned(),
            "date" => {
                let millis = self.attribute("timestamp").and_then(|text| text.parse::<i64>().ok());
                let at =
                    millis.map(|millis| Timestamp::from_micros(millis.saturating_mul(1_000)).to_rfc3339());
                at.and_then(|at| at.split_once('T').map(|(day, _)| day.to_owned())).unwrap_or_default()
            }
            _ => self.text.clone().unwrap_or_default(),
        }
    }
}

impl Mark {
    fn around(&self, text: String) -> String {
        if text.trim().is_empty() {
            return text;
        }
        let sign = match self.kind.as_str() {
            "strong" => "**",
            "em" => "*",
            "strike" => "~~",
            "code" => "`",
            "link" => {
                let target = text_of(self.attrs.as_ref(), "href").unwrap_or_default();
                return format!("[{text}]({target})");
            }
            _ => "",
        };
        format!("{sign}{text}{sign}")
    }
}

fn text_of<'a>(attributes: Option<&'a Value>, name: &str) -> Option<&'a str> {
    attributes?.get(name)?.as_str()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Prefixes the first line of a text, and each of the others.
fn prefixed(text: &str, first: &str, others: &str) -> String {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let prefix = if index == 0 { first } else { others };
        let line: Cow<'_, str> =
            if line.is_empty() { prefix.trim_end().into() } else { format!("{prefix}{line}").into() };
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn longest_ticks(code: &str) -> usize {
    code.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn markdown(content: Value) -> String {
        let node: Node =
            serde_json::from_value(json!({"type": "doc", "version": 1, "content": content})).unwrap();
        node.markdown()
    }

    fn paragraph(text: &str) -> Value {
        json!({"type": "paragraph", "content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn blocks_become_markdown() {
        let item = |text: &str| json!({"type": "listItem", "content": [paragraph(text)]});
        let nested = json!({"type": "listItem", "content": [paragraph("two"), {"type": "bulletList", "content": [item("deep")]}]});
        let text = markdown(json!([
            {"type": "heading", "attrs": {"level": 2}, "content": [{"type": "text", "text": "Steps"}]},
            {"type": "orderedList", "content": [item("one"), nested]},
            {"type": "codeBlock", "attrs": {"language": "rust"}, "content": [{"type": "text", "text": "let a = \"```\";"}]},
            {"type": "panel", "content": [paragraph("Careful"), paragraph("Really")]},
            {"type": "mediaSingle", "content": [{"type": "media"}]},
            {"type": "rule"},
        ]));
        let expected = "## Steps\n\n1. one\n2. two\n   - deep\n\n````rust\nlet a = \"```\";\n````\n\n> Careful\n>\n> Really\n\n---";
        assert_eq!(text, expected);
    }

    #[test]
    fn inline_nodes_and_tables_become_markdown() {
        let text = json!({"type": "paragraph", "content": [
            {"type": "text", "text": "see ", "marks": []},
            {"type": "text", "text": "this", "marks": [{"type": "strong"}, {"type": "link", "attrs": {"href": "https://a.example"}}]},
            {"type": "hardBreak"}, {"type": "mention", "attrs": {"text": "@Ada"}}, {"type": "text", "text": " by "},
            {"type": "date", "attrs": {"timestamp": "1795435200000"}}]});
        assert_eq!(markdown(json!([text])), "see [**this**](https://a.example)\n@Ada by 2026-11-23");
        let cell = |kind: &str, text: &str| json!({"type": kind, "content": [paragraph(text)]});
        let row = |cells: Value| json!({"type": "tableRow", "content": cells});
        let table = json!([{"type": "table", "content": [
            row(json!([cell("tableHeader", "A"), cell("tableHeader", "B")])), row(json!([cell("tableCell", "a|b")]))]}]);
        assert_eq!(markdown(table), "| A | B |\n| --- | --- |\n| a\\|b |  |");
    }

    #[test]
    fn what_is_unknown_or_odd_keeps_its_text() {
        assert_eq!(markdown(json!([{"type": "newThing", "content": [paragraph("kept")]}])), "kept");
        assert_eq!(
            markdown(
                json!([{"type": "heading", "attrs": {"level": 99}}, {"type": "date", "attrs": {"timestamp": "x"}}])
            ),
            "######"
        );
        assert_eq!(markdown(json!([])), "");
    }
}

//! Syntax highlighting of source lines.

use maud::{Markup, PreEscaped};

use super::class::{Class, word};
use super::{escape, json, yaml};

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Language {
    Json,
    Yaml,
    Markdown,
    Plain,
}

/// The lines of a text, without line endings.
pub(in crate::pages) fn lines(language: Language, text: &str) -> impl Iterator<Item = Markup> {
    let mut painter = Painter::new(language);
    text.lines().map(move |line| {
        let mut out = String::with_capacity(line.len() * 2);
        painter.line(&mut out, line);
        PreEscaped(out)
    })
}

/// Highlights line by line, keeping the state of multi-line constructs.
#[derive(Debug)]
pub(super) struct Painter {
    language: Language,
    yaml: yaml::State,
    fence: Option<Fence>,
}

/// A fenced code block: its fence character, and the least length of the closing fence.
#[derive(Debug, Clone, Copy)]
struct Fence {
    sign: u8,
    count: usize,
}

impl Painter {
    pub(super) fn new(language: Language) -> Self {
        Self { language, yaml: yaml::State::default(), fence: None }
    }

    pub(super) fn line(&mut self, out: &mut String, line: &str) {
        match self.language {
            Language::Json => json::line(out, line),
            Language::Yaml => self.yaml.line(out, line),
            Language::Markdown => self.markdown(out, line),
            Language::Plain => escape(out, line),
        }
    }

    fn markdown(&mut self, out: &mut String, line: &str) {
        let words = line.trim_start();
        let (indent, fence) = (line.len() - words.len(), fence(words));
        if let Some(open) = self.fence {
            if fence.is_some_and(|fence| fence.sign == open.sign && fence.count >= open.count) {
                self.fence = None;
            }
            return word(out, Class::Text, line);
        }
        if fence.is_some() {
            self.fence = fence;
            return word(out, Class::Text, line);
        }
        if words.starts_with('#') && indent < 4 {
            return word(out, Class::Key, line);
        }
        if words.starts_with('>') {
            return word(out, Class::Comment, line);
        }
        let (before, words) = line.split_at(indent);
        out.push_str(before);
        let bullet = bullet(words);
        let (mark, words) = words.split_at(bullet);
        word(out, Class::Literal, mark);
        // Every second part is between backticks; after the last one, nothing is code.
        let mut parts = words.split('`').peekable();
        let mut is_code = false;
        while let Some(part) = parts.next() {
            let is_closed = parts.peek().is_some();
            if is_code && is_closed {
                word(out, Class::Text, &format!("`{part}`"));
            } else if is_code {
                out.push('`');
                escape(out, part);
            } else {
                escape(out, part);
            }
            is_code = !is_code;
        }
    }
}

fn fence(words: &str) -> Option<Fence> {
    let sign = words.bytes().next().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let count = words.bytes().take_while(|byte| *byte == sign).count();
    (count >= 3).then_some(Fence { sign, count })
}

/// The length of a list item's marker.
fn bullet(words: &str) -> usize {
    let digits = words.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match words.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if (1..10).contains(&digits) => digits + 1,
        _ => return 0,
    };
    if words.as_bytes().get(mark).is_none_or(|byte| byte.is_ascii_whitespace()) { mark } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn painted(language: Language, text: &str) -> Vec<String> {
        lines(language, text).map(PreEscaped::into_string).collect()
    }

    /// The text that a browser shows.
    fn shown(html: &str) -> String {
        let mut out = String::new();
        let mut rest = html;
        while let Some((before, after)) = rest.split_once('<') {
            out.push_str(before);
            rest = after.split_once('>').unwrap().1;
        }
        out.push_str(rest);
        out.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    }

    #[test]
    fn json_has_keys_texts_numbers_and_literals() {
        assert_eq!(
            painted(Language::Json, r#"{"a" : "b\"c", "n": -1.5e3, "x": [true, nil]}"#),
            [concat!(
                r#"{<span class="k">&quot;a&quot;</span> : <span class="t">&quot;b\&quot;c&quot;</span>, "#,
                r#"<span class="k">&quot;n&quot;</span>: <span class="n">-1.5e3</span>, "#,
                r#"<span class="k">&quot;x&quot;</span>: [<span class="l">true</span>, nil]}"#
            )]
        );
        assert_eq!(painted(Language::Json, "\"open"), [r#"<span class="t">&quot;open</span>"#]);
    }

    #[test]
    fn yaml_has_keys_values_comments_and_blocks() {
        let text = "# why\na: 1\nb: yes # no\n- c: 'x # y'\n\"k\": |\n  text: 1\n\nd: plain: x\n---\n*alias";
        assert_eq!(
            painted(Language::Yaml, text),
            [
                r#"<span class="c"># why</span>"#,
                r#"<span class="k">a</span>: <span class="n">1</span>"#,
                r#"<span class="k">b</span>: <span class="l">yes</span><span class="c"> # no</span>"#,
                r#"- <span class="k">c</span>: <span class="t">'x # y'</span>"#,
                r#"<span class="k">&quot;k&quot;</span>: <span class="l">|</span>"#,
                r#"<span class="t">  text: 1</span>"#,
                "",
                r#"<span class="k">d</span>: <span class="t">plain: x</span>"#,
                r#"<span class="l">---</span>"#,
                r#"<span class="l">*alias</span>"#,
            ]
        );
    }

    #[test]
    fn markdown_has_headings_marks_and_code() {
        let text = "# A\n- b `c` d`\n2) e\n~~~~\n```\n# f\n~~~~\n> g\n-h";
        assert_eq!(
            painted(Language::Markdown, text),
            [
                r#"<span class="k"># A</span>"#,
                r#"<span class="l">-</span> b <span class="t">`c`</span> d`"#,
                r#"<span class="l">2)</span> e"#,
                r#"<span class="t">~~~~</span>"#,
                r#"<span class="t">```</span>"#,
                r#"<span class="t"># f</span>"#,
                r#"<span class="t">~~~~</span>"#,
                r#"<span class="c">&gt; g</span>"#,
                "-h",
            ]
        );
    }

    proptest! {
        #[test]
        fn every_line_is_shown_as_it_is(text in "[ \\t\"'\\\\#:>`~|&*!<a1-9.\\-\\n{}é]{0,80}") {
            for language in [Language::Json, Language::Yaml, Language::Markdown, Language::Plain] {
                let shown: Vec<String> = painted(language, &text).iter().map(|line| shown(line)).collect();
                let lines: Vec<&str> = text.lines().collect();
                prop_assert_eq!(shown, lines);
            }
        }
    }

    #[test]
    fn long_lines_are_read_once() {
        for part in ["\"", "\\\"", "a: ", "- ", "`", "# ", "1", "'", " #", "~"] {
            let text = part.repeat(200_000);
            for language in [Language::Json, Language::Yaml, Language::Markdown] {
                assert_eq!(painted(language, &text).len(), 1);
            }
        }
    }
}

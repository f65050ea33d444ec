//! Jupyter notebooks: the cells in order, with their output.

use serde_json::Value;

use crate::markdown::Markdown;
use crate::model::{Failure, Format, Raw, Text};
use crate::{charset, prose};

/// Bytes of output; longer output is data and not text for people.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let text = charset::decode(&raw.bytes, raw.mime.as_deref(), None);
    let notebook: Value = serde_json::from_str(&text).map_err(|_| Failure::broken("a notebook"))?;
    // Version 3 had worksheets that contain the cells.
    let cells = notebook.get("cells").or_else(|| notebook.pointer("/worksheets/0/cells"));
    let cells = cells.and_then(Value::as_array).ok_or_else(|| Failure::broken("a notebook"))?;
    let language = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language = language.into_iter().find_map(|path| notebook.pointer(path)?.as_str());
    let language =
        language.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric())).unwrap_or("python");
    let mut out = Markdown::default();
    for cell in cells {
        write_cell(cell, language, &mut out);
    }
    let title = notebook.pointer("/metadata/title").and_then(Value::as_str).map(str::to_owned);
    Ok(Text { format: Format::Markdown, content: out.into_text(), title })
}

fn write_cell(cell: &Value, language: &str, out: &mut Markdown) {
    let source = cell.get("source").or_else(|| cell.get("input")).map(joined).unwrap_or_default();
    match cell.get("cell_type").and_then(Value::as_str) {
        Some("code") if !source.trim().is_empty() => out.code(language, &source),
        Some("code") => {}
        Some("heading") => {
            let level =
                cell.get("level").and_then(Value::as_u64).and_then(|level| usize::try_from(level).ok());
            out.heading(level.unwrap_or(1), &source);
        }
        _ => out.block(prose::without_hidden(&source).trim()),
    }
    for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
        let text = printed(output);
        if !text.trim().is_empty() && text.len() <= MAX_OUTPUT_BYTES {
            out.code("", &text);
        }
    }
}

/// The text output of a cell: skips images and markup, and reduces errors to their message.
fn printed(output: &Value) -> String {
    if let Some(error) = output.get("ename").and_then(Value::as_str) {
        let value = output.get("evalue").and_then(Value::as_str).unwrap_or_default();
        return format!("{error}: {value}");
    }
    let text = output.pointer("/data/text~1plain").or_else(|| output.get("text"));
    text.map(joined).unwrap_or_default()
}

/// Multi-line text is a string or a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_order_their_code_and_what_they_printed() {
        let notebook = serde_json::json!({
            "metadata": {"language_info": {"name": "julia"}},
            "cells": [
                {"cell_type": "markdown", "source": ["# Study\n", "of things"]},
                {"cell_type": "code", "source": "x = 1\nx", "outputs": [
                    {"output_type": "execute_result", "data": {"text/plain": ["1"], "image/png": "aGVsbG8="}},
                    {"output_type": "stream", "text": "y".repeat(9_000)},
                    {"output_type": "error", "ename": "BoundsError", "evalue": "no", "traceback": ["long"]}]},
                {"cell_type": "code", "source": [], "outputs": []}
            ]
        });
        let text = read(&Raw::file("a.ipynb", notebook.to_string())).unwrap();
        let expected =
            "# Study\nof things\n\n```julia\nx = 1\nx\n```\n\n```\n1\n```\n\n```\nBoundsError: no\n```\n";
        assert_eq!(text.content, expected);
        assert!(read(&Raw::file("a.ipynb", "[1]")).is_err() && read(&Raw::file("a.ipynb", "{")).is_err());
    }
}

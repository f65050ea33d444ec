use super::*;
use crate::formats::testing::archive;

const NS: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

const STYLES: &str = r#"<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>
<w:style w:styleId="MyH2"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>
<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
<w:style w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>"#;

const LISTS: &str = r#"<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="3"><w:abstractNumId w:val="0"/></w:num>"#;

fn docx(body: &str) -> Text {
    let part =
        |name: &str, content: &str| format!("<?xml version=\"1.0\"?><w:{name} {NS}>{content}</w:{name}>");
    let relations = r#"<Relationships><Relationship Id="rId9" Type="x/hyperlink" Target="https://example.com/a" TargetMode="External"/></Relationships>"#;
    let document = part("document", &format!("<w:body>{body}</w:body>"));
    let notes = r#"<w:footnote w:id="0" w:type="separator"><w:p/></w:footnote><w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote>"#;
    let (styles, numbering, notes) =
        (part("styles", STYLES), part("numbering", LISTS), part("footnotes", notes));
    let bytes = archive(&[
        ("[Content_Types].xml", "<Types/>"),
        ("word/document.xml", &document),
        ("word/_rels/document.xml.rels", relations),
        ("word/styles.xml", &styles),
        ("word/numbering.xml", &numbering),
        ("word/footnotes.xml", &notes),
        ("word/header1.xml", "<x>IGNORE</x>"),
        ("docProps/core.xml", r#"<c xmlns:dc="d"><dc:title>The plan</dc:title></c>"#),
    ]);
    read(&Raw::file("a.docx", bytes)).unwrap()
}

fn p(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn styled(style: &str, text: &str) -> String {
    p(&format!(r#"<w:pStyle w:val="{style}"/>"#), text)
}

fn item(depth: usize, text: &str) -> String {
    p(&format!(r#"<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="3"/></w:numPr>"#), text)
}

#[test]
fn structure_becomes_markdown() {
    let body = [
        styled("MyH2", "Goals"),
        p(r#"<w:outlineLvl w:val="2"/>"#, "Deeper"),
        styled("Loop", "Words"),
        [item(0, "one"), item(1, "in one"), item(0, "two")].concat(),
        [styled("Code", "let x = 1;"), styled("Code", "  x")].concat(),
        r#"<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr>
        <w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>wide|cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"#.to_owned(),
        r#"<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink r:id="rId9"><w:r><w:t>this</w:t></w:r></w:hyperlink>
        <w:r><w:footnoteReference w:id="2"/></w:r></w:p>"#.to_owned(),
    ];
    let text = docx(&body.concat());
    assert_eq!(text.title.as_deref(), Some("The plan"));
    assert_eq!(
        text.content,
        "## Goals\n\n### Deeper\n\nWords\n\n1. one\n    - in one\n2. two\n\n```\nlet x = 1;\n  x\n```\n\n\
         | a | b |\n| --- | --- |\n| wide\\|cell |  |\n\nSee [this](https://example.com/a)[^2]\n\n[^2]: A note.\n"
    );
}

#[test]
fn what_is_deleted_hidden_or_told_twice_is_left_out() {
    let run =
        |properties: &str, text: &str| format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>");
    let body = format!(
        "<w:p>{}{}<w:del>{}</w:del><w:ins>{}</w:ins>{}{}</w:p>{}<w:p><mc:AlternateContent xmlns:mc='m'><mc:Choice>\
         <w:r><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:r></mc:Choice><mc:Fallback>{}\
         </mc:Fallback></mc:AlternateContent></w:p>",
        run("", "seen"),
        run("<w:vanish/>", "IGNORE"),
        run("", "IGNORE"),
        run("", " new"),
        run("<w:vanish w:val=\"0\"/>", " shown"),
        run(r#"<w:rStyle w:val="Secret"/>"#, "IGNORE"),
        styled("Secret", "IGNORE"),
        run("", "IGNORE"),
    );
    let text = docx(&body).content;
    assert_eq!(text, "seen new shown\n\nboxed\n\n[^2]: A note.\n");
}

#[test]
fn a_document_type_is_refused() {
    let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document xmlns:w="w"><w:body>&b;</w:body></w:document>"#;
    let bytes = archive(&[("[Content_Types].xml", "<Types/>"), ("word/document.xml", bomb)]);
    assert_eq!(read(&Raw::file("a.docx", bytes)).unwrap_err().kind, crate::FailureKind::Broken);
}

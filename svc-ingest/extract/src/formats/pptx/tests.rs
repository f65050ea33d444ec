use super::*;
use crate::formats::testing::archive;

const NS: &str = r#"xmlns:p="p" xmlns:a="a" xmlns:r="r""#;

fn shape(kind: &str, paragraphs: &[&str]) -> String {
    let lines = paragraphs.iter().map(|text| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"));
    format!(
        "<p:sp><p:nvSpPr><p:cNvPr id='1'/><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>",
        lines.collect::<String>()
    )
}

fn slide(attributes: &str, shapes: &str) -> String {
    format!("<p:sld {NS} {attributes}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>")
}

/// The text of one slide with notes.
fn read_one(shapes: &str, notes: &str) -> String {
    let bytes = archive(&[
        (
            "ppt/presentation.xml",
            &format!(
                "<p:presentation {NS}><p:sldIdLst><p:sldId id='256' r:id='a'/></p:sldIdLst></p:presentation>"
            ),
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<R><Relationship Id='a' Type='t/slide' Target='slides/slide1.xml'/></R>",
        ),
        ("ppt/slides/slide1.xml", &slide("", shapes)),
        (
            "ppt/slides/_rels/slide1.xml.rels",
            "<R><Relationship Id='n' Type='t/notesSlide' Target='../notesSlides/notes1.xml'/></R>",
        ),
        ("ppt/notesSlides/notes1.xml", &slide("", notes)),
    ]);
    read(&Raw::file("a.pptx", bytes)).unwrap().content
}

#[test]
fn hidden_shapes_are_neither_titles_nor_notes_and_what_says_that_it_is_not_hidden_is_seen() {
    let with = |hidden: &str, shape: String| shape.replace("id='1'", &format!("hidden='{hidden}'"));
    let title = |text: &str| shape("<p:ph type='title'/>", &[text]);
    let group = "<p:grpSp><p:nvGrpSpPr><p:cNvPr hidden='true'/></p:nvGrpSpPr>";
    let shapes = [
        with("1", title("IGNORE")),
        format!("{group}{}{}</p:grpSp>", title("IGNORE"), shape("", &["IGNORE"])),
        with("false", title("Seen")),
        with("0", shape("", &["one"])),
        with("false", shape("", &["two"])),
        with("true", shape("", &["IGNORE"])),
    ];
    let body = |text: &str| shape("<p:ph type='body'/>", &[text]);
    let notes = [with("true", body("IGNORE")), body("Smile.")];
    assert_eq!(
        read_one(&shapes.concat(), &notes.concat()),
        "## Slide 1: Seen\n\none\n\ntwo\n\nNotes: Smile.\n"
    );
}

#[test]
fn slides_have_their_number_title_items_tables_and_notes() {
    let first = [
        shape("<p:ph type='ctrTitle'/>", &["Our", "year"]),
        shape("<p:ph idx='1'/>", &["Growth", "Costs"]),
        shape("", &["A remark"]),
        shape("<p:ph type='sldNum'/>", &["7"]),
        "<p:grpSp><p:sp><p:nvSpPr><p:cNvPr hidden='1'/></p:nvSpPr><p:txBody><a:p><a:r><a:t>IGNORE</a:t></a:r></a:p></p:txBody></p:sp></p:grpSp>".to_owned(),
        "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>k</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>v</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame>".to_owned(),
        "<p:sp><p:txBody><a:p><a:r><a:rPr><a:hlinkClick r:id='rId2'/></a:rPr><a:t>site</a:t></a:r></a:p></p:txBody></p:sp>".to_owned(),
    ];
    let bytes = archive(&[
        ("[Content_Types].xml", "<Types/>"),
        (
            "ppt/presentation.xml",
            &format!(
                "<p:presentation {NS}><p:sldIdLst><p:sldId id='256' r:id='b'/><p:sldId id='257' r:id='a'/><p:sldId id='258' r:id='c'/></p:sldIdLst></p:presentation>"
            ),
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<R><Relationship Id='a' Type='t/slide' Target='slides/slide1.xml'/><Relationship Id='b' Type='t/slide' Target='/ppt/slides/slide2.xml'/>\
             <Relationship Id='c' Type='t/slide' Target='slides/slide3.xml'/></R>",
        ),
        ("ppt/slides/slide2.xml", &slide("", &first.concat())),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            "<R><Relationship Id='rId1' Type='t/notesSlide' Target='../notesSlides/notes1.xml'/>\
             <Relationship Id='rId2' Type='t/hyperlink' Target='https://example.com/' TargetMode='External'/></R>",
        ),
        ("ppt/notesSlides/notes1.xml", &slide("", &shape("<p:ph type='body'/>", &["Say hello."]))),
        ("ppt/slides/slide1.xml", &slide("show='0'", &shape("", &["IGNORE"]))),
        ("ppt/slides/slide3.xml", &slide("", &shape("", &["The end"]))),
    ]);
    let text = read(&Raw::file("a.pptx", bytes)).unwrap();
    assert_eq!(
        text.content,
        "## Slide 1: Our year\n\n- Growth\n- Costs\n\nA remark\n\n| k | v |\n| --- | --- |\n\n[site](https://example.com/)\n\n\
         Notes: Say hello.\n\n## Slide 3\n\nThe end\n"
    );
}

use super::*;
use crate::formats::testing::archive;

fn odf(kind: &str, styles: &str, body: &str) -> Result<Text, Failure> {
    odf_with("", kind, styles, body)
}

/// A file that has styles for all of its parts, too.
fn odf_with(shared: &str, kind: &str, styles: &str, body: &str) -> Result<Text, Failure> {
    let content = format!(
        "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:table='b' xmlns:draw='d' xmlns:style='s' \
         xmlns:presentation='p' xmlns:xlink='x'><office:automatic-styles>{styles}</office:automatic-styles>\
         <office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    let meta = "<m xmlns:dc='dc'><dc:title>The letter</dc:title></m>";
    let shared = format!("<d xmlns:office='o' xmlns:style='s' xmlns:text='t'>{shared}</d>");
    read(&Raw::file(
        "a.odt",
        archive(&[("content.xml", &content), ("meta.xml", meta), ("styles.xml", &shared)]),
    ))
}

#[test]
fn a_text_document_keeps_its_structure_and_nothing_hidden() {
    let styles = "<style:style style:name='P9'><style:text-properties text:display='none'/></style:style>\
                  <style:style style:name='C1' style:parent-style-name='Preformatted_20_Text'/>";
    let body = "<text:tracked-changes><text:p>IGNORE</text:p></text:tracked-changes>\
        <text:h text:outline-level='2'>Part</text:h><text:p>One<text:s text:c='2'/><text:span>two</text:span><text:tab/>\
        <text:a xlink:href='https://example.com/'>three</text:a><office:annotation><text:p>IGNORE</text:p></office:annotation>\
        <text:note text:note-class='footnote'><text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p></text:note-body></text:note></text:p>\
        <text:p text:style-name='P9'>IGNORE</text:p><text:p><text:span text:style-name='P9'>IGNORE</text:span></text:p>\
        <text:list><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list></text:list-item></text:list>\
        <table:table><table:table-row><table:table-cell><text:p>k</text:p></table:table-cell><table:table-cell><text:p>v</text:p></table:table-cell>\
        <table:table-cell table:number-columns-repeated='16000'/></table:table-row></table:table>\
        <text:p text:style-name='C1'>x = 1</text:p><text:p text:style-name='C1'><text:s/>y</text:p>\
        <text:p><draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame></text:p>";
    let text = odf("text", styles, body).unwrap();
    assert_eq!(text.title.as_deref(), Some("The letter"));
    assert_eq!(
        text.content,
        "## Part\n\nOne  two\t[three](https://example.com/)[^1]\n\n[^1]: A note\n\n- a\n    - b\n\n| k | v |  |\n| --- | --- | --- |\n\n\
         ```\nx = 1\n y\n```\n\nboxed\n"
    );
}

#[test]
fn styles_of_the_whole_file_hide_and_so_do_those_that_are_based_on_them() {
    let hides = |name: &str, family: &str| {
        format!(
            "<style:style style:name='{name}' style:family='{family}'><style:text-properties text:display='none'/></style:style>"
        )
    };
    let shared = format!(
        "<office:styles>{}{}</office:styles><office:automatic-styles>{}</office:automatic-styles>",
        hides("Secret", "text"),
        hides("Note", "paragraph"),
        hides("P1", "paragraph"),
    );
    let styles = "<style:style style:name='T1' style:family='text' style:parent-style-name='Secret'/>\
        <style:style style:name='P2' style:family='paragraph' style:parent-style-name='Note'/>\
        <style:style style:name='P3' style:family='paragraph' style:parent-style-name='P2'>\
        <style:text-properties text:display='true'/></style:style>\
        <style:style style:name='A' style:parent-style-name='B'/><style:style style:name='B' style:parent-style-name='A'/>";
    let body = "<text:p>a<text:span text:style-name='Secret'>IGNORE</text:span>\
        <text:span text:style-name='T1'>IGNORE</text:span></text:p><text:p text:style-name='Note'>IGNORE</text:p>\
        <text:p text:style-name='P2'>IGNORE</text:p><text:p text:style-name='P3'>b</text:p>\
        <text:p text:style-name='P1'>c</text:p><text:p text:style-name='Secret'>d</text:p><text:p text:style-name='A'>e</text:p>";
    let text = odf_with(&shared, "text", styles, body).unwrap();
    assert_eq!(text.content, "a\n\nb\n\nc\n\nd\n\ne\n", "a style of headers, and one of pieces, say nothing");
}

#[test]
fn a_field_hides_the_paragraph_that_it_is_in_while_its_condition_holds() {
    let body = "<text:p>IGNORE<text:span><text:hidden-paragraph text:is-hidden='true'/></text:span></text:p>\
        <text:p>IGNORE<text:hidden-paragraph text:condition='ooow:1'/></text:p>\
        <text:p>a<text:hidden-paragraph text:is-hidden='false'/></text:p>\
        <text:p>b<text:hidden-text text:is-hidden='true'>IGNORE</text:hidden-text>\
        <text:hidden-text text:is-hidden='false'>c</text:hidden-text></text:p>\
        <text:section text:display='condition' text:is-hidden='true'><text:p>IGNORE</text:p></text:section>\
        <text:section text:display='condition' text:is-hidden='false'><text:p>d</text:p></text:section>\
        <text:list><text:list-item><text:p>IGNORE<text:hidden-paragraph/></text:p></text:list-item></text:list>\
        <text:p>e<draw:frame><draw:text-box><text:p>IGNORE<text:hidden-paragraph/></text:p></draw:text-box></draw:frame></text:p>";
    assert_eq!(odf("text", "", body).unwrap().content, "a\n\nbc\n\nd\n\ne\n");
}

#[test]
fn lists_that_are_counted_have_numbers() {
    let styles = "<text:list-style style:name='L1'><text:list-level-style-number text:level='1' style:num-format='1'/>\
                  <text:list-level-style-bullet text:level='2'/></text:list-style>";
    let body = "<text:list text:style-name='L1'><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p>\
                </text:list-item></text:list></text:list-item><text:list-item><text:p>c</text:p></text:list-item></text:list>";
    assert_eq!(odf("text", styles, body).unwrap().content, "1. a\n    - b\n2. c\n");
}

#[test]
fn slides_have_their_number_and_notes() {
    let body = "<draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame>\
        <draw:frame presentation:class='outline'><draw:text-box><text:list><text:list-item><text:p>one</text:p></text:list-item></text:list></draw:text-box></draw:frame>\
        <presentation:notes><draw:frame><draw:text-box><text:p>Smile</text:p></draw:text-box></draw:frame></presentation:notes></draw:page><draw:page/>";
    let text = odf("presentation", "", body).unwrap();
    assert_eq!(text.content, "## Slide 1: Hello\n\n- one\n\nNotes: Smile\n\n## Slide 2\n");
}

#[test]
fn an_encrypted_file_asks_for_its_password() {
    let manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>";
    let bytes = archive(&[("content.xml", "garbage"), ("META-INF/manifest.xml", manifest)]);
    let failed = read(&Raw::file("a.odt", bytes)).unwrap_err();
    assert!(failed.kind == crate::FailureKind::Encrypted && failed.message.contains("password"));
}

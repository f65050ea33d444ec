use super::*;
use crate::formats::testing::archive;

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const R: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn xlsx(sheet: &str) -> Result<Text, Failure> {
    let book = format!(
        "<workbook xmlns='{MAIN}' xmlns:r='{R}'><sheets><sheet name='Costs &amp; more' sheetId='1' r:id='rId1'/>\
         <sheet name='Secret' sheetId='2' state='hidden' r:id='rId1'/></sheets></workbook>"
    );
    let bytes = archive(&[
        ("[Content_Types].xml", "<Types/>"),
        (
            "_rels/.rels",
            &format!(
                "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='a' Type='{R}/officeDocument' Target='xl/workbook.xml'/></Relationships>"
            ),
        ),
        ("xl/workbook.xml", &book),
        (
            "xl/_rels/workbook.xml.rels",
            &format!(
                "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='rId1' Type='{R}/worksheet' Target='worksheets/sheet1.xml'/></Relationships>"
            ),
        ),
        (
            "xl/styles.xml",
            &format!(
                "<styleSheet xmlns='{MAIN}'><cellXfs><xf numFmtId='0'/><xf numFmtId='14'/></cellXfs></styleSheet>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            &format!("<worksheet xmlns='{MAIN}'><sheetData>{sheet}</sheetData></worksheet>"),
        ),
    ]);
    read(&Raw::file("a.xlsx", bytes))
}

fn inline(place: &str, text: &str) -> String {
    format!("<c r='{place}' t='inlineStr'><is><t>{text}</t></is></c>")
}

#[test]
fn a_sheet_is_a_table_under_its_name() {
    let rows = format!(
        "<row r='2'>{}{}{}</row><row r='4'>{}<c r='D4'><v>1.5</v></c><c r='E4' s='1'><v>45000</v></c></row>",
        inline("B2", "What"),
        inline("D2", "Price"),
        inline("E2", "When"),
        inline("B4", "a|b"),
    );
    let text = xlsx(&rows).unwrap();
    let expected =
        "## Costs & more\n\n| What | Price | When |\n| --- | --- | --- |\n| a\\|b | 1.5 | 2023-03-15 |\n";
    assert_eq!(text.content, expected);
}

#[test]
fn a_cell_in_the_last_corner_costs_no_more_than_another() {
    let rows = format!(
        "<row r='1'>{}</row><row r='1048576'>{}</row>",
        inline("A1", "first"),
        inline("XFD1048576", "last")
    );
    assert!(xlsx(&rows).unwrap().content.contains("|  | last |"));
}

#[test]
fn sheets_of_opendocument_are_read() {
    let content = "<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' \
        xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0' xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0'>\
        <office:body><office:spreadsheet><table:table table:name='Plan'><table:table-row>\
        <table:table-cell office:value-type='string'><text:p>Name</text:p></table:table-cell>\
        <table:table-cell office:value-type='float' office:value='2'><text:p>2</text:p></table:table-cell>\
        <table:table-cell table:number-columns-repeated='16000'/></table:table-row>\
        <table:table-row table:number-rows-repeated='1048000'><table:table-cell table:number-columns-repeated='16002'/></table:table-row>\
        </table:table></office:spreadsheet></office:body></office:document-content>";
    let manifest = "<manifest:manifest xmlns:manifest='urn:oasis:names:tc:opendocument:xmlns:manifest:1.0'/>";
    let bytes = archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", content),
    ]);
    let raw = Raw::file("a.ods", bytes);
    assert_eq!(crate::Kind::of(&raw), Ok(crate::Kind::Sheets));
    assert_eq!(read(&raw).unwrap().content, "## Plan\n\n| Name | 2 |\n| --- | --- |\n");
}

//! Excel and OpenDocument spreadsheets: each sheet becomes a table with its name as heading. Hidden sheets are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use calamine::{Data, DataRef, ExcelDateTime, Ods, Reader, SheetVisible, Xls, Xlsb, Xlsx};

use crate::formats::archive::Archive;
use crate::markdown::Markdown;
use crate::model::{Failure, FailureKind, Format, Raw, Text};

const MAX_CELLS: usize = 2_000_000;

type Source<'a> = Cursor<&'a [u8]>;

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let source = Cursor::new(raw.bytes.as_ref());
    let mut out = Markdown::default();
    if raw.bytes.starts_with(b"PK") {
        let mut archive = Archive::open(&raw.bytes)?;
        if archive.bytes("content.xml")?.is_some() {
            write_ranges(Ods::new(source).map_err(failed)?, &mut out)?;
        } else if archive.bytes("xl/workbook.bin")?.is_some() {
            write_ranges(Xlsb::new(source).map_err(failed)?, &mut out)?;
        } else {
            write_streamed(Xlsx::new(source).map_err(failed)?, &mut out)?;
        }
    } else {
        write_ranges(Xls::new(source).map_err(failed)?, &mut out)?;
    }
    Ok(Text { format: Format::Markdown, content: out.into_text(), title: None })
}

/// Nonempty cells, by row and column.
#[derive(Debug, Default)]
struct Cells {
    rows: BTreeMap<u32, BTreeMap<u32, String>>,
    count: usize,
}

impl Cells {
    fn put(&mut self, row: u32, column: u32, text: String) -> Result<(), Failure> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.count += 1;
        if self.count > MAX_CELLS {
            return Err(Failure::new(
                FailureKind::TooLarge,
                "A sheet has over two million cells, which is more than is read.",
            ));
        }
        self.rows.entry(row).or_default().insert(column, text);
        Ok(())
    }

    /// Writes the nonempty rows and columns.
    fn write(mut self, name: &str, out: &mut Markdown) {
        if self.rows.is_empty() {
            return;
        }
        out.heading(2, name);
        let columns: BTreeSet<u32> = self.rows.values().flat_map(BTreeMap::keys).copied().collect();
        let row = |cells: &mut BTreeMap<u32, String>| {
            columns.iter().map(|column| cells.remove(column).unwrap_or_default()).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = self.rows.values_mut().map(row).collect();
        out.table(&rows);
    }
}

/// Reads the cells of a workbook sparsely: a cell in the last row of a sheet costs no more than any other.
fn write_streamed(mut book: Xlsx<Source<'_>>, out: &mut Markdown) -> Result<(), Failure> {
    for name in visible(&book) {
        let mut cells = Cells::default();
        // Chart sheets have no cells.
        let Ok(mut reader) = book.worksheet_cells_reader(&name) else { continue };
        while let Some(cell) = reader.next_cell().map_err(failed)? {
            let (row, column) = cell.get_position();
            cells.put(row, column, shown_ref(cell.get_value()))?;
        }
        drop(reader);
        cells.write(&name, out);
    }
    Ok(())
}

fn write_ranges<'a, R>(mut book: R, out: &mut Markdown) -> Result<(), Failure>
where
    R: Reader<Source<'a>, Error: std::fmt::Display>,
{
    for name in visible(&book) {
        let range = book.worksheet_range(&name).map_err(failed)?;
        let (top, left) = range.start().unwrap_or_default();
        let mut cells = Cells::default();
        for (row, column, value) in range.used_cells() {
            let place =
                |start: u32, index: usize| start.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
            cells.put(place(top, row), place(left, column), shown(value))?;
        }
        cells.write(&name, out);
    }
    Ok(())
}

fn visible<'a>(book: &impl Reader<Source<'a>>) -> Vec<String> {
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.visible == SheetVisible::Visible);
    sheets.map(|sheet| sheet.name.clone()).collect()
}

fn shown(value: &Data) -> String {
    if let Data::DateTime(date) = value { shown_date(date) } else { value.to_string() }
}

fn shown_ref(value: &DataRef<'_>) -> String {
    shown(&Data::from(value.clone()))
}

fn shown_date(date: &ExcelDateTime) -> String {
    if date.is_duration() {
        return date.to_string();
    }
    let (year, month, day, hour, minute, second, _) = date.to_ymd_hms_milli();
    match (hour, minute, second) {
        (0, 0, 0) => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    if error.to_string().contains("password") {
        Failure::encrypted()
    } else {
        Failure::broken("a spreadsheet")
    }
}

#[cfg(test)]
mod tests;

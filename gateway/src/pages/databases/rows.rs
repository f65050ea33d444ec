//! The grid: sortable columns, rows that open beside it, and editable cells.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{Permission, PropertyType};
use maud::{Markup, html};

use super::address;
use super::model::{as_text, kind_of, title_of, value_of};
use super::names::Names;
use super::values::{Control, Room, as_typed, render_value};
use super::view_state::{Order, PAGE, ViewState};
use crate::answers::{Database, Property, Record, RecordPage};
use crate::pages::visitor::Visitor;
use crate::pages::words;

/// A cell being edited.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) record: &'a str,
    pub(super) field: &'a str,
    /// The rejected input.
    pub(super) typed: Option<Vec<String>>,
    pub(super) problem: Option<&'a Problem>,
    /// Whether the record has changed concurrently since the form was rendered.
    pub(super) is_outrun: bool,
}

/// The data of the grid.
#[derive(Debug)]
pub(super) struct Grid<'a> {
    pub(super) visitor: &'a Visitor,
    pub(super) database: &'a Database,
    pub(super) view_state: &'a ViewState,
    pub(super) page: &'a RecordPage,
    pub(super) names: &'a Names,
    pub(super) cell: Option<Cell<'a>>,
}

/// The visible properties of a view, the title first.
pub(super) fn columns<'a>(database: &'a Database, view_state: &ViewState) -> Vec<&'a Property> {
    let hidden =
        view_state.view_of(database).map(|view| view.hidden_field_ids.as_slice()).unwrap_or_default();
    let titles = database.properties.iter().filter(|property| property.is_primary);
    let others = database.properties.iter().filter(|property| !property.is_primary);
    titles.chain(others.filter(|property| !hidden.contains(&property.id))).collect()
}

/// Numbers are right-aligned.
fn is_number(property: &Property) -> bool {
    kind_of(property) == PropertyType::Number
}

impl Grid<'_> {
    pub(super) fn table(&self) -> Markup {
        let columns = columns(self.database, self.view_state);
        let orders = self.view_state.orders_of(self.database);
        let may_select = self.visitor.may(Permission::Delete);
        html! {
            div.frame.grid role="region" tabindex="0" aria-label="Records" {
                table data-grid[self.visitor.may(Permission::Write)] {
                    caption.sr { "Records of " bdi { (self.database.name) } }
                    thead {
                        tr {
                            @if may_select { td {} }
                            @for property in &columns { (self.head(property, &orders)) }
                        }
                    }
                    tbody { @for record in &self.page.records { (self.row(record, &columns, may_select)) } }
                }
            }
            @if may_select { (self.many()) }
            (self.pages())
        }
    }

    fn head(&self, property: &Property, orders: &[Order]) -> Markup {
        // Only the primary sort is marked at its column; the others break ties.
        let order = orders.first().filter(|order| order.field == property.id);
        let sort = order.map(|order| if order.is_descending { "descending" } else { "ascending" });
        html! {
            th.number[is_number(property)] scope="col" data-id=(property.id) data-field=(property.position) aria-sort=[sort] {
                a href=(self.view_state.sorted_by(&property.id).address(&self.database.id)) {
                    bdi { (property.name) }
                    @if let Some(order) = order { span aria-hidden="true" { (if order.is_descending { " ↓" } else { " ↑" }) } }
                }
            }
        }
    }

    fn row(&self, record: &Record, columns: &[&Property], may_select: bool) -> Markup {
        let is_open = self.view_state.record.as_deref() == Some(record.id.as_str());
        let open = ViewState { page: Some(self.number()), ..self.view_state.beside(&record.id) };
        html! {
            tr data-record=(record.id) {
                @if may_select {
                    td { input type="checkbox" name="item" value=(record.id) form="many" aria-label={ "Select " (title_of(record)) }; }
                }
                @for property in columns {
                    @let form = self.form(record, property);
                    @if property.is_primary {
                        th scope="row" data-field=(property.position) {
                            @if let Some(form) = form { (form) } @else {
                                a id={ "r-" (record.id) } href=(open.address(&self.database.id)) aria-current=[is_open.then_some("true")] { bdi { (title_of(record)) } }
                            }
                        }
                    } @else {
                        td.number[is_number(property)] data-field=(property.position) {
                            @if let Some(form) = form { (form) } @else { (render_value(property, value_of(record, property), self.names, Room::Cell)) }
                        }
                    }
                }
            }
        }
    }

    /// The form of the cell being edited.
    fn form(&self, record: &Record, property: &Property) -> Option<Markup> {
        let cell = self.cell.as_ref().filter(|cell| cell.record == record.id && cell.field == property.id)?;
        let typed = cell.typed.clone().unwrap_or_else(|| as_typed(property, value_of(record, property)));
        let control = Control { property, typed: &typed, problem: cell.problem, choices: None };
        let back = ViewState { cell: None, ..self.view_state.clone() };
        // The same cell in the response.
        let place = format!("[data-record=\"{}\"] > [data-field=\"{}\"]", record.id, property.position);
        Some(html! {
            form.cell method="post" action={ (address(&self.database.id)) "/records/" (record.id) } data-swap=(place) {
                input type="hidden" name="cell" value=(property.id);
                input type="hidden" name="version" value=(record.version);
                input type="hidden" name="back" value=(back.query());
                (control.alone())
                @if cell.is_outrun {
                    span.said role="alert" { "Meanwhile somebody wrote “" bdi { (as_text(value_of(record, property))) } "”." }
                }
                div.buttons {
                    button.primary type="submit" { (if cell.is_outrun { "Keep mine" } else { "Save" }) }
                    a.button href=(back.address(&self.database.id)) data-swap=(place) { (if cell.is_outrun { "Keep theirs" } else { "Cancel" }) }
                }
            }
        })
    }

    /// The bulk actions on selected rows.
    fn many(&self) -> Markup {
        html! {
            form #many .many method="post" action={ (address(&self.database.id)) "/records/many" } aria-label="With those that are selected" {
                input type="hidden" name="back" value=(self.view_state.grid().query());
                button type="submit" name="do" value="trash" data-key="#" { "Move selected to trash" }
            }
        }
    }

    /// The page number, from 1.
    fn number(&self) -> u64 {
        self.page.offset / u64::from(PAGE) + 1
    }

    fn pages(&self) -> Markup {
        let (number, shown) = (self.number(), self.page.records.len() as u64);
        let last = self.page.offset + shown;
        let at = |page: u64| self.view_state.on_page(page).address(&self.database.id);
        html! {
            @if self.page.offset > 0 || last < self.page.total {
                nav.pages aria-label="Pages" {
                    @if self.page.offset > 0 { a.button rel="prev" href=(at(number - 1)) { "Previous" } }
                    span {
                        @if shown > 0 { (words::grouped(self.page.offset + 1)) "–" (words::grouped(last)) " of " }
                        (words::grouped(self.page.total))
                    }
                    @if shown > 0 && last < self.page.total { a.button rel="next" href=(at(number + 1)) { "Next" } }
                }
            }
        }
    }
}

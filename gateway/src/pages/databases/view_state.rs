//! The view state of a database page. All of it is in the URL, so that Back, reload and bookmarks work.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{DateUnit, PropertyType, SortOrder};
use form_urlencoded::{Serializer, parse};
use serde_json::{Value, json};

use super::address;
use super::model::kind_of;
use crate::answers::{Database, Property, View};
use crate::operations::records::Selection;

/// Page size of the grid.
pub(super) const PAGE: u32 = 50;

/// A condition of the filter bar, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) field: String,
    pub(super) operator: String,
    pub(super) value: String,
}

/// A sort by a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) field: String,
    pub(super) is_descending: bool,
}

/// The grouping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) field: String,
    /// For dates.
    pub(super) unit: Option<DateUnit>,
}

/// The tab of the record beside the grid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Side {
    #[default]
    Fields,
    Versions,
    Backlinks,
}

impl Side {
    pub(super) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Fields, "", "Fields"),
        (Self::Versions, "versions", "Versions"),
        (Self::Backlinks, "backlinks", "Backlinks"),
    ];

    fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, known, _)| *known == name).map_or(Self::Fields, |(side, ..)| side)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(side, ..)| *side == self).map_or("", |(_, name, _)| name)
    }
}

/// The pseudo-id of a new record.
pub(super) const NEW: &str = "new";

/// The view state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ViewState {
    /// The id of a view; absent: the default one.
    pub(super) view: Option<String>,
    pub(super) search: String,
    pub(super) filters: Vec<Condition>,
    /// Absent: those of the view.
    pub(super) orders: Vec<Order>,
    pub(super) group: Option<Group>,
    /// From 1; absent: the page with the record, or the first.
    pub(super) page: Option<u64>,
    /// The id of the record beside the grid, or [`NEW`].
    pub(super) record: Option<String>,
    pub(super) side: Side,
    /// The record and the property of the cell being edited.
    pub(super) cell: Option<(String, String)>,
    /// The id of the token to view the page as.
    pub(super) seen_as: Option<String>,
}

impl ViewState {
    /// Parses a query leniently: unknown parameters are ignored, and the last of repeated ones wins.
    pub(super) fn read(query: &str) -> Self {
        let mut view_state = Self::default();
        let mut added = Condition::default();
        for (name, value) in parse(query.as_bytes()) {
            let given = || Some(value.trim()).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
            match &*name {
                "view" => view_state.view = given(),
                "q" => view_state.search = value.trim().to_owned(),
                "filter" => view_state.filters.extend(condition(&value)),
                // The filter bar's fields of a condition to add.
                "field" => value.trim().clone_into(&mut added.field),
                "operator" => value.trim().clone_into(&mut added.operator),
                "value" => value.trim().clone_into(&mut added.value),
                "sort" => view_state.orders.extend(order(&value)),
                "group" => view_state.group = group(value.trim()),
                "page" => view_state.page = value.parse().ok().filter(|page| *page > 0),
                "record" => view_state.record = given(),
                "as" => view_state.seen_as = given(),
                "show" => view_state.side = Side::of(&value),
                "cell" => {
                    let parts = value.split_once(':');
                    view_state.cell = parts.map(|(record, field)| (record.to_owned(), field.to_owned()));
                }
                _ => {}
            }
        }
        if !added.field.is_empty() && !added.operator.is_empty() {
            view_state.filters.push(added);
        }
        view_state
    }

    /// The query string.
    pub(super) fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        };
        add("view", self.view.as_deref().unwrap_or_default());
        add("q", &self.search);
        for Condition { field, operator, value } in &self.filters {
            add("filter", &format!("{field}:{operator}:{value}"));
        }
        for order in &self.orders {
            add("sort", &format!("{}{}", order.field, if order.is_descending { ":desc" } else { "" }));
        }
        if let Some(Group { field, unit }) = &self.group {
            let unit = unit.map(|unit| format!(":{unit}")).unwrap_or_default();
            add("group", &format!("{field}{unit}"));
        }
        if let Some(page) = self.page.filter(|page| *page > 1 || self.record.is_some()) {
            add("page", &page.to_string());
        }
        add("record", self.record.as_deref().unwrap_or_default());
        add("show", self.side.name());
        if let Some((record, field)) = &self.cell {
            add("cell", &format!("{record}:{field}"));
        }
        add("as", self.seen_as.as_deref().unwrap_or_default());
        query.finish()
    }

    /// The URL.
    pub(super) fn address(&self, database: &str) -> String {
        let query = self.query();
        if query.is_empty() { address(database) } else { format!("{}?{query}", address(database)) }
    }

    /// Without the record.
    pub(super) fn grid(&self) -> Self {
        Self { record: None, side: Side::Fields, cell: None, ..self.clone() }
    }

    /// From the first page, after a change of the filters.
    pub(super) fn anew(&self) -> Self {
        Self { page: None, ..self.grid() }
    }

    /// Another view, with everything else reset.
    pub(super) fn in_view(&self, view: &View) -> Self {
        let view = (!view.is_default).then(|| view.id.clone());
        Self { view, seen_as: self.seen_as.clone(), ..Self::default() }
    }

    /// The same view, with everything else reset.
    pub(super) fn whole_view(&self) -> Self {
        Self { view: self.view.clone(), seen_as: self.seen_as.clone(), ..Self::default() }
    }

    pub(super) fn beside(&self, record: &str) -> Self {
        Self { record: Some(record.to_owned()), ..self.grid() }
    }

    pub(super) fn at_side(&self, side: Side) -> Self {
        Self { side, cell: None, ..self.clone() }
    }

    pub(super) fn on_page(&self, page: u64) -> Self {
        Self { page: Some(page), ..self.grid() }
    }

    pub(super) fn without_filter(&self, place: usize) -> Self {
        let mut view_state = self.anew();
        if place < view_state.filters.len() {
            view_state.filters.remove(place);
        }
        view_state
    }

    /// With additional conditions.
    pub(super) fn only(&self, conditions: Vec<Condition>) -> Self {
        let mut view_state = Self { group: None, ..self.anew() };
        view_state.filters.extend(conditions);
        view_state
    }

    /// Cycles the sort by a property: ascending, descending, the view's.
    pub(super) fn sorted_by(&self, field: &str) -> Self {
        let orders = match self.orders.as_slice() {
            [only] if only.field == field && only.is_descending => Vec::new(),
            [only] if only.field == field => vec![Order { is_descending: true, ..only.clone() }],
            _ => vec![Order { field: field.to_owned(), is_descending: false }],
        };
        Self { orders, ..self.anew() }
    }

    /// The current view; the default one if the URL names none that exists.
    pub(super) fn view_of<'a>(&self, database: &'a Database) -> Option<&'a View> {
        let named = self.view.as_ref().and_then(|id| database.views.iter().find(|view| view.id == *id));
        named
            .or_else(|| database.views.iter().find(|view| view.is_default))
            .or_else(|| database.views.first())
    }

    /// The effective sorts, of the URL or the view.
    pub(super) fn orders_of(&self, database: &Database) -> Vec<Order> {
        if !self.orders.is_empty() {
            return self.orders.clone();
        }
        let sorts = self.view_of(database).map(|view| view.sorts.as_slice()).unwrap_or_default();
        let orders = sorts.iter().map(|sort| Order {
            field: sort.field_id.clone(),
            is_descending: sort.direction == SortOrder::Desc,
        });
        orders.collect()
    }

    /// The selection of records.
    pub(super) fn selection(&self, database: &Database) -> Selection {
        let filters: Vec<Value> =
            self.filters.iter().map(|condition| condition.as_json(&database.properties)).collect();
        Selection {
            search: Some(self.search.clone()).filter(|search| !search.is_empty()),
            sorts: (!self.orders.is_empty()).then(|| Value::Array(sorts_as_json(&self.orders)).to_string()),
            filter: (!filters.is_empty()).then(|| json!({"and": filters})),
            view_id: self.view_of(database).map(|view| view.id.clone()),
            limit: Some(PAGE),
            offset: self.page.map(|page| (page - 1).saturating_mul(u64::from(PAGE))),
            ..Selection::default()
        }
    }

    /// Maps violations to the names in the filter bar.
    pub(super) fn named(&self, mut problem: Problem, database: &Database) -> Problem {
        for violation in &mut problem.violations {
            let Some((list, rest)) = violation.path.split_once('[') else { continue };
            if list != "filter.and" {
                continue;
            }
            let place = rest.split_once(']').and_then(|(place, _)| place.parse::<usize>().ok());
            let condition = place.and_then(|place| self.filters.get(place));
            let property = condition.and_then(|condition| property(&database.properties, &condition.field));
            let message = match property {
                Some(property) => format!("on {} {}", property.name, violation.message),
                None => format!("names no field of this database: {}", violation.message),
            };
            *violation = Violation::new("filter", violation.code.clone(), message);
        }
        problem
    }
}

impl Condition {
    /// As the API's input. The typed value is a text, which the service parses by the type of the property.
    pub(super) fn as_json(&self, properties: &[Property]) -> Value {
        let kind = property(properties, &self.field).map(kind_of);
        let typed = self.value.as_str();
        let value: Value = match (self.operator.as_str(), kind) {
            ("is_empty" | "is_not_empty", _) => {
                return json!({"fieldId": self.field, "operator": self.operator});
            }
            ("in", _) => typed.split(',').map(str::trim).filter(|one| !one.is_empty()).collect(),
            (_, Some(PropertyType::Boolean)) => match typed.to_ascii_lowercase().as_str() {
                "yes" => json!("true"),
                "no" => json!("false"),
                other => json!(other),
            },
            _ => json!(typed),
        };
        json!({"fieldId": self.field, "operator": self.operator, "value": value})
    }
}

/// Sorts as the API's input.
pub(super) fn sorts_as_json(orders: &[Order]) -> Vec<Value> {
    let order = |order: &Order| json!({"fieldId": order.field, "direction": if order.is_descending { "desc" } else { "asc" }});
    orders.iter().map(order).collect()
}

/// The property with that id.
pub(super) fn property<'a>(properties: &'a [Property], id: &str) -> Option<&'a Property> {
    properties.iter().find(|property| property.id == id)
}

/// `field:operator:value`; the value may contain colons.
fn condition(text: &str) -> Option<Condition> {
    let mut parts = text.splitn(3, ':');
    let (field, operator) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    Some(Condition { field, operator, value: parts.next().unwrap_or_default().to_owned() })
}

/// `field`, or `field:desc`.
fn order(text: &str) -> Option<Order> {
    let (field, direction) = text.split_once(':').unwrap_or((text, "asc"));
    let is_order = !field.is_empty() && matches!(direction, "asc" | "desc");
    is_order.then(|| Order { field: field.to_owned(), is_descending: direction == "desc" })
}

/// `field`, or `field:month`.
fn group(text: &str) -> Option<Group> {
    let (field, unit) = text.split_once(':').unwrap_or((text, ""));
    (!field.is_empty()).then(|| Group { field: field.to_owned(), unit: unit.parse().ok() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_that_is_looked_at_stands_in_the_address() {
        let query = "view=v&q=a+b&filter=f%3Aequals%3Ax%3Ay%26z&filter=g%3Ais_empty%3A&sort=f&sort=g%3Adesc\
            &group=h%3Amonth&page=3&record=r&show=versions&as=t";
        let view_state = ViewState::read(query);
        let text = Condition { field: "f".into(), operator: "equals".into(), value: "x:y&z".into() };
        assert_eq!((view_state.filters[0].clone(), view_state.filters.len()), (text, 2));
        assert_eq!(
            (view_state.page, view_state.side, view_state.search.as_str()),
            (Some(3), Side::Versions, "a b")
        );
        assert!(view_state.orders[1].is_descending && !view_state.orders[0].is_descending);
        assert_eq!(view_state.group, Some(Group { field: "h".into(), unit: Some(DateUnit::Month) }));
        assert_eq!(view_state.query(), query);
        assert_eq!(view_state.only(vec![Condition::default()]).group, None);
        assert_eq!(view_state.address("d"), format!("/databases/d?{query}"));
        assert_eq!(ViewState::default().address("d"), "/databases/d");
    }

    #[test]
    fn the_bar_adds_one_condition() {
        let view_state = ViewState::read("filter=f%3Aequals%3A1&field=g&operator=contains&value=+a+");
        assert_eq!(view_state.filters.len(), 2);
        assert_eq!(
            view_state.filters[1],
            Condition { field: "g".into(), operator: "contains".into(), value: "a".into() }
        );
        assert_eq!(view_state.without_filter(0).filters, view_state.filters[1..]);
        assert_eq!(view_state.without_filter(9).filters, view_state.filters);
        // The bar when nothing is selected in it.
        assert!(ViewState::read("q=&field=&operator=equals&value=").filters.is_empty());
    }

    #[test]
    fn a_column_is_sorted_up_then_down_then_not() {
        let up = ViewState::read("page=4&record=r").sorted_by("f");
        assert_eq!(up.query(), "sort=f");
        assert_eq!(up.sorted_by("f").query(), "sort=f%3Adesc");
        assert_eq!(up.sorted_by("f").sorted_by("f").query(), "");
        assert_eq!(up.sorted_by("g").query(), "sort=g");
    }

    #[test]
    fn values_are_texts_lists_and_truths() {
        let of = |operator: &str, value: &str| {
            let condition = Condition { field: "f".into(), operator: operator.into(), value: value.into() };
            condition.as_json(&[Property {
                id: "f".into(),
                r#type: PropertyType::Boolean.number(),
                ..Property::default()
            }])
        };
        assert_eq!(of("in", "a, b,,")["value"], json!(["a", "b"]));
        assert_eq!(of("equals", "Yes")["value"], json!("true"));
        assert_eq!(of("is_empty", "x"), json!({"fieldId": "f", "operator": "is_empty"}));
    }

    proptest! {
        #[test]
        fn any_query_is_read_and_written_alike(query in ".{0,80}") {
            let view_state = ViewState::read(&query);
            let written = view_state.query();
            prop_assert_eq!(ViewState::read(&written).query(), written);
        }
    }
}

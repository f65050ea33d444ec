//! Saved views: filters combined by AND, sorts, and hidden fields.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::{self, Condition, SortOrder};
use cairn_proto::ids::PropertyId;

use super::properties::check_label;
use crate::checks::Checks;
use crate::filter;
use crate::model::{Database, Sort, View, ViewFilter};

const MAX_FILTERS: usize = 50;
pub(super) const MAX_VIEWS: usize = 100;
/// Further sort keys rarely affect the visible order.
pub(crate) const MAX_SORTS: usize = 5;

/// A sort in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortDraft {
    pub(crate) field_id: String,
    pub(crate) order: SortOrder,
}

/// A view to be created.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewDraft {
    pub(crate) name: String,
    pub(crate) filters: Vec<Condition>,
    pub(crate) sorts: Vec<SortDraft>,
    pub(crate) hidden_field_ids: Vec<String>,
}

/// Changes to a view; absent fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewPatch {
    pub(crate) name: Option<String>,
    pub(crate) filters: Option<Vec<Condition>>,
    pub(crate) sorts: Option<Vec<SortDraft>>,
    pub(crate) hidden_field_ids: Option<Vec<String>>,
    pub(crate) position: Option<u32>,
    pub(crate) unknown_fields: Vec<String>,
}

impl View {
    pub(super) fn apply(&mut self, checks: &mut Checks, database: &Database, patch: ViewPatch) {
        checks.mask(&patch.unknown_fields);
        if let Some(name) = patch.name {
            check_label(checks, "name", &name);
            self.name = name;
        }
        if let Some(filters) = patch.filters {
            self.filters = check_filters(checks, database, filters);
        }
        if let Some(sorts) = patch.sorts {
            self.sorts = check_sorts(checks, database, &sorts, "sorts", false);
        }
        if let Some(hidden) = patch.hidden_field_ids {
            self.hidden_field_ids = check_hidden(checks, database, &hidden);
        }
    }

    /// Removes all uses of a deleted property.
    pub(super) fn remove_property(&mut self, property: PropertyId) {
        let text = property.to_string();
        self.filters.retain(|filter| filter.field_id != text);
        self.sorts.retain(|sort| sort.field_id != property);
        self.hidden_field_ids.retain(|hidden| *hidden != property);
    }
}

/// Validates conditions against the database.
fn check_filters(checks: &mut Checks, database: &Database, conditions: Vec<Condition>) -> Vec<ViewFilter> {
    if conditions.len() > MAX_FILTERS {
        checks.violation("filters", "too_many", wording::at_most(MAX_FILTERS, Unit::Filters));
        return Vec::new();
    }
    let mut filters = Vec::with_capacity(conditions.len());
    for (place, condition) in conditions.into_iter().enumerate() {
        let tree = domain::Filter::Is(condition.clone());
        let fits = filter::check(checks, database, &tree, &format!("filters[{place}]"), false).is_some();
        if let (true, Condition { field_id, operator: Some(operator), value }) = (fits, condition) {
            filters.push(ViewFilter { field_id, operator, value });
        }
    }
    filters
}

/// Validates sorts: of existing properties, each at most once.
pub(crate) fn check_sorts(
    checks: &mut Checks,
    database: &Database,
    drafts: &[SortDraft],
    path: &str,
    allow_names: bool,
) -> Vec<Sort> {
    if drafts.len() > MAX_SORTS {
        checks.violation(path, "too_many", wording::at_most(MAX_SORTS, Unit::Sorts));
        return Vec::new();
    }
    let mut sorts: Vec<Sort> = Vec::with_capacity(drafts.len());
    for (place, draft) in drafts.iter().enumerate() {
        let at = format!("{path}[{place}]");
        let field = format!("{at}.fieldId");
        let Some(property) = database.find(checks, &field, &draft.field_id, allow_names) else {
            continue;
        };
        if sorts.iter().any(|sort| sort.field_id == property.id) {
            checks.violation(&field, "duplicate", "the records are sorted by that property already");
        }
        sorts.push(Sort { field_id: property.id, is_descending: draft.order == SortOrder::Desc });
    }
    sorts
}

fn check_hidden(checks: &mut Checks, database: &Database, hidden: &[String]) -> Vec<PropertyId> {
    let mut ids = Vec::with_capacity(hidden.len().min(database.properties.len()));
    for (place, text) in hidden.iter().enumerate() {
        let at = format!("hiddenFieldIds[{place}]");
        if let Some(property) = database.find(checks, &at, text, false)
            && !ids.contains(&property.id)
        {
            ids.push(property.id);
        }
    }
    ids
}

//! Listing a database's records: filter, search, sort, and page.

use cairn_chassis::sql::Tx;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain;
use cairn_proto::domain::limits::{RECORD_SEARCH_CHARS, RECORDS_PAGE};

use super::columns::{self, PageTarget};
use super::listed;
use super::{PropertyNames, Records, parse};
use crate::Error;
use crate::checks::Checks;
use crate::columns::{Columns, Place};
use crate::databases::schema::view_of;
use crate::databases::views::{MAX_SORTS, SortDraft, check_sorts};
use crate::filter;
use crate::filter::sorts_by_number;
use crate::model::{Database, Listed, Order, Selection, Sort, Word, fold};
use crate::scope::Caller;
use crate::store::records::StoredPage;
use crate::{databases, store};

const DEFAULT_LIMIT: u32 = 50;
const MAX_WORDS: usize = 10;

/// A request for a page of records.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordListRequest {
    /// If present, the page that contains this record, instead of the one at the offset.
    pub(crate) record_id: Option<String>,
    pub(crate) search: String,
    pub(crate) sorts: Vec<SortDraft>,
    /// Combined by AND.
    pub(crate) filters: Vec<domain::Filter>,
    pub(crate) view_id: Option<String>,
    /// 0 for the default.
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    pub(crate) allow_names: bool,
}

impl RecordListRequest {
    fn target(&self) -> Result<PageTarget, Error> {
        Ok(match &self.record_id {
            Some(text) => PageTarget::Containing(parse(text)?),
            None => PageTarget::Offset(self.offset),
        })
    }
}

/// A page of records with its offset and the total.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordPage {
    pub(crate) records: Vec<Listed>,
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    /// The names of all properties of the database, if the caller identifies properties by name; otherwise empty.
    pub(crate) property_names: PropertyNames,
}

impl Records {
    /// A page of records.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        database_id: &str,
        request: RecordListRequest,
    ) -> Result<RecordPage, Error> {
        let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit };
        let cached = self.database_in_columns(caller, database_id);
        if let Some(database) = &cached
            && let Some((place, records)) = self.page_by_cached_schema(database, &request, limit).await?
        {
            return Ok(page(database, place, records, limit, &request));
        }
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut checks = Checks::default();
        let mut selection = select(&mut checks, &database, &request)?;
        checks.finish()?;
        self.narrow(caller, &database, &mut selection).await?;
        let target = request.target()?;
        let found = self.found(caller, &database, &selection, target, limit, cached.is_some()).await?;
        let Some((place, found)) = found else {
            return Err(self.not_selected(&database, request.record_id.as_deref().unwrap_or_default()).await);
        };
        let records = self.listed(caller, &database, &found).await?;
        Ok(page(&database, place, records, limit, &request))
    }

    /// A page by the cached schema. Invalid requests return `None` instead of an error here, as the schema may be stale.
    async fn page_by_cached_schema(
        &self,
        database: &Database,
        request: &RecordListRequest,
        limit: u32,
    ) -> Result<Option<(Place, Vec<Listed>)>, Error> {
        let mut checks = Checks::default();
        let selection = select(&mut checks, database, request);
        let (Ok(selection), Ok(()), Ok(target)) = (selection, checks.finish(), request.target()) else {
            return Ok(None);
        };
        let _permit = self.context.db.read_permit(database.workspace_id).await?;
        self.records_if_current(database, &selection, target, limit).await
    }

    /// A page and its records, consistent as of one feed position; `None` if the record that it must contain is not selected.
    /// `is_stale` says that the snapshot is known to be behind, so the optimistic read is skipped.
    async fn found(
        &self,
        caller: &Caller,
        database: &Database,
        selection: &Selection,
        target: PageTarget,
        limit: u32,
        is_stale: bool,
    ) -> Result<Option<(Place, StoredPage)>, Error> {
        // An expensive query waits for a read permit, so that one workspace cannot starve the others.
        let _permit = self.context.db.read_permit(caller.workspace).await?;
        if !is_stale && let Some(found) = self.page_if_current(database, selection, target, limit).await? {
            return Ok(Some(found));
        }
        let owned = selection.clone();
        let run = move |snapshot: &Columns| columns::page(snapshot, &owned, target, limit);
        let (mut tx, found) = self.query_columns(database, run).await?;
        let place = match found {
            Some(place) => place,
            None => from_engine(&mut tx, database, selection, target, limit).await?,
        };
        let found = match place {
            None => None,
            Some(place) => {
                let of = (caller.workspace, database.id);
                let found = store::records::page(tx.engine(), of, &place.ids).await?;
                Some((place, found))
            }
        };
        tx.rollback().await?;
        Ok(found)
    }

    /// The records of a page as the caller sees them.
    async fn listed(
        &self,
        caller: &Caller,
        database: &Database,
        found: &StoredPage,
    ) -> Result<Vec<Listed>, Error> {
        let records = found.records()?;
        if caller.listed().is_none() {
            return listed::whole(database, &records);
        }
        let records = records.iter().map(|record| listed::read(database, record));
        let shown = self.show(caller, database, records.collect::<Result<_, _>>()?).await?;
        Ok(shown.into_iter().map(Listed::from).collect())
    }

    /// The error for a record that is on no page: it does not exist, or the selection excludes it.
    async fn not_selected(&self, database: &Database, text: &str) -> Error {
        let id = match parse(text) {
            Ok(id) => id,
            Err(error) => return error,
        };
        let db = self.context.db.engine();
        match store::records::get(db, database.workspace_id, database.id, id).await {
            Ok(Some(_)) => Error::LeftOut(text.to_owned()),
            Ok(None) => Error::no_record(text),
            Err(error) => error.into(),
        }
    }
}

fn page(
    database: &Database,
    place: Place,
    records: Vec<Listed>,
    limit: u32,
    request: &RecordListRequest,
) -> RecordPage {
    let property_names = match request.allow_names {
        true => database.properties.iter().map(|one| (one.id.to_string(), one.name.clone())).collect(),
        false => PropertyNames::new(),
    };
    RecordPage { records, total: place.total, limit, offset: place.offset, property_names }
}

/// A page by SQL.
async fn from_engine(
    tx: &mut Tx,
    database: &Database,
    selection: &Selection,
    target: PageTarget,
    limit: u32,
) -> Result<Option<Place>, Error> {
    let total = match selection.is_unfiltered() {
        true => database.record_count,
        false => store::query::count(tx, selection).await?,
    };
    let offset = match target {
        PageTarget::Offset(offset) => offset,
        PageTarget::Containing(id) => match store::query::place_of(tx, selection, total, id).await? {
            Some(place) => place - place % u64::from(limit),
            None => return Ok(None),
        },
    };
    let ids = store::query::page(tx, selection, total, limit, offset).await?;
    Ok(Some(Place { total, offset, ids }))
}

/// Translates a request into a selection; violations are added to `checks`.
pub(super) fn select(
    checks: &mut Checks,
    database: &Database,
    request: &RecordListRequest,
) -> Result<Selection, Error> {
    if request.limit > RECORDS_PAGE {
        checks.violation("limit", "out_of_range", wording::between(1, RECORDS_PAGE));
    }
    if i64::try_from(request.offset).is_err() {
        checks.violation("offset", "out_of_range", "no database has as many records");
    }
    let mut filters = Vec::new();
    let mut sorts = check_sorts(checks, database, &request.sorts, "sorts", request.allow_names);
    if let Some(view_id) = &request.view_id {
        let view = database.views.get(view_of(database, view_id)?);
        for (place, filter) in view.into_iter().flat_map(|view| view.filters.iter().enumerate()) {
            let path = format!("view.filters[{place}]");
            let tree = domain::Filter::Is(filter.clone().into());
            filters.extend(filter::check(checks, database, &tree, &path, false));
        }
        if sorts.is_empty() {
            sorts = view.map(|view| view.sorts.clone()).unwrap_or_default();
        }
    }
    for (place, tree) in request.filters.iter().enumerate() {
        let path = format!("filters[{place}]");
        filters.extend(filter::check(checks, database, tree, &path, request.allow_names));
    }
    let words = words(checks, database, &request.search);
    Ok(Selection {
        workspace: database.workspace_id,
        database: database.id,
        total_records: database.record_count,
        filters,
        words,
        orders: sorts.iter().take(MAX_SORTS).filter_map(|sort| order(database, sort)).collect(),
    })
}

/// The search words, all of which must match, each with the options whose names contain it.
fn words(checks: &mut Checks, database: &Database, search: &str) -> Vec<Word> {
    if search.chars().count() > RECORD_SEARCH_CHARS {
        let message = wording::at_most(RECORD_SEARCH_CHARS, Unit::Characters);
        checks.violation("search", "too_long", message);
    }
    if search.contains('\0') {
        checks.violation("search", "invalid", wording::NO_NUL);
    }
    let folded = fold(search);
    let options = |word: &str| {
        let all = database.properties.iter().flat_map(|property| &property.config.options);
        all.filter(|option| fold(&option.name).contains(word)).map(|option| option.id.clone()).collect()
    };
    let words = folded.split_whitespace().take(MAX_WORDS);
    words.map(|word| Word { folded: word.to_owned(), option_ids: options(word) }).collect()
}

fn order(database: &Database, sort: &Sort) -> Option<Order> {
    let property = database.property(sort.field_id)?;
    Some(Order {
        property: property.id,
        by_number: sorts_by_number(property.kind),
        is_descending: sort.is_descending,
    })
}

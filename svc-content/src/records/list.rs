//! A page of a database's records: which, in which order, from where on.

use cairn_chassis::sql::Tx;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain;
use cairn_proto::domain::limits::{RECORD_SEARCH_CHARS, RECORDS_PAGE};

use super::columns::{self, Wanted};
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
use crate::store::records::KeptPage;
use crate::{databases, store};

const DEFAULT_LIMIT: u32 = 50;
const MAX_WORDS: usize = 10;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordListRequest {
    /// The page that contains this record, instead of the one at the offset.
    pub(crate) record_id: Option<String>,
    pub(crate) search: String,
    pub(crate) sorts: Vec<SortDraft>,
    /// All of these hold.
    pub(crate) filters: Vec<domain::Filter>,
    pub(crate) view_id: Option<String>,
    /// 0 for the usual number.
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    pub(crate) allow_names: bool,
}

impl RecordListRequest {
    fn wanted(&self) -> Result<Wanted, Error> {
        Ok(match &self.record_id {
            Some(text) => Wanted::With(parse(text)?),
            None => Wanted::At(self.offset),
        })
    }
}

/// A page, and where it stands among all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordPage {
    pub(crate) records: Vec<Listed>,
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    /// Of the whole database, for a caller who names properties by their names.
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
        let known = self.database_in_columns(caller, database_id);
        if let Some(database) = &known
            && let Some((place, records)) = self.of_known(database, &request, limit).await?
        {
            return Ok(page(database, place, records, limit, &request));
        }
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut checks = Checks::default();
        let mut selection = select(&mut checks, &database, &request)?;
        checks.finish()?;
        self.narrow(caller, &database, &mut selection).await?;
        let wanted = request.wanted()?;
        let found = self.found(caller, &database, &selection, wanted, limit, known.is_some()).await?;
        let Some((place, kept)) = found else {
            return Err(self.not_among(&database, request.record_id.as_deref().unwrap_or_default()).await);
        };
        let records = self.listed(caller, &database, &kept).await?;
        Ok(page(&database, place, records, limit, &request))
    }

    /// A page of a database as its columns know it. Nothing is refused here: it may be another one by now.
    async fn of_known(
        &self,
        database: &Database,
        request: &RecordListRequest,
        limit: u32,
    ) -> Result<Option<(Place, Vec<Listed>)>, Error> {
        let mut checks = Checks::default();
        let selection = select(&mut checks, database, request);
        let (Ok(selection), Ok(()), Ok(wanted)) = (selection, checks.finish(), request.wanted()) else {
            return Ok(None);
        };
        let _turn = self.context.db.reading_fairly(database.workspace_id).await?;
        self.listed_at_rest(database, &selection, wanted, limit).await
    }

    /// A page and its records, all of one moment; `None` when the record that it is to contain is not among those that are
    /// selected. Whoever knows that columns have something to learn says that they are moving.
    async fn found(
        &self,
        caller: &Caller,
        database: &Database,
        selection: &Selection,
        wanted: Wanted,
        limit: u32,
        is_moving: bool,
    ) -> Result<Option<(Place, KeptPage)>, Error> {
        // What is costly is read in its turn.
        let _turn = self.context.db.reading_fairly(caller.workspace).await?;
        if !is_moving && let Some(found) = self.at_rest(database, selection, wanted, limit).await? {
            return Ok(Some(found));
        }
        let asked = selection.clone();
        let ask = move |held: &Columns| columns::page(held, &asked, wanted, limit);
        let (mut tx, told) = self.by_columns(database, ask).await?;
        let place = match told {
            Some(place) => place,
            None => from_engine(&mut tx, database, selection, wanted, limit).await?,
        };
        let found = match place {
            None => None,
            Some(place) => {
                let of = (caller.workspace, database.id);
                let kept = store::records::page(tx.engine(), of, &place.ids).await?;
                Some((place, kept))
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
        kept: &KeptPage,
    ) -> Result<Vec<Listed>, Error> {
        let records = kept.records()?;
        if caller.listed().is_none() {
            return listed::whole(database, &records);
        }
        let records = records.iter().map(|kept| listed::read(database, kept));
        let shown = self.show(caller, database, records.collect::<Result<_, _>>()?).await?;
        Ok(shown.into_iter().map(Listed::from).collect())
    }

    /// Why a record stands on no page: there is none, or what was asked leaves it out.
    async fn not_among(&self, database: &Database, text: &str) -> Error {
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

/// A page as the engine finds it.
async fn from_engine(
    tx: &mut Tx,
    database: &Database,
    selection: &Selection,
    wanted: Wanted,
    limit: u32,
) -> Result<Option<Place>, Error> {
    let total = match selection.is_everything() {
        true => database.record_count,
        false => store::query::count(tx, selection).await?,
    };
    let offset = match wanted {
        Wanted::At(offset) => offset,
        Wanted::With(id) => match store::query::place_of(tx, selection, total, id).await? {
            Some(place) => place - place % u64::from(limit),
            None => return Ok(None),
        },
    };
    let ids = store::query::page(tx, selection, total, limit, offset).await?;
    Ok(Some(Place { total, offset, ids }))
}

/// Which records are asked for, in which order; what is wrong with that is noted.
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
        everything: database.record_count,
        filters,
        words,
        orders: sorts.iter().take(MAX_SORTS).filter_map(|sort| order(database, sort)).collect(),
    })
}

/// Words that must all be found, each with the options whose names hold it.
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

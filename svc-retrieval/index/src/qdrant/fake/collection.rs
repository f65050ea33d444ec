//! The points of one collection.

use std::collections::{BTreeMap, HashMap};

use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::points_update_operation::{Operation, PointStructList};
use qdrant_client::qdrant::value::Kind;
use qdrant_client::qdrant::vectors::VectorsOptions;
use qdrant_client::qdrant::{
    CollectionConfig, CollectionInfo, CollectionParams, CreateCollection, CreateFieldIndexCollection,
    FacetCounts, FacetHit, FacetValue, Filter, GetPoints, NamedVectorsOutput, PayloadSchemaInfo, PointId,
    PointStruct, RetrievedPoint, ScrollPoints, ScrollResponse, UpdateMode, Value, Vector, VectorOutput,
    VectorsOutput, WithPayloadSelector, WithVectorsSelector, facet_value, vector, vector_output,
    vectors_output, with_payload_selector, with_vectors_selector,
};
use tonic::Status;

use super::unsupported;

/// The limit of a request without one.
const DEFAULT_LIMIT: u32 = 10;

/// One collection.
pub(super) struct Collection {
    settings: CreateCollection,
    pub(super) indexes: HashMap<String, CreateFieldIndexCollection>,
    /// By id.
    pub(super) points: BTreeMap<String, Point>,
}

/// A stored point.
pub(super) struct Point {
    pub(super) payload: HashMap<String, Value>,
    pub(super) vectors: HashMap<String, vector::Vector>,
}

impl Collection {
    pub(super) fn new(settings: CreateCollection) -> Self {
        Self { settings, indexes: HashMap::new(), points: BTreeMap::new() }
    }

    pub(super) fn info(&self) -> CollectionInfo {
        let params = CollectionParams {
            vectors_config: self.settings.vectors_config.clone(),
            sparse_vectors_config: self.settings.sparse_vectors_config.clone(),
            ..CollectionParams::default()
        };
        let config = CollectionConfig { params: Some(params), ..CollectionConfig::default() };
        let schema = self.indexes.keys().map(|field| (field.clone(), PayloadSchemaInfo::default()));
        CollectionInfo { config: Some(config), payload_schema: schema.collect(), ..CollectionInfo::default() }
    }

    pub(super) fn index(&mut self, request: CreateFieldIndexCollection) {
        self.indexes.insert(request.field_name.clone(), request);
    }

    pub(super) fn update(&mut self, operation: Operation) -> Result<(), Status> {
        if let Operation::Upsert(list) = operation {
            return self.upsert(list);
        }
        let Operation::DeletePoints(deletion) = operation else { return Err(unsupported("this operation")) };
        let selected = deletion.points.and_then(|points| points.points_selector_one_of);
        let Some(PointsSelectorOneOf::Filter(filter)) = selected else {
            return Err(unsupported("this selection of points"));
        };
        let gone = self.passing(Some(&filter))?;
        let gone: Vec<String> = gone.into_iter().map(|(id, _)| id.to_owned()).collect();
        for id in gone {
            self.points.remove(&id);
        }
        Ok(())
    }

    /// For an existing point the update filter decides, for a new one only the mode.
    fn upsert(&mut self, list: PointStructList) -> Result<(), Status> {
        let mode = UpdateMode::try_from(list.update_mode.unwrap_or_default()).unwrap_or(UpdateMode::Upsert);
        for point in list.points {
            let id = text_of(point.id.as_ref())?;
            let is_written = match (self.points.get(&id), mode) {
                (Some(_), UpdateMode::InsertOnly) | (None, UpdateMode::UpdateOnly) => false,
                (Some(present), UpdateMode::Upsert | UpdateMode::UpdateOnly) => {
                    self.passes(list.update_filter.as_ref(), &id, present)?
                }
                (None, UpdateMode::Upsert | UpdateMode::InsertOnly) => true,
            };
            if is_written {
                self.points.insert(id, stored(point)?);
            }
        }
        Ok(())
    }

    /// The points that match a filter, by id.
    pub(super) fn passing(&self, filter: Option<&Filter>) -> Result<Vec<(&str, &Point)>, Status> {
        let mut passing = Vec::new();
        for (id, point) in &self.points {
            if self.passes(filter, id, point)? {
                passing.push((id.as_str(), point));
            }
        }
        Ok(passing)
    }

    pub(super) fn count(&self, filter: Option<&Filter>) -> Result<u64, Status> {
        Ok(self.passing(filter)?.len() as u64)
    }

    pub(super) fn get(&self, request: &GetPoints) -> Result<Vec<RetrievedPoint>, Status> {
        let mut found = Vec::new();
        for id in &request.ids {
            let id = text_of(Some(id))?;
            let point = self.points.get(&id);
            found.extend(point.map(|point| {
                point.retrieved(&id, request.with_payload.as_ref(), request.with_vectors.as_ref())
            }));
        }
        Ok(found)
    }

    /// A page, which starts at the offset, an id; the result has the offset of the next page.
    pub(super) fn scroll(&self, request: &ScrollPoints) -> Result<ScrollResponse, Status> {
        let from =
            request.offset.as_ref().map(|offset| text_of(Some(offset))).transpose()?.unwrap_or_default();
        let limit = usize::try_from(request.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let mut passing = self.passing(request.filter.as_ref())?.into_iter().filter(|(id, _)| **id >= *from);
        let page = passing.by_ref().take(limit).map(|(id, point)| {
            point.retrieved(id, request.with_payload.as_ref(), request.with_vectors.as_ref())
        });
        let result = page.collect();
        let next_page_offset = passing.next().map(|(id, _)| PointId::from(id.to_owned()));
        Ok(ScrollResponse { next_page_offset, result, ..ScrollResponse::default() })
    }

    /// The values of a field, those of most points first.
    pub(super) fn facet(&self, request: &FacetCounts) -> Result<Vec<FacetHit>, Status> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, point) in self.passing(request.filter.as_ref())? {
            if let Some(text) = point.text(&request.key) {
                *counts.entry(text).or_default() += 1;
            }
        }
        let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let limit = request.limit.and_then(|limit| usize::try_from(limit).ok());
        counts.truncate(limit.unwrap_or(DEFAULT_LIMIT as usize));
        let hit = |(text, count): (&str, u64)| {
            let variant = Some(facet_value::Variant::StringValue(text.to_owned()));
            FacetHit { value: Some(FacetValue { variant }), count }
        };
        Ok(counts.into_iter().map(hit).collect())
    }
}

impl Point {
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        let Some(Kind::StringValue(text)) = &self.payload.get(field)?.kind else { return None };
        Some(text)
    }

    pub(super) fn number(&self, field: &str) -> Option<f64> {
        let Some(Kind::IntegerValue(number)) = &self.payload.get(field)?.kind else { return None };
        Some(*number as f64)
    }

    /// The integers of a field: one, or a list.
    pub(super) fn integers(&self, field: &str) -> Vec<i64> {
        let integer = |value: &Value| {
            let Some(Kind::IntegerValue(number)) = &value.kind else { return None };
            Some(*number)
        };
        let Some(value) = self.payload.get(field) else { return Vec::new() };
        let Some(Kind::ListValue(list)) = &value.kind else { return integer(value).into_iter().collect() };
        list.values.iter().filter_map(integer).collect()
    }

    fn retrieved(
        &self,
        id: &str,
        payload: Option<&WithPayloadSelector>,
        vectors: Option<&WithVectorsSelector>,
    ) -> RetrievedPoint {
        RetrievedPoint {
            id: Some(PointId::from(id.to_owned())),
            payload: self.shown_payload(payload),
            vectors: self.shown_vectors(vectors),
            ..RetrievedPoint::default()
        }
    }

    pub(super) fn shown_payload(&self, selector: Option<&WithPayloadSelector>) -> HashMap<String, Value> {
        use with_payload_selector::SelectorOptions;
        let is_shown = |field: &str| match selector.and_then(|selector| selector.selector_options.as_ref()) {
            None | Some(SelectorOptions::Enable(false)) => false,
            Some(SelectorOptions::Enable(true)) => true,
            Some(SelectorOptions::Include(some)) => some.fields.iter().any(|other| other == field),
            Some(SelectorOptions::Exclude(some)) => some.fields.iter().all(|other| other != field),
        };
        let shown = self.payload.iter().filter(|(field, _)| is_shown(field));
        shown.map(|(field, value)| (field.clone(), value.clone())).collect()
    }

    pub(super) fn shown_vectors(&self, selector: Option<&WithVectorsSelector>) -> Option<VectorsOutput> {
        use with_vectors_selector::SelectorOptions;
        let selector = selector?.selector_options.as_ref()?;
        let is_shown = |name: &str| match selector {
            SelectorOptions::Enable(are_all) => *are_all,
            SelectorOptions::Include(some) => some.names.iter().any(|other| other == name),
        };
        let shown = self.vectors.iter().filter(|(name, _)| is_shown(name));
        let shown = shown.filter_map(|(name, vector)| Some((name.clone(), output(vector)?)));
        let vectors = NamedVectorsOutput { vectors: shown.collect() };
        Some(VectorsOutput { vectors_options: Some(vectors_output::VectorsOptions::Vectors(vectors)) })
    }
}

fn output(stored: &vector::Vector) -> Option<VectorOutput> {
    let vector = if let vector::Vector::Dense(dense) = stored {
        vector_output::Vector::Dense(dense.clone())
    } else if let vector::Vector::Sparse(sparse) = stored {
        vector_output::Vector::Sparse(sparse.clone())
    } else {
        return None;
    };
    Some(VectorOutput { vector: Some(vector), ..VectorOutput::default() })
}

/// Converts a received point, whose vectors must be named.
fn stored(point: PointStruct) -> Result<Point, Status> {
    let named = match point.vectors.and_then(|vectors| vectors.vectors_options) {
        None => HashMap::new(),
        Some(VectorsOptions::Vectors(named)) => named.vectors,
        Some(VectorsOptions::Vector(_)) => return Err(unsupported("a vector without a name")),
    };
    let vector = |(name, vector): (String, Vector)| Some((name, vector.vector?));
    Ok(Point { payload: point.payload, vectors: named.into_iter().filter_map(vector).collect() })
}

/// The text of an id, which must be a UUID.
pub(super) fn text_of(id: Option<&PointId>) -> Result<String, Status> {
    let options = id.and_then(|id| id.point_id_options.as_ref());
    let Some(PointIdOptions::Uuid(id)) = options else { return Err(unsupported("an id that is no UUID")) };
    Ok(id.clone())
}

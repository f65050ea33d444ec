//! Lookups.

use std::collections::HashMap;

use qdrant_client::qdrant::{
    CountPoints, FacetCounts, Filter, GetPoints, PayloadIncludeSelector, PointId, RetrievedPoint,
    ScrollPoints, VectorsSelector, WithPayloadSelector, WithVectorsSelector, facet_value,
    with_payload_selector, with_vectors_selector,
};
use uuid::Uuid;

use super::points::{
    self, HEADINGS, LANGUAGE, MARK, MEANING, Role, STORED_FIELDS, TABLE_HEADER, TEXT, TITLE, chunk_point,
    mark_point, point_id,
};
use super::tuning::{MAX_LANGUAGES, PAGE};
use super::{Error, Inner, filters};
use crate::words::{Language, Languages};
use crate::{ChunkId, Counts, EmbeddedChunk, StoredChunk};

impl Inner {
    /// The languages of the workspace's chunks, possibly from the cache.
    pub(super) async fn languages(&self, workspace: Uuid) -> Result<Languages, Error> {
        if let Some(cached) = self.language_cache.get(workspace) {
            return Ok(cached);
        }
        let request = FacetCounts {
            collection_name: self.collection.clone(),
            key: LANGUAGE.to_owned(),
            filter: Some(Filter::must([filters::workspace(workspace)])),
            limit: Some(MAX_LANGUAGES),
            ..FacetCounts::default()
        };
        let found = self.detect_loss(self.client.api.facet(request).await)?.hits;
        let codes = found.into_iter().filter_map(|hit| match hit.value?.variant? {
            facet_value::Variant::StringValue(code) => Language::from_code(&code),
            facet_value::Variant::IntegerValue(_) | facet_value::Variant::BoolValue(_) => None,
        });
        let languages = codes.fold(Languages::default(), Languages::with);
        self.language_cache.insert(workspace, languages);
        Ok(languages)
    }

    /// The chunks that exist, in the given order.
    pub(super) async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        self.ready().await?;
        let points = ids.iter().map(|id| chunk_point(workspace, *id)).collect();
        let found = self.get(points, STORED_FIELDS).await?;
        let chunk = |id: &ChunkId| {
            let point = found.get(&chunk_point(workspace, *id))?;
            Some(points::read_chunk(*id, &point.payload))
        };
        Ok(ids.iter().filter_map(chunk).collect())
    }

    /// The chunks of documents that have a vector, with the embedded text.
    pub(super) async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
        with: &[&str],
    ) -> Result<Vec<(ChunkId, EmbeddedChunk)>, Error> {
        self.ready().await?;
        let filter = Filter::must([
            filters::workspace(workspace),
            filters::role(Role::Chunk),
            filters::documents(documents),
        ]);
        let mut embedded = Vec::new();
        for point in self.scroll(filter, fields(with), Some(meaning())).await? {
            let Some(embedding) = points::read_vector(point.vectors) else { continue };
            let chunk = EmbeddedChunk {
                title: points::text(&point.payload, TITLE),
                heading_path: points::texts(&point.payload, HEADINGS),
                table_header: points::text(&point.payload, TABLE_HEADER),
                text: points::text(&point.payload, TEXT),
                embedding,
                pieces: points::pieces(&point.payload),
            };
            embedded.push((points::read_chunk_id(&point.payload)?, chunk));
        }
        embedded.sort_unstable_by_key(|(chunk, _)| *chunk);
        Ok(embedded)
    }

    pub(super) async fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        self.ready().await?;
        let documents = self.count(workspace, Role::Document).await?;
        Ok(Counts { documents, chunks: self.count(workspace, Role::Chunk).await? })
    }

    async fn count(&self, workspace: Uuid, role: Role) -> Result<u64, Error> {
        self.count_points(Filter::must([filters::workspace(workspace), filters::role(role)])).await
    }

    /// How many points match a filter.
    pub(super) async fn count_points(&self, filter: Filter) -> Result<u64, Error> {
        let request = CountPoints {
            collection_name: self.collection.clone(),
            filter: Some(filter),
            exact: Some(true),
            ..CountPoints::default()
        };
        let answer = self.detect_loss(self.client.api.count(request).await)?;
        Ok(answer.result.map(|result| result.count).unwrap_or_default())
    }

    /// The existing points with these ids, with the given payload fields.
    pub(super) async fn get(
        &self,
        ids: Vec<Uuid>,
        with: &[&str],
    ) -> Result<HashMap<Uuid, RetrievedPoint>, Error> {
        self.get_with(ids, with, no_vectors()).await
    }

    pub(super) async fn get_with(
        &self,
        ids: Vec<Uuid>,
        with: &[&str],
        vectors: WithVectorsSelector,
    ) -> Result<HashMap<Uuid, RetrievedPoint>, Error> {
        Ok(self.get_with_mark(ids, with, vectors).await?.0)
    }

    /// The points, with their own marks if they have one, and the mark of the collection.
    pub(super) async fn get_with_mark(
        &self,
        ids: Vec<Uuid>,
        with: &[&str],
        vectors: WithVectorsSelector,
    ) -> Result<(HashMap<Uuid, RetrievedPoint>, Option<Uuid>), Error> {
        let with: Vec<&str> = with.iter().copied().chain([MARK]).collect();
        let mark = self.mark();
        let request = GetPoints {
            collection_name: self.collection.clone(),
            ids: ids.into_iter().chain([mark_point()]).map(point_id).collect(),
            with_payload: Some(fields(&with)),
            with_vectors: Some(vectors),
            ..GetPoints::default()
        };
        let found = self.detect_loss(self.client.api.get_points(request).await)?.result;
        let by_id = |point: RetrievedPoint| Some((points::uuid_of(point.id.as_ref())?, point));
        let mut found: HashMap<Uuid, RetrievedPoint> = found.into_iter().filter_map(by_id).collect();
        let collection = found.remove(&mark_point()).and_then(|point| points::read_mark(&point.payload));
        self.check_mark(mark, collection)?;
        Ok((found, collection))
    }

    /// All points that match a filter.
    pub(super) async fn scroll(
        &self,
        filter: Filter,
        with: WithPayloadSelector,
        vectors: Option<WithVectorsSelector>,
    ) -> Result<Vec<RetrievedPoint>, Error> {
        let mut found = Vec::new();
        let mut offset: Option<PointId> = None;
        loop {
            let request = ScrollPoints {
                collection_name: self.collection.clone(),
                filter: Some(filter.clone()),
                offset,
                limit: Some(PAGE),
                with_payload: Some(with.clone()),
                with_vectors: Some(vectors.clone().unwrap_or_else(no_vectors)),
                ..ScrollPoints::default()
            };
            let page = self.detect_loss(self.client.api.scroll(request).await)?;
            found.extend(page.result);
            offset = page.next_page_offset;
            if offset.is_none() {
                return Ok(found);
            }
        }
    }
}

pub(super) fn fields(names: &[&str]) -> WithPayloadSelector {
    let fields = names.iter().map(|name| (*name).to_owned()).collect();
    WithPayloadSelector {
        selector_options: Some(with_payload_selector::SelectorOptions::Include(PayloadIncludeSelector {
            fields,
        })),
    }
}

pub(super) fn no_fields() -> WithPayloadSelector {
    WithPayloadSelector { selector_options: Some(with_payload_selector::SelectorOptions::Enable(false)) }
}

pub(super) fn meaning() -> WithVectorsSelector {
    vectors_of(MEANING)
}

pub(super) fn vectors_of(name: &str) -> WithVectorsSelector {
    let names = VectorsSelector { names: vec![name.to_owned()] };
    WithVectorsSelector { selector_options: Some(with_vectors_selector::SelectorOptions::Include(names)) }
}

pub(super) fn no_vectors() -> WithVectorsSelector {
    WithVectorsSelector { selector_options: Some(with_vectors_selector::SelectorOptions::Enable(false)) }
}

//! The collection of one generation: its name, its settings, its payload indexes.

use std::collections::HashMap;

use qdrant_client::qdrant::payload_index_params::IndexParams;
use qdrant_client::qdrant::quantization_config::Quantization;
use qdrant_client::qdrant::vectors_config::Config as VectorsKind;
use qdrant_client::qdrant::{
    CollectionInfo, CreateCollection, CreateFieldIndexCollection, Datatype, Distance, FieldType,
    HnswConfigDiff, IntegerIndexParams, KeywordIndexParams, Modifier, PayloadIndexParams, QuantizationConfig,
    QuantizationType, ScalarQuantization, SparseIndexConfig, SparseVectorConfig, SparseVectorParams,
    TextIndexParams, TokenizerType, UuidIndexParams, VectorParams, VectorParamsMap, VectorsConfig,
};

use super::Error;
use super::client::Client;
use super::points::{
    CONTAINER, DOCUMENT, FORMS, LANGUAGE, MARK, MEANING, ORDINAL, PIECES, POSITION, REVISION, ROLE, TOKENS,
    WORDS, WORKSPACE,
};
use super::tuning::{GRAPH_CANDIDATES, GRAPH_EDGES, LAYOUT, MAX_PREFIX_CHARS, MIN_SERVER_VERSION};
use crate::words::MIN_PREFIX_CHARS;

/// The name of a generation's collection. A slug contains one `_`, before its last eight characters.
pub(super) fn name(prefix: &str, slug: &str) -> String {
    format!("{prefix}_v{LAYOUT}_{slug}")
}

/// The alias of the current generation's collection.
pub(super) fn alias(prefix: &str) -> String {
    format!("{prefix}_v{LAYOUT}_current")
}

/// Whether a collection belongs to the deployment with this prefix, in any layout: `<prefix>_v<layout>_<slug>`. Collections of a
/// longer prefix that starts with this one do not match, since a slug contains only one `_`.
pub(super) fn is_generation(prefix: &str, name: &str) -> bool {
    let parts =
        name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix("_v")).map(|rest| rest.split('_'));
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    let [layout, readable, hash] = parts.as_slice() else { return false };
    !layout.is_empty()
        && layout.bytes().all(|byte| byte.is_ascii_digit())
        && readable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && hash.len() == 8
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Creates the collection and its payload indexes, as far as they do not exist.
pub(super) async fn ensure(client: &Client, name: &str, dimensions: usize) -> Result<(), Error> {
    check_version(&client.api.health_check().await?.version)?;
    if !client.api.collection_exists(name).await? {
        create(client, name, dimensions).await?;
    }
    let info = client.api.collection_info(name).await?.result;
    let info = info.ok_or(Error::Answer("a collection without a description"))?;
    check(&info, name, dimensions)?;
    for (field, kind, params) in indexes() {
        if !info.payload_schema.contains_key(field) {
            client.api.create_field_index(index(name, field, kind, params)).await?;
        }
    }
    Ok(())
}

/// An older server ignores the corpus over which idf is computed, and would silently include other tenants.
fn check_version(version: &str) -> Result<(), Error> {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) >= MIN_SERVER_VERSION => Ok(()),
        (Some(_), Some(_)) => Err(Error::TooOld),
        _ => Err(Error::Answer("the server does not tell its version")),
    }
}

async fn create(client: &Client, name: &str, dimensions: usize) -> Result<(), Error> {
    let Err(error) = client.api.create_collection(settings(name, dimensions)).await else {
        tracing::info!(collection = name, "made a collection in Qdrant");
        return Ok(());
    };
    // Another replica may have created it concurrently.
    if client.api.collection_exists(name).await? { Ok(()) } else { Err(error.into()) }
}

/// Fails for a collection of that name with other vectors, which is not ours.
fn check(info: &CollectionInfo, name: &str, dimensions: usize) -> Result<(), Error> {
    let vectors = info.config.as_ref().and_then(|config| config.params.as_ref()?.vectors_config.as_ref());
    let found = match vectors.and_then(|vectors| vectors.config.as_ref()) {
        Some(VectorsKind::ParamsMap(params)) => params.map.get(MEANING).map(|params| params.size),
        Some(VectorsKind::Params(_)) | None => None,
    };
    if found == u64::try_from(dimensions).ok() {
        return Ok(());
    }
    Err(Error::Foreign { collection: name.to_owned() })
}

/// Vectors are stored in half precision on disk and quantised to one byte per number in memory: a search scores the quantised ones,
/// then rescores the best ([`super::tuning::OVERSAMPLING`]).
#[expect(deprecated, reason = "a server of 1.19 knows on_disk and always_ram; what replaces them is newer")]
fn settings(name: &str, dimensions: usize) -> CreateCollection {
    let quantization = ScalarQuantization {
        r#type: QuantizationType::Int8.into(),
        always_ram: Some(true),
        ..ScalarQuantization::default()
    };
    let meaning = VectorParams {
        size: u64::try_from(dimensions).unwrap_or(u64::MAX),
        distance: Distance::Cosine.into(),
        hnsw_config: Some(HnswConfigDiff {
            m: Some(0),
            payload_m: Some(GRAPH_EDGES),
            ef_construct: Some(GRAPH_CANDIDATES),
            ..HnswConfigDiff::default()
        }),
        quantization_config: Some(QuantizationConfig {
            quantization: Some(Quantization::Scalar(quantization)),
        }),
        on_disk: Some(true),
        datatype: Some(Datatype::Float16.into()),
        ..VectorParams::default()
    };
    let words = SparseVectorParams {
        index: Some(SparseIndexConfig { on_disk: Some(false), ..SparseIndexConfig::default() }),
        modifier: Some(Modifier::Idf.into()),
    };
    CreateCollection {
        collection_name: name.to_owned(),
        vectors_config: Some(VectorsConfig {
            config: Some(VectorsKind::ParamsMap(VectorParamsMap {
                map: HashMap::from([(MEANING.to_owned(), meaning)]),
            })),
        }),
        sparse_vectors_config: Some(SparseVectorConfig { map: HashMap::from([(WORDS.to_owned(), words)]) }),
        on_disk_payload: Some(true),
        ..CreateCollection::default()
    }
}

/// The fields used in filters. Only the workspace gets HNSW edges: those of other fields would never be used.
#[expect(deprecated, reason = "a server of 1.19 knows on_disk; what replaces it is newer")]
fn indexes() -> [(&'static str, FieldType, IndexParams); 12] {
    let keyword = |is_tenant: bool| {
        IndexParams::KeywordIndexParams(KeywordIndexParams {
            is_tenant: Some(is_tenant),
            enable_hnsw: Some(is_tenant),
            ..KeywordIndexParams::default()
        })
    };
    let id = || {
        IndexParams::UuidIndexParams(UuidIndexParams {
            enable_hnsw: Some(false),
            ..UuidIndexParams::default()
        })
    };
    let integer = || {
        IndexParams::IntegerIndexParams(IntegerIndexParams {
            lookup: Some(false),
            range: Some(true),
            enable_hnsw: Some(false),
            ..IntegerIndexParams::default()
        })
    };
    let text = TextIndexParams {
        tokenizer: TokenizerType::Whitespace.into(),
        lowercase: Some(false),
        on_disk: Some(true),
        phrase_matching: Some(true),
        enable_hnsw: Some(false),
        ..TextIndexParams::default()
    };
    let pieces = IntegerIndexParams {
        lookup: Some(true),
        range: Some(false),
        on_disk: Some(true),
        enable_hnsw: Some(false),
        ..IntegerIndexParams::default()
    };
    let beginnings = TextIndexParams {
        tokenizer: TokenizerType::Prefix.into(),
        min_token_len: u64::try_from(MIN_PREFIX_CHARS).ok(),
        max_token_len: Some(MAX_PREFIX_CHARS),
        phrase_matching: Some(false),
        ..text.clone()
    };
    [
        (WORKSPACE, FieldType::Keyword, keyword(true)),
        (ROLE, FieldType::Keyword, keyword(false)),
        (DOCUMENT, FieldType::Uuid, id()),
        (CONTAINER, FieldType::Uuid, id()),
        (ORDINAL, FieldType::Integer, integer()),
        (REVISION, FieldType::Integer, integer()),
        (POSITION, FieldType::Integer, integer()),
        (MARK, FieldType::Uuid, id()),
        (LANGUAGE, FieldType::Keyword, keyword(false)),
        (PIECES, FieldType::Integer, IndexParams::IntegerIndexParams(pieces)),
        (TOKENS, FieldType::Text, IndexParams::TextIndexParams(text)),
        (FORMS, FieldType::Text, IndexParams::TextIndexParams(beginnings)),
    ]
}

fn index(collection: &str, field: &str, kind: FieldType, params: IndexParams) -> CreateFieldIndexCollection {
    CreateFieldIndexCollection {
        collection_name: collection.to_owned(),
        wait: Some(true),
        field_name: field.to_owned(),
        field_type: Some(kind.into()),
        field_index_params: Some(PayloadIndexParams { index_params: Some(params) }),
        ordering: None,
        timeout: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{alias, check_version, is_generation, name};

    #[test]
    fn a_server_must_count_by_tenant() {
        for version in ["1.19.0", "1.20.3-dev", "2.0.0"] {
            assert!(check_version(version).is_ok(), "{version}");
        }
        for version in ["1.18.2", "0.99.0", "", "latest"] {
            assert!(check_version(version).is_err(), "{version}");
        }
    }

    #[test]
    fn a_deployment_knows_its_own_collections() {
        let slug = "static-minilm-1_01ab23cd";
        assert_eq!(name("cairn", slug), "cairn_v4_static-minilm-1_01ab23cd");
        assert!(is_generation("cairn", &name("cairn", slug)));
        assert!(is_generation("cairn", "cairn_v12_x_01ab23cd"));
        let foreign =
            [name("cairn2", slug), name("cairn_v1", slug), alias("cairn"), "cairn_v1_books".to_owned()];
        for other in foreign {
            assert!(!is_generation("cairn", &other), "{other}");
        }
    }
}

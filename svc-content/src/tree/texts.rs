//! The texts of a tree, which are fetched lazily by reference.

use cairn_chassis::wording::{self, Unit};
use std::collections::HashMap;

use cairn_proto::ids::{DatabaseId, DocumentId, RecordId};

use super::{Trees, front_matter, parse, schema};
use crate::model::{Body, Database, Record, content_hash};
use crate::store::tree::TreeSelection;
use crate::{Error, store};

const MAX_REFS: usize = 1_000;
/// Bytes of texts per response. The text that exceeds it is included, so that every request makes progress.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A reference to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextRef {
    /// The body with this hash.
    Body(String),
    /// The front matter of a record.
    FrontMatter {
        /// The record.
        record: RecordId,
        /// Whether to include reference fields.
        has_references: bool,
    },
    /// The schema of a database.
    Schema(DatabaseId),
}

/// Texts that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadTexts {
    /// Each with the index of its reference and its hash.
    pub(crate) texts: Vec<(usize, String, String)>,
    /// How many references, from the first on, were processed.
    pub(crate) read: usize,
}

impl Trees {
    /// The texts that exist; a reference that names nothing is `None`.
    pub(crate) async fn texts(&self, workspace: &str, refs: &[Option<TextRef>]) -> Result<ReadTexts, Error> {
        let workspace = parse(workspace)?;
        if refs.len() > MAX_REFS {
            return Err(Error::invalid("refs", "out_of_range", wording::at_most(MAX_REFS, Unit::Entries)));
        }
        let db = &self.context.db;
        let hashes: Vec<&str> = refs.iter().flatten().filter_map(TextRef::body).collect();
        let sizes: HashMap<String, u64> = match hashes.is_empty() {
            true => HashMap::new(),
            false => store::tree::sizes(db, workspace, &hashes).await?.into_iter().collect(),
        };
        let (records, databases) = self.rendered_from(workspace, refs).await?;

        let mut texts = Vec::with_capacity(refs.len());
        let mut stored = Vec::new();
        let mut bytes = 0_u64;
        let mut read = 0;
        for (place, reference) in refs.iter().enumerate() {
            if bytes > MAX_BYTES {
                break;
            }
            read += 1;
            match reference {
                Some(TextRef::Body(hash)) => {
                    if let Some(size) = sizes.get(hash) {
                        bytes += size;
                        stored.push((place, hash.as_str()));
                    }
                }
                Some(other) => {
                    if let Some(text) = other.render(&records, &databases) {
                        bytes += text.len() as u64;
                        let hash = content_hash(&text);
                        texts.push((place, text, hash));
                    }
                }
                None => {}
            }
        }
        texts.extend(self.bodies(workspace, &stored).await?);
        Ok(ReadTexts { texts, read })
    }

    async fn rendered_from(
        &self,
        workspace: cairn_proto::ids::WorkspaceId,
        refs: &[Option<TextRef>],
    ) -> Result<(HashMap<RecordId, Record>, HashMap<DatabaseId, Database>), Error> {
        let named: Vec<DocumentId> = refs.iter().flatten().filter_map(TextRef::record).collect();
        let mut databases: Vec<DatabaseId> = refs.iter().flatten().filter_map(TextRef::database).collect();
        if named.is_empty() && databases.is_empty() {
            return Ok((HashMap::new(), HashMap::new()));
        }
        let mut tx = self.context.db.begin_read().await?;
        let mut records = HashMap::new();
        if !named.is_empty() {
            for record in store::tree::records(&mut tx, workspace, TreeSelection::Some(&named)).await? {
                databases.push(record.database_id);
                records.insert(record.id, record);
            }
        }
        let found = store::databases::get_many(tx.engine(), workspace, &databases).await?;
        tx.rollback().await?;
        Ok((records, found.into_iter().map(|database| (database.id, database)).collect()))
    }

    async fn bodies(
        &self,
        workspace: cairn_proto::ids::WorkspaceId,
        wanted: &[(usize, &str)],
    ) -> Result<Vec<(usize, String, String)>, Error> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<&str> = wanted.iter().map(|(_, hash)| *hash).collect();
        let found = store::bodies::get_many(&self.context.db, workspace, &hashes).await?;
        let mut by_hash = HashMap::with_capacity(found.len());
        for body in found {
            by_hash.insert(body.hash.clone(), Body::into_text(body)?);
        }
        let text = |(place, hash): &(usize, &str)| {
            by_hash.get(*hash).map(|text| (*place, text.clone(), (*hash).to_owned()))
        };
        Ok(wanted.iter().filter_map(text).collect())
    }
}

impl TextRef {
    fn body(&self) -> Option<&str> {
        match self {
            Self::Body(hash) => Some(hash),
            Self::FrontMatter { .. } | Self::Schema(_) => None,
        }
    }

    fn record(&self) -> Option<DocumentId> {
        match self {
            Self::FrontMatter { record, .. } => Some(DocumentId(record.0)),
            Self::Body(_) | Self::Schema(_) => None,
        }
    }

    fn database(&self) -> Option<DatabaseId> {
        match self {
            Self::Schema(id) => Some(*id),
            Self::Body(_) | Self::FrontMatter { .. } => None,
        }
    }

    /// Renders a text that is not a body.
    fn render(
        &self,
        records: &HashMap<RecordId, Record>,
        databases: &HashMap<DatabaseId, Database>,
    ) -> Option<String> {
        match self {
            Self::Body(_) => None,
            Self::FrontMatter { record, has_references } => {
                let record = records.get(record)?;
                let database = databases.get(&record.database_id)?;
                Some(match has_references {
                    true => front_matter::whole(database, &record.values),
                    false => front_matter::without_references(database, &record.values),
                })
            }
            Self::Schema(id) => databases.get(id).map(schema::text),
        }
    }
}

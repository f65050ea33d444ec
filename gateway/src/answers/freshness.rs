//! The age of retrieved documents and of their folders.

use std::collections::BTreeMap;

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::DocumentKind;
use cairn_proto::retrieval::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, optional_time, time};

const DAY_SECONDS: u64 = 24 * 3600;
/// Upper bounds of the age classes in days; the last class is open.
pub(crate) const CLASSES: [u64; 4] = [7, 30, 90, 365];

/// What was found in the last days, and when it was changed last.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Freshness {
    #[schema(format = DateTime)]
    pub(crate) generated_at: String,
    /// What is old and much used comes first.
    pub(crate) folders: Vec<FreshnessOfFolder>,
    /// The 500 that most retrievals returned, the most first.
    pub(crate) documents: Vec<CitedDocument>,
}

/// A folder, by what of it was found.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FreshnessOfFolder {
    /// Where it stands; `/` is the root.
    pub(crate) path: String,
    /// Documents of it that were found.
    pub(crate) document_count: u64,
    /// Retrievals that returned a piece of one.
    pub(crate) retrieval_count: u64,
    /// How old what was found was, in days, each retrieval counted.
    pub(crate) age_days: u64,
    #[schema(format = DateTime)]
    pub(crate) oldest_updated_at: String,
    /// Retrievals by the age of what they returned: at most 7, 30, 90, 365 days, older.
    pub(crate) retrievals_by_age: [u64; CLASSES.len() + 1],
}

/// A document that was found and lives.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CitedDocument {
    pub(crate) kind: DocumentKind,
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) url: String,
    /// Retrievals that returned a piece of it.
    pub(crate) retrieval_count: u64,
    /// When it was changed last; null where nobody knows.
    #[schema(required = true, format = DateTime)]
    pub(crate) updated_at: Option<String>,
}

#[derive(Default)]
struct Sum {
    documents: u64,
    retrievals: u64,
    /// Days, each retrieval counted.
    days: u64,
    oldest: Option<Timestamp>,
    by_age: [u64; CLASSES.len() + 1],
}

impl Freshness {
    pub(crate) fn read(answer: proto::GetFreshnessResponse, links: &Links) -> Self {
        let now = answer.generated_at.as_ref().map_or(Timestamp::from_seconds(0), Timestamp::from_proto);
        let mut folders: BTreeMap<String, Sum> = BTreeMap::new();
        for document in &answer.documents {
            let Some(at) = document.updated_at.as_ref().map(Timestamp::from_proto) else { continue };
            folders.entry(folder_of(&document.path)).or_default().add(document.retrievals, at, now);
        }
        let mut folders: Vec<FreshnessOfFolder> =
            folders.into_iter().map(|(path, sum)| sum.folder(path)).collect();
        folders
            .sort_by_key(|folder| std::cmp::Reverse(folder.retrieval_count.saturating_mul(folder.age_days)));
        let documents = answer.documents.into_iter().map(|document| CitedDocument {
            kind: DocumentKind::from_number(document.kind).unwrap_or_default(),
            url: links.to(&document.url),
            updated_at: optional_time(document.updated_at.as_ref()),
            id: document.id,
            title: document.title,
            path: document.path,
            retrieval_count: document.retrievals,
        });
        Self { generated_at: time(answer.generated_at.as_ref()), folders, documents: documents.collect() }
    }
}

impl Sum {
    fn add(&mut self, retrievals: u64, at: Timestamp, now: Timestamp) {
        let days = now.since(at).as_secs() / DAY_SECONDS;
        self.documents += 1;
        self.retrievals = self.retrievals.saturating_add(retrievals);
        self.days = self.days.saturating_add(days.saturating_mul(retrievals));
        self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        let class = CLASSES.iter().position(|most| days <= *most).unwrap_or(CLASSES.len());
        if let Some(count) = self.by_age.get_mut(class) {
            *count = count.saturating_add(retrievals);
        }
    }

    fn folder(self, path: String) -> FreshnessOfFolder {
        FreshnessOfFolder {
            path,
            document_count: self.documents,
            retrieval_count: self.retrievals,
            age_days: self.days / self.retrievals.max(1),
            oldest_updated_at: self.oldest.map(Timestamp::to_rfc3339).unwrap_or_default(),
            retrievals_by_age: self.by_age,
        }
    }
}

/// The folder of a path.
fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_and_much_used_comes_first() {
        let now = 1_800_000_000_i64;
        let document = |path: &str, retrievals, days: i64| proto::CitedDocument {
            path: path.to_owned(),
            retrievals,
            updated_at: Some(prost_types::Timestamp { seconds: now - days * 24 * 3600, nanos: 0 }),
            ..proto::CitedDocument::default()
        };
        let answer = proto::GetFreshnessResponse {
            documents: vec![
                document("/new/a.md", 100, 1),
                document("/old/b.md", 10, 400),
                document("/old/c.md", 30, 20),
                document("/root.md", 1, 8),
                proto::CitedDocument { path: "/unknown/x".to_owned(), retrievals: 9, ..Default::default() },
            ],
            generated_at: Some(prost_types::Timestamp { seconds: now, nanos: 0 }),
        };
        let freshness = Freshness::read(answer, &Links::new(None));
        let told: Vec<_> = freshness
            .folders
            .iter()
            .map(|folder| (folder.path.as_str(), folder.retrieval_count, folder.age_days))
            .collect();
        assert_eq!(told, [("/old", 40, 115), ("/new", 100, 1), ("/", 1, 8)]);
        assert_eq!(freshness.folders[0].retrievals_by_age, [0, 30, 0, 0, 10]);
        assert_eq!((freshness.documents.len(), &freshness.documents[4].updated_at), (5, &None));
        assert_eq!(folder_of("x"), "/");
    }
}

//! The names of containers: a document is found by the names of its ancestors (folders, a record's database), which are not indexed with
//! its chunks.
//!
//! Instead, a chunk has one token for its nearest container. A search that contains words of a name also looks for the tokens of the
//! containers with that name and of all their descendants, so that renaming or moving a container requires no reindexing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use super::analysed::spellings;
use super::{Languages, Word, split};

/// The weight of a word in the name of an ancestor relative to one in the chunk: a folder says less about a passage than the passage
/// itself.
const NAME_ABOVE_WEIGHT: f32 = 0.5;

/// The maximum number of containers that the words of a search, and each phrase or exclusion, expand to: those with the name first, then
/// their descendants.
const MAX_CONTAINERS: usize = 256;

/// The maximum number of words of a search that are matched with names.
const MAX_EXPANDED_WORDS: usize = 32;

/// The first character of the token of a container, which occurs in no word of a text.
const SIGIL: char = '/';

/// The token of a container.
pub(super) fn word_of(container: Uuid) -> String {
    format!("{SIGIL}{}", container.simple())
}

/// A container with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The container.
    pub id: Uuid,
    /// Its parent, if any.
    pub parent: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// Whether it is a holder within its parent ([`IndexedDocument::holder`](crate::IndexedDocument::holder)): it is searched
    /// where its parent is.
    pub is_holder: bool,
}

impl Container {
    /// The container that the filters of a search are compared with; `None` at the root.
    fn searched_as(&self) -> Option<Uuid> {
        if self.is_holder { self.parent } else { Some(self.id) }
    }
}

/// A snapshot of the names of a workspace's containers.
#[derive(Debug, Default)]
pub struct ContainerNames {
    containers: Vec<Container>,
    /// Indices of the children of each container.
    children: HashMap<Uuid, Vec<usize>>,
    /// The index of names for the last requested languages, which seldom change.
    cache: Mutex<Option<(Languages, Arc<Named>)>>,
}

/// Indices of the containers whose own names contain a form of a word.
type Named = HashMap<String, Vec<usize>>;

impl ContainerNames {
    /// The names of these containers.
    pub fn new(containers: Vec<Container>) -> Self {
        let mut children: HashMap<Uuid, Vec<usize>> = HashMap::new();
        for (place, container) in containers.iter().enumerate() {
            if let Some(parent) = container.parent {
                children.entry(parent).or_default().push(place);
            }
        }
        Self { containers, children, cache: Mutex::default() }
    }

    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.containers.iter().map(|container| 256 + 8 * container.name.len()).sum()
    }

    fn named(&self, languages: Languages) -> Arc<Named> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, named)) = cache.as_ref()
            && *of == languages
        {
            return Arc::clone(named);
        }
        let mut known: HashMap<String, Vec<String>> = HashMap::new();
        let mut named = Named::new();
        for (place, container) in self.containers.iter().enumerate() {
            for word in split(&container.name) {
                let forms = known.entry(word.text).or_insert_with_key(|word| forms_of(word, languages));
                for form in forms.iter() {
                    let places = named.entry(form.clone()).or_default();
                    if places.last() != Some(&place) {
                        places.push(place);
                    }
                }
            }
        }
        let named = Arc::new(named);
        *cache = Some((languages, Arc::clone(&named)));
        named
    }

    /// These containers and all their descendants, in breadth-first order.
    fn with_descendants(&self, places: impl IntoIterator<Item = usize>) -> Vec<&Container> {
        let mut found: Vec<usize> = Vec::new();
        let mut known: HashSet<usize> = HashSet::new();
        found.extend(places.into_iter().filter(|place| known.insert(*place)));
        let mut next = 0;
        let mut containers = Vec::with_capacity(found.len());
        while let Some(container) = found.get(next).and_then(|place| self.containers.get(*place)) {
            containers.push(container);
            let children = self.children.get(&container.id).into_iter().flatten().copied();
            found.extend(children.filter(|place| known.insert(*place)));
            next += 1;
        }
        containers
    }

    /// How many containers a search restricted to these ones searches.
    fn count_within(&self, searched: &HashSet<Uuid>) -> usize {
        let holders = self.containers.iter().filter(|container| container.is_holder);
        searched.len() + holders.filter(|holder| is_within(holder, searched)).count()
    }

    /// Whether the name of a container contains a token sequence, each token in one of the languages.
    fn holds_row(&self, place: usize, row: &[(u32, String)], languages: Languages) -> bool {
        let Some(container) = self.containers.get(place) else { return false };
        let words = split(&container.name);
        let mut held: HashSet<(u32, String)> = HashSet::new();
        for word in &words {
            held.extend(forms_of(&word.text, languages).into_iter().map(|form| (word.position, form)));
        }
        words.iter().map(|word| word.position).any(|begin| {
            row.iter().all(|(place, word)| held.contains(&(begin.saturating_add(*place), word.clone())))
        })
    }
}

fn is_within(container: &Container, searched: &HashSet<Uuid>) -> bool {
    container.searched_as().is_some_and(|id| searched.contains(&id))
}

fn forms_of(word: &str, languages: Languages) -> Vec<String> {
    spellings(word, languages).into_iter().map(|(form, _)| form).collect()
}

/// The names of the containers that a search covers. Others, which the caller may not see, have no influence.
#[derive(Debug, Clone)]
pub(crate) struct ContainerExpansion {
    names: Arc<ContainerNames>,
    searched: Option<Arc<HashSet<Uuid>>>,
    /// How many containers are searched.
    all: usize,
}

impl PartialEq for ContainerExpansion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.names, &other.names) && self.searched == other.searched
    }
}

impl Eq for ContainerExpansion {}

impl ContainerExpansion {
    pub(crate) fn new(names: Arc<ContainerNames>, searched: Option<Arc<HashSet<Uuid>>>) -> Self {
        let all = match &searched {
            Some(searched) => names.count_within(searched),
            None => names.containers.len(),
        };
        Self { names, searched, all }
    }

    /// The container tokens that the words of a query expand to, with their weights.
    pub(super) fn words(&self, words: &[&Word], languages: Languages) -> Vec<(String, f32)> {
        let mut weights: HashMap<Uuid, f32> = HashMap::new();
        for word in words.iter().take(MAX_EXPANDED_WORDS) {
            let found = self.containers_with(&forms_of(&word.text, languages), languages);
            let weight = NAME_ABOVE_WEIGHT * self.selectivity(found.len());
            for container in found {
                *weights.entry(container).or_default() += weight;
            }
        }
        let mut weights: Vec<(Uuid, f32)> = weights.into_iter().collect();
        weights.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        weights.truncate(MAX_CONTAINERS);
        weights.into_iter().map(|(container, weight)| (word_of(container), weight)).collect()
    }

    /// The container tokens that a word with these forms expands to.
    pub(super) fn whole(&self, forms: &[String], languages: Languages) -> Vec<String> {
        self.containers_with(forms, languages).into_iter().take(MAX_CONTAINERS).map(word_of).collect()
    }

    /// The container tokens that a phrase expands to: those whose name, or that of an ancestor, contains one of its token sequences.
    pub(super) fn rows(&self, rows: &[Vec<(u32, String)>], languages: Languages) -> Vec<String> {
        let named = self.names.named(languages);
        let mut places: Vec<usize> = Vec::new();
        for row in rows {
            let Some((_, first)) = row.first() else { continue };
            let holds = |place: &usize| self.names.holds_row(*place, row, languages);
            places.extend(named.get(first).into_iter().flatten().copied().filter(holds));
        }
        self.searched_descendants(places).take(MAX_CONTAINERS).map(word_of).collect()
    }

    /// The searched containers whose name, or that of an ancestor, contains one of the forms, in breadth-first order.
    fn containers_with(&self, forms: &[String], languages: Languages) -> Vec<Uuid> {
        let named = self.names.named(languages);
        let places = forms.iter().filter_map(|form| named.get(form)).flatten().copied();
        self.searched_descendants(places).collect()
    }

    /// The searched ones of these containers and their descendants, in breadth-first order.
    fn searched_descendants(&self, places: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Uuid> {
        let is_searched = move |container: &&Container| {
            self.searched.as_ref().is_none_or(|searched| is_within(container, searched))
        };
        self.names.with_descendants(places).into_iter().filter(is_searched).map(|container| container.id)
    }

    /// The selectivity of a word that matches `found` of the searched containers, 0 to 1, like an idf: close to 0 if it matches all.
    fn selectivity(&self, found: usize) -> f32 {
        let all = self.all.max(found).max(1) as f32;
        (all / found.max(1) as f32).ln_1p() / all.ln_1p()
    }
}

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    fn container(id: u128, parent: Option<u128>, name: &str) -> Container {
        let (id, parent) = (Uuid::from_u128(id), parent.map(Uuid::from_u128));
        Container { id, parent, name: name.to_owned(), is_holder: false }
    }

    fn expansion(searched: Option<&[u128]>) -> ContainerExpansion {
        let names = ContainerNames::new(vec![
            container(1, None, "Finance policies"),
            container(2, Some(1), "Travel"),
            container(3, None, "Engineering"),
            container(4, Some(3), "finance-bot"),
            // A missing parent is treated as the root, and a cycle ends.
            container(5, Some(99), "Lost"),
            container(6, Some(6), "Loop"),
        ]);
        let searched = searched.map(|ids| Arc::new(ids.iter().copied().map(Uuid::from_u128).collect()));
        ContainerExpansion::new(Arc::new(names), searched)
    }

    fn found(expansion: &ContainerExpansion, text: &str) -> Vec<u128> {
        let words = split(text);
        let found = expansion.words(&words.iter().collect::<Vec<_>>(), Languages::from(Language::English));
        let id = |word: &str| Uuid::try_parse(word.trim_start_matches(SIGIL)).unwrap().as_u128();
        let mut found: Vec<u128> = found.iter().map(|(word, _)| id(word)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_word_expands_to_containers_with_that_name_and_their_descendants() {
        let expansion = expansion(None);
        assert_eq!(found(&expansion, "policy"), [1, 2]);
        assert_eq!(found(&expansion, "finances"), [1, 2, 4]);
        assert_eq!(found(&expansion, "travelling"), [2]);
        assert_eq!(found(&expansion, "financebot"), [4]);
        assert_eq!((found(&expansion, "lost"), found(&expansion, "loop")), (vec![5], vec![6]));
        assert_eq!(found(&expansion, "nothing"), Vec::<u128>::new());
    }

    #[test]
    fn what_is_not_searched_counts_nowhere() {
        let scoped = expansion(Some(&[2]));
        assert_eq!(found(&scoped, "finance"), [2]);
        assert!((scoped.selectivity(1) - 1.0).abs() < 1e-6);
        let all = expansion(None);
        assert!(
            (all.selectivity(1) - 1.0).abs() < 1e-6
                && all.selectivity(6) < 0.4
                && all.selectivity(3) < all.selectivity(2)
        );
    }

    #[test]
    fn a_holder_is_searched_where_its_parent_is() {
        let holder = |id, parent, name| Container { is_holder: true, ..container(id, parent, name) };
        let names = vec![
            container(1, None, "Finance"),
            container(2, None, "Engineering"),
            holder(3, Some(1), "Invoices"),
            holder(4, Some(2), "Invoices"),
            holder(5, None, "Invoices"),
        ];
        let names = Arc::new(ContainerNames::new(names));
        let expansion = |searched: &[u128]| {
            let searched = searched.iter().copied().map(Uuid::from_u128).collect();
            ContainerExpansion::new(Arc::clone(&names), Some(Arc::new(searched)))
        };
        assert_eq!(found(&ContainerExpansion::new(Arc::clone(&names), None), "invoice"), [3, 4, 5]);
        assert_eq!(found(&expansion(&[1]), "invoice"), [3]);
        assert_eq!(found(&expansion(&[1]), "finance"), [1, 3]);
        assert_eq!(found(&expansion(&[3]), "invoice"), Vec::<u128>::new());
        assert_eq!((expansion(&[1]).all, expansion(&[1, 2]).all), (2, 4));
    }

    #[test]
    fn a_phrase_stands_in_a_row_in_a_name() {
        let expansion = expansion(None);
        let rows = |words: &[&str]| {
            let row = (0_u32..).zip(words).map(|(place, word)| (place, (*word).to_owned())).collect();
            expansion.rows(&[row], Languages::from(Language::English)).len()
        };
        assert_eq!(rows(&["financ", "polici"]), 2);
        assert_eq!(rows(&["polici", "financ"]), 0);
        assert_eq!(rows(&["financ"]), 3);
        assert_eq!(rows(&[]), 0);
    }
}

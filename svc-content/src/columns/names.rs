//! The names of a workspace's live files in memory, with substring search.
//!
//! Names are stored case-folded, with a substring index (`index.rs`), so that a search scans few of them. Results of slow
//! searches are cached and kept up to date with the names. Results are ranked as the engine ranks them: exact matches, prefix
//! matches, all others; each group by name, then by id.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_proto::ids::{FileId, FolderId, WorkspaceId};
use uuid::Uuid;

use super::bitmap::Bitmap;
use super::blocks::Blocks;
use super::cache::Cacheable;
use super::name_match_cache::{NameMatchCache, NameMatches};
use super::order::Order;
use super::texts::Texts;

/// The folder number of files in the root.
const ROOT: u32 = 0;
/// Up to this many matches are sorted; with more, the sorted order of all rows is scanned until the page is full.
const MAX_SORTED_ROWS: u64 = 4_096;
/// Below this many names a scan is cheaper than a cache of results.
const MIN_CACHED_NAMES: usize = 16_384;
/// The index hardly narrows a search for a shorter text.
const MIN_QUERY_BYTES: usize = 3;

/// The name and folder of a file as of a position of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: FileId,
    /// Absent for the root.
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    /// The name case-folded by [`fold`](crate::model::fold), which searches compare with.
    pub(crate) folded: String,
}

/// A file that has changed. One that moved to trash is a delete.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Upsert(Named),
    Delete(FileId),
}

/// A search for files by name.
#[derive(Debug, Clone)]
pub(crate) struct NameQuery {
    /// The case-folded text that names must contain; not empty.
    pub(crate) folded: String,
    /// Restricts the search to files in these folders; absent searches everywhere.
    pub(crate) folders: Option<Vec<FolderId>>,
    /// The maximum number of results.
    pub(crate) limit: usize,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameSearchResult {
    /// The best matches, at most `limit`.
    pub(crate) ids: Vec<FileId>,
    /// How many files match.
    pub(crate) total: u64,
}

/// A snapshot of the names of a workspace at one position of its feed.
#[derive(Debug)]
pub(crate) struct Names {
    position: u64,
    ids: Vec<u128>,
    /// The folder number of each file, [`ROOT`] for none.
    folder_numbers: Vec<u32>,
    /// The numbers, from 1 on, of all folders that have ever held a file.
    folders: HashMap<FolderId, u32>,
    /// The original names where they differ from the folded ones.
    original: Blocks<u8>,
    folded: Texts,
    live: Bitmap,
    /// Rows of deleted files, to be reused.
    free: Vec<u32>,
    by_id: Order,
    by_name: Order,
    match_cache: Mutex<NameMatchCache>,
}

impl Cacheable for Names {
    type Key = WorkspaceId;

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

impl Names {
    /// An empty snapshot as of a position.
    pub(crate) fn new(position: u64) -> Self {
        Self {
            position,
            ids: Vec::new(),
            folder_numbers: Vec::new(),
            folders: HashMap::new(),
            original: Blocks::default(),
            folded: Texts::of_words(),
            live: Bitmap::default(),
            free: Vec::new(),
            by_id: Order::default(),
            by_name: Order::default(),
            match_cache: Mutex::default(),
        }
    }

    /// The position of the feed that the snapshot is as of.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// Appends files during the initial load; none may be present already.
    pub(crate) fn fill(&mut self, files: &[Named]) {
        for file in files {
            let row = self.next_row();
            self.write(row, file);
        }
    }

    /// Builds the orders and the index, once all rows are loaded.
    pub(crate) fn build_indexes(&mut self) {
        let mut rows: Vec<u32> = self.live.rows().collect();
        rows.sort_unstable_by_key(|row| self.id(*row));
        self.by_id = Order::from_sorted(&rows);
        rows.sort_unstable_by(|one, other| self.by_name(*one, *other));
        self.by_name = Order::from_sorted(&rows);
        self.folded.update_index();
    }

    /// Applies changes up to a later position.
    pub(crate) fn apply(&mut self, changes: &[NameChange], position: u64) {
        for change in changes {
            let id = match change {
                NameChange::Upsert(file) => file.id,
                NameChange::Delete(id) => *id,
            };
            let existing = self.row_of(id);
            if let Some(row) = existing {
                self.each_order(row, |order, to| order.remove(row, to));
            }
            match change {
                NameChange::Upsert(file) => {
                    let row = existing.or_else(|| self.free.pop()).unwrap_or_else(|| self.next_row());
                    self.write(row, file);
                    self.each_order(row, |order, to| order.insert(row, to));
                    self.update_match_cache(row);
                }
                NameChange::Delete(_) => {
                    if let Some(row) = existing {
                        self.original.set(row, &[]);
                        self.folded.set(row, "");
                        self.live.remove(row);
                        self.free.push(row);
                        self.update_match_cache(row);
                    }
                }
            }
        }
        self.folded.update_index();
        self.position = position;
    }

    /// The files whose names contain a text: the best matches, and the total.
    pub(crate) fn search(&self, query: &NameQuery) -> NameSearchResult {
        let matches = self.matches(&query.folded);
        let matches = match &query.folders {
            Some(folders) => Arc::new(self.within(&matches, folders)),
            None => matches,
        };
        let mut rows = Vec::new();
        for group in matches.groups() {
            self.take_first(group, query.limit, &mut rows);
        }
        let ids = rows.into_iter().map(|row| FileId(Uuid::from_u128(self.id(row)))).collect();
        NameSearchResult { ids, total: matches.total() }
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        const FOLDER: usize = size_of::<(FolderId, u32)>() + 1;
        let rows =
            self.ids.capacity() * size_of::<u128>() + self.folder_numbers.capacity() * size_of::<u32>();
        let texts = self.original.bytes() + self.folded.bytes();
        let orders = self.by_id.bytes() + self.by_name.bytes();
        // The cache counts at its maximum, so that answering searches does not exceed the budget later.
        let match_cache = if self.is_caching() { NameMatchCache::max_bytes(self.live.bytes()) } else { 0 };
        rows + texts + orders + match_cache + self.live.bytes() + self.folders.capacity() * FOLDER
    }

    /// The rows whose names contain a text.
    fn matches(&self, text: &str) -> Arc<NameMatches> {
        let cache = || self.match_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(matches) = cache().get(text) {
            return matches;
        }
        let matching = self.folded.matching(text, &self.live);
        let is_slow = text.len() < MIN_QUERY_BYTES || matching.count() > MAX_SORTED_ROWS;
        let matches = Arc::new(NameMatches::of(matching, text.as_bytes(), |row| self.folded.text(row)));
        if is_slow && self.is_caching() {
            cache().insert(text, &matches);
        }
        matches
    }

    fn is_caching(&self) -> bool {
        self.len() >= MIN_CACHED_NAMES
    }

    /// Updates the cached matches for a changed row.
    fn update_match_cache(&mut self, row: u32) {
        let name = self.live.contains(row).then(|| self.folded.text(row));
        self.match_cache.get_mut().unwrap_or_else(PoisonError::into_inner).update(row, name);
    }

    fn next_row(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    fn write(&mut self, row: u32, file: &Named) {
        let place = row as usize;
        if place >= self.ids.len() {
            self.ids.resize(place + 1, 0);
            self.folder_numbers.resize(place + 1, ROOT);
        }
        let folder = file.folder_id.map_or(ROOT, |folder| self.number_of(folder));
        if let (Some(id), Some(number)) = (self.ids.get_mut(place), self.folder_numbers.get_mut(place)) {
            (*id, *number) = (file.id.0.as_u128(), folder);
        }
        let original = if file.name == file.folded { "" } else { file.name.as_str() };
        self.original.set(row, original.as_bytes());
        self.folded.set(row, &file.folded);
        self.live.add(row);
    }

    fn number_of(&mut self, folder: FolderId) -> u32 {
        let next = u32::try_from(self.folders.len() + 1).unwrap_or(u32::MAX);
        *self.folders.entry(folder).or_insert(next)
    }

    /// The matches that are in one of these folders.
    fn within(&self, matches: &NameMatches, folders: &[FolderId]) -> NameMatches {
        let mut is_wanted = vec![false; self.folders.len() + 1];
        for number in folders.iter().filter_map(|folder| self.folders.get(folder)) {
            if let Some(is_wanted) = is_wanted.get_mut(*number as usize) {
                *is_wanted = true;
            }
        }
        matches.filter(|row| {
            let folder = self.folder_numbers.get(row as usize).copied().unwrap_or(ROOT);
            is_wanted.get(folder as usize) == Some(&true)
        })
    }

    /// Appends the first rows of a group by name and id, until there are `limit`.
    fn take_first(&self, group: &Bitmap, limit: usize, into: &mut Vec<u32>) {
        let wanted = limit.saturating_sub(into.len());
        if wanted == 0 {
            return;
        }
        if group.count() > MAX_SORTED_ROWS {
            into.extend(self.by_name.rows().filter(|row| group.contains(*row)).take(wanted));
            return;
        }
        let mut rows: Vec<u32> = group.rows().collect();
        rows.sort_unstable_by(|one, other| self.by_name(*one, *other));
        rows.truncate(wanted);
        into.extend(rows);
    }

    /// Calls `act` with each order, and with a function that compares another row with this one.
    fn each_order(&mut self, row: u32, act: impl Fn(&mut Order, &dyn Fn(u32) -> Ordering)) {
        let mut by_id = mem::take(&mut self.by_id);
        act(&mut by_id, &|other| self.id(other).cmp(&self.id(row)));
        self.by_id = by_id;
        let mut by_name = mem::take(&mut self.by_name);
        act(&mut by_name, &|other| self.by_name(other, row));
        self.by_name = by_name;
    }

    fn id(&self, row: u32) -> u128 {
        self.ids.get(row as usize).copied().unwrap_or_default()
    }

    fn row_of(&self, id: FileId) -> Option<u32> {
        let wanted = id.0.as_u128();
        let row = self.by_id.first_from(|row| self.id(row).cmp(&wanted)).next()?;
        (self.id(row) == wanted).then_some(row)
    }

    /// The original name, which is never empty.
    fn name(&self, row: u32) -> &[u8] {
        match self.original.list(row) {
            [] => self.folded.text(row),
            original => original,
        }
    }

    fn by_name(&self, one: u32, other: u32) -> Ordering {
        self.name(one).cmp(self.name(other)).then_with(|| self.id(one).cmp(&self.id(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fold;

    /// Enough for an index, and for results to be taken by a scan of the sorted order.
    const MANY: usize = 18_000;

    fn named(number: usize, name: &str) -> Named {
        let folder_id = (!number.is_multiple_of(3)).then(|| FolderId(Uuid::from_u128(number as u128 % 5)));
        let id = FileId(Uuid::from_u128((number as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Named { id, folder_id, name: name.to_owned(), folded: fold(name) }
    }

    /// The ranking key of a result.
    fn key<'a>(file: &'a Named, folded: &str) -> (u8, &'a str, u128) {
        let place = match (file.folded == folded, file.folded.starts_with(folded)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        (place, &file.name, file.id.0.as_u128())
    }

    /// The model: a linear search.
    fn scan(files: &[Named], wanted: &NameQuery) -> NameSearchResult {
        let is_in = |file: &Named| match &wanted.folders {
            None => true,
            Some(folders) => file.folder_id.is_some_and(|folder| folders.contains(&folder)),
        };
        let mut found: Vec<&Named> =
            files.iter().filter(|file| is_in(file) && file.folded.contains(&wanted.folded)).collect();
        found.sort_by(|one, other| key(one, &wanted.folded).cmp(&key(other, &wanted.folded)));
        let total = found.len() as u64;
        NameSearchResult { ids: found.into_iter().take(wanted.limit).map(|file| file.id).collect(), total }
    }

    #[track_caller]
    fn assert_found(names: &Names, files: &[Named]) {
        let some = || Some(vec![FolderId(Uuid::from_u128(1)), FolderId(Uuid::from_u128(77))]);
        let parts = [
            "e",
            "st",
            "note 17",
            "NOTE 1",
            "1",
            ".md",
            "straße",
            "SS",
            "ß",
            "zebra",
            "9",
            "readme.md",
            "note",
        ];
        for (part, folders) in
            parts.iter().flat_map(|part| [(part, None), (part, some()), (part, Some(vec![]))])
        {
            let wanted = NameQuery { folded: fold(part), folders, limit: 12 };
            assert_eq!(names.search(&wanted), scan(files, &wanted), "{wanted:?}");
        }
    }

    #[test]
    fn many_names_are_found_as_by_a_look_at_each() {
        let name = |number: usize| match number % 1_000 {
            7 => "Straße.md".to_owned(),
            8 => "README.md".to_owned(),
            9 => "readme.md".to_owned(),
            _ => format!("{} {number}.md", if number.is_multiple_of(2) { "Note" } else { "note" }),
        };
        let mut files: Vec<Named> = (0..MANY).map(|number| named(number, &name(number))).collect();
        let mut names = Names::new(3);
        let (first, last) = files.split_at(MANY / 2);
        names.fill(last);
        names.fill(first);
        names.build_indexes();
        assert_eq!((names.len(), names.position()), (MANY, 3));
        assert_found(&names, &files);

        let mut changes = Vec::new();
        for number in (0..MANY).step_by(97) {
            let is_gone = number.is_multiple_of(2);
            let changed = named(number, "A zebra of STRASSE 9");
            changes.push(match is_gone {
                true => NameChange::Delete(changed.id),
                false => NameChange::Upsert(changed.clone()),
            });
            files[number] = changed;
        }
        changes.extend((MANY..MANY + 300).map(|number| NameChange::Upsert(named(number, "new note 17"))));
        changes.push(NameChange::Delete(FileId(Uuid::from_u128(1))));
        files.extend((MANY..MANY + 300).map(|number| named(number, "new note 17")));
        let gone: Vec<FileId> = changes
            .iter()
            .filter_map(|change| match change {
                NameChange::Delete(id) => Some(*id),
                NameChange::Upsert(_) => None,
            })
            .collect();
        files.retain(|file| !gone.contains(&file.id));
        names.apply(&changes, 9);
        names.apply(&changes, 10);
        assert_eq!((names.len(), names.position()), (files.len(), 10), "to be told twice does no harm");
        assert_found(&names, &files);
        let bytes = names.bytes();
        assert!(bytes > MANY * size_of::<u128>() && bytes < MANY * 400, "{bytes}");
    }
}

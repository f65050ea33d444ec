//! The names of the live files of a workspace in memory: what finds those that hold a text without reading all of them.
//!
//! Names are kept folded, with an index of what stands in them (`index.rs`), so that few of them are read for a text. What
//! takes a look at most of them is remembered, and follows the changes as the names do. What is found is put in the order
//! that the engine has: names that are the text, names that begin with it, all others; each of them by name and then by id.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_proto::ids::{FileId, FolderId, WorkspaceId};
use uuid::Uuid;

use super::bits::Bits;
use super::blocks::Blocks;
use super::order::Order;
use super::remembered::{Remembered, Selected};
use super::shelf::Shelved;
use super::texts::Texts;

/// Where a file stands that is in no folder.
const ROOT: u32 = 0;
/// Of so many rows or fewer, all are put in order; of more, the order of all rows is walked until there are enough.
const FEW: u64 = 4_096;
/// Of fewer names, all are read sooner than it is worth to remember anything.
const REMEMBERED_FROM: usize = 16_384;
/// An index tells little of a text that has fewer bytes.
const SHORT: usize = 3;

/// What a file is called at a position, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: FileId,
    /// Absent for the root.
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) name: String,
    /// The name as it is compared, which [`fold`](crate::model::fold) makes of it.
    pub(crate) folded: String,
}

/// A file that has changed: what it is now, or that it is not live.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Is(Named),
    IsGone(FileId),
}

/// Which files are looked for.
#[derive(Debug, Clone)]
pub(crate) struct NamesWanted {
    /// What a folded name is to hold; not empty.
    pub(crate) folded: String,
    /// The folders in which they are to stand; everywhere when absent.
    pub(crate) folders: Option<Vec<FolderId>>,
    /// How many are wanted at most.
    pub(crate) limit: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first ones.
    pub(crate) ids: Vec<FileId>,
    /// How many there are.
    pub(crate) total: u64,
}

/// The names of a workspace as of one position of its feed.
#[derive(Debug)]
pub(crate) struct Names {
    position: u64,
    ids: Vec<u128>,
    /// The number of the folder in which a file stands, [`ROOT`] for none.
    places: Vec<u32>,
    /// Folders that a file has ever stood in, by their numbers from 1 on.
    folders: HashMap<FolderId, u32>,
    /// As they are written, where that is not as they are compared.
    written: Blocks<u8>,
    folded: Texts,
    live: Bits,
    /// Rows of files that are gone.
    free: Vec<u32>,
    by_id: Order,
    by_name: Order,
    remembered: Mutex<Remembered>,
}

impl Shelved for Names {
    type Key = WorkspaceId;

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

impl Names {
    /// None, as of a position.
    pub(crate) fn new(position: u64) -> Self {
        Self {
            position,
            ids: Vec::new(),
            places: Vec::new(),
            folders: HashMap::new(),
            written: Blocks::default(),
            folded: Texts::of_words(),
            live: Bits::default(),
            free: Vec::new(),
            by_id: Order::default(),
            by_name: Order::default(),
            remembered: Mutex::default(),
        }
    }

    /// Which position of the feed they are as of.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// Adds files that are not there, while the workspace is read for the first time.
    pub(crate) fn fill(&mut self, files: &[Named]) {
        for file in files {
            let row = self.next_row();
            self.write(row, file);
        }
    }

    /// Puts the rows in order, once all are there.
    pub(crate) fn put_in_order(&mut self) {
        let mut rows: Vec<u32> = self.live.rows().collect();
        rows.sort_unstable_by_key(|row| self.id(*row));
        self.by_id = Order::of_sorted(&rows);
        rows.sort_unstable_by(|one, other| self.by_name(*one, *other));
        self.by_name = Order::of_sorted(&rows);
        self.folded.index();
    }

    /// Makes names what they are at a later position.
    pub(crate) fn follow(&mut self, changes: &[NameChange], position: u64) {
        for change in changes {
            let id = match change {
                NameChange::Is(file) => file.id,
                NameChange::IsGone(id) => *id,
            };
            let known = self.row_of(id);
            if let Some(row) = known {
                self.each_order(row, |order, to| order.remove(row, to));
            }
            match change {
                NameChange::Is(file) => {
                    let row = known.or_else(|| self.free.pop()).unwrap_or_else(|| self.next_row());
                    self.write(row, file);
                    self.each_order(row, |order, to| order.insert(row, to));
                    self.tell_remembered(row);
                }
                NameChange::IsGone(_) => {
                    if let Some(row) = known {
                        self.written.set(row, &[]);
                        self.folded.set(row, "");
                        self.live.remove(row);
                        self.free.push(row);
                        self.tell_remembered(row);
                    }
                }
            }
        }
        self.folded.index();
        self.position = position;
    }

    /// The files whose names hold a text, the first ones and how many there are.
    pub(crate) fn search(&self, wanted: &NamesWanted) -> Found {
        let selected = self.selected(&wanted.folded);
        let selected = match &wanted.folders {
            Some(folders) => Arc::new(self.within(&selected, folders)),
            None => selected,
        };
        let mut rows = Vec::new();
        for group in selected.groups() {
            self.take_first(group, wanted.limit, &mut rows);
        }
        let ids = rows.into_iter().map(|row| FileId(Uuid::from_u128(self.id(row)))).collect();
        Found { ids, total: selected.total() }
    }

    /// What they take, about.
    pub(crate) fn bytes(&self) -> usize {
        const FOLDER: usize = size_of::<(FolderId, u32)>() + 1;
        let rows = self.ids.capacity() * size_of::<u128>() + self.places.capacity() * size_of::<u32>();
        let texts = self.written.bytes() + self.folded.bytes();
        let orders = self.by_id.bytes() + self.by_name.bytes();
        // Whether they are there already or not, so that names take no more once they are asked.
        let remembered = if self.is_remembering() { Remembered::most_bytes(self.live.bytes()) } else { 0 };
        rows + texts + orders + remembered + self.live.bytes() + self.folders.capacity() * FOLDER
    }

    /// The rows whose names hold a text.
    fn selected(&self, text: &str) -> Arc<Selected> {
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(selected) = remembered().get(text) {
            return selected;
        }
        let holding = self.folded.holding(text, &self.live);
        let is_slow = text.len() < SHORT || holding.count() > FEW;
        let selected = Arc::new(Selected::of(holding, text.as_bytes(), |row| self.folded.text(row)));
        if is_slow && self.is_remembering() {
            remembered().put(text, &selected);
        }
        selected
    }

    fn is_remembering(&self) -> bool {
        self.len() >= REMEMBERED_FROM
    }

    /// Tells what is remembered that a row has changed.
    fn tell_remembered(&mut self, row: u32) {
        let name = self.live.has(row).then(|| self.folded.text(row));
        self.remembered.get_mut().unwrap_or_else(PoisonError::into_inner).follow(row, name);
    }

    fn next_row(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    fn write(&mut self, row: u32, file: &Named) {
        let place = row as usize;
        if place >= self.ids.len() {
            self.ids.resize(place + 1, 0);
            self.places.resize(place + 1, ROOT);
        }
        let folder = file.folder_id.map_or(ROOT, |folder| self.number_of(folder));
        if let (Some(id), Some(stands)) = (self.ids.get_mut(place), self.places.get_mut(place)) {
            (*id, *stands) = (file.id.0.as_u128(), folder);
        }
        let written = if file.name == file.folded { "" } else { file.name.as_str() };
        self.written.set(row, written.as_bytes());
        self.folded.set(row, &file.folded);
        self.live.add(row);
    }

    fn number_of(&mut self, folder: FolderId) -> u32 {
        let next = u32::try_from(self.folders.len() + 1).unwrap_or(u32::MAX);
        *self.folders.entry(folder).or_insert(next)
    }

    /// Those of some rows that stand in one of these folders.
    fn within(&self, selected: &Selected, folders: &[FolderId]) -> Selected {
        let mut is_wanted = vec![false; self.folders.len() + 1];
        for number in folders.iter().filter_map(|folder| self.folders.get(folder)) {
            if let Some(is_wanted) = is_wanted.get_mut(*number as usize) {
                *is_wanted = true;
            }
        }
        selected.passing(|row| {
            let folder = self.places.get(row as usize).copied().unwrap_or(ROOT);
            is_wanted.get(folder as usize) == Some(&true)
        })
    }

    /// Adds the first of some rows, by name and id, until there are so many.
    fn take_first(&self, group: &Bits, limit: usize, into: &mut Vec<u32>) {
        let wanted = limit.saturating_sub(into.len());
        if wanted == 0 {
            return;
        }
        if group.count() > FEW {
            into.extend(self.by_name.rows().filter(|row| group.has(*row)).take(wanted));
            return;
        }
        let mut rows: Vec<u32> = group.rows().collect();
        rows.sort_unstable_by(|one, other| self.by_name(*one, *other));
        rows.truncate(wanted);
        into.extend(rows);
    }

    /// Does something with each order, which is told how another row compares with one.
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

    /// A name as it is written; none is empty.
    fn name(&self, row: u32) -> &[u8] {
        match self.written.list(row) {
            [] => self.folded.text(row),
            written => written,
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

    /// So many that signatures are kept, and that an order is walked.
    const MANY: usize = 18_000;

    fn named(number: usize, name: &str) -> Named {
        let folder_id = (!number.is_multiple_of(3)).then(|| FolderId(Uuid::from_u128(number as u128 % 5)));
        let id = FileId(Uuid::from_u128((number as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Named { id, folder_id, name: name.to_owned(), folded: fold(name) }
    }

    /// Where a file is in the order of what is found.
    fn key<'a>(file: &'a Named, folded: &str) -> (u8, &'a str, u128) {
        let place = match (file.folded == folded, file.folded.starts_with(folded)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        (place, &file.name, file.id.0.as_u128())
    }

    /// What a look at each of them finds.
    fn scan(files: &[Named], wanted: &NamesWanted) -> Found {
        let is_in = |file: &Named| match &wanted.folders {
            None => true,
            Some(folders) => file.folder_id.is_some_and(|folder| folders.contains(&folder)),
        };
        let mut found: Vec<&Named> =
            files.iter().filter(|file| is_in(file) && file.folded.contains(&wanted.folded)).collect();
        found.sort_by(|one, other| key(one, &wanted.folded).cmp(&key(other, &wanted.folded)));
        let total = found.len() as u64;
        Found { ids: found.into_iter().take(wanted.limit).map(|file| file.id).collect(), total }
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
            let wanted = NamesWanted { folded: fold(part), folders, limit: 12 };
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
        names.put_in_order();
        assert_eq!((names.len(), names.position()), (MANY, 3));
        assert_found(&names, &files);

        let mut changes = Vec::new();
        for number in (0..MANY).step_by(97) {
            let is_gone = number.is_multiple_of(2);
            let changed = named(number, "A zebra of STRASSE 9");
            changes.push(match is_gone {
                true => NameChange::IsGone(changed.id),
                false => NameChange::Is(changed.clone()),
            });
            files[number] = changed;
        }
        changes.extend((MANY..MANY + 300).map(|number| NameChange::Is(named(number, "new note 17"))));
        changes.push(NameChange::IsGone(FileId(Uuid::from_u128(1))));
        files.extend((MANY..MANY + 300).map(|number| named(number, "new note 17")));
        let gone: Vec<FileId> = changes
            .iter()
            .filter_map(|change| match change {
                NameChange::IsGone(id) => Some(*id),
                NameChange::Is(_) => None,
            })
            .collect();
        files.retain(|file| !gone.contains(&file.id));
        names.follow(&changes, 9);
        names.follow(&changes, 10);
        assert_eq!((names.len(), names.position()), (files.len(), 10), "to be told twice does no harm");
        assert_found(&names, &files);
        let bytes = names.bytes();
        assert!(bytes > MANY * size_of::<u128>() && bytes < MANY * 400, "{bytes}");
    }
}

//! Each step on the rules and on the model; what the model expects to be refused must be.

use super::*;
use crate::databases::properties::{OptionDraft, PropertyDraft, PropertyPatch, SettingsDraft};
use crate::databases::{self, Databases};
use crate::memories::{self, MemberDraft};
use crate::model::{MemberKind, PropertyType};
use crate::records::{self, Records};

struct On<'a> {
    bench: &'a Bench,
    caller: &'a Caller,
    databases: Databases,
    records: Records,
}

pub(super) async fn apply(bench: &Bench, caller: &Caller, model: &mut Model, step: &Step) {
    let on = On {
        bench,
        caller,
        databases: Databases::new(bench.context.clone()),
        records: Records::new(bench.context.clone()),
    };
    match step {
        Step::MakeFolder
        | Step::DeleteFolder(_)
        | Step::MakeTable { .. }
        | Step::MoveTable { .. }
        | Step::DeleteTable(_)
        | Step::RestoreTable(_)
        | Step::PurgeTable(_) => on.place(model, step).await,
        Step::AddField { .. } | Step::DeleteField { .. } | Step::KeepOptions { .. } => {
            on.field(model, step).await;
        }
        Step::MakeRecord { .. }
        | Step::ChangeRecord { .. }
        | Step::BringBackVersion { .. }
        | Step::DeleteRecord(_)
        | Step::RestoreRecord(_)
        | Step::PurgeRecord(_) => on.record(model, step).await,
        Step::Restore(place) => on.restore(model, *place).await,
        Step::Remove(place) => on.remove(model, *place).await,
        Step::MakeMemory { .. }
        | Step::NameMemory { .. }
        | Step::GiveSlug { .. }
        | Step::AddMembers { .. }
        | Step::MoveMember { .. }
        | Step::RemoveMember { .. }
        | Step::DeleteMemory(_) => on.memory(model, step).await,
    }
}

impl On<'_> {
    async fn place(&self, model: &mut Model, step: &Step) {
        let (caller, databases) = (self.caller, &self.databases);
        match *step {
            Step::MakeFolder => {
                let number = model.number();
                let draft = folder_draft(&number.to_string(), None);
                let id = self.bench.folders.create(caller, draft).await.unwrap().item.id;
                model.folders.insert(number, FolderModel { id, deleted: None });
            }
            Step::DeleteFolder(place) => {
                let Some(folder) = model.live_folder(place) else { return };
                let id = model.item(Kind::Folder, folder);
                self.bench.folders.delete(caller, &id).await.unwrap();
                let deletion = model.number();
                model.folders.get_mut(&folder).unwrap().deleted = Some(deletion);
                let inside =
                    |table: &&mut TableModel| table.folder == Some(folder) && table.deleted.is_none();
                for table in model.tables.values_mut().filter(inside) {
                    table.deleted = Some(deletion);
                }
                model.trash.insert(deletion, (Kind::Folder, folder));
            }
            Step::MakeTable { folder } => {
                let folder = model.live_folder(folder);
                let number = model.number();
                let draft = tables::named(&number.to_string(), model.folder_id(folder));
                let made = databases.create(caller, draft).await.unwrap().item;
                let name = Field { id: made.properties[0].id, kind: FieldKind::Text, options: vec![] };
                let table = TableModel { id: made.id, folder, deleted: None, fields: vec![name] };
                model.tables.insert(number, table);
            }
            Step::MoveTable { table, folder } => {
                let Some(table) = model.live_table(table) else { return };
                let folder = model.live_folder(folder);
                let to = model.folder_id(folder).map(|id| id.to_string());
                let patch =
                    databases::DatabasePatch { folder_id: Some(to), ..databases::DatabasePatch::default() };
                databases.update(caller, &model.item(Kind::Database, table), patch).await.unwrap();
                model.tables.get_mut(&table).unwrap().folder = folder;
            }
            Step::DeleteTable(place) => {
                let Some(table) = model.live_table(place) else { return };
                databases.delete(caller, &model.item(Kind::Database, table)).await.unwrap();
                let deletion = model.number();
                model.tables.get_mut(&table).unwrap().deleted = Some(deletion);
                model.trash.insert(deletion, (Kind::Database, table));
            }
            Step::RestoreTable(place) => {
                let Some(table) = nth(&model.tables, place, |one| one.deleted.is_some()) else { return };
                databases.restore(caller, &model.item(Kind::Database, table)).await.unwrap();
                model.back_table(table);
            }
            Step::PurgeTable(place) => {
                let Some(table) = nth(&model.tables, place, |one| one.deleted.is_some()) else { return };
                databases.purge(caller, &model.item(Kind::Database, table)).await.unwrap();
                model.drop_table(table);
            }
            _ => unreachable!(),
        }
    }

    async fn field(&self, model: &mut Model, step: &Step) {
        let (caller, databases) = (self.caller, &self.databases);
        match *step {
            Step::AddField { table, kind } => {
                let Some(table) = model.live_table(table) else { return };
                let (kind, of) = [
                    (FieldKind::Text, PropertyType::Text),
                    (FieldKind::Number, PropertyType::Number),
                    (FieldKind::Options, PropertyType::MultiSelect),
                ][kind];
                let options = match kind {
                    FieldKind::Options => vec!["one", "two", "three", "four"],
                    FieldKind::Text | FieldKind::Number => vec![],
                };
                let options = options
                    .into_iter()
                    .map(|name| OptionDraft { name: name.into(), ..OptionDraft::default() });
                let config = SettingsDraft { options: Some(options.collect()), ..SettingsDraft::default() };
                let name = model.number().to_string();
                let draft = PropertyDraft { name, kind: Some(of), config: Some(config) };
                let id = model.item(Kind::Database, table);
                let made = databases.create_property(caller, &id, draft).await.unwrap().item.item;
                let options =
                    made.config.options.into_iter().map(|option| (option.id, option.name)).collect();
                model.tables.get_mut(&table).unwrap().fields.push(Field { id: made.id, kind, options });
            }
            Step::DeleteField { table, field } => {
                let Some(table) = model.live_table(table) else { return };
                let Some(found) = model.tables[&table].fields.get(field).cloned() else { return };
                let id = model.item(Kind::Database, table);
                let result = databases.delete_property(caller, &id, &found.id.to_string()).await;
                if field == 0 {
                    assert_eq!(violations(result), pairs(&[("fieldId", "primary")]));
                } else {
                    result.unwrap();
                    model.tables.get_mut(&table).unwrap().fields.remove(field);
                    model.lose(table, |values| values.remove(&found.id.to_string()).is_some());
                }
            }
            Step::KeepOptions { table, field, kept, is_reversed } => {
                let Some(table) = model.live_table(table) else { return };
                let Some(found) = model.tables[&table].fields.get(field).cloned() else { return };
                let mut options = found.options.clone();
                let mut place = 0;
                options.retain(|_| {
                    place += 1;
                    kept & (1 << place) != 0
                });
                if is_reversed {
                    options.reverse();
                }
                let drafts = options.iter().map(|(id, name)| OptionDraft {
                    id: id.clone(),
                    name: name.clone(),
                    color: None,
                });
                let config = SettingsDraft { options: Some(drafts.collect()), ..SettingsDraft::default() };
                let patch = PropertyPatch { config: Some(config), ..PropertyPatch::default() };
                let (id, property) = (model.item(Kind::Database, table), found.id.to_string());
                databases.update_property(caller, &id, &property, patch).await.unwrap();
                let kept = Field { options, ..found };
                model.lose(table, |values| {
                    let key = kept.id.to_string();
                    let Some(before) = values.get(&key).cloned() else { return false };
                    let after = compare::kept_of(&kept, &before);
                    if after.as_array().is_some_and(Vec::is_empty) {
                        values.remove(&key);
                    } else {
                        values.insert(key, after.clone());
                    }
                    after != before
                });
                model.tables.get_mut(&table).unwrap().fields[field] = kept;
            }
            _ => unreachable!(),
        }
    }

    async fn record(&self, model: &mut Model, step: &Step) {
        let (caller, records) = (self.caller, &self.records);
        match step {
            Step::MakeRecord { table, given } => {
                let Some(table) = model.live_table(*table) else { return };
                let (draft, changes) = draft(&model.tables[&table], given);
                let id = model.item(Kind::Database, table);
                let made = records.create(caller, &id, draft).await.unwrap().item.record;
                let number = model.number();
                let versions = vec![merged(&Values::new(), &changes)];
                let record = RecordModel { id: made.id, table, deleted: None, versions };
                model.records.insert(number, record);
            }
            Step::ChangeRecord { record, given } => {
                let Some(record) = model.record(*record, false) else { return };
                let table = model.records[&record].table;
                let (draft, changes) = draft(&model.tables[&table], given);
                let (database, id) = (model.item(Kind::Database, table), model.item(Kind::Record, record));
                let changed = records.update(caller, &database, &id, draft).await.unwrap().item.record;
                let versions = &mut model.records.get_mut(&record).unwrap().versions;
                let after = merged(versions.last().unwrap(), &changes);
                if versions.last() != Some(&after) {
                    versions.push(after);
                }
                assert_eq!(changed.version, versions.len() as u64);
            }
            Step::BringBackVersion { record, version } => {
                let Some(record) = model.record(*record, false) else { return };
                let table = &model.tables[&model.records[&record].table];
                let found = model.records[&record].versions.get(*version).cloned();
                let (database, id) = (table.id.to_string(), model.item(Kind::Record, record));
                let wanted = *version as u64 + 1;
                let result = records.restore_version(caller, &database, &id, wanted).await;
                let Some(former) = found else { return assert_not_found(result, "version") };
                let after = as_sent_today(table, &former);
                let versions = &mut model.records.get_mut(&record).unwrap().versions;
                if versions.last() != Some(&after) {
                    versions.push(after);
                }
                assert_eq!(result.unwrap().item.record.version, versions.len() as u64);
            }
            Step::DeleteRecord(place) => {
                let Some(record) = model.record(*place, false) else { return };
                let (database, id) = self.of_record(model, record);
                records.delete(caller, &database, &id).await.unwrap();
                let deletion = model.number();
                model.records.get_mut(&record).unwrap().deleted = Some(deletion);
                model.trash.insert(deletion, (Kind::Record, record));
            }
            Step::RestoreRecord(place) => {
                let Some(record) = model.record(*place, true) else { return };
                let (database, id) = self.of_record(model, record);
                records.restore(caller, &database, &id).await.unwrap();
                model.records.get_mut(&record).unwrap().deleted = None;
                model.trash.retain(|_, item| *item != (Kind::Record, record));
            }
            Step::PurgeRecord(place) => {
                let Some(record) = model.record(*place, true) else { return };
                let (database, id) = self.of_record(model, record);
                records.purge(caller, &database, &id).await.unwrap();
                model.records.remove(&record);
                model.trash.retain(|_, item| *item != (Kind::Record, record));
            }
            _ => unreachable!(),
        }
    }

    fn of_record(&self, model: &Model, record: usize) -> (String, String) {
        (model.item(Kind::Database, model.records[&record].table), model.item(Kind::Record, record))
    }

    async fn restore(&self, model: &mut Model, place: usize) {
        let Some((deletion, (kind, number))) = model.trash.iter().nth(place).map(|(n, item)| (*n, *item))
        else {
            return;
        };
        let result = self.bench.trash().restore(self.caller, kind, &model.item(kind, number)).await;
        match kind {
            Kind::Folder => {
                let tables = model.tables.values().filter(|table| table.deleted == Some(deletion)).count();
                assert_eq!(result.unwrap().items, tables as u64 + 1);
                model.folders.get_mut(&number).unwrap().deleted = None;
                for table in model.tables.values_mut().filter(|table| table.deleted == Some(deletion)) {
                    table.deleted = None;
                }
                model.trash.remove(&deletion);
            }
            Kind::Database => {
                assert_eq!(result.unwrap().items, 1);
                model.back_table(number);
            }
            Kind::Memory => {
                let mut memory = model.gone_memories.remove(&number).unwrap();
                memory.slug = model.free_slug(&memory.slug);
                assert_eq!(result.unwrap().path, format!("/memories/{}", memory.slug));
                model.memories.insert(number, memory);
                model.trash.remove(&deletion);
            }
            _ if model.is_live(model.records[&number].table) => {
                assert_eq!(result.unwrap().items, 1);
                model.records.get_mut(&number).unwrap().deleted = None;
                model.trash.remove(&deletion);
            }
            _ => assert_eq!(violations(result), pairs(&[("itemId", "database_in_trash")])),
        }
    }

    async fn remove(&self, model: &mut Model, place: usize) {
        let Some((deletion, (kind, number))) = model.trash.iter().nth(place).map(|(n, item)| (*n, *item))
        else {
            return;
        };
        self.bench.trash().remove(self.caller, kind, &model.item(kind, number)).await.unwrap();
        match kind {
            Kind::Folder => model.drop_folder(number, deletion),
            Kind::Database => model.drop_table(number),
            Kind::Memory => {
                model.gone_memories.remove(&number);
            }
            _ => {
                model.records.remove(&number);
            }
        }
        model.trash.remove(&deletion);
    }

    async fn memory(&self, model: &mut Model, step: &Step) {
        let (caller, memories) = (self.caller, self.bench.memories());
        match step {
            Step::MakeMemory { name, members } => {
                let (drafts, wanted) = members_of(model, members);
                let draft = memories::MemoryDraft {
                    name: NAMES[*name].into(),
                    members: drafts,
                    ..memories::MemoryDraft::default()
                };
                let result = memories.create(caller, draft).await;
                let Some(wanted) = wanted else { return assert!(matches!(result, Err(Error::NoTargets(_)))) };
                let made = result.unwrap().item;
                let slug = model.free_slug(NAMES[*name]);
                assert_eq!(made.slug, slug);
                let ids = made.members.iter().map(|member| member.id);
                let members = ids.zip(wanted).map(|(id, (kind, target))| (id, kind, target)).collect();
                let number = model.number();
                let memory = MemoryModel { id: made.id, name: *name, slug, version: 1, members };
                model.memories.insert(number, memory);
            }
            Step::NameMemory { memory, name } => {
                let Some(memory) = nth(&model.memories, *memory, |_| true) else { return };
                let memory = model.memories.get_mut(&memory).unwrap();
                let patch = memories::MemoryPatch {
                    name: Some(NAMES[*name].into()),
                    ..memories::MemoryPatch::default()
                };
                memories.update(caller, &memory.id.to_string(), patch).await.unwrap();
                memory.version += u64::from(memory.name != *name);
                memory.name = *name;
            }
            Step::GiveSlug { memory, name } => {
                let Some(memory) = nth(&model.memories, *memory, |_| true) else { return };
                let slug = NAMES[*name].to_owned();
                let is_taken =
                    model.memories.iter().any(|(number, other)| *number != memory && other.slug == slug);
                let memory = model.memories.get_mut(&memory).unwrap();
                let patch =
                    memories::MemoryPatch { slug: Some(slug.clone()), ..memories::MemoryPatch::default() };
                let result = memories.update(caller, &memory.id.to_string(), patch).await;
                if is_taken {
                    assert!(matches!(result, Err(Error::SlugTaken(_))), "{result:?}");
                } else {
                    result.unwrap();
                    memory.version += u64::from(memory.slug != slug);
                    memory.slug = slug;
                }
            }
            Step::AddMembers { memory, members } => {
                let Some(memory) = nth(&model.memories, *memory, |_| true) else { return };
                let (drafts, wanted) = members_of(model, members);
                let memory = model.memories.get_mut(&memory).unwrap();
                let result = memories.add_members(caller, &memory.id.to_string(), drafts).await;
                if members.is_empty() {
                    return assert_eq!(violations(result), pairs(&[("members", "too_few")]));
                }
                let Some(wanted) = wanted else { return assert!(matches!(result, Err(Error::NoTargets(_)))) };
                let added = result.unwrap().item.into_iter().zip(wanted);
                memory.members.extend(added.map(|(member, (kind, target))| (member.id, kind, target)));
                memory.version += 1;
            }
            Step::MoveMember { memory, member, to } => {
                let Some(memory) = nth(&model.memories, *memory, |_| true) else { return };
                let memory = model.memories.get_mut(&memory).unwrap();
                let Some((id, ..)) = memory.members.get(*member) else { return };
                let place = u32::try_from(*to).unwrap();
                memories.move_member(caller, &memory.id.to_string(), &id.to_string(), place).await.unwrap();
                let moved = memory.members.remove(*member);
                let to = (*to).min(memory.members.len());
                memory.members.insert(to, moved);
                memory.version += u64::from(to != *member);
            }
            Step::RemoveMember { memory, member } => {
                let Some(memory) = nth(&model.memories, *memory, |_| true) else { return };
                let memory = model.memories.get_mut(&memory).unwrap();
                let Some((id, ..)) = memory.members.get(*member) else { return };
                memories.remove_member(caller, &memory.id.to_string(), &id.to_string()).await.unwrap();
                memory.members.remove(*member);
                memory.version += 1;
            }
            Step::DeleteMemory(place) => {
                let Some(memory) = nth(&model.memories, *place, |_| true) else { return };
                let id = model.memories[&memory].id.to_string();
                memories.delete(caller, &id).await.unwrap();
                let gone = model.memories.remove(&memory).unwrap();
                model.gone_memories.insert(memory, gone);
                let deletion = model.number();
                model.trash.insert(deletion, (Kind::Memory, memory));
            }
            _ => unreachable!(),
        }
    }
}

type Changes = Vec<(PropertyId, Option<Value>)>;

fn draft(table: &TableModel, given: &[(usize, Given)]) -> (records::RecordDraft, Changes) {
    let mut values = Values::new();
    let mut changes: Changes = Vec::new();
    for (place, given) in given {
        let Some(field) = table.fields.get(*place) else { continue };
        let Some((value, kept)) = sent(field, given) else { continue };
        values.insert(field.id.to_string(), value);
        changes.retain(|(id, _)| *id != field.id);
        changes.push((field.id, kept));
    }
    let draft =
        records::RecordDraft { values: Value::Object(values).to_string(), ..records::RecordDraft::default() };
    (draft, changes)
}

fn merged(before: &Values, changes: &Changes) -> Values {
    let mut after = before.clone();
    for (id, value) in changes {
        match value {
            Some(value) => after.insert(id.to_string(), value.clone()),
            None => after.remove(&id.to_string()),
        };
    }
    after
}

/// A version without the fields and options that are no more.
fn as_sent_today(table: &TableModel, former: &Values) -> Values {
    let mut after = Values::new();
    for field in &table.fields {
        let Some(value) = former.get(&field.id.to_string()) else { continue };
        let kept = compare::kept_of(field, value);
        if kept.as_array().is_none_or(|left| !left.is_empty()) {
            after.insert(field.id.to_string(), kept);
        }
    }
    after
}

/// What is sent for members, and what they refer to when all of it lives.
fn members_of(model: &Model, members: &[(usize, usize)]) -> (Vec<MemberDraft>, Option<Vec<(Kind, String)>>) {
    let mut wanted = Vec::new();
    let mut drafts = Vec::new();
    for (kind, place) in members {
        let (kind, number) = match kind {
            0 => (Kind::Folder, nth(&model.folders, *place, |_| true)),
            _ => (Kind::Database, nth(&model.tables, *place, |_| true)),
        };
        let id = number.map_or_else(missing_file, |number| model.item(kind, number));
        let mut draft = MemberDraft::default();
        if kind == Kind::Folder {
            draft.kind = Some(MemberKind::Folder);
            draft.folder_id = Some(id.clone());
        } else {
            draft.kind = Some(MemberKind::Database);
            draft.database_id = Some(id.clone());
        }
        drafts.push(draft);
        wanted.push((kind, id));
    }
    let all_live = wanted.iter().all(|(kind, id)| model.lives(*kind, id));
    (drafts, all_live.then_some(wanted))
}

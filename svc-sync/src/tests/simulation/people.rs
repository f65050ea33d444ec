//! What people do to the files of a workspace while runs go on, and how they must find them afterwards.

use std::collections::{BTreeMap, BTreeSet};

use cairn_chassis::bodies::content_hash;
use cairn_chassis::testing::simulation::World;

use super::super::*;

/// What people wrote.
#[derive(Debug, Default)]
pub(super) struct People {
    /// The ids of files that they made.
    made: BTreeSet<String>,
    /// The hash of each file that they wrote last, by its id.
    written: BTreeMap<String, String>,
    deleted: BTreeSet<String>,
    texts: u32,
}

impl People {
    /// Somebody changes a file.
    pub(super) async fn edit(&mut self, bench: &Bench, world: &mut World, files: &[File]) -> String {
        let Some(file) = choose(world, files) else { return "nothing to edit".to_owned() };
        let text = self.text();
        let update = content::UpdateFileRequest {
            file_id: file.id.clone(),
            content: text.clone(),
            update_mask: Some(FieldMask { paths: vec!["content".into()] }),
            ..Default::default()
        };
        bench.files().update_file(bench.request(update)).await.unwrap();
        self.written.insert(file.id.clone(), content_hash(&text));
        format!("somebody edits {}: {text}", file.path)
    }

    /// Somebody makes a file, beside one that is there.
    pub(super) async fn make(&mut self, bench: &Bench, world: &mut World, files: &[File]) -> String {
        let folder = choose(world, files).and_then(|file| file.folder_id.clone());
        let (name, text) = (["a.md", "c.md", "own.md"][world.place_in(3)], self.text());
        let made = bench.create(name, &text, folder).await;
        self.made.insert(made.id.clone());
        self.written.insert(made.id, content_hash(&text));
        format!("somebody makes {}", made.path)
    }

    /// Somebody deletes a file.
    pub(super) async fn delete(&mut self, bench: &Bench, world: &mut World, files: &[File]) -> String {
        let Some(file) = choose(world, files) else { return "nothing to delete".to_owned() };
        let delete = content::DeleteFileRequest { file_id: file.id.clone() };
        bench.files().delete_file(bench.request(delete)).await.unwrap();
        self.written.remove(&file.id);
        self.deleted.insert(file.id.clone());
        format!("somebody deletes {}", file.path)
    }

    pub(super) fn has_made(&self, id: &str) -> bool {
        self.made.contains(id)
    }

    pub(super) fn has_touched(&self, id: &str) -> bool {
        self.made.contains(id) || self.written.contains_key(id) || self.deleted.contains(id)
    }

    /// What they wrote is there as they left it, and what they deleted is not.
    pub(super) fn check(&self, files: &[File]) {
        let found: BTreeMap<&str, &str> =
            files.iter().map(|file| (file.id.as_str(), file.content_hash.as_str())).collect();
        for (id, hash) in &self.written {
            assert_eq!(found.get(id.as_str()), Some(&hash.as_str()), "what somebody wrote: {id}");
        }
        for id in &self.deleted {
            assert_eq!(found.get(id.as_str()), None, "what somebody deleted: {id}");
        }
    }

    /// One that nobody else would write.
    fn text(&mut self) -> String {
        self.texts += 1;
        format!("a person's {}", self.texts)
    }
}

fn choose<'f>(world: &mut World, files: &'f [File]) -> Option<&'f File> {
    files.get(world.place_in(files.len()))
}

impl Bench {
    /// Every live file without its content, by path and then in the order of their making.
    pub(super) async fn live(&self) -> Vec<File> {
        let listed = self.files().list_files(self.request(content::ListFilesRequest::default())).await;
        let mut files = listed.unwrap().into_inner().files;
        files.sort_by(|one, other| (&one.path, &one.id).cmp(&(&other.path, &other.id)));
        files
    }
}

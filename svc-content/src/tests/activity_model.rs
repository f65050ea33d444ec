//! A model test: undoing everything that an agent did to a tree that nobody else changes restores the tree.

use std::collections::BTreeMap;

use cairn_chassis::feed::Kind;

use super::activity_rules::token;
use super::*;
use crate::activity::{Selection, Undos};
use crate::files::FilePatch;
use crate::folders::FolderPatch;

/// A deterministic generator of random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// The live items by id: files with paths, texts and tags, folders with paths.
type Tree = BTreeMap<String, (String, String, Vec<String>)>;

impl Bench {
    async fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for file in self.files.list(&self.caller, None, first_page()).await.unwrap().items {
            let (_, content) = self.files.get(&self.caller, &file.id.to_string()).await.unwrap();
            tree.insert(file.id.to_string(), (file.path, content, file.tags));
        }
        for folder in self.folders.list(&self.caller, None, first_page()).await.unwrap().items {
            tree.insert(folder.id.to_string(), (folder.path, String::new(), Vec::new()));
        }
        tree
    }

    /// A random write by the agent; a rejected one has no effect.
    async fn anything(&self, agent: &Caller, numbers: &mut Numbers, round: usize) {
        let files = self.files.list(agent, None, first_page()).await.unwrap().items;
        let folders = self.folders.list(agent, None, first_page()).await.unwrap().items;
        let trash = self.in_trash().await;
        let place = numbers.below(folders.len() + 1);
        let folder = folders.get(place).map(|folder| folder.id);
        let file = (!files.is_empty()).then(|| files[numbers.below(files.len())].id.to_string());
        let patch = FilePatch::default();
        let _done = match (numbers.below(9), file) {
            (0, _) => self.files.create(agent, draft(&format!("n{round}"), folder)).await.map(drop),
            (1, _) => self.folders.create(agent, folder_draft(&format!("d{round}"), folder)).await.map(drop),
            (2, Some(file)) => {
                let patch = FilePatch { content: Some(format!("text {round}")), ..patch };
                self.files.update(agent, &file, patch).await.map(drop)
            }
            (3, Some(file)) => {
                let tags = Some(vec![format!("t{round}")]);
                let patch = FilePatch { name: Some(format!("r{round}")), tags, ..patch };
                self.files.update(agent, &file, patch).await.map(drop)
            }
            (4, Some(file)) => {
                let patch = FilePatch { folder_id: Some(folder.map(|id| id.to_string())), ..patch };
                self.files.update(agent, &file, patch).await.map(drop)
            }
            (5, Some(file)) => self.files.delete(agent, &file).await.map(drop),
            (6, _) => match folder {
                Some(id) => self.folders.delete(agent, &id.to_string()).await.map(drop),
                None => Ok(()),
            },
            (7, _) => match folder {
                Some(id) => {
                    let other = folders.get(numbers.below(folders.len())).map(|other| other.id.to_string());
                    let name = Some(format!("f{round}"));
                    let patch = FolderPatch { name, parent_id: Some(other), ..FolderPatch::default() };
                    self.folders.update(agent, &id.to_string(), patch).await.map(drop)
                }
                None => Ok(()),
            },
            _ if !trash.is_empty() => {
                let deletion = &trash[numbers.below(trash.len())].deletion;
                self.trash().restore(agent, deletion.kind, &deletion.item_id).await.map(drop)
            }
            _ => Ok(()),
        };
    }
}

#[tokio::test]
async fn an_undo_gives_the_tree_back() {
    for seed in 1..=12 {
        for bench in benches().await {
            let mut numbers = Numbers(seed);
            let outer = bench.folder("outer", None).await;
            let inner = bench.folder("inner", Some(outer.id)).await;
            for (name, folder) in [("a", None), ("b", Some(outer.id)), ("c", Some(inner.id))] {
                bench.file(name, folder).await;
            }
            let before = bench.tree().await;
            let agent = token(&bench, "agent");
            for round in 0..20 {
                bench.anything(&agent, &mut numbers, round).await;
            }
            let selection =
                Selection { principal_id: Some(agent.principal.id.clone()), ..Selection::default() };
            let undos = Undos::new(bench.context.clone());
            let undone = undos.execute(&bench.caller, selection).await.unwrap();
            let left = format!("{} {seed}: {:#?}", bench.engine(), undone.left_alone);
            assert_eq!(bench.tree().await, before, "{left}");
            assert!(undone.left_alone.is_empty(), "{left}");
            assert!(bench.in_trash().await.iter().all(|one| one.deletion.kind != Kind::Memory));
        }
    }
}

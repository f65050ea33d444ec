//! Imports of vaults, over a real svc-content.

use std::io::{Cursor, Write as _};

use bytes::Bytes;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::domain::{ImportProvider, ReportPart};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::imports::{
    Draft as ImportDraft, Part, ReportEntry, ReportPage, ReportQuery, RunView as Import, UploadEnd,
};
use crate::model::{Report, ReportAction, ReportPhase};

/// A ZIP file of these.
pub(super) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(super) fn draft_of(provider: ImportProvider) -> ImportDraft {
    ImportDraft { provider, file_name: "Vault.zip".into(), policy: ConflictPolicy::Update, folder: None }
}

fn obsidian() -> ImportDraft {
    draft_of(ImportProvider::ObsidianZip)
}

fn vault(note: &str) -> Vec<u8> {
    archive(&[
        ("Vault/.obsidian/app.json", b"{}"),
        ("Vault/Note.md", note.as_bytes()),
        ("Vault/deep/Other.md", b"---\ntags: [a, b]\n---\nback to [[Note]] #c and [[Nowhere]]"),
        ("Vault/files/pic.png", b"\x89PNG"),
    ])
}

impl Bench {
    pub(super) async fn preview_import(&self, draft: ImportDraft, archive: &[u8]) -> Result<Import, Error> {
        let mut parts = vec![Ok(Part::Draft(Box::new((self.caller.clone(), draft))))];
        parts.extend(archive.chunks(1_000).map(|bytes| Ok(Part::Bytes(Bytes::copy_from_slice(bytes)))));
        parts.push(Ok(Part::End(UploadEnd { size_bytes: archive.len() as u64 })));
        self.imports.preview(Box::pin(futures::stream::iter(parts))).await
    }

    pub(super) async fn import(&self, draft: ImportDraft, archive: &[u8]) -> Import {
        let previewed = self.preview_import(draft, archive).await.unwrap();
        let id = previewed.run.id.to_string();
        self.imports.start(&self.caller, &id).await.unwrap();
        self.work().await;
        self.imports.get(&self.caller, &id).await.unwrap()
    }

    pub(super) async fn report(&self, run: &Import) -> Report {
        self.imports.report(&self.caller, &run.run.id.to_string()).await.unwrap()
    }

    pub(super) async fn take_back(&self, run: &Import) -> Import {
        let id = run.run.id.to_string();
        self.imports.roll_back(&self.caller, &id).await.unwrap();
        self.work().await;
        self.imports.get(&self.caller, &id).await.unwrap()
    }

    async fn has_asset(&self, id: &str) -> bool {
        let mut assets = AssetServiceClient::new(self.content.clone());
        assets.get_asset(self.request(content::GetAssetRequest { asset_id: id.to_owned() })).await.is_ok()
    }
}

pub(super) fn told(report: &Report) -> Vec<(&str, ReportAction)> {
    report.items.iter().map(|item| (item.path.as_str(), item.action)).collect()
}

fn counts(run: &Import) -> [u64; 4] {
    let [created, updated, skipped, conflicts, _] = counted(run.run.counters);
    [created, updated, skipped, conflicts]
}

const NOTE: &str = "see [[Other]] and ![[pic.png]]";

#[tokio::test]
async fn a_vault_becomes_files_with_links_tags_and_assets() {
    for bench in benches().await {
        let previewed = bench.preview_import(obsidian(), &vault(NOTE)).await.unwrap();
        assert_eq!(
            (previewed.run.state, previewed.run.would.created),
            (RunStatus::Ready, 3),
            "{}",
            bench.engine
        );
        assert_eq!(bench.tree().await, tree(&[]));
        let report = bench.report(&previewed).await;
        assert_eq!(
            (report.phase, report.counts.links, report.unresolved_links.len()),
            (ReportPhase::DryRun, 4, 1)
        );
        assert_eq!(report.ignored.len(), 1);

        let id = previewed.run.id.to_string();
        bench.imports.start(&bench.caller, &id).await.unwrap();
        bench.work().await;
        let done = bench.imports.get(&bench.caller, &id).await.unwrap();
        assert_eq!(
            (done.run.state, counts(&done)),
            (RunStatus::Completed, [3, 0, 0, 0]),
            "{:?}",
            done.run.error
        );
        assert_eq!((done.run.counters.processed, done.run.total), (3, 3));
        let (note, other) = (bench.file("/Vault/Note.md").await, bench.file("/Vault/deep/Other.md").await);
        let report = bench.report(&done).await;
        assert_eq!(report.root.as_ref().unwrap().path, "Vault");
        let asset = report.items.iter().find(|item| item.path.ends_with("pic.png")).unwrap().id.unwrap();
        let texts = bench.tree().await;
        let expected = format!("see [Other](/file/{}) and ![pic.png](/api/assets/{asset}/content)", other.id);
        assert_eq!(texts["/Vault/Note.md"], [expected]);
        assert!(texts["/Vault/deep/Other.md"][0].contains(&format!("[Note](/file/{})", note.id)));
        assert!(texts["/Vault/deep/Other.md"][0].ends_with("[[Nowhere]]"));
        assert_eq!(
            (other.tags, other.version, note.version),
            (vec!["a".into(), "b".into(), "c".into()], 1, 1)
        );
        assert!(bench.has_asset(&asset.to_string()).await);
        assert_eq!(bench.faults().await, Vec::<String>::new());

        let back = bench.take_back(&done).await;
        assert_eq!((back.run.state, back.warnings.len()), (RunStatus::RolledBack, 0), "{:?}", back.warnings);
        assert_eq!((bench.tree().await, bench.folder_paths().await), (tree(&[]), vec![]));
        assert!(!bench.has_asset(&asset.to_string()).await);
        let report = bench.report(&back).await;
        assert!(report.items.iter().all(|item| item.action == ReportAction::Removed), "{:?}", told(&report));
        let again = bench.imports.roll_back(&bench.caller, &id).await;
        assert_eq!(reason(again), Reason::RunNotRevertible);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_second_import_knows_what_it_wrote() {
    for bench in benches().await {
        bench.import(obsidian(), &vault(NOTE)).await;
        let same = bench.import(obsidian(), &vault(NOTE)).await;
        assert_eq!(counts(&same), [0, 0, 3, 0], "{}", bench.engine);
        let changed = bench.import(obsidian(), &vault("new [[Other]]")).await;
        assert_eq!(counts(&changed), [0, 1, 2, 0]);
        assert!(bench.tree().await["/Vault/Note.md"][0].starts_with("new [Other](/file/"));
        bench.edit("/Vault/Note.md", "mine").await;
        let kept = bench.import(obsidian(), &vault("newer")).await;
        assert_eq!((kept.run.state, counts(&kept)), (RunStatus::CompletedWithWarnings, [0, 0, 2, 1]));
        assert_eq!(bench.tree().await["/Vault/Note.md"], ["mine"]);
        let skip = ImportDraft { policy: ConflictPolicy::Skip, ..obsidian() };
        assert_eq!(counts(&bench.import(skip, &vault("newest")).await), [0, 0, 3, 0]);
        let twice = ImportDraft { policy: ConflictPolicy::Duplicate, ..obsidian() };
        assert_eq!(counts(&bench.import(twice, &vault("newest")).await), [1, 0, 2, 0]);
        assert_eq!(bench.tree().await["/Vault/Note (2).md"], ["newest"]);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_was_edited_stays_and_what_was_updated_goes_back() {
    for bench in benches().await {
        let first = bench.import(obsidian(), &vault("one")).await;
        let second = bench.import(obsidian(), &vault("two")).await;
        assert_eq!(counts(&second), [0, 1, 2, 0], "{}", bench.engine);
        bench.take_back(&second).await;
        assert_eq!(bench.tree().await["/Vault/Note.md"], ["one"]);
        bench.edit("/Vault/deep/Other.md", "mine").await;
        let back = bench.take_back(&first).await;
        assert_eq!(back.run.state, RunStatus::RolledBack);
        let codes: Vec<&str> = back.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert!(codes.contains(&"edited_since_import"), "{codes:?}");
        let texts = bench.tree().await;
        assert_eq!(texts["/Vault/deep/Other.md"], ["mine"]);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn bad_archives_and_what_is_too_large_are_refused() {
    for bench in benches().await {
        let code = |refused: Result<Import, Error>| match refused {
            Err(Error::Invalid(violations)) => violations[0].code.clone(),
            other => format!("{other:?}"),
        };
        let refused = bench.preview_import(obsidian(), b"no archive at all").await;
        assert_eq!(code(refused), "archive_invalid", "{}", bench.engine);
        let nothing = archive(&[(".obsidian/app.json", b"{}")]);
        assert_eq!(code(bench.preview_import(obsidian(), &nothing).await), "nothing_to_import");
        assert_eq!(code(bench.preview_import(obsidian(), b"").await), "required");
        let mut small = bench.caller.clone();
        small.plan = Some("small".into());
        let parts = vec![
            Ok(Part::Draft(Box::new((small, obsidian())))),
            Ok(Part::Bytes(Bytes::from(vec![0; 1024 * 1024 + 1]))),
        ];
        let refused = bench.imports.preview(Box::pin(futures::stream::iter(parts))).await;
        assert_eq!(reason(refused), Reason::PayloadTooLarge);
        // What comes before it is known where it goes is bounded, whatever the plans allow.
        let mebibyte = Bytes::from(vec![0; 1024 * 1024]);
        let parts: Vec<_> = (0..65).map(|_| Ok(Part::Bytes(mebibyte.clone()))).collect();
        let refused = bench.imports.preview(Box::pin(futures::stream::iter(parts))).await;
        assert_eq!(code(refused), "required");
        let cut = vec![Ok(Part::Bytes(Bytes::from_static(b"PK")))];
        let refused = bench.imports.preview(Box::pin(futures::stream::iter(cut))).await;
        assert_eq!(code(refused), "incomplete");
        let unknown = ImportDraft { folder: Some(Uuid::from_u128(9).to_string()), ..obsidian() };
        assert_eq!(code(bench.preview_import(unknown, &vault(NOTE)).await), "not_found");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_started_again_and_held_to_the_plan() {
    for bench in benches().await {
        let previewed = bench.preview_import(obsidian(), &vault(NOTE)).await.unwrap();
        let id = previewed.run.id.to_string();
        let not_begun = bench.imports.roll_back(&bench.caller, &id).await;
        assert_eq!(reason(not_begun), Reason::RunNotRevertible, "{}", bench.engine);
        let cancelled = bench.imports.cancel(&bench.caller, &id).await.unwrap();
        assert_eq!(cancelled.run.state, RunStatus::Cancelled);
        assert_eq!(reason(bench.imports.cancel(&bench.caller, &id).await), Reason::RunNotCancellable);
        bench.create("one", "1", None).await;
        *bench.rights.plan.lock().unwrap() = "small".to_owned();
        assert_eq!(reason(bench.imports.start(&bench.caller, &id).await), Reason::LimitExceeded);
        *bench.rights.plan.lock().unwrap() = "selfhosted".to_owned();
        bench.imports.start(&bench.caller, &id).await.unwrap();
        assert_eq!(reason(bench.imports.start(&bench.caller, &id).await), Reason::RunNotStartable);
        bench.work().await;
        let done = bench.imports.get(&bench.caller, &id).await.unwrap();
        assert_eq!(done.run.state, RunStatus::Completed);
        assert_eq!(reason(bench.imports.cancel(&bench.caller, &id).await), Reason::RunNotCancellable);
        // A sync and an import do not see each other.
        let listed = bench.imports.list(&bench.caller, 0, "").await.unwrap();
        assert_eq!((listed.total, bench.syncs.list(&bench.caller, "", 0, "").await.unwrap().total), (1, 0));
        assert_eq!(reason(bench.syncs.get(&bench.caller, &id).await), Reason::NotFound);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_was_cut_short_ends_as_one_that_was_not_and_goes_back_with_its_tags() {
    let vault = |round: &str| {
        let notes: Vec<(String, String)> = (0..12)
            .map(|number| (format!("V/N{number}.md"), format!("{round} [[N{}]] #{round}", (number + 1) % 12)))
            .collect();
        let entries: Vec<(&str, &[u8])> =
            notes.iter().map(|(name, note)| (name.as_str(), note.as_bytes())).collect();
        archive(&entries)
    };
    for bench in benches().await {
        bench.import(obsidian(), &vault("first")).await;
        let before = bench.tree().await;
        for seed in 0..3 {
            let previewed = bench.preview_import(obsidian(), &vault("second")).await.unwrap();
            let id = previewed.run.id.to_string();
            bench.imports.start(&bench.caller, &id).await.unwrap();
            bench.work_with_kills(seed * 100 + 7).await;
            let done = bench.imports.get(&bench.caller, &id).await.unwrap();
            assert_eq!(
                (done.run.state, counts(&done)),
                (RunStatus::Completed, [0, 12, 0, 0]),
                "{}: {:?} {:?}",
                bench.engine,
                done.run.error,
                done.warnings
            );
            assert_eq!(bench.file("/V/N3.md").await.tags, ["second"]);
            bench.imports.roll_back(&bench.caller, &id).await.unwrap();
            bench.work_with_kills(seed * 100 + 57).await;
            let back = bench.imports.get(&bench.caller, &id).await.unwrap();
            assert_eq!(
                (back.run.state, back.warnings.len()),
                (RunStatus::RolledBack, 0),
                "{:?}",
                back.warnings
            );
            assert_eq!(bench.tree().await, before);
            assert_eq!(bench.file("/V/N3.md").await.tags, ["first"]);
        }
        let same = bench.import(obsidian(), &vault("first")).await;
        assert_eq!(counts(&same), [0, 0, 12, 0], "{}", bench.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_was_cut_short_ends_as_one_that_was_not() {
    for bench in benches().await {
        let note = |number: usize| format!("[[N{}]] and ![[p{}.png]]", (number + 1) % 12, number % 3);
        let notes: Vec<(String, Vec<u8>)> = (0..12)
            .map(|number| (format!("V/d{}/N{number}.md", number % 4), note(number).into_bytes()))
            .chain((0..3).map(|number| (format!("V/p{number}.png"), vec![number; 10])))
            .collect();
        let entries: Vec<(&str, &[u8])> =
            notes.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        for seed in 0..2 {
            let previewed = bench.preview_import(obsidian(), &archive(&entries)).await.unwrap();
            let id = previewed.run.id.to_string();
            bench.imports.start(&bench.caller, &id).await.unwrap();
            bench.work_with_kills(seed * 100).await;
            let done = bench.imports.get(&bench.caller, &id).await.unwrap();
            assert_eq!(
                (done.run.state, counts(&done)),
                (RunStatus::Completed, [15, 0, 0, 0]),
                "{:?}",
                done.run.error
            );
            let texts = bench.tree().await;
            assert_eq!(texts.len(), 12, "{}: {texts:?}", bench.engine);
            for (number, file) in (0..12).map(|number| (number, format!("/V/d{}/N{number}.md", number % 4))) {
                let next =
                    bench.file(&format!("/V/d{}/N{}.md", (number + 1) % 12 % 4, (number + 1) % 12)).await;
                assert_eq!(texts[&file].len(), 1);
                assert!(texts[&file][0].contains(&next.id), "{file}");
            }
            bench.imports.roll_back(&bench.caller, &id).await.unwrap();
            bench.work_with_kills(seed * 100 + 50).await;
            let back = bench.imports.get(&bench.caller, &id).await.unwrap();
            assert_eq!(
                (back.run.state, back.warnings.len()),
                (RunStatus::RolledBack, 0),
                "{:?}",
                back.run.error
            );
            assert_eq!((bench.tree().await, bench.folder_paths().await), (tree(&[]), vec![]));
            assert_eq!(bench.faults().await, Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn a_report_is_read_in_pages() {
    for bench in benches().await {
        let previewed = bench.preview_import(obsidian(), &vault(NOTE)).await.unwrap();
        let id = previewed.run.id.to_string();
        let read = async |part: ReportPart, action: Option<ReportAction>, size: u32, token: &str| {
            let asked = ReportQuery { part, action, size, token: token.to_owned() };
            bench.imports.entries(&bench.caller, &id, &asked).await
        };
        let paths = |page: &ReportPage| {
            let path = |entry: &ReportEntry| match entry {
                ReportEntry::Item(item) => item.path.clone(),
                ReportEntry::Link(link) => format!("{}:{} {}", link.path, link.line, link.target),
                ReportEntry::Warning(warning) => warning.path.clone(),
                ReportEntry::Ignored(ignored) => format!("{} {}", ignored.path, ignored.reason),
            };
            page.entries.iter().map(path).collect::<Vec<_>>()
        };
        let all = read(ReportPart::Items, None, 0, "").await.unwrap();
        assert_eq!(
            (all.phase, all.total, all.next.as_str()),
            (ReportPhase::DryRun, 4, ""),
            "{}",
            bench.engine
        );
        assert_eq!((all.actions.as_slice(), all.counts.files), (&[(ReportAction::Created, 4)][..], 2));
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = read(ReportPart::Items, Some(ReportAction::Created), 2, &token).await.unwrap();
            found.extend(paths(&page));
            token = page.next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(found, paths(&all));
        assert_eq!(read(ReportPart::Items, Some(ReportAction::Failed), 0, "").await.unwrap().total, 0);
        assert_eq!(paths(&read(ReportPart::Links, None, 0, "").await.unwrap()), ["deep/Other.md:4 Nowhere"]);
        let ignored = read(ReportPart::Ignored, None, 0, "").await.unwrap();
        assert_eq!(paths(&ignored), [".obsidian/app.json hidden"]);
        assert_eq!(read(ReportPart::Items, None, 2, "99").await.unwrap().entries, []);
        assert_eq!(reason(read(ReportPart::Items, None, 2, "x").await), Reason::ValidationError);
        let other = Caller { workspace: WorkspaceId(Uuid::from_u128(2)), ..bench.caller.clone() };
        let theirs = bench.imports.entries(&other, &id, &ReportQuery::default()).await;
        assert_eq!(reason(theirs), Reason::NotFound);
    }
}

#[tokio::test]
async fn a_run_says_who_asked_for_it_and_how_many_wait_before_it() {
    for bench in benches().await {
        let (first, second) = (obsidian(), draft_of(ImportProvider::NotionZip));
        let mut runs = Vec::new();
        for (draft, archive) in [(first, vault(NOTE)), (second, archive(&[("A.md", b"# A")]))] {
            runs.push(bench.preview_import(draft, &archive).await.unwrap().run);
        }
        assert_eq!((runs[0].requester.name.as_str(), bench.engine.is_empty()), ("A token", false));
        let requester = Requester { name: "Somebody else".into(), ..bench.caller.requester.clone() };
        let starter = Caller { requester, ..bench.caller.clone() };
        let mut started = Vec::new();
        for run in &runs {
            started.push(bench.imports.start(&starter, &run.id.to_string()).await.unwrap());
        }
        assert_eq!((started[0].place, started[1].place), (1, 2));
        assert_eq!(started[1].run.requester.name, "Somebody else");
        bench.work().await;
        let over = bench.imports.get(&bench.caller, &runs[1].id.to_string()).await.unwrap();
        assert_eq!((over.place, over.run.requester.name.as_str()), (0, "Somebody else"));
    }
}

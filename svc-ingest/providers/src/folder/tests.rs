use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use rustix::io::Errno;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::contract::{self, World, counted, guard, listed};
use crate::{ProviderKind, Reach, connect};

struct Disk {
    disk: TempDir,
    settings: Value,
}

impl Disk {
    fn new() -> Self {
        Self::with(&json!({}))
    }

    fn with(more: &Value) -> Self {
        let disk = tempfile::tempdir().unwrap();
        let mut settings = more.clone();
        settings["path"] = disk.path().to_str().unwrap().into();
        Self { disk, settings }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn ids(&self) -> Vec<String> {
        let read = listed(self.provider().as_ref(), &counted(0).call).await;
        assert!(read.partial.is_empty(), "{:?}", read.partial);
        read.entries.keys().map(ToString::to_string).collect()
    }
}

#[async_trait]
impl World for Disk {
    fn provider(&self) -> Box<dyn Provider> {
        let reach = Reach::new(guard(), &[self.disk.path().to_owned()]);
        connect(ProviderKind::Folder, &self.settings, None, None, &reach).unwrap()
    }

    async fn put(&self, name: &str, text: &str) {
        self.write(name, text);
    }

    async fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }
}

#[tokio::test]
async fn a_folder_keeps_the_contract() {
    contract::holds(&Disk::new()).await;
}

#[tokio::test]
async fn a_large_folder_is_read_in_pages_that_go_on_anywhere() {
    let disk = Disk::new();
    // The order of parts is another one than that of whole paths: "a-b" stands before "a/b" as a text.
    for number in 0..700 {
        for place in ["a", "a-b", "a/b"] {
            disk.write(&format!("{place}/{number}.md"), "x");
        }
    }
    let call = counted(0).call;
    let whole = listed(disk.provider().as_ref(), &call).await;
    assert_eq!((whole.entries.len(), whole.pages), (2_100, 3));
    let mut ids = Vec::new();
    let mut from = None;
    loop {
        let page = disk.provider().list(&call, from.as_ref()).await.unwrap();
        ids.extend(page.items.iter().map(|item| match item {
            crate::Item::Present(entry) => entry.id.clone(),
            crate::Item::Gone(id) => panic!("{id}"),
        }));
        match page.then {
            Then::More(position) => from = Some(position),
            Then::End { partial, .. } => {
                assert!(partial.is_empty());
                break;
            }
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((count, ids.len()), (2_100, 2_100));
}

#[tokio::test]
async fn links_devices_and_hidden_files_are_no_documents() {
    let disk = Disk::new();
    let outside = Disk::new();
    outside.write("secret.md", "secret");
    disk.write("a.md", "a");
    disk.write(".env", "secret");
    disk.write(".git/config", "secret");
    symlink(outside.path("secret.md"), disk.path("link.md")).unwrap();
    symlink(outside.disk.path(), disk.path("folder")).unwrap();
    symlink(disk.path("a.md"), disk.path("inside.md")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(disk.path("socket.md")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(disk.path("pipe.md")).status();
    assert!(pipe.unwrap().success());
    assert_eq!(disk.ids().await, ["a.md"]);
    let (provider, call) = (disk.provider(), counted(0).call);
    for odd in [
        "link.md",
        "folder/secret.md",
        "inside.md",
        "socket.md",
        "pipe.md",
        ".env",
        ".git/config",
        "folder",
        ".",
        "a.md/",
        "x/../a.md",
        "./a.md",
        "../a.md",
        "/etc/passwd",
        "a.md/b",
    ] {
        let id = ExternalId::new(odd).unwrap();
        let fetched = provider.fetch(&call, &id, None).await;
        // A slash at the end or a dot at the beginning may still name the same file; it never names another one.
        match &fetched {
            Ok(Fetched::Gone) => {}
            Ok(Fetched::Body(body)) if odd == "a.md/" => assert_eq!(body.bytes, "a"),
            other => panic!("{odd}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_ignored_or_filtered_is_left_out() {
    let disk = Disk::with(&json!({ "include": ["*.md"], "exclude": ["drafts/"] }));
    for name in ["a.md", "b.txt", "drafts/c.md", "sub/d.md", "sub/built/e.md", "sub/f.md"] {
        disk.write(name, "x");
    }
    disk.write("sub/.gitignore", "built/\nf.md\n[odd\n");
    assert_eq!(disk.ids().await, ["a.md", "sub/d.md"]);
    let fetched = disk.provider().fetch(&counted(0).call, &ExternalId::new("b.txt").unwrap(), None).await;
    assert_eq!(fetched, Ok(Fetched::Gone));
}

#[tokio::test]
async fn a_folder_that_is_missing_or_empty_says_that_it_is_not_all() {
    let disk = Disk::with(&json!({}));
    let empty = listed(disk.provider().as_ref(), &counted(0).call).await;
    assert_eq!((empty.entries.len(), empty.partial.len()), (0, 1));
    disk.write("mount/a.md", "a");
    let mount = Disk { settings: json!({ "path": disk.path("mount").to_str().unwrap() }), disk: disk.disk };
    assert_eq!(mount.ids().await, ["a.md"]);
    fs::remove_dir_all(mount.path("mount")).unwrap();
    let provider = mount.provider();
    assert_eq!(provider.check(&counted(0).call).await, Err(Fault::Gone));
    let missing = listed(provider.as_ref(), &counted(0).call).await;
    assert_eq!((missing.entries.len(), missing.partial[0].scope.as_deref()), (0, None));
    fs::write(mount.path("mount"), "no folder").unwrap();
    let file = listed(mount.provider().as_ref(), &counted(0).call).await;
    assert_eq!((file.entries.len(), file.partial.len()), (0, 1));
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_named_and_nothing_else_suffers() {
    let disk = Disk::new();
    disk.write("a.md", "a");
    disk.write("closed/b.md", "b");
    fs::set_permissions(disk.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(disk.path("closed")).is_ok() {
        eprintln!("skipped: this user may read every folder");
        return;
    }
    let read = listed(disk.provider().as_ref(), &counted(0).call).await;
    assert_eq!(read.entries.len(), 1);
    assert_eq!(read.partial[0].scope.as_deref(), Some("closed/"));
}

#[tokio::test]
async fn files_that_can_be_named_and_not_looked_at_are_not_taken_for_deleted() {
    let disk = Disk::new();
    disk.write("a.md", "a");
    disk.write("named/b.md", "b");
    // Names can be listed without `x`, files cannot be looked at.
    fs::set_permissions(disk.path("named"), fs::Permissions::from_mode(0o644)).unwrap();
    if fs::metadata(disk.path("named/b.md")).is_err() {
        let read = listed(disk.provider().as_ref(), &counted(0).call).await;
        assert_eq!(read.entries.len(), 1);
        assert_eq!(read.partial[0].scope.as_deref(), Some("named/"));
    }
    // For a user who may look at everything, the errors of a disk.
    let mut step = walk::Step::without_root();
    let error = |errno: Errno| std::io::Error::from_raw_os_error(errno.raw_os_error());
    step.leave_out("gone/c.md", Some(&error(Errno::NOENT)));
    assert!(step.unread.is_empty(), "it went away meanwhile");
    for errno in [Errno::ACCESS, Errno::IO, Errno::STALE] {
        step.leave_out("named/b.md", Some(&error(errno)));
    }
    step.leave_out("d.md", None);
    assert_eq!(step.unread, ["named", ""]);
}

#[tokio::test]
async fn a_file_that_was_written_just_now_is_known_by_its_bytes() {
    let disk = Disk::new();
    disk.write("a.md", "one");
    let metadata = fs::metadata(disk.path("a.md")).unwrap();
    let now = cairn_chassis::clock::Clock::now(&cairn_chassis::clock::SystemClock);
    let root = disk.disk.path();
    let racy = read::version(root, "a.md", &metadata, now);
    let later = read::version(root, "a.md", &metadata, now.plus(Duration::from_secs(10)));
    assert_ne!(racy, later);
    // Another write in the same tick of the clock.
    disk.write("a.md", "two");
    assert_ne!(read::version(root, "a.md", &metadata, now), racy);
}

#[tokio::test]
async fn a_large_file_is_told_and_not_read() {
    let disk = Disk::new();
    let file = fs::File::create(disk.path("sparse.bin")).unwrap();
    file.set_len(1 << 40).unwrap();
    let fetched =
        disk.provider().fetch(&counted(0).call, &ExternalId::new("sparse.bin").unwrap(), None).await;
    assert_eq!(fetched, Ok(Fetched::TooLarge(1 << 40)));
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_a_fault_of_its_own() {
    use std::os::unix::ffi::OsStrExt as _;
    let disk = Disk::new();
    disk.write("a.md", "a");
    fs::write(disk.disk.path().join(std::ffi::OsStr::from_bytes(b"b\xff.md")), "b").unwrap();
    let read = listed(disk.provider().as_ref(), &counted(0).call).await;
    assert_eq!((read.entries.len(), read.faults.len()), (1, 1));
    assert!(read.partial.is_empty());
}

#[test]
fn settings_are_checked() {
    let disk = Disk::new();
    let reach = Reach::new(guard(), &[disk.disk.path().to_owned()]);
    let problems = |settings: &Value, credentials: Option<&Value>| {
        let made = connect(ProviderKind::Folder, settings, credentials, None, &reach);
        made.unwrap_err().into_iter().map(|one| one.path).collect::<Vec<_>>()
    };
    assert_eq!(problems(&json!({}), None), ["settings.path"]);
    assert_eq!(
        problems(&json!({ "path": "/etc", "includes": [] }), None),
        ["settings.path", "settings.includes"]
    );
    assert_eq!(problems(&disk.settings, Some(&json!({ "token": "x" }))), ["credentials.token"]);
    let live = connect(
        ProviderKind::Folder,
        &disk.settings,
        None,
        Some(cairn_proto::domain::SourceMode::Live),
        &reach,
    );
    assert_eq!(live.unwrap_err()[0].path, "mode");
    let nowhere = Reach::new(guard(), &[]);
    assert!(connect(ProviderKind::Folder, &disk.settings, None, None, &nowhere).is_err());
    assert!(Path::new("/etc").is_dir());
}

//! The pool with real child processes: this program starts itself as the child, so it has a `main` of its own.
//!
//! `cargo test -p cairn-extract --test pool [part of a name]`

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "this is a test")]

mod misbehaviour;

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cairn_extract::{Extractor, Failure, FailureKind, Format, Kind, Raw, Settings, Text};

use crate::misbehaviour::misbehave;

type Scenario = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        const SCENARIOS: &[Scenario] = &[$((stringify!($name), || Box::pin($name()))),*];
    };
}

scenarios! {
    a_child_reads_documents,
    what_a_document_does_to_its_reader_is_its_failure_and_nobody_elses,
    a_document_that_takes_too_long_is_given_up_and_its_child_is_gone,
    a_caller_that_goes_away_frees_its_child,
    a_child_opens_nothing_and_knows_nothing_of_its_parent,
    a_child_is_replaced_after_its_share_of_documents,
    children_without_work_end,
    as_many_documents_are_read_at_once_as_there_are_children,
    a_child_ends_with_its_parent_while_it_reads,
    a_program_that_cannot_be_started_is_no_fault_of_the_document,
    a_page_of_a_hundred_thousand_elements_in_each_other_is_read,
    an_archive_that_unpacks_to_too_much_is_its_own_failure,
    damaged_files_of_other_peoples_parsers_end_no_pool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => return cairn_extract::serve(misbehave),
        Some("parent") => return block_on(parent()),
        // What test runners ask for.
        Some("--list") => return list(),
        _ => {}
    }
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    for (name, scenario) in
        SCENARIOS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| name.contains(wanted.as_str())))
    {
        block_on(async {
            scenario().await;
            ExitCode::SUCCESS
        });
        say(&format!("test {name} ... ok"));
    }
    ExitCode::SUCCESS
}

fn list() -> ExitCode {
    for (name, _) in SCENARIOS {
        say(&format!("{name}: test"));
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "a test program says what it has done")]
fn say(line: &str) {
    println!("{line}");
}

fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

fn settings() -> Settings {
    Settings { wall: Duration::from_secs(20), ..Settings::of_this_binary(["child"]) }
}

async fn ask(extractor: &Extractor, name: &str) -> Result<Text, Failure> {
    extractor.extract(Raw { kind: Some(Kind::Html), ..Raw::file(name, "Some words.") }).await
}

async fn pid(extractor: &Extractor) -> u32 {
    ask(extractor, "pid").await.unwrap().content.parse().unwrap()
}

fn kind(outcome: &Result<Text, Failure>) -> Option<FailureKind> {
    outcome.as_ref().err().map(|failure| failure.kind)
}

/// Whether a process is there and more than a name that nobody has asked for yet.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

async fn eventually_gone(pid: u32) {
    let begun = Instant::now();
    while runs(pid) {
        assert!(begun.elapsed() < Duration::from_secs(20), "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn a_child_reads_documents() {
    let extractor = Extractor::start(settings());
    let page =
        Raw::html("<title>T</title><h1>H</h1><p>a <a href=b>b</a>", Some("https://example.com/".to_owned()));
    let text = extractor.extract(page).await.unwrap();
    assert_eq!((text.format, text.title.as_deref()), (Format::Markdown, Some("T")));
    assert_eq!(text.content, "# H\n\na [b](https://example.com/b)\n");
    let text = ask(&extractor, "other.txt").await.unwrap();
    assert_eq!((text.format, text.content.as_str()), (Format::Markdown, "Some words.\n"));
    assert_eq!(kind(&extractor.extract(Raw::file("a", "")).await), Some(FailureKind::NoText));
    let image = extractor.extract(Raw::file("a.png", &b"\x89PNG\r\n\x1a\n\0\0"[..])).await;
    assert_eq!(kind(&image), Some(FailureKind::Unsupported));
}

async fn what_a_document_does_to_its_reader_is_its_failure_and_nobody_elses() {
    let extractor = Extractor::start(settings());
    for fault in ["abort", "panic", "recurse", "hoard", "exit", "garbage", "endless head", "endless body"] {
        let (failed, other) = tokio::join!(ask(&extractor, fault), ask(&extractor, "other.txt"));
        assert_eq!(kind(&failed), Some(FailureKind::Exhausted), "{fault}");
        let message = failed.unwrap_err().message;
        assert!(message.ends_with('.') && !message.contains("panic") && !message.contains('/'), "{message}");
        assert_eq!(other.unwrap().content, "Some words.\n", "{fault}");
        assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n", "{fault}");
    }
}

async fn a_document_that_takes_too_long_is_given_up_and_its_child_is_gone() {
    let extractor =
        Extractor::start(Settings { children: 1, wall: Duration::from_millis(500), ..settings() });
    for fault in ["sleep", "spin"] {
        let child = pid(&extractor).await;
        let failed = ask(&extractor, fault).await;
        assert_eq!(kind(&failed), Some(FailureKind::Exhausted), "{fault}");
        assert!(failed.unwrap_err().message.contains("time"), "{fault}");
        eventually_gone(child).await;
        assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n");
    }
}

async fn a_caller_that_goes_away_frees_its_child() {
    let extractor = Extractor::start(Settings { children: 1, ..settings() });
    let child = pid(&extractor).await;
    let patience = tokio::time::timeout(Duration::from_millis(100), ask(&extractor, "spin"));
    assert!(patience.await.is_err());
    eventually_gone(child).await;
    assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n");
}

async fn a_child_opens_nothing_and_knows_nothing_of_its_parent() {
    let extractor = Extractor::start(settings());
    assert_eq!(ask(&extractor, "open").await.unwrap().content, "file: false, socket: false");
    assert_eq!(ask(&extractor, "environment").await.unwrap().content, "MALLOC_ARENA_MAX RAYON_NUM_THREADS");
}

async fn a_child_is_replaced_after_its_share_of_documents() {
    let extractor = Extractor::start(Settings { children: 1, documents: 2, ..settings() });
    let [first, second, third] = [pid(&extractor).await, pid(&extractor).await, pid(&extractor).await];
    assert_eq!(first, second);
    assert_ne!(second, third);
    eventually_gone(first).await;

    let extractor = Extractor::start(Settings { children: 1, bytes: 5, ..settings() });
    assert_ne!(pid(&extractor).await, pid(&extractor).await);
}

async fn children_without_work_end() {
    let extractor = Extractor::start(Settings { idle: Duration::from_millis(50), ..settings() });
    let child = pid(&extractor).await;
    eventually_gone(child).await;
    assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n");
    let child = pid(&extractor).await;
    drop(extractor);
    eventually_gone(child).await;
}

async fn as_many_documents_are_read_at_once_as_there_are_children() {
    let extractor = Extractor::start(settings());
    let asked = (0..40).map(|_| {
        let extractor = extractor.clone();
        tokio::spawn(async move { pid(&extractor).await })
    });
    let mut pids = Vec::new();
    for answer in asked.collect::<Vec<_>>() {
        pids.push(answer.await.unwrap());
    }
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() <= 2, "{pids:?}");
}

/// What the next scenario starts and kills: reads one document that tells the child, then one that never ends.
async fn parent() -> ExitCode {
    let extractor = Extractor::start(Settings { children: 1, ..settings() });
    say(&pid(&extractor).await.to_string());
    drop(ask(&extractor, "spin").await);
    ExitCode::FAILURE
}

async fn a_child_ends_with_its_parent_while_it_reads() {
    use std::io::BufRead as _;
    let mut parent =
        Command::new(std::env::current_exe().unwrap()).arg("parent").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    // Long enough for the next document to be under way, and no harm when it is not.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(runs(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually_gone(child).await;
}

async fn a_program_that_cannot_be_started_is_no_fault_of_the_document() {
    let extractor = Extractor::start(Settings { program: "/nonexistent".into(), ..settings() });
    let plain = extractor.extract(Raw::file("a.md", "# Text needs no child")).await.unwrap();
    assert_eq!((plain.format, plain.content.as_str()), (Format::Markdown, "# Text needs no child"));
    let failed = ask(&extractor, "a.txt").await.unwrap_err();
    assert!(failed.may_pass());
    assert_eq!(failed.kind, FailureKind::Unavailable);
}

async fn a_page_of_a_hundred_thousand_elements_in_each_other_is_read() {
    let extractor = Extractor::start(settings());
    for element in ["div", "b"] {
        let page = format!("{}<p>found</p>", format!("<{element}>").repeat(100_000));
        let text = extractor.extract(Raw::html(page, None)).await.unwrap();
        assert_eq!(text.content, "found\n");
    }
}

fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

async fn an_archive_that_unpacks_to_too_much_is_its_own_failure() {
    let extractor = Extractor::start(Settings { children: 1, ..settings() });
    let zeros = vec![b'0'; 8 * 1024 * 1024];
    let bomb = archive(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", &zeros)]);
    let failed = extractor.extract(Raw::file("a.docx", bomb)).await;
    assert_eq!(kind(&failed), Some(FailureKind::TooLarge));
    assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n");
}

/// Each file is damaged in a hundred places, always the same: whatever its parser does, the pool answers.
async fn damaged_files_of_other_peoples_parsers_end_no_pool() {
    let extractor = Extractor::start(Settings { wall: Duration::from_secs(10), ..settings() });
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |kind: &str, target: &str| {
        let package = "http://schemas.openxmlformats.org/package/2006/relationships";
        format!(
            "<Relationships xmlns='{package}'><Relationship Id='a' Type='{office}/{kind}' Target='{target}'/></Relationships>"
        )
    };
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let book = format!(
        "<workbook xmlns='{main}' xmlns:r='{office}'><sheets><sheet name='One' sheetId='1' r:id='a'/></sheets></workbook>"
    );
    let sheet = format!(
        "<worksheet xmlns='{main}'><sheetData><row r='1'><c r='A1'><v>1</v></c></row></sheetData></worksheet>"
    );
    let workbook = archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", relation("officeDocument", "xl/workbook.xml").as_bytes()),
        ("xl/_rels/workbook.xml.rels", relation("worksheet", "a.xml").as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/a.xml", sheet.as_bytes()),
    ]);
    let message = b"From: a@b.c\r\nSubject: x\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nwords\r\n--x--\r\n";
    let files =
        [("a.pdf", include_bytes!("small.pdf").to_vec()), ("a.xlsx", workbook), ("a.eml", message.to_vec())];
    for (name, whole) in files {
        let read = extractor.extract(Raw::file(name, whole.clone())).await;
        assert!(read.is_ok(), "{name}: {read:?}");
        // A generator of numbers that needs no crate: the constants are Knuth's.
        let mut number = 7_u64;
        for _ in 0..100 {
            let mut damaged = whole.clone();
            for _ in 0..4 {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let place = usize::try_from(number >> 33).unwrap() % damaged.len();
                damaged[place] = u8::try_from(number >> 56).unwrap();
            }
            drop(extractor.extract(Raw::file(name, damaged)).await);
        }
        assert_eq!(ask(&extractor, "next.txt").await.unwrap().content, "Some words.\n", "{name}");
    }
}

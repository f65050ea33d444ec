use std::io::{Cursor, Write as _};

use proptest::prelude::*;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::testing::{Raw, archive, texts};
use super::*;

type Memory = Archive<Cursor<Vec<u8>>>;

fn open(bytes: Vec<u8>) -> Result<Memory, ArchiveError> {
    Archive::open(Cursor::new(bytes))
}

fn refusal(bytes: Vec<u8>) -> &'static str {
    open(bytes).unwrap_err().code().unwrap()
}

fn deflated(entries: &[(&str, &[u8])], options: SimpleFileOptions) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read(archive: &mut Memory, index: usize) -> Result<Vec<u8>, EntryError> {
    archive.read(index, u64::MAX)
}

#[test]
fn stored_and_deflated_entries_are_read() {
    let mut stored = open(texts(&[("a.md", "one"), ("b/c.md", "two")])).unwrap();
    assert_eq!(read(&mut stored, 1).unwrap(), b"two");
    let text = "again and ".repeat(10_000);
    let mut packed = open(deflated(&[("a.md", text.as_bytes())], SimpleFileOptions::default())).unwrap();
    assert_eq!(read(&mut packed, 0).unwrap(), text.as_bytes());
}

#[test]
fn zip64_is_read() {
    let options = SimpleFileOptions::default().large_file(true);
    let mut archive = open(deflated(&[("a.md", b"large")], options)).unwrap();
    assert_eq!(read(&mut archive, 0).unwrap(), b"large");
}

#[test]
fn entries_with_a_data_descriptor_are_read() {
    let mut zip = ZipWriter::new_stream(Vec::new());
    for name in ["a.md", "b.md"] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(b"streamed").unwrap();
    }
    let mut archive = open(zip.finish().unwrap().into_inner()).unwrap();
    assert_eq!(read(&mut archive, 0).unwrap(), b"streamed");
    assert_eq!(read(&mut archive, 1).unwrap(), b"streamed");
}

#[test]
fn what_is_no_archive_or_cut_is_refused() {
    assert_eq!(refusal(Vec::new()), "archive_invalid");
    assert_eq!(refusal(b"%PDF-1.7".to_vec()), "archive_invalid");
    let whole = texts(&[("a.md", "some text"), ("b.md", "more")]);
    for cut in [1, 10, 22, 60, whole.len() - 1] {
        assert_eq!(refusal(whole[..whole.len() - cut].to_vec()), "archive_invalid", "cut by {cut}");
    }
}

#[test]
fn a_directory_that_does_not_fit_is_refused() {
    let beyond = archive(&[Raw { place: Some(1_000_000), ..Raw::new("a.md", "a") }]);
    assert_eq!(refusal(beyond), "archive_invalid");
    // The end of the directory counts fewer entries than it has.
    let mut fewer = texts(&[("a.md", "a"), ("b.md", "b")]);
    let end = fewer.len() - 22;
    fewer[end + 8] = 1;
    fewer[end + 10] = 1;
    assert_eq!(refusal(fewer), "archive_invalid");
}

#[test]
fn entries_that_overlap_are_refused() {
    let same = archive(&[Raw::new("a.md", "text"), Raw { place: Some(0), ..Raw::new("b.md", "text") }]);
    assert_eq!(refusal(same), "archive_invalid");
    let mut reaches = texts(&[("a.md", "text"), ("b.md", "text")]);
    // The packed size of the first entry, in the directory.
    let directory = reaches.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    reaches[directory + 20] = 200;
    assert_eq!(refusal(reaches), "archive_invalid");
}

#[test]
fn encrypted_entries_are_refused() {
    let locked = archive(&[Raw::new("a.md", "a"), Raw { flags: 1, ..Raw::new("b.md", "b") }]);
    assert_eq!(refusal(locked), "archive_encrypted");
}

#[test]
fn more_than_100_000_entries_are_refused_before_they_are_read() {
    // ZIP64, as no other archive counts so far.
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for number in 0..=MAX_ENTRIES {
        zip.add_directory(number.to_string(), SimpleFileOptions::default()).unwrap();
    }
    assert_eq!(refusal(zip.finish().unwrap().into_inner()), "archive_bomb");
}

#[test]
fn more_bytes_than_the_archive_may_hold_are_refused() {
    let says = |size| archive(&[Raw { size: Some(size), ..Raw::new("a.md", "a") }]);
    let limit = u32::try_from(MAX_BYTES + MAX_RATIO * says(0).len() as u64).unwrap();
    assert!(open(says(limit)).is_ok());
    assert_eq!(refusal(says(limit + 1)), "archive_bomb");
}

#[test]
fn an_entry_that_holds_more_than_it_says_fails_and_is_not_read_further() {
    let zeros = vec![0; 4 * 1024 * 1024];
    let mut bytes = deflated(&[("a.md", &zeros), ("b.md", b"good")], SimpleFileOptions::default());
    let size = u32::try_from(zeros.len()).unwrap().to_le_bytes();
    while let Some(place) = bytes.windows(4).position(|window| window == size) {
        bytes[place..place + 4].copy_from_slice(&100_u32.to_le_bytes());
    }
    let mut archive = open(bytes).unwrap();
    let mut passed = 0;
    let copied = archive.copy(0, &mut |chunk| {
        passed += chunk.len();
        Ok(())
    });
    assert!(matches!(copied, Err(EntryError::Corrupt)) && passed <= 100);
    assert_eq!(read(&mut archive, 1).unwrap(), b"good");
}

#[test]
fn a_damaged_entry_fails_alone() {
    let entries = [
        Raw { crc: Some(7), ..Raw::new("crc.md", "text") },
        Raw { method: 8, ..Raw::new("deflate.md", "\u{7f}no deflate at all") },
        Raw { method: 99, ..Raw::new("method.md", "text") },
        Raw { size: Some(9), ..Raw::new("short.md", "text") },
        Raw::new("good.md", "text"),
    ];
    let mut bytes = archive(&entries);
    // The last damaged one has no head where it should be.
    let place = bytes.windows(8).position(|window| window == b"short.md").unwrap();
    bytes[place - 30] = b'X';
    let mut archive = open(bytes).unwrap();
    for index in 0..4 {
        assert!(matches!(read(&mut archive, index), Err(EntryError::Corrupt)), "{index}");
    }
    assert_eq!(read(&mut archive, 4).unwrap(), b"text");
    assert!(matches!(archive.read(4, 3), Err(EntryError::TooLarge)));
}

#[test]
fn a_sink_that_fails_is_told_from_an_entry_that_is_damaged() {
    let mut archive = open(texts(&[("a.md", "a")])).unwrap();
    let failed = archive.copy(0, &mut |_| Err(io::ErrorKind::StorageFull.into()));
    assert!(matches!(failed, Err(EntryError::Sink(error)) if error.kind() == io::ErrorKind::StorageFull));
}

#[test]
fn a_text_is_decoded_and_bounded_before_and_after() {
    let wide: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain("é".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    // Three bytes of UTF-8 are two of UTF-16.
    let grows: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain([0x2D, 0x4E].repeat(MAX_TEXT_BYTES / 2 - 1)).collect();
    let entries = [wide, vec![b'a'; MAX_TEXT_BYTES], vec![b'a'; MAX_TEXT_BYTES + 1], grows];
    let entries = entries.map(|bytes| Raw::new("a.md", bytes));
    let mut archive = open(archive(&entries)).unwrap();
    assert_eq!(archive.text(0).unwrap(), ("é".to_owned(), true));
    assert!(archive.text(1).is_ok());
    assert!(matches!(archive.text(2), Err(EntryError::TooLarge)));
    assert!(matches!(archive.text(3), Err(EntryError::TooLarge)));
}

fn names(entries: &[Raw]) -> (Vec<String>, usize) {
    let archive = open(archive(entries)).unwrap();
    (archive.entries().iter().map(|entry| entry.name.clone()).collect(), archive.warnings().len())
}

#[test]
fn names_are_utf_8_flagged_or_not_and_composed() {
    let flagged = Raw { flags: 1 << 11, ..Raw::new("Zoë.md", "") };
    assert_eq!(names(&[flagged, Raw::new("Zoe\u{308}.md", "")]), (vec!["Zoë.md".into(), "Zoë.md".into()], 0));
    assert_eq!(names(&[Raw::new("a\\b\\c.md", "")]).0, ["a/b/c.md"]);
}

#[test]
fn names_that_are_not_utf_8_are_decoded_by_their_looks_with_a_warning() {
    let russian = "Заметки о путешествии.md\nСписок покупок.md\nПланы на год.md";
    let (bytes, _, _) = encoding_rs::IBM866.encode(russian);
    let raw: Vec<Raw> = bytes.split(|byte| *byte == b'\n').map(|name| Raw::new(name, "")).collect();
    assert_eq!(names(&raw), (russian.lines().map(str::to_owned).collect(), 3));
    let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode("日本語のノートと旅行の計画.md");
    assert_eq!(names(&[Raw::new(bytes, "")]), (vec!["日本語のノートと旅行の計画.md".into()], 1));
    assert_eq!(names(&[Raw::new(b"caf\xE9.md", "")]), (vec!["café.md".into()], 1));
}

#[test]
fn names_that_look_like_nothing_are_those_of_dos() {
    assert_eq!(
        names(&[Raw::new(b"caf\x82.md", ""), Raw::new("ä.md", "")]),
        (vec!["café.md".into(), "ä.md".into()], 1)
    );
}

#[test]
fn parts_are_found_at_the_root_or_in_a_single_top_folder() {
    let parts = |names: &[&str]| {
        let entries: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        open(texts(&entries)).unwrap().parts()
    };
    assert_eq!(parts(&["Export-1-Part-1.zip", "Export-1-Part-2.zip", "__MACOSX/x"]), [0, 1]);
    assert_eq!(parts(&["Export/", "Export/x-Part-1.zip", "Export/x-Part-12.ZIP"]), [1, 2]);
    assert_eq!(parts(&["Export/a-Part-1.zip", "Other/b.md"]), [0_usize; 0]);
    assert_eq!(parts(&["Export/deep/a-Part-1.zip", "archive.zip", "Part-.zip"]), [0_usize; 0]);
}

#[test]
fn parts_count_against_the_bounds_of_the_whole() {
    let part = archive(&[Raw { size: Some(u32::try_from(MAX_BYTES).unwrap()), ..Raw::new("a.md", "") }]);
    let mut whole = open(archive(&[Raw::new("x-Part-1.zip", &part)])).unwrap();
    whole.add_part(Cursor::new(part.clone())).unwrap();
    assert!(matches!(whole.add_part(Cursor::new(part)), Err(ArchiveError::Bomb)));
    assert_eq!(whole.entries().len(), 2);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        is_damaged in any::<bool>(),
    ) {
        if is_damaged {
            bytes = archive(&[Raw::new("a/b.md", "text"), Raw { method: 8, ..Raw::new("c", "\u{3}\0") }]);
            for (place, byte) in places {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        if let Ok(mut archive) = open(bytes) {
            for index in 0..archive.entries().len() {
                let size = archive.entries()[index].size;
                if let Ok(bytes) = read(&mut archive, index) {
                    prop_assert_eq!(bytes.len() as u64, size);
                }
            }
            let _ = Tree::of(&archive, &archive.parts());
        }
    }
}

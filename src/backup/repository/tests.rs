use super::*;

async fn repository(folder: &Path, ring: Option<&str>) -> Repository {
    let ring = ring.map(|digit| Keyring::parse(&digit.repeat(64)).unwrap());
    Repository::open(&AssetLocation::Folder(folder.to_owned()), ring).await.unwrap()
}

fn pieces(parts: &[&'static [u8]]) -> BoxStream<'static, anyhow::Result<Bytes>> {
    let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::from_static(part))).collect();
    stream::iter(parts).boxed()
}

async fn whole(repository: &Repository, file: &FileEntry) -> anyhow::Result<Vec<u8>> {
    let parts: Vec<Vec<u8>> = repository.read(file).try_collect().await?;
    Ok(parts.concat())
}

fn list(second: i64, file: &FileEntry) -> Manifest {
    Manifest::new(Timestamp::from_seconds(second), "1".to_owned(), vec![file.clone()])
}

async fn name(repository: &Repository, selection: Selection) -> anyhow::Result<String> {
    Ok(repository.manifest(&selection).await?.0)
}

#[tokio::test]
async fn what_is_known_is_not_stored_again_and_what_nothing_names_goes() {
    for ring in [None, Some("a")] {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), ring).await;
        let mut saved = Saved::default();
        let first = repository.save(&mut saved, "auth.db", pieces(&[b"one", b"two"])).await.unwrap();
        assert_eq!(whole(&repository, &first).await.unwrap(), b"onetwo");
        repository.finish(&list(1, &first)).await.unwrap();

        let mut saved = Saved::of(repository.newest_compatible().await.unwrap());
        let second = repository.save(&mut saved, "auth.db", pieces(&[b"one"])).await.unwrap();
        assert_eq!(saved.new_bytes(), 0);
        let made = repository.finish(&list(2, &second)).await.unwrap();
        let cut = folder.path().join(PIECES).join(&second.pieces[0].object[..2]).join("x#1");
        std::fs::write(&cut, "").unwrap();
        assert_eq!(repository.prune(&Retention::newest(1), &made).await.unwrap(), 1);
        assert_eq!(repository.engine.list(Some(&Key::from(PIECES))).count().await, 1);
        assert!(!cut.exists());
        assert_eq!(whole(&repository, &second).await.unwrap(), b"one");
    }
}

#[tokio::test]
async fn the_newest_that_is_not_after_a_moment_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), None).await;
    let file = repository.save(&mut Saved::default(), "auth.db", pieces(&[b"one"])).await.unwrap();
    let mut made = Vec::new();
    for second in [10, 20, 30] {
        made.push(repository.finish(&list(second, &file)).await.unwrap());
    }
    assert_eq!(repository.names().await.unwrap(), made);
    assert!(repository.finish(&list(20, &file)).await.is_err(), "none takes the place of another");
    let at = |seconds| Selection::At(Timestamp::from_seconds(seconds));
    assert_eq!(name(&repository, at(20)).await.unwrap(), made[1]);
    assert_eq!(name(&repository, at(29)).await.unwrap(), made[1]);
    assert_eq!(name(&repository, at(99)).await.unwrap(), made[2]);
    let refusal = name(&repository, at(9)).await.unwrap_err().to_string();
    assert!(refusal.contains("no such backup") && refusal.contains(&made.join(", ")), "{refusal}");
    assert_eq!(name(&repository, Selection::Newest).await.unwrap(), made[2]);
    assert_eq!(name(&repository, Selection::Named(made[0].clone())).await.unwrap(), made[0]);
}

#[tokio::test]
async fn what_the_rules_keep_stays_whole() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), None).await;
    let mut saved = Saved::default();
    let mut made = Vec::new();
    // Two in each of two hours, each with a piece of its own.
    for (second, text) in [(0, b"a"), (60, b"b"), (3_600, b"c"), (3_660, b"d")] {
        let file = repository.save(&mut saved, "auth.db", pieces(&[&text[..]])).await.unwrap();
        made.push(repository.finish(&list(second, &file)).await.unwrap());
    }
    assert_eq!(repository.prune(&Retention::hourly(2), &made[3]).await.unwrap(), 2);
    assert_eq!(repository.names().await.unwrap(), [made[1].clone(), made[3].clone()]);
    assert_eq!(repository.engine.list(Some(&Key::from(PIECES))).count().await, 2);
    for (name, text) in [(&made[1], b"b"), (&made[3], b"d")] {
        let (_, manifest) = repository.manifest(&Selection::Named(name.clone())).await.unwrap();
        assert_eq!(whole(&repository, &manifest.files[0]).await.unwrap(), text);
    }
}

#[tokio::test]
async fn a_backup_of_a_clock_that_was_put_back_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), None).await;
    let file = repository.save(&mut Saved::default(), "auth.db", pieces(&[b"one"])).await.unwrap();
    repository.finish(&list(10, &file)).await.unwrap();
    let newest = repository.finish(&list(20, &file)).await.unwrap();
    let made = repository.finish(&list(5, &file)).await.unwrap();
    assert_eq!(repository.prune(&Retention::newest(1), &made).await.unwrap(), 1);
    assert_eq!(repository.names().await.unwrap(), [made, newest]);
}

#[tokio::test]
async fn what_is_encrypted_opens_with_its_key_alone_and_is_not_mixed_with_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = repository(folder.path(), Some("a")).await;
    let file = sealed.save(&mut Saved::default(), "auth.db", pieces(&[b"a secret"])).await.unwrap();
    sealed.finish(&list(1, &file)).await.unwrap();
    for (ring, about) in [(None, "is encrypted"), (Some("b"), "does not open")] {
        let other = repository(folder.path(), ring).await;
        let refusal = format!("{:#}", other.manifest(&Selection::Newest).await.unwrap_err());
        assert!(refusal.contains(about), "{refusal}");
        assert!(other.newest_compatible().await.unwrap().is_none());
    }
    assert!(sealed.newest_compatible().await.unwrap().is_some());

    // Anybody who can write to the location could have put it there, so it must not be accepted as sealed.
    let plain = repository(folder.path(), None).await;
    let file = plain.save(&mut Saved::default(), "auth.db", pieces(&[b"not a secret"])).await.unwrap();
    plain.finish(&list(2, &file)).await.unwrap();
    assert!(name(&plain, Selection::Newest).await.is_ok());
    let refusal = name(&sealed, Selection::Newest).await.unwrap_err().to_string();
    assert!(refusal.contains("not encrypted"), "{refusal}");
    assert!(sealed.newest_compatible().await.unwrap().is_none());
}

#[tokio::test]
async fn a_sealed_list_that_is_put_in_the_place_of_another_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = repository(folder.path(), Some("a")).await;
    let file = sealed.save(&mut Saved::default(), "auth.db", pieces(&[b"a secret"])).await.unwrap();
    let first = sealed.finish(&list(1, &file)).await.unwrap();
    let second = sealed.finish(&list(2, &file)).await.unwrap();
    let lists = folder.path().join(SNAPSHOTS);
    std::fs::copy(lists.join(first), lists.join(second)).unwrap();
    let refusal = format!("{:#}", sealed.manifest(&Selection::Newest).await.unwrap_err());
    assert!(refusal.contains("the place of another"), "{refusal}");
}

#[tokio::test]
async fn damage_is_named_and_a_full_backup_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(folder.path(), None).await;
    let file = repository.save(&mut Saved::default(), "auth.db", pieces(&[b"one"])).await.unwrap();
    let object = &file.pieces[0].object;
    let path = folder.path().join(PIECES).join(&object[..2]).join(object);
    std::fs::write(&path, "other").unwrap();
    let refusal = format!("{:#}", whole(&repository, &file).await.unwrap_err());
    assert!(
        refusal.contains("damaged") && refusal.contains(object) && refusal.contains("auth.db"),
        "{refusal}"
    );
    std::fs::remove_file(&path).unwrap();
    let refusal = format!("{:#}", whole(&repository, &file).await.unwrap_err());
    assert!(refusal.contains("lacks") && refusal.contains(object), "{refusal}");
    repository.save(&mut Saved::default(), "auth.db", pieces(&[b"one"])).await.unwrap();
    assert_eq!(whole(&repository, &file).await.unwrap(), b"one");
}

#[tokio::test]
async fn chunks_of_any_size_become_pieces() {
    let chunks =
        vec![Ok(Bytes::from(vec![1; PIECE_BYTES + 5])), Ok(Bytes::new()), Ok(Bytes::from_static(b"end"))];
    let pieces: Vec<Bytes> = in_pieces(stream::iter(chunks).boxed()).try_collect().await.unwrap();
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [PIECE_BYTES, 8]);
}

CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT);
CREATE TABLE workspace_states (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    -- Rises with each change: what is older changes nothing.
    revision BIGINT NOT NULL,
    suspended BOOLEAN NOT NULL,
    -- Whether nothing of it is left here.
    purged BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sync_runs (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Of the sync, which has many runs.
    name TEXT NOT NULL,
    -- Where the directory goes; the root, when absent.
    folder_id TEXT,
    policy BIGINT NOT NULL,
    prune BOOLEAN NOT NULL,
    -- As in the contract (RunStatus).
    state BIGINT NOT NULL,
    -- 1: it is carried out, 2: it is rolled back.
    phase BIGINT NOT NULL,
    -- Who started what is under way.
    asker_kind TEXT NOT NULL,
    asker_id TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    conflicts BIGINT NOT NULL,
    pruned BIGINT NOT NULL,
    processed BIGINT NOT NULL,
    total BIGINT NOT NULL,
    would_create BIGINT NOT NULL,
    would_update BIGINT NOT NULL,
    would_skip BIGINT NOT NULL,
    would_conflict BIGINT NOT NULL,
    -- Documents of the manifest.
    documents BIGINT NOT NULL,
    -- Bytes of the texts that are kept until the run is over.
    bytes BIGINT NOT NULL,
    error TEXT,
    -- Workers in a row that were lost, or gave up for now, without a step done.
    tries BIGINT NOT NULL,
    not_before BIGINT,
    cancel_asked BOOLEAN NOT NULL,
    holder TEXT,
    lease_until BIGINT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    rollback_until BIGINT, origin BIGINT NOT NULL DEFAULT 0, file_name TEXT, archive_bytes BIGINT NOT NULL DEFAULT 0, object_bytes BIGINT NOT NULL DEFAULT 0, asker_name TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE sync_details (
    workspace_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    -- The documents of the manifest without their texts, and what the preview noted.
    manifest BLOB NOT NULL,
    -- Documents that nothing was written for, and why.
    stills BLOB NOT NULL,
    -- What a rollback left alone, and why.
    kept BLOB NOT NULL,
    PRIMARY KEY (workspace_id, run_id)
);
CREATE TABLE sync_pieces (
    workspace_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace_id, run_id, place)
);
CREATE TABLE sync_batches (
    workspace_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    phase BIGINT NOT NULL,
    place BIGINT NOT NULL,
    -- Whether all steps are known to be done.
    settled BOOLEAN NOT NULL,
    -- JSON, compressed.
    steps BLOB NOT NULL,
    PRIMARY KEY (workspace_id, run_id, phase, place)
);
CREATE TABLE "sync_entries" (
    workspace_id TEXT NOT NULL,
    -- As in sync_runs.
    origin BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- 1: file, 2: folder.
    kind BIGINT NOT NULL,
    path TEXT NOT NULL,
    item_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    -- Empty for folders.
    content_hash TEXT NOT NULL,
    -- The run that wrote it.
    run_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, origin, name, kind, path)
) WITHOUT ROWID;
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_workspace_states', 'dbc2f3e8d29966c61bd5789f6a24b417338a09610e82583b50457896cdd08b61', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_sync', '5b77adedea67c097d8dfc17e74db46fcc3eb712d1f17f1f2f3a3d56211ca5490', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0003_imports', 'f5fa2b1b8352a780eef545e29fbd59a8cc3602c284c172348d4de18e5c3fd24d', 'contract', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0004_asker_names', '76ebba3f06526480cf5fcc1fd87760c104a0e172d4c3565abff999ca5181936b', 'expand', '0.1.0');
INSERT INTO "sync_runs" ("workspace_id", "id", "name", "folder_id", "policy", "prune", "state", "phase", "asker_kind", "asker_id", "created", "updated", "skipped", "conflicts", "pruned", "processed", "total", "would_create", "would_update", "would_skip", "would_conflict", "documents", "bytes", "error", "tries", "not_before", "cancel_asked", "holder", "lease_until", "created_at", "started_at", "finished_at", "rollback_until", "origin", "file_name", "archive_bytes", "object_bytes", "asker_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67', '/Vault', NULL, 1, 0, 4, 1, 'user', '01a22379-1167-722c-8296-5d0bbe716b43', 2, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0, 1, 0, NULL, 0, NULL, 0, '01a22379-1100-785d-80bd-ae7343f331ff', 1795891565526673, 1795891565307286, 1795891565362771, 1795891565526673, 1796496365526673, 1, 'vault.zip', 435, 1073741824, 'Owner');
INSERT INTO "sync_details" ("workspace_id", "run_id", "manifest", "stills", "kept") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67', X'7B0200000000000028B52FFD607B011D0B00F6564523306BAC03380DE3A9D8665A594243965051FC94AFA261A02D800F0796F80723322252383C0039003900497DD23ACECE8D25E0D7D1D5653720C06DD7148A679FECDA11A7BCBAD33485891AC41CA086AC6520641BE72050B43CC83A01CBB2CA3ABB1380D2FC238B9D2A859DF26B5AA114DBD5F4FAA43D383BA3AEBCFAF32C4B718F63871964958540D65A93DD8BD11FEC35C6797518BB4A8D19F8EC4C972103676DAFCEAFA3B33BD80A57778D846B247824D869836B5F4D33C2455FAD090D1C3B5EA45CA000FBB9191BCFAE93659C92E9425BD755A674AF029322C14E17B0E1DC05C8CE35832ED38444CA0548148901E94A313D5ADB20665A6B87863062E1A009DC27D5F487899C679783588C82344D5FDD715D9E2D1C00544819DB1DE76B58032167B61DE266D06207BBB6E22A23F66ECD9201B931B49061F70BB177B80CD1A16EBC595CCD8D96B6ACC2F965149999F31C5C67F80C93FBC1B648F028E1149B51', X'020000000000000028B52FFD20021100005B5D', X'020000000000000028B52FFD20021100005B5D');
INSERT INTO "sync_batches" ("workspace_id", "run_id", "phase", "place", "settled", "steps") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67', 1, 0, 1, X'F40000000000000028B52FFD20F44D0500C28A221F604BAA031F8F464A922F1161AFA9164917A0971924910E46AA90834510045C060963B1E9F9E0450715C921AD16226C1FBA81FBF99C62042EE269F4CD2DF878E179848E31124A7C704059C3081463CC51107550D903E09C35CCF5693D9384138A3E305BEAC9586C9A6F1697E07A56D8B6FC06BED073AFC7F0FCF588DEC4F38F1373EAFAD456C21705010A002F4220668F17A13B0C0074982AB27E84C910CDB16045943A9432');
INSERT INTO "sync_batches" ("workspace_id", "run_id", "phase", "place", "settled", "steps") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67', 1, 1, 1, X'440100000000000028B52FFD604400CD0600F24E2E20406758077353AC6D5B119CF4D0556D51E5CFF074BFEFBEC32E54D01D15457141030B380F0F4DC4E755C9B4C0847AD0F5683EB2DFD19115597C122A56C74AEF80891DAAB576F4DB8D0A63252149844912D54A10A89A445A539E646D29BBABEFBE505E8ED6DD79183A1B7174B90C5F2F08A18246B76DC6EE32E3C9A418CC9094F8D8BB47E668B16843A212BA61E451D31C1CF7D9B1796417B0C33D03AE70EFCA4C83A3171014C0E1C670F7A5B2E1E8B529E5BB478721B842200A007E73F48B10A8D9E3850C4D06200EB3A8BC2CD31C1A529244B10205');
INSERT INTO "sync_batches" ("workspace_id", "run_id", "phase", "place", "settled", "steps") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67', 1, 2, 1, X'AA0100000000000028B52FFD60AA00E5080036953F206067EB08A8A8F848D12CC63F7445D8D148005259EBD80ABF34792A599224C001380036003400EC7869936377DB01A5EAE3B5A5D44BAB4EE7FBD2C83F3CE6FD0C5086D37F94A950A47E00F8A71150A785E72114E92F8A54A7CE2806650C046CB779F46F9C96256BD569C1790545EB94691467BE0193ADDFB664593A985D51D46828A368DC30DF419D3E62F1109076AB4DDEFEED030943D87B35B7DEF01648780EFE51B42C09C6E9CF463E54A49CBCFEB5EAAD668D91B50D81DD31B266C8B1F9F2AEC6CAA5B7CBED18048D38138DB3F0062A4A4EE73FF23905EF51A44B220A91BD989364DB8ADD2A7147C86D25A87C1F2BC5A915439AE5522CBE64578C030900678B6B39449D128949419C11582A12A0FD0D4239EAE4772865');
INSERT INTO "sync_entries" ("workspace_id", "origin", "name", "kind", "path", "item_id", "version", "content_hash", "run_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, '/Vault', 1, 'Note.md', '01a2237a-92fb-7000-8066-150870a97f59', 1, '03850167edcd7005c90fd9dfd2673060d7c6b695cc99b4703467593a203e9a86', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67');
INSERT INTO "sync_entries" ("workspace_id", "origin", "name", "kind", "path", "item_id", "version", "content_hash", "run_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, '/Vault', 2, '', '01a2237a-92fb-7000-801a-5e7ed9d10299', 0, '', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67');
INSERT INTO "sync_entries" ("workspace_id", "origin", "name", "kind", "path", "item_id", "version", "content_hash", "run_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, '/Vault', 3, 'plan.svg', '01a2237a-92fb-7000-808e-c4ccc5ebca0f', 0, 'e5009587fb9883f84c3654d66cd6329a79d00be18884172c1b2514a4cfbd7d53', '01a2237a-92fb-7d6a-b5a0-cb45bcf51c67');
CREATE INDEX sync_runs_due ON sync_runs (created_at) WHERE state IN (2, 3);
CREATE UNIQUE INDEX sync_runs_busy ON sync_runs (workspace_id, origin, name) WHERE state IN (2, 3);

CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT);
CREATE TABLE feed_heads (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, forgotten BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE feed_changes (
    workspace_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    item_id TEXT NOT NULL,
    op BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, position)
) WITHOUT ROWID;
CREATE TABLE folders (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_id) REFERENCES folders (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE bodies (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    encoding BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);
CREATE TABLE files (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    folder_id TEXT,
    name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    file_type BIGINT NOT NULL,
    tags TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT, description TEXT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, folder_id) REFERENCES folders (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
) WITHOUT ROWID;
CREATE TABLE memories (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    use_when TEXT,
    is_public BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, deleted_at BIGINT, deletion_id TEXT, is_listed BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE memory_members (
    workspace_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    target_id TEXT NOT NULL,
    query TEXT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, id),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE databases (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    folder_id TEXT,
    name TEXT NOT NULL,
    description TEXT,
    icon TEXT,
    properties TEXT NOT NULL,
    views TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE record_counts (
    workspace_id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    live BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id)
) WITHOUT ROWID;
CREATE TABLE records (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    field_values TEXT NOT NULL,
    content_file_id TEXT,
    title TEXT NOT NULL,
    searched TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, database_id) REFERENCES databases (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE record_versions (
    workspace_id TEXT NOT NULL,
    record_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    field_values TEXT NOT NULL,
    content_file_id TEXT,
    created_at BIGINT NOT NULL,
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, record_id, version),
    FOREIGN KEY (workspace_id, record_id) REFERENCES records (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE record_cells (
    workspace_id TEXT NOT NULL,
    record_id TEXT NOT NULL,
    property_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    database_id TEXT NOT NULL,
    number_key REAL,
    text_key TEXT,
    rest TEXT,
    target_id TEXT,
    PRIMARY KEY (workspace_id, record_id, property_id, place)
) WITHOUT ROWID;
CREATE TABLE trash (
    workspace_id TEXT NOT NULL,
    deletion_id TEXT NOT NULL,
    -- As in the feed.
    kind BIGINT NOT NULL,
    item_id TEXT NOT NULL,
    -- What held it; it may be gone by now.
    parent_id TEXT,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    -- How many items the deletion took, this one included.
    items BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL, author_kind TEXT NOT NULL DEFAULT '', author_id TEXT NOT NULL DEFAULT '', author_name TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, deletion_id)
) WITHOUT ROWID;
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE file_versions (
    workspace_id TEXT NOT NULL,
    file_id TEXT NOT NULL,
    -- The file's version when it got this content.
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- 'token', 'user' or 'sync'; '' for what is older than this table.
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, file_id, version),
    FOREIGN KEY (workspace_id, file_id) REFERENCES files (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
) WITHOUT ROWID;
CREATE TABLE asset_objects (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    -- Names the object in the store; never used a second time.
    object_id TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, hash)
) WITHOUT ROWID;
CREATE TABLE assets (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, hash) REFERENCES asset_objects (workspace_id, hash)
) WITHOUT ROWID;
CREATE TABLE former_properties (
    workspace_id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
) WITHOUT ROWID;
CREATE TABLE former_options (
    workspace_id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    id TEXT NOT NULL,
    property_id TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
) WITHOUT ROWID;
CREATE TABLE workspace_usage (
    workspace_id TEXT NOT NULL,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace_id)
) WITHOUT ROWID;
CREATE TABLE activity (
    workspace_id TEXT NOT NULL,
    happened_at BIGINT NOT NULL,
    -- Where the write ended in the feed, and the row's place among those of the write.
    position BIGINT NOT NULL,
    place BIGINT NOT NULL,
    -- 'user', 'token', 'grant' or 'service'.
    principal_kind TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    principal_name TEXT NOT NULL,
    -- '' for what the service does by itself.
    channel TEXT NOT NULL,
    operation TEXT NOT NULL,
    -- As in the feed.
    kind BIGINT NOT NULL,
    item_id TEXT NOT NULL,
    folder_id TEXT,
    database_id TEXT,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    version_before BIGINT,
    version_after BIGINT,
    -- How many items it took, or brought back.
    items BIGINT NOT NULL,
    -- What was changed, and what that was before, as JSON.
    former TEXT NOT NULL, undoes TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, happened_at, position, place)
) WITHOUT ROWID;
CREATE TABLE memory_versions (
    workspace_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- How many members it had.
    members BIGINT NOT NULL,
    -- JSON: its fields, and the list of its members in their order.
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- '' for what is older than this table.
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, version),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE workspace_states (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    -- Rises with each change: what is older changes nothing.
    revision BIGINT NOT NULL,
    suspended BOOLEAN NOT NULL,
    -- Whether nothing of it is left here.
    purged BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_feed', 'fc758f9d201717b68fc48fa52957075af2274e08918a7774fc7f6cfd5fb9a6da', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_files', 'beae9e79f667c8cda858564453e3fc6957ed5075f1c476e47043a3de514fae0a', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0003_memories', 'c912dde4e7ba2fc6f0fc55c1706514a107b3a53748c154b8d689a416fb4d4735', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0004_databases', '9d581d0eeeda9068ff9d0949ac05ed96e05a2003a674f472f10adc8a0d1834e1', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0005_trash', '9e9cfba6b772d739471142233a2c422488aa92006972dd45091309b483cd6774', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_leases', '08e3fd209edc14944dd2ebbbb4cb29ea35c6ce31d43f6f9a819aec68696596b9', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0006_file_versions', '4ec63a810d579a9bb76cc6e290cf7e5cca6e6fc517b4ec92039f701babdde643', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0007_assets', '890a82456ac20f6da2ece4e788d2d6e1de5b7f9b0214ce351f550d6b5a950a9c', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0008_record_counts_by_creation', 'd30c2ff66a13dcc3a25f649cfdc663fe15e486d60f77a144e922170e72099d2a', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0009_trash_of_databases', '790f6f02a1e004fe6e4e44d38ec18d425e941c08b6f4b367135e4b693b15daee', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0010_files_to_trash', '0e32cadebfc7ee6730493971026066edfb7254fbc2b7315d84ee7b104ea86920', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0012_former_properties', 'a21148484581c556a2db112ef0e0119c86c25020c7b4c3100f70081f3e933e87', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0013_workspace_usage', 'e46f56098f67db0ca076826aed7fc0fe12497c707d54f4536c0b49141d56c712', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0014_memories_to_trash', '2670a53d13583bd43460b5fd68701684d725cc35dd46f920bcd4541f480a8627', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0015_description_of_files', '152db60f43a50648c4923875ef8682ab596b23d6f43954dafc910cd07df317a2', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0016_who_deleted', '5022841967434ff8ad4ff5db82f9e54d3d2695a5a6fe366d53b03fd2b57ad12a', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0017_activity', '8cc8d08309f3e2c6c71410af8e5b20a595779ec55b2661dbb50fa9df7fe4d65a', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0018_undo', '57b9ed3209f96620c91e9877ebbc929c2a4aea6490bcf54fb91c7e8ac2666be7', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0019_listed_memories', 'b96f243ad5bdb0aac0eb334bd65e19491e8a84704b6469e27ee013696cab2a52', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0021_memory_versions', '11ea927dee56f1ea6276c5c91e7fc2934fa4273bc54ede3feb2f1eed3455b39c', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0022_trash_by_author', '71fe8dd40ecd31751675a7636c48556256f4d5ed856c6914bc66cf1fe3e2474b', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0023_counted', '02051031a99bf8951312de4101a056b5933c671f47fd106bc4e2120e72ded8b7', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_workspace_states', 'dbc2f3e8d29966c61bd5789f6a24b417338a09610e82583b50457896cdd08b61', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_feed_forgotten', '460b6affcc8c9bc588904f2e10816073e7b5355f60aa7c386cdfceb99ad68094', 'expand', '0.1.0');
INSERT INTO "feed_heads" ("workspace_id", "position", "updated_at", "forgotten") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 12, 1795891565456378, 0);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, 1, '01a22379-119a-760e-92d1-163ec0f9975e', 1, 1795891466650536);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 2, 2, '01a2237a-919a-7fe5-b39a-232ba53a4215', 1, 1795891564954672);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 3, 1, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', 1, 1795891564971573);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 4, 1, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', 1, 1795891564981717);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 5, 1, '01a2237a-91c4-7458-a5bc-145078734068', 1, 1795891564996020);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 6, 1, '01a2237a-91c4-7458-a5bc-145078734068', 2, 1795891565015515);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 7, 3, '01a2237a-91ed-7db5-b4a6-9ad254f445dd', 1, 1795891565037915);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 8, 4, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', 1, 1795891565056777);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 9, 4, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', 1, 1795891565067012);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 10, 5, '01a2237a-9218-73ef-8cfd-24981f9442ba', 1, 1795891565080952);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 11, 2, '01a2237a-92fb-7000-801a-5e7ed9d10299', 1, 1795891565392853);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 12, 1, '01a2237a-92fb-7000-8066-150870a97f59', 1, 1795891565456378);
INSERT INTO "folders" ("workspace_id", "id", "parent_id", "name", "created_at", "updated_at", "deleted_at", "deletion_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-919a-7fe5-b39a-232ba53a4215', NULL, 'Plans', 1795891564954672, 1795891564954672, NULL, NULL);
INSERT INTO "folders" ("workspace_id", "id", "parent_id", "name", "created_at", "updated_at", "deleted_at", "deletion_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7000-801a-5e7ed9d10299', NULL, 'Vault', 1795891565392853, 1795891565392853, NULL, NULL);
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:20d7ba440e6e4a561019b18ceafff6b7ba0721e785c7622e513f0128bc9783ca', 1, 1685, X'28B52FFD609505ED1C00C63696250073D406CC38E6E554DBED10B00D2D7D2592B9DBDD2DF58504EF8C57F1AB6D96FE5FFD8712880095008700198E3B19E9BEF12D41B2B98779B3CCCB8F843F0D927D7548590F10958C3B1112150D7714B3EDF210C2E1978D5ACBD59D2998D5CB1B75EDC4E7D69410F30A63DCA89D8E6F9C302E9130F6B4BBEEB9695AD9A65E3DA593CAF6B7F9B1D59D766FD712FE6484165FDE62FEAECDDCB24FCA598E677776930563FA1C227C6A8779CB7ED87C495D772A5C122F59CAC942355423E292A86AEE34AD7A387BB539A5C90AB51109780BD0E58E49E428CBC253D2CA5810B466EB22043411090E12167FF9300F4ED1758D21EEEDD457A5F902C1CF34DEF0A4E063E22C9C3C505C6C4450305410009A33C1A977456C62088218A334E7E591EFA97B768E454502C55F7E4830D6FC9CA5B54A4A78498AD45BCB5B5E189F1C578C1C499D62564DF1DCB8DD03C7A42CC971BED45547E7E5D4296DBF72966FF75E1ECDD5F535F1479D5E1B3D5F62CEAC71EA89714A75D49B91725852D730A73B53A3754ABBE8986F232721335A0C31ACF829C2843F9D940335C8C6143D4CBE4585C404F4ED37CD0AC674DDF117E646A5B33C2B6468231BF345D0A9DD7E4E7DA6288C3E81001130D23C9CC1A60B71CA5D1CF9CE2EECC986554E18C5ECC4953F89A75CEBF5B7CCC950BA97D451A0C9487322131E80741D73B2804AAE8231DEF7509F1784B844C2F958F6A16CEE9236AE8D4E091B1BF458F89A7B97035AA6F0F9F0CCE05D92B3E846CF34CC7774CFFA1F7690155513E8CCF95AFB700A8C45A9BA08C9CF6075CDCBF6F1D91CF7B513E37B56CBAFF659CE596D94AA956B03808FA84119524A191A1292822685C2702042621073D6031050C868924A075A20C3C4ECAAC80F6195050D5AF5ABB0A07A6AEC44587873C32363623D7951B8D4ED4CEC65076BE0D638B0859A103630D758518F57459F9A59EFE78C58DFE5558E34B5914CF43F8E1077A2EDC4B060149F6D2B85F3F520F115E27389C79E318E05CE84E5C5A3A29668EDDFB8F3A0F555FF00228BAEEFF5F432EADDCFE38A404AF9C1BD58E4F80D2B43118E64ABC35F5CBA450276FCAE6735617A7013ADE3406368230C16B7E8AEC6F535A984B00136951B24EBF04FC2E0C974AAF8B75EDBD428FAEE4D7D8AB18E69040C909CD939EA4BF70327017F690809C776AAD6FAAC07269FDA7A3A1DC21F9D52F34E69E9F068FE65B5ACD2F13346A1DEFF07B71D7000F3DC1E45F3834D623D0C281D15C18947487F483D6A8F6E5330AD0405351A7E2D0A4F4373AB');
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:47ab9075ac781a3a11f71967a1f95839a7a5afc491c280e96b89b79f291b22f0', 0, 38, X'23204F6B6170690A0A546865206F6B61706920736C6565707320756E74696C206E6F6F6E2E0A');
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:8d529c5bf2c2fa554a12817144445813974a1631898af704f783ab3575abfb7c', 0, 34, X'23204F6B6170690A0A546865206F6B6170692077616B6573206174206461776E2E0A');
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:e4b97632139cbe24d00bcc68da8b743d3aa7629bd49d9fdc73367cf6251a0647', 0, 6, X'476F6E652E0A');
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:739d6458652d6fec523f69452916226a0d2b1376bc961299c370886639f424f3', 0, 95, X'41206E6F74652061626F757420746865206E756D6261743A20215B706C616E2E7376675D282F6170692F6173736574732F30316132323337612D393266622D373030302D383038652D6334636363356562636130662F636F6E74656E74290A');
INSERT INTO "files" ("workspace_id", "id", "folder_id", "name", "folded_name", "file_type", "tags", "size_bytes", "content_hash", "version", "created_at", "updated_at", "deleted_at", "deletion_id", "description") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a22379-119a-760e-92d1-163ec0f9975e', NULL, 'Getting started.md', 'getting started.md', 1, '[]', 1685, 'blake3:20d7ba440e6e4a561019b18ceafff6b7ba0721e785c7622e513f0128bc9783ca', 1, 1795891466650536, 1795891466650536, NULL, NULL, NULL);
INSERT INTO "files" ("workspace_id", "id", "folder_id", "name", "folded_name", "file_type", "tags", "size_bytes", "content_hash", "version", "created_at", "updated_at", "deleted_at", "deletion_id", "description") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ab-75d9-95d0-ac8ed07eac39', '01a2237a-919a-7fe5-b39a-232ba53a4215', 'okapi.md', 'okapi.md', 1, '["animals"]', 34, 'blake3:8d529c5bf2c2fa554a12817144445813974a1631898af704f783ab3575abfb7c', 2, 1795891564971573, 1795891564981717, NULL, NULL, NULL);
INSERT INTO "files" ("workspace_id", "id", "folder_id", "name", "folded_name", "file_type", "tags", "size_bytes", "content_hash", "version", "created_at", "updated_at", "deleted_at", "deletion_id", "description") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91c4-7458-a5bc-145078734068', NULL, 'gone.md', 'gone.md', 1, '[]', 6, 'blake3:e4b97632139cbe24d00bcc68da8b743d3aa7629bd49d9fdc73367cf6251a0647', 1, 1795891564996020, 1795891564996020, 1795891565015515, '01a2237a-91d7-725c-b823-08df1698ded1', NULL);
INSERT INTO "files" ("workspace_id", "id", "folder_id", "name", "folded_name", "file_type", "tags", "size_bytes", "content_hash", "version", "created_at", "updated_at", "deleted_at", "deletion_id", "description") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7000-8066-150870a97f59', '01a2237a-92fb-7000-801a-5e7ed9d10299', 'Note.md', 'note.md', 1, '[]', 95, 'blake3:739d6458652d6fec523f69452916226a0d2b1376bc961299c370886639f424f3', 1, 1795891565456378, 1795891565456378, NULL, NULL, NULL);
INSERT INTO "memories" ("workspace_id", "id", "slug", "name", "description", "use_when", "is_public", "version", "created_at", "updated_at", "deleted_at", "deletion_id", "is_listed") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ed-7db5-b4a6-9ad254f445dd', 'release', 'Release', NULL, 'releasing', 0, 1, 1795891565037915, 1795891565037915, NULL, NULL, 0);
INSERT INTO "memory_members" ("workspace_id", "memory_id", "id", "position", "kind", "target_id", "query", "added_at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ed-7db5-b4a6-9ad254f445dd', '01a2237a-91ee-74b5-88e4-b94bfdb172a1', 0, 1, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', NULL, 1795891565037915);
INSERT INTO "databases" ("workspace_id", "id", "folder_id", "name", "description", "icon", "properties", "views", "created_at", "updated_at", "deleted_at", "deletion_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', NULL, 'Tasks', NULL, NULL, '[{"id":"01a2237a-9200-7bfd-96ad-fc6589feb7cb","name":"Name","type":"text","is_primary":true,"config":{"options":[],"multiple":false,"relation_database_id":null}},{"id":"01a2237a-9209-78ee-82f3-7ea1bd39fdea","name":"Points","type":"number","is_primary":false,"config":{"options":[],"multiple":false,"relation_database_id":null}}]', '[{"id":"01a2237a-9200-76fd-bf6d-6a84dc29bc98","name":"Table","filters":[],"sorts":[],"hidden_field_ids":[],"is_default":true}]', 1795891565056777, 1795891565067012, NULL, NULL);
INSERT INTO "record_counts" ("workspace_id", "database_id", "live") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', 1);
INSERT INTO "records" ("workspace_id", "id", "database_id", "field_values", "content_file_id", "title", "searched", "version", "created_at", "updated_at", "deleted_at", "deletion_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9218-73ef-8cfd-24981f9442ba', '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', '{"01a2237a-9209-78ee-82f3-7ea1bd39fdea":7}', NULL, '', '7', 1, 1795891565080952, 1795891565080952, NULL, NULL);
INSERT INTO "record_versions" ("workspace_id", "record_id", "version", "field_values", "content_file_id", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9218-73ef-8cfd-24981f9442ba', 1, '{"01a2237a-9209-78ee-82f3-7ea1bd39fdea":7}', NULL, 1795891565080952, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "record_cells" ("workspace_id", "record_id", "property_id", "place", "database_id", "number_key", "text_key", "rest", "target_id") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9218-73ef-8cfd-24981f9442ba', '01a2237a-9209-78ee-82f3-7ea1bd39fdea', 0, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', 7.0, NULL, '7', NULL);
INSERT INTO "trash" ("workspace_id", "deletion_id", "kind", "item_id", "parent_id", "name", "path", "items", "deleted_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91d7-725c-b823-08df1698ded1', 1, '01a2237a-91c4-7458-a5bc-145078734068', NULL, 'gone.md', '/gone.md', 1, 1795891565015515, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "file_versions" ("workspace_id", "file_id", "version", "content_hash", "size_bytes", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a22379-119a-760e-92d1-163ec0f9975e', 1, 'blake3:20d7ba440e6e4a561019b18ceafff6b7ba0721e785c7622e513f0128bc9783ca', 1685, 1795891466650536, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "file_versions" ("workspace_id", "file_id", "version", "content_hash", "size_bytes", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ab-75d9-95d0-ac8ed07eac39', 1, 'blake3:47ab9075ac781a3a11f71967a1f95839a7a5afc491c280e96b89b79f291b22f0', 38, 1795891564971573, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "file_versions" ("workspace_id", "file_id", "version", "content_hash", "size_bytes", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ab-75d9-95d0-ac8ed07eac39', 2, 'blake3:8d529c5bf2c2fa554a12817144445813974a1631898af704f783ab3575abfb7c', 34, 1795891564981717, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "file_versions" ("workspace_id", "file_id", "version", "content_hash", "size_bytes", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91c4-7458-a5bc-145078734068', 1, 'blake3:e4b97632139cbe24d00bcc68da8b743d3aa7629bd49d9fdc73367cf6251a0647', 6, 1795891564996020, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
INSERT INTO "file_versions" ("workspace_id", "file_id", "version", "content_hash", "size_bytes", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7000-8066-150870a97f59', 1, 'blake3:739d6458652d6fec523f69452916226a0d2b1376bc961299c370886639f424f3', 95, 1795891565456378, 'sync', 'sync', 'Owner');
INSERT INTO "asset_objects" ("workspace_id", "hash", "object_id", "size_bytes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:e5009587fb9883f84c3654d66cd6329a79d00be18884172c1b2514a4cfbd7d53', '01a2237a-936c-76a7-abcf-08470263e15f', 42);
INSERT INTO "assets" ("workspace_id", "id", "name", "media_type", "hash", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-92fb-7000-808e-c4ccc5ebca0f', 'plan.svg', 'image/svg+xml', 'blake3:e5009587fb9883f84c3654d66cd6329a79d00be18884172c1b2514a4cfbd7d53', 1795891565426962, 'sync', 'sync', 'Owner');
INSERT INTO "workspace_usage" ("workspace_id", "files", "bytes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 4, 1984);
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891466650536, 1, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'grpc', 'create', 1, '01a22379-119a-760e-92d1-163ec0f9975e', NULL, NULL, 'Getting started.md', '/Getting started.md', NULL, 1, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891564954672, 2, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 2, '01a2237a-919a-7fe5-b39a-232ba53a4215', NULL, NULL, 'Plans', '/Plans', NULL, NULL, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891564971573, 3, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 1, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', '01a2237a-919a-7fe5-b39a-232ba53a4215', NULL, 'okapi.md', '/Plans/okapi.md', NULL, 1, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891564981717, 4, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'update', 1, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', '01a2237a-919a-7fe5-b39a-232ba53a4215', NULL, 'okapi.md', '/Plans/okapi.md', 1, 2, 1, '["content"]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891564996020, 5, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 1, '01a2237a-91c4-7458-a5bc-145078734068', NULL, NULL, 'gone.md', '/gone.md', NULL, 1, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565015515, 6, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'trash', 1, '01a2237a-91c4-7458-a5bc-145078734068', NULL, NULL, 'gone.md', '/gone.md', NULL, NULL, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565037915, 7, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 3, '01a2237a-91ed-7db5-b4a6-9ad254f445dd', NULL, NULL, 'Release', '/memories/release', NULL, 1, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565056777, 8, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 4, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', NULL, NULL, 'Tasks', '/Tasks', NULL, 1795891565056777, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565067012, 9, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'update', 4, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', NULL, NULL, 'Tasks', '/Tasks', 1795891565056777, 1795891565067012, 1, '["fields"]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565080952, 10, 0, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token', 'rest', 'create', 5, '01a2237a-9218-73ef-8cfd-24981f9442ba', NULL, '01a2237a-9200-7a4b-8e68-ed0cc2030d3f', 'Untitled', '/Tasks/Untitled', NULL, 1, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565392853, 11, 0, 'service', 'sync', 'Owner', '', 'create', 2, '01a2237a-92fb-7000-801a-5e7ed9d10299', NULL, NULL, 'Vault', '/Vault', NULL, NULL, 1, '[]', '');
INSERT INTO "activity" ("workspace_id", "happened_at", "position", "place", "principal_kind", "principal_id", "principal_name", "channel", "operation", "kind", "item_id", "folder_id", "database_id", "name", "path", "version_before", "version_after", "items", "former", "undoes") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1795891565456378, 12, 0, 'service', 'sync', 'Owner', '', 'create', 1, '01a2237a-92fb-7000-8066-150870a97f59', '01a2237a-92fb-7000-801a-5e7ed9d10299', NULL, 'Note.md', '/Vault/Note.md', NULL, 1, 1, '[]', '');
INSERT INTO "memory_versions" ("workspace_id", "memory_id", "version", "name", "members", "state", "created_at", "author_kind", "author_id", "author_name") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-91ed-7db5-b4a6-9ad254f445dd', 1, 'Release', 1, '{"name":"Release","slug":"release","description":null,"useWhen":"releasing","isPublic":false,"isListed":false,"members":[{"member":"01a2237a-91ee-74b5-88e4-b94bfdb172a1","kind":"file","id":"01a2237a-91ab-75d9-95d0-ac8ed07eac39"}]}', 1795891565037915, 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 'First token');
CREATE INDEX feed_heads_by_updated_at ON feed_heads (updated_at);
CREATE INDEX folders_by_name ON folders (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_parent ON folders (workspace_id, parent_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_deletion ON folders (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX files_by_name ON files (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX memory_members_by_position ON memory_members (workspace_id, memory_id, position);
CREATE INDEX databases_by_name ON databases (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX databases_by_folder ON databases (workspace_id, folder_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX databases_by_deletion ON databases (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX records_by_database ON records (workspace_id, database_id);
CREATE INDEX records_by_body ON records (workspace_id, content_file_id) WHERE content_file_id IS NOT NULL;
CREATE INDEX records_by_deletion ON records (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX record_cells_by_number ON record_cells (workspace_id, database_id, property_id, number_key, record_id, place)
    WHERE number_key IS NOT NULL;
CREATE INDEX record_cells_by_text ON record_cells (workspace_id, database_id, property_id, text_key, record_id, place)
    WHERE text_key IS NOT NULL;
CREATE INDEX record_cells_by_target ON record_cells (workspace_id, target_id) WHERE target_id IS NOT NULL;
CREATE UNIQUE INDEX trash_by_item ON trash (workspace_id, kind, item_id);
CREATE INDEX trash_by_time ON trash (workspace_id, deleted_at, deletion_id);
CREATE INDEX trash_by_age ON trash (deleted_at);
CREATE INDEX files_by_content ON files (workspace_id, content_hash);
CREATE INDEX folders_by_any_parent ON folders (workspace_id, parent_id);
CREATE INDEX file_versions_by_content ON file_versions (workspace_id, content_hash);
CREATE UNIQUE INDEX asset_objects_by_object ON asset_objects (workspace_id, object_id);
CREATE INDEX assets_by_hash ON assets (workspace_id, hash);
CREATE INDEX records_by_creation ON records (workspace_id, database_id, created_at, id, deleted_at)
    WHERE deleted_at IS NULL;
CREATE INDEX databases_by_any_folder ON databases (workspace_id, folder_id);
CREATE INDEX files_by_folder ON files (workspace_id, folder_id, name, id);
CREATE UNIQUE INDEX memories_by_slug ON memories (workspace_id, slug) WHERE deleted_at IS NULL;
CREATE INDEX memories_by_name ON memories (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX memories_by_deletion ON memories (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX memories_public ON memories (id) WHERE is_public AND deleted_at IS NULL;
CREATE INDEX activity_by_principal ON activity (workspace_id, principal_id, happened_at, position, place);
CREATE INDEX activity_by_item ON activity (workspace_id, item_id, position, place);
CREATE INDEX trash_by_author ON trash (workspace_id, author_id, deleted_at, deletion_id);
CREATE INDEX files_in_trash ON files (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX bodies_by_size ON bodies (workspace_id, size_bytes);

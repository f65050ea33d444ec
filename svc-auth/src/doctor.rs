//! What must always hold of the accounts.

use cairn_chassis::doctor::{self, Check, Finding, Progress};
use cairn_chassis::sealing::{Keyring, columns};
use cairn_chassis::sql::{self, Db};

use crate::maintenance::SEALED_COLUMNS;
use crate::{Error, store};

/// Every invariant of the tables.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        rule: "every live workspace has an owner",
        sql: "SELECT 'workspace ' || w.id FROM workspaces w WHERE w.deleted_at IS NULL AND NOT EXISTS \
              (SELECT 1 FROM members m WHERE m.workspace_id = w.id AND m.role = 'owner')",
    },
    Check {
        rule: "every member is a known person in a known workspace",
        sql: "SELECT 'workspace ' || m.workspace_id || ' user ' || m.user_id FROM members m \
              LEFT JOIN users u ON u.id = m.user_id LEFT JOIN workspaces w ON w.id = m.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL",
    },
    Check {
        rule: "every role is one that there is",
        sql: "SELECT 'workspace ' || workspace_id || ' user ' || user_id FROM members \
              WHERE role NOT IN ('owner', 'admin', 'editor', 'contributor', 'viewer')",
    },
    Check {
        rule: "every token has a known owner and a known workspace",
        sql: "SELECT 'token ' || t.id FROM tokens t \
              LEFT JOIN users u ON u.id = t.owner_id LEFT JOIN workspaces w ON w.id = t.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL",
    },
    Check {
        rule: "every token is known by a whole digest",
        sql: "SELECT 'token ' || id FROM tokens WHERE length(digest) <> 32 OR length(last_four) <> 4",
    },
    Check {
        rule: "every session is of a known person and has a whole digest",
        sql: "SELECT 'session ' || s.id FROM sessions s LEFT JOIN users u ON u.id = s.user_id \
              WHERE u.id IS NULL OR length(s.digest) <> 32",
    },
    Check {
        rule: "every invitation is of a known workspace and person, for a role that there is, and has a whole digest",
        sql: "SELECT 'invitation ' || i.id FROM invitations i \
              LEFT JOIN users u ON u.id = i.inviter_id LEFT JOIN workspaces w ON w.id = i.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL OR length(i.digest) <> 32 \
              OR length(i.mail_digest) <> 32 \
              OR i.role NOT IN ('owner', 'admin', 'editor', 'contributor', 'viewer')",
    },
    Check {
        rule: "every link to an OpenID Connect identity is of a known person",
        sql: "SELECT 'user ' || l.user_id FROM oidc_links l LEFT JOIN users u ON u.id = l.user_id \
              WHERE u.id IS NULL",
    },
    Check {
        rule: "whoever has a link to an OpenID Connect identity has proved the email",
        sql: "SELECT 'user ' || u.id FROM oidc_links l JOIN users u ON u.id = l.user_id \
              WHERE CAST(u.email_verified AS INTEGER) <> 1",
    },
    Check {
        rule: "every OAuth grant is of a known person in a known workspace",
        sql: "SELECT 'grant ' || g.id FROM oauth_grants g LEFT JOIN users u ON u.id = g.user_id \
              LEFT JOIN workspaces w ON w.id = g.workspace_id WHERE u.id IS NULL OR w.id IS NULL",
    },
    Check {
        rule: "every OAuth grant has one refresh token that was not rotated",
        sql: "SELECT 'grant ' || g.id FROM oauth_grants g WHERE (SELECT COUNT(*) FROM oauth_refresh_tokens r \
              WHERE r.workspace_id = g.workspace_id AND r.grant_id = g.id AND r.rotated_at IS NULL) <> 1",
    },
    Check {
        rule: "every OAuth token is known by a whole digest",
        sql: "SELECT 'a token of grant ' || grant_id FROM oauth_access_tokens WHERE length(digest) <> 32 UNION ALL \
              SELECT 'a token of grant ' || grant_id FROM oauth_refresh_tokens \
              WHERE length(digest) <> 32 OR (rotated_at IS NULL) <> (salt IS NULL)",
    },
    Check {
        rule: "one signing key is active",
        sql: "SELECT 'active keys: ' || CAST(COUNT(*) AS TEXT) FROM signing_keys WHERE state = 'active' \
              HAVING COUNT(*) <> 1",
    },
    Check {
        rule: "every signing key is whole",
        sql: "SELECT 'key ' || id FROM signing_keys \
              WHERE length(public_key) <> 32 OR (sealing = 'none' AND length(seed) <> 32)",
    },
];

/// Looks for what is wrong with the accounts in a storage, and for sealed secrets that the ring does not open; `None`
/// when it holds no accounts. Nothing is written.
///
/// # Errors
/// When the storage cannot be read.
pub async fn examine(
    storage: &sql::Config,
    ring: Option<&Keyring>,
    progress: Progress<'_>,
) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SERVICE, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut tx = db.begin_read().await?;
    let mut findings = doctor::run(&mut tx, CHECKS, progress).await?;
    findings.extend(columns::examine(&mut tx, SEALED_COLUMNS, ring, progress).await?);
    tx.rollback().await?;
    db.close().await;
    Ok(Some(findings))
}

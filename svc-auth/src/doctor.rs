//! The invariants of the accounts.

use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress, Report};
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
        mend: Mend::GiveUp {
            does: "whoever has been an admin for the longest time is the owner now",
            sql: &[
                "UPDATE members SET role = 'owner' WHERE role = 'admin' AND EXISTS (SELECT 1 FROM workspaces w \
                 WHERE w.id = members.workspace_id AND w.deleted_at IS NULL) AND NOT EXISTS (SELECT 1 FROM members \
                 o WHERE o.workspace_id = members.workspace_id AND o.role = 'owner') AND NOT EXISTS (SELECT 1 FROM \
                 members o WHERE o.workspace_id = members.workspace_id AND o.role = 'admin' AND (o.created_at < \
                 members.created_at OR (o.created_at = members.created_at AND o.user_id < members.user_id)))",
            ],
        },
    },
    Check {
        rule: "every member is a known person in a known workspace",
        sql: "SELECT 'workspace ' || m.workspace_id || ' user ' || m.user_id FROM members m \
              LEFT JOIN users u ON u.id = m.user_id LEFT JOIN workspaces w ON w.id = m.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL",
        mend: Mend::GiveUp {
            does: "the membership is removed",
            sql: &[
                "DELETE FROM members WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = members.user_id) OR NOT \
                 EXISTS (SELECT 1 FROM workspaces w WHERE w.id = members.workspace_id)",
            ],
        },
    },
    Check {
        rule: "every role is one that there is",
        sql: "SELECT 'workspace ' || workspace_id || ' user ' || user_id FROM members \
              WHERE role NOT IN ('owner', 'admin', 'editor', 'contributor', 'viewer')",
        mend: Mend::GiveUp {
            does: "the role is that of a viewer",
            sql: &[
                "UPDATE members SET role = 'viewer' WHERE role NOT IN ('owner', 'admin', 'editor', 'contributor', \
                 'viewer')",
            ],
        },
    },
    Check {
        rule: "every token has a known owner and a known workspace",
        sql: "SELECT 'token ' || t.id FROM tokens t \
              LEFT JOIN users u ON u.id = t.owner_id LEFT JOIN workspaces w ON w.id = t.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL",
        mend: Mend::GiveUp {
            does: "the token is removed",
            sql: &[
                "DELETE FROM tokens WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = tokens.owner_id) OR NOT \
                 EXISTS (SELECT 1 FROM workspaces w WHERE w.id = tokens.workspace_id)",
            ],
        },
    },
    Check {
        rule: "every token is known by a whole digest",
        sql: "SELECT 'token ' || id FROM tokens WHERE length(digest) <> 32 OR length(last_four) <> 4",
        mend: Mend::GiveUp {
            does: "the token is removed, which nobody can use; one of which only the last letters are lost is shown \
                   without them and stays good",
            sql: &[
                "UPDATE tokens SET last_four = '????' WHERE length(last_four) <> 4",
                "DELETE FROM tokens WHERE length(digest) <> 32",
            ],
        },
    },
    Check {
        rule: "every session is of a known person and has a whole digest",
        sql: "SELECT 'session ' || s.id FROM sessions s LEFT JOIN users u ON u.id = s.user_id \
              WHERE u.id IS NULL OR length(s.digest) <> 32",
        mend: Mend::GiveUp {
            does: "the session is removed: its person signs in again",
            sql: &[
                "DELETE FROM sessions WHERE length(digest) <> 32 OR NOT EXISTS (SELECT 1 FROM users u WHERE u.id \
                 = sessions.user_id)",
            ],
        },
    },
    Check {
        rule: "every invitation is of a known workspace and person, for a role that there is, and has a whole digest",
        sql: "SELECT 'invitation ' || i.id FROM invitations i \
              LEFT JOIN users u ON u.id = i.inviter_id LEFT JOIN workspaces w ON w.id = i.workspace_id \
              WHERE u.id IS NULL OR w.id IS NULL OR length(i.digest) <> 32 \
              OR length(i.mail_digest) <> 32 \
              OR i.role NOT IN ('owner', 'admin', 'editor', 'contributor', 'viewer')",
        mend: Mend::GiveUp {
            does: "the invitation is removed: it has to be sent again",
            sql: &[
                "DELETE FROM invitations WHERE length(digest) <> 32 OR length(mail_digest) <> 32 OR role NOT IN \
                 ('owner', 'admin', 'editor', 'contributor', 'viewer') OR NOT EXISTS (SELECT 1 FROM users u WHERE \
                 u.id = invitations.inviter_id) OR NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = \
                 invitations.workspace_id)",
            ],
        },
    },
    Check {
        rule: "every link to an OpenID Connect identity is of a known person",
        sql: "SELECT 'user ' || l.user_id FROM oidc_links l LEFT JOIN users u ON u.id = l.user_id \
              WHERE u.id IS NULL",
        mend: Mend::GiveUp {
            does: "the link is removed",
            sql: &[
                "DELETE FROM oidc_links WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = oidc_links.user_id)",
            ],
        },
    },
    Check {
        rule: "whoever has a link to an OpenID Connect identity has proved the email",
        sql: "SELECT 'user ' || u.id FROM oidc_links l JOIN users u ON u.id = l.user_id \
              WHERE CAST(u.email_verified AS INTEGER) <> 1",
        mend: Mend::ByHand(
            "who has proved an email nobody here knows; remove the row of oidc_links, or set email_verified of \
             the user",
        ),
    },
    Check {
        rule: "every OAuth grant is of a known person in a known workspace",
        sql: "SELECT 'grant ' || g.id FROM oauth_grants g LEFT JOIN users u ON u.id = g.user_id \
              LEFT JOIN workspaces w ON w.id = g.workspace_id WHERE u.id IS NULL OR w.id IS NULL",
        mend: Mend::GiveUp {
            does: "the grant is removed: the app has to be allowed again",
            sql: &[
                "DELETE FROM oauth_access_tokens WHERE EXISTS (SELECT 1 FROM oauth_grants g WHERE g.workspace_id \
                 = oauth_access_tokens.workspace_id AND g.id = oauth_access_tokens.grant_id AND (NOT EXISTS \
                 (SELECT 1 FROM users u WHERE u.id = g.user_id) OR NOT EXISTS (SELECT 1 FROM workspaces w WHERE \
                 w.id = g.workspace_id)))",
                "DELETE FROM oauth_refresh_tokens WHERE EXISTS (SELECT 1 FROM oauth_grants g WHERE g.workspace_id \
                 = oauth_refresh_tokens.workspace_id AND g.id = oauth_refresh_tokens.grant_id AND (NOT EXISTS \
                 (SELECT 1 FROM users u WHERE u.id = g.user_id) OR NOT EXISTS (SELECT 1 FROM workspaces w WHERE \
                 w.id = g.workspace_id)))",
                "DELETE FROM oauth_grants WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = \
                 oauth_grants.user_id) OR NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = \
                 oauth_grants.workspace_id)",
            ],
        },
    },
    Check {
        rule: "every OAuth grant has one refresh token that was not rotated",
        sql: "SELECT 'grant ' || g.id FROM oauth_grants g WHERE (SELECT COUNT(*) FROM oauth_refresh_tokens r \
              WHERE r.workspace_id = g.workspace_id AND r.grant_id = g.id AND r.rotated_at IS NULL) <> 1",
        mend: Mend::GiveUp {
            does: "the grant is removed: the app has to be allowed again",
            sql: &[
                "DELETE FROM oauth_access_tokens WHERE EXISTS (SELECT 1 FROM oauth_grants g WHERE g.workspace_id \
                 = oauth_access_tokens.workspace_id AND g.id = oauth_access_tokens.grant_id AND (SELECT COUNT(*) \
                 FROM oauth_refresh_tokens r WHERE r.workspace_id = g.workspace_id AND r.grant_id = g.id AND \
                 r.rotated_at IS NULL) <> 1)",
                "DELETE FROM oauth_refresh_tokens WHERE (workspace_id, grant_id) IN (SELECT r.workspace_id, \
                 r.grant_id FROM oauth_refresh_tokens r GROUP BY r.workspace_id, r.grant_id HAVING COUNT(CASE WHEN \
                 r.rotated_at IS NULL THEN 1 END) <> 1)",
                "DELETE FROM oauth_grants WHERE (SELECT COUNT(*) FROM oauth_refresh_tokens r WHERE r.workspace_id \
                 = oauth_grants.workspace_id AND r.grant_id = oauth_grants.id AND r.rotated_at IS NULL) <> 1",
            ],
        },
    },
    Check {
        rule: "every OAuth token is known by a whole digest",
        sql: "SELECT 'a token of grant ' || grant_id FROM oauth_access_tokens WHERE length(digest) <> 32 UNION ALL \
              SELECT 'a token of grant ' || grant_id FROM oauth_refresh_tokens \
              WHERE length(digest) <> 32 OR (rotated_at IS NULL) <> (salt IS NULL)",
        mend: Mend::GiveUp {
            does: "the token is removed, which nobody can use",
            sql: &[
                "DELETE FROM oauth_access_tokens WHERE length(digest) <> 32",
                "DELETE FROM oauth_refresh_tokens WHERE length(digest) <> 32 OR (rotated_at IS NULL) <> (salt IS \
                 NULL)",
            ],
        },
    },
    Check {
        rule: "every signing key is whole",
        sql: "SELECT 'key ' || id FROM signing_keys \
              WHERE length(public_key) <> 32 OR (sealing = 'none' AND length(seed) <> 32)",
        mend: Mend::Restore {
            does: "the key is removed, and the next start makes one: identities that it signed have ended, tokens and \
             sessions stay good",
            sql: &[
                "DELETE FROM signing_keys WHERE length(public_key) <> 32 OR (sealing = 'none' AND length(seed) <> 32)",
            ],
        },
    },
    Check {
        rule: "one signing key is active",
        // Without any key, the next start creates one.
        sql: "SELECT 'active keys: ' || CAST(COUNT(CASE WHEN state = 'active' THEN 1 END) AS TEXT) FROM signing_keys \
              HAVING COUNT(CASE WHEN state = 'active' THEN 1 END) <> 1 AND COUNT(*) > 0",
        mend: Mend::Restore {
            does: "the keys are removed, and the next start makes one: identities that they signed have ended, tokens \
             and sessions stay good",
            sql: &[
                "DELETE FROM signing_keys WHERE NOT EXISTS (SELECT 1 FROM signing_keys a WHERE a.state = 'active')",
            ],
        },
    },
];

/// Checks the accounts in a storage, and that the keyring opens every sealed secret; `None` if it holds no accounts.
/// Writes nothing.
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

/// Repairs the accounts in a storage and reports on it; `None` if it holds none. Secrets that cannot be opened are left
/// alone: their key may be found again.
///
/// # Errors
/// When the storage fails; nothing is changed then.
pub async fn mend(storage: &sql::Config, progress: Progress<'_>) -> Result<Option<Report>, Error> {
    let Some(db) = Db::open_existing(storage, store::SERVICE, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let mut report = Report::default();
    let mut tx = doctor::begin(&db).await?;
    doctor::mend(&mut tx, CHECKS, &mut report, progress).await?;
    tx.commit().await?;
    db.close().await;
    Ok(Some(report))
}

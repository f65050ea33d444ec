//! The API tokens of a workspace.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::auth::v1 as proto;
use cairn_proto::domain::Permission;
use cairn_proto::ids::{TokenId, WorkspaceId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{answered, present};
use crate::answers::{ScopeType, Token};
use crate::schema::inputs;

inputs!(CreateToken, UpdateToken);

/// A token to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateToken {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    #[schema(min_items = 1)]
    permissions: Vec<Permission>,
    /// The whole workspace when left out.
    scope: Option<ScopeInput>,
    /// Never when left out.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// Which part of the workspace the token may touch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ScopeInput {
    r#type: ScopeType,
    /// Needed for the type `folders`.
    #[schema(min_items = 1, max_items = 100)]
    folder_ids: Option<Vec<String>>,
}

/// Changes of a token: fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateToken {
    /// Whether it works.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    active: Option<bool>,
    /// The new name.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
    name: Option<String>,
}

/// The tokens that the person may manage, without their secrets.
pub(crate) async fn list(person: &Person, workspace: WorkspaceId) -> Result<Vec<Token>, Problem> {
    let message = person.call.request(proto::ListTokensRequest { workspace_id: workspace.to_string() });
    let listed = answered(person.upstreams.tokens().list_tokens(message).await)?;
    Ok(listed.tokens.into_iter().map(Into::into).collect())
}

/// Creates a token; its secret is returned only here.
pub(crate) async fn create(
    person: &Person,
    workspace: WorkspaceId,
    input: CreateToken,
) -> Result<Token, Problem> {
    let permissions = input.permissions.into_iter().map(Permission::number);
    let expires_at = input.expires_at.as_deref().map(read_end).transpose()?;
    let message = person.call.request(proto::CreateTokenRequest {
        workspace_id: workspace.to_string(),
        name: input.name,
        permissions: permissions.collect(),
        scope: scope_of(input.scope)?,
        expires_at: expires_at.map(Timestamp::to_proto),
    });
    let created = answered(person.upstreams.tokens().create_token(message).await)?;
    Ok(Token::from(present(created.token)?).with_secret(created.secret))
}

pub(crate) async fn update(
    person: &Person,
    workspace: WorkspaceId,
    token: TokenId,
    input: UpdateToken,
) -> Result<Token, Problem> {
    if input.active.is_none() && input.name.is_none() {
        let message = "needs at least one of: active, name";
        return Err(Problem::validation(vec![Violation::new("body", "empty", message)]));
    }
    let message = person.call.request(proto::UpdateTokenRequest {
        workspace_id: workspace.to_string(),
        token_id: token.to_string(),
        active: input.active,
        name: input.name,
    });
    let updated = answered(person.upstreams.tokens().update_token(message).await)?;
    Ok(present(updated.token)?.into())
}

pub(crate) async fn delete(person: &Person, workspace: WorkspaceId, token: TokenId) -> Result<(), Problem> {
    let message = person.call.request(proto::DeleteTokenRequest {
        workspace_id: workspace.to_string(),
        token_id: token.to_string(),
    });
    answered(person.upstreams.tokens().delete_token(message).await).map(drop)
}

/// An unparsable expiry must not create a token that never expires.
fn read_end(text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse_rfc3339(text)
        .ok_or_else(|| Problem::validation(vec![Violation::new("expiresAt", "invalid_time", wording::TIME)]))
}

/// An empty folder list means everything to svc-auth, so an ambiguous scope must be rejected here.
pub(super) fn scope_of(scope: Option<ScopeInput>) -> Result<Option<proto::TokenScope>, Problem> {
    let Some(scope) = scope else {
        return Ok(None);
    };
    let folder_ids = scope.folder_ids.unwrap_or_default();
    let refused = |code: &str, message: &str| {
        Err(Problem::validation(vec![Violation::new("scope.folderIds", code, message)]))
    };
    match (scope.r#type, folder_ids.is_empty()) {
        (ScopeType::All, true) => Ok(None),
        (ScopeType::All, false) => refused("not_allowed", "is only for the type `folders`"),
        (ScopeType::Folders, true) => refused("required", "is required for the type `folders`"),
        (ScopeType::Folders, false) => Ok(Some(proto::TokenScope { folder_ids })),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use cairn_chassis::clock::{Clock, ManualClock, SystemClock};

    use super::*;
    use crate::testing::{FILE, bench_on};

    /// A revoked token works for less than a second more, whatever the request.
    #[tokio::test]
    async fn what_a_token_opens_is_asked_anew_in_each_second() {
        let second = Timestamp::from_seconds(SystemClock.now().as_seconds());
        let clock = Arc::new(ManualClock::new(second));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let bench = bench_on(shared).await;
        for (advance, asked) in [(0, 1), (400, 1), (599, 1), (1, 2), (999, 2), (1, 3), (5_000, 4)] {
            clock.advance(Duration::from_millis(advance));
            assert_eq!(bench.get(&format!("/api/v1/files/{FILE}")).await.status, 200);
            assert_eq!(bench.exchanges.load(Ordering::SeqCst), asked, "{advance} ms later");
        }
    }

    #[test]
    fn a_scope_of_no_folders_is_never_everything() {
        let scope = |r#type, folder_ids: Option<&[&str]>| {
            let folder_ids = folder_ids.map(|ids| ids.iter().map(ToString::to_string).collect());
            scope_of(Some(ScopeInput { r#type, folder_ids }))
        };
        assert_eq!(scope_of(None), Ok(None));
        assert_eq!(scope(ScopeType::All, None), Ok(None));
        assert!(scope(ScopeType::All, Some(&["a"])).is_err());
        assert!(scope(ScopeType::Folders, None).is_err());
        assert!(scope(ScopeType::Folders, Some(&[])).is_err());
        assert_eq!(scope(ScopeType::Folders, Some(&["a"])).unwrap().unwrap().folder_ids, ["a"]);
    }
}

//! The first start of a deployment: creates an owner account, a workspace and a token.

use std::io;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::sql::Db;
use cairn_chassis::status::Violation;
use cairn_chassis::token_format;
use cairn_proto::ids::{UserId, WorkspaceId};

use crate::error::Error;
use crate::passwords::{self, Passwords};
use crate::tokens::Tokens;
use crate::users::{self, NewUser};
use crate::workspaces::Workspaces;
use crate::{names, secrets, store};

const DEFAULT_EMAIL: &str = "owner@localhost";
const OWNER_NAME: &str = "Owner";
const TOKEN_NAME: &str = "First token";
/// 96 bits, in 24 characters.
const PASSWORD_BYTES: usize = 12;
/// Makes processes that start together create only one owner.
const LOCK: &str = "cairn-auth:bootstrap";

/// The values of the first account; each `None` gets a default.
#[derive(Clone, Default)]
pub struct Bootstrap {
    /// The owner's email; `owner@localhost` by default.
    pub email: Option<String>,
    /// The owner's password, of at least 8 characters; a random one by default.
    pub password: Option<String>,
    /// The token; a random one by default.
    pub token: Option<String>,
    /// The workspace's name.
    pub workspace_name: String,
}

cairn_chassis::debug_fields!(Bootstrap { email, workspace_name });

/// The created account, with its secrets in the clear.
#[derive(Clone)]
pub struct Bootstrapped {
    /// The owner's email.
    pub email: String,
    /// The owner's password.
    pub password: String,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// A token of the workspace with every permission.
    pub token: String,
}

cairn_chassis::debug_fields!(Bootstrapped { email, workspace_id });

/// The values of a bootstrap, complete and validated.
struct Plan {
    email: String,
    password: String,
    workspace_name: String,
    token: String,
}

/// Creates the first account of a deployment.
pub(crate) struct Bootstrapper<'a> {
    pub(crate) db: &'a Db,
    pub(crate) ambient: &'a Ambient,
    pub(crate) passwords: &'a Passwords,
    pub(crate) workspaces: &'a Workspaces,
    pub(crate) tokens: &'a Tokens,
}

impl Bootstrapper<'_> {
    /// Creates everything in one transaction. `None` if an account exists. `keep` is called before the commit: an
    /// account whose secrets nobody has saved must not be created.
    pub(crate) async fn run(
        &self,
        wanted: Bootstrap,
        keep: impl FnOnce(&Bootstrapped) -> io::Result<()>,
    ) -> Result<Option<Bootstrapped>, Error> {
        // First: a later start must not fail on a value that is no longer used.
        if store::users::any(self.db).await? {
            return Ok(None);
        }
        let plan = self.plan(wanted)?;
        // Outside of the transaction: hashing takes tens of milliseconds.
        let password_hash = self.passwords.hash(&plan.password, &*self.ambient.entropy).await?;

        let mut tx = self.db.begin_write().await?;
        tx.lock_name(LOCK).await?;
        if store::users::any_in(&mut tx).await? {
            return Ok(None);
        }
        let owner: UserId = self.ambient.ids.next();
        let account = NewUser {
            id: owner,
            email: &plan.email,
            name: OWNER_NAME,
            password_hash: Some(&password_hash),
            email_verified: false,
        };
        store::users::insert(&mut tx, &account, self.ambient.clock.now()).await?;
        let workspace = self.workspaces.create_in(&mut tx, owner, plan.workspace_name).await?.workspace.id;
        self.tokens.create_first(&mut tx, owner, workspace, TOKEN_NAME, plan.token.clone()).await?;
        let made = Bootstrapped {
            email: plan.email,
            password: plan.password,
            workspace_id: workspace,
            token: plan.token,
        };
        keep(&made).map_err(Error::Unkept)?;
        tx.commit().await?;
        Ok(Some(made))
    }

    fn plan(&self, wanted: Bootstrap) -> Result<Plan, Error> {
        let entropy = &*self.ambient.entropy;
        let mut violations = Vec::new();
        let email = users::fold_email(wanted.email.as_deref().unwrap_or(DEFAULT_EMAIL));
        if email.is_none() {
            violations.push(Violation::new("email", "invalid", "must be an email address: name@host"));
        }
        let password = wanted.password.unwrap_or_else(|| secrets::random_hex::<PASSWORD_BYTES>(entropy));
        passwords::check("password", &password, &mut violations);
        let token = wanted.token.unwrap_or_else(|| token_format::generate(entropy));
        if !token_format::is_well_formed(&token) {
            violations.push(Violation::new("token", "invalid", describe_tokens()));
        }
        let workspace_name = names::check("workspaceName", &wanted.workspace_name, &mut violations);
        match email {
            Some(email) if violations.is_empty() => Ok(Plan { email, password, workspace_name, token }),
            _ => Err(Error::Invalid(violations)),
        }
    }
}

fn describe_tokens() -> String {
    let example = token_format::assemble(&"0".repeat(token_format::RANDOM_LENGTH));
    format!(
        "must be '{}', {} characters of 0-9, A-Z, a-z, and 6 more that are the base62 CRC-32 of what stands before, \
         such as {example} (make the {} characters random); or leave it out to get a new one",
        token_format::PREFIX,
        token_format::RANDOM_LENGTH,
        token_format::RANDOM_LENGTH,
    )
}

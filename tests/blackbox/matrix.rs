//! The permission matrix (spec 4, 5): every operation of the OpenAPI document, every tool and every RPC, with every
//! kind of caller. The lists come from the deployment, so that a new operation without an entry fails here.

mod rest;
mod rpcs;
mod stage;
mod tools;

use std::collections::BTreeSet;

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;

use self::stage::{Call, Stage};
use crate::support::callers::{Anonymous, ApiToken};
use crate::support::http::{each, id, text};
use crate::support::mcp;
use crate::support::prelude::*;

scenarios![
    every_operation_is_guarded,
    every_tool_is_guarded,
    every_rpc_wants_an_identity,
    the_public_address_serves_programs_only
];

const PERMISSIONS: [&str; 3] = ["read", "write", "delete"];

/// What an operation requires of its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    name: &'static str,
    /// The permission that it requires; `None` when any token is enough.
    needs: Option<&'static str>,
    reach: Reach,
}

/// The effect of a folder scope on an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It names an item: one out of scope is refused, and one in another workspace does not exist.
    Named,
    /// It lists items: those out of scope are left out.
    Shown,
    /// It concerns no folder.
    Anything,
    /// It concerns items outside of all folders: a folder scope excludes it. The item that it names need not exist.
    Whole,
    /// It names an item from elsewhere that does not exist here: a permitted caller is told so. Its own scenarios test
    /// it.
    Absent,
}

const fn named(name: &'static str, needs: &'static str) -> Entry {
    Entry { name, needs: Some(needs), reach: Reach::Named }
}

const fn shown(name: &'static str) -> Entry {
    Entry { name, needs: Some("read"), reach: Reach::Shown }
}

const fn whole(name: &'static str) -> Entry {
    Entry { name, needs: Some("read"), reach: Reach::Whole }
}

const fn whole_with(name: &'static str, needs: &'static str) -> Entry {
    Entry { name, needs: Some(needs), reach: Reach::Whole }
}

const fn absent(name: &'static str, needs: &'static str) -> Entry {
    Entry { name, needs: Some(needs), reach: Reach::Absent }
}

const fn anything(name: &'static str, needs: Option<&'static str>) -> Entry {
    Entry { name, needs, reach: Reach::Anything }
}

async fn every_operation_is_guarded(deployment: &Deployment) {
    let document = deployment.anonymous().get("/api/docs/openapi.json").await.expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|item| item.as_object().unwrap().values());
    let served = operations.filter_map(|operation| operation["operationId"].as_str()).collect();
    complete(rest::ENTRIES, served);
    let cast = Callers::new(deployment).await;
    for entry in rest::ENTRIES {
        cast.check(entry, async |stage: &Stage<'_>| rest::call(entry.name, stage).await).await;
    }
}

async fn every_tool_is_guarded(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = mcp::result(mcp::legacy(&workspace.token, "tools/list", json!({})).await);
    complete(tools::ENTRIES, each(&list["tools"], "name").into_iter().collect());
    let cast = Callers::new(deployment).await;
    for entry in tools::ENTRIES {
        cast.check(entry, async |stage: &Stage<'_>| tools::call(entry.name, stage).await).await;
    }
}

async fn every_rpc_wants_an_identity(deployment: &Deployment) {
    // A single process has no address but the public one.
    if deployment.mesh().is_some() {
        rpcs::check(deployment).await;
    }
}

async fn the_public_address_serves_programs_only(deployment: &Deployment) {
    rpcs::check_public(deployment).await;
}

/// Every served operation has an entry, and every entry an operation.
fn complete(entries: &[Entry], served: BTreeSet<&str>) {
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(known.len(), entries.len(), "an entry stands twice");
    let without: Vec<_> = served.difference(&known).collect();
    assert!(without.is_empty(), "served, and without an entry in this matrix: {without:?}");
    let gone: Vec<_> = known.difference(&served).collect();
    assert!(gone.is_empty(), "in this matrix, and not served: {gone:?}");
}

/// Every kind of caller, and the items they call about.
struct Callers<'a> {
    deployment: &'a Deployment,
    workspace: Workspace,
    /// A folder, and a sibling of it.
    inside: String,
    outside: String,
    /// Scoped to `inside`.
    scoped: ApiToken,
    stranger: ApiToken,
    /// With some permissions in the whole workspace: each one alone, and each pair.
    some: Vec<(Vec<&'static str>, ApiToken)>,
    /// Invalid tokens.
    closed: Vec<(&'static str, String)>,
}

impl<'a> Callers<'a> {
    async fn new(deployment: &'a Deployment) -> Self {
        let workspace = deployment.workspace().await;
        let inside = workspace.folder("inside", None).await;
        let outside = workspace.folder("outside", None).await;
        let closed = invalid_tokens(&workspace).await;
        let mut some = Vec::new();
        for one in PERMISSIONS {
            let others: Vec<&str> = PERMISSIONS.into_iter().filter(|other| *other != one).collect();
            for permissions in [vec![one], others] {
                let token = workspace.token_with(&permissions).await;
                some.push((permissions, token));
            }
        }
        Self {
            some,
            deployment,
            scoped: workspace.token_for(&[&inside]).await,
            stranger: deployment.workspace().await.token,
            workspace,
            inside,
            outside,
            closed,
        }
    }

    /// Tests an operation with every kind of caller. A refused call changes nothing, so those share one stage.
    async fn check(&self, entry: &Entry, call: impl AsyncFn(&Stage<'_>) -> Call) {
        let stage = self.stage(&self.inside);
        let prepared = call(&stage).await;
        self.check_invalid_tokens(entry, &prepared).await;
        self.check_permissions(entry, &prepared).await;
        self.check_stranger(entry, &stage, &prepared).await;

        let away = self.stage(&self.outside);
        let out = call(&away).await.send(&self.scoped).await;
        match entry.reach {
            Reach::Named | Reach::Whole => out.refused(entry.name, 403, "OUT_OF_SCOPE"),
            Reach::Shown => out.done(entry.name).shows(entry.name, &away.marker, false),
            Reach::Anything => drop(out.done(entry.name)),
            Reach::Absent => out.refused(entry.name, 404, "NOT_FOUND"),
        }
        for caller in self.allowed(entry) {
            let stage = self.stage(&self.inside);
            let answer = call(&stage).await.send(&caller).await;
            if matches!(entry.reach, Reach::Whole | Reach::Absent) && answer.status == 404 {
                continue;
            }
            let answer = answer.done(entry.name);
            if entry.reach == Reach::Shown {
                answer.shows(entry.name, &stage.marker, true);
            }
        }
    }

    /// Without a token, and with invalid tokens. Each operation uses an address of its own: many invalid tokens from
    /// one address are refused for their number.
    async fn check_invalid_tokens(&self, entry: &Entry, call: &Call) {
        let http = self.deployment.http();
        let nobody = call.send(&Anonymous { http: http.clone() }).await;
        match rest::WITHOUT_TOKEN.iter().find(|(name, _)| *name == entry.name) {
            Some((_, status)) => assert_eq!(nobody.status, *status, "{} by nobody: {nobody:?}", entry.name),
            None => nobody.refused(entry.name, 401, "UNAUTHORIZED"),
        }
        for (what, secret) in &self.closed {
            let token = ApiToken { http: http.clone(), secret: secret.clone() };
            let outcome = call.send(&token).await;
            assert_eq!(outcome.status, 401, "{} with a token that is {what}: {outcome:?}", entry.name);
        }
    }

    /// All the other permissions are not enough.
    async fn check_permissions(&self, entry: &Entry, call: &Call) {
        let Some(needed) = entry.needs else { return };
        let others: Vec<&str> = PERMISSIONS.into_iter().filter(|one| *one != needed).collect();
        let token = self.token_with(&others);
        let outcome = call.send(&token).await;
        outcome.refused(&format!("{} with {others:?}", entry.name), 403, "FORBIDDEN");
        let outcome = call.of_nonsense().send(&token).await;
        outcome.refused(&format!("nonsense to {} with {others:?}", entry.name), 403, "FORBIDDEN");
    }

    async fn check_stranger(&self, entry: &Entry, stage: &Stage<'_>, call: &Call) {
        let outcome = call.send(&self.stranger).await;
        match entry.reach {
            Reach::Named | Reach::Absent => {
                outcome.refused(&format!("{} from elsewhere", entry.name), 404, "NOT_FOUND");
            }
            Reach::Shown | Reach::Anything | Reach::Whole if outcome.status == 404 => {}
            Reach::Shown => outcome.done(entry.name).shows(entry.name, &stage.marker, false),
            Reach::Anything | Reach::Whole => drop(outcome.done(entry.name)),
        }
    }

    /// Permitted callers: with just the required permission in the whole workspace, and with a folder scope that
    /// contains the item.
    fn allowed(&self, entry: &Entry) -> Vec<ApiToken> {
        let enough = match entry.needs {
            Some(needed) => vec![needed],
            None => PERMISSIONS.to_vec(),
        };
        let mut callers = match entry.reach {
            Reach::Whole => Vec::new(),
            Reach::Named | Reach::Shown | Reach::Anything | Reach::Absent => vec![self.scoped.clone()],
        };
        for permission in enough {
            callers.push(self.token_with(&[permission]));
        }
        callers
    }

    fn token_with(&self, permissions: &[&str]) -> ApiToken {
        let found = self.some.iter().find(|(has, _)| has == permissions);
        found.unwrap_or_else(|| panic!("no token with {permissions:?}")).1.clone()
    }

    fn stage(&self, folder: &str) -> Stage<'_> {
        Stage::new(&self.workspace, folder)
    }
}

/// Tokens that no longer open the workspace, or never did.
async fn invalid_tokens(workspace: &Workspace) -> Vec<(&'static str, String)> {
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let expired = workspace.brief_token().await;
    let body = json!({"name": "off", "permissions": PERMISSIONS});
    let off = workspace.session.post(&path).json(&body).await.expect(201).json();
    let gone = workspace.session.post(&path).json(&body).await.expect(201).json();
    let off_path = format!("{path}/{}", id(&off));
    workspace.session.patch(&off_path).json(json!({"active": false})).await.expect(200);
    workspace.session.delete(&format!("{path}/{}", id(&gone))).await.expect(204);
    let waits_for_its_end = async || (expired.get("/api/v1/files").await.status == 401).then_some(());
    eventually("the token has expired", waits_for_its_end).await;
    vec![
        ("malformed", "cairn_not-a-token".to_owned()),
        ("unknown", token_format::generate(&OsEntropy)),
        ("expired", expired.secret),
        ("deactivated", text(&off, "token")),
        ("deleted", text(&gone, "token")),
    ]
}

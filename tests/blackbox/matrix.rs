//! Who may call what (spec 4, 5): every operation of the OpenAPI document, every tool and every RPC, with every kind of
//! caller. The lists are the deployment's own, so that a new operation without an entry fails here.

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

/// What an operation wants of its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    name: &'static str,
    /// The one permission that it takes; none when every token will do.
    needs: Option<&'static str>,
    reach: Reach,
}

/// What a folder scope does to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It names something: what is outside the scope is refused, and what is in another workspace does not exist.
    Named,
    /// It shows what there is: of what is outside, nothing.
    Shown,
    /// It is about no folder.
    Anything,
    /// It is about what stands in no folder: a folder scope has no part in it. What it names need not be there.
    Whole,
    /// It names what comes in by another way, and what is not there here: whoever may is told so. Its own scenarios have it.
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
    let cast = Cast::new(deployment).await;
    for entry in rest::ENTRIES {
        cast.check(entry, async |stage: &Stage<'_>| rest::call(entry.name, stage).await).await;
    }
}

async fn every_tool_is_guarded(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = mcp::result(mcp::legacy(&workspace.token, "tools/list", json!({})).await);
    complete(tools::ENTRIES, each(&list["tools"], "name").into_iter().collect());
    let cast = Cast::new(deployment).await;
    for entry in tools::ENTRIES {
        cast.check(entry, async |stage: &Stage<'_>| tools::call(entry.name, stage).await).await;
    }
}

async fn every_rpc_wants_an_identity(deployment: &Deployment) {
    // One process has no other address than the public one.
    if deployment.mesh().is_some() {
        rpcs::check(deployment).await;
    }
}

async fn the_public_address_serves_programs_only(deployment: &Deployment) {
    rpcs::check_public(deployment).await;
}

/// Every operation that is served has an entry, and every entry an operation.
fn complete(entries: &[Entry], served: BTreeSet<&str>) {
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(known.len(), entries.len(), "an entry stands twice");
    let without: Vec<_> = served.difference(&known).collect();
    assert!(without.is_empty(), "served, and without an entry in this matrix: {without:?}");
    let gone: Vec<_> = known.difference(&served).collect();
    assert!(gone.is_empty(), "in this matrix, and not served: {gone:?}");
}

/// Everybody who calls, and what they call about.
struct Cast<'a> {
    deployment: &'a Deployment,
    workspace: Workspace,
    /// A folder, and a sibling of it.
    inside: String,
    outside: String,
    /// Bound to `inside`.
    scoped: ApiToken,
    stranger: ApiToken,
    /// With some permissions in the whole workspace: each one alone, and each two.
    some: Vec<(Vec<&'static str>, ApiToken)>,
    /// Tokens that open nothing.
    closed: Vec<(&'static str, String)>,
}

impl<'a> Cast<'a> {
    async fn new(deployment: &'a Deployment) -> Self {
        let workspace = deployment.workspace().await;
        let inside = workspace.folder("inside", None).await;
        let outside = workspace.folder("outside", None).await;
        let closed = closed_tokens(&workspace).await;
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

    /// An operation with every kind of caller. What is refused changes nothing, so those calls share one stage.
    async fn check(&self, entry: &Entry, call: impl AsyncFn(&Stage<'_>) -> Call) {
        let stage = self.stage(&self.inside);
        let prepared = call(&stage).await;
        self.check_closed(entry, &prepared).await;
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

    /// No token, and tokens that open nothing. Each operation comes from an address of its own: those who send many
    /// such tokens are refused for that.
    async fn check_closed(&self, entry: &Entry, call: &Call) {
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

    /// Every other permission is not enough.
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

    /// Who may: with just what it takes in the whole workspace, and with a folder scope around it.
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

/// Tokens that opened the workspace once, or never.
async fn closed_tokens(workspace: &Workspace) -> Vec<(&'static str, String)> {
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

//! The harness: deployments, callers, and helpers that scenarios share.

pub(crate) mod browse;
#[cfg(feature = "s3")]
pub(crate) mod bucket;
pub(crate) mod callers;
pub(crate) mod citations;
pub(crate) mod commands;
pub(crate) mod data_fixtures;
pub(crate) mod deployment;
pub(crate) mod embedder;
pub(crate) mod github;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod mesh;
#[cfg(feature = "transformer")]
pub(crate) mod model;
pub(crate) mod notion;
pub(crate) mod oauth;
pub(crate) mod oidc;
pub(crate) mod people;
pub(crate) mod process;
pub(crate) mod raw_codec;
pub(crate) mod replicas;
pub(crate) mod runner;
pub(crate) mod scratch;
pub(crate) mod scripted;
pub(crate) mod single;
pub(crate) mod site;
pub(crate) mod smtp;
pub(crate) mod sources;
pub(crate) mod tables;
pub(crate) mod wait;
pub(crate) mod webhooks;
pub(crate) mod windows;
pub(crate) mod workspace;

/// Imports that every scenario file needs.
pub(crate) mod prelude {
    pub(crate) use serde_json::{Value, json};

    pub(crate) use super::callers::Caller;
    pub(crate) use super::deployment::Deployment;
    pub(crate) use super::wait::{LIMIT, eventually};
    pub(crate) use super::workspace::Workspace;
}

/// Turns each `async fn name(deployment: &Deployment)` of the list into two tests, one for each topology.
///
/// The functions are defined outside the macro, so that rustfmt and editors see them; one that is not listed is dead
/// code, which clippy rejects.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        mod single_process {
            $(
                #[test]
                fn $name() {
                    crate::support::runner::run(
                        crate::support::deployment::Topology::SingleProcess,
                        |deployment| Box::pin(super::$name(deployment)),
                    );
                }
            )+
        }
        scenarios!(mesh: $($name),+);
    };
    (mesh: $($name:ident),+ $(,)?) => {
        mod mesh {
            $(
                #[test]
                fn $name() {
                    crate::support::runner::run(
                        crate::support::deployment::Topology::Mesh,
                        |deployment| Box::pin(super::$name(deployment)),
                    );
                }
            )+
        }
    };
}

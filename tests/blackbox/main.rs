//! Black-box tests: the real binary, driven over its own ports, every scenario on both topologies.
//!
//! A scenario is an `async fn name(deployment: &Deployment)` listed in its file's [`scenarios!`]; it runs once against
//! one process on SQLite and once against six processes on PostgreSQL. All scenarios of a test process share those two
//! deployments, so each creates its own workspace. A test that stops or kills a process starts a deployment of its own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

#[macro_use]
mod support;

mod absence;
mod accounts;
mod activity;
mod analytics;
mod assets;
mod backups;
mod browse;
mod browse_citations;
mod browse_input;
mod browse_scope;
mod bulk;
mod changes;
mod client_commands;
mod client_import;
mod client_login;
mod client_pull;
mod compression;
mod connections;
mod csv_pages;
mod database_pages;
mod databases;
mod deletion;
mod doctor;
mod document_pages;
mod durability;
mod embedders;
mod errors;
mod eval;
mod events;
mod fairness;
mod features;
mod feedback;
mod file_pages;
mod file_versions;
mod files;
mod folders;
mod going;
mod golden;
mod grpc;
mod grpc_limits;
mod health;
mod hidden_references;
mod hostile_bodies;
mod hostile_files;
mod import_pages;
mod imports;
mod ingest;
mod invitations;
mod kept_folders;
mod keys;
mod limits;
mod limits_of_a_mesh;
mod limits_of_addresses;
mod matrix;
mod mcp;
mod mcp_bad_input;
mod mcp_bridge;
mod mcp_own_writes;
mod mcp_prompts;
mod mcp_protocol;
mod mcp_resources;
mod mcp_scope;
mod mcp_shown;
mod mcp_tools;
mod members;
mod memories;
mod memory_pages;
mod memory_versions;
mod mending_pages;
#[cfg(feature = "transformer")]
mod models;
mod oauth;
mod oauth_refusals;
mod oidc;
mod openapi;
mod operating;
mod origins;
mod outage;
mod outage_pages;
mod outside;
mod overload;
mod overview;
mod pages;
mod past;
mod point_in_time;
mod public_address;
mod public_grpc;
mod publishing;
mod questions;
mod quotas;
mod record_pages;
mod related;
mod rolling;
mod run_kills;
mod scaling_out;
mod schema_changes;
mod scope;
mod search;
mod search_freshness;
mod search_input;
mod search_lines;
mod search_narrowed;
mod search_results;
mod search_scores;
mod search_words;
mod secrets;
mod session;
mod source_pages;
mod sources;
mod sources_end;
mod sources_modes;
mod sources_of_github;
mod sources_of_notion;
mod sources_of_web;
mod sources_rules;
mod startup;
mod sync_pages;
mod syncs;
mod telemetry;
mod tls;
mod tokens;
mod trash;
mod upgrades;
mod usage;
mod verify;
mod views;
mod webhooks;
mod workspaces;

//! The one binary: the whole mesh in one process, or one service of it.

mod admin;
mod allocator;
mod backup;
mod bootstrap;
mod bootstrap_file;
mod cli;
mod client;
mod configuration;
mod data_folder;
mod doctor;
mod documentation;
mod eval;
mod memory;
mod mend;
mod models;
mod new_secrets;
mod observation;
mod plans;
mod process;
mod public;
mod secret_keys;
mod secrets;
mod serve;
mod sources;
mod starter_guide;
mod storages;
mod topology;
mod up;
mod upgrade;
mod version;

use std::process::ExitCode;

use crate::cli::{BootstrapCommand, Command, ConfigCommand, UpgradeCommand};

fn main() -> ExitCode {
    // Child processes that parse documents or archives need none of the setup below.
    if std::env::args_os().nth(1).is_some_and(|command| command == cairn_extract::CHILD_COMMAND) {
        return cairn_extract::child_main();
    }
    if std::env::args_os().nth(1).is_some_and(|command| command == cairn_sync::IMPORT_COMMAND) {
        return cairn_sync::import_child_main();
    }
    process::keep_files_private();
    allocator::set_up();
    let command = match cli::read() {
        Ok(command) => command,
        Err(error) => return fail(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::from(error).context("cannot start the async runtime")),
    };
    let ended = runtime.block_on(async {
        match command {
            Command::Up(options) => up::run(*options).await,
            Command::Serve(options) => serve::run(*options).await,
            Command::Doctor(options) if options.mend => mend::run(&options).await,
            Command::Doctor(options) => doctor::run(options).await,
            Command::Backup(options) => backup::run(options).await,
            Command::Restore(options) => backup::restore(options).await,
            Command::Verify(options) => backup::verify(options).await,
            Command::Eval(options) => eval::run(options).await,
            Command::Secrets { command } => secrets::run(command).await,
            Command::Keys { command } => secrets::run_keys(command).await,
            Command::Plan { command } => plans::run(command).await,
            Command::Sources { command } => sources::run(command).await,
            Command::Models { command } => models::run(command).await,
            Command::Bootstrap { command: BootstrapCommand::Show(options) } => bootstrap::show(&options),
            Command::Config { command: ConfigCommand::Check { process } } => configuration::check(&process),
            Command::Upgrade { command: UpgradeCommand::Check(options) } => upgrade::check(options).await,
            Command::Version(options) => version::print(&options),
            Command::Client(command) => client::run(command).await,
            Command::Completions(options) => documentation::completions(&options),
            Command::Man(options) => documentation::manual(&options),
        }
    });
    // Work that never ends by itself (a blocked read, a stuck peer) must not hold the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a command that failed is for whoever started it")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("cairn: {error:#}");
    error.downcast_ref::<client::Ended>().map_or(ExitCode::FAILURE, |ended| ExitCode::from(ended.status))
}

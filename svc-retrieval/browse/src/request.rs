//! A script to run, and its rules.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::retrieval::v1::ExecuteScriptRequest;
use cairn_proto::retrieval::v1::{execute_script_request, search_context_request};
use cairn_shell::Limits;

use crate::error::Error;

const MAX_SCRIPT_BYTES: usize = 16 * 1024;
/// Deeper than any path that a workspace can have.
const MAX_CWD_BYTES: usize = 64 * 1024;
const MAX_BASE_BYTES: usize = 2_048;
const DEFAULT_OUTPUT: usize = 60 * 1024;

/// A moment that is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At that time.
    At(Timestamp),
    /// After the write at that position of content's feed.
    After(u64),
}

impl From<execute_script_request::When> for Moment {
    fn from(when: execute_script_request::When) -> Self {
        match when {
            execute_script_request::When::AsOf(time) => Self::At(Timestamp::from_proto(&time)),
            execute_script_request::When::AfterChange(position) => Self::After(position),
        }
    }
}

impl From<search_context_request::When> for Moment {
    fn from(when: search_context_request::When) -> Self {
        match when {
            search_context_request::When::AsOf(time) => Self::At(Timestamp::from_proto(&time)),
            search_context_request::When::AfterChange(position) => Self::After(position),
        }
    }
}

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What to run.
    pub text: String,
    /// The folder to begin in.
    pub cwd: String,
    /// Bytes of output at most.
    pub output_bytes: usize,
    /// The address before the paths of links; empty for none.
    pub link_base: String,
    /// When the tree is shown as it was; none for now.
    pub moment: Option<Moment>,
}

impl TryFrom<ExecuteScriptRequest> for Script {
    type Error = Error;

    /// Checks a request; all violations at once.
    fn try_from(request: ExecuteScriptRequest) -> Result<Self, Error> {
        let output_bytes = match usize::try_from(request.max_output_bytes) {
            Ok(0) => DEFAULT_OUTPUT,
            Ok(bytes) => bytes,
            Err(_) => usize::MAX,
        };
        let violations = [
            script_violation(&request.script),
            cwd_violation(&request.cwd),
            output_violation(output_bytes),
            base_violation(&request.link_base),
        ];
        let violations: Vec<Violation> = violations.into_iter().flatten().collect();
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let cwd = if request.cwd.is_empty() { "/".to_owned() } else { request.cwd };
        let moment = request.when.map(Moment::from);
        Ok(Self { text: request.script, cwd, output_bytes, link_base: request.link_base, moment })
    }
}

fn script_violation(script: &str) -> Option<Violation> {
    if script.trim().is_empty() {
        let message = "may not be empty; `help` lists the commands";
        return Some(Violation::new("script", "required", message));
    }
    if script.len() > MAX_SCRIPT_BYTES {
        let message =
            format!("{}; send several scripts instead", wording::at_most(MAX_SCRIPT_BYTES, Unit::Bytes));
        return Some(Violation::new("script", "too_long", message));
    }
    None
}

fn cwd_violation(cwd: &str) -> Option<Violation> {
    if !cwd.is_empty() && !cwd.starts_with('/') {
        let message = "must be an absolute path such as /files";
        return Some(Violation::new("cwd", "invalid", message));
    }
    if cwd.len() > MAX_CWD_BYTES {
        let message = wording::at_most(MAX_CWD_BYTES, Unit::Bytes);
        return Some(Violation::new("cwd", "too_long", message));
    }
    None
}

/// It is printed, so that it is held to what an address may be.
fn base_violation(base: &str) -> Option<Violation> {
    let is_address = (base.starts_with("https://") || base.starts_with("http://"))
        && base.len() <= MAX_BASE_BYTES
        && base.bytes().all(|byte| byte.is_ascii_graphic());
    if base.is_empty() || is_address {
        return None;
    }
    let message = format!("must be an http or https address of at most {MAX_BASE_BYTES} bytes");
    Some(Violation::new("linkBase", "invalid", message))
}

fn output_violation(bytes: usize) -> Option<Violation> {
    let (least, most) = (Limits::MIN_OUTPUT, Limits::MAX_OUTPUT);
    if (least..=most).contains(&bytes) {
        return None;
    }
    let message = wording::between(least, most);
    Some(Violation::new("maxOutputBytes", "out_of_range", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(script: &str) -> ExecuteScriptRequest {
        ExecuteScriptRequest { script: script.to_owned(), ..ExecuteScriptRequest::default() }
    }

    #[test]
    fn all_violations_come_at_once() {
        let request = ExecuteScriptRequest {
            cwd: "files".to_owned(),
            max_output_bytes: 1,
            link_base: "javascript:alert(1)".to_owned(),
            ..request(" \n")
        };
        let Err(Error::Invalid(violations)) = Script::try_from(request) else { panic!("it was accepted") };
        let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["script", "cwd", "maxOutputBytes", "linkBase"]);
    }

    #[test]
    fn the_boundaries_are_accepted() {
        let script = Script::try_from(request(&"#".repeat(MAX_SCRIPT_BYTES))).unwrap();
        assert_eq!((script.cwd.as_str(), script.output_bytes), ("/", 60 * 1024));
        assert!(Script::try_from(request(&"#".repeat(MAX_SCRIPT_BYTES + 1))).is_err());
        for (bytes, is_valid) in [(1_023, false), (1_024, true), (204_800, true), (204_801, false)] {
            let request = ExecuteScriptRequest { max_output_bytes: bytes, ..request("ls") };
            assert_eq!(Script::try_from(request).is_ok(), is_valid, "{bytes}");
        }
    }
}

//! Runs scripts over a workspace.

use serde_json::{Value, json};

use super::callers::Caller;
use super::http::text;

const PATH: &str = "/api/v1/vfs/exec";

/// The whole response to a script.
pub(crate) async fn exec(caller: &impl Caller, script: &str) -> Value {
    exec_with(caller, json!({"script": script})).await
}

/// The whole response to a request body.
pub(crate) async fn exec_with(caller: &impl Caller, body: Value) -> Value {
    caller.post(PATH).json(body).await.expect(200).json()
}

/// The output of a script that must succeed.
pub(crate) async fn output(caller: &impl Caller, script: &str) -> String {
    let answer = exec(caller, script).await;
    assert_eq!(answer["failed"], json!(false), "{script}: {answer}");
    text(&answer, "output")
}

/// The error output of a script that must fail.
pub(crate) async fn error_output(caller: &impl Caller, script: &str) -> String {
    let answer = exec(caller, script).await;
    assert_eq!(answer["failed"], json!(true), "{script}: {answer}");
    text(&answer, "output")
}

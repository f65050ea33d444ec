//! Scripts over a workspace.

use serde_json::{Value, json};

use super::callers::Caller;
use super::http::text;

const PATH: &str = "/api/v1/vfs/exec";

/// The whole answer to a script.
pub(crate) async fn exec(caller: &impl Caller, script: &str) -> Value {
    exec_with(caller, json!({"script": script})).await
}

/// The whole answer to a body.
pub(crate) async fn exec_with(caller: &impl Caller, body: Value) -> Value {
    caller.post(PATH).json(body).await.expect(200).json()
}

/// What a script that must succeed prints.
pub(crate) async fn output(caller: &impl Caller, script: &str) -> String {
    let answer = exec(caller, script).await;
    assert_eq!(answer["failed"], json!(false), "{script}: {answer}");
    text(&answer, "output")
}

/// What a script that must fail prints.
pub(crate) async fn complaint(caller: &impl Caller, script: &str) -> String {
    let answer = exec(caller, script).await;
    assert_eq!(answer["failed"], json!(true), "{script}: {answer}");
    text(&answer, "output")
}

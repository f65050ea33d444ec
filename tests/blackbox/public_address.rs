//! Settings that depend on the public address: the session cookie, and whether a gateway starts at all.

use std::net::TcpListener;

use crate::support::callers::{Anonymous, Session};
use crate::support::http::Http;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;

const EMAIL: &str = "owner@example.com";
const PASSWORD: &str = "a password of several words";

fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Process::start("cairn", &arguments, environment)
}

#[test]
fn a_gateway_that_others_reach_knows_its_address() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let secret = [("CAIRN_MESH_SECRET", "a secret of the whole mesh")];
        for (arguments, environment) in [
            (&["up", "--data", &folder, "--listen", "0.0.0.0:0"][..], &[][..]),
            (&["up", "--data", &folder, "--listen", "[::]:0"][..], &[][..]),
            (
                &["serve", "gateway", "--listen", "0.0.0.0:0", "--admin-listen", "127.0.0.1:0"][..],
                &secret[..],
            ),
        ] {
            let mut refused = start(arguments, environment);
            assert!(!refused.exit().await.success(), "{arguments:?}");
            let output = refused.stderr();
            assert!(output.contains("--base-url") && output.contains("127.0.0.1"), "{arguments:?}: {output}");
        }
    });
}

#[test]
fn over_tls_the_cookie_is_of_this_host_alone() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let environment = [
            ("CAIRN_BASE_URL", "https://cairn.example"),
            ("CAIRN_BOOTSTRAP_EMAIL", EMAIL),
            ("CAIRN_BOOTSTRAP_PASSWORD", PASSWORD),
        ];
        let _up = start(&["up", "--data", &folder, "--listen", &address], &environment);
        let http = Http::new(&format!("http://{address}"));
        let anonymous = Anonymous { http: http.clone() };
        let is_ready =
            async || anonymous.get("/readyz").attempt().await.ok().filter(|reply| reply.status == 200);
        eventually("it answers", is_ready).await;

        let form = json!({"email": EMAIL, "password": PASSWORD});
        let opened = anonymous.post("/api/session").json(form).await.expect(200);
        let cookie = opened.header("set-cookie").unwrap().to_owned();
        let parts: Vec<&str> = cookie.split("; ").collect();
        assert!(parts[0].starts_with("__Host-cairn_session="), "{cookie}");
        assert!(
            parts.contains(&"Secure") && parts.contains(&"Path=/") && parts.contains(&"HttpOnly"),
            "{cookie}"
        );
        assert!(!cookie.contains("Domain"), "{cookie}");

        let session = |cookie: String| Session { http: http.clone(), cookie };
        session(parts[0].to_owned()).get("/api/session").await.expect(200);
        // A page of a sibling subdomain could set this one.
        let plain = session(parts[0].replace("__Host-", ""));
        plain.get("/api/session").await.expect_error(401, "UNAUTHORIZED");
        let out = session(parts[0].to_owned()).delete("/api/session").await.expect(204);
        assert!(out.header("set-cookie").unwrap().starts_with("__Host-cairn_session=;"));
    });
}

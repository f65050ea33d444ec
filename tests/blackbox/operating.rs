//! Installing Cairn: generating secrets, passing them as files, checking a configuration.

use cairn_chassis::token_format;

use crate::support::callers::Anonymous;
use crate::support::http::Http;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Whether a command succeeded, its stdout and its stderr.
async fn run(words: &[&str], environment: &[(&str, &str)]) -> (bool, String, String) {
    let arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut process = Process::start(&format!("cairn {}", words.join(" ")), &arguments, environment);
    let status = process.exit().await;
    (status.success(), process.stdout(), process.stderr())
}

#[test]
fn what_is_made_is_taken_from_files_and_shown_again() {
    run_alone(async {
        let (succeeded, made, _) = run(&["secrets", "new", "--format", "json"], &[]).await;
        let made: Value = serde_json::from_str(&made).unwrap();
        assert!(succeeded && token_format::is_well_formed(made["CAIRN_BOOTSTRAP_TOKEN"].as_str().unwrap()));

        let (data, secrets) = (Scratch::new(), Scratch::new());
        let mut environment = vec![
            // Unset the way a compose file does it.
            ("CAIRN_BASE_URL".to_owned(), String::new()),
            ("CAIRN_MAX_CONNECTIONS".to_owned(), " ".to_owned()),
            ("CAIRN_LOG".to_owned(), String::new()),
        ];
        for (name, value) in made.as_object().unwrap() {
            let file = secrets.path().join(name);
            std::fs::write(&file, format!("{}\n", value.as_str().unwrap())).unwrap();
            environment.push((format!("{name}_FILE"), file.display().to_string()));
        }
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let folder = data.path().display().to_string();
        let (succeeded, output, log) = run(&["config", "check", "up", "--data", &folder], &environment).await;
        assert!(succeeded && output.starts_with("OK: cairn up"), "{output}{log}");

        let up = SingleProcess::start_on(data.path(), &environment).await;
        assert_eq!(json!(up.owner().token), made["CAIRN_BOOTSTRAP_TOKEN"]);
        assert_eq!(json!(up.owner().password), made["CAIRN_BOOTSTRAP_PASSWORD"]);
        up.token().get("/api/v1/files").await.expect(200);
        assert!(!data.path().join("secret.key").exists(), "the key of the file is used");
        let anonymous = Anonymous { http: Http::new(up.base_url()) };
        anonymous.get("/healthz").await.expect(200);

        let (_, shown, _) = run(&["bootstrap", "show", "--data", &folder], &[]).await;
        for part in [&up.owner().email, &up.owner().password, &up.owner().token] {
            assert!(shown.contains(part.as_str()), "{shown}");
        }
        let (_, shown, _) = run(&["bootstrap", "show", "--json", "--data", &folder], &[]).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["token"], made["CAIRN_BOOTSTRAP_TOKEN"]);
        let (succeeded, _, log) = run(&["bootstrap", "show", "--data", "/nowhere"], &[]).await;
        assert!(!succeeded && log.contains("/nowhere/bootstrap.json"), "{log}");
    });
}

#[test]
fn a_secret_that_cannot_be_read_ends_the_start() {
    run_alone(async {
        let data = Scratch::new();
        for (environment, told) in [
            (vec![("CAIRN_SECRET_KEY_FILE", "/nowhere/key")], "CAIRN_SECRET_KEY_FILE"),
            (vec![("CAIRN_SECRET_KEY_FILE", "/etc/hostname"), ("CAIRN_SECRET_KEY", "s3cret")], "both set"),
        ] {
            let mut failed = SingleProcess::launch(data.path(), &environment);
            assert!(!failed.exit().await.success());
            let output = failed.output();
            assert!(
                output.contains(told) && !output.contains("s3cret") && !output.contains("panicked"),
                "{output}"
            );
        }
        // A command that needs no secret does not read one.
        let (succeeded, output, log) = run(&["version"], &[("CAIRN_SECRET_KEY_FILE", "/nowhere/key")]).await;
        assert!(succeeded && output.starts_with("cairn "), "{output}{log}");
    });
}

#[test]
fn everything_that_is_wrong_is_named_and_no_secret_shown() {
    run_alone(async {
        let data = Scratch::new();
        let folder = data.path().display().to_string();
        let check = ["config", "check", "up", "--data", &folder];
        // Values that cannot be read.
        let unreadable = [
            ("CAIRN_LISTEN", "nowhere"),
            ("CAIRN_EMBEDDER_BATCH", "many"),
            ("CAIRN_SECRET_KEY", "s3cret"),
            ("CAIRN_REDIS_URL_FILE", "/nowhere/redis"),
        ];
        let (succeeded, output, log) = run(&check, &unreadable).await;
        assert!(!succeeded && !log.contains("s3cret") && !output.contains("OK"), "{output}{log}");
        for variable in ["CAIRN_LISTEN", "CAIRN_EMBEDDER_BATCH", "CAIRN_REDIS_URL_FILE"] {
            assert!(log.contains(variable), "{variable}: {log}");
        }
        // Values that can be read but are invalid.
        let senseless = [
            ("CAIRN_SECRET_KEY", "s3cret"),
            ("CAIRN_PLANS", "{\"free\": 7}"),
            ("CAIRN_EMBEDDER", "word2vec"),
            ("CAIRN_SMTP_URL", "smtp://user:s3cret@mail"),
            ("CAIRN_LOG", "cairn=loudly"),
            ("CAIRN_BASEURL", "https://cairn.example"),
        ];
        let (succeeded, output, log) = run(&check, &senseless).await;
        assert!(!succeeded && !format!("{output}{log}").contains("s3cret"), "{output}{log}");
        for variable in
            ["CAIRN_SECRET_KEY", "CAIRN_EMBEDDER", "CAIRN_MAIL_FROM", "CAIRN_LOG", "CAIRN_BASE_URL"]
        {
            assert!(output.contains(variable), "{variable}: {output}");
        }
        let (succeeded, output, _) = run(&check, &[("CAIRN_DEFAULT_PLAN", "gold")]).await;
        assert!(!succeeded && output.contains("default plan"), "{output}");
        assert!(std::fs::read_dir(data.path()).unwrap().next().is_none(), "it writes nothing");

        let (succeeded, output, _) = run(&["config", "check", "serve", "content"], &[]).await;
        assert!(!succeeded && output.contains("CAIRN_MESH_SECRET"), "{output}");
        let secret = ("CAIRN_MESH_SECRET", "a secret of the mesh, long enough");
        let mesh = [
            secret,
            ("CAIRN_DATABASE_URL", "postgres://cairn@db/cairn"),
            ("CAIRN_DATABASE_CONNECTIONS", "4"),
        ];
        let (succeeded, output, log) = run(&["config", "check", "serve", "content"], &mesh).await;
        assert!(succeeded && output.starts_with("OK: cairn serve content"), "{output}{log}");
    });
}

#[test]
fn a_program_can_ask_what_was_built() {
    run_alone(async {
        let (succeeded, output, _) = run(&["version", "--json"], &[]).await;
        let built: Value = serde_json::from_str(&output).unwrap();
        assert!(succeeded && built["version"] == env!("CARGO_PKG_VERSION"), "{output}");
        assert!(
            built["features"].is_array() && built["target"].is_string() && built.get("commit").is_some(),
            "{output}"
        );
    });
}

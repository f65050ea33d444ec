//! Point-in-time recovery: `cairn backup --every`, retention of its backups, and `cairn restore --at`.

use std::path::Path;

use cairn_chassis::clock::Timestamp;
use tokio::time::{Duration, sleep};

use crate::assets::{entry, messages, noise, send};
use crate::backups::{at, copy_secrets, secret_key, write};
use crate::support::commands::{run_err, run_ok, start};
use crate::support::http::text;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Runs `cairn backup --every 1s` on a data folder.
fn series(data: &Path, kept: &Path, further: &[&str]) -> Process {
    let (data, kept) = (data.display().to_string(), kept.display().to_string());
    let all = ["backup", "--every", "1s", "--json", "--data", data.as_str(), "--to", kept.as_str()];
    start(&[all.as_slice(), further].concat(), &[])
}

/// The backups that it has reported so far, one line each.
fn made(series: &mut Process) -> Vec<Value> {
    let output = series.stdout();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn made_at_least(series: &mut Process, count: usize) -> Vec<Value> {
    eventually("further backups are made", async || {
        if let Some(status) = series.ended() {
            panic!("it ended with {status}: {}", series.stderr());
        }
        let made = made(series);
        (made.len() >= count).then_some(made)
    })
    .await
}

async fn names(kept: &Path) -> Vec<String> {
    let listed = run_ok(&["restore", "--from", &kept.display().to_string(), "--list"], &[]).await;
    listed.lines().map(ToOwned::to_owned).collect()
}

/// The file list of a restore with these arguments.
async fn files_restored(
    kept: &Path,
    target: &Path,
    further: &[&str],
    up: &SingleProcess,
    data: &Path,
) -> String {
    let (from, to) = (kept.display().to_string(), target.display().to_string());
    let all = ["restore", "--from", from.as_str(), "--data", to.as_str()];
    run_ok(&[all.as_slice(), further].concat(), &[]).await;
    copy_secrets(data, target);
    let mut again = SingleProcess::start_on(target, &[]).await;
    let files = at(&again, up).get("/api/v1/files").await.expect(200).text();
    assert!(again.stop().await.success());
    files
}

#[test]
fn a_time_between_two_backups_has_what_was_written_before_it_alone() {
    run_alone(async {
        let (data, kept, other) = (Scratch::new(), Scratch::new(), Scratch::new());
        let up = SingleProcess::start_on(data.path(), &[]).await;
        write(&up.token(), "first.md").await;
        let mut series = series(data.path(), kept.path(), &[]);
        let first = made_at_least(&mut series, 1).await.remove(0);
        write(&up.token(), "second.md").await;
        // The next one may have been in progress already.
        let before = made(&mut series).len();
        made_at_least(&mut series, before + 2).await;
        series.ask_to_stop();
        assert!(series.exit().await.success(), "{}", series.output());
        let told: Vec<String> = made(&mut series).iter().map(|one| text(one, "name")).collect();
        assert_eq!(names(kept.path()).await, told, "none was removed, and none is half made");

        let moment = Timestamp::parse_rfc3339(&text(&first, "createdAt")).unwrap();
        let between = moment.plus(Duration::from_millis(1)).to_rfc3339();
        let then = other.path().join("then");
        let files = files_restored(kept.path(), &then, &["--at", &between], &up, data.path()).await;
        assert!(files.contains("first.md") && !files.contains("second.md"), "{files}");
        let now = other.path().join("now");
        let files = files_restored(kept.path(), &now, &[], &up, data.path()).await;
        assert!(files.contains("first.md") && files.contains("second.md"), "{files}");

        // It reports which backup it took, and how old that was at the given time.
        let (from, to) = (kept.path().display().to_string(), other.path().join("told").display().to_string());
        let later = moment.plus(Duration::from_secs(2 * 60 * 60)).to_rfc3339();
        let all = ["restore", "--from", &from, "--data", &to, "--replace"];
        let output = run_ok(&[all.as_slice(), &["--at", between.as_str()]].concat(), &[]).await;
        assert!(
            output.contains(told[0].as_str()) && output.contains("less than 1s before that time"),
            "{output}"
        );
        let output = run_ok(&[all.as_slice(), &["--at", later.as_str(), "--json"]].concat(), &[]).await;
        let output: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(output["name"], told[told.len() - 1].as_str());
        let seconds = output["secondsBefore"].as_u64().unwrap();
        assert!(seconds <= 7_200 && seconds > 0, "{output}");
    });
}

#[test]
fn a_series_goes_on_after_a_backup_that_failed_and_not_after_a_first_one() {
    run_alone(async {
        let (data, kept, nothing) = (Scratch::new(), Scratch::new(), Scratch::new());
        let (empty, to) = (nothing.path().display().to_string(), kept.path().display().to_string());
        let output = run_err(&["backup", "--every", "1s", "--data", &empty, "--to", &to], &[]).await;
        assert!(output.contains("--data"), "{output}");
        for every in ["0s", "10", "soon"] {
            let output = run_err(&["backup", "--every", every, "--to", &to], &[]).await;
            assert!(output.contains("--every"), "{output}");
        }

        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let mut series = series(data.path(), kept.path(), &[]);
        made_at_least(&mut series, 1).await;
        let another = std::fs::File::open(data.path().join("backup.lock")).unwrap();
        another.lock().unwrap();
        eventually("it says what is wrong", async || {
            let output = series.stderr();
            (output.contains("another backup") && output.contains("tried again in 1s")).then_some(())
        })
        .await;
        let before = made(&mut series).len();
        another.unlock().unwrap();
        made_at_least(&mut series, before + 1).await;
        // Cairn itself may stop and start meanwhile.
        assert!(up.stop().await.success());
        made_at_least(&mut series, before + 3).await;
        series.signal("INT");
        assert!(series.exit().await.success(), "{}", series.output());
    });
}

#[test]
fn a_series_that_is_killed_leaves_the_earlier_ones_good() {
    run_alone(async {
        let (data, kept) = (Scratch::new(), Scratch::new());
        let to = kept.path().display().to_string();
        let secret_key = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        write(&up.token(), "one.md").await;
        run_ok(&["backup", "--quiet", "--data", &data.path().display().to_string(), "--to", &to], &[]).await;
        let mut cut = 0;
        for round in 0..6_u8 {
            // A file that takes a while to read, and shares no content with earlier ones.
            let bytes: Vec<u8> = noise(8 * 1024 * 1024).into_iter().map(|byte| byte ^ round).collect();
            send(channel.clone(), &identity, messages(&format!("large-{round}"), "", &bytes)).await.unwrap();
            let before = names(kept.path()).await;
            let mut series = series(data.path(), kept.path(), &["--keep", "3"]);
            sleep(Duration::from_millis(60 * u64::from(round))).await;
            series.kill();
            let after = names(kept.path()).await;
            cut += usize::from(after == before);
            for name in after.first().into_iter().chain(after.last()) {
                run_ok(&["verify", "--quiet", "--from", &to, "--snapshot", name], &open).await;
            }
        }
        assert!(cut > 0, "none was cut");
        // The next backup is complete, and cleans up.
        let mut series = series(data.path(), kept.path(), &["--keep", "1"]);
        made_at_least(&mut series, 1).await;
        series.kill();
        run_ok(&["verify", "--quiet", "--from", &to], &open).await;
    });
}

#[test]
fn thinning_keeps_what_it_says() {
    run_alone(async {
        let (data, kept) = (Scratch::new(), Scratch::new());
        let (from, to) = (data.path().display().to_string(), kept.path().display().to_string());
        let secret_key = secret_key(data.path());
        let open = [("CAIRN_SECRET_KEY_FILE", secret_key.as_str())];
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        assert!(up.stop().await.success());
        run_ok(&["backup", "--quiet", "--data", &from, "--to", &to], &[]).await;
        // Instead of waiting for days: the name of a snapshot is its creation time.
        let lists = kept.path().join("snapshots");
        let made = lists.join(names(kept.path()).await.remove(0));
        let past = [
            "2020-01-01T10-00-00.000Z",
            "2020-01-01T10-30-00.000Z",
            "2020-01-01T11-00-00.000Z",
            "2020-01-02T08-00-00.000Z",
            "2020-01-02T09-00-00.000Z",
            "2020-01-02T09-59-59.999Z",
        ];
        for name in past {
            std::fs::copy(&made, lists.join(name)).unwrap();
        }
        std::fs::remove_file(&made).unwrap();

        let early = ["restore", "--from", &to, "--data", &from, "--at", "2019-12-31T00:00:00Z"];
        let output = run_err(&early, &[]).await;
        assert!(
            output.contains("no such backup") && past[..3].iter().all(|name| output.contains(name)),
            "{output}"
        );

        let rules = ["--keep-hourly", "3", "--keep-daily", "3"];
        let all = ["backup", "--json", "--data", &from, "--to", &to];
        let output = run_ok(&[all.as_slice(), &rules].concat(), &[]).await;
        let output: Value = serde_json::from_str(&output).unwrap();
        let newest = text(&output, "name");
        assert_eq!(names(kept.path()).await, [past[2], past[3], past[5], newest.as_str()]);
        assert_eq!(output["removed"], 3);
        run_ok(&["verify", "--quiet", "--from", &to, "--snapshot", past[2]], &open).await;

        // Without a retention rule nothing is removed, except by a series.
        run_ok(&["backup", "--quiet", "--data", &from, "--to", &to], &[]).await;
        assert_eq!(names(kept.path()).await.len(), 5);
        let mut series = series(data.path(), kept.path(), &["--keep-within", "1h"]);
        made_at_least(&mut series, 1).await;
        series.kill();
        let left = names(kept.path()).await;
        assert!(left.len() >= 3 && !past.iter().any(|name| left.contains(&(*name).to_owned())), "{left:?}");
    });
}

#!/usr/bin/env bash
# Builds the fuzz targets and runs them: run.sh [TARGET…]; without one, all of them.
#
#   FUZZ_SECONDS=18    the duration of each target
#   FUZZ_RUNS=10000000 instead: the number of executions of each target; builds optimised code
#   FUZZ_SEED=1        the random seed, so that CI runs are reproducible; FUZZ_RUNS uses a random one by default
#   FUZZ_JOBS=2        how many targets run concurrently, each on one core; by default as many as there are cores
#   FUZZ_CORPUS=FOLDER keeps new inputs there, in a folder for each target, and starts with those already there; without it, they are
#                      discarded. The committed corpus is not changed
#
# The stable toolchain builds the targets with the flags of cargo-fuzz, which is not needed: with coverage instrumentation and without a
# sanitizer. Failing inputs are kept in target/fuzz-found; `target/fuzz/…/release/TARGET FILE` replays one.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=tests/fuzz
runs="${FUZZ_RUNS:-}"
found=target/fuzz-found
host="$(rustc -vV | sed -n 's/^host: //p')"
built="target/fuzz/$host/release"
corpus="${FUZZ_CORPUS:-}"

if ! command -v c++ >/dev/null; then
    echo "skipped: fuzzing: libFuzzer needs a C++ compiler"
    exit
fi
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
    mapfile -t targets < <(basename -s .rs "$here"/fuzz_targets/*.rs)
fi
if [ -z "$corpus" ]; then
    corpus="$(mktemp -d)"
    trap 'rm -rf "$corpus"' EXIT
fi

coverage=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-sanitizer-coverage-stack-depth
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0
    --cfg fuzzing
)
if [ -n "$runs" ]; then
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=2
fi
# With --target, so that the flags do not apply to build scripts and proc macros.
RUSTFLAGS="${coverage[*]}" cargo build --release --manifest-path "$here/Cargo.toml" --target "$host" --target-dir target/fuzz \
    "${targets[@]/#/--bin=}"

# run_one TARGET: prints its output at the end, in one piece.
run_one() {
    local target="$1" status=0 log own="$corpus/$1" kept="$here/corpus/$1"
    mkdir -p "$own" "$found/$target"
    log="$own.log"
    local options=(-timeout=60 -verbosity=0 -print_final_stats=1 -artifact_prefix="$found/$target/")
    if [ -n "$runs" ]; then
        options+=("-runs=$runs" "-seed=${FUZZ_SEED:-0}")
    else
        options+=("-max_total_time=${FUZZ_SECONDS:-18}" "-seed=${FUZZ_SEED:-1}")
    fi
    if [ "$target" = foreign ]; then
        run_foreign "$own" "$kept" "${options[@]}" >"$log" 2>&1 || status=$?
    else
        "$built/$target" "${options[@]}" "$own" "$kept" >"$log" 2>&1 || status=$?
    fi
    printf -- '-- %s\n%s\n' "$target" "$(cat "$log")"
    rm -f "$log"
    return "$status"
}

# run_foreign OWN KEPT OPTION…: a crash of a third-party parser is not a failure, since it is contained in a child process
# (docs/adr/0044): they run in forked processes with the child's limits of time and memory, and continue after a crash. A panic in our code is
# detected by replaying the inputs: the target suppresses the messages of third-party panics.
run_foreign() {
    local own="$1" kept="$2" input status=0
    shift 2
    # A target that cannot even process the corpus has failed, whatever the reason.
    "$built/foreign" -runs=0 -verbosity=0 "$kept" || return
    rm -f "$found"/foreign/*
    "$built/foreign" "$@" -fork=1 -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -timeout=20 -rss_limit_mb=1024 \
        "$own" "$kept" || true
    for input in "$found"/foreign/crash-*; do
        [ -e "$input" ] || continue
        timeout 60 "$built/foreign" "$input" >"$own.again" 2>&1 || true
        if grep -q "panicked at" "$own.again"; then
            cat "$own.again"
            status=1
        else
            rm -f "$input"
        fi
    done
    rm -f "$own.again" "$found"/foreign/timeout-* "$found"/foreign/oom-* "$found"/foreign/slow-unit-*
    return "$status"
}

export -f run_one run_foreign
export here runs found built corpus
printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I '{}' bash -c 'set -eu; run_one "$@"' _ '{}'

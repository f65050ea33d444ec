#!/usr/bin/env bash
# The console's pages in Debian's Chromium: run.sh CAIRN_BINARY [SCREENSHOTS_FOLDER | --paint]. It installs
# playwright-core and axe into a temporary folder, starts a server of its own on a free port, and tests the pages; with
# a folder it only writes screenshots of every page and state there, with --paint it measures first paints. Without a
# browser it prints `skipped: …`, which is a failure when CAIRN_REQUIRE_ENGINES names chromium.
# CAIRN_CONSOLE_TEST=PATTERN runs the tests whose names match, CAIRN_CONSOLE_JOBS=3 runs three parts at once instead of
# two.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
cairn=$(realpath "${1:-target/debug/cairn}")
paint=
pictures=
case "${2:-}" in
    "") ;;
    --paint) paint=1 ;;
    *) pictures=$(mkdir -p "$2" && realpath "$2") ;;
esac
packages=(playwright-core@1.65.1 axe-core@4.14.1)

work=$(mktemp -d)
server=
clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

# Without its prerequisites the run is skipped with a message, or fails if it is required.
skip() {
    case ",${CAIRN_REQUIRE_ENGINES:-}," in
        *,chromium,*) echo "failed: the console in a browser: $1" >&2; exit 1 ;;
    esac
    echo "skipped: the console in a browser: $1"
    exit 0
}

# Starts a server on a free port and waits until it is healthy.
start() {
    mkdir -p "$work/sources"
    CAIRN_SOURCE_ROOTS="$work/sources" "$cairn" up --data "$work/data" --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --quiet >"$work/cairn.log" 2>&1 &
    server=$!
    for _ in $(seq 1 240); do
        [ -s "$work/data/bootstrap.json" ] && "$cairn" health --url "$(base_url)" >/dev/null 2>&1 && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.5
    done
    cat "$work/cairn.log"
    echo "failed: $cairn does not start"
    return 1
}

base_url() {
    sed -n 's/.*"baseUrl": *"\([^"]*\)".*/\1/p' "$work/data/bootstrap.json"
}

CAIRN_CHROMIUM=${CAIRN_CHROMIUM:-$(command -v chromium || true)}
export CAIRN_CHROMIUM
[ -n "$CAIRN_CHROMIUM" ] || skip "chromium is not installed"
command -v npm >/dev/null || skip "npm is not installed"
node --eval 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2>/dev/null || skip "it takes Node 20 or newer"
npm="$work/npm"
timeout 120 npm install --loglevel=error --no-audit --no-fund --prefix "$npm" "${packages[@]}" >"$work/npm.log" 2>&1 ||
    skip "npm cannot fetch what it takes: $(tail -n 1 "$work/npm.log")"

# FILES PATTERN: runs the tests of those files whose names match, and also writes the results as TAP.
run_tests() {
    node --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$work/${1// /-}.tap" ${2:+--test-name-pattern="$2"} \
        "$here/all.mjs" "$work/data/bootstrap.json" "$npm" $1
}

# Runs the tests of those files, and prints their output at the end. Failed tests are retried once, as a browser on a
# busy machine may stall for longer than any timeout: a test that then passes is reported as flaky, one that fails again
# has failed.
walk() {
    local log="$work/${1// /-}.log" tap="$work/${1// /-}.tap" failed=0 again
    run_tests "$1" "${CAIRN_CONSOLE_TEST:-}" >"$log" 2>&1 || failed=1
    if [ "$failed" -ne 0 ] && again="$(failed_tests "$tap")" && [ -n "$again" ]; then
        printf 'once more: %s\n' "$again" >>"$log"
        # A retry that ran no test has not passed.
        run_tests "$1" "$again" >>"$log" 2>&1 && grep -q '^ok [0-9]* - [^#]*$' "$tap" && failed=0 && printf 'flaky: %s\n' "$again" >>"$log"
    fi
    cat "$log"
    return "$failed"
}

# TAP: the outermost failed tests, as a pattern of name prefixes.
failed_tests() {
    sed -n 's/^not ok [0-9]* - //p' "$1" | sed 's/[][\\.*^$+?(){}|/]/\\&/g; s/^/^/' | paste -sd '|'
}

start
if [ -n "$pictures" ]; then
    node "$here/pictures.mjs" "$work/data/bootstrap.json" "$npm" "$pictures"
    exit
fi
if [ -n "$paint" ]; then
    node "$here/paint.mjs" "$work/data/bootstrap.json" "$npm"
    exit
fi
# The tests in parts, each with a browser of its own, two of them at once: the first checks every page, which is
# CPU-bound, the others run journeys, which mostly wait.
parts=(pages "files memories" "journeys without_script media" "databases keyboard" "hostile outside agent_activity keys_outside")
export -f walk run_tests failed_tests
export here work npm
failed=0
printf '%s\n' "${parts[@]}" | xargs -P "${CAIRN_CONSOLE_JOBS:-2}" -I{} bash -c 'walk "{}"' || failed=1
echo "the console was walked in $SECONDS s"
exit "$failed"

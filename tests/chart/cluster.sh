#!/usr/bin/env bash
# Installs the chart on a real control plane: etcd, API server, controller manager and scheduler, built once with Go into the cache
# (a quarter of an hour on two cores, 3 GB of disk meanwhile), with nodes that tests/chart/nodes.py simulates. No container runs: pods
# are really admitted, scheduled, counted and terminated, and become ready because the nodes report it.
#
#   tests/chart/cluster.sh           builds what is missing, then runs all checks
#   tests/chart/cluster.sh Mesh      the tests of one class
#   tests/chart/cluster.sh --build   builds only
#   tests/chart/cluster.sh --is-built   exits with 0 if everything is built
set -euo pipefail
cd "$(dirname "$0")/../.."

cache="${CAIRN_CHART_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cairn-chart}"
kubernetes=1.37.1
bin="$cache/kubernetes-$kubernetes"
export PATH="$bin:$cache/bin:$cache/python/bin:$PATH" PYTHONPATH="$cache/python"

# k8s.io/kubernetes replaces some of its modules with folders below staging/, which are not part of its module. Replacements of a
# dependency are ignored, so our module names the published versions, taken from its go.mod.
build() {
    [ -x "$bin/etcd" ] && return
    command -v go >/dev/null || { echo "skipped: a control plane: Go is not installed" && return 1; }
    local module work
    work="$(mktemp -d)"
    # shellcheck disable=SC2064 # expands now
    trap "chmod -R u+w '$work' && rm -rf '$work'" EXIT
    cp tests/chart/controlplane.go "$work/tools.go"
    (
        cd "$work"
        export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0
        printf 'module cairn.test/controlplane\n\ngo 1.26.0\n' >go.mod
        module="$(go mod download -json "k8s.io/kubernetes@v$kubernetes" |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["GoMod"])')"
        sed -nE 's#^\s*(k8s\.io/[a-z0-9-]+) (v0\.0\.0|=> \./staging/.*)$#\1#p' "$module" | sort -u |
            sed "s#.*#replace & => & v0.${kubernetes#1.}#" >>go.mod
        go get "k8s.io/kubernetes@v$kubernetes"
        # Without these the version is v0.0.0, which the chart's kubeVersion rejects.
        version=k8s.io/component-base/version
        flags="-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=37"
        mkdir bin
        nice go build -p 2 -trimpath -ldflags "$flags" -o bin/ \
            k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler
        nice go build -p 2 -trimpath -ldflags "-s -w" -o bin/etcd go.etcd.io/etcd/server/v3
    )
    mkdir -p "$bin"
    # etcd last: its presence means that all are built.
    mv "$work"/bin/kube-* "$bin/"
    mv "$work/bin/etcd" "$bin/"
    chmod -R u+w "$work" && rm -rf "$work"
    trap - EXIT
}

if [ "${1:-}" = --is-built ]; then
    [ -x "$bin/etcd" ]
    exit
fi
build
[ "${1:-}" = --build ] && exit
for tool in helm kubectl; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: tests/chart/run.sh fetches it" >&2 && exit 1; }
done

home="$(mktemp -d)"
started=()
end() {
    local process
    # SIGKILL, since their data is discarded, and each would wait for the others during a graceful shutdown.
    for process in "${started[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$home"
}
trap end EXIT

start() {
    "$@" >"$home/$(basename "$1").log" 2>&1 &
    started+=($!)
}

ports="$(python3 - <<'END'
import socket
free = [socket.socket() for _ in range(5)]
for one in free:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in free))
END
)"
read -r client peer secure manager scheduler <<<"$ports"

certificate() { # NAME, subject, names
    openssl req -newkey rsa:2048 -nodes -keyout "$home/$1.key" -out "$home/$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$home/$1.csr" -CA "$home/ca.crt" -CAkey "$home/ca.key" -CAcreateserial -days 2 \
        -out "$home/$1.crt" -extfile <(echo "subjectAltName=$3") 2>/dev/null
}
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$home/ca.key" -out "$home/ca.crt" -days 2 -subj /CN=ca 2>/dev/null
certificate server /CN=apiserver "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
openssl genrsa -out "$home/sa.key" 2048 2>/dev/null
openssl rsa -in "$home/sa.key" -pubout -out "$home/sa.pub" 2>/dev/null
token="$(openssl rand -hex 16)"
echo "$token,admin,admin,system:masters" >"$home/tokens"
export KUBECONFIG="$home/kubeconfig"
cat >"$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://127.0.0.1:$secure", certificate-authority: $home/ca.crt}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: here, context: {cluster: here, user: admin}}]
current-context: here
END

# Its data is discarded, so fsync is unnecessary.
start etcd --data-dir "$home/etcd" --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer" --unsafe-no-fsync
start kube-apiserver --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 \
    --secure-port "$secure" --tls-cert-file "$home/server.crt" --tls-private-key-file "$home/server.key" \
    --client-ca-file "$home/ca.crt" --token-auth-file "$home/tokens" --authorization-mode RBAC --allow-privileged=false \
    --endpoint-reconciler-type none --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$home/sa.pub" --service-account-signing-key-file "$home/sa.key" \
    --service-cluster-ip-range 10.96.0.0/16
for _ in $(seq 120); do
    if kubectl get --raw /readyz >/dev/null 2>&1; then break; fi
    sleep 0.5
done
kubectl get --raw /readyz >/dev/null || { tail -n 20 "$home/kube-apiserver.log" >&2 && exit 1; }
start kube-controller-manager --kubeconfig "$KUBECONFIG" --leader-elect=false --bind-address 127.0.0.1 --secure-port "$manager" \
    --cert-dir "$home/manager" --service-account-private-key-file "$home/sa.key" --root-ca-file "$home/ca.crt" \
    --node-monitor-grace-period 5m
start kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=false --bind-address 127.0.0.1 --secure-port "$scheduler" \
    --cert-dir "$home/scheduler"
start python3 tests/chart/nodes.py "https://127.0.0.1:$secure" "$home/ca.crt" "$token"
for _ in $(seq 120); do
    if kubectl wait --for=condition=Ready node/node-0 node/node-1 node/node-2 --timeout 0 >/dev/null 2>&1; then break; fi
    sleep 0.5
done
kubectl wait --for=condition=Ready node --all --timeout 1s >/dev/null || { tail -n 20 "$home/python3.log" >&2 && exit 1; }

python3 tests/chart/cluster_test.py "$@" || {
    tail -n 5 "$home"/*.log >&2
    exit 1
}

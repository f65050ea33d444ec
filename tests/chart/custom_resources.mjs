// Holds objects of groups that Kubernetes itself does not have against the schemas of who defines them:
//
//   python3 tests/chart/rendering.py | node tests/chart/custom_resources.mjs NODE_MODULES
//
// They know types, values and what must be there; fields that a schema does not have they let pass.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages' schemas are named after the Go types.
const GROUPS = {
  "cert-manager.io/v1": ["cert-manager", "ComGithubCertManagerCertManagerPkgApisCertmanagerV1"],
  "gateway.networking.k8s.io/v1": ["gateway-api", "IoK8sSigsGatewayApiApisV1"],
  "monitoring.coreos.com/v1": [
    "prometheus-operator",
    "ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1",
  ],
};

const modules = process.argv[2];
let text = "";
for await (const chunk of process.stdin) text += chunk;
const objects = JSON.parse(text);
const seen = new Set();
let failed = objects.length === 0;
for (const object of objects) {
  const [name, prefix] = GROUPS[object.apiVersion];
  const folder = join(modules, "@kubernetes-models", name, "_schemas");
  const file = `${prefix}${object.kind}.js`;
  if (!readdirSync(folder).includes(file)) throw new Error(`${file} is not in ${folder}`);
  const { validate } = await import(pathToFileURL(join(folder, file)).href);
  seen.add(object.kind);
  if (!validate(object)) {
    failed = true;
    console.log(object.kind, object.metadata.name, JSON.stringify(validate.errors, null, 2));
  }
}
console.log(`${objects.length} objects of ${[...seen].sort().join(", ")}`);
process.exitCode = failed ? 1 : 0;

{{/*
What the binary fixes (src/topology.rs, docs/OPERATIONS.md "The mesh"): which service listens where, whom it calls, and
which stores and secrets it uses. Environments, NetworkPolicies and certificates all follow from this one table.
*/}}
{{- define "cairn.topology" -}}
single:
  port: 8700
  calls: []
  uses: [secretKey, bootstrap, redis, qdrant, assets, smtp, oidc, embedder, reranker, https]
gateway:
  port: 8700
  calls: [auth, content, ingest, retrieval, sync]
  uses: [mesh, redis]
auth:
  port: 8711
  calls: [content, ingest, retrieval, sync]
  uses: [mesh, database, secretKey, bootstrap, smtp, oidc, https]
content:
  port: 8712
  calls: [auth, ingest]
  uses: [mesh, database, assets]
ingest:
  port: 8713
  calls: [auth, content]
  uses: [mesh, database, secretKey, https]
retrieval:
  port: 8714
  calls: [auth, content, ingest]
  uses: [mesh, database, qdrant, embedder, reranker]
sync:
  port: 8715
  calls: [auth, content]
  uses: [mesh, database]
# The CronJob beside `single`, which listens nowhere.
backup:
  calls: []
  uses: [assets, backup]
{{- end }}

{{/* How many pods a service of the mesh has when nothing else is said: one where a volume of one pod holds its state. */}}
{{- define "cairn.replicas" -}}
{{- $service := index .root.Values .component }}
{{- if not (kindIs "invalid" $service.replicas) }}
{{- $service.replicas }}
{{- else if eq (include "cairn.ownsVolume" .) "true" }}1{{ else }}2
{{- end }}
{{- end }}

{{/* "true" when the pod keeps something on a disk of its own, so that there may be one only. */}}
{{- define "cairn.ownsVolume" -}}
{{- $values := .root.Values }}
{{- if eq .component "single" }}{{ $values.single.persistence.enabled }}
{{- else if eq .component "content" }}{{ empty $values.assets.url }}
{{- else if eq .component "retrieval" }}{{ empty $values.qdrant.url }}
{{- else }}false
{{- end }}
{{- end }}

{{/* The least number of pods, with or without an autoscaler. */}}
{{- define "cairn.leastReplicas" -}}
{{- $service := index .root.Values .component }}
{{- if $service.autoscaling.enabled }}{{ $service.autoscaling.minReplicas }}{{ else }}{{ include "cairn.replicas" . }}{{ end }}
{{- end }}

{{/*
What a Deployment with an autoscaler says of its count: nothing, once somebody has scaled it and Helm applies on the server. A count in
the manifest of a revision would be in conflict with the autoscaler's on the way back to it. Until then the live one: without, the
day an autoscaler is turned on would begin with one pod, and so would each upgrade by Helm 3. (dict "root" $ "name" "cairn-auth")
*/}}
{{- define "cairn.liveReplicas" -}}
{{- with (lookup "apps/v1" "Deployment" .root.Release.Namespace .name) }}
{{- $isScaled := false }}
{{- $isApplied := false }}
{{- range .metadata.managedFields }}
{{- if hasKey (get (.fieldsV1 | default dict) "f:spec" | default dict) "f:replicas" }}
{{- $isScaled = or $isScaled (eq (.subresource | default "") "scale") }}
{{- end }}
{{- $isApplied = or $isApplied (and (eq .manager "helm") (eq .operation "Apply")) }}
{{- end }}
{{- if not (and $isScaled $isApplied) }}
{{- .spec.replicas }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What a process is told. A variable that is set to nothing is not the same as one that is not set, so empty values are
left out.
*/}}

{{/* One variable, when there is a value. (dict "name" "CAIRN_LOG" "value" "info") */}}
{{- define "cairn.variable" -}}
{{- $value := kindIs "slice" .value | ternary (join "," (kindIs "slice" .value | ternary .value list)) (.value | toString) }}
{{- if and (not (kindIs "invalid" .value)) (ne $value "") }}
- name: {{ .name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/*
One secret by reference: as a variable, or as the file that NAME_FILE names (secrets.as: files).
(dict "root" $ "name" "CAIRN_REDIS_URL" "secret" "redis" "key" "url" "optional" false)
*/}}
{{- define "cairn.secretVariable" -}}
{{- if and (eq .root.Values.secrets.as "files") (not .optional) }}
- name: {{ .name }}_FILE
  value: /etc/cairn/secrets/{{ .name }}
{{- else }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}

{{/*
The secrets of a component as a JSON object {"list": [{name, secret, key, optional}]}: the environment and the files are
both made of it. (dict "root" $ "component" "auth")
*/}}
{{- define "cairn.secretReferences" -}}
{{- $values := .root.Values }}
{{- $uses := (index (include "cairn.topology" .root | fromYaml) .component).uses }}
{{- $own := include "cairn.ownSecret" .root }}
{{- $keys := $values.secrets.keys }}
{{- $list := list }}
{{- if has "mesh" $uses }}
{{- $list = append $list (dict "name" "CAIRN_MESH_SECRET" "secret" $own "key" $keys.meshSecret) }}
{{- end }}
{{- if and (has "database" $uses) (eq $values.mode "mesh") }}
{{- $database := merge (deepCopy ((index $values .component).database | default dict)) $values.database }}
{{- $list = append $list (dict "name" "CAIRN_DATABASE_URL" "secret" $database.existingSecret "key" $database.existingSecretKey) }}
{{- end }}
{{- if has "secretKey" $uses }}
{{- $list = append $list (dict "name" "CAIRN_SECRET_KEY" "secret" $own "key" $keys.secretKey) }}
{{- end }}
{{- if has "bootstrap" $uses }}
{{- $list = append $list (dict "name" "CAIRN_BOOTSTRAP_PASSWORD" "secret" $own "key" $keys.bootstrapPassword) }}
{{- $optional := not (empty $values.secrets.existingSecret) }}
{{- $list = append $list (dict "name" "CAIRN_BOOTSTRAP_TOKEN" "secret" $own "key" $keys.bootstrapToken "optional" $optional) }}
{{- end }}
{{- if and (has "redis" $uses) $values.redis.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_REDIS_URL" "secret" $values.redis.existingSecret "key" $values.redis.existingSecretKey) }}
{{- end }}
{{- if and (has "qdrant" $uses) $values.qdrant.url $values.qdrant.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_QDRANT_API_KEY" "secret" $values.qdrant.existingSecret "key" $values.qdrant.existingSecretKey) }}
{{- end }}
{{- $bucket := ternary $values.assets dict (and (has "assets" $uses) (not (empty $values.assets.url))) }}
{{- if and (has "backup" $uses) $values.backup.url $values.backup.existingSecret }}{{ $bucket = $values.backup }}{{ end }}
{{- if $bucket.existingSecret }}
{{- $list = append $list (dict "name" "AWS_ACCESS_KEY_ID" "secret" $bucket.existingSecret "key" $bucket.accessKeyIdKey) }}
{{- $list = append $list (dict "name" "AWS_SECRET_ACCESS_KEY" "secret" $bucket.existingSecret "key" $bucket.secretAccessKeyKey) }}
{{- end }}
{{- if and (has "backup" $uses) $values.backup.key.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_BACKUP_KEY" "secret" $values.backup.key.existingSecret "key" $values.backup.key.existingSecretKey) }}
{{- end }}
{{- if and (has "smtp" $uses) $values.mail.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_SMTP_URL" "secret" $values.mail.existingSecret "key" $values.mail.existingSecretKey) }}
{{- end }}
{{- if and (has "oidc" $uses) $values.oidc.issuer $values.oidc.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_OIDC_CLIENT_SECRET" "secret" $values.oidc.existingSecret "key" $values.oidc.existingSecretKey) }}
{{- end }}
{{- if and (has "embedder" $uses) $values.embedder.kind $values.embedder.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_EMBEDDER_KEY" "secret" $values.embedder.existingSecret "key" $values.embedder.existingSecretKey) }}
{{- end }}
{{- if and (has "reranker" $uses) $values.reranker.url $values.reranker.existingSecret }}
{{- $list = append $list (dict "name" "CAIRN_RERANKER_KEY" "secret" $values.reranker.existingSecret "key" $values.reranker.existingSecretKey) }}
{{- end }}
{{- dict "list" $list | toJson }}
{{- end }}

{{/* Everything in the order: the place, the mesh, the product, the secrets, extraEnv. (dict "root" $ "component" "auth") */}}
{{- define "cairn.environment" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
{{- $component := .component }}
{{- $service := index $values .component }}
{{- $topology := include "cairn.topology" .root | fromYaml }}
{{- $self := index $topology .component }}
{{- $isSingle := eq .component "single" }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- include "cairn.variable" (dict "name" "CAIRN_DATA" "value" "/data") }}
{{- include "cairn.variable" (dict "name" "CAIRN_LOG" "value" $values.logFilter) }}
{{- include "cairn.variable" (dict "name" "CAIRN_SHUTDOWN_DELAY_SECONDS" "value" $values.drain.shutdownDelaySeconds) }}
{{- include "cairn.variable" (dict "name" "CAIRN_DRAIN_LIMIT_SECONDS" "value" $values.drain.limitSeconds) }}
{{- include "cairn.variable" (dict "name" "TOKIO_WORKER_THREADS" "value" $values.workerThreads) }}
{{- include "cairn.variable" (dict "name" "MALLOC_ARENA_MAX" "value" $values.workerThreads) }}
{{- if $values.otel.endpoint }}
{{- include "cairn.variable" (dict "name" "OTEL_EXPORTER_OTLP_ENDPOINT" "value" $values.otel.endpoint) }}
{{- $attributes := printf "k8s.pod.name=$(POD_NAME),k8s.namespace.name=$(POD_NAMESPACE),k8s.node.name=$(NODE_NAME),service.version=%s" .root.Chart.AppVersion }}
{{- include "cairn.variable" (dict "name" "OTEL_RESOURCE_ATTRIBUTES" "value" $attributes) }}
{{- end }}
{{- if not $isSingle }}
{{- $scheme := ternary "https" "http" $values.tls.enabled }}
{{- range $called := $self.calls }}
{{- $url := printf "%s://%s-%s:%v" $scheme (include "cairn.fullname" $root) $called (index $topology $called).port }}
{{- include "cairn.variable" (dict "name" (printf "CAIRN_%s_URL" (upper $called)) "value" $url) }}
{{- end }}
{{- if $values.tls.enabled }}
{{- if eq .component "gateway" }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_CLIENT_CERT" "value" "/etc/cairn/tls/tls.crt") }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_CLIENT_KEY" "value" "/etc/cairn/tls/tls.key") }}
{{- else }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_CERT" "value" "/etc/cairn/tls/tls.crt") }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_KEY" "value" "/etc/cairn/tls/tls.key") }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_CLIENT_CA" "value" "/etc/cairn/tls/ca.crt") }}
{{- end }}
{{- include "cairn.variable" (dict "name" "CAIRN_TLS_CA" "value" "/etc/cairn/tls/ca.crt") }}
{{- /* The public listener ends no TLS of its own: the edge in front does. */}}
{{- else }}
{{- include "cairn.variable" (dict "name" "CAIRN_INSECURE_MESH" "value" "true") }}
{{- end }}
{{- end }}
{{- if has .component (list "single" "gateway" "auth") }}
{{- include "cairn.variable" (dict "name" "CAIRN_BASE_URL" "value" $values.baseUrl) }}
{{- end }}
{{- if has .component (list "single" "gateway") }}
{{- include "cairn.variable" (dict "name" "CAIRN_TRUSTED_PROXIES" "value" $values.trustedProxies) }}
{{- include "cairn.variable" (dict "name" "MCP_ALLOWED_ORIGINS" "value" $values.mcpAllowedOrigins) }}
{{- include "cairn.variable" (dict "name" "CAIRN_PLANS" "value" (empty $values.plans | ternary "" (toJson $values.plans))) }}
{{- end }}
{{- if has "bootstrap" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_BOOTSTRAP_EMAIL" "value" $values.bootstrap.email) }}
{{- include "cairn.variable" (dict "name" "CAIRN_DEFAULT_PLAN" "value" $values.defaultPlan) }}
{{- end }}
{{- if has "https" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_OUTBOUND_ALLOW" "value" $values.outboundAllow) }}
{{- else if has "reranker" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_OUTBOUND_ALLOW" "value" $values.outboundAllow) }}
{{- end }}
{{- if and (has "database" $self.uses) (not $isSingle) }}
{{- include "cairn.variable" (dict "name" "CAIRN_DATABASE_CONNECTIONS" "value" $values.database.connections) }}
{{- end }}
{{- if has "qdrant" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_QDRANT_URL" "value" $values.qdrant.url) }}
{{- include "cairn.variable" (dict "name" "CAIRN_QDRANT_PREFIX" "value" (empty $values.qdrant.url | ternary "" $values.qdrant.prefix)) }}
{{- include "cairn.variable" (dict "name" "CAIRN_BROWSE_SCRIPTS" "value" $values.browse.scripts) }}
{{- include "cairn.variable" (dict "name" "CAIRN_BROWSE_MEMORY_MB" "value" $values.browse.memoryMb) }}
{{- end }}
{{- if has "assets" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_ASSETS" "value" $values.assets.url) }}
{{- include "cairn.variable" (dict "name" "CAIRN_TRASH_RETENTION_DAYS" "value" $values.trashRetentionDays) }}
{{- end }}
{{- if has .component (list "single" "content" "ingest" "sync") }}
{{- include "cairn.variable" (dict "name" "CAIRN_ASSET_LIMITS" "value" $values.assetLimits) }}
{{- end }}
{{- if and (has "smtp" $self.uses) $values.mail.existingSecret }}
{{- include "cairn.variable" (dict "name" "CAIRN_MAIL_FROM" "value" $values.mail.from) }}
{{- end }}
{{- if and (has "oidc" $self.uses) $values.oidc.issuer }}
{{- include "cairn.variable" (dict "name" "CAIRN_OIDC_ISSUER" "value" $values.oidc.issuer) }}
{{- include "cairn.variable" (dict "name" "CAIRN_OIDC_CLIENT_ID" "value" $values.oidc.clientId) }}
{{- include "cairn.variable" (dict "name" "CAIRN_OIDC_SCOPES" "value" $values.oidc.scopes) }}
{{- include "cairn.variable" (dict "name" "CAIRN_OIDC_NAME" "value" $values.oidc.name) }}
{{- include "cairn.variable" (dict "name" "CAIRN_OIDC_SIGN_UP" "value" $values.oidc.signUp) }}
{{- end }}
{{- if has "embedder" $self.uses }}
{{- include "cairn.variable" (dict "name" "CAIRN_EMBEDDER" "value" $values.embedder.kind) }}
{{- include "cairn.variable" (dict "name" "CAIRN_EMBEDDER_MODEL" "value" $values.embedder.model) }}
{{- include "cairn.variable" (dict "name" "CAIRN_RERANKER" "value" $values.reranker.url) }}
{{- include "cairn.variable" (dict "name" "CAIRN_RERANKER_MODEL" "value" $values.reranker.model) }}
{{- end }}
{{- range (include "cairn.secretReferences" . | fromJson).list }}
{{- include "cairn.secretVariable" (merge (dict "root" $root) .) }}
{{- end }}
{{- with $service.extraEnv }}
{{ tpl (toYaml .) $root }}
{{- end }}
{{- end }}

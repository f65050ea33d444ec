{{/* Names, labels and the image. Selectors never change: neither version nor commonLabels are in them. */}}

{{- define "cairn.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Cut at 50, so that "-retrieval" still fits. */}}
{{- define "cairn.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "cairn.name" . }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/*
With "-single" and "-backup": Kubernetes makes a label of the name of a StatefulSet with ten characters more, and names of a
CronJob's with the minute. Both take 52.
*/}}
{{- define "cairn.shortName" -}}
{{- include "cairn.fullname" . | trunc 45 | trimSuffix "-" }}
{{- end }}

{{/* (dict "root" $ "component" "auth") */}}
{{- define "cairn.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cairn.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* (dict "root" $ "component" "auth") */}}
{{- define "cairn.labels" -}}
{{- $fixed := include "cairn.selectorLabels" . | fromYaml }}
{{- $_ := set $fixed "app.kubernetes.io/version" (.root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | toString) }}
{{- $_ := set $fixed "app.kubernetes.io/part-of" "cairn" }}
{{- $_ := set $fixed "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63) }}
{{- toYaml (merge $fixed .root.Values.commonLabels) }}
{{- end }}

{{- define "cairn.image" -}}
{{- $image := .Values.image }}
{{- $registry := .Values.global.imageRegistry | default $image.registry }}
{{- $repository := ternary $image.repository (printf "%s/%s" $registry $image.repository) (empty $registry) }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository ($image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "cairn.pullSecrets" -}}
{{- $secrets := concat (.Values.global.imagePullSecrets | default list) .Values.imagePullSecrets }}
{{- if $secrets }}
imagePullSecrets:
{{- range $secrets }}
  - {{ kindIs "map" . | ternary . (dict "name" .) | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cairn.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "cairn.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/* The Secret with what Cairn itself needs: yours, or the one that the chart makes. */}}
{{- define "cairn.ownSecret" -}}
{{- .Values.secrets.existingSecret | default (printf "%s-secrets" (include "cairn.fullname" .)) }}
{{- end }}

{{/* The component that answers people and agents. */}}
{{- define "cairn.front" -}}
{{- ternary "single" "gateway" (eq .Values.mode "single") }}
{{- end }}

{{/* The names of the components that run, as a JSON list. */}}
{{- define "cairn.components" -}}
{{- if eq .Values.mode "single" }}["single"]{{ else }}["gateway","auth","content","ingest","retrieval","sync"]{{ end }}
{{- end }}

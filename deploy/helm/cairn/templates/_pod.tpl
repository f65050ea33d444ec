{{/* The template of a pod, the same for both modes. (dict "root" $ "component" "auth" "args" (list …)) */}}
{{- define "cairn.podTemplate" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
{{- $component := .component }}
{{- $service := index $values .component }}
{{- $self := index (include "cairn.topology" .root | fromYaml) .component }}
{{- $context := dict "root" $root "component" $component }}
{{- $portName := ternary "http" "grpc" (eq $component (include "cairn.front" $root)) }}
{{- $files := include "cairn.secretsVolume" $context }}
{{- $hasTls := and $values.tls.enabled (ne $component "single") }}
{{- $hasVolume := and (eq (include "cairn.ownsVolume" $context) "true") (ne $component "single") $service.persistence.enabled }}
metadata:
  labels:
    {{- include "cairn.labels" $context | nindent 4 }}
    {{- with merge (deepCopy $service.podLabels) $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: cairn
    {{- with merge (deepCopy $service.podAnnotations) $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "cairn.pullSecrets" $root | nindent 2 }}
  serviceAccountName: {{ include "cairn.serviceAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $service.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "cairn.podSecurity" $root | nindent 4 }}
  {{- with $service.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $service.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $service.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $service.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $service.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- tpl (toYaml $service.topologySpreadConstraints) $root | nindent 4 }}
  {{- else if and $values.topologySpread.enabled (ne $component "single") }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "cairn.selectorLabels" $context | nindent 10 }}
      # The pods of one revision are spread among themselves, so that an upgrade ends as spread as an install.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  containers:
    - name: cairn
      image: {{ include "cairn.image" $root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ toJson .args }}
      env:
        {{- include "cairn.environment" $context | trim | nindent 8 }}
      {{- with $service.extraEnvFrom }}
      envFrom:
        {{- tpl (toYaml .) $root | nindent 8 }}
      {{- end }}
      ports:
        - name: {{ $portName }}
          containerPort: {{ $self.port }}
          protocol: TCP
        {{- if and (eq $component "gateway") $service.grpcFrom }}
        - name: grpc
          containerPort: 8701
          protocol: TCP
        {{- end }}
        - name: admin
          containerPort: 9090
          protocol: TCP
      # All three ask the process itself and nothing that it depends on: what all replicas share must take none away.
      startupProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: 5
        timeoutSeconds: 3
        # An index of another schema is built anew at the start.
        failureThreshold: {{ ternary 60 36 (has $component (list "single" "retrieval")) }}
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      livenessProbe:
        httpGet: {path: /healthz, port: admin}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 4
      lifecycle:
        preStop:
          sleep:
            seconds: {{ $values.drain.preStopSeconds }}
      resources:
        {{- toYaml $service.resources | nindent 8 }}
      securityContext:
        {{- include "cairn.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: data
          mountPath: /data
        {{- if $hasTls }}
        - name: tls
          mountPath: /etc/cairn/tls
          readOnly: true
        {{- end }}
        {{- if $files }}
        - name: secrets
          mountPath: /etc/cairn/secrets
          readOnly: true
        {{- end }}
        {{- with $service.extraVolumeMounts }}
        {{- tpl (toYaml .) $root | nindent 8 }}
        {{- end }}
    {{- with $service.extraContainers }}
    {{- tpl (toYaml .) $root | nindent 4 }}
    {{- end }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: {{ $service.tmpSize }}}
    {{- if eq $component "single" }}
    {{- if not $values.single.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- else if $values.single.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ $values.single.persistence.existingClaim }}
    {{- end }}
    {{- else if $hasVolume }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ $service.persistence.existingClaim | default (printf "%s-%s" (include "cairn.fullname" $root) $component) }}
    {{- else }}
    - name: data
      emptyDir: {sizeLimit: {{ $service.dataSize }}}
    {{- end }}
    {{- if $hasTls }}
    - name: tls
      secret:
        secretName: {{ include "cairn.tlsSecret" $context }}
        defaultMode: 0440
    {{- end }}
    {{- with $files }}
    {{- . | trim | nindent 4 }}
    {{- end }}
    {{- with $service.extraVolumes }}
    {{- tpl (toYaml .) $root | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The volume with the secrets of a component, when they come as files. (dict "root" $ "component" "auth") */}}
{{- define "cairn.secretsVolume" -}}
{{- $files := list }}
{{- if eq .root.Values.secrets.as "files" }}
{{- range (include "cairn.secretReferences" . | fromJson).list }}
{{- if not .optional }}{{ $files = append $files . }}{{ end }}
{{- end }}
{{- end }}
{{- if $files }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $files }}
      - secret:
          name: {{ .secret }}
          items:
            - key: {{ .key }}
              path: {{ .name }}
      {{- end }}
{{- end }}
{{- end }}

{{- define "cairn.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.podSecurity.user }}
runAsGroup: {{ .Values.podSecurity.group }}
fsGroup: {{ .Values.podSecurity.group }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- with .Values.podSecurity.seLinuxOptions }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cairn.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: {{ .Values.podSecurity.user }}
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The Secret with a component's certificate: yours, or the one that cert-manager fills. */}}
{{- define "cairn.tlsSecret" -}}
{{- $given := (index .root.Values .component).tlsSecret }}
{{- $given | default (printf "%s-%s-tls" (include "cairn.fullname" .root) .component) }}
{{- end }}

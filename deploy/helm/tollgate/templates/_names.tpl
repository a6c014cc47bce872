{{- define "tollgate.name" -}}
{{- if contains "tollgate" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-tollgate" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "tollgate.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tollgate.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* The most nodes that run at once. */}}
{{- define "tollgate.nodes" -}}
{{- if .Values.autoscaling.enabled -}}
{{ int .Values.autoscaling.maxReplicas }}
{{- else -}}
{{ int .Values.replicas }}
{{- end -}}
{{- end }}

{{/* The scheme of the admin listener, which the probes and Prometheus use. */}}
{{- define "tollgate.adminScheme" -}}
{{- if include "tollgate.tls" (dict "policy" .Values.policy "listener" "admin") -}}https{{- else -}}http{{- end -}}
{{- end }}

{{/* The TLS settings of `listener` in `policy` as JSON; nothing without TLS. */}}
{{- define "tollgate.tls" -}}
{{- $serve := get .policy "serve" | default dict -}}
{{- with get (get $serve .listener | default dict) "tls" -}}{{- toJson . -}}{{- end -}}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The policy of the values, with what only the chart knows. */}}
{{- define "tollgate.policy" -}}
{{- $policy := deepCopy .Values.policy -}}
{{- if and (gt (int .Values.replicas) 1) (not (dig "store" "redis" "" $policy)) -}}
{{- fail (printf "%d replicas without a shared store would each count alone: give policy.store.redis, or replicas: 1" (int .Values.replicas)) -}}
{{- end -}}
{{- $admin := printf "%s:%d" .Values.bind (int .Values.admin.port) -}}
{{- $serve := dict "admin" (dict "listen" $admin "tokens" (dict "env" "TOLLGATE_ADMIN_TOKENS")) -}}
{{- range $name, $door := .Values.doors -}}
{{- if $door.enabled -}}
{{- $listen := printf "%s:%d" $.Values.bind (int $door.port) -}}
{{- $_ := set $serve $name (dict "listen" $listen "tokens" (dict "env" "TOLLGATE_TOKENS")) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $policy "serve" (merge (dig "serve" dict $policy) $serve) -}}
{{- $_ := set $policy "secret" (dict "env" "TOLLGATE_SECRET") -}}
{{- if dig "store" "redis" "" $policy -}}
{{- $_ := set $policy.store.redis "nodes" (dig "nodes" (int .Values.replicas) $policy.store.redis) -}}
{{- end -}}
{{- toYaml $policy -}}
{{- end }}

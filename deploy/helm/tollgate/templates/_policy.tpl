{{/* The policy of the values, with the settings that the chart adds. */}}
{{- define "tollgate.policy" -}}
{{- $policy := deepCopy .Values.policy -}}
{{- $replicas := include "tollgate.nodes" . | int -}}
{{- $store := get $policy "store" | default dict -}}
{{- $sides := dict "policy.store" $store -}}
{{- range $two, $names := dict "rollout" (list "from" "to") "shadow" (list "store" "shadow_store") -}}
{{- with get $store $two -}}
{{- $sides = dict -}}
{{- range $name := $names -}}
{{- $_ := set $sides (printf "policy.store.%s.%s" $two $name) (get (get $store $two) $name | default dict) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $apart := list -}}
{{- range $at, $side := $sides -}}
{{- $shared := false -}}
{{- range $kind := list "redis" "memcached" -}}
{{- with get $side $kind -}}
{{- $shared = true -}}
{{- $_ := set . "nodes" (dig "nodes" $replicas .) -}}
{{- end -}}
{{- end -}}
{{- if not $shared -}}{{- $apart = append $apart $at -}}{{- end -}}
{{- end -}}
{{- if and $apart (gt $replicas 1) -}}
{{- fail (printf "%d replicas would count separately in %s: set redis or memcached there, or replicas: 1" $replicas (join " and " $apart)) -}}
{{- end -}}
{{- $tls := include "tollgate.tls" (dict "policy" $policy "listener" "admin") | default "{}" | fromJson -}}
{{- if get $tls "client_ca" -}}
{{- fail "policy.serve.admin.tls.client_ca: the probes of Kubernetes have no client certificate, so no pod would become ready: leave it out; the tokens of existingSecret protect the admin listener" -}}
{{- end -}}
{{- range $at, $modes := dict "policy.shed" (list "shed") "policy.shed.fleet" (list "shed" "fleet") "policy.shed.worker" (list "shed" "worker") -}}
{{- $shedder := $policy -}}
{{- range $modes -}}{{- $shedder = get $shedder . | default dict -}}{{- end -}}
{{- if kindIs "bool" (get $shedder "mode") -}}
{{- fail (printf "%s.mode is %t: write \"off\", \"shadow\" or \"enforce\" in quotes, because Helm reads off without quotes as false" $at (get $shedder "mode")) -}}
{{- end -}}
{{- end -}}
{{- $admin := printf "%s:%d" .Values.bind (int .Values.admin.port) -}}
{{- $serve := dict "admin" (dict "listen" $admin "tokens" (dict "env" "TOLLGATE_ADMIN_TOKENS")) -}}
{{- range $name, $listener := .Values.listeners -}}
{{- if $listener.enabled -}}
{{- $listen := printf "%s:%d" $.Values.bind (int $listener.port) -}}
{{- $_ := set $serve $name (dict "listen" $listen "tokens" (dict "env" "TOLLGATE_TOKENS")) -}}
{{- end -}}
{{- end -}}
{{- if eq (len $serve) 1 -}}
{{- fail "listeners: enable at least one: a Service and a NetworkPolicy need a port" -}}
{{- end -}}
{{- $_ := set $policy "serve" (merge (dig "serve" dict $policy) $serve) -}}
{{- $_ := set $policy "secret" (dict "env" "TOLLGATE_SECRET") -}}
{{- toYaml $policy -}}
{{- end }}

{{/* The settings that need a restart, as in tollgate-backend's policy_file/fixed.rs. */}}
{{- define "tollgate.fixed" -}}
{{- $policy := include "tollgate.policy" . | fromYaml -}}
{{- $fixed := pick $policy "secret" "store" "serve" "traces" -}}
{{- range $two := list "rollout" "shadow" -}}
{{- with get ($fixed.store | default dict) $two -}}{{- $_ := unset . "percent" -}}{{- end -}}
{{- end -}}
{{- $revealed := list -}}
{{- range $name, $limit := get $policy "limits" | default dict -}}
{{- if and (kindIs "map" $limit) (dig "reveal" false $limit) -}}{{- $revealed = append $revealed $name -}}{{- end -}}
{{- end -}}
{{- toJson (set $fixed "revealed" $revealed) -}}
{{- end }}

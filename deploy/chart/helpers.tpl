{{- /* The image of an app: its name, and the values with a tag or a digest of its own. */ -}}
{{- define "scheduling.image" -}}
{{- $root := index . 0 -}}
{{- $own := index . 2 -}}
{{- $image := printf "%s/%s" $root.Values.image.registry (index . 1) -}}
{{- if $own.digest -}}
{{- printf "%s@%s" $image $own.digest -}}
{{- else -}}
{{- printf "%s:%s" $image ($own.tag | default $root.Values.image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- /* The constraints of all services, for the pods that a selector selects. */ -}}
{{- define "scheduling.topologySpreadConstraints" -}}
{{- $root := index . 0 -}}
{{- $selector := index . 1 -}}
{{- $constraints := list -}}
{{- range $root.Values.topologySpreadConstraints -}}
{{- $constraints = append $constraints (merge (dict "labelSelector" $selector) .) -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end -}}

{{- /* The Gateways of the routes, with the defaults that the components write out. */ -}}
{{- define "scheduling.parentRefs" -}}
{{- $references := list -}}
{{- range .Values.httpRoute.parentRefs -}}
{{- $references = append $references (merge (dict "group" "gateway.networking.k8s.io" "kind" "Gateway") .) -}}
{{- end -}}
{{- toYaml $references -}}
{{- end -}}

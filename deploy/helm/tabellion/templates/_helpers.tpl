{{- define "tabellion.labels" -}}
app.kubernetes.io/name: tabellion
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tabellion.labels" -}}
app.kubernetes.io/name: tabellion
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of the gateway, the monitor or the witness: name, and root, which is the top of the chart. The log's selectors do not match them. */}}
{{- define "tabellion.componentLabels" -}}
app.kubernetes.io/name: tabellion-{{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/*
The ConfigMap, the Services and the StatefulSet, of one process, of the gateway, the monitor or the witness.

root: the top of the chart; name; values: those of the component; args; file: name of its configuration, whose text is the template
tabellion.NAME.config; port: where clients come, 0 for none; admin: the port of health and metrics; readiness: path of the probe;
grace: seconds until a stopping process is killed.
*/}}
{{- define "tabellion.component" -}}
{{- $full := printf "%s-%s" .root.Release.Name .name -}}
{{- $config := include (printf "tabellion.%s.config" .name) .root -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $full }}
  labels: {{- include "tabellion.componentLabels" . | nindent 4 }}
data:
  {{ .file }}: |
    {{- $config | nindent 4 }}
{{- if .port }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $full }}
  labels: {{- include "tabellion.componentLabels" . | nindent 4 }}
spec:
  selector: {{- include "tabellion.componentLabels" . | nindent 4 }}
  ports:
    - { name: http, port: 80, targetPort: http }
{{- end }}
---
# Health and metrics; not for clients.
apiVersion: v1
kind: Service
metadata:
  name: {{ $full }}-admin
  labels: {{- include "tabellion.componentLabels" . | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{- include "tabellion.componentLabels" . | nindent 4 }}
  ports:
    - { name: admin, port: {{ .admin }}, targetPort: admin }
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $full }}
  labels: {{- include "tabellion.componentLabels" . | nindent 4 }}
spec:
  serviceName: {{ $full }}-admin
  replicas: 1
  selector:
    matchLabels: {{- include "tabellion.componentLabels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "tabellion.componentLabels" . | nindent 8 }}
      annotations:
        # The configuration is read again by a new process.
        checksum/config: {{ $config | sha256sum }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .grace }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        # A change of all files at each start would let the group read the keys in the state folder, which are refused then.
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: {{ .name }}
          image: {{ .root.Values.image | quote }}
          imagePullPolicy: {{ .root.Values.imagePullPolicy }}
          args: {{- toYaml .args | nindent 12 }}
          ports:
            {{- if .port }}
            - { name: http, containerPort: {{ .port }} }
            {{- end }}
            - { name: admin, containerPort: {{ .admin }} }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          livenessProbe:
            httpGet: { path: /livez, port: admin }
            periodSeconds: 10
            failureThreshold: 3
          readinessProbe:
            httpGet: { path: {{ .readiness }}, port: admin }
            periodSeconds: 5
          startupProbe:
            httpGet: { path: /livez, port: admin }
            periodSeconds: 2
            failureThreshold: 150
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - { name: config, mountPath: /etc/tabellion/{{ .file }}, subPath: {{ .file }}, readOnly: true }
            {{- if .values.secret }}
            - { name: secret, mountPath: /etc/tabellion/secret, readOnly: true }
            {{- end }}
            - { name: state, mountPath: /var/lib/tabellion }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - name: config
          configMap: { name: {{ $full }} }
        {{- if .values.secret }}
        - name: secret
          secret: { secretName: {{ .values.secret }}, defaultMode: 0440 }
        {{- end }}
        - name: tmp
          emptyDir: {}
  volumeClaimTemplates:
    - metadata:
        name: state
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .root.Values.storageClassName }}
        storageClassName: {{ . | quote }}
        {{- end }}
        resources:
          requests:
            storage: {{ .values.stateSize }}
{{- end -}}

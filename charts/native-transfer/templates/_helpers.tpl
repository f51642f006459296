{{- /* Name of every object of the operator: the release's, with the chart's name unless it is in it. */}}
{{- define "native-transfer.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "native-transfer.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "native-transfer.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels by which the operator's pods are found. Worker pods carry component `worker` and no instance. */}}
{{- define "native-transfer.selector" -}}
app.kubernetes.io/name: native-transfer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "native-transfer.labels" -}}
{{ include "native-transfer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: native-transfer
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* A reference from repository, tag and digest; the digest counts before the tag. */}}
{{- define "native-transfer.reference" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .version .image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "native-transfer.image" -}}
{{- include "native-transfer.reference" (dict "image" .Values.image "version" .Chart.AppVersion) -}}
{{- end -}}

{{- /* The operator's own image, unless the worker has one. A tag or digest alone is of the operator's repository. */}}
{{- define "native-transfer.workerImage" -}}
{{- $own := .Values.worker.image -}}
{{- if or $own.repository $own.tag $own.digest -}}
{{- $image := dict "repository" (default .Values.image.repository $own.repository) "tag" $own.tag "digest" $own.digest -}}
{{- include "native-transfer.reference" (dict "image" $image "version" .Chart.AppVersion) -}}
{{- else -}}
{{- include "native-transfer.image" . -}}
{{- end -}}
{{- end -}}

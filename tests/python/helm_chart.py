"""Lints and renders a chart with Helm, validates the objects with the schemas of Kubernetes, and prints them as JSON.

Arguments: the chart's folder, the values as JSON.
"""

import json
import sys

import kubernetes_validate
import yaml
from helm_python.chart import Chart, lint

KUBERNETES = "1.30"
# Severity of a warning in Helm's findings.
WARNING = 2


def main():
    folder, values = sys.argv[1], json.loads(sys.argv[2])
    findings = [message for message in lint(folder, values, strict=True)["messages"] if message["severity"] >= WARNING]
    if findings:
        sys.exit(f"helm lint: {findings}")
    manifests = Chart.load(folder).render(values, name="log", namespace="default")
    objects = [part for text in manifests.values() for part in yaml.safe_load_all(text) if part]
    for part in objects:
        kubernetes_validate.validate(part, KUBERNETES, strict=True)
    json.dump(objects, sys.stdout)


if __name__ == "__main__":
    main()

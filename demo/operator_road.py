"""Transfers by `kubectl apply`: the operator in the cluster does them."""

import json
import subprocess

from command_line import secret
from multiset import Difference

NAMESPACE = "analytics"
_RESOURCES = "nativetransfers.transfer.dpone.io"
_SECRETS = {"source": "clickhouse", "target": "sqlserver"}
_PATIENCE_SECONDS = 900


class OperatorRoad:
    def __init__(self, cluster, manifests):
        self._kubectl = [cluster["kubectl"], "--kubeconfig", cluster["kubeconfig"], "--namespace", NAMESPACE]
        self._manifests = manifests

    def connect(self, source, target):
        """Creates the namespace and the two Secrets; passwords go by standard input and stand in no argument."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self._create({"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
        for role, connection in (("source", source), ("target", target)):
            metadata = {"name": _SECRETS[role], "namespace": NAMESPACE}
            self._create({"kind": "Secret", "metadata": metadata, "stringData": secret(role, connection)})

    def transfer(self, manifest, target):
        """Applies one document and follows its status until it has succeeded."""
        text = (self._manifests / f"{manifest}.yaml").read_text()
        print(f"      kubectl apply -n {NAMESPACE} -f demo/manifests/{manifest}.yaml", flush=True)
        name = json.loads(self._run(["apply", "-f", "-", "-o", "json"], text))["metadata"]["name"]
        status = self._follow(name)
        publication = status["publication"]
        document = target.evidence(publication["receiptId"])
        if document is None:
            raise Difference(f"no evidence in the target names the receipt in the status of {name}")
        native = document["native_transfer_v1"]
        return {
            "rows": status["custody"]["rows"],
            "chunks": native["chunks"],
            "replaced_rows": native["replaced_rows"],
            "receipt_id": publication["receiptId"],
            "remark": f", by pods of attempt {status['run']['attempt']}",
        }

    def show(self):
        print(f"      kubectl get ntr -n {NAMESPACE}")
        for line in self._run(["get", "ntr"]).splitlines():
            print(f"      {line}")

    def _follow(self, name):
        """Prints what is new in the status until the transfer is at rest; returns the status of a success."""
        command = [*self._kubectl, "get", _RESOURCES, name, "--watch", "--output-watch-events", "-o", "json"]
        command += [f"--request-timeout={_PATIENCE_SECONDS}s"]
        shown = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
            try:
                for event in _documents(watch.stdout):
                    status = event["object"].get("status", {})
                    shown = _show(status, shown)
                    if status.get("phase") == "Succeeded":
                        return status
                    if stalled := _condition(status, "Stalled"):
                        raise Difference(f"{name} is stalled: {stalled['reason']}: {stalled['message']}")
            finally:
                watch.terminate()
        raise Difference(f"{name} has not succeeded in {_PATIENCE_SECONDS} seconds")

    def _create(self, resource):
        self._run(["create", "-f", "-"], json.dumps({"apiVersion": "v1", **resource}))

    def _run(self, arguments, text=""):
        done = subprocess.run([*self._kubectl, *arguments], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise Difference(f"kubectl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def _condition(status, kind):
    return next((found for found in status.get("conditions", []) if found["type"] == kind), None)


def _show(status, shown):
    """Prints phase, reason and progress if one of them changed."""
    ready, progress = _condition(status, "Ready"), status.get("progress", {})
    words = [status.get("phase", "-"), ready["reason"] if ready else "-"]
    if "rowsRead" in progress:
        words.append(f"{progress['rowsRead']:,} rows read, {progress.get('chunksVerified', 0)} chunks verified")
    line = "  ".join(words)
    if line != shown:
        print(f"        {line}", flush=True)
    return line


def _documents(stream):
    """The JSON documents of a stream, each as soon as it is whole."""
    decoder, buffer = json.JSONDecoder(), ""
    for line in stream:
        buffer += line
        try:
            document, end = decoder.raw_decode(buffer)
        except json.JSONDecodeError:
            continue
        yield document
        buffer = buffer[end:].lstrip()

"""Transfers by the command `native-transfer run`."""

import json
import pathlib
import subprocess

from multiset import Difference

MANIFESTS = pathlib.Path(__file__).parent / "manifests"
_SETTLE_SECONDS = 20


class CommandLine:
    def __init__(self, state, native_transfer):
        self._state, self._native_transfer = state, native_transfer

    def connect(self, source, target):
        """Writes the connections as files, in the form in which a pod mounts its Secrets."""
        for role, connection in (("source", source), ("target", target)):
            folder = self._state / "connections" / role
            folder.mkdir(parents=True)
            for key, value in secret(role, connection).items():
                (folder / key).write_text(value)

    def transfer(self, manifest, _target):
        """Runs one transfer; returns its rows, chunks, replaced rows, receipt and a remark for a person."""
        outcome = self.command(
            "run",
            "--file", MANIFESTS / f"{manifest}.yaml",
            "--connections", self._state / "connections",
            "--journal-root", self._state / "journal",
            "--run-id", f"demo-{manifest}",
            "--output", "json",
        )  # fmt: skip
        result = json.loads(outcome)
        overlap = result["measured"]["import_verify"]["effective_parallelism"]
        return {**result, "remark": f", measured import overlap {overlap}"}

    def show(self):
        """Nothing is left to be shown: the evidence was."""

    def command(self, *arguments):
        """Runs native-transfer and returns what it prints; its messages and its progress bar go to the terminal."""
        command = [self._native_transfer, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                out, _ = process.communicate()
            except BaseException:
                # A transfer that is told to stop settles what it can prove; the servers wait for it.
                process.terminate()
                try:
                    process.wait(_SETTLE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        if process.returncode != 0:
            raise Difference(f"native-transfer {arguments[0]} ended with exit code {process.returncode}\n{out}".rstrip())
        return out


def secret(role, connection):
    """The keys of a connection, as files or as a Secret."""
    values = {key: str(connection[key]) for key in ("port", "user", "password", "database")}
    ca = pathlib.Path(connection["ca"]).read_text()
    return values | {"host": connection["name"], "transfer.dpone.io.role": role, "ca.crt": ca}

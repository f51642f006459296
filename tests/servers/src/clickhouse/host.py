"""Drives a ClickHouse engine that exists only as a Python module (chdb-core), for the Rust server that starts this program.

    python3 host.py MODULE CONNECTION       in the server's data folder

MODULE is the path of `_chdb.abi3.so`; CONNECTION is what its `connect` takes. The program prints the path of a Unix socket and
serves it until its standard input ends, so that it never outlives the server. Each connection to the socket is a session of the
engine with a thread of its own, which answers first with that thread's id as the kernel counts and then one request after the
other. Numbers are little-endian:

    request   operation (1 byte), number of fields (u32), then for each its length (u32) and its bytes
    answer    1 for an error or 0, six counters (u64), length (u64), then as many bytes: the result, or the error's text
"""

import fcntl
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

# How long the engine of an ended process may take to let go of the data folder.
LOCK_SECONDS = 10


class Session:
    """A connection of the engine, at most one stream or insert at a time.

    The rows of an insert wait in a file until all are there. The module has a streamed insert too, but that of 26.9 reports rows
    as written that a constraint, or any other fault of the table, has refused.
    """

    def __init__(self, engine, connection, folder):
        self._connection = engine.connect(connection)
        self._folder = folder
        self._stream = None
        self._insert = None
        self._rows = None

    def query(self, sql, output_format, *parameters):
        return self._connection.query(sql, output_format, params=_pairs(parameters))

    def stream(self, sql, output_format, *parameters):
        self._stream = self._connection.send_query(sql, output_format, params=_pairs(parameters))

    def fetch(self):
        return self._connection.streaming_fetch_result(self._stream)

    def cancel_stream(self):
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._connection.streaming_cancel_query(stream)

    def insert(self, sql, input_format):
        self._rows = tempfile.NamedTemporaryFile(dir=self._folder, prefix="rows-")
        self._insert = f"{sql} FROM INFILE '{self._rows.name}' COMPRESSION 'none' FORMAT {input_format}"

    def append(self, data):
        self._rows.write(data)

    def finish_insert(self):
        self._rows.flush()
        return self._connection.query(self._insert, "Null")

    def cancel_insert(self):
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def close(self):
        self.cancel_stream()
        self.cancel_insert()
        self._connection.close()


# Each operation and whether its fields are text.
OPERATIONS = {
    b"Q": (Session.query, True),
    b"S": (Session.stream, True),
    b"F": (Session.fetch, True),
    b"C": (Session.cancel_stream, True),
    b"I": (Session.insert, True),
    b"A": (Session.append, False),
    b"D": (Session.finish_insert, True),
    b"X": (Session.cancel_insert, True),
    b"E": (Session.close, True),
}


def _pairs(fields):
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _exactly(reader, count):
    data = reader.read(count)
    if len(data) != count:
        raise EOFError
    return data


def _request(reader):
    operation, is_text = OPERATIONS[_exactly(reader, 1)]
    (count,) = struct.unpack("<I", _exactly(reader, 4))
    fields = []
    for _ in range(count):
        (length,) = struct.unpack("<I", _exactly(reader, 4))
        data = _exactly(reader, length)
        fields.append(data.decode() if is_text else data)
    return operation, fields


def _answer(peer, data=b"", counts=(0,) * 6, failed=False):
    peer.sendall(struct.pack("<B7Q", failed, *counts, len(data)))
    peer.sendall(data)


def _answer_result(peer, result):
    if result is None:
        _answer(peer)
        return
    counts = (
        result.rows_read(),
        result.bytes_read(),
        result.storage_rows_read(),
        result.storage_bytes_read(),
        result.rows_written(),
        result.bytes_written(),
    )
    # The engine's own memory goes out; a copy of a large result would hold up every other thread.
    memory = result.get_memview()
    _answer(peer, memory.view() if memory.size() else b"", counts)
    memory.release()


def serve(peer, engine, connection, folder):
    with peer, peer.makefile("rb") as reader:
        try:
            session = Session(engine, connection, folder)
        except RuntimeError as error:
            _answer(peer, str(error).encode(), failed=True)
            return
        operation = None
        try:
            _answer(peer, str(threading.get_native_id()).encode())
            while operation is not Session.close:
                operation, fields = _request(reader)
                try:
                    result = operation(session, *fields)
                except RuntimeError as error:
                    # So the module tells every error of the engine.
                    _answer(peer, str(error).encode(), failed=True)
                else:
                    _answer_result(peer, result)
        except (EOFError, ConnectionError):
            # A server in good order asks for the end of a session; this one is about to end itself.
            session.close()


def _accept(listener, *context):
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=serve, args=(peer, *context), daemon=True).start()


def _wait_for_data_folder():
    """The engine takes a lock that it finds held for a fault, but a server that was killed may be about to let go of it."""
    status = pathlib.Path("store/status")
    if not status.exists():
        return
    deadline = time.monotonic() + LOCK_SECONDS
    with status.open("rb") as file:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
            else:
                return


def _load(module):
    spec = importlib.util.spec_from_file_location("_chdb", module)
    engine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(engine)
    engine.set_signal_handlers_enabled(0)
    return engine


def main(module, connection):
    # Ctrl-C goes to the server, which ends this program.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _wait_for_data_folder()
    engine = _load(module)
    folder = tempfile.mkdtemp(prefix="chdb-host-")
    with socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "socket")
        listener.bind(path)
        listener.listen(128)
        threading.Thread(target=_accept, args=(listener, engine, connection, folder), daemon=True).start()
        print(path, flush=True)
        sys.stdin.buffer.read()
    shutil.rmtree(folder)
    # At once, as a library would be left: the engine's destructors would race with its threads.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The SQL Server end, by the foreign client mssql-python (Microsoft's ODBC driver) over TLS."""

import json
import re

import mssql_python

import multiset
from flights import COLUMNS, NAMES

TABLE = "dbo.flights"
LOADER = "flights_loader"
STATE_SCHEMA = "dpone"
STAGING_SCHEMA = "dpone_stage"
_FETCHED_ROWS = 20_000


class Target:
    def __init__(self, connection):
        """Trust is the process's: SSL_CERT_FILE names the CA, for the driver has no option for it."""
        self._connection = mssql_python.connect(
            f"Server=tcp:{connection['name']},{connection['port']};Database={connection['database']};"
            f"UID={connection['user']};PWD={{{connection['password']}}};Encrypt=yes;TrustServerCertificate=no;"
            # The driver compares names only: an address, as pods need it, is not looked for in the certificate.
            "HostNameInCertificate=localhost;",
            autocommit=True,
        )

    def close(self):
        self._connection.close()

    def version(self):
        return self._one("SELECT CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion'))")

    def create_table(self):
        columns = ",\n".join(f"  [{column.name}] {column.target_type}" for column in COLUMNS)
        self._execute(f"CREATE TABLE {TABLE} (\n{columns}\n)")

    def create_loader(self, password):
        self._execute(f"CREATE LOGIN [{LOADER}] WITH PASSWORD = N'{password}'")
        self._execute(f"CREATE USER [{LOADER}] FOR LOGIN [{LOADER}]")

    def run_script(self, script):
        """Runs a script whose batches are separated by GO; returns how many there were."""
        batches = [batch for batch in re.split(r"(?mi)^\s*GO\s*$", script) if batch.strip()]
        for batch in batches:
            self._execute(batch)
        return len(batches)

    def grant_loader(self):
        """The rights of docs/reference/grants.md that the printed catalog leaves to the DBA."""
        self._execute(f"GRANT SELECT, INSERT, DELETE, ALTER ON {TABLE} TO [{LOADER}]")
        database = self._one("SELECT DB_NAME()")
        self._execute("USE [master]")
        self._execute(f"GRANT VIEW SERVER STATE TO [{LOADER}]")
        self._execute(f"USE [{database}]")

    def is_sysadmin(self):
        return self._one("SELECT CONVERT(int, IS_SRVROLEMEMBER('sysadmin'))") == 1

    def plant(self, row):
        marks = ", ".join("?" * len(NAMES))
        with self._connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {TABLE} ({', '.join(f'[{name}]' for name in NAMES)}) VALUES ({marks})", row)

    def count(self):
        return self._one(f"SELECT COUNT_BIG(*) FROM {TABLE}")

    def stages(self):
        return self._one("SELECT COUNT_BIG(*) FROM sys.tables WHERE name LIKE N'dpone[_]native[_]%'")

    def custody(self):
        """How many targets are in someone's custody."""
        return self._one(f"SELECT COUNT_BIG(*) FROM [{STATE_SCHEMA}].[native_transfer_custody] WHERE [state] <> N'clear'")

    def evidence(self, receipt_id):
        """The evidence document that names a receipt."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT [document] FROM [{STATE_SCHEMA}].[native_transfer_evidence]")
            documents = [json.loads(row[0]) for row in cursor.fetchall()]
        return next((document for document in documents if document.get("commit_receipt_id") == receipt_id), None)

    def rows(self):
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(f'[{name}]' for name in NAMES)} FROM {TABLE}")
            columns = [[] for _ in NAMES]
            while batch := cursor.fetchmany(_FETCHED_ROWS):
                for column, values in zip(columns, zip(*batch)):
                    column.extend(values)
        return multiset.of_columns(columns)

    def _execute(self, sql):
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            while cursor.nextset():  # an error of a later statement of the batch is only seen by going on
                pass

    def _one(self, sql):
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]

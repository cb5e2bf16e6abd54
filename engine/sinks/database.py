"""A database as Spark's JDBC sees it, asked from the driver through Spark's JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

_SERIALIZABLE = 8  # java.sql.Connection's own number
_TEXT_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps it


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: as the database has it.
        text_type: its type if that is text of a length, such as ``varchar(200)``; else None.
    """

    name: str
    text_type: str | None


class Database:
    """A connection, to be used in a ``with``; outside of a transaction each statement is one.

    Names of tables are taken as SQL takes them without quotes, so in no case.

    Args:
        spark: the session whose JVM has the driver.
        options: of Spark's JDBC source; ``dbtable`` is the table that :meth:`column` is of.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm
        spark_sql = jvm.org.apache.spark.sql
        jdbc = spark_sql.execution.datasources.jdbc
        given = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(options))
        self._table = options["dbtable"]
        self._options = jdbc.JDBCOptions(given)
        self._dialect = spark_sql.jdbc.JdbcDialects.get(options["url"])
        self._utils = jdbc.JdbcUtils
        self._connection = self._dialect.createConnectionFactory(self._options).apply(-1)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    @property
    def has_transactions(self) -> bool:
        return bool(self._connection.getMetaData().supportsTransactions())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within or none, as if nobody else were there."""
        self._connection.setTransactionIsolation(_SERIALIZABLE)
        self._connection.setAutoCommit(False)
        try:
            yield
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            self._connection.setAutoCommit(True)

    def run(self, statement: str, *values: str | int) -> None:
        """Do a statement with a value for each ``?``."""
        self._prepared(statement, values, lambda prepared: prepared.executeUpdate())

    def finds(self, query: str, *values: str | int) -> bool:
        """Whether a query gives any row."""
        return bool(self._prepared(query, values, lambda p: p.executeQuery().next()))

    def tables(self, beginning: str) -> list[str]:
        """The tables whose names begin like this, with the schema if that is written in it."""
        schema, dot, name = beginning.rpartition(".")
        found = self._connection.getMetaData().getTables(None, None, "%", None)
        names = []
        while found.next():
            its_schema, its_name = found.getString(2) or "", found.getString(3)
            if its_name.lower().startswith(name.lower()) and (
                not dot or its_schema.lower() == schema.lower()
            ):
                names.append(f"{schema}{dot}{its_name}")
        return names

    def has(self, table: str) -> bool:
        return table.lower() in map(str.lower, self.tables(table))

    def column(self, name: str) -> Column:
        """The table's column of this name, in whatever case; raises UsageError without one."""
        found = self._utils.getSchemaOption(self._connection, self._options)
        fields = json.loads(found.get().json())["fields"] if found.isDefined() else []
        for its in fields:
            if its["name"].lower() == name.lower():
                return Column(its["name"], its["metadata"].get(_TEXT_TYPE))
        raise UsageError(f"table {self._table} has no column {name}: add it, or leave it out")

    def quoted(self, name: str) -> str:
        """The name in a statement, with just these letters."""
        return str(self._dialect.quoteIdentifier(name))

    def _prepared(
        self, statement: str, values: Sequence[str | int], act: Callable[[Any], Any]
    ) -> Any:
        prepared = self._connection.prepareStatement(statement)
        try:
            for place, value in enumerate(values, 1):
                if isinstance(value, str):
                    prepared.setString(place, value)
                else:
                    prepared.setLong(place, value)
            return act(prepared)
        finally:
            prepared.close()

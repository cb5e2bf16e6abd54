"""The state log in a bucket of S3, or of a store that speaks as it does.

There is no rename there, and none is needed: an object appears whole or not at all, and one that
must be new (an epoch) is put on the condition that there is none (``If-None-Match: *``), which S3
has kept since 2024, as MinIO, Ceph and others do. Reads and listings see what was put before, as
S3 has promised since 2020. A store without either is no place for a state log.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bettong.engine.state.store import StoreError
from bettong.lineage.errors import UsageError

SCHEME = "s3://"
_IS_THERE = ("PreconditionFailed", "ConditionalRequestConflict")
_clients: dict[str, Any] = {}


@dataclass(frozen=True)
class S3Store:
    """Objects under a prefix. Who may come in, and where another store than Amazon's is, is told as
    to every program on S3, by the environment (``AWS_ENDPOINT_URL``, …) or ``~/.aws``; nothing of
    it is kept here or sent to workers.

    Attributes:
        bucket: it is there already.
        prefix: before all names; of this log alone.
    """

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> S3Store:
        """``s3://BUCKET/PREFIX``; raises UsageError."""
        bucket, slash, prefix = text.removeprefix(SCHEME).partition("/")
        if not (text.startswith(SCHEME) and bucket and slash and prefix.strip("/")):
            raise UsageError(f"{text!r}: write s3://BUCKET/PREFIX")
        return cls(bucket, prefix.strip("/"))

    def write(self, name: str, data: bytes | memoryview) -> None:
        self._put(name, data)

    def publish(self, name: str, data: bytes) -> None:
        self._put(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """As :meth:`bettong.engine.state.store.Store.create`; where the answer is lost and the
        request is sent again, it says no to the one who did it: an epoch is then left out."""
        with self.asked(name):
            try:
                self.client.put_object(**self._at(name), Body=data, IfNoneMatch="*")
            except self.client.exceptions.ClientError as e:
                if e.response["Error"]["Code"] in _IS_THERE:
                    return False
                raise
        return True

    def read(self, name: str) -> memoryview:
        with self.asked(name):
            return memoryview(self.client.get_object(**self._at(name))["Body"].read())

    def names(self, folder: str) -> list[str]:
        start = self._at(folder)["Key"] + "/"
        with self.asked(folder):
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=start, Delimiter="/"
            )
            found = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return sorted(key.removeprefix(start) for key in found)

    def remove(self, name: str) -> None:
        with self.asked(name):
            self.client.delete_object(**self._at(name))

    def _put(self, name: str, data: bytes | memoryview) -> None:
        with self.asked(name):
            self.client.put_object(**self._at(name), Body=bytes(data))

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}/{name}"}

    @contextmanager
    def asked(self, name: str) -> Iterator[None]:
        """Tells of a request that failed; raises StoreError."""
        if importlib.util.find_spec("boto3") is None:
            raise UsageError("state in S3 needs boto3: pip install 'bettong[s3]'")
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError) as e:
            raise self.failed(name, e) from e

    def failed(self, name: str, why: Exception) -> StoreError:
        """What says that a request for an object failed."""
        return StoreError(f"s3://{self.bucket}/{self.prefix}/{name}: {why}")

    @property
    def client(self) -> Any:
        """This process' connection."""
        import boto3

        if "s3" not in _clients:
            _clients["s3"] = boto3.client("s3")
        return _clients["s3"]

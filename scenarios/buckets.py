"""State in a bucket of S3, which keeps its promises in a folder: a request to it is calls to the
disk, of which each can fail, before it is done or after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bettong.engine.batch.protocol import BatchProtocol, Settings
from bettong.engine.state.s3 import S3Store
from bettong.engine.state.store import LocalStore
from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.counting import COUNTING

T = TypeVar("T")


class RefusedError(Exception):
    """What boto3 raises as ``ClientError``."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class FolderClient:
    """What :class:`S3Store` asks of boto3's client. A request that has failed is sent once more, as
    boto3 does by itself: the answer to a conditional one may then be about the first. What has been
    seen of the bucket is durable, although the one who put it may have been told otherwise.

    Args:
        root: the folder that stands for the bucket.
    """

    class exceptions:  # noqa: N801 - boto3's name
        """What may be caught."""

        ClientError: ClassVar[type[Exception]] = RefusedError

    def __init__(self, root: Path) -> None:
        self._store = LocalStore(root)

    def put_object(self, Bucket: str, Key: str, Body: bytes, IfNoneMatch: str = "") -> None:  # noqa: N803
        """Raises RefusedError where the condition does not hold."""
        if not IfNoneMatch:
            _sent(lambda: self._store.publish(Key, Body))
        elif not _sent(lambda: self._store.create(Key, Body)):
            raise RefusedError("PreconditionFailed")

    def get_object(self, Bucket: str, Key: str) -> dict[str, BytesIO]:  # noqa: N803
        """An object, if it is there."""

        def read() -> bytes:
            self._store.settle(str(Path(Key).parent))
            return bytes(self._store.read(Key))

        return {"Body": BytesIO(_sent(read))}

    def get_paginator(self, _: str) -> FolderClient:
        """Itself: all names are on one page."""
        return self

    def paginate(self, Bucket: str, Prefix: str, Delimiter: str) -> list[dict[str, Any]]:  # noqa: N803
        """The names in a folder."""

        def names() -> list[str]:
            with suppress(FileNotFoundError):
                self._store.settle(Prefix)
            return self._store.names(Prefix)

        return [{"Contents": [{"Key": Prefix + name} for name in _sent(names)]}]

    def delete_object(self, Bucket: str, Key: str) -> None:  # noqa: N803
        """It is gone for good when this returns."""

        def remove() -> None:
            self._store.remove(Key)
            self._store.settle(str(Path(Key).parent))

        _sent(remove)


def _sent(request: Callable[[], T]) -> T:
    with suppress(OSError):
        return request()
    return request()


@dataclass(frozen=True)
class FolderBucket(S3Store):
    """A bucket in a folder.

    Attributes:
        root: the folder.
    """

    root: Path = Path()

    @property
    def client(self) -> FolderClient:
        """Whom to ask."""
        return FolderClient(self.root)

    @contextmanager
    def asked(self, name: str) -> Iterator[None]:
        """Tells of a request that failed twice; raises StoreError."""
        try:
            yield
        except OSError as e:
            raise self.failed(name, e) from e


class InBucket(BatchProtocol):
    """Keeps its state in a bucket, where others would look for the state log."""

    def __init__(self, settings: Settings) -> None:
        store = settings.store
        assert isinstance(store, LocalStore)
        bucket = FolderBucket("states", store.root.name, store.root.parent)
        super().__init__(replace(settings, store=bucket))


COUNTING_IN_BUCKET = replace(
    COUNTING,
    name="counting_in_bucket",
    title="5 + 10 + 15 = 30: sums in 3 batches, their state in a bucket of S3, kept in a folder",
    # the first batch closes by time, so that what it takes is noted
    moments=({"amounts": 2},),
    partitions=1,
    classes={"protocol": "bettong.scenarios.buckets:InBucket"},
)

SCENARIOS: Sequence[Scenario] = (COUNTING_IN_BUCKET,)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]

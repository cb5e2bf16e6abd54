"""Requests that change nothing which outlives their connection: to lose one, its reply, or the
driver there, leaves the same behind."""

from __future__ import annotations

_SQL = {"BEGIN", "SET SESSION", "SHOW", "ping"}
_REDIS = {"PING", "MULTI", "WATCH", "UNWATCH", "GET", "MGET", "HGET", "HGETALL", "EXISTS", "LRANGE"}
_AMQP = {"channel.open", "channel.close", "basic.qos", "confirm.select", "tx.select"}
_LABELS = frozenset(_SQL | _REDIS | _AMQP)
_HTTP = ("GET ", "HEAD ", "OPTIONS ")  # safe methods: RFC 9110, 9.2.1


def harmless(label: str) -> bool:
    """Whether requests with this label are of that kind; one that is not known is not."""
    return label in _LABELS or label.startswith(_HTTP)

"""Requests that change nothing which outlives their connection: to lose one, its reply, or the
driver there, leaves the same behind."""

from __future__ import annotations

_SQL = {"BEGIN", "SET SESSION", "SHOW", "ping"}
_REDIS = {"PING", "ECHO", "TIME", "INFO", "MULTI", "UNWATCH", "DISCARD"}
_REDIS_READS = {
    *("WATCH", "DBSIZE", "RANDOMKEY", "KEYS", "SCAN"),
    *("EXISTS", "TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"),
    *("GET", "MGET", "GETRANGE", "STRLEN", "GETBIT", "BITCOUNT", "BITPOS", "LCS"),
    *("HGET", "HMGET", "HGETALL", "HEXISTS", "HKEYS", "HVALS", "HLEN", "HSTRLEN", "HSCAN"),
    *("LRANGE", "LLEN", "LINDEX", "LPOS"),
    *("SISMEMBER", "SMISMEMBER", "SMEMBERS", "SCARD", "SRANDMEMBER", "SSCAN"),
    *("SINTER", "SINTERCARD", "SUNION", "SDIFF"),
    *("ZSCORE", "ZMSCORE", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"),
    *("ZRANGEBYLEX", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZRANK", "ZREVRANK", "ZSCAN"),
    *("XLEN", "XRANGE", "XREVRANGE", "XREAD", "XPENDING", "XINFO", "PFCOUNT"),
}
"""Not those that can store what they find (SORT, GEORADIUS) or change an expiry (GETEX)."""
_AWAITED = {
    *("BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP"),
    *("XREAD", "XREADGROUP", "WAIT", "WAITAOF"),
}
_AMQP = {"channel.open", "channel.close", "basic.qos", "confirm.select", "tx.select"}
_LABELS = frozenset(_SQL | _REDIS | _REDIS_READS | _AMQP)
_HTTP = ("HEAD ", "OPTIONS ")  # safe methods: RFC 9110, 9.2.1; GET below


def harmless(label: str) -> bool:
    """Whether requests with this label are of that kind; one that is not known is not."""
    return label in _LABELS or label.startswith(_HTTP)


def asks(label: str) -> bool:
    """Whether they only read what is kept: what was found out before may no longer hold then."""
    return label in _REDIS_READS or label.startswith("HEAD ")


def awaits(label: str) -> bool:
    """Whether its reply may come when there is something to tell, and no sooner: that it is not
    answered says nothing of a lock."""
    return label in _AWAITED or meant_to_read(label)


def safe_in_http(label: str) -> bool:
    """Whether HTTP says so, and nothing else does: a service may do something all the same."""
    return label.startswith(_HTTP)


def meant_to_read(label: str) -> bool:
    """Whether it changes nothing by HTTP's rules, which many a service breaks (``GET
    /update?commit=true``): it is hit as one that may, beside those that are meant to write."""
    return label.startswith("GET ")

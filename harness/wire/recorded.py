"""A run so far as a Recording."""

from __future__ import annotations

from bettong.harness.wire.conversation import (
    Conversation,
    Recording,
    Request,
    Span,
    numbered,
)
from bettong.harness.wire.run import RecordedTunnel, WireRun

_MAX_REQUESTS = 50  # requests of a connection that decide its number


def recorded(run: WireRun) -> Recording:
    """Everything that was said, connections numbered."""
    talks = []
    for endpoint in dict.fromkeys(tunnel.endpoint for tunnel in run.tunnels):
        tunnels = [tunnel for tunnel in run.tunnels if tunnel.endpoint == endpoint]
        numbers = numbered([_span(tunnel) for tunnel in tunnels])
        talks += [_conversation(t, n) for t, n in zip(tunnels, numbers, strict=True)]
    return Recording(tuple(sorted(talks, key=lambda talk: (talk.endpoint, talk.number))))


def _span(tunnel: RecordedTunnel) -> Span:
    """A connection that said nothing that counts comes last among those it was open with."""
    keys = [logged.keys for logged in tunnel.session.requests if logged.keys is not None]
    message = tuple(key.content or key.label for key in keys[:_MAX_REQUESTS]) or ("~",)
    return Span(tunnel.opened, tunnel.closed or 1 << 62, message)


def _conversation(tunnel: RecordedTunnel, number: int) -> Conversation:
    counted = [logged for logged in tunnel.session.requests if logged.keys is not None]
    requests = tuple(
        Request(
            tunnel.endpoint,
            number,
            index,
            logged.order,
            logged.info.label,
            logged.info.detail,
            logged.size,
            logged.reply_size,
            logged.keys,
            logged.info.alike,
            logged.replied,
            logged.info.refusable,
        )
        for index, logged in enumerate(counted, 1)
        if logged.keys is not None
    )
    return Conversation(
        tunnel.endpoint,
        number,
        tunnel.framing.recognised,
        requests,
        tuple(tunnel.chunks),
        tunnel.size["upstream"],
        tunnel.size["downstream"],
        tunnel.framing.problem,
    )

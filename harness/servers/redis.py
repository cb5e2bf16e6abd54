"""Redis."""

from __future__ import annotations

import socket

from bettong.harness.processes.patience import patience
from bettong.harness.servers.errors import ServerFailedError
from bettong.harness.servers.programs import find_program
from bettong.harness.servers.server import Server, receive_exactly

_ANSWER_SECONDS = 60.0
_PASS_TIME = b"""
local gone = 0
for database = 0, 15 do
  redis.call('SELECT', database)
  local cursor = '0'
  repeat
    local page = redis.call('SCAN', cursor)
    cursor = page[1]
    for _, key in ipairs(page[2]) do
      local left = redis.call('PTTL', key)
      if left >= 0 and left <= tonumber(ARGV[1]) then
        gone = gone + redis.call('DEL', key)
      elseif left >= 0 then
        redis.call('PEXPIRE', key, left - ARGV[1])
      end
    end
  until cursor == '0'
end
return gone
"""


class RedisServer(Server):
    """Redis whose answered writes survive a crash (append-only file, synced on every write)."""

    name = "redis"

    def url(self, address: tuple[str, int] | None = None) -> str:
        host, port = address or (self.host, self.port)
        return f"redis://{host}:{port}/0"

    def prepare(self) -> None:
        find_program("redis-server", "apt-get install redis-server")

    def command(self) -> list[str]:
        settings = {
            "bind": self.host,
            "port": str(self.port),
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        options = [part for key, value in settings.items() for part in (f"--{key}", value)]
        return [find_program("redis-server", "apt-get install redis-server"), *options]

    def greet(self, connection: socket.socket) -> None:
        connection.sendall(b"PING\r\n")
        answer = receive_exactly(connection, 5)
        if answer != b"+PONG":  # -LOADING while it reads its file
            raise ValueError(f"answered {answer!r}")

    def pass_time(self, seconds: int) -> bool:
        """Keys that expire within that time are gone, others expire so much sooner."""
        words = (b"EVAL", _PASS_TIME, b"0", b"%d" % (1000 * seconds))
        sent = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        with socket.create_connection((self.host, self.port), patience(_ANSWER_SECONDS)) as asked:
            asked.sendall(b"*%d\r\n%s" % (len(words), sent))
            answer = asked.makefile("rb").readline()
        if not answer.startswith(b":"):
            raise ServerFailedError(f"redis: keys cannot be made to expire: {answer!r}")
        return int(answer[1:]) > 0

"""A Toxiproxy server in pure Python: the same HTTP API, the same toxics, and no API call that
hangs. ``python -m bettong.harness.toxiproxy.embedded --host 127.0.0.1 --port 8474`` starts it.

Behaviour follows Toxiproxy 2.12 (https://github.com/Shopify/toxiproxy), including where it
surprises: half-closed connections are closed, removing a ``timeout`` closes the connections it was
in force on, ``reset_peer`` resets only connections that were made after it. Beyond Toxiproxy,
``GET /proxies/{name}/traffic`` shows what crossed, what is held and what was dropped.
"""

"""pyspark's daemon of Python workers with the probe of sinks in it."""

from pyspark import daemon

from bettong.harness.sinks import probes

if __name__ == "__main__":
    probes.install()
    daemon.manager()

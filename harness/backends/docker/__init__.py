"""The docker backend: each node a container with a network address of its own."""

from bettong.harness.backends.docker.backend import DockerBackend as DockerBackend

__all__ = ["DockerBackend"]

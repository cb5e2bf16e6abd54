"""The docker backend: each node a container with a network address of its own."""

from bettong.harness.docker_backend.backend import DockerBackend as DockerBackend

__all__ = ["DockerBackend"]

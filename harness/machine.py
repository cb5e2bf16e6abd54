"""The state machine of the engine, under the name by which the docs know it."""

from bettong.harness.strategies.state_machine import EngineMachine

__all__ = ["EngineMachine"]

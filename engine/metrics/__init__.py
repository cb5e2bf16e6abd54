"""What a running application costs: how fast each step is, what waits, how large the state is.

Off unless a run is given :class:`bettong.engine.metrics.config.Metrics`.
"""

"""Ready-made pipelines, protocols, sinks and their broken twins: to run, and to copy from."""

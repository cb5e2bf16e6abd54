"""Ready-made pipelines, protocols, sinks and their mutants: to run, and to copy from."""

"""The pytest plugin: suites as test cases, searches as marks, fixtures with a running backend."""

# The commands of a contributor; `just` lists them. Each also works typed by hand.

bin := ".venv/bin"

_default:
    @just --list

# A work environment in .venv, with the hooks that check each commit.
setup:
    python3 -m venv .venv
    {{bin}}/pip install -q -c constraints.txt -e '.[dev,servers,test]'
    {{bin}}/pre-commit install

# Lint, types and the tests that start no Spark: a minute or two.
check:
    {{bin}}/tox -e lint,types,unit-py311

# The tests of a folder or a file, without tox: just test tests/lineage
test *arguments:
    {{bin}}/pytest -q {{arguments}}

# Everything that CI runs: real Spark, real proxies, real kills, the wheel.
ci:
    .ci/run

# Gather the changelog's fragments for a release.
changelog version:
    {{bin}}/towncrier build --yes --version {{version}}

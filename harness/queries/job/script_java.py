"""A ``java`` for a script's driver that shares class data, which halves what its start costs.

An archive is used only by a JVM whose class path begins like that of the one that has made it.
Spark's launcher names the folder of the configuration, another one for each run, before Spark's own
jars; no jar has files of those names, so that it can as well come last. The launcher is started
with the same ``java``, by whose home it names that of the driver; that one has the machine's own.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from bettong.harness.spark import jar
from bettong.harness.spark.archive import current_archive

_JAVA = """#!/bin/sh
first={first}
archive=
for word do
  test "$begun" || set --
  begun=yes
  case $word in
    "$first"*)
      archive={archive} word={before}${{word#"$first"}}:{configuration}/
      export JAVA_HOME={home}
      ;;
  esac
  set -- "$@" "$word"
done
exec {java} ${{archive:+"-XX:SharedArchiveFile=$archive" -Xshare:auto}} "$@"
"""


def java_home(folder: Path, configuration: Path) -> Path:
    """Make a home of Java in ``folder``, once, and return what ``JAVA_HOME`` shall be: this one, or
    the machine's own as long as there is no archive.

    Args:
        configuration: what ``SPARK_CONF_DIR`` is for the script.
    """
    java = Path(jar.java()).resolve()
    archive = current_archive()
    home = folder / "java"
    if archive is None:
        return java.parent.parent
    if not home.exists():
        (home / "bin").mkdir(parents=True)
        _link(java.parent.parent, home)
        _link(java.parent, home / "bin")
        before = f"{jar.hooks().path}:"
        words = {
            "first": f"{before}{configuration}/:",
            "before": before,
            "archive": str(archive),
            "configuration": str(configuration),
            "java": str(java),
            "home": str(java.parent.parent),
        }
        text = _JAVA.format(**{name: shlex.quote(word) for name, word in words.items()})
        program = home / "bin" / "java"
        program.unlink()
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    return home


def _link(folder: Path, to: Path) -> None:
    """Everything in a folder, without what is there already."""
    for entry in folder.iterdir():
        if not (to / entry.name).exists():
            (to / entry.name).symlink_to(entry)

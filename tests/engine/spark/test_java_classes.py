"""A driver asks the JVM once what a class is."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from bettong.engine.spark.classes import remember_classes

pytestmark = pytest.mark.spark


def test_a_class_is_asked_for_once_and_a_package_each_time(spark: SparkSession) -> None:
    context = spark.sparkContext
    remember_classes(context)
    java: Any = context._jvm
    name = "org.apache.spark.sql.classic.SparkSession"
    for known in ("PythonUtils", name):
        assert getattr(java, known) is getattr(java, known)
    assert java.org is not java.org
    assert spark.range(3).count() == 3

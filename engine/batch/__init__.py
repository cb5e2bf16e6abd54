"""One micro-batch, column by column, without a word of Spark: what the Spark runner's tasks and
driver do, so that it can be run and tested without a JVM."""

# Bettong with Spark and Java, for the gateway, the engine, its workers and the receiver.
# Any image of Debian 12 or later, such as a company's own: --build-arg BASE=…
ARG BASE=debian:bookworm-slim
FROM ${BASE}

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless python3-venv \
    && rm -rf /var/lib/apt/lists/*

ENV PATH=/opt/bettong/bin:$PATH
COPY . /tmp/bettong
RUN python3 -m venv /opt/bettong \
    && pip install --no-cache-dir --constraint /tmp/bettong/constraints.txt '/tmp/bettong[kafka,metrics,s3]' \
    && rm -rf /tmp/bettong

# A number, so that a cluster which wants no root can see that this is not root.
RUN useradd --uid 10001 --user-group --create-home --home-dir /home/bettong bettong \
    && install --directory --owner bettong --group bettong /data
USER 10001:10001
WORKDIR /data
VOLUME /data
# Workers run this Python, which has Bettong.
ENV PYSPARK_PYTHON=python3 PYTHONUNBUFFERED=1

ENTRYPOINT ["bettong"]
CMD ["--help"]

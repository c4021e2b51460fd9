# The command line, with every kind of checkpoint storage but HDFS (which wants a JVM), without Spark.
#
#   docker build --tag flink-offset-migrate .
#   docker run --rm --volume /flink:/flink:ro flink-offset-migrate inspect /flink/checkpoints/…/chk-42

FROM python:3.13.5-slim-bookworm AS build
WORKDIR /build
COPY requirements/build.txt requirements/image.txt requirements/
RUN python -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --require-hashes --requirement requirements/build.txt \
    && python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes --requirement requirements/image.txt
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY decoder decoder
COPY migrate migrate
RUN /tools/bin/python -m hatchling build --target wheel --directory /dist \
    && /venv/bin/pip install --no-cache-dir --no-deps --no-index --find-links /dist \
        flink-offset-migrate

FROM python:3.13.5-slim-bookworm
RUN useradd --uid 10001 --create-home migrate
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
# Plans and rollback files go to the current folder: mount one there to keep them.
WORKDIR /work
ENTRYPOINT ["migrate"]
CMD ["--help"]

# docker build -t ferrule . && docker run --rm -it -v "$PWD:/work" -e ANTHROPIC_API_KEY ferrule
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /build
COPY requirements/run.txt requirements/run.txt
RUN python -m venv /opt/ferrule
RUN /opt/ferrule/bin/python -m pip install --disable-pip-version-check --no-cache-dir --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
RUN /opt/ferrule/bin/python -m pip install --disable-pip-version-check --no-cache-dir --no-index --no-deps --no-build-isolation .

FROM python:${PYTHON}
# ripgrep comes with the lock, into /opt/ferrule/bin.
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
# A folder of the machine belongs to a user of the machine, and git looks into none of a stranger's.
RUN git config --system --add safe.directory /work && useradd --create-home --uid 1000 ferrule && install -d -o ferrule /work
COPY --from=build /opt/ferrule /opt/ferrule
ENV PATH=/opt/ferrule/bin:$PATH
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["ferrule"]

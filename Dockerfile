# The image of native-transfer: the operator and its workers in one.
#
#   docker build --tag native-transfer:0.1.0 .
#
# UNVERIFIED: no Docker has run this file yet. What is tested (tests/it/image.rs) is that the folder that the last stage copies has
# the same files, modes and digests as the image of `testkit image build`, which needs no Docker and is what the tests run, and
# that user, entry point, environment and labels are the same. image/files.txt is the list of those files.
#
# The base is Debian 12, whose C library and OpenSSL go into the image. The digest is the one that public Dockerfiles pin for
# this tag; ask your registry before you trust it: `docker buildx imagetools inspect rust:1.95.0-bookworm`.
ARG BASE=docker.io/library/rust:1.95.0-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1

FROM ${BASE} AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates cmake libssl-dev pkg-config \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
# `dev` is the profile that every test runs with; `release` is faster and less tried.
ARG PROFILE=dev
ARG SOURCE_DATE_EPOCH=0
ENV CARGO_TARGET_DIR=/target
RUN cargo build --locked --profile "${PROFILE}" --package cli --package operator --package testkit
RUN folder="/target/${PROFILE}"; [ "${PROFILE}" = dev ] && folder=/target/debug; \
    "${folder}/testkit" image stage --output /image --bin-dir "${folder}"
RUN cd /image/rootfs && sha256sum --check --quiet ../rootfs.sha256

FROM scratch
LABEL org.opencontainers.image.title="native-transfer"
LABEL org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/usr/bin
COPY --from=build /image/rootfs/ /
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/usr/bin/native-transfer"]

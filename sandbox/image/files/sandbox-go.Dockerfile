# The sandbox with the Go toolchain of the distribution.
ARG BASE
FROM ${BASE}
USER root
ARG DEBIAN_FRONTEND=noninteractive
RUN set -e; \
	apt-get update; \
	apt-get install -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io golang-go; \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt; \
	find / -xdev -type f -perm /6000 -exec chmod a-s {} +
ENV GOTOOLCHAIN=local
USER 65534:65534

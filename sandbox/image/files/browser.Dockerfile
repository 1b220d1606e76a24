# The sandbox with Chromium, for the browser tools and for Playwright with
# executablePath /usr/bin/chromium.
ARG BASE
FROM ${BASE}
USER root
ARG DEBIAN_FRONTEND=noninteractive
RUN set -e; \
	apt-get update; \
	apt-get install -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io chromium fonts-dejavu-core fonts-noto-color-emoji; \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt; \
	find / -xdev -type f -perm /6000 -exec chmod a-s {} +
USER 65534:65534

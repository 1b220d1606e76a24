# The sandbox with a screen in memory, and what types, clicks and looks on it.
ARG BASE
FROM ${BASE}
USER root
ARG DEBIAN_FRONTEND=noninteractive
RUN set -e; \
	apt-get update; \
	apt-get install -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io \
		fonts-dejavu-core scrot x11-utils x11vnc xauth xdotool xfonts-base xterm xvfb; \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt; \
	find / -xdev -type f -perm /6000 -exec chmod a-s {} +
USER 65534:65534

# What commands of agents run in. It has no entry point and no user of its own beyond
# nobody: whoever starts a container says what runs and as whom.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
USER root
ARG DEBIAN_FRONTEND=noninteractive
RUN set -e; \
	printf 'path-exclude=/usr/share/%s/*\n' doc man info locale >/etc/dpkg/dpkg.cfg.d/writ; \
	apt-get update; \
	apt-get install -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io \
		bash bzip2 ca-certificates curl diffutils file findutils git gzip jq less make nodejs openssh-client \
		patch procps python3 python3-pip python3-venv ripgrep sed tar unzip xz-utils zip; \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt; \
	find / -xdev -type f -perm /6000 -exec chmod a-s {} +
ENV LANG=C.UTF-8
USER 65534:65534
CMD ["/bin/bash"]

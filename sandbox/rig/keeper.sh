# The keeper of an engine: 'bash -c "$script" keeper DIRECTORY SECONDS'. It runs dockerd, and
# ends it when nobody has held the lock on the file users for so many seconds. It is a
# program of its own because a test can be killed at any time, and the engine with it
# would break the tests of others.
dir=$1 idle=$2
exec 7<>"$dir/keeper" 8<>"$dir/lock" 9<>"$dir/users"
flock -w 5 7 || exit 0 # another one keeps it
echo $$ >"$dir/keeper"

# serves tells whether a process is one of this engine's: numbers are used again.
serves() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$dir/"; } 2>/dev/null

pid=$(cat "$dir/pid" 2>/dev/null)
if ! serves "$pid"; then
	rm -f "$dir/pid" # of before the machine was started: dockerd would believe it
	serves "$(cat "$dir/exec/containerd/containerd.pid" 2>/dev/null)" || rm -f "$dir/exec/containerd/containerd.pid"
	runtimes=()
	if runsc=$(command -v runsc); then
		# Its own network stack does not start on kernels that are newer than it, nor does it
		# know their control groups: a container has the namespace of its own all the same.
		printf '#!/bin/sh\nexec "%s" --network=host --ignore-cgroups "$@"\n' "$runsc" >"$dir/runsc" && chmod +x "$dir/runsc"
		runtimes=(--add-runtime "runsc=$dir/runsc")
	fi
	dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" -H "unix://$dir/docker.sock" \
		--bridge none --iptables=false --ip-masq=false "${runtimes[@]}" 7>&- 8>&- 9>&- &
	pid=$!
fi

quiet=0
while sleep 1 && serves "$pid"; do
	if flock -n 9; then
		flock -u 9
		quiet=$((quiet + 1))
	else
		quiet=0
	fi
	[ "$quiet" -ge "$idle" ] || continue
	flock 8 # whoever comes now waits, and starts another
	if flock -n 9; then
		kill -TERM "$pid"
		while serves "$pid"; do sleep 0.1; done
		exit 0
	fi
	flock -u 8
	quiet=0
done

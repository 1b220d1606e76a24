# A root file system of Debian on standard output: 'sh -c "$script" base SUITE'. It is made
# in memory, where dpkg does not wait for a disk after each file; the mount is in a
# namespace of its own and gone with the last of these processes, however they end.
set -eu
suite=$1 root=/mnt/root
mount -t tmpfs -o mode=755 writ-image /mnt
debootstrap --variant=minbase "$suite" "$root" >&2
sed -n 's|^deb \([^ ]*\)/* \([^ ]*\) main.*|&\ndeb \1 \2-updates main\ndeb \1-security \2-security main|p' "$root/etc/apt/sources.list" >/mnt/sources
cp /mnt/sources "$root/etc/apt/sources.list"
printf 'path-exclude=/usr/share/%s/*\n' doc man info locale >"$root/etc/dpkg/dpkg.cfg.d/writ"
export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get update >&2
chroot "$root" apt-get upgrade -y --no-install-recommends >&2
cd "$root"
rm -rf var/lib/apt/lists/* var/cache/apt/* var/log/*.log var/log/apt usr/share/doc/* usr/share/man/* usr/share/info/* usr/share/locale/*
: >etc/resolv.conf # of this machine, as is the name
echo localhost >etc/hostname
tar -c --numeric-owner --one-file-system .

#!/usr/bin/env bash
# A real S3 server for tests: Ceph with one monitor, one OSD and one RADOS Gateway, on 127.0.0.1 only.
#
#   eval "$(test/support/s3/s3-server.sh start)"   start it, or find it running; prints shell exports
#   test/support/s3/s3-server.sh status | stop     stop ends only the processes that start recorded
#
# Needs root and apt-get. Ceph's packages are unpacked into S3_CACHE, not installed, and run there in a private
# mount namespace: the machine's own packages stay as they are. Optional settings:
#   S3_DIR    data, logs, pid files (default: a new temporary folder, removed by stop); one server a folder
#   S3_STORE  memstore: in memory, gone after stop (default) | bluestore: on disk, outlives stop and kill -9
#   S3_SIZE   most bytes stored (default 4G)   S3_PORT  (default: a free one)   S3_ACCESS_KEY, S3_SECRET_KEY
#   S3_SUITE  Debian suite that Ceph comes from (default forky: Ceph 20.2; older ones fail If-Match)
#   S3_CACHE  (default /var/cache/s3-server)   S3_DEBUG  log level of the gateway, 0 to 20 (default 0)
set -euo pipefail

suite=${S3_SUITE:-forky} store=${S3_STORE:-memstore} size=${S3_SIZE:-4G} port=${S3_PORT:-} monport=
key=${S3_ACCESS_KEY:-S3TESTACCESSKEY} secret=${S3_SECRET_KEY:-s3-test-secret-key} region=us-east-1
cache=${S3_CACHE:-/var/cache/s3-server} root=
current=/run/s3-server.dir # names the temporary folder in use when S3_DIR is not set
dir=${S3_DIR:-$(cat "$current" 2>/dev/null || echo /nonexistent)}

say() { echo "s3-server: $*" >&2; }
die() { say "$@"; exit 1; }

unpack_ceph() {
  local need=() mirror tmp c
  for c in mmdebstrap curl; do command -v $c >/dev/null || need+=("$c"); done
  [ ${#need[@]} = 0 ] && [ -x "$root/usr/bin/radosgw" ] && return
  apt-get update -qq >&2 || say "apt-get update failed, going on with the lists that are here"
  [ ${#need[@]} = 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${need[@]}" >&2
  [ ! -x "$root/usr/bin/radosgw" ] || return 0
  say "unpacking Ceph from $suite into $root"
  # from the mirror that apt here uses already; its copy of a suite may be past its date, but is still signed
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p)
  tmp=$(mktemp -d "$cache/build.XXXXXX")
  mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=radosgw,ceph-mon,ceph-osd,ceph-common,bash,coreutils "$suite" "$tmp" ${mirror:+"$mirror"} >&2
  rm -rf "$tmp"/usr/share/{doc,man,locale} "$root"; mkdir -p "$tmp"/{dev,proc,srv}; mv "$tmp" "$root"
}

in_root() { # runs a command in the unpacked root, with $dir as /srv; the mounts end with it
  CEPH_CONF=/srv/ceph.conf PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C exec ${detach:-} unshare --mount bash -euc '
    mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; mount --bind "$2" "$1/srv"
    root=$1; shift 2; cd /; exec chroot "$root" "$@"' _ "$root" "$dir" "$@"
}
daemon() { # name command...
  detach=setsid in_root "${@:2}" >>"$dir/log/$1.out" 2>&1 </dev/null &
  echo "$! $(sed 's/.*) //' "/proc/$!/stat" | cut -d' ' -f20)" >"$dir/run/$1.pid"; disown
}
alive() { # name: is the process that start recorded (pid and start time) still there? sets $pid
  local began stat
  [ -f "$dir/run/$1.pid" ] && read -r pid began <"$dir/run/$1.pid" || return 1
  stat=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || return 1
  [ "${stat%% *}" != Z ] && [ "$(cut -d' ' -f20 <<<"$stat")" = "$began" ]
}
end() { # name seconds
  ! alive "$1" || kill "$pid"
  for ((i = 0; i < $2 * 10; i++)); do alive "$1" || break; sleep 0.1; done
  ! alive "$1" || kill -9 "$pid"
  rm -f "$dir/run/$1.pid"
}
end_all() { end rgw 1; end osd 2; end mon 2; } # the gateway keeps no state and is slow to end by itself
failed() { local rc=$?; say 'start failed'; tail -n 8 "$dir"/log/*.out >&2 || true; end_all; exit $rc; }
free_port() { for p in $(shuf -i 20000-29999 -n 50); do (: <"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }; done; }
signed() { # method path [curl arguments]: prints the HTTP status
  curl -s -o /dev/null -w '%{http_code}' -m 20 --noproxy '*' --aws-sigv4 "aws:amz:$region:s3" -u "$key:$secret" \
    -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -X "$1" "http://127.0.0.1:$port$2" "${@:3}" || true
}
ready() { # a bucket can be made, and in it a key once and not twice
  local b=/s3-server-ready got
  [ "$(signed PUT $b)" = 200 ] || return 1
  signed DELETE $b/k >/dev/null
  got=$(signed PUT $b/k -T "$dir/fsid" -H 'If-None-Match: *')$(signed PUT $b/k -T "$dir/fsid" -H 'If-None-Match: *')
  signed DELETE $b/k >/dev/null; signed DELETE $b >/dev/null
  [ "$got" = 200412 ]
}

configure() {
  cat >"$dir/ceph.conf" <<CONF
[global]
fsid = $(cat "$dir/fsid")
mon host = v2:127.0.0.1:$monport/0
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms mon service mode = crc
ms mon cluster mode = crc
client mount timeout = 30
osd client watch timeout = 5
objecter tick interval = 1
mon data = /srv/mon
mon data avail crit = 1
mon allow pool size one = true
paxos propose interval = 0.05
osd data = /srv/osd
osd objectstore = $store
memstore device bytes = $size
bluestore block size = $size
osd memory target = 1G
osd pool default size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
log file = /srv/log/\$name.log
admin socket =
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw dynamic resharding = false
rgw gc obj min wait = 60
rgw gc processor period = 60
debug rgw = ${S3_DEBUG:-0}
CONF
}
run_cluster() {
  local uuid=
  if [ ! -f "$dir/settings" ]; then # a new cluster
    uuid=$(cat /proc/sys/kernel/random/uuid); rm -rf "$dir"/{mon,osd}; mkdir "$dir"/{mon,osd}
    (in_root monmaptool --create --clobber --fsid "$(cat "$dir/fsid")" --addv a "[v2:127.0.0.1:$monport/0]" /srv/monmap) >>"$dir/log/mkfs.out"
    (in_root ceph-mon --mkfs -i a --monmap /srv/monmap)
  fi
  daemon mon ceph-mon -f -i a
  if [ -n "$uuid" ]; then
    (in_root timeout 60 ceph osd new "$uuid") >>"$dir/log/mkfs.out"
    (in_root ceph-osd -i 0 --mkfs --osd-uuid "$uuid") >>"$dir/log/mkfs.out" 2>&1
  fi
  daemon osd ceph-osd -f -i 0
  for ((i = 0; ; i++)); do
    (in_root timeout 10 ceph osd stat) 2>/dev/null | grep -q ' 1 up' && break
    [ $i -lt 100 ] && alive osd || die 'the OSD did not come up'; sleep 0.2
  done
  [ -z "$uuid" ] || (in_root timeout 60 radosgw-admin -n client.rgw user create --uid=test --display-name=test \
    --access-key="$key" --secret-key="$secret") >/dev/null
  daemon rgw radosgw -f -n client.rgw
  for ((i = 0; ; i++)); do ready && break; [ $i -lt 400 ] && alive rgw || die 'the gateway did not answer'; sleep 0.1; done
  printf '%s=%q\n' suite "$suite" store "$store" size "$size" key "$key" secret "$secret" port "$port" monport "$monport" >"$dir/settings"
}

start() {
  [ "$(id -u)" = 0 ] || die 'needs root'
  if [ -n "${S3_DIR:-}" ]; then mkdir -p "$dir"; elif [ ! -d "$dir" ]; then dir=$(mktemp -d); echo "$dir" >"$current"; fi
  dir=$(cd "$dir" && pwd); mkdir -p "$dir"/{run,log} "$cache"
  exec 8>"$dir/lock"; flock 8 # one start or stop at a time
  [ ! -f "$dir/settings" ] || . "$dir/settings" # a cluster keeps its suite, store, keys and ports
  root=$cache/$suite
  if ! { alive mon && alive osd && alive rgw; }; then
    trap failed EXIT
    end_all
    (flock 9; trap 'rm -rf "$cache"/build.*' EXIT; unpack_ceph) 9>"$cache/lock" 8>&-
    port=${port:-$(free_port)} monport=${monport:-$(free_port)}
    [ -f "$dir/fsid" ] || cat /proc/sys/kernel/random/uuid >"$dir/fsid"
    configure
    { run_cluster; } 8>&- # the daemons do not hold the lock
    trap - EXIT
  fi
  printf 'export %s=%q\n' S3_DIR "$dir" S3_ENDPOINT "http://127.0.0.1:$port" AWS_ENDPOINT_URL_S3 "http://127.0.0.1:$port" \
    AWS_REGION "$region" AWS_ACCESS_KEY_ID "$key" AWS_SECRET_ACCESS_KEY "$secret"
}
stop() {
  [ -d "$dir" ] || { say 'not running'; exit 0; }
  exec 8>"$dir/lock"; flock 8
  end_all
  [ ! -f "$dir/settings" ] || . "$dir/settings"
  [ "$store" != memstore ] || rm -rf "$dir"/{mon,osd,settings,fsid}
  [ "$dir" != "$(cat "$current" 2>/dev/null)" ] || rm -rf "$dir" "$current"
  say stopped
}
status() { for n in mon osd rgw; do alive $n && echo "$n: pid $pid, $(ps -o rss= -p "$pid") KiB" || { echo "$n: stopped"; rc=3; }; done; exit ${rc:-0}; }
case ${1:-} in
  start | stop | status) "$1" ;;
  *) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

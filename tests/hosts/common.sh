# common.sh: hosts for tests: network, process and name spaces of their own, joined by a bridge, each with a real sshd.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced, with the path of tuttirun as the script's first argument. make_hosts a b … starts them. tuttirun runs on the
# host "head", where the test's shell is not: on_head COMMAND… runs something there. Nothing of it is left at the end:
# a host's processes end with its sshd, and the networks are removed.
source "$(dirname "${BASH_SOURCE[0]}")/../launch/common.sh"

need ip
need unshare
need ssh
need ssh-keygen
sshd=$(command -v sshd || command -v /usr/sbin/sshd) || skip "sshd is not installed"
net=tutti-h$$
hosts=()
port=2222

remove_hosts() {
  local host
  for host in switch head "${hosts[@]}"; do ip netns del "$net-$host" 2>/dev/null || true; done
}
# Keeps the status that the test ends with.
finish_hosts() {
  local status=$?
  set +e
  for ((index = ${#started[@]} - 1; index >= 0; --index)); do kill -9 "${started[index]}" 2>/dev/null; done
  wait 2>/dev/null
  remove_hosts
  (exit "$status")
  finish
}
trap finish_hosts EXIT

write_ssh_files() {
  ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/host_key"
  cat >"$folder/sshd_config" <<END
Port $port
HostKey $folder/host_key
AuthorizedKeysFile $folder/key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 200
UseDNS no
END
  cat >"$folder/ssh_config" <<END
Host *
  Port $port
  IdentityFile $folder/key
  IdentitiesOnly yes
  UserKnownHostsFile $folder/known_hosts
  StrictHostKeyChecking yes
  GlobalKnownHostsFile none
  LogLevel ERROR
END
}

# add_network HOST NUMBER: its cable to the switch, and its addresses.
add_network() {
  ip netns add "$net-$1" 2>"$folder/ip.log" || skip "no network namespaces here: $(cat "$folder/ip.log")"
  ip link add eth0 netns "$net-$1" type veth peer name "port$2" netns "$net-switch"
  ip -n "$net-switch" link set "port$2" master bridge up
  ip -n "$net-$1" addr add "10.213.9.$2/24" dev eth0
  ip -n "$net-$1" addr add "fd13::$2/64" dev eth0 nodad
  ip -n "$net-$1" link set lo up
  ip -n "$net-$1" link set eth0 up
  echo "10.213.9.$2 $1" >>"$folder/hosts"
  echo "fd13::$2 $1-v6" >>"$folder/hosts"
  echo "[$1]:$port,[$1-v6]:$port,[10.213.9.$2]:$port,[fd13::$2]:$port $(cat "$folder/host_key.pub")" >>"$folder/known_hosts"
}

# in_host HOST COMMAND…: with the host's network, name and list of hosts. exec_in_host becomes it; with & its id is $!.
in_host() { (exec_in_host "$@"); }
exec_in_host() {
  local host=$1
  shift
  exec ip netns exec "$net-$host" unshare --mount --uts sh -c '
    mount --make-rprivate / && mount --bind "$1/hosts" /etc/hosts && hostname "$2" || exit 99
    shift 2; exec "$@"' sh "$folder" "$host" "$@"
}

start_sshd() {
  ip netns exec "$net-$1" unshare --pid --fork --kill-child --mount-proc --mount --uts sh -c '
    mount --make-rprivate / && mount --bind "$1/hosts" /etc/hosts && hostname "$2" && mount -t tmpfs none /run && mkdir /run/sshd &&
    mount -t tmpfs -o size=64m none /dev/shm || exit 99
    exec "$3" -D -e -f "$1/sshd_config"' sh "$folder" "$1" "$sshd" >"$folder/sshd-$1.log" 2>&1 &
  started+=($!)
  eval "outer_of_${1//-/_}=$!"
}

await_sshd() {
  for _ in $(seq 100); do grep -qs 'Server listening' "$folder/sshd-$1.log" && return; sleep 0.05; done
  return 1
}

# The process outside of a host that is its life: with it everything there ends. It sees the host's files.
outer_of() { eval "echo \$outer_of_${1//-/_}"; }
files_of() { local host=$1; shift; nsenter -t "$(outer_of "$host")" -m "$@"; }

make_hosts() {
  local host number=0
  hosts=("$@")
  write_ssh_files
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$folder/hosts"
  ip netns add "$net-switch" 2>"$folder/ip.log" || skip "no network namespaces here: $(cat "$folder/ip.log")"
  ip -n "$net-switch" link add bridge type bridge
  ip -n "$net-switch" link set bridge up
  for host in head "$@"; do
    number=$((number + 1))
    add_network "$host" "$number"
  done
  for host in "$@"; do start_sshd "$host"; done
  for host in "$@"; do await_sshd "$host" || skip "sshd does not start here: $(cat "$folder/sshd-$host.log")"; done
}

on_head() { in_host head "$@"; }

ssh_words="ssh -F $folder/ssh_config"

# on_hosts NAME STATUS ARGUMENTS…: tuttirun on the head must end with that status; output in NAME.out and NAME.err.
on_hosts() {
  local name=$1 expected=$2 status=0
  shift 2
  on_head timeout -k 5 60 "$tuttirun" --ssh "$ssh_words" "$@" >"$folder/$name.out" 2>"$folder/$name.err" </dev/null || status=$?
  [ "$status" = "$expected" ] || fail "$name: exit $status instead of $expected of tuttirun $*"
}

on_hosts_in_background() {
  local name=$1
  shift
  : >"$folder/$name.out"   # as launch_in_background does
  exec_in_host head env --default-signal=INT,QUIT "$tuttirun" --ssh "$ssh_words" "$@" >"$folder/$name.out" 2>"$folder/$name.err" </dev/null &
  launched=$!
  started+=("$launched")
}

# The processes of a host, but for its sshd: as "id name".
processes_on() {
  local outer inner
  outer=$(outer_of "$1")
  inner=$(readlink "/proc/$outer/ns/pid_for_children")
  inner=${inner//[^0-9]/}
  ps -eo pidns=,pid=,ppid=,comm= | awk -v inner="$inner" -v outer="$outer" '$1 == inner && $3 != outer { print $2, $4 }'
}

expect_hosts_empty_soon() {
  local host left until=$((SECONDS + 10))
  for host in "${hosts[@]}"; do
    while left=$(processes_on "$host"); [ -n "$left" ] && [ $SECONDS -lt $until ]; do sleep 0.05; done
    [ -z "$left" ] || fail "$1: processes were left on $host: $left"
  done
}

# As above, where sshd may wait for a network that was gone: nothing of ours may.
expect_only_sshd_soon() {
  local left until=$((SECONDS + 10))
  while left=$(processes_on "$1" | grep -v ' sshd$'); [ -n "$left" ] && [ $SECONDS -lt $until ]; do sleep 0.05; done
  [ -z "$left" ] || fail "host $1 fell silent: processes were left there: $left"
}

# pid_on HOST NAME: the id, seen from here, of a process there.
pid_on() { processes_on "$1" | awk -v name="$2" '$2 == name { print $1; exit }'; }

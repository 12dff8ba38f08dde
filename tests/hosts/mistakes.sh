# mistakes.sh: hosts that cannot be used: one clear message that names the host, soon, and nothing left.
# SPDX-License-Identifier: Apache-2.0
#
#   mistakes.sh TUTTIRUN [all]     with "all" also those that take seconds to find
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
make_hosts a b

# mistake NAME PATTERN ARGUMENTS…: exit 2, one line that fits, within 10 s, nothing on any host.
mistake() {
  local name=$1 pattern=$2 begin=$EPOCHREALTIME took
  shift 2
  on_hosts "$name" 2 "$@"
  took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  [ "$(grep -c . "$folder/$name.err")" = 1 ] || fail "$name: not one line"
  expect_last "$name" "$pattern"
  [ "$took" -lt "${limit_ms:-10000}" ] || fail "$name: it took $took ms"
  expect_hosts_empty_soon "$name"
  echo "$name: $took ms: $(cat "$folder/$name.err")"
}

cd "$folder"
mistake no_name 'host nowhere: its name does not resolve .*; check the spelling' -H a,nowhere true
mistake no_sshd 'host 10.213.9.1: nobody listens on its ssh port .*start sshd' -H a,10.213.9.1 true
mistake no_program 'host a: cannot start ./nothing: there is no such file' -H a ./nothing
mistake no_folder 'host a: the folder /nowhere cannot be used: No such file or directory; name another with --wdir' -H a --wdir /nowhere true
mistake no_python 'host a: cannot start /nowhere/python: there is no such file' -H a --python /nowhere/python -m this
mistake no_shell '/nowhere/ssh cannot be started: No such file or directory; give another remote shell with --ssh' --ssh /nowhere/ssh -H a true
printf 'a\nb slot=2\n' >"$folder/hostfile"
mistake bad_word 'hostfile, line 2: "slot=2" is not understood.*did you mean slots=N' --hostfile "$folder/hostfile" true
mistake too_many 'host a has 2 slots' -H a:2 -n 3 true

# Another version, and no tuttirun at all.
cat >"$folder/other" <<'END'
#!/bin/sh
printf '\001tutti-agent 1 0.0.1 /somewhere/tuttirun\n'
exec cat >/dev/null
END
chmod +x "$folder/other"
mistake version 'host a: it has version 0.0.1 of Tutti \(/somewhere/tuttirun\), and version .* starts the job; install the same' -H a --remote-tuttirun "$folder/other" true
mistake no_tuttirun 'host a: there is no tuttirun, neither /nowhere/tuttirun nor in PATH; install Tutti there' -H a --remote-tuttirun /nowhere/tuttirun true

# A key that is not let in, and a host key that is not known.
ssh-keygen -q -t ed25519 -N '' -f "$folder/other_key"
sed "s|$folder/key|$folder/other_key|" "$folder/ssh_config" >"$folder/other_config"
mistake key 'host [ab]: it refuses the key .*ssh-copy-id [ab]' --ssh "ssh -F $folder/other_config" -H a,b true
mistake host_key 'host a: its host key is not known here' --ssh "ssh -F $folder/ssh_config -o UserKnownHostsFile=/dev/null" -H a true

# A port that is in use; more ranks than cores.
exec_in_host a "$(realpath "$(python3 -c 'import sys; print(sys.executable)')")" -c 'import socket, time; s = socket.socket(); s.bind(("0.0.0.0", 23456)); s.listen(); time.sleep(100)' &
started+=($!)
for _ in $(seq 200); do grep -qi :5BA0 "/proc/$!/net/tcp" && break; sleep 0.05; done
mistake port 'host a: --master-port 23456: the port is in use' -H a --master-port 23456 true

# What the hosts print before the agent speaks does no harm.
on_hosts chatty 0 --ssh "sh -c 'echo welcome; exec $ssh_words \"\$@\"' sh" -H a:1 echo well
expect chatty 1 '^\[a:0\] well$'

[ "${2:-}" = all ] || { echo "mistakes: all well"; exit 0; }

# A firewall between two hosts that both can be reached from here: it drops, or it rejects.
in_host a ip route add prohibit 10.213.9.3
in_host a ip -6 route add prohibit fd13::3
mistake rejected 'host (a does not reach host b|b does not reach host a) at any of its 4 addresses; at 10.213.9.[23]:[0-9]+: .*open the firewall' -H a:1,b:1 true
in_host a ip route del prohibit 10.213.9.3
in_host a ip -6 route del prohibit fd13::3
in_host a ip route add blackhole 10.213.9.3
in_host a ip -6 route add blackhole fd13::3
mistake dropped 'host (a does not reach host b|b does not reach host a) at any' -H a:1,b:1 true
in_host a ip route del blackhole 10.213.9.3
in_host a ip -6 route del blackhole fd13::3

# A host that is switched off.
ip -n "$net-b" link set eth0 down
mistake off 'host b: (it does not answer|there is no route to it)' -H a:1,b:1 true
echo "mistakes: all well"

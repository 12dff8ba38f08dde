# start.sh: tuttirun -H over ssh: places, output, input, exit codes, signals.
# SPDX-License-Identifier: Apache-2.0
#
#   start.sh TUTTIRUN WHERE_AM_I NUMBER_RANKS
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
make_hosts a b

cat >"$folder/place" <<'END'
#!/bin/bash
echo "$(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $TUTTI_INTERFACE $MASTER_ADDR $GREETING $PWD"
[ "$RANK" != 0 ] || cat
echo "an error of rank $RANK" >&2
END
chmod +x "$folder/place"
cd "$folder"
GREETING=hello on_hosts place 0 -H a:2,b:1 ./place
expect place 1 "^\[a:0\] a 0/3 0/2 0/2 10.213.9.2 10.213.9.2 hello $folder\$"
expect place 1 "^\[a:1\] a 1/3 1/2 0/2 10.213.9.2 10.213.9.2 hello $folder\$"
expect place 1 "^\[b:2\] b 2/3 0/1 1/2 10.213.9.3 10.213.9.2 hello $folder\$"
expect_error place '^\[b:2\] an error of rank 2$'
expect_hosts_empty_soon place

# Rank 0 reads tuttirun's input wherever it runs; more than a pipe holds.
seq 200000 >"$folder/numbers"
on_head timeout 60 "$tuttirun" --ssh "$ssh_words" --no-prefix -H b:2 sh -c '[ $RANK != 0 ] || cat' <"$folder/numbers" >"$folder/input.out" 2>"$folder/input.err" ||
  fail "input: exit $?"
cmp -s "$folder/numbers" "$folder/input.out" || fail "input: what rank 0 read is not what tuttirun was given"

# A file per rank, all of them here; the first host is this one.
on_hosts logs 0 -H head:1,a:1,b:1 --log-dir "$folder/logs" ./place
[ "$(sort "$folder"/logs/rank-*.log | cut -d' ' -f1-2 | grep -c /3)" = 3 ] || fail "logs: $(cat "$folder"/logs/*)"
grep -q '^head 0/3' "$folder/logs/rank-0.log" || fail "rank 0 did not run on this host: $(cat "$folder/logs/rank-0.log")"

# IPv6, by address; a hostfile; the name of a user; the first failure decides.
printf '# two\n%s@b slots=1\nfd13::2 slots=2\n' "$(id -un)" >"$folder/hostfile"
on_hosts v6 7 --hostfile "$folder/hostfile" sh -c 'echo "at $TUTTI_INTERFACE"; [ $RANK = 2 ] && sleep 2 && exit 7; sleep 100'
expect v6 1 '^\[b:0\] at 10.213.9.3$'
expect_last v6 'rank 2 of 3 \(sh, process [0-9]+ on fd13::2\) exited with status 7'
expect_hosts_empty_soon v6

# Only IPv6 leads from one to the other.
ip -n "$net-a" addr del 10.213.9.2/24 dev eth0
ip -n "$net-b" addr del 10.213.9.3/24 dev eth0
on_hosts only_v6 0 -H a-v6:1,b-v6:1 sh -c 'echo "at $TUTTI_INTERFACE $TUTTI_STORE"'
expect only_v6 1 '^\[a-v6:0\] at fd13::2 \[fd13::2\]:[0-9]+$'
expect only_v6 1 '^\[b-v6:1\] at fd13::3 \[fd13::2\]:[0-9]+$'
ip -n "$net-a" addr add 10.213.9.2/24 dev eth0
ip -n "$net-b" addr add 10.213.9.3/24 dev eth0

# Tutti's ranks meet, and make every call with each other.
on_hosts meet 0 -H a:2,b:2 "$2"
# The store is on the first host, whose ranks may be the first to end.
on_hosts late 0 -H a:1,b:1 bash -c 'if [ $RANK = 1 ]; then sleep 2; exec 3<>"/dev/tcp/${TUTTI_STORE%:*}/${TUTTI_STORE##*:}" && echo "it is there"; fi'
expect late 1 '^\[b:1\] it is there$'
for rank in 0 1 2 3; do expect meet 1 "^\[[ab]:$rank\] rank $rank of 4: .*tuttirun"; done
on_hosts calls 0 -H a:2,b:2 "$3" every
expect_hosts_empty_soon calls

# Signals reach the ranks on every host, and their exit codes come back.
cat >"$folder/waits" <<'END'
#!/bin/bash
trap 'echo got usr1' USR1
trap 'echo got term; exit 0' TERM
sleep 300 &
setsid sleep 300 &
echo ready
while :; do wait; done
END
chmod +x "$folder/waits"
on_hosts_in_background signals -H a:1,b:2 ./waits
wait_for_lines signals 3 'ready$'
for host in a b; do
  for id in $(processes_on "$host" | cut -d' ' -f1); do
    if grep -Eqs '[0-9a-f]{64}' "/proc/$id/cmdline"; then fail "a secret is in a command line on $host"; fi
  done
done
kill -USR1 "$launched"
wait_for_lines signals 3 'got usr1$'
kill -TERM "$launched"
wait_for_lines signals 3 'got term$'
end_of signals 0
expect_hosts_empty_soon signals
echo "start: all well"

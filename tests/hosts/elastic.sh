# elastic.sh: jobs on several hosts that are started again: as they were, without a host that is gone, with one that is back.
# SPDX-License-Identifier: Apache-2.0
#
#   elastic.sh TUTTIRUN
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
make_hosts a b c

# Waits in the starts that $WAITS names, and ends well in the others.
cat >"$folder/waits" <<'END'
#!/bin/bash
echo "start $TUTTI_RESTART rank $RANK/$WORLD_SIZE ${TUTTI_SECRET:0:8}"
case " $WAITS " in *" $TUTTI_RESTART "*) while [ ! -e "$GO" ]; do sleep 0.1; done ;; esac
END
chmod +x "$folder/waits"
export GO=$folder/go

export WAITS="0 1"
on_hosts_in_background again --restarts 2 -H a:1,b:1,c:1 "$folder/waits"
wait_for_lines again 3 'start 0 rank [012]/3'
kill -9 "$(pid_on b waits)"
wait_for_lines again 3 'start 1 rank [012]/3'
kill -9 "$(pid_on c tuttirun)"   # an agent
end_of again 0
expect again 3 'start 2 rank [012]/3'
[ "$(grep -o 'rank 0/3 .*' "$folder/again.out" | sort -u | wc -l)" = 3 ] || fail "again: a secret was used twice"
expect_error again 'restart 2 of 2$'
expect_hosts_empty_soon again

# Host c is gone: without --elastic the job cannot be started again; with it, it goes on with two, and takes c back.
gone() { kill -9 "$(outer_of c)"; wait "$(outer_of c)" 2>/dev/null || true; }
back() {
  rm -f "$folder/sshd-c.log"
  start_sshd c
  await_sshd c || fail "sshd did not start again on c"
}
export WAITS=0
on_hosts_in_background without --restarts 2 -H a:1,c:1 "$folder/waits"
wait_for_lines without 2 'start 0'
gone
end_of without 2
expect_last without 'host c: nobody listens on its ssh port'
back

export WAITS="0 1"
on_hosts_in_background fewer --elastic 2 -H a:1,b:1,c:1 "$folder/waits"
wait_for_lines fewer 3 'start 0 rank [012]/3'
gone
wait_for_lines fewer 2 'start 1 rank [01]/2'
expect_error fewer 'host c: nobody listens on its ssh port .*; starting without it$'
back
wait_for_lines fewer 3 'start 2 rank [012]/3'
end_of fewer 0
expect_error fewer 'host c can be used again after'
expect_hosts_empty_soon fewer

# Too few are left.
gone
on_hosts few 2 --elastic 3 -H a:1,b:1,c:1 "$folder/waits"
expect_last few 'host c: nobody listens'
for host in a b; do
  for _ in $(seq 100); do [ -z "$(processes_on $host)" ] && break; sleep 0.05; done
  [ -z "$(processes_on $host)" ] || fail "few: processes were left on $host"
done
echo "elastic: all well"

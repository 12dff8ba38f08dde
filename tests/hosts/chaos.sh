# chaos.sh: random faults at random moments under a job on three hosts, whose ranks shrink their group and go on.
# SPDX-License-Identifier: Apache-2.0
#
#   chaos.sh TUTTIRUN SURVIVOR_RANKS CLOCK_JUMP RUNS [SEED [FIRST_RUN]]     FAULTS="blink flips" in the environment: of these only
#
# Run N of a seed has the same fault, victim and delay each time; a failure prints the command that does it again. In every run
# all ranks that are left have the right sums and are in one group, or say by name whom they lost; a fault that is none
# (a process or a link that is back in time, a slow link, bits that flip on the wire where TCP notices, a full /dev/shm, a clock that jumps,
# a machine with too much to do) costs nobody; a loss is known in time;
# tuttirun ends in time, and no process, segment or listening port is left on any host.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
program=$2
clock_jump=$3
runs=$4
seed=${5:-1}
first=${6:-1}
need tc
need nsenter
python=$(realpath "$(command -v python3)")
make_hosts a b c
export STEP_MS=10
steps=150
read -ra faults <<<"${FAULTS:-rank stopped_rank agent guard tuttirun session host blink silent slow flips one_bit half_closed full_shm clock busy reset}"

# draw N: a number below N, in $value.
draw() { drawn=$((drawn + 1)); value=$(((16#$(printf '%s' "$seed $run $drawn" | md5sum | cut -c1-8)) % $1)); }

rank_on() { processes_on "$1" | awk '$2 ~ /^survivor_ranks/ { print $1 }' | sed -n "$2p"; }
agent_on() { pid_on "$1" tuttirun; }
session_on() { processes_on "$1" | awk '$2 == "sshd" { print $1 }' | tail -n 1; }
sleep_ms() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# Each does its harm to $victim and says how the job must end: "well" (nobody is lost), "without N" (so many ranks may be),
# "status S". A process that has ended by itself meanwhile is no victim: kill fails, and the job ends well.
do_rank() { kill -9 "$(rank_on "$victim" $((value % 2 + 1)))" 2>/dev/null && ends="without 1"; }
do_stopped_rank() {
  local id
  id=$(rank_on "$victim" 1)
  kill -STOP "$id" 2>/dev/null || return 0
  sleep_ms $((value % 1500))
  kill -CONT "$id" 2>/dev/null || true
}
do_agent() { kill -9 "$(agent_on "$victim")" 2>/dev/null && ends="without 2"; }
do_guard() { kill -9 "$(pid_on "$victim" tutti-guard)" 2>/dev/null && ends="without 2"; }
do_session() { kill -9 "$(session_on "$victim")" 2>/dev/null && ends="without 2"; }
do_tuttirun() { kill -9 "$launched" 2>/dev/null && ends="status 137"; }
do_blink() {
  ip -n "$net-$victim" link set eth0 down
  sleep_ms $((value % 1500))
  ip -n "$net-$victim" link set eth0 up
}
do_silent() { ip -n "$net-$victim" link set eth0 down; ends="without 2"; }
# The whole host at once, as by a switch: its sshd is the first process there.
do_host() { kill -9 "$(outer_of "$victim")" 2>/dev/null && ends="without 2"; }
do_slow() { ip netns exec "$net-$victim" tc qdisc replace dev eth0 root tbf rate 1mbit burst 32k latency 400ms; }
do_flips() { ip netns exec "$net-$victim" tc qdisc replace dev eth0 root netem corrupt 2% seed $((value % 1000)) 2>/dev/null ||
  ip netns exec "$net-$victim" tc qdisc replace dev eth0 root netem corrupt 2%; }
do_busy() {
  local id
  for _ in $(seq 20); do
    timeout 4 sh -c 'while :; do :; done' &
    busy+=($!)
  done
  for id in "${busy[@]}"; do wait "$id" 2>/dev/null || true; done
  busy=()
}
# What TCP's checksum does not notice: both ends of that connection may be given up, and with it a part of the others.
do_one_bit() {
  local number
  number=$((10#$(printf '%s' "$victim" | tr abc 234)))
  ip -n "$net-switch" link add between type veth peer name outside
  ip -n "$net-switch" link set outside master bridge up
  ip -n "$net-switch" link set between up
  ip -n "$net-switch" link set "port$number" nomaster
  ip netns exec "$net-switch" "$python" "$source_folder/tests/hosts/one_bit.py" "port$number" between "$port" "$value" 1.5 >"$folder/one_bit.log" 2>&1 || true
  ip -n "$net-switch" link del between
  ip -n "$net-switch" link set "port$number" master bridge
  [ ! -s "$folder/one_bit.log" ] || ends="without 4"
}
do_half_closed() {
  "$python" "$source_folder/tests/hosts/half_close.py" "$(rank_on "$victim" $((value % 2 + 1)))" $((value / 2)) 2>/dev/null && ends="without 4"
}
do_full_shm() { files_of "$victim" dd if=/dev/zero of=/dev/shm/full bs=64k 2>/dev/null || true; }
do_clock() { touch "$CLOCK_JUMP"; }
# All connections of a host's ranks are torn down under them: they are in the minority, and go no further.
do_reset() {
  ip netns exec "$net-$victim" ss -K -t state established dst 10.213.9.0/24 dport gt 1024 sport ne "$port" >/dev/null 2>&1 || return 0
  ends="without 4"
}

mend() {
  local host
  for host in a b c; do
    ip -n "$net-$host" link set eth0 up
    ip netns exec "$net-$host" tc qdisc del dev eth0 root 2>/dev/null || true
    [ "$fault $victim" = "host $host" ] || files_of "$host" rm -f /dev/shm/full
  done
  rm -f "$CLOCK_JUMP"
  [ "$fault" != host ] || { rm -f "$folder/sshd-$victim.log"; start_sshd "$victim"; await_sshd "$victim" || fail "sshd did not start again"; }
}

monotonic_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

# How long it was until the last of those that are left had heard of the loss: within a second; of a host that is silent within five. Where
# it is the ranks that find out, one after the other as they need what is broken, there is nothing to hear.
check_detection() {
  local heard limit=1000
  case $fault in rank | agent | guard | session | host) ;; silent) limit=5000 ;; *) return 0 ;; esac
  heard=$(sed -n 's/.*lost rank .* at \([0-9]*\) ms: .*/\1/p' "$folder/chaos.out" | sort -n | tail -n 1)
  [ -n "$heard" ] || return 0
  echo "$fault $((heard - hurt_ms))" >>"$folder/detections"
  [ $((heard - hurt_ms)) -le $limit ] || fail "the loss was known after $((heard - hurt_ms)) ms, not within $limit"
}

print_table() {
  local fault
  for fault in "${!seen[@]}"; do
    echo "$fault ${seen[$fault]} $({ grep "^$fault " "$folder/detections" 2>/dev/null || true; } | cut -d' ' -f2 | sort -n |
      awk '{ all[NR] = $1 } END { if (NR) print "known after " all[int((NR + 1) / 2)] " ms (median), " all[NR] " ms at most" }')"
  done | sort
}

listening() { for host in a b c; do ip netns exec "$net-$host" ss -Htln | awk '{ print $4 }' | grep -v ":$port\$" || true; done; }

# The sshd of a host whose network was gone keeps its session for long; it is ours to end.
clear_sessions() {
  local host id
  for host in a b c; do
    expect_only_sshd_soon "$host"
    for id in $(processes_on "$host" | awk '{ print $1 }'); do kill -9 "$id" 2>/dev/null || true; done
  done
}

check_end() {
  local status=0 ended groups lost allowed
  wait "$launched" 2>/dev/null || status=$?
  ! grep -Eq 'instead of|wrong data|terminate called' "$folder/chaos.out" "$folder/chaos.err" || fail "wrong data"
  case $ends in
    status*) [ "status $status" = "$ends" ] || fail "status $status, not $ends"; return 0 ;;
    well) allowed=0 ;;
    without*) allowed=${ends#without } ;;
  esac
  [ "$status" = 0 ] || [ "$allowed" -gt 0 ] || fail "status $status of a job that lost nobody"
  ended=$(grep -c 'ended in a group of' "$folder/chaos.out" || true)
  groups=$(grep -o 'ended in a group of [0-9]*' "$folder/chaos.out" | sort -u | wc -l)
  lost=$((6 - ended))
  [ "$lost" -le "$allowed" ] || fail "$lost ranks did not end, $allowed might be lost"
  [ "$groups" = 1 ] || fail "those that are left are in $groups groups"
  grep -q "ended in a group of $ended\$" "$folder/chaos.out" || fail "$ended ranks ended, in a group of another size"
  [ "$lost" = 0 ] || grep -q 'lost rank [0-9]* on .*: .' "$folder/chaos.out" || fail "a loss without a name"
}

declare -A seen
segments() { for host in a b c; do files_of "$host" ls /dev/shm; done; }
before=$(segments)
export CLOCK_JUMP=$folder/jumped
busy=()
for ((run = first; run < first + runs; ++run)); do
  drawn=0
  draw ${#faults[@]}; fault=${faults[$value]}
  draw 3; victim=$(printf 'a\nb\nc\n' | sed -n "$((value + 1))p")
  draw 1500; delay=$value
  draw 1000000
  again="$0 $1 $2 $3 1 $seed $run"
  echo "run $run: $fault on $victim after $delay ms" >"$folder/which.err"
  echo "again: bash $again" >>"$folder/which.err"
  ends=well
  on_hosts_in_background chaos -x LD_PRELOAD="$clock_jump" --keep-going --timeout 60s -H a:2,b:2,c:2 "$program" $steps
  wait_for_lines chaos 1 'under way$'
  sleep_ms "$delay"
  hurt_ms=$(monotonic_ms)
  "do_$fault" || true
  check_end
  check_detection
  mend
  clear_sessions
  expect_hosts_empty_soon "$fault on $victim"
  [ -z "$(listening)" ] || fail "ports were left: $(listening)"
  [ "$(segments)" = "$before" ] || fail "segments were left: $(segments)"
  seen[$fault]=$((${seen[$fault]:-0} + 1))
done
print_table
echo "chaos: $runs runs of seed $seed, all well"

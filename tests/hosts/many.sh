# many.sh: tuttirun on many hosts: they are started in a tree, deep ones too, and what dies deep down is named and takes nothing along.
# SPDX-License-Identifier: Apache-2.0
#
#   many.sh TUTTIRUN NUMBER_RANKS [HOSTS]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
number_ranks=$2
count=${3:-32}
names=()
for ((number = 1; number <= count; ++number)); do names+=("h$number"); done
make_hosts "${names[@]}"
with() { local IFS=,; echo "$*"; }   # h1:2,h2:2,…
all=$(with "${names[@]/%/:2}")
four=$(with "${names[@]:0:4}" | sed 's/,/:2,/g'):2

ssh_below() { processes_on "$1" | awk '$2 == "ssh"' | wc -l; }
ssh_of_head() { ip netns pids "$net-head" | xargs ps -o comm= -p 2>/dev/null | grep -c '^ssh$'; }

# How long a job takes that does nothing but meet, of several the shortest.
milliseconds_of() {
  local best=1000000 begin took round
  for round in 1 2 3; do
    begin=${EPOCHREALTIME/./}
    on_hosts meet 0 -H "$1" "$number_ranks" init
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    [ $took -lt $best ] && best=$took
    expect_hosts_empty_soon meet
  done
  echo "$best"
}
echo "4 hosts: $(milliseconds_of "$four") ms; $count hosts: $(milliseconds_of "$all") ms"

# The tree: no host has more than so many below it, and all are there.
cat >"$folder/waits" <<'END'
#!/bin/sh
echo ready
exec sleep 300
END
chmod +x "$folder/waits"
for fan in 2 4; do
  on_hosts_in_background tree --fan-out $fan -H "$all" "$folder/waits"
  wait_for_lines tree $((2 * count)) 'ready$'
  [ "$(ssh_of_head)" = $fan ] || fail "tree: tuttirun itself started $(ssh_of_head) hosts, not $fan"
  started_below=0
  for host in "${names[@]}"; do
    below=$(ssh_below "$host")
    [ "$below" -le $fan ] || fail "tree: $host started $below hosts"
    started_below=$((started_below + below))
  done
  [ $((started_below + fan)) = "$count" ] || fail "tree: $started_below hosts were started by others"
  # A rank on the last host: five levels down where two are below each.
  kill -9 "$(pid_on "${names[-1]}" sleep)"
  end_of tree 137
  expect_last tree "rank ($((2 * count - 2))|$((2 * count - 1))) of $((2 * count)) .* on ${names[-1]}\) was killed by signal 9"
  expect_hosts_empty_soon tree
done

# An agent that has others below it: they are lost with it, by name, and nothing is left.
on_hosts_in_background branch --fan-out 2 -H "$all" "$folder/waits"
wait_for_lines branch $((2 * count)) 'ready$'
kill -9 "$(pid_on h1 tuttirun)"
end_of branch 1
expect_error branch 'host h1 was lost after'
expect_hosts_empty_soon branch
echo "many: all well"

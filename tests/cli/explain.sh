# explain.sh: questions with an answer, pictures in files, and questions that make no sense.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

expect_status 0 explain all_reduce -n 8 --bytes 1M
expect_quiet
expect_out 'cheapest of 5 by the cost model'
expect_out '◀───▶'
expect_status 0 explain all_reduce -n 4096 --hosts 512 --bytes 1M
expect_out '4096 ranks are too many for a terminal'
expect_status 0 explain barrier -n 5
expect_status 0 explain broadcast -n 1
expect_out 'a group of one'
expect_status 0 explain scan -n 4 --bytes 16 --steps 2 --no-picture
expect_out 'rank 2 of 4'

expect_status 0 explain all_reduce -n 6 --hosts 2 --svg "$folder/picture.svg"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$folder/picture.svg" || fail 'not well-formed'

# The table of a job decides here, too.
echo '{"rows": [{"verb": "all_reduce", "algorithm": "double_tree"}]}' >"$folder/table.json"
TUTTI_TABLE=$folder/table.json expect_status 0 explain all_reduce -n 8
expect_out 'double_tree: a row of TUTTI_TABLE says so'
echo '{"rows": [{"verb": "al_reduce"}]}' >"$folder/table.json"
TUTTI_TABLE=$folder/table.json expect_refusal 'row 1' explain all_reduce -n 8

expect_status 0 explain all_reduce -n 4 -B mpi --no-picture
expect_out 'served by mpi'
TUTTI_BACKEND=native expect_status 0 explain all_reduce -n 4 --no-picture
expect_out 'served by native'
expect_refusal '--backend pvm: not a backend' explain all_reduce -B pvm

expect_refusal '--bytes 1Q: not a size' explain all_reduce --bytes 1Q
expect_refusal '"al_reduce" is not a verb' explain al_reduce
expect_refusal 'did you mean all_reduce?' explain al_reduce
expect_refusal 'send is a single message' explain send
expect_refusal 'at least one rank' explain all_reduce -n 0
expect_refusal 'at least one rank' explain all_reduce -n -3
expect_refusal '--ranks = many' explain all_reduce -n many
expect_refusal '--root 8: the ranks are 0 to 7' explain reduce --root 8
expect_refusal '--hosts 9: more hosts than ranks' explain all_reduce --hosts 9
expect_refusal 'that makes 7 ranks, not 8' explain all_reduce --hosts 3,4
expect_refusal '"star" is not an algorithm' explain all_reduce --algorithm star
expect_refusal 'does not serve all_reduce' explain all_reduce --algorithm bruck
expect_refusal '--steps 9: the ranks are 0 to 7' explain all_reduce --no-picture --steps 9
expect_refusal '65 ranks could not be told apart' explain all_reduce -n 65 --svg "$folder/large.svg"
expect_status 1 explain all_reduce --svg "$folder/no/such/folder.svg"
expect_err 'the file cannot be written'

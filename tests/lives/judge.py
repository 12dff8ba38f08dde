# judge.py: whether a life went as it should. Knows the life and what was seen of its ranks, nothing of the library.
# SPDX-License-Identifier: Apache-2.0
"""What was seen of a rank: `records` (one dict per step: step, result, named, text, seconds), `status` (its exit status, negative
for a signal, None if it had to be stopped), `stderr`.

1. No rank dies by a signal or in std::terminate, none has to be stopped, no process is left.
2. A step that concerns nobody but the rank it happens to (a fork, a receive that is withdrawn, a dropped work) ends well on all.
3. A collective that is left by an exception ends alike on all ranks of its group: well, or with a named error.
4. Where a rank leaves before the last call, the others get a named error. Where none does, all calls end well.
5. Memory that the caller got back is not touched; data is right wherever a call ends well; every step ends by its deadline."""
from draw import LEAVERS, expected_status

TOGETHER = ("interrupted_collective", "timed_out_collective", "interrupted_making")
STEP_SECONDS_MAX = 180
FATAL = ("terminate called", "Fatal Python error", "Segmentation fault", "AddressSanitizer", "double free", "corrupted")


def judge(life, ranks, left_behind=()):
    """A list of (rule, text); empty where all is well. Only the first step that went wrong counts: later ones may follow from it."""
    for index, step in enumerate(life["steps"]):
        violations = [*crashes(life, ranks, index), *judge_step(index, step, ranks)]
        if violations:
            return violations
    index = len(life["steps"])
    return [*crashes(life, ranks, index), *judge_endings(life, ranks), *fatal_texts(ranks),
            *(("something was left behind", text) for text in left_behind)]


def crashes(life, ranks, index):
    """Ranks that did not get past this step. A step is noted when it has ended; leavers note no ending."""
    for number, rank in enumerate(ranks):
        status, lines = rank["status"], rank["stderr"].strip().splitlines()
        if index < min(len(rank["records"]), len(life["steps"])) or (status is not None and status >= 0):
            continue
        if index == len(life["steps"]) and status == expected_status(life["endings"][number]):
            continue
        what = f"{life['steps'][index]['do']}" if index < len(life["steps"]) else f"ending by {life['endings'][number]}"
        how = "hung and had to be stopped" if status is None else f"died by signal {-status}"
        why = next((line for line in lines if any(text in line for text in FATAL)), lines[-1] if lines else "")
        yield f"{what}: a rank {how}", f"step {index}, rank {number}: {why[:300]}"


def fatal_texts(ranks):
    """What no status and no note told."""
    for number, rank in enumerate(ranks):
        for line in rank["stderr"].splitlines():
            if any(text in line for text in FATAL):
                yield "a process of a rank died in the runtime", f"rank {number}: {line[:300]}"


def judge_step(index, step, ranks):
    what = f"{step['do']}{', ' + step['state'] + ', child: ' + step['child'] if step['do'] == 'fork' else ''}"
    records = [next((r for r in rank["records"] if r["step"] == index), None) for rank in ranks]
    found = []
    for number, record in enumerate(records):
        who = f"step {index}, rank {number}"
        if record is None:
            found.append((f"{what}: no outcome", who))
            continue
        said = f"{who}: {record['text']}"
        if record["result"] == "wrong":
            found.append((f"{what}: {record['rule']}", said))
        elif record["result"] == "error" and not record["named"]:
            found.append((f"{what}: an error that is not Tutti's", said))
        elif record["result"] == "error" and step["do"] not in TOGETHER:
            found.append((f"{what}: {record['text'].split(':')[0]} where all should go well", said))
        elif record["seconds"] > STEP_SECONDS_MAX:
            found.append((f"{what}: past its deadline", f"{who}: {record['seconds']:.1f} s"))
    results = {record["result"] for record in records if record}
    if not found and len(results) > 1:
        texts = "; ".join(f"rank {number}: {record['result']} {record['text'][:150]}" for number, record in enumerate(records))
        found.append((f"{what}: ends well on some ranks and not on others", f"step {index}: {texts}"))
    # Where one rank stopped for what went wrong, errors of the others follow from it.
    stopped = [f"step {index}, rank {n}:" for n, record in enumerate(records) if record and record["result"] == "wrong"]
    return sorted(found, key=lambda violation: not violation[1].startswith(tuple(stopped)))


def judge_endings(life, ranks):
    index, endings = len(life["steps"]), life["endings"]
    somebody_leaves = any(ending in LEAVERS for ending in endings)
    found = []
    for number, (rank, ending) in enumerate(zip(ranks, endings)):
        who = f"rank {number}, which ends by {ending}, of {endings}"
        record = next((r for r in rank["records"] if r["step"] == index), None)
        if ending not in LEAVERS:
            if record is None:
                found.append(("ending: no outcome", who))
            elif record["result"] == "wrong" or (record["result"] == "error" and not record["named"]):
                found.append((f"ending: {record.get('rule', 'an error that is not from Tutti')}", f"{who}: {record['text']}"))
            elif somebody_leaves and record["result"] == "fine":
                found.append(("ending: the last call ended well although a rank was missing", who))
            elif not somebody_leaves and record["result"] == "error":
                found.append((f"ending: {record['text'].split(':')[0]} although nobody left early", f"{who}: {record['text']}"))
            elif record["seconds"] > STEP_SECONDS_MAX:
                found.append(("ending: past its deadline", f"{who}: {record['seconds']:.1f} s"))
        if rank["status"] != expected_status(ending):
            last = (rank["stderr"].strip().splitlines() or [""])[-1]
            found.append((f"ending: status {rank['status']} of a rank that ends by {ending}", f"{who}: {last[:300]}"))
    return found

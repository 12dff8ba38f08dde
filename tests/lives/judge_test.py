# judge_test.py: the draw reaches every kind of step, and the judge sees what is wrong.
# SPDX-License-Identifier: Apache-2.0
import unittest

from draw import CHILDREN, DROPPED, FORK_STATES, KINDS, LEAVERS, LEFT_VERBS, MADE, STAYERS, VERBS, draw_life
from judge import judge

FINE = {"result": "fine", "named": True, "text": "", "seconds": 0.1}
BROKEN = {"result": "error", "named": True, "text": "Aborted: rank 0 was interrupted", "seconds": 0.1}
FOREIGN = {"result": "error", "named": False, "text": "ValueError: what", "seconds": 0.1}
WRONG = {"result": "wrong", "named": True, "rule": "wrong data", "text": "51 instead of 2", "seconds": 0.1}


def seen(*outcomes, status=0, stderr=""):
    return {"status": status, "stderr": stderr, "records": [{"step": i, **outcome} for i, outcome in enumerate(outcomes)]}


def rules(do, first, second, endings=("return", "return"), **more):
    life = {"size": 2, "steps": [{"do": do, "rank": 0, "peer": 1, "state": "idle", "child": "exit"}], "endings": list(endings)}
    return [rule for rule, _ in judge(life, [first, second], **more)]


class Draw(unittest.TestCase):
    def test_a_seed_gives_the_same_life(self):
        self.assertEqual(draw_life(7), draw_life(7))

    def test_everything_is_drawn(self):
        lives = [draw_life(seed) for seed in range(1000)]
        steps = [step for life in lives for step in life["steps"]]
        self.assertEqual({step["verb"] for step in steps if "verb" in step}, {*VERBS, *LEFT_VERBS, "tree"})
        self.assertEqual({step["what"] for step in steps if step["do"] == "dropped"}, set(DROPPED))
        self.assertEqual({step["do"] for step in steps}, set(KINDS))
        self.assertEqual({step["what"] for step in steps if step["do"] == "interrupted_making"}, set(MADE))
        self.assertEqual({step["state"] for step in steps if "state" in step}, set(FORK_STATES))
        self.assertEqual({step["child"] for step in steps if step["do"] == "fork"}, set(CHILDREN))
        self.assertEqual({ending for life in lives for ending in life["endings"]}, set(STAYERS + LEAVERS))
        self.assertEqual({life["size"] for life in lives}, set(range(2, 7)))


class Judge(unittest.TestCase):
    def test_right_lives_pass(self):
        self.assertEqual(rules("fork", seen(FINE, FINE), seen(FINE, FINE)), [])
        self.assertEqual(rules("interrupted_collective", seen(BROKEN, FINE), seen(BROKEN, FINE)), [])
        self.assertEqual(rules("message", seen(FINE, BROKEN), seen(FINE, status=3), ("return", "exit")), [])

    def test_errors_where_all_should_go_well(self):
        self.assertEqual(rules("fork", seen(BROKEN), seen(FINE, FINE)),
                         ["fork, idle, child: exit: Aborted where all should go well"])
        self.assertEqual(rules("message", seen(FINE, BROKEN), seen(FINE, FINE)), ["ending: Aborted although nobody left early"])

    def test_half_a_group_that_breaks(self):
        self.assertEqual(rules("interrupted_collective", seen(BROKEN, FINE), seen(FINE, FINE)),
                         ["interrupted_collective: ends well on some ranks and not on others"])

    def test_wrong_data_and_foreign_errors(self):
        self.assertEqual(rules("interrupted_collective", seen(WRONG), seen(FINE, FINE)), ["interrupted_collective: wrong data"])
        self.assertEqual(rules("timed_out_collective", seen(FOREIGN), seen(BROKEN, FINE)),
                         ["timed_out_collective: an error that is not Tutti's"])

    def test_deadlines(self):
        self.assertEqual(rules("message", seen(FINE | {"seconds": 999}, FINE), seen(FINE, FINE)), ["message: past its deadline"])

    def test_crashes_hangs_and_statuses(self):
        self.assertEqual(rules("message", seen(status=-11), seen(FINE, FINE))[0], "message: a rank died by signal 11")
        self.assertEqual(rules("message", seen(FINE, FINE, status=-6), seen(FINE, FINE), ("daemon", "return"))[0],
                         "ending by daemon: a rank died by signal 6")
        self.assertEqual(rules("message", seen(FINE, status=None), seen(FINE, FINE))[0],
                         "ending by return: a rank hung and had to be stopped")
        self.assertEqual(rules("message", seen(FINE, FINE, status=1), seen(FINE, FINE)),
                         ["ending: status 1 of a rank that ends by return"])
        self.assertEqual(rules("fork", seen(FINE, FINE, stderr="terminate called"), seen(FINE, FINE)),
                         ["a process of a rank died in the runtime"])

    def test_a_last_call_that_cannot_have_ended_well(self):
        self.assertEqual(rules("message", seen(FINE, FINE), seen(FINE, status=3), ("return", "os_exit")),
                         ["ending: the last call ended well although a rank was missing"])

    def test_what_is_left_behind(self):
        self.assertEqual(rules("message", seen(FINE, FINE), seen(FINE, FINE), left_behind=["process 7"]),
                         ["something was left behind"])


if __name__ == "__main__":
    unittest.main()

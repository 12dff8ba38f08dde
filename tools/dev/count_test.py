# count_test.py: count.py counts what ctest and GoogleTest report, and misses no failure.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import count

CTEST = """<testsuite>
  <testcase name="wire: Frame.Works" status="run"><system-out>fine</system-out></testcase>
  <testcase name="wire: Frame.Breaks" status="fail"><failure message=""/></testcase>
  <testcase name="wire: Frame.Skips" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>frame_test.cpp:9: Skipped
no IPv6 here
</system-out></testcase>
  <testcase name="gone_NOT_BUILT" status="fail"><failure message=""/></testcase>
  <testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="processes" status="{whole}"/>
</testsuite>"""

GTEST = """<testsuites><testsuite name="Verbs">
  <testcase name="One" classname="Verbs" status="run" result="completed"/>
  <testcase name="Two" classname="Verbs" status="run" result="{two}">{failure}</testcase>
  <testcase name="Three" classname="Verbs" status="run" result="skipped"><skipped message="x.cpp:1&#10;no MPI"/></testcase>
</testsuite></testsuites>"""


class Counts(unittest.TestCase):
    def cases(self, whole="run", gtest=None):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "ctest.xml").write_text(CTEST.format(whole=whole))
            if gtest:
                (folder / "processes.xml").write_text(gtest)
            return list(count.all_cases(folder / "ctest.xml", folder))

    def outcomes(self, **arguments):
        cases = self.cases(**arguments)
        return tuple(sum(case.outcome == outcome for case in cases) for outcome in ("passed", "failed", "skipped"))

    def test_each_test_of_ctest_is_a_case(self):
        self.assertEqual(self.outcomes(), (2, 3, 1))

    def test_the_report_of_a_whole_program_replaces_it(self):
        self.assertEqual(self.outcomes(gtest=GTEST.format(two="completed", failure="")), (3, 3, 2))
        self.assertEqual(self.outcomes(whole="fail", gtest=GTEST.format(two="completed", failure="<failure/>")), (2, 4, 2))

    def test_a_whole_program_that_dies_after_its_report_is_a_failure(self):
        self.assertEqual(self.outcomes(whole="fail", gtest=GTEST.format(two="completed", failure="")), (3, 4, 2))

    def test_reasons_are_kept(self):
        notes = list(count.notes(self.cases(gtest=GTEST.format(two="completed", failure=""))))
        self.assertIn("failed: wire: Frame.Breaks", notes)
        self.assertIn("skipped 1: no IPv6 here", notes)
        self.assertIn("skipped 1: no MPI", notes)

    def test_no_report_is_no_case(self):
        self.assertEqual(list(count.all_cases(pathlib.Path("/nonexistent.xml"), pathlib.Path("/nonexistent"))), [])


if __name__ == "__main__":
    unittest.main()

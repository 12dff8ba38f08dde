# count_test.py: count.py counts what ctest, GoogleTest and pytest report, and misses no failure.
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

CTEST_LOG = """      Start  1: wire: Frame.Works
 1/10 Test  #1: wire: Frame.Works ................   Passed    0.01 sec
      Start  2: wire: Frame.Wobbles
 2/10 Test  #2: wire: Frame.Wobbles ..............***Failed    0.01 sec
frame_test.cpp:9: Failure
      Start  3: wire: Frame.Skips
 3/10 Test  #3: wire: Frame.Skips ................***Skipped   0.01 sec
      Start 10: processes
 4/10 Test #10: processes ........................***Timeout 120.01 sec
      Start  2: wire: Frame.Wobbles
      Test  #2: wire: Frame.Wobbles ..............   Passed    0.01 sec
      Start 10: processes
      Test #10: processes ........................   Passed   20.01 sec
      Start  4: wire: Frame.Breaks
 5/10 Test  #4: wire: Frame.Breaks ...............Subprocess aborted***Exception:   0.01 sec
      Start  4: wire: Frame.Breaks
      Test  #4: wire: Frame.Breaks ...............***Failed    0.01 sec
      Start  5: wire: Frame.Dies
 6/10 Test  #5: wire: Frame.Dies .................Subprocess aborted***Exception:   0.01 sec
      Test  #5: wire: Frame.Dies .................   Passed    0.01 sec
"""

GTEST = """<testsuites><testsuite name="Verbs">
  <testcase name="One" classname="Verbs" status="run" result="completed"/>
  <testcase name="Two" classname="Verbs" status="run" result="{two}">{failure}</testcase>
  <testcase name="Three" classname="Verbs" status="run" result="skipped"><skipped message="x.cpp:1&#10;no MPI"/></testcase>
</testsuite></testsuites>"""

PYTEST = """<testsuites name="pytest tests"><testsuite name="pytest">
  <testcase classname="tests.python.test_verbs" name="test_works[2]"/>
  <testcase classname="tests.python.test_verbs" name="test_breaks"><failure message="assert 1 == 2">text</failure></testcase>
  <testcase classname="tests.python.test_verbs" name="test_elsewhere"><error message="failed on teardown"/></testcase>
  <testcase classname="tests.python.test_verbs" name="test_skips"><skipped type="pytest.skip" message="no GPU">x:3</skipped>
  </testcase>
  <testcase classname="" name="tests.python.test_jax"><skipped type="pytest.skip" message="collection skipped">(
    '/test_jax.py', 3, "Skipped: could not import 'jax': No module named 'jax'")</skipped></testcase>
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

    def test_what_pytest_reports_is_counted(self):
        with tempfile.TemporaryDirectory() as name:
            report = pathlib.Path(name) / "pytest.xml"
            report.write_text(PYTEST)
            cases = list(count.all_cases(report, None))
        self.assertEqual([case.outcome for case in cases], ["passed", "failed", "failed", "skipped", "skipped"])
        notes = list(count.notes(cases))
        self.assertIn("failed: tests.python.test_verbs.test_breaks", notes)
        self.assertIn("skipped 1: no GPU", notes)
        self.assertIn("skipped 1: could not import 'jax': No module named 'jax'", notes)

    def test_what_passed_only_when_run_again_is_counted(self):
        self.assertEqual(count.repeated(CTEST_LOG), ["wire: Frame.Wobbles", "processes", "wire: Frame.Dies"])

    def test_no_report_is_no_case(self):
        self.assertEqual(list(count.all_cases(pathlib.Path("/nonexistent.xml"), pathlib.Path("/nonexistent"))), [])


if __name__ == "__main__":
    unittest.main()

# join_tests_test.py: join_tests.py keeps each file's names to itself and its lines where they were, and misses no namespace.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import unittest

import join_tests

FILE = """#include <x>
namespace tutti {
namespace {

int helper() { return 1; }

}  // namespace
}  // namespace tutti
"""


class Joined(unittest.TestCase):
    def setUp(self):
        self.text = join_tests.joined(pathlib.Path("src/wire/frame_test.cpp"), FILE)

    def test_names_are_in_a_namespace_of_the_file_inside_the_anonymous_one(self):
        self.assertIn("\nnamespace { namespace frame_test_file {\n\nint helper()", self.text)
        self.assertIn("\n}}  // namespace\n}  // namespace tutti\n", self.text)

    def test_lines_are_those_of_the_file(self):
        first, *lines = self.text.splitlines()
        self.assertEqual(first, '#line 1 "src/wire/frame_test.cpp"')
        self.assertEqual(lines.index("int helper() { return 1; }"), FILE.splitlines().index("int helper() { return 1; }"))


class Refused(unittest.TestCase):
    def test_are_files_without_exactly_one_anonymous_namespace(self):
        for text in ("int helper();\n", FILE + FILE, FILE.replace("}  // namespace\n", "}\n")):
            with self.assertRaises(SystemExit) as caught:
                join_tests.joined(pathlib.Path("frame_test.cpp"), text)
            self.assertIn("frame_test.cpp: one anonymous namespace is expected", str(caught.exception))


if __name__ == "__main__":
    unittest.main()

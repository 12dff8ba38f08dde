# tidy_test.py: each rule of tidy.py is broken once, and seen to complain.
# SPDX-License-Identifier: Apache-2.0
import unittest

import tidy
import tidy_sizes

LAYERS = ["base", "wire", "plan"]


def opening(path, comment="//"):
    return f"{comment} {path.split('/')[-1]}: an example.\n{comment} {tidy.SPDX}\n"


def complaints(texts, built=None):
    return list(tidy.complaints_about(tidy.Tree(LAYERS, texts), built))


def complaints_about_one(path, body, built=None):
    used = {"bench/user.cpp": opening("user.cpp") + f'#include "{path}"\n'} if path.endswith(".hpp") else {}
    return complaints({path: opening(path) + body, **used}, built)


class Pipes(unittest.TestCase):
    def test_into_a_reader_that_stops_early_are_refused(self):
        for line in ("names | grep -qx one || fail", "tail -n 1 f |\tgrep -Eq -- x", "a |& grep -i --quiet x"):
            found = complaints({"tools/dev/a.sh": opening("a.sh", "#") + line + "\n"})
            self.assertEqual(len(found), 1, line)
            self.assertIn("tools/dev/a.sh:3: a pipe into grep -q", found[0])

    def test_into_others_are_fine(self):
        body = "grep -q x <<<$names || grep -q y file\nnames | grep x >/dev/null\n"
        self.assertEqual(complaints({"dev": "#!/usr/bin/env bash\n" + opening("dev", "#") + body}), [])


class Includes(unittest.TestCase):
    def test_up_the_list_and_beside_is_fine(self):
        body = '#include "base/log.hpp"\n#include "wire/frame.hpp"\n#include <tutti/view.hpp>\n#include <vector>\n'
        self.assertEqual(complaints_about_one("src/wire/socket.cpp", body), [])

    def test_down_the_list_is_refused(self):
        found = complaints_about_one("src/wire/socket.cpp", '#include "base/log.hpp"\n#include "plan/ring.hpp"\n')
        self.assertEqual(len(found), 1)
        self.assertIn("src/wire/socket.cpp:4: includes plan/ring.hpp, but plan is below wire", found[0])

    def test_checks_are_for_tests(self):
        def found(path):
            body = '#include "verify/prove.hpp"\n'
            return list(tidy.check_includes(tidy.Tree([*LAYERS, "verify"], {path: body}, {"verify": "checks"})))

        self.assertEqual(found("src/plan/ring_test.cpp"), [])
        self.assertEqual(len(found("src/plan/ring.cpp")), 1)

    def test_a_public_header_sees_no_layer(self):
        self.assertIn("only <tutti/…>", complaints_about_one("include/tutti/view.hpp", '#include "base/log.hpp"\n')[0])

    def test_an_example_sees_no_layer(self):
        self.assertIn("only <tutti/…>", complaints_about_one("examples/01.cpp", '#include "base/log.hpp"\n')[0])

    def test_no_way_around_by_dots(self):
        self.assertIn("without ..", complaints_about_one("src/base/log.cpp", '#include "../plan/ring.hpp"\n')[0])

    def test_tests_across_layers_see_everything(self):
        self.assertEqual(complaints_about_one("tests/tour.cpp", '#include "plan/ring.hpp"\n'), [])


class Classes(unittest.TestCase):
    def test_with_too_many_methods_are_named(self):
        methods = "".join(f"  void method_{i}(int value);\n" for i in range(31))
        found = complaints_about_one("src/base/big.hpp", f"namespace tutti {{\nclass Big {{\n public:\n{methods}}};\n}}\n")
        self.assertEqual(found, ["tutti::Big: 31 methods, more than 30: split it by what it is responsible for"])

    def test_count_neither_overloads_nor_constructors_nor_what_an_interface_demands(self):
        methods = "".join(f"  [[nodiscard]] int get_{i}() const {{ return i_; }}\n" for i in range(30))
        methods += "  Big();\n  ~Big() override;\n  void get_0(int i);\n  void poll(int (*f)(int)) override;\n"
        body = f"namespace tutti {{\nclass Big final : public Base {{\n public:\n{methods}  int i_ = 0;\n}};\n}}\n"
        self.assertEqual(complaints_about_one("src/base/big.hpp", body), [])

    def test_with_methods_in_two_files_are_named(self):
        files = {"src/base/a.hpp": "namespace tutti {\nclass A {\n  void one();\n  void two();\n};\n}\n",
                 "src/base/a.cpp": '#include "base/a.hpp"\nnamespace tutti {\nvoid A::one() {}\n}\n',
                 "src/base/b.cpp": '#include "base/a.hpp"\nnamespace tutti {\nvoid A::two() { B::other(); }\n}\n'}
        found = complaints({path: opening(path) + text for path, text in files.items()})
        self.assertEqual(found, ["tutti::A: its methods are defined in src/base/a.cpp, src/base/b.cpp: one .cpp should hold a class"])

    def test_of_the_same_name_in_two_namespaces_are_two(self):
        files = {}
        for space in ("one", "two"):
            files[f"src/base/{space}.cpp"] = f"namespace {space} {{\nclass A {{ void f(); }};\nvoid A::f() {{}}\n}}\n"
        self.assertEqual(complaints({path: opening(path) + text for path, text in files.items()}), [])


class Built(unittest.TestCase):
    def test_a_source_that_no_target_builds_is_named(self):
        self.assertEqual(complaints_about_one("src/base/log.cpp", "", built={"src/base/clock.cpp"}),
                         ["src/base/log.cpp: no target builds it"])

    def test_a_source_that_is_built_is_fine(self):
        self.assertEqual(complaints_about_one("src/base/log.cpp", "", built={"src/base/log.cpp"}), [])

    def test_a_header_that_nothing_includes_is_named(self):
        self.assertEqual(complaints({"src/base/log.hpp": opening("log.hpp")}), ["src/base/log.hpp: nothing includes it"])

    def test_the_separate_project_is_left_alone(self):
        self.assertEqual(complaints_about_one("tests/install/main.cpp", "", built=set()), [])


class Markers(unittest.TestCase):
    def test_work_left_undone_is_named(self):
        for word in ("TO" + "DO", "FIX" + "ME"):
            self.assertIn(f"src/base/log.cpp:3: {word}", complaints_about_one("src/base/log.cpp", f"// {word}: later\n")[0])

    def test_longer_words_are_not_markers(self):
        self.assertEqual(complaints_about_one("src/base/log.cpp", "// MASTO" + "DON\n"), [])


class Openings(unittest.TestCase):
    def test_the_purpose_is_missing(self):
        self.assertIn("the first line", complaints({"src/base/log.cpp": f"// {tidy.SPDX}\n"})[0])
        self.assertIn("the first line", complaints({"src/base/log.cpp": f"// log.cpp: \n// {tidy.SPDX}\n"})[0])

    def test_the_name_is_another_files(self):
        self.assertIn("the first line", complaints({"src/base/log.cpp": opening("clock.cpp")})[0])

    def test_the_licence_is_missing(self):
        self.assertIn("should follow the purpose", complaints({"src/base/log.cpp": "// log.cpp: writes lines.\n"})[0])

    def test_a_script_has_its_interpreter_first(self):
        self.assertEqual(complaints({"dev": "#!/usr/bin/env bash\n" + opening("dev", "#")}), [])


class Lengths(unittest.TestCase):
    def test_400_lines_are_fine_and_401_are_not(self):
        lines = opening("log.cpp") + "//\n" * 398
        self.assertEqual(complaints({"src/base/log.cpp": lines}), [])
        self.assertIn("401 lines", complaints({"src/base/log.cpp": lines + "//\n"})[0])


class Sizes(unittest.TestCase):
    TEXT = """namespace tutti {
class Clock {
  int now() const { return 1; }
};
const char* brace = "{";  // }
int long_one(int a,
             int b) {
  if (a) {
    return '{';
  }
  return b;
}
}
"""

    def test_functions_are_found_with_their_length(self):
        self.assertEqual([(f.name, f.lines) for f in tidy_sizes.functions_in(self.TEXT)], [("now", 1), ("long_one", 7)])

    def test_the_table_has_a_row_per_layer(self):
        tree = tidy.Tree(LAYERS, {"src/base/clock.cpp": self.TEXT, "src/base/clock_test.cpp": "x\n"})
        (row,) = tidy_sizes.rows(tree)
        self.assertEqual((row.layer, row.files, row.lines, row.test_lines), ("src/base", 2, 13, 1))
        self.assertEqual((row.longest_file, row.longest_function), ((13, "clock.cpp"), (7, "long_one")))
        self.assertIn("src/base", tidy_sizes.table(tree))

    def test_the_sums_tell_what_a_rank_links_from_the_rest(self):
        texts = {"src/base/clock.cpp": self.TEXT, "src/cli/main.cpp": self.TEXT, "python/tutti/a.py": "def f():\n    pass\n",
                 "python/tutti/compat/b.py": "x = 1\n"}
        tree = tidy.Tree(["base", "cli"], texts, {"cli": "program"})
        self.assertEqual(dict(tidy_sizes.sums(tree, list(tidy_sizes.rows(tree)))),
                         {"a rank links": 13, "checks, tools": 13, "Python": 3})


if __name__ == "__main__":
    unittest.main()

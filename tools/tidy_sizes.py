# tidy_sizes.py: the table of sizes: files, lines, longest file and longest function of each layer, and sums.
# SPDX-License-Identifier: Apache-2.0
import ast
import collections
import pathlib
import re

Row = collections.namedtuple("Row", "layer files lines test_lines longest_file longest_function")
Function = collections.namedtuple("Function", "lines name")
PYTHON = ("python/tutti", "python/tutti/compat")

# Comments and literals, which may hold braces. Raw strings first: they may hold quotes.
NOISE = re.compile(r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                   re.DOTALL)
NAME = re.compile(r"([~\w:<>]+|operator\s*\S{1,3})\s*\($")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def blank(found):
    return re.sub(r"[^\n]", " ", found.group(0))


def name_in(head):
    """The name before the first parenthesis that opens at the outermost level of what stands before a brace."""
    for position, character in enumerate(head):
        if character == "(":
            found = NAME.search(head[: position + 1])
            return found.group(1) if found else None
    return None


def functions_in(text):
    """Roughly: a brace that opens outside any function, after something with parentheses, starts one."""
    text = NOISE.sub(blank, text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)
    functions, depth, start, name, head_begin = [], 0, None, None, 0
    for position, character in enumerate(text):
        if character == "{":
            head = text[head_begin:position]
            declares = name_in(head) is None or (SCOPE.search(head) and ")" not in head)
            if start is None and not declares:
                start, name = (depth, head_begin + len(head) - len(head.lstrip())), name_in(head)
            depth += 1
        elif character == "}":
            depth -= 1
            if start is not None and depth == start[0]:
                functions.append(Function(text.count("\n", start[1], position) + 1, name))
                start = None
        if character in "{};" and start is None:
            head_begin = position + 1
    return functions


def functions_in_python(text):
    return [Function(node.end_lineno - node.lineno + 1, node.name) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def is_test(path):
    return path.endswith(("_test.cpp", "_test.py")) or path.startswith("tests/")


def row(layer, files):
    code = {path: text for path, text in files.items() if not is_test(path)} or files
    longest_file = max(((text.count("\n"), pathlib.PurePath(path).name) for path, text in code.items()), default=(0, ""))
    functions = [function for path, text in code.items()
                 for function in (functions_in_python(text) if path.endswith(".py") else functions_in(text))]
    test_lines = sum(text.count("\n") for path, text in files.items() if is_test(path))
    return Row(layer, len(files), sum(text.count("\n") for text in files.values()) - test_lines, test_lines,
               longest_file, max(functions, default=Function(0, "")))


def rows(tree):
    folders = ["include/tutti", *(f"src/{layer}" for layer in tree.layers), "python/bindings", *PYTHON, "tests", "bench", "examples"]
    for folder in folders:
        in_python = folder in PYTHON  # elsewhere C++ is counted
        files = {path: text for path, text in tree.texts.items()
                 if path.startswith(folder + "/") and (path.endswith(".py") if in_python else path in tree.code())}
        files = {path: text for path, text in files.items() if folder != PYTHON[0] or not path.startswith(PYTHON[1] + "/")}
        if files:
            yield row(folder, files)


def sums(tree, all_rows):
    """What a rank links; checks and tools; Python: each without tests."""
    lines = {r.layer: r.lines for r in all_rows}
    apart = {f"src/{layer}" for layer in tree.kinds}
    yield "a rank links", sum(n for name, n in lines.items() if name.startswith(("include/", "src/")) and name not in apart)
    yield "checks, tools", sum(n for name, n in lines.items() if name in apart)
    yield "Python", sum(lines.get(name, 0) for name in PYTHON)


def table(tree):
    lines = [f"{'layer':<16}{'files':>6}{'lines':>8}{'tests':>8}   {'longest file':<30}longest function (roughly)"]
    all_rows = list(rows(tree))
    for r in all_rows:
        lines.append(f"{r.layer:<16}{r.files:>6}{r.lines:>8}{r.test_lines:>8}   "
                     f"{r.longest_file[0]:>4} {r.longest_file[1]:<25}{r.longest_function.lines:>4} "
                     f"{r.longest_function.name}")
    lines.append(f"{'all':<16}{sum(r.files for r in all_rows):>6}{sum(r.lines for r in all_rows):>8}"
                 f"{sum(r.test_lines for r in all_rows):>8}")
    lines += [f"{name:<16}{'':>6}{count:>8}" for name, count in sums(tree, all_rows)]
    return "\n".join(lines)

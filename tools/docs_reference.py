#!/usr/bin/env python3
# docs_reference.py: writes the reference: Python from docstrings, C++ from the public headers, commands from what they say of themselves.
# SPDX-License-Identifier: Apache-2.0
"""tools/docs_reference.py FOLDER --build build/release      writes python.md, cpp.md and commands.md there

Nothing is imported: Python's files and stubs are read as text, so that no framework has to be there."""
import argparse
import ast
import pathlib
import re
import subprocess
import textwrap

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "python/tutti"
MODULES = ("", "model_parallel", "checkpoint", "elastic", "ray", "dask", "zero", "torch", "jax.training", "tensorflow.training")
HEADERS = (
    "init", "group", "verbs", "options", "messages", "work", "prepared", "result", "group_results", "view", "buffer", "dtype", "op",
    "own_op", "error", "mesh", "store", "connector", "shard", "buckets", "optimizer", "model_parallel", "backend", "link",
)  # fmt: skip
COMMANDS = ("run", "doctor", "explain", "where", "top", "trace", "report", "sim", "bench", "tune", "completion")


# Names that are made, or passed on when they are asked for: the file that defines them.
ELSEWHERE = {
    "": {"prepare": "_calls/prepare.py", "breakpoint": "_process/debug.py"},
    "model_parallel": dict.fromkeys(("copy", "reduce", "scatter", "gather"), "model_parallel.py")
    | dict.fromkeys(("linear", "embedding", "cross_entropy"), "_training/parallel_layers.py"),
    "tensorflow.training": {"zero": "tensorflow/_zero.py"},
}


def parsed(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text())


def file_of(module: str) -> pathlib.Path:
    path = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def public_names(tree: ast.Module) -> list[str]:
    """What __all__ says, or what is defined there and has no underscore."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"]


def imported_from(tree: ast.Module, name: str, path: pathlib.Path) -> list[pathlib.Path]:
    """The files that a name is imported from, stubs included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            target = folder.joinpath(*(node.module or "").split("."))
            return [each for each in (target / "__init__.py", target.with_suffix(".py"), target.with_suffix(".pyi")) if each.exists()]
    return []


def definition(path: pathlib.Path, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """Where a name is defined, however often it is passed on."""
    tree = parsed(path)
    nodes = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name]
    if nodes:
        return nodes[-1]  # overloads come before
    for node in tree.body:  # copy = _Function(_copy, …)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name and isinstance(node.value, ast.Call):
            return definition(path, getattr(node.value.args[0], "id", "")) if node.value.args else None
    found = (definition(source, name) for source in imported_from(tree, name, path) if source != path)
    return next((node for node in found if node is not None), None)


def signature(node: ast.FunctionDef, name: str) -> str:
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({arguments}){returns}"


def described(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The docstring: arguments as a list; what follows a `::` is a program."""
    out: list[str] = []
    is_code = False
    for line in (ast.get_docstring(node) or "").replace("``", "`").splitlines():
        if is_code and line and not line.startswith(" "):
            while not out[-1]:
                out.pop()
            out += ["```", ""]
            is_code = False
        if is_code:
            out += [line[4:]] if line or out[-1] != "```python" else []
        elif line.endswith("::"):
            out += [re.sub(r"\.? ?::$", ":", line), "", "```python"]
            is_code = True
        elif argument := re.match(r"([a-z_]+(?:, [a-z_]+)*): (.*)", line):
            out += [*([""] if out and out[-1] and not out[-1].startswith(("- ", "    ")) else []), f"- **{argument[1]}**: {argument[2]}"]
        else:
            out.append(line)
    while is_code and not out[-1]:
        out.pop()
    return "\n".join([*out, *(["```"] if is_code else [])])


def of_function(node: ast.FunctionDef, name: str) -> str:
    return f"```python\n{signature(node, name)}\n```\n\n{described(node)}\n"


def of_class(node: ast.ClassDef, name: str) -> str:
    parts = [described(node)]
    for each in node.body:
        if not isinstance(each, ast.FunctionDef) or (each.name[0] == "_" and each.name != "__init__"):
            continue
        is_property = any(getattr(decorator, "id", "") == "property" for decorator in each.decorator_list)
        if each.name == "__init__":
            parts.insert(0, f"```python\n{signature(each, name)}\n```")
        elif ast.get_docstring(each) or is_property:
            what = each.name if is_property else signature(each, each.name)
            parts.append(f"**`{what}`** {described(each)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def python_page() -> str:
    parts = ["# Reference: Python", "Written from the docstrings. [Python](../python.md) explains them, with programs."]
    for module in MODULES:
        path = file_of(module)
        full = f"tutti.{module}" if module else "tutti"
        parts.append(f"## {full}")
        elsewhere = ELSEWHERE.get(module, {})
        for name in sorted({*public_names(parsed(path)), *elsewhere}, key=str.lower):
            node = definition(PACKAGE / elsewhere[name] if name in elsewhere else path, name)
            if node is None or not (isinstance(node, ast.ClassDef) or ast.get_docstring(node)):
                continue
            text = of_class(node, name) if isinstance(node, ast.ClassDef) else of_function(node, name)
            parts.append(f"### {full}.{name}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def declarations(text: str) -> str:
    """What is public of a header: comments and declarations, without bodies, private parts and details."""
    lines = text.split("namespace tutti {", 1)[-1].splitlines()
    out: list[str] = []
    skip_depth, depth, private = None, 0, False
    for line in lines:
        code = re.sub(r"//.*", "", line)
        opened = code.count("{") - code.count("}")
        if skip_depth is None:
            if re.match(r"namespace detail", line) or line.startswith("}  // namespace") or line.startswith("#"):
                skip_depth = depth if opened > 0 else None
            elif re.match(r"\s*(private|protected):", line):
                private = True
            elif re.match(r"\s*public:", line):
                private = False
            elif private and code.strip() == "};":
                private = False
                out.append(line)
            elif not private and opened > 0 and not re.search(r"\b(class|struct|enum|namespace|concept)\b", code):
                out.append(re.sub(r"\s*(: .*)?\{.*$", ";", code.rstrip()))
                skip_depth = depth
            elif not private:
                out.append(line)
        depth += opened
        if skip_depth is not None and depth <= skip_depth:
            skip_depth = None
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n}")


def cpp_page() -> str:
    parts = ["# Reference: C++", "The public headers, without the bodies of functions. [C++](../cpp.md) explains them, with programs."]
    for name in HEADERS:
        text = (REPOSITORY / f"include/tutti/{name}.hpp").read_text()
        purpose = text.splitlines()[0].split(": ", 1)[1]
        unstable = " This is a seam for extensions, and may change." if name in ("backend", "link") else ""
        parts.append(f"## tutti/{name}.hpp\n\n{purpose[0].upper()}{purpose[1:]}{unstable}\n\n```cpp\n{declarations(text)}\n```")
    return "\n\n".join(parts) + "\n"


def help_of(*command: str) -> str:
    run = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=30, check=True, env={"NO_COLOR": "1"})
    return textwrap.dedent(run.stdout).strip()


def commands_page(build: pathlib.Path) -> str:
    tutti = build / "src/cli/tutti"
    listed = [word for word in re.findall(r"^ {2,}([a-z]+) ", help_of(str(tutti)), flags=re.MULTILINE)]
    names = [name for name in dict.fromkeys([*COMMANDS, *listed]) if name in listed]
    parts = ["# Reference: commands", "What each command says with `--help`. [Tools](../tools.md) and [the launcher](../launcher.md) explain "
             "them; [environment variables](../environment.md) are a page of their own.",
             f"## tuttirun\n\n```\n{help_of(str(build / 'src/launch/tuttirun'))}\n```",
             f"## tutti\n\n```\n{help_of(str(tutti))}\n```"]
    parts += [f"## tutti {name}\n\n```\n{help_of(str(tutti), name)}\n```" for name in names if name != "run"]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build/release")
    o = parser.parse_args()
    o.folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("python", python_page()), ("cpp", cpp_page()), ("commands", commands_page(o.build))):
        (o.folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()

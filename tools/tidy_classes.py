# tidy_classes.py: how many methods each class has, and in how many .cpp files they are defined.
# SPDX-License-Identifier: Apache-2.0
"""Reads C++ roughly, as the project writes it: scopes by their braces, declarations by their parentheses.

Methods are counted by name: overloads are one. Constructors, destructors and operators are not counted, and what overrides a
method of an interface is counted where the interface is declared.
"""
import collections
import pathlib
import re

import tidy_sizes

METHODS_MAX = 30
EXCEPTIONS = {
    "tutti::Group": "the public interface: a method for each verb",
}
SCOPE = re.compile(r"(?:^|\s)(?:inline\s+)?(namespace|class|struct|union)\b(?:\s+alignas\([^)]*\))?\s*(?:\[\[\w+\]\]\s*)?([\w:]*)"
                   r"(?:<[^{]*>)?(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)
DECLARED = re.compile(r"([~\w]+)\s*$")
DEFINED = re.compile(r"(?:^|[\s*&>])((?:\w+(?:<[\w, ]*>)?::)+)(~?\w+|operator\W+)\s*$")
NOT_A_METHOD = {"if", "for", "while", "switch", "return", "requires", "decltype", "noexcept", "alignas", "static_assert",
                "sizeof", "defined", "friend", "using", "__attribute__"}


class Classes:
    """By qualified name: the names of its methods, and the .cpp files that define any."""

    def __init__(self):
        self.methods = collections.defaultdict(set)
        self.files = collections.defaultdict(set)

    def read(self, path, text):
        text = tidy_sizes.NOISE.sub(tidy_sizes.blank, text)
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", tidy_sizes.blank, text, flags=re.MULTILINE)
        scopes, head_begin = [], 0  # a scope: its kind and its name
        for position, character in enumerate(text):
            if character not in "{};":
                continue
            head = text[head_begin:position].strip()
            head_begin = position + 1
            inside = scopes[-1][0] if scopes else "namespace"
            if character == "}":
                if scopes:
                    scopes.pop()
                continue
            if inside != "body":
                self.note(path, scopes, re.sub(r"^(public|private|protected)\s*:(?!:)", "", head).strip())
            if character == "{":
                scopes.append(scope_of(head, inside))

    def note(self, path, scopes, head):
        before = before_parenthesis(head)
        if before is None or "=" in before.replace("operator", "") or SCOPE.search(head.split("(")[0]):
            return
        names = [name for _, name in scopes if name]
        if scopes and scopes[-1][0] == "class":
            found = DECLARED.search(before)
            if re.search(r"\)[^()]*\boverride\b", head):
                return
            is_special = found is None or found.group(1).lstrip("~") == names[-1].split("::")[-1]
            if is_special or found.group(1) in NOT_A_METHOD or before.startswith(("friend", "using")):
                return
            self.methods["::".join(names)].add(found.group(1))
        elif found := DEFINED.search(before):
            owner = re.sub(r"<[^>]*>", "", found.group(1))[:-2]
            self.files["::".join([*names, owner])].add(path)


def scope_of(head, inside):
    if inside == "body":
        return "body", ""
    found = SCOPE.search(head)
    if found is None or ")" in head.split(":")[0].replace("alignas(64)", ""):
        return "body", ""
    return ("namespace" if found.group(1) == "namespace" else "class"), found.group(2)


def before_parenthesis(head):
    """What stands before the parameters: before the first parenthesis that is not an attribute's or a template's."""
    head = re.sub(r"\[\[.*?\]\]", "", head)
    head = re.sub(r"^\s*template\s*<.*?>\s*(?=\w)", "", head)
    at = head.find("(")
    return head[:at].rstrip() if at > 0 else None


def read(tree):
    classes = Classes()
    for path, text in tree.code().items():
        if not tidy_sizes.is_test(path):
            classes.read(path, text)
    return classes


def complaints(tree):
    classes = read(tree)
    for name, methods in sorted(classes.methods.items()):
        if len(methods) > METHODS_MAX and name not in EXCEPTIONS:
            yield f"{name}: {len(methods)} methods, more than {METHODS_MAX}: split it by what it is responsible for"
    for name, files in sorted(classes.files.items()):
        sources = sorted(path for path in files if pathlib.PurePath(path).suffix == ".cpp")
        if len(sources) > 1 and name in classes.methods:
            yield f"{name}: its methods are defined in {', '.join(sources)}: one .cpp should hold a class"

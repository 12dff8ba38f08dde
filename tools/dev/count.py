# count.py: counts the test cases of a run of ctest or pytest, and lists what failed, what was skipped and what had to be repeated.
# SPDX-License-Identifier: Apache-2.0
"""Prints "passed failed skipped repeated"; repeated are those of the passed ones that failed first.

A program that ran its tests in one go (WHOLE in cmake/tests.cmake) is one case for ctest; where it left a GoogleTest
report, the cases in there are counted instead.
"""
import argparse
import ast
import collections
import pathlib
import re
import xml.etree.ElementTree as ElementTree

Case = collections.namedtuple("Case", "name outcome reason")


def outcome_of(element):
    if element.find("failure") is not None or element.find("error") is not None or element.get("status") == "fail":
        return "failed"
    skipped = element.find("skipped")
    if skipped is not None and not (skipped.get("message") or "").startswith("Unable to find executable"):
        return "skipped"
    if element.get("status") == "disabled" or element.get("result") in ("skipped", "suppressed"):
        return "skipped"
    return "failed" if element.get("status") == "notrun" and "result" not in element.attrib else "passed"


def skip_reason(element):
    """GoogleTest prints the reason in the line after "file:line: Skipped"; its reports have it as a message."""
    output = element.findtext("system-out") or ""
    found = re.search(r"Skipped\n(.+)", output)
    if found:
        return found.group(1).strip()
    skipped = element.find("skipped")
    if skipped is None:
        return "not run"
    message = skipped.get("message") or ""
    if message == "collection skipped" and skipped.text:  # pytest, of a whole file: path, line and reason as a tuple
        message = ast.literal_eval(skipped.text.strip())[-1].removeprefix("Skipped: ")
    return message.split("\n")[-1].strip()


def case_of(element, name):
    outcome = outcome_of(element)
    return Case(name, outcome, skip_reason(element) if outcome == "skipped" else "")


def cases_of_program(report, program):
    for element in ElementTree.parse(report).getroot().iter("testcase"):
        yield case_of(element, f"{program}: {element.get('classname')}.{element.get('name')}")


def all_cases(junit, gtest_folder):
    if not junit.exists():
        return
    for element in ElementTree.parse(junit).getroot().iter("testcase"):
        name = element.get("name")
        if element.get("classname") not in (None, "", name):  # pytest's; ctest says the same twice
            name = f"{element.get('classname')}.{name}"
        report = gtest_folder / f"{name}.xml" if gtest_folder else None
        inner = list(cases_of_program(report, name)) if report and report.exists() else []
        outer = case_of(element, name)
        # A program that died or timed out fails as a whole, whatever its report says.
        if outer.outcome == "failed" and not any(case.outcome == "failed" for case in inner):
            inner.append(outer)
        yield from inner or [outer]


def notes(cases):
    for case in cases:
        if case.outcome == "failed":
            yield f"failed: {case.name}"
    reasons = collections.Counter(case.reason for case in cases if case.outcome == "skipped")
    for reason, count in sorted(reasons.items()):
        yield f"skipped {count}: {reason}"


OUTCOME = re.compile(r"^ *(?:\d+/\d+ )? *Test +#(\d+): (.*?) \.+(?:[^*\n]*\*\*\*(\w+)|   Passed)", re.MULTILINE)


def repeated(log):
    """The names of ctest's tests that passed after they had failed: its report has the last outcome only."""
    failed_once, names = set(), []
    for number, name, trouble in OUTCOME.findall(log):
        if trouble and trouble not in ("Skipped", "Not"):
            failed_once.add(number)
        elif not trouble and number in failed_once:
            names.append(name)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit", type=pathlib.Path, required=True)
    parser.add_argument("--gtest", type=pathlib.Path, help="folder of the reports of programs that ctest runs whole")
    parser.add_argument("--notes", type=pathlib.Path, required=True)
    parser.add_argument("--log", type=pathlib.Path, help="what ctest printed")
    options = parser.parse_args()
    cases = list(all_cases(options.junit, options.gtest))
    counts = collections.Counter(case.outcome for case in cases)
    again = repeated(options.log.read_text(errors="replace")) if options.log and options.log.exists() else []
    with options.notes.open("a") as file:
        file.writelines(f"{line}\n" for line in notes(cases))
        file.writelines(f"passed only when run again: {name}\n" for name in again)
    print(counts["passed"], counts["failed"], counts["skipped"], len(again))


if __name__ == "__main__":
    main()

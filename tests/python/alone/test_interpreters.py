# test_interpreters.py: Pythons that the module does not serve refuse it by name.
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

IN_A_SUBINTERPRETER = """
try:
    import _interpreters as interpreters  # from 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters
{before}
other = interpreters.create()
program = '''
try:
    import tutti
except ImportError as error:
    print("refused:", error)
else:
    print("imported")
'''
found = getattr(interpreters, "run_string")(other, program)
"""
WITHOUT_THE_LOCK = """
import sys
sys._is_gil_enabled = lambda: False  # as a free-threaded Python says under -X gil=0
try:
    import tutti
except ImportError as error:
    print("refused:", error)
"""


def printed(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_subinterpreter_is_refused_by_name():
    found = printed(IN_A_SUBINTERPRETER.format(before=""))
    assert "refused:" in found and "subinterpreter" in found


def test_a_subinterpreter_is_refused_beside_a_main_interpreter_that_uses_the_module():
    used = "import tutti\nimport numpy\nassert tutti.init().size == 1 and tutti.all_reduce(numpy.ones(2)).sum() == 2"
    found = printed(IN_A_SUBINTERPRETER.format(before=used) + "\nassert tutti.all_reduce(numpy.ones(2)).sum() == 2")
    assert "refused:" in found and "subinterpreter" in found


def test_a_python_without_the_interpreter_lock_is_refused_by_name():
    found = printed(WITHOUT_THE_LOCK)
    assert "refused:" in found and "-X gil=0" in found

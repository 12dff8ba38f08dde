# test_jax_handlers.py: a build without XLA's handlers says how to get one with them.
# SPDX-License-Identifier: Apache-2.0
import pytest

pytest.importorskip("jax")

import tutti  # noqa: E402
from tutti import _native  # noqa: E402
from tutti.jax import primitive  # noqa: E402


def test_a_module_built_before_jax_was_there_says_what_to_do(monkeypatch, repository):
    monkeypatch.delattr(_native, "jax_handlers")
    with pytest.raises(tutti.Unsupported, match=f"jaxlib was not there.*run {repository}/dev build, which finds it now"):
        primitive.register()


def test_a_package_that_was_installed_is_installed_again(monkeypatch, tmp_path):
    monkeypatch.delattr(_native, "jax_handlers")
    monkeypatch.setattr(_native, "__file__", str(tmp_path / "site-packages/tutti/_native.so"))
    with pytest.raises(tutti.Unsupported, match="install Tutti once more"):
        primitive.register()

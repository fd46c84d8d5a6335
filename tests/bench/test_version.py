"""Versions of methods: which changes affect them."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from nasbo.bench import version
from nasbo.bench.spec import parse_method
from nasbo.bench.version import bare_source, code_hash, method_version, reached_modules

SOURCE = '''
"""What it is."""
STEP = 1


def move(x):
    """Go."""
    return x + STEP  # by one
'''


def test_words_do_not_change_a_version_but_code_does() -> None:
    same = SOURCE.replace("What it is", "Else").replace("by one", "on").replace("Go.", "Come.")
    assert bare_source(same) == bare_source(SOURCE)
    assert bare_source(SOURCE.replace("STEP = 1", "STEP = 2")) != bare_source(SOURCE)


def test_a_method_reaches_what_it_rests_on_and_no_more() -> None:
    attention = reached_modules("nasbo.methods.attnbo")
    assert {
        "nasbo.surrogates.structured",
        "nasbo.gp.shared_units",
        "nasbo.acquisition.optimise",
        "nasbo.space.subspace",
    } <= attention
    random = reached_modules("nasbo.methods.random")
    assert "nasbo.methods.base" in random
    assert not any(name.startswith("nasbo.acquisition") for name in random)
    assert "nasbo.methods.registry" not in random
    assert "nasbo.space.load" not in attention


def test_peers_carry_the_version_of_their_package() -> None:
    assert method_version(parse_method("tpe")).endswith(
        f"optuna {importlib.metadata.version('optuna')}"
    )
    assert method_version(parse_method("tpe-group")) == method_version(parse_method("tpe"))
    assert " " not in method_version(parse_method("gp"))


def test_methods_of_ones_own_and_files_beside_them_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "own_method_of_a_test.py"
    found = []
    for text, weights in ((SOURCE, "1"), (SOURCE.replace("= 1", "= 2"), "1"), (SOURCE, "2")):
        file.write_text(text, encoding="utf-8")
        (tmp_path / "weights.json").write_text(weights, encoding="utf-8")
        for cached in (version.code_hash, version._bare, version._imported, version._file):
            cached.cache_clear()
        found.append(code_hash("own_method_of_a_test"))
    assert len(set(found)) == 3
    assert "own_method_of_a_test" not in sys.modules

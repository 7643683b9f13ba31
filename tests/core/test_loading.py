"""Names that point at code."""

from __future__ import annotations

import sys

import pytest

from penstock.core.errors import Refused
from penstock.core.loading import load_object


def test_finds_a_name_and_a_name_inside_it():
    assert load_object("penstock.core.errors:Refused") is Refused
    assert load_object("collections:OrderedDict.fromkeys") is not None


@pytest.mark.parametrize("path", ["", "json", "json:", ":loads"])
def test_refuses_what_is_not_of_the_form(path):
    with pytest.raises(Refused, match="module:Name"):
        load_object(path)


def test_refuses_a_module_that_is_not_there():
    with pytest.raises(Refused, match="no module named 'no_such_module_of_ours'"):
        load_object("no_such_module_of_ours:Thing")


def test_names_the_import_that_is_missing_inside_the_module(tmp_path, monkeypatch):
    (tmp_path / "asks_for_more.py").write_text("import no_such_library_of_theirs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Refused, match=r"cannot import 'asks_for_more'.*'no_such_library_of_theirs'"):
        load_object("asks_for_more:Thing")


def test_refuses_a_name_that_the_module_has_not():
    with pytest.raises(Refused, match=r"'json' has no 'Thing.inside'"):
        load_object("json:Thing.inside")


def test_the_working_directory_is_searched(tmp_path, monkeypatch):
    (tmp_path / "module_beside_me.py").write_text("class Here: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert load_object("module_beside_me:Here").__name__ == "Here"

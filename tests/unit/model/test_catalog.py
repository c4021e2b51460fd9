"""The catalogs of messages: the codes, the remedies, the texts, and the use of each message.

tests/unit/messages.txt pins the texts. Tests of behavior assert codes and facts.
"""

from __future__ import annotations

import ast
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import migrate
from migrate.model import warning_catalog
from migrate.model.explanations import read_catalogs, read_explanations
from migrate.model.message import MessageTemplate
from migrate.model.warning import WarningText
from tests.support.messages import PINNED, SHARED, message_texts, named_templates


def _reasons() -> Iterator[tuple[str, MessageTemplate]]:
    """Yield the messages that can end a command."""
    return ((name, item) for name, item in named_templates() if item.kind not in SHARED)


def _calls() -> Iterator[tuple[str, int, str, ast.Call]]:
    """Yield each call of a name in capital letters: the file, the line, the name, and the call."""
    root = Path(migrate.__path__[0])
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name.isupper():
                    yield str(path.relative_to(root)), node.lineno, name, node


def test_message_texts_match_pinned_file() -> None:
    """After an intended change, run ``python -m tests.support.messages`` to update the file."""
    assert message_texts() == PINNED.read_text()


def test_every_code_is_unique_and_corresponds_to_name_of_its_message() -> None:
    codes = [template.code for _, template in _reasons()]
    assert sorted(codes) == sorted(read_catalogs())
    assert read_catalogs().keys() & read_explanations().keys() == set()
    for name, template in _reasons():
        assert name == template.code.upper().replace("-", "_")


def test_every_message_states_remedy() -> None:
    assert [name for name, template in _reasons() if not template.way_out] == []


def test_message_texts_have_no_final_period_and_no_second_sentence() -> None:
    for name, template in named_templates():
        for text in (template.what, template.way_out):
            assert not text.endswith((".", ";", " ")) and ". " not in text, name


def test_names_of_messages_are_unique() -> None:
    """The tests below find the template of a call by its name."""
    counts = Counter(name for name, _ in named_templates())
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_call_of_message_template_passes_required_facts() -> None:
    """A missing fact would raise an error only when the refusal occurs."""
    templates = dict(named_templates())
    wrong = [
        f"{path}:{line}: {name}"
        for path, line, name, call in _calls()
        if name in templates
        and None not in (names := {word.arg for word in call.keywords})
        and names != templates[name].fields
    ]
    assert wrong == []


def test_every_message_is_used() -> None:
    root = Path(migrate.__path__[0])
    sources = [path for path in root.rglob("*.py") if not path.name.endswith("catalog.py")]
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) or _is_in_catalog(node)
    }
    assert [name for name, _ in named_templates() if name not in used] == []


def _is_in_catalog(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Return whether a node has the form ``catalog.NAME``, and not ``Code.NAME``."""
    match node:
        case ast.Attribute(value=ast.Name(id=module)):
            return module.endswith("catalog")
    return False


def test_code_of_every_finding_and_warning_is_explained() -> None:
    for name, template in named_templates():
        assert (template.kind in SHARED) == (template.code in read_explanations()), name


def test_warning_keeps_code_and_facts_after_pickling() -> None:
    """The processes of a scan exchange pickled warnings."""
    text = WarningText(warning_catalog.NEW_GROUP(group="g", alike=["h"]))
    for copied in (text, pickle.loads(pickle.dumps(text))):
        assert (copied.code, copied.facts) == ("new-group", {"group": "g", "alike": ["h"]})
        assert copied.endswith(" [new-group]")


def test_errors_findings_and_warnings_are_messages() -> None:
    """All of them have a code. Only usage errors are plain strings."""
    root = Path(migrate.__path__[0])
    made = {"Refused", "CutOverStopped", "InputError", "EditedFile", "ServiceError"}
    made |= {"BrokerError", "FlinkRestError", "Finding", "WarningText", "warn"}
    texts = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in made
        and any(isinstance(argument, ast.JoinedStr | ast.Constant) for argument in node.args)
    ]
    assert texts == []

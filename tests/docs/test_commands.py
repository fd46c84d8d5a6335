"""Shell blocks and commands in sentences: every option exists, and what is quick is run."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from tests.docs.conftest import Prepare
from tests.docs.pages import ROOT, Block, blocks, code_spans

PROGRAMS = {
    "nasbo", "make", "pip", "tensorboard", "ray", "git", "ssh", "scp", "docker", "kubectl",
    "prometheus", "grafana-server", "mlflow", "wandb", "optuna-dashboard", "openssl", "printf",
    "export", "eval", "cd", "umask", "mkdir",
    "python", ".", "./start.sh", ".venv/bin/python",
}  # fmt: skip
"""What a shell block may call; a new one is added here once somebody has looked at it."""
RUN = {
    "space show", "space check", "space sample", "methods", "best", "export", "status", "report",
    "compare", "bench problems", "bench suites",
}  # fmt: skip
"""Commands that are quick enough to be run as they are written."""
DRY = {"launch", "run"}
"""Commands that are run with ``--dry-run``; a warm start would need results of the same space."""
ENDLESS = {"--watch", "--serve", "--summary", "--explain"}
WORDS = re.compile(r"^[A-Z][A-Z_.]*$|\[|\.\.\.|/\*")
"""Placeholders such as DIR, and other signs that a command is a form to be filled in."""


@dataclass(frozen=True)
class Call:
    """A command of ``nasbo`` in a shell block."""

    block: Block
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block} {' '.join(self.words[:4])}"


def commands_of(text: str) -> Iterator[tuple[str, ...]]:
    """The simple commands of a shell text, without comments, variables before them and pipes."""
    for line in re.sub(r"\$\([^)]*\)", "VALUE", text.replace("\\\n", " ")).splitlines():
        lexer = shlex.shlex(line.strip(), posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        found: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&"):
                found.append(word)
                continue
            while found and re.fullmatch(r"\w+=.*", found[0]):
                found.pop(0)
            if found and not set(word) & set("<>"):
                yield tuple(found)
                found = []


def find(words: tuple[str, ...]) -> tuple[str, click.Command, list[str]]:
    """The command that words call: its name, itself, and the words behind it."""
    command: click.Command = cli
    names: list[str] = []
    rest = list(words)
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        names.append(rest.pop(0))
        command = command.commands[names[-1]]
    assert names, f"nasbo has no command {words[0]!r}; it has {sorted(cli.commands)}"
    return " ".join(names), command, rest


def options_of(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def check(words: tuple[str, ...]) -> None:
    """Fail unless click takes these words: known options with values of their type."""
    _, command, rest = find(words)
    context = click.Context(command)
    values, left, _ = command.make_parser(context).parse_args(args=list(rest))
    assert not left, f"{left} is too much for nasbo {' '.join(words)}"
    for param in command.params:
        value = values.get(param.name or "")
        assert value or not param.required, f"nasbo {' '.join(words)} lacks {param.name}"
        if isinstance(param.type, click.Choice | click.IntRange | click.FloatRange) and value:
            for one in [value] if isinstance(value, str) else value:
                if not WORDS.search(str(one)):
                    param.type.convert(one, param, context)


CALLS = [
    Call(block, words[1:])
    for block in blocks("sh")
    for words in commands_of(block.text)
    if words[0] == "nasbo"
]
SPANS = [(place, text) for place, text in code_spans() if text.startswith("nasbo ")]
EVERY_OPTION = {"-h", "--help", "--version"} | {
    option
    for group in (cli, cli.commands["bench"], cli.commands["space"], cli.commands["data"])
    if isinstance(group, click.Group)
    for command in (group, *group.commands.values())
    for option in options_of(command)
}


def can_be_run(call: Call) -> bool:
    name, _, rest = find(call.words)
    return (
        name in RUN
        and not ENDLESS & set(rest)
        and not any(WORDS.search(word) or "://" in word or word[0] in "/~" for word in rest)
        and all(
            word in ("runs/first", "runs/second", "runs/front")
            for word in rest
            if word.startswith("runs/")
        )
    )


def test_blocks_call_known_programs() -> None:
    for block in blocks("sh"):
        for words in commands_of(block.text):
            assert words[0] in PROGRAMS, f"{block}: {words}"


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_call_has_options_that_exist(call: Call) -> None:
    check(call.words)


@pytest.mark.parametrize("call", list(filter(can_be_run, CALLS)), ids=str)
def test_a_quick_call_runs(call: Call, prepare: Prepare) -> None:
    prepare(call.block.page)
    done = CliRunner().invoke(cli, list(call.words))
    assert done.exit_code == 0, done.output
    assert done.output


def can_be_rehearsed(call: Call) -> bool:
    is_remote = call.words[0] == "run" and any("://" in word for word in call.words)
    needs_more = "--warm-start" in call.words or any("torchvision:" in word for word in call.words)
    return call.words[0] in DRY and not is_remote and not needs_more


@pytest.mark.parametrize("call", list(filter(can_be_rehearsed, CALLS)), ids=str)
def test_a_start_can_be_rehearsed(call: Call, prepare: Prepare) -> None:
    folder = prepare(call.block.page)
    shutil.rmtree(folder / "runs")
    words = [str(folder / word[1:]) if word.startswith("/shared") else word for word in call.words]
    done = CliRunner().invoke(cli, [*words, *(["--dry-run"] * ("--dry-run" not in words))])
    assert done.exit_code == 0, done.output
    assert ("length:" if words[0] == "run" else "nasbo") in done.output
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(("place", "text"), SPANS, ids=str)
def test_a_command_in_a_sentence_exists(place: str, text: str) -> None:
    words = re.sub(r"[][|]", " ", text).split()[1:]
    name, command, rest = ("", cli, words) if words[0] == "--version" else find(tuple(words))
    options = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert options <= options_of(command) | {"-h", "--help"}, (
        f"{place}: nasbo {name} has no {options}"
    )


def test_options_in_sentences_exist() -> None:
    others = {
        "--resources",
        "--num-cpus",
        "--num-gpus",
        "--block",
        "--cov",
        "--exclusive",
        "--signal",
    }
    named = {
        (place, found)
        for place, text in code_spans()
        for found in re.findall(r"^(--[a-z][a-z-]+)", text)
    }
    assert {option for _, option in named} > {"--trials", "--rungs", "--slots"}
    unknown = {one for one in named if one[1] not in EVERY_OPTION | others}
    assert not unknown


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))
    calls = {
        word
        for block in blocks("sh")
        for words in commands_of(block.text)
        if words[0] == "make"
        for word in words[1:]
        if "=" not in word
    }
    calls |= {text.split()[1] for _, text in code_spans() if text.startswith("make ")}
    assert {"demo", "test"} <= calls <= targets


def test_extras_of_pip_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [block.text for block in blocks("sh")] + [text for _, text in code_spans()]
    named = {
        extra
        for text in texts
        for found in re.findall(r"pip install '?(?:nasbo|\.)\[([\w,]+)\]", text)
        for extra in found.split(",")
    }
    assert {"export", "bench"} <= named <= set(project["optional-dependencies"])


def test_every_command_is_on_the_page_of_commands() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert ".. click:: nasbo.cli:cli" in page
    for name, command in cli.commands.items():
        for inner in command.commands if isinstance(command, click.Group) else [""]:
            assert re.search(rf"nasbo {name}\b|`{inner}`", page), f"nasbo {name} {inner}"

"""Word about a start of one's own: init."""

from __future__ import annotations

from pathlib import Path

import click

from nasbo.starter import DEFAULT, KINDS, next_commands, write_starter


def _kinds(command: click.decorators.FC) -> click.decorators.FC:
    """A flag for each kind of starter."""
    for kind, words in reversed(KINDS.items()):
        text = f"{words[0].upper()}{words[1:]}." + (" [default]" if kind == DEFAULT else "")
        command = click.option(f"--{kind}", "kind", flag_value=kind, default=None, help=text)(
            command
        )
    return command


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@_kinds
def init(folder: Path, kind: str | None) -> None:
    """Write a space, a trainer and a sweep file that run, to be made your own.

    \b
    nasbo init my_sweep
    cd my_sweep
    nasbo run sweep.yaml --dir runs/first

    The files are short and say where your own data and network go. Nothing is overwritten.
    """
    kind = kind or DEFAULT
    for file in write_starter(kind, folder):
        click.echo(f"wrote {file}")
    click.echo("\nnext:")
    for command in next_commands(kind, folder):
        click.echo(f"  {command}")

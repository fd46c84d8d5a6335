"""Words about search spaces: show, check, sample, convert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from nasbo.commands.terminal import console


@click.group()
def space() -> None:
    """Show, check and sample search spaces: files, or names of shipped ones."""


@space.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print counts and subspaces as JSON.")
def space_show(file: str, as_json: bool) -> None:
    """Draw the tree of a space, with ranges and counts."""
    from nasbo.report.tree import draw_space, space_table
    from nasbo.space import load_space

    loaded = load_space(file)
    if as_json:
        click.echo(json.dumps(space_table(loaded), indent=2))
    else:
        console().print(draw_space(loaded))


@space.command("check")
@click.argument("file")
def space_check(file: str) -> None:
    """Check a space file; an error is printed with its line (exit code 2)."""
    from nasbo.space import load_space

    loaded = load_space(file)
    click.echo(f"{file}: {len(loaded.names)} names, {loaded.n_subspaces} subspaces")


@space.command("sample")
@click.argument("file")
@click.option("-n", "n", type=click.IntRange(min=1), help="[default: 1; 200 with --summary]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@click.option(
    "--summary", is_flag=True, help="Print distributions of size and cost, from the trainer."
)
@click.option("--trainer", help="With --summary: module:function. [default: of a shipped space]")
@click.option(
    "-o",
    "--option",
    "trainer_options",
    multiple=True,
    metavar="K=V",
    help="With --summary: option of the trainer, e.g. recipe=proxy.",
)
@click.option("--constraint", "constraints", multiple=True, metavar="'NAME<=NUMBER'",
              help="With --summary: only configs within it.")  # fmt: skip
def space_sample(
    file: str, n: int | None, seed: int, as_json: bool, summary: bool, **given: Any
) -> None:
    """Draw configs: a uniform subspace, then a uniform config of it.

    \b
    nasbo space sample svm -n 3
    nasbo space sample nas_cifar10 --summary -o recipe=proxy --constraint 'parameters<=2e6'
    """
    if summary:
        from nasbo.start import show_summaries

        show_summaries(file, {**given, "seed": seed}, n or 200, console())
        return
    import numpy as np

    from nasbo.space import load_space

    loaded, rng = load_space(file), np.random.default_rng(seed)
    configs = [loaded.sample(rng) for _ in range(n or 1)]
    lines = [json.dumps(configs)] if as_json else [json.dumps(config) for config in configs]
    click.echo("\n".join(lines))


@space.command("convert")
@click.argument("source", metavar="FILE")
@click.option(
    "--to", "target", required=True, type=click.Choice(["configspace", "optuna", "nasbo"])
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: printed.")
@click.option("--strict", is_flag=True, help="Write nothing, and end with code 2, where the other "
              "format does not say all.")  # fmt: skip
def space_convert(source: str, target: str, out: Path | None, strict: bool) -> None:
    """Write a space in the format of another package, or read one of theirs.

    \b
    FILE      a space file or a shipped name; a .json file of ConfigSpace; or module:function, an
              objective of Optuna: it is run with random values until nothing new appears
    --to      configspace  JSON, for ConfigurationSpace.from_json
              optuna       a Python module with suggest(trial), which gives a config
              nasbo        a space file

    What the other format cannot say is named, parameter by parameter, on the standard error.

    \b
    nasbo space convert svm --to configspace --out svm.json
    nasbo space convert my_study:objective --to nasbo --out my_space.yaml
    """
    from nasbo.errors import SpaceError
    from nasbo.interchange import convert_space

    found = convert_space(source, target)  # type: ignore[arg-type]  # click has checked it
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    for loss in found.losses:
        click.echo(f"lost: {loss}", err=True)
    if strict and found.losses:
        raise SpaceError(f"{source}: {len(found.losses)} things would be lost: nothing is written")
    if out is None:
        click.echo(found.text, nl=False)
        return
    try:
        out.write_text(found.text, encoding="utf-8")
    except OSError as error:
        raise SpaceError(f"{out}: cannot be written: {error}") from error
    click.echo(out)

"""Words about search spaces: show, check, sample."""

from __future__ import annotations

import json

import click

from nasbo.commands.terminal import console


@click.group()
def space() -> None:
    """Look at search spaces: files, or the names of shipped ones."""


@space.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Counts and subspaces as JSON.")
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
    """Say whether a space file is right, or what is wrong and where (exit code 2)."""
    from nasbo.space import load_space

    loaded = load_space(file)
    click.echo(f"{file}: {len(loaded.names)} names, {loaded.n_subspaces} subspaces")


@space.command("sample")
@click.argument("file")
@click.option("-n", "n", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
def space_sample(file: str, n: int, seed: int, as_json: bool) -> None:
    """Draw configs, uniform over the subspaces, then inside."""
    import numpy as np

    from nasbo.space import load_space

    loaded, rng = load_space(file), np.random.default_rng(seed)
    configs = [loaded.sample(rng) for _ in range(n)]
    lines = [json.dumps(configs)] if as_json else [json.dumps(config) for config in configs]
    click.echo("\n".join(lines))

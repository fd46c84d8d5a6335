"""TensorBoard: the files that a sweep's driver writes into its folder, in a folder elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.report.tensorboard import TensorboardLog
from nasbo.tracking.destination import Tracked, Wish

MARK_FILE = ".nasbo-sweep"


class TensorboardFiles:
    """Writes a sweep's curves and its table of hyperparameters; see ``Destination``.

    Files of an earlier tracker are removed and written anew, so that nothing is there twice.
    """

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._folder: Path | None = None
        self._log: TensorboardLog | None = None

    def send(self, tracked: Tracked) -> None:
        if self._log is None:
            name = self._wish.name or tracked.runs[0].name
            self._folder = Path(self._wish.tracking_uri or f"tensorboard/{name}")
            _clear(self._folder, tracked.identity)
            sweep = tracked.sweep
            self._log = TensorboardLog(sweep.path, sweep.metric, maps_every=0, target=self._folder)
        self._log.update(tracked.sweep.history)

    def forget(self) -> None:
        """Nobody else writes there."""

    def files(self) -> Mapping[str, str]:
        return {}

    def send_files(self, files: Mapping[str, Path], digests: Mapping[str, str]) -> None:
        """TensorBoard shows no files."""

    def where(self) -> str:
        return f"{self._folder}: tensorboard --logdir {self._folder}"

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def _clear(folder: Path, identity: str) -> None:
    """Make a folder for a sweep, or empty it of the same sweep's files."""
    mark = folder / MARK_FILE
    try:
        if folder.exists() and any(folder.iterdir()):
            held = mark.read_text(encoding="utf-8") if mark.exists() else ""
            if held != identity:
                raise SweepError(
                    f"{folder} holds other files than this sweep's: name another --tracking-uri"
                )
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(identity, encoding="utf-8")
        for file in folder.rglob("events.out.tfevents.*"):
            file.unlink()
    except OSError as error:
        raise SweepError(f"{folder}: cannot be written: {error}") from error

"""Sweeps on object storage, with a local mirror that all other code reads and writes.

The bucket is authoritative. The journal is stored there as segments, one object per write, and a
write is acknowledged only when its object is stored. Trials upload their files when they report.

Public: ``Location``, a folder of an object store; ``open_named`` and ``open_mirror``, which return
the local folder of a URL; ``open_journal``, the only writer of a folder's journal.
"""

from nasbo.storage.location import Location, is_url
from nasbo.storage.mirror import JOURNAL_FILE, open_journal, open_mirror, open_named

__all__ = ["JOURNAL_FILE", "Location", "is_url", "open_journal", "open_mirror", "open_named"]

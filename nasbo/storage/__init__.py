"""A sweep's folder on object storage: a local mirror that everything else reads and writes.

The bucket is the truth. The journal lies there as segments, one object per write, and a write
counts only when its object is stored; trials bring their files there when they report.

Public: ``Location``, a folder of an object store; ``open_named`` and ``open_mirror``, which give
the local folder of a URL; ``open_journal``, the one writer of a folder's journal.
"""

from nasbo.storage.location import Location, is_url
from nasbo.storage.mirror import JOURNAL_FILE, open_journal, open_mirror, open_named

__all__ = ["JOURNAL_FILE", "Location", "is_url", "open_journal", "open_mirror", "open_named"]

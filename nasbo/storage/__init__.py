"""A sweep's folder on object storage: a local mirror that everything else reads and writes.

The bucket is the truth. The journal lies there as segments, one object per write, and a write
counts only when its object is stored; trials bring their files there when they report.
"""

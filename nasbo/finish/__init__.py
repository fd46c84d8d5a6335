"""The end of a sweep: its best configs are trained in full, exported and described."""

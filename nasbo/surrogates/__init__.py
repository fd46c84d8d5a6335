"""Surrogate models over all subspaces, one file per model."""

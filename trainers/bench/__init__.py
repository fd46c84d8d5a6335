"""Benchmark of the trainer: images per second on networks of the space."""

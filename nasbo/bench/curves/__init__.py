"""Benchmark of regret by cost, for problems whose trials can be trained in part."""

"""Regret by cost where trials can be trained in part: searches on a simulated clock, and tables."""

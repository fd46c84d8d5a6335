"""Measurements: what searching costs and what it brings."""

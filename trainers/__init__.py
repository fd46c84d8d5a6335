"""Trainers: a configuration and a session come in, reported metrics come out.

This package knows neither the searcher nor the cluster. `trainers.cifar10` is the face to use.
"""

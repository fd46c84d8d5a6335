"""Models of the score over all subspaces at once: one file per surrogate."""

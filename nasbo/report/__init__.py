"""Pictures and tables of spaces and sweeps."""

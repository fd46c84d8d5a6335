"""The words of the command line, a file per topic: parsing only, imports inside (quick help)."""

"""The errors that nasbo raises on purpose: each message holds the rule, the value and the place."""


class NasboError(Exception):
    """Base of all errors that a user can cause and mend."""


class SpaceError(NasboError):
    """A search space that cannot be read: the message starts with file:line."""


class ConfigError(NasboError):
    """A config that does not belong to its space."""


class JournalError(NasboError):
    """A journal that cannot be read or written."""


class SweepError(NasboError):
    """A sweep whose settings, folder or trainer cannot be used."""

"""The append-only record of what happened, which metrics and audits are read from."""

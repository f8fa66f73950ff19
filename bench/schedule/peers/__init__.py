"""The schedulers that Frontdesk is measured against, each run from an environment of its own."""

"""Records what happened, append-only, for metrics and audits."""

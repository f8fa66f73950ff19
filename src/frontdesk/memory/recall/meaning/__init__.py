"""What items mean, as vectors that lie near one another when they mean the same."""
